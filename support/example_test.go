package support_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/support"
)

// anyTerms accept every order.
var anyTerms, _ = ramp.NewTerms(ramp.TermsConfig{Any: true})

// guild is a game with one player.
type guild struct{ gold int64 }

func (*guild) Authenticate(context.Context, ramp.Session) error { return nil }

func (s *guild) Assets(context.Context, ramp.Session) (*ramp.Player, error) {
	return &ramp.Player{Assets: []ramp.Asset{{ID: "item_gold", Balance: ramp.NewAmount(s.gold)}}}, nil
}

func (s *guild) apply(_ context.Context, step ramp.Step) error {
	for _, asset := range step.Effect.Assets {
		delta, err := step.Effect.Delta(asset).Int64()
		if err != nil {
			return err
		}
		s.gold += delta
	}
	return nil
}

// A burn has succeeded, and its result is lost. A person finds the transaction and finishes the
// order with it, which grants the gold.
func ExampleOrders_Finish() {
	ctx := context.Background()
	key := must(ramp.TextKey("key from the console"))
	signer := must(ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"))
	game := &guild{gold: 1000}
	store := must(ramp.NewMemoryStore(ramp.MemoryStoreConfig{Apply: game.apply})) // the store of the server
	service := must(ramptest.New(ramptest.Config{PerOrder: true, Key: key, Validator: signer.Address(), Handler: http.NotFoundHandler()}))
	defer service.Close()
	service.SetHandler(must(ramp.NewHandler(ramp.HandlerConfig{
		Players: game, Store: store, Terms: anyTerms, Key: key, Signer: signer, Now: service.Now})))
	client := must(ramp.NewClient(ramp.ClientConfig{URL: service.URL(), Key: key, HTTPClient: service.Client()}))
	started := must(client.Initialize(ctx, request()))
	must(service.Burn(ctx, started.UUID, ramp.Session{ID: "session-1", Token: ramp.NewAccessToken("token-1")}, ramp.NewAmount(1),
		ramptest.ResultNever()))
	service.Advance(time.Minute)
	fmt.Println("gold while the order waits:", game.gold)

	orders := must(support.New(support.Config{
		Store:  store,
		Chain:  must(ramp.NewRPC(ramp.RPCConfig{URL: service.RPCURL(ramp.Testnet), HTTPClient: service.Client()})),
		Proof:  &ramp.Proof{Payers: []common.Address{service.Payer()}},
		Now:    service.Now,
		Logger: slog.New(slog.DiscardHandler),
	}))
	report := must(orders.Show(ctx, started.UUID))
	best := report.Candidates[0]
	fmt.Println("proven:", best.Unproven == "")

	why := support.Decision{Who: "alice", Reason: "case 17: the result is lost"}
	_, err := orders.Abandon(ctx, started.UUID, why)
	fmt.Println("abandoned:", err == nil)
	step := must(orders.Finish(ctx, started.UUID, best.Hash, why))
	fmt.Println(step.Order.State, step.Effect, "gold:", game.gold)
	// Output:
	// gold while the order waits: 1000
	// proven: true
	// abandoned: false
	// succeeded grant +100 item_gold gold: 1100
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
