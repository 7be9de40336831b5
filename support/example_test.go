package support_test

import (
	"context"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/support"
)

// The result of a burn is lost. A person looks for its transaction and finishes the order with
// it, which grants the assets.
func ExampleOrders_Finish() {
	var (
		ctx   context.Context
		store *rampsql.Store
		proof *rampproof.Proof // that of the handler
		id    uuid.UUID        // of the order
	)
	orders := ramp.Must(support.New(support.Config{Store: store, Proof: proof}))
	report, err := orders.Show(ctx, id)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(report.Text())
	if len(report.Candidates) == 1 && report.Candidates[0].Unproven == "" {
		why := support.Decision{Who: "alice", Reason: "case 17: the result is lost"}
		step, err := orders.Finish(ctx, id, report.Candidates[0].Hash, why)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(step.Order.State, step.Effect)
	}
}

// The result of a mint never came, and its transaction cannot happen anymore. A person gives
// the gold back, once. With a Proof, and without WithoutEvidence, Abandon refuses if it finds the
// order's transaction.
func ExampleOrders_Abandon() {
	ctx := context.Background()
	store := &ramp.MemoryStore{
		Apply: func(_ context.Context, step ramp.Step) error { fmt.Println("the game:", step.Effect); return nil }}
	request := &ramp.ValidateRequest{UUID: uuid.MustParse("7b0f9a1e-3c44-4b8e-9c1d-2f6a5e8d7c90"),
		ProjectID: "project-1",
		Intent: ramp.Intent{Method: ramp.MethodMint, Type: ramp.Assemble,
			From: []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: "item_gold", Amount: ramp.NewAmount(100)}},
			To: []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: "0x00000000000000000000000000000000000070c3",
				Amount: ramp.NewAmount(1)}}}}
	if _, err := store.Update(ctx, request.UUID,
		ramp.Accept(ramp.Session{ID: "session-1"}, request, time.Now().Add(-14*time.Hour))); err != nil {
		log.Fatal(err)
	}

	orders := ramp.Must(support.New(support.Config{Store: store, Logger: slog.New(slog.DiscardHandler)}))
	why := support.Decision{Who: "alice", Reason: "case 17: the wallet is empty", WithoutEvidence: true}
	for range 2 {
		step, err := orders.Abandon(ctx, request.UUID, why)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(step.Order.State, step.New, step.Order.Reason)
	}
	// Output:
	// the game: take -100 item_gold
	// the game: give back +100 item_gold
	// abandoned true alice: case 17: the wallet is empty
	// abandoned false alice: case 17: the wallet is empty
}

// A server gets a command that reads its flags and its settings: server orders show -db … UUID.
func ExampleNewCommand() {
	name, args := os.Args[2], os.Args[3:]
	flags := flag.NewFlagSet("server orders "+name, flag.ExitOnError)
	address := flags.String("db", "", "database")
	command := ramp.Must(support.NewCommand(name, flags))
	if err := flags.Parse(args); err != nil {
		log.Fatal(err)
	}
	orders := ramp.Must(support.New(support.Config{Store: openStore(*address)})) // and Chain, Proof, Products …
	if err := command(context.Background(), orders, flags.Args(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func openStore(string) ramp.Store { return nil } // as the server does
