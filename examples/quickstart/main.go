// Quickstart is a complete integration in one file: a game that sells gold and a
// sword, its server, and an emulated token ramp, connected over HTTP. It mints, mints
// again with a transaction that fails, and burns, and it delivers each result three
// times. It exits with status 1 if a balance is wrong.
package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// products are what the game offers. A token of gold costs 100 gold, with a fee of 1%,
// and is worth 80. A token of swords is one sword.
var products = []ramp.Product{
	{
		Name: "gold", Token: "0x00000000000000000000000000000000000070c3", MintFeeBps: 100,
		Materials: []ramp.Item{{ID: "item_gold", Amount: ramp.NewAmount(100),
			IconURL: "https://example.com/gold.png"}},
		Outputs: []ramp.Item{{ID: "item_gold", Amount: ramp.NewAmount(80),
			IconURL: "https://example.com/gold.png"}},
	},
	{
		Name: "sword", Token: "0x0000000000000000000000000000000000005b0d",
		Materials: []ramp.Item{{ID: "item_sword", Amount: ramp.NewAmount(1),
			IconURL: "https://example.com/sword.png", IsNonFungible: true}},
		Outputs: []ramp.Item{{ID: "item_sword", Amount: ramp.NewAmount(1),
			IconURL: "https://example.com/sword.png", IsNonFungible: true}},
	},
}

// Game authenticates players, lists their assets and moves them. It keeps everything in
// memory. A real game keeps balances and orders in one database. examples/gameserver
// tells swords apart.
type Game struct {
	session ramp.Session

	mu     sync.Mutex
	gold   int64
	swords int64
}

// Authenticate checks that the game issued the token to this session.
func (g *Game) Authenticate(_ context.Context, claimed ramp.Session) error {
	if claimed.ID != g.session.ID || !claimed.Token.Equal(g.session.Token) {
		return ramp.Reject("INVALID_USER")
	}
	return nil
}

// Assets lists what the player owns.
func (g *Game) Assets(context.Context, ramp.Session) (*ramp.Player, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return &ramp.Player{Assets: []ramp.Asset{
		{ID: "item_gold", Balance: ramp.NewAmount(g.gold)},
		{ID: "item_sword", Balance: ramp.NewAmount(g.swords)},
	}}, nil
}

// Apply moves all assets of a step or none. It is called once for each step of an
// order. Every order is for a product at its price, because the handler checks that.
func (g *Game) Apply(_ context.Context, step ramp.Step) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	gold, swords := g.gold, g.swords
	for _, asset := range step.Effect.Assets {
		delta, err := step.Effect.Delta(asset).Int64()
		if err != nil {
			return err
		}
		if asset.ID == "item_sword" {
			swords += delta
		} else {
			gold += delta
		}
	}
	if step.Effect.Kind == ramp.Take && (gold < 0 || swords < 0) { // only a mint may be refused
		return ramp.Reject("INVALID_BALANCE")
	}
	g.gold, g.swords = gold, swords
	return nil
}

func main() {
	ctx := context.Background()

	// The console gives you the HMAC key. You register the signer's address there.
	key := ramp.Must(ramp.TextKey(rand.Text()))
	signer := ramp.Must(ramp.NewKeySigner(
		"0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"))

	// Your server: the handler answers the service's three calls, and the store records
	// orders and calls Apply, each effect exactly once.
	session := ramp.Session{ID: "character-7", Token: ramp.NewAccessToken(rand.Text())}
	game := &Game{session: session, gold: 1000, swords: 1}
	store := &ramp.MemoryStore{Apply: game.Apply}
	terms := ramp.Must(ramp.NewTerms(ramp.TermsConfig{ProjectID: "quickstart", Network: ramp.Testnet,
		Products: products}))
	handler := ramp.Must(ramp.NewHandler(ramp.HandlerConfig{Players: game, Store: store, Terms: terms,
		Key: key, Signer: signer}))
	server := httptest.NewServer(handler)

	// The emulated token ramp. In production, use the URL of the real service.
	service := ramp.Must(ramptest.New(ramptest.Config{
		Key: key, Validator: signer.Address(), Game: server.URL, ProjectID: "quickstart"}))
	client := ramp.Must(ramp.NewClient(ramp.ClientConfig{URL: service.URL(), Key: key, Terms: terms}))

	table := "step                     before   validated  result   again    again\n"
	for _, step := range []struct {
		name    string
		product string
		order   func(context.Context, uuid.UUID, ramp.Session, ramp.Amount,
			...ramptest.Fault) (*ramptest.Order, error)
		outcome   ramptest.Outcome
		before    string // gold and swords
		validated string // after the game approved the order
		finished  string // after each of three deliveries of the result
	}{
		{"mint", "gold", service.Mint, ramptest.Succeeded, "1000/1", "900/1", "900/1"},
		{"mint, transaction fails", "gold", service.Mint, ramptest.Failed, "900/1", "800/1", "900/1"},
		{"burn", "gold", service.Burn, ramptest.Succeeded, "900/1", "900/1", "980/1"},
		{"mint a sword", "sword", service.Mint, ramptest.Succeeded, "980/1", "980/0", "980/0"},
		{"burn it", "sword", service.Burn, ramptest.Succeeded, "980/0", "980/0", "980/1"},
	} {
		table += fmt.Sprintf("%-24s %-8s", step.name, owns(ctx, service, session, step.before))

		started := ramp.Must(client.Initialize(ctx, ramp.InitializeRequest{Product: step.product}))

		// The player's webview opens this page. Never log its URL, which contains the
		// access token.
		page := ramp.Must(http.Get(ramp.Must(started.ExchangeURL(service.URL(), session))))
		if _ = page.Body.Close(); page.StatusCode != http.StatusOK {
			log.Fatal("the page of the order: ", page.Status)
		}

		order := ramp.Must(step.order(ctx, started.UUID, session, ramp.NewAmount(1)))
		table += fmt.Sprintf(" %-10s", owns(ctx, service, session, step.validated))
		for range 3 { // the service delivers at least once
			if err := service.Deliver(ctx, order, step.outcome); err != nil {
				log.Fatal(err)
			}
			table += fmt.Sprintf(" %-8s", owns(ctx, service, session, step.finished))
		}
		table += "\n"
	}
	fmt.Print("The player's gold and swords, as the service reads them:\n\n", table,
		"\nTo click through orders in a browser: go -C examples/gameserver run .\n")
}

// owns asks the game for the player's assets, as the service does, and exits unless
// they are want.
func owns(ctx context.Context, service *ramptest.Service, session ramp.Session, want string) string {
	player := ramp.Must(service.Assets(ctx, session))
	got := player.Assets[0].Balance.String() + "/" + player.Assets[1].Balance.String()
	if got != want {
		log.Fatalf("the player owns %s instead of %s", got, want)
	}
	return got
}
