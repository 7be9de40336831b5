package control_test

import (
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/ramptest/control"
)

// players has one player, whose tokens are all right.
type players struct{}

func (players) Authenticate(context.Context, ramp.Session) error { return nil }
func (players) Assets(context.Context, ramp.Session) (*ramp.Player, error) {
	return &ramp.Player{Assets: []ramp.Asset{{ID: "item_gold", Balance: ramp.NewAmount(1000)}}}, nil
}

// A program tells a running emulator to play a player who mints, loses the game's first
// confirmation, and lets half a day pass.
func ExampleClient() {
	ctx := context.Background()
	game, emulator := start()
	defer game.Close()
	defer emulator.Close()

	client := &control.Client{URL: emulator.URL()} // such as http://127.0.0.1:8090
	order, err := client.Start(ctx, control.StartRequest{
		Do: "mint", Amount: "2", Faults: []string{"lost-answer=result"},
		SessionID: "session-1", AccessToken: "token",
		Terms: &control.Terms{Network: ramp.Testnet, ProjectID: "project-1",
			Token:     "0x00000000000000000000000000000000000070c3",
			Materials: []control.Item{{ID: "item_gold", Amount: "100"}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	passed, err := client.Advance(ctx, control.AdvanceRequest{By: "12h"})
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range passed.Deliveries {
		fmt.Println(d.UUID == order.UUID, d.Attempt, d.Status, d.Lost,
			d.Time.Sub(passed.Deliveries[0].Time).Round(time.Minute))
	}
	// Output:
	// true 1 0 true 0s
	// true 2 200 false 5m0s
}

// start starts a game's server and the emulator, as two commands would.
func start() (*httptest.Server, *ramptest.Service) {
	key := ramp.Must(ramp.TextKey("the key of the console"))
	signer := ramp.Must(ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"))
	terms := ramp.Must(ramp.NewTerms(ramp.TermsConfig{Any: true}))
	store := &ramp.MemoryStore{Apply: func(context.Context, ramp.Step) error { return nil }}
	handler := ramp.Must(ramp.NewHandler(ramp.HandlerConfig{Players: players{}, Store: store, Terms: terms, Key: key,
		Signer: signer}))
	game := httptest.NewServer(handler)
	emulator := ramp.Must(ramptest.New(ramptest.Config{Key: key, Validator: signer.Address(), Game: game.URL,
		Audit: ramptest.AuditOff}))
	return game, emulator
}
