// Nethttp shows the three endpoints in a net/http server with custom paths,
// timeouts and a graceful shutdown.
//
//	RAMP_HMAC_KEY=… RAMP_VALIDATOR_KEY=0x… go run ./examples/nethttp
package main

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	ramp "github.com/token-ramp/ramp-go"
)

// products are what the game sells: a token costs 100 gold, with a fee of 1%, and is
// worth 80.
var products = []ramp.Product{{
	Name: "gold", Token: "0x00000000000000000000000000000000000070c3", MintFeeBps: 100,
	Materials: []ramp.Item{{ID: "item_gold", Amount: ramp.NewAmount(100),
		IconURL: "https://example.com/gold.png"}},
	Outputs: []ramp.Item{{ID: "item_gold", Amount: ramp.NewAmount(80),
		IconURL: "https://example.com/gold.png"}},
}}

// Game is where your code goes. This one keeps everything in memory; the README has
// the same on a database.
type Game struct {
	mu     sync.Mutex
	hashes map[string][sha256.Size]byte // of the token of each session, so that a leak reveals no token
	gold   map[string]int64             // of each session
}

// NewGame returns a game with one player, who owns 1,000 gold.
func NewGame() *Game {
	return &Game{
		hashes: map[string][sha256.Size]byte{"session-1": sha256.Sum256([]byte("token-1"))},
		gold:   map[string]int64{"session-1": 1000},
	}
}

// Authenticate compares the hash of the token with the one that was stored at login.
func (g *Game) Authenticate(_ context.Context, s ramp.Session) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	hash, known := g.hashes[s.ID]
	claimed := sha256.Sum256([]byte(s.Token.Reveal()))
	if !known || subtle.ConstantTimeCompare(hash[:], claimed[:]) != 1 {
		return ramp.Reject("INVALID_USER")
	}
	return nil
}

// Assets returns the player's balances, under the IDs of the service console.
func (g *Game) Assets(_ context.Context, s ramp.Session) (*ramp.Player, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return &ramp.Player{Assets: []ramp.Asset{{ID: "item_gold", Balance: ramp.NewAmount(g.gold[s.ID])}}}, nil
}

// Apply moves the assets of a step. The store calls it once for each step of an order. A
// mint may be refused; a grant or a give-back never fails.
func (g *Game) Apply(_ context.Context, step ramp.Step) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, asset := range step.Effect.Assets { // one, because the only product has one item
		delta, err := step.Effect.Delta(asset).Int64()
		if err != nil {
			return err
		}
		gold := g.gold[step.Order.SessionID] + delta
		if step.Effect.Kind == ramp.Take && gold < 0 {
			return ramp.Reject("INVALID_BALANCE")
		}
		g.gold[step.Order.SessionID] = gold
	}
	return nil
}

// newHandler wires the game to the service's three calls.
func newHandler(game *Game, key ramp.HMACKey, signer *ramp.Signer) *ramp.Handler {
	terms := ramp.Must(ramp.NewTerms(ramp.TermsConfig{ProjectID: "project-1", Network: ramp.Testnet,
		Products: products}))
	store := &ramp.MemoryStore{Apply: game.Apply}
	return ramp.Must(ramp.NewHandler(ramp.HandlerConfig{
		Players: game, Store: store, Terms: terms, Key: key, Signer: signer, Logger: slog.Default()}))
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The interface does not say how the key is encoded. If the service answers
	// "invalid mac", use ramp.Base64URLKey.
	key := ramp.Must(ramp.TextKey(os.Getenv("RAMP_HMAC_KEY")))
	signer := ramp.Must(ramp.NewKeySigner(os.Getenv("RAMP_VALIDATOR_KEY")))
	slog.Info("register this address in the service console", "validator", signer.Address())
	if err := run(ctx, newHandler(NewGame(), key, signer)); err != nil {
		slog.Error("stopped", "error", err)
		os.Exit(1)
	}
}

// run serves until ctx is done.
func run(ctx context.Context, handler *ramp.Handler) error {
	server := &http.Server{
		Addr:              "127.0.0.1:8080",
		Handler:           routes(handler),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      30 * time.Second,
	}

	failed := make(chan error, 1)
	go func() { failed <- server.ListenAndServe() }()
	slog.Info("serving", "address", server.Addr)
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	// Let the calls in progress finish: each may be moving a player's assets.
	ending, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return server.Shutdown(ending)
}

// routes mounts the endpoints on the paths that are registered in the service console. What comes
// to another path there, or would be redirected, may be a result whose address is misspelled: the
// handler answers it with HTTP 500, so that it comes again, and every other call with 404.
func routes(handler *ramp.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/ramp/assets", handler.Assets)
	mux.HandleFunc("/ramp/validate", handler.Validate)
	mux.HandleFunc("/ramp/result", handler.Result)
	mux.Handle("/", handler)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "//") { // which mux would redirect
			handler.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}
