// First is a whole game server in one file. Its only player, alice, keeps gold and gems in
// memory. The README says how to play with it.
package main

import (
	"context"
	"log"
	"maps"
	"net/http"
	"os"
	"sync"

	ramp "github.com/token-ramp/ramp-go"
)

// game is the part that a studio writes.
type game struct {
	alice ramp.Session

	mu    sync.Mutex
	items map[string]int64 // what alice owns
}

// Authenticate checks that the token belongs to the session.
func (g *game) Authenticate(_ context.Context, s ramp.Session) error {
	if s.ID != g.alice.ID || !s.Token.Equal(g.alice.Token) {
		return ramp.Reject("INVALID_USER")
	}
	return nil
}

// Assets lists what the player owns.
func (g *game) Assets(context.Context, ramp.Session) (*ramp.Player, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	player := ramp.Player{PlayerID: g.alice.ID}
	for id, n := range g.items {
		player.Assets = append(player.Assets, ramp.Asset{ID: id, Balance: ramp.NewAmount(n)})
	}
	return &player, nil
}

// Apply moves the items of one step of an order: all of them or, after an error, none.
func (g *game) Apply(_ context.Context, step ramp.Step) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	after := maps.Clone(g.items)
	for _, asset := range step.Effect.Assets {
		delta, err := step.Effect.Delta(asset).Int64()
		if err != nil {
			return ramp.Reject("INVALID_AMOUNT") // an item cannot be divided
		}
		after[asset.ID] += delta
		if step.Effect.Kind == ramp.Take && after[asset.ID] < 0 { // only a mint may be refused
			return ramp.Reject("INVALID_BALANCE")
		}
	}
	g.items = after
	return nil
}

// products are what the game sells: a token costs 100 gold and a gem, and is worth as much.
func products() []ramp.Product {
	item := func(id string, amount int64) ramp.Item {
		icon := "https://example.com/" + id + ".png"
		return ramp.Item{ID: id, Amount: ramp.NewAmount(amount), IconURL: icon}
	}
	price := []ramp.Item{item("gold", 100), item("gem", 1)}
	return []ramp.Product{{
		Name:      "chest",
		Token:     "0x00000000000000000000000000000000000070c3",
		Materials: price, // what a mint costs
		Outputs:   price, // what a burn grants
	}}
}

// newGame returns the game with what alice owns.
func newGame() *game {
	return &game{
		alice: ramp.Session{ID: "alice", Token: ramp.NewAccessToken("secret")},
		items: map[string]int64{"gold": 1000, "gem": 10},
	}
}

// connect wires the game to the service: the handler answers the service's calls, and the client starts
// orders.
func (g *game) connect(url string, key ramp.HMACKey, signer *ramp.Signer) (*ramp.Handler, *ramp.Client) {
	terms := ramp.Must(ramp.NewTerms(ramp.TermsConfig{
		ProjectID: "project-1",
		Network:   ramp.Testnet,
		Products:  products(),
	}))
	handler := ramp.Must(ramp.NewHandler(ramp.HandlerConfig{
		Players: g,
		Store:   &ramp.MemoryStore{Apply: g.Apply},
		Terms:   terms,
		Key:     key,
		Signer:  signer,
	}))
	client := ramp.Must(ramp.NewClient(ramp.ClientConfig{
		URL:   url,
		Key:   key,
		Terms: terms,
	}))
	return handler, client
}

func main() {
	g := newGame()
	key := ramp.Must(ramp.TextKey(os.Getenv("RAMP_HMAC_KEY"))) // or Base64URLKey
	signer := ramp.Must(ramp.NewKeySigner(os.Getenv("RAMP_VALIDATOR_KEY")))
	handler, client := g.connect(os.Getenv("RAMP_API_URL"), key, signer)

	// The game's client would open the page in a webview. Its address holds the access token.
	play := func(w http.ResponseWriter, r *http.Request) {
		order, err := client.Initialize(r.Context(), ramp.InitializeRequest{Product: "chest"})
		if err != nil {
			http.Error(w, "the ramp is unavailable", http.StatusBadGateway) // the log says why
			return
		}
		page := ramp.Must(order.ExchangeURL(os.Getenv("RAMP_FRONTEND_URL"), g.alice))
		http.Redirect(w, r, page, http.StatusSeeOther)
	}
	log.Println("open http://127.0.0.1:8080/play")
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/play" {
				play(w, r)
				return
			}
			handler.ServeHTTP(w, r)
		})))
}
