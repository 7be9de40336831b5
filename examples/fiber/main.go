// Fiber is a game server on Fiber that is wired as in production: the service's three calls,
// a route of the game that starts an order, a database, and a server that stops gracefully.
//
// The service repeats a result only after HTTP 500. By default, Fiber answers 431, 413 and 404
// to calls that reach no route, and such a result never comes again. settings and app change that.
//
//	RAMP_HMAC_KEY=… RAMP_VALIDATOR_KEY=0x… RAMP_API_URL=… RAMP_FRONTEND_URL=… go run .
package main

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/recover"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampsql"
	_ "modernc.org/sqlite"
)

// products are what the game sells: a token costs 100 gold, and is worth 100.
var products = []ramp.Product{{
	Name: "gold", Token: "0x00000000000000000000000000000000000070c3",
	Materials: gold, Outputs: gold,
}}

var gold = []ramp.Item{
	{ID: "item_gold", Amount: ramp.NewAmount(100), IconURL: "https://example.com/gold.png"},
}

const table = `CREATE TABLE IF NOT EXISTS characters (
	session    TEXT    PRIMARY KEY,
	token_hash BLOB    NOT NULL DEFAULT '', -- of a character that is gone, which no token has
	gold       INTEGER NOT NULL CHECK (typeof(gold) = 'integer') -- SQLite would store a float beyond 2^63
)`

// Game authenticates players, lists what they own and moves it. A session is a character.
type Game struct{ db *sql.DB }

// Authenticate compares the hash of the token with the one that was stored at login.
func (g *Game) Authenticate(ctx context.Context, s ramp.Session) error {
	hash := sha256.Sum256([]byte(s.Token.Reveal()))
	var known bool
	err := g.db.QueryRowContext(ctx,
		"SELECT EXISTS (SELECT 1 FROM characters WHERE session = $1 AND token_hash = $2)",
		s.ID, hash[:]).Scan(&known)
	if err == nil && !known {
		err = ramp.Reject("INVALID_USER")
	}
	return err
}

// Assets returns the player's balances, under the IDs of the service console.
func (g *Game) Assets(ctx context.Context, s ramp.Session) (*ramp.Player, error) {
	var gold int64
	err := g.db.QueryRowContext(ctx, "SELECT gold FROM characters WHERE session = $1", s.ID).Scan(&gold)
	return &ramp.Player{Assets: []ramp.Asset{{ID: "item_gold", Balance: ramp.NewAmount(gold)}}}, err
}

// Apply moves the assets of a step in the transaction that records the order. A mint may be
// refused. A grant or a give-back never fails: it reduces a debt, and creates a missing row.
func (g *Game) Apply(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
	for _, asset := range step.Effect.Assets { // one, because the only product has one item
		delta, err := step.Effect.Delta(asset).Int64()
		if err != nil {
			return ramp.Reject("INVALID_AMOUNT") // gold cannot be divided
		}
		change := `INSERT INTO characters (gold, session) VALUES ($1, $2)
			ON CONFLICT (session) DO UPDATE SET gold = characters.gold + excluded.gold`
		if step.Effect.Kind == ramp.Take {
			change = "UPDATE characters SET gold = gold + $1 WHERE session = $2 AND gold + $1 >= 0"
		}
		done, err := tx.ExecContext(ctx, change, delta, step.Order.SessionID)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil {
			return err
		} else if n == 0 { // only a mint: too little gold, or no such character
			return ramp.Reject("INVALID_BALANCE")
		}
	}
	return nil
}

// server is the game with what it needs to trade.
type server struct {
	game     *Game
	handler  *ramp.Handler
	client   *ramp.Client
	frontend string // URL of the service's pages
}

// newServer wires the game to the service. It panics if a setting is wrong.
func newServer(db *sql.DB, key ramp.HMACKey, signer *ramp.Signer, api, frontend string) *server {
	game := &Game{db}
	terms := ramp.Must(ramp.NewTerms(ramp.TermsConfig{
		ProjectID: "project-1", Network: ramp.Testnet, Products: products}))
	store := ramp.Must(rampsql.New(rampsql.Config{DB: db, Dialect: rampsql.SQLite, Apply: game.Apply}))
	return &server{
		game: game,
		handler: ramp.Must(ramp.NewHandler(ramp.HandlerConfig{
			Players: game, Store: store, Terms: terms, Key: key, Signer: signer, Logger: slog.Default()})),
		client: ramp.Must(ramp.NewClient(ramp.ClientConfig{
			URL: api, Key: key, Terms: terms, Logger: slog.Default()})),
		frontend: frontend,
	}
}

