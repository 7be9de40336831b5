package game

import (
	"context"
	"database/sql"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampsql"
)

// Server is the game with what it needs to trade.
type Server struct {
	*Game
	Handler  *ramp.Handler // of the service's three calls
	client   *ramp.Client
	frontend string // URL of the service's pages
}

// New wires the game to the service. It panics if a setting is wrong.
func New(db *sql.DB, key ramp.HMACKey, signer *ramp.Signer, api, frontend string) *Server {
	game := &Game{db}
	terms := ramp.Must(ramp.NewTerms(ramp.TermsConfig{
		ProjectID: "project-1", Network: ramp.Testnet, Products: Products}))
	store := ramp.Must(rampsql.New(rampsql.Config{DB: db, Dialect: rampsql.SQLite, Apply: game.Apply,
		Projects: []string{"project-1"}, Network: ramp.Testnet}))
	return &Server{
		Game: game,
		Handler: ramp.Must(ramp.NewHandler(ramp.HandlerConfig{
			Players: game, Store: store, Terms: terms, Key: key, Signer: signer, Logger: slog.Default()})),
		client: ramp.Must(ramp.NewClient(ramp.ClientConfig{
			URL: api, Key: key, Terms: terms, Logger: slog.Default()})),
		frontend: frontend,
	}
}

// Exchange starts an order for a product, and returns the page for the player's webview and HTTP 200, or
// no page and another status. The page contains the access token: do not log it.
func (s *Server) Exchange(ctx context.Context, session ramp.Session, product string) (page string, code int) {
	if err := s.Authenticate(ctx, session); err != nil {
		return "", http.StatusUnauthorized
	}
	started, err := s.client.Initialize(ctx, ramp.InitializeRequest{Product: product})
	if err != nil {
		return "", http.StatusBadGateway // the client has logged it
	}
	page, err = started.ExchangeURL(s.frontend, session)
	if err != nil {
		return "", http.StatusInternalServerError
	}
	return page, http.StatusOK
}

// Main reads the settings from the environment, and lets a framework serve the game on port 8080 until the
// program is told to stop.
func Main(serve func(context.Context, *Server, net.Listener) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The interface does not say how the key is encoded. If the service answers
	// "invalid mac", use ramp.Base64URLKey.
	key := ramp.Must(ramp.TextKey(os.Getenv("RAMP_HMAC_KEY")))
	signer := ramp.Must(ramp.NewKeySigner(os.Getenv("RAMP_VALIDATOR_KEY")))
	slog.Info("register this address in the service console", "validator", signer.Address())
	db := ramp.Must(Open(ctx, "game.db"))
	s := New(db, key, signer, os.Getenv("RAMP_API_URL"), os.Getenv("RAMP_FRONTEND_URL"))
	err := s.Handler.Check(ctx) // or it does not start
	if err == nil {
		err = serve(ctx, s, ramp.Must(net.Listen("tcp", "127.0.0.1:8080")))
	}
	if err = errors.Join(err, db.Close()); err != nil {
		log.Fatal(err)
	}
}

// ServeHTTP serves routes until ctx is done, for the frameworks that use net/http.
func ServeHTTP(ctx context.Context, routes http.Handler, listener net.Listener) error {
	server := &http.Server{
		Handler:           routes,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      30 * time.Second,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	// Let the calls in progress finish: each may be moving a player's assets.
	ending, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return server.Shutdown(ending)
}
