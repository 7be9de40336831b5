// Quickstart is a complete integration in one file: a game with two assets, its
// server, and an emulated token ramp, connected over HTTP. It mints, mints again
// with a transaction that fails, and burns, and it delivers each result three times.
// It exits with status 1 if a balance is wrong.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"maps"
	"net/http/httptest"
	"sync"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// terms are the game's token and the assets that one token is worth. A mint takes the
// materials and costs a fee of 1%. A burn grants the outputs.
var terms = ramp.InitializeIntent{
	Network: ramp.Testnet, ProjectID: "quickstart", Token: "0x00000000000000000000000000000000000070c3", MintFeeBps: 100,
	Materials: []ramp.Item{
		{ID: "item_gold", Amount: ramp.NewAmount(100), IconURL: "https://example.com/gold.png"},
		{ID: "item_gem", Amount: ramp.NewAmount(1), IconURL: "https://example.com/gem.png"},
	},
	Outputs: []ramp.Item{{ID: "item_gold", Amount: ramp.NewAmount(50), IconURL: "https://example.com/gold.png"}},
}

// Studio is the game: it authenticates players, lists their assets and moves them.
// It keeps everything in memory. A real game keeps balances and orders in one
// database.
type Studio struct {
	session ramp.Session

	mu       sync.Mutex
	balances map[string]int64
}

// Authenticate checks that the game issued the token to this session.
func (s *Studio) Authenticate(_ context.Context, claimed ramp.Session) error {
	if claimed.ID != s.session.ID || !claimed.Token.Equal(s.session.Token) {
		return ramp.Reject("INVALID_USER")
	}
	return nil
}

// Assets lists what the player owns.
func (s *Studio) Assets(context.Context, ramp.Session) (*ramp.Player, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &ramp.Player{Assets: []ramp.Asset{
		{ID: "item_gold", Balance: ramp.NewAmount(s.balances["item_gold"])},
		{ID: "item_gem", Balance: ramp.NewAmount(s.balances["item_gem"])},
	}}, nil
}

// Apply moves all assets of a step or none. It is called once for each step of an
// order. When an order is accepted, before it is signed, Apply declines one that does
// not match the terms.
func (s *Studio) Apply(_ context.Context, step ramp.Step) error {
	if step.Order.State == ramp.OrderAccepted {
		if err := terms.CheckTerms(step.Order.Intent); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	after := maps.Clone(s.balances)
	for _, asset := range step.Effect.Assets {
		delta, err := step.Effect.Delta(asset).Int64()
		if after[asset.ID] += delta; err != nil || after[asset.ID] < 0 {
			return ramp.Reject("INVALID_BALANCE")
		}
	}
	s.balances = after
	return nil
}

func main() {
	ctx := context.Background()

	// The console gives you the HMAC key. You register the signer's address there.
	key := must(ramp.TextKey(rand.Text()))
	signer := must(ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"))

	// Your server: the handler answers the service's three calls, and the store records
	// orders and calls Apply, each effect exactly once.
	session := ramp.Session{ID: "character-7", Token: ramp.NewAccessToken(rand.Text())}
	studio := &Studio{session: session, balances: map[string]int64{"item_gold": 1000, "item_gem": 5}}
	store := must(ramp.NewMemoryStore(ramp.MemoryStoreConfig{Apply: studio.Apply}))
	handler := must(ramp.NewHandler(ramp.HandlerConfig{Players: studio, Store: store, Key: key, Signer: signer, ProjectID: "quickstart"}))
	server := httptest.NewServer(handler)

	// The emulated token ramp. In production, use the URL of the real service.
	service := must(ramptest.New(ramptest.Config{
		Key: key, Validator: signer.Address(), Game: server.URL, ProjectID: "quickstart", PerToken: true}))
	client := must(ramp.NewClient(ramp.ClientConfig{URL: service.URL(), Key: key}))

	table := "step                     before   validated  result   again    again\n"
	for _, step := range []struct {
		name      string
		order     func(context.Context, uuid.UUID, ramp.Session, ramp.Amount, ...ramptest.Fault) (*ramptest.Order, error)
		outcome   ramptest.Outcome
		before    string // gold and gems
		validated string // after the game approved the order
		finished  string // after each of three deliveries of the result
	}{
		{"mint", service.Mint, ramptest.Succeeded, "1000/5", "900/4", "900/4"},
		{"mint, transaction fails", service.Mint, ramptest.Failed, "900/4", "800/3", "900/4"},
		{"burn", service.Burn, ramptest.Succeeded, "900/4", "900/4", "950/4"},
	} {
		table += fmt.Sprintf("%-24s %-8s", step.name, owns(ctx, service, session, step.before))

		started := must(client.Initialize(ctx, ramp.InitializeRequest{Intent: terms}))

		// The player's webview opens this page. The URL contains the access token, so
		// never print or log it in a real game.
		fmt.Println(step.name+":", must(ramp.ExchangeURL(service.URL(), ramp.ExchangeParams{
			UUID: started.UUID, AccessToken: session.Token, SessionID: session.ID, Network: ramp.Testnet})))

		order := must(step.order(ctx, started.UUID, session, ramp.NewAmount(1)))
		table += fmt.Sprintf(" %-10s", owns(ctx, service, session, step.validated))
		for range 3 { // the service delivers at least once
			if err := service.Deliver(ctx, order, step.outcome); err != nil {
				log.Fatal(err)
			}
			table += fmt.Sprintf(" %-8s", owns(ctx, service, session, step.finished))
		}
		table += "\n"
	}
	fmt.Print("\nThe player's gold and gems, as the service reads them:\n\n", table)
}

// owns asks the game for the player's assets, as the service does, and exits unless
// they are want.
func owns(ctx context.Context, service *ramptest.Service, session ramp.Session, want string) string {
	player := must(service.Assets(ctx, session))
	got := player.Assets[0].Balance.String() + "/" + player.Assets[1].Balance.String()
	if got != want {
		log.Fatalf("the player owns %s instead of %s", got, want)
	}
	return got
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}