// settings are those with which no result is lost.
func settings() fiber.Config {
	return fiber.Config{
		// All headers of a call must fit. The default of 4 KiB is too little for a long access token.
		ReadBufferSize: 32 << 10,
		// The handler accepts 1 MiB and logs what is larger. This bounds the memory of a connection.
		BodyLimit:    2 << 20,
		ErrorHandler: unserved,
		ReadTimeout:  15 * time.Second,
		WriteTimeout: 30 * time.Second,
		IdleTimeout:  20 * time.Second, // a shutdown waits for idle connections
	}
}

// unserved answers 500 to what reaches no route, such as headers or a body above a limit: it may be a
// result. The routes of the game therefore write their own 4xx, and return no error. The error is not
// logged, because it can quote the headers of the call, which hold an access token.
func unserved(c fiber.Ctx, err error) error {
	var failed *fiber.Error
	if errors.As(err, &failed) {
		slog.Warn("call not served", "usually", failed.Code)
	} else {
		slog.Error("call failed", "error", err)
	}
	return c.SendStatus(http.StatusInternalServerError)
}

// app serves the routes of the game. The handler gets every other call: what comes to a wrong path may
// be a result whose address is misspelled, which the handler answers with 500.
func (s *server) app(config fiber.Config) *fiber.App {
	app := fiber.New(config)
	app.Post("/exchange/:product", recover.New(), s.login, s.exchange)
	app.All("/*", s.service) // Use would also pass it what Fiber could not read
	return app
}

// service passes a call to the handler. Its deadline is shorter than WriteTimeout, so that the handler
// still answers 500. BodyRaw is what the HMAC covers; Body would unpack it, for anybody and without a limit.
func (s *server) service(c fiber.Ctx) error {
	ctx, cancel := context.WithTimeout(c.Context(), 20*time.Second)
	defer cancel()
	reply := s.handler.Answer(ctx, c.Method(), c.Path(), c.GetReqHeaders(), c.BodyRaw())
	for name := range reply.Header() {
		c.Set(name, reply.Header().Get(name))
	}
	return c.Status(reply.Status).Send(reply.Body)
}

// login is the middleware of the game: it knows the player by session and token. Fiber reuses the memory
// of its texts for the next call, so they are copied.
func (s *server) login(c fiber.Ctx) error {
	session := ramp.Session{
		ID:    strings.Clone(c.Get("X-Session")),
		Token: ramp.NewAccessToken(strings.Clone(c.Get("X-Token"))),
	}
	if err := s.game.Authenticate(c.Context(), session); err != nil {
		return c.SendStatus(http.StatusUnauthorized)
	}
	c.Locals("session", session)
	return c.Next()
}

// exchange starts an order for a product, and returns the page for the player's webview.
func (s *server) exchange(c fiber.Ctx) error {
	product := strings.Clone(c.Params("product"))
	started, err := s.client.Initialize(c.Context(), ramp.InitializeRequest{Product: product})
	if err != nil {
		return c.SendStatus(http.StatusBadGateway) // the client has logged it
	}
	page, err := started.ExchangeURL(s.frontend, c.Locals("session").(ramp.Session))
	if err != nil {
		return c.SendStatus(http.StatusInternalServerError)
	}
	return c.JSON(fiber.Map{"url": page}) // it contains the access token: do not log it
}

// open opens the database and creates its tables, which a real game does in its migrations.
func open(ctx context.Context, file string) (*sql.DB, error) {
	db, err := sql.Open("sqlite",
		"file:"+file+"?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(ctx, rampsql.SQLite.Schema()+";"+table)
	return db, err
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	key := ramp.Must(ramp.TextKey(os.Getenv("RAMP_HMAC_KEY")))
	signer := ramp.Must(ramp.NewKeySigner(os.Getenv("RAMP_VALIDATOR_KEY")))
	db := ramp.Must(open(ctx, "game.db"))
	s := newServer(db, key, signer, os.Getenv("RAMP_API_URL"), os.Getenv("RAMP_FRONTEND_URL"))
	err := s.handler.Check(ctx) // or it does not start
	if err == nil {
		err = run(ctx, s.app(settings()), ramp.Must(net.Listen("tcp", "127.0.0.1:8080")))
	}
	if err = errors.Join(err, db.Close()); err != nil {
		log.Fatal(err)
	}
}

// run serves until ctx is done.
func run(ctx context.Context, app *fiber.App, listener net.Listener) error {
	ended := make(chan error, 1)
	go func() { ended <- app.Listener(listener, fiber.ListenConfig{DisableStartupMessage: true}) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	// Let the calls in progress finish: each may be moving a player's assets.
	return errors.Join(app.ShutdownWithTimeout(30*time.Second), <-ended)
}
