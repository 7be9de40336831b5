package ramptest_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/ramptest"
)

// A game whose database is unreachable when the first result comes.
func Example() {
	ctx := context.Background()
	key, _ := ramp.TextKey("key from the console")
	signer, _ := ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef")
	game := &purse{gold: 1000}
	game.fails = errors.New("the database is unreachable")
	handler := ramp.Must(ramp.NewHandler(ramp.HandlerConfig{Players: game, Store: &ramp.MemoryStore{Apply: game.Apply},
		Terms: anyTerms, Key: key, Signer: signer, Logger: slog.New(slog.DiscardHandler)}))

	service := ramp.Must(ramptest.New(ramptest.Config{PerOrder: true, Key: key, Validator: signer.Address(),
		Handler: handler}))
	defer service.Close()
	client := ramp.Must(ramp.NewClient(ramp.ClientConfig{URL: service.URL(), Key: key, HTTPClient: service.Client()}))
	started, err := client.Initialize(ctx, request())
	if err != nil {
		log.Fatal(err)
	}

	session := ramp.Session{ID: "session-1", Token: ramp.NewAccessToken("token-1")}
	_, err = service.Mint(ctx, started.UUID, session, ramp.NewAmount(10), ramptest.TransactionFails())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("gold after validate:", game.gold)
	for _, d := range service.Advance(time.Hour) {
		fmt.Printf("attempt %d: HTTP %d\n", d.Attempt, d.Status)
	}
	fmt.Println("gold in the end:", game.gold)
	// In a test, ramptest.Start(t, config) makes the service, closes it, and fails the test for what this returns.
	fmt.Println("wrong:", service.Check())
	// Output:
	// gold after validate: 900
	// attempt 1: HTTP 500
	// attempt 2: HTTP 200
	// gold in the end: 1000
	// wrong: <nil>
}

// purse is a game whose only player has gold.
type purse struct {
	gold  int64
	fails error // of the first result
}

func (*purse) Authenticate(_ context.Context, s ramp.Session) error {
	if s.ID != "session-1" || s.Token.Reveal() != "token-1" { // both halves
		return ramp.Reject("INVALID_USER")
	}
	return nil
}

func (p *purse) Assets(context.Context, ramp.Session) (*ramp.Player, error) {
	return &ramp.Player{PlayerID: "alice",
		Assets: []ramp.Asset{{ID: "item_gold", Balance: ramp.NewAmount(p.gold)}}}, nil
}

// Apply moves the gold of a step, for a store.
func (p *purse) Apply(_ context.Context, step ramp.Step) error {
	if step.Order.State != ramp.OrderAccepted && p.fails != nil {
		defer func() { p.fails = nil }()
		return p.fails
	}
	for _, asset := range step.Effect.Assets { // one
		delta, err := step.Effect.Delta(asset).Int64()
		if err != nil || p.gold+delta < 0 {
			return ramp.Reject("INVALID_BALANCE")
		}
		p.gold += delta
	}
	return nil
}

// Faults can be combined: here the result is a minute late, and the game's first two
// answers to it are lost.
func ExampleService_Advance() {
	service, mint := exampleService()
	defer service.Close()
	mint(ramptest.LostAnswer(ramptest.OnResult), ramptest.LostAnswer(ramptest.OnResult),
		ramptest.ResultLate(time.Minute))
	begun := service.Now()
	for _, d := range service.Advance(time.Hour) {
		fmt.Printf("%v: attempt %d, %v\n", d.Time.Sub(begun), d.Attempt, d.Err)
	}
	// Output:
	// 1m1s: attempt 1, ramptest: the answer was lost on purpose
	// 6m1s: attempt 2, ramptest: the answer was lost on purpose
	// 11m1s: attempt 3, <nil>
}

func ExampleService_Resend() {
	service, mint := exampleService()
	defer service.Close()
	order := mint()
	fmt.Println(service.Resend(context.Background(), order))
	service.Advance(time.Minute)
	fmt.Println(service.State(order))
	fmt.Println(service.Resend(context.Background(), order))
	// Output:
	// ramptest: the transaction is in no block yet: call Service.Advance
	// confirmed
	// <nil>
}

func ExampleService_Events() {
	service, mint := exampleService()
	defer service.Close()
	mint(ramptest.TransactionFails(), ramptest.LostAnswer(ramptest.OnResult))
	service.Advance(time.Hour)
	for _, e := range service.Events() {
		if !e.Routine() {
			fmt.Println(e.Kind, e.Outcome)
		}
	}
	// Output:
	// initialize OK
	// validate success
	// books took 100 item_gold
	// chain testnet transaction submitted
	// chain testnet transaction failed in block 1
	// result success, but the answer was lost on purpose
	// books gave back 100 item_gold
	// result success
	// books nothing moved
}

// A server that asks the chain needs the address of the chain first.
func ExampleService_SetHandler() {
	ctx := context.Background()
	key, _ := ramp.TextKey("key from the console")
	signer, _ := ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef")
	service := ramp.Must(ramptest.New(ramptest.Config{PerOrder: true, Key: key, Validator: signer.Address()}))
	defer service.Close()
	session := ramp.Session{ID: "session-1", Token: ramp.NewAccessToken("token-1")}
	_, err := service.Assets(ctx, session)
	fmt.Println(err)

	chain, _ := ramp.NewRPC(ramp.RPCConfig{URL: service.RPCURL(ramp.Testnet), ChainID: 7002,
		HTTPClient: service.Client()})
	game := &purse{gold: 1000}
	handler := ramp.Must(ramp.NewHandler(ramp.HandlerConfig{Players: game, Store: &ramp.MemoryStore{Apply: game.Apply},
		Terms: anyTerms, Key: key, Signer: signer, Confirm: rampproof.Confirmed(chain, 1)}))
	service.SetHandler(handler)
	player, _ := service.Assets(ctx, session)
	fmt.Println(player.Assets[0].ID, player.Assets[0].Balance)
	// Output:
	// ramptest: the game's server is not set: set Config.Game or Config.Handler, or call Service.SetHandler
	// item_gold 1000
}

// exampleService returns a service with a correct game, and a function that mints.
func exampleService() (*ramptest.Service, func(...ramptest.Fault) *ramptest.PlacedOrder) {
	ctx := context.Background()
	key, signer := ramp.Must(ramp.TextKey(keyText)), ramp.Must(ramp.NewKeySigner(validatorKey))
	game := &purse{gold: 1000}
	handler := ramp.Must(ramp.NewHandler(ramp.HandlerConfig{Players: game, Store: &ramp.MemoryStore{Apply: game.Apply},
		Terms: anyTerms, Key: key, Signer: signer, Logger: slog.New(slog.DiscardHandler)}))
	service := ramp.Must(ramptest.New(ramptest.Config{PerOrder: true, Key: key, Validator: signer.Address(),
		Handler: handler}))
	client := ramp.Must(ramp.NewClient(ramp.ClientConfig{URL: service.URL(), Key: key,
		HTTPClient: service.Client()}))
	return service, func(faults ...ramptest.Fault) *ramptest.PlacedOrder {
		started := ramp.Must(client.Initialize(ctx, request()))
		return ramp.Must(service.Mint(ctx, started.UUID, session1, ramp.NewAmount(10), faults...))
	}
}
