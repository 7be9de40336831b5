// Nethttp shows the three endpoints in a net/http server with custom paths,
// timeouts and a graceful shutdown.
//
//	RAMP_HMAC_KEY=… RAMP_VALIDATOR_KEY=0x… go run ./examples/nethttp
package main

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	ramp "github.com/token-ramp/ramp-go"
)

// Game is where your code goes. This one has a single player, who owns a
// thousand gold and may not trade.
type Game struct {
	session string
	token   [sha256.Size]byte // hashed, so that a leaked store does not reveal tokens
}

// Authenticate compares the hash of the token with the hash stored at login.
func (g *Game) Authenticate(_ context.Context, s ramp.Session) error {
	sum := sha256.Sum256([]byte(s.Token.Reveal()))
	if s.ID != g.session || subtle.ConstantTimeCompare(sum[:], g.token[:]) != 1 {
		return ramp.Reject("INVALID_USER")
	}
	return nil
}

// Assets returns the player's balances. The IDs are the ones in the service console.
func (g *Game) Assets(context.Context, ramp.Session) (*ramp.Player, error) {
	return &ramp.Player{Assets: []ramp.Asset{{ID: "item_gold", Balance: ramp.NewAmount(1000)}}}, nil
}

// Validate checks your policy and takes the assets of a mint, durably and once for
// each r.UUID. Return nil only after the change is committed. Check the token
// contract and the rate first, as in examples/quickstart, because players must not
// choose them. This game declines every order.
func (g *Game) Validate(context.Context, ramp.Session, *ramp.ValidateRequest) error {
	return ramp.Reject("INVALID_BALANCE")
}

// Result gives back the assets of a failed mint or grants the assets of a burn, once
// for each r.UUID. If it returns an error, the service delivers the result again.
func (g *Game) Result(context.Context, ramp.Session, *ramp.Result) error {
	return errors.New("no order was ever approved")
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		slog.Error("stopped", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	// The interface does not say how the key is encoded. If the service answers
	// "invalid mac", use ramp.Base64URLKey.
	key, err := ramp.TextKey(os.Getenv("RAMP_HMAC_KEY"))
	if err != nil {
		return err
	}
	signer, err := ramp.NewKeySigner(os.Getenv("RAMP_VALIDATOR_KEY"))
	if err != nil {
		return err
	}
	slog.Info("register this address in the service console", "validator", signer.Address())

	game := &Game{session: "session-1", token: sha256.Sum256([]byte("token-1"))}
	handler, err := ramp.NewHandler(ramp.HandlerConfig{Terms: ramp.AnyTerms, Game: game, Key: key, Signer: signer, Logger: slog.Default()})
	if err != nil {
		return err
	}

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

// routes mounts the endpoints on the paths that are registered in the service
// console.
func routes(handler *ramp.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/ramp/assets", handler.Assets)
	mux.HandleFunc("/ramp/validate", handler.Validate)
	mux.HandleFunc("/ramp/result", handler.Result)
	return mux
}
