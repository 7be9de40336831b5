// Gin is a game server on Gin that is wired as in production: the service's three calls,
// a route of the game that starts an order, a database, and a server that stops gracefully.
//
// The HMAC covers the raw bytes of a body. So the service's calls are in a group of their
// own: no middleware that binds a body, limits rates, demands a CSRF token or a login of the
// game may run there.
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
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/gin-gonic/gin"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampsql"
	_ "modernc.org/sqlite"
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
	terms := ramp.Must(ramp.NewTerms(ramp.TermsConfig{ProjectID: "project-1", Network: ramp.Testnet,
		Products: products}))
	store := ramp.Must(rampsql.New(rampsql.Config{DB: db, Dialect: rampsql.SQLite, Apply: game.Apply}))
	return &server{
		game: game,
		handler: ramp.Must(ramp.NewHandler(ramp.HandlerConfig{
			Players: game, Store: store, Terms: terms, Key: key, Signer: signer, Logger: slog.Default()})),
		client: ramp.Must(ramp.NewClient(ramp.ClientConfig{URL: api, Key: key, Terms: terms,
			Logger: slog.Default()})),
		frontend: frontend,
	}
}

// routes mounts the three calls on the paths that are registered in the service console,
// and the routes of the game.
func (s *server) routes() *gin.Engine {
	engine := gin.New()
	// What comes to another path may be a result whose address is misspelled: the handler answers it
	// with HTTP 500, so that it comes again, and every other call with 404.
	engine.RedirectTrailingSlash = false
	engine.NoRoute(gin.WrapH(s.handler))
	service := engine.Group("/ramp", deadline)
	service.GET("/assets", gin.WrapF(s.handler.Assets))
	service.POST("/validate", gin.WrapF(s.handler.Validate))
	service.POST("/result", gin.WrapF(s.handler.Result))

	players := engine.Group("/", gin.Recovery(), s.login)
	players.POST("/exchange/:product", s.exchange)
	return engine
}

// deadline ends the context of a call, so that the handler answers 500, which the service
// repeats. A middleware that answers 503 would end the deliveries of a result for good.
func deadline(c *gin.Context) {
	ctx, cancel := context.WithTimeout(c.Request.Context(), 20*time.Second)
	defer cancel()
	c.Request = c.Request.WithContext(ctx)
	c.Next()
}

// login is the middleware of the game: it knows the player by session and token.
func (s *server) login(c *gin.Context) {
	session := ramp.Session{ID: c.GetHeader("X-Session"), Token: ramp.NewAccessToken(c.GetHeader("X-Token"))}
	if err := s.game.Authenticate(c.Request.Context(), session); err != nil {
		c.AbortWithStatus(http.StatusUnauthorized)
		return
	}
	c.Set("session", session)
}

// exchange starts an order for a product, and returns the page for the player's webview.
func (s *server) exchange(c *gin.Context) {
	session := c.MustGet("session").(ramp.Session)
	started, err := s.client.Initialize(c.Request.Context(),
		ramp.InitializeRequest{Product: c.Param("product")})
	if err != nil {
		c.AbortWithStatus(http.StatusBadGateway) // the client has logged it
		return
	}
	page, err := started.ExchangeURL(s.frontend, session)
	if err != nil {
		c.AbortWithStatus(http.StatusInternalServerError)
		return
	}
	c.JSON(http.StatusOK, gin.H{"url": page}) // it contains the access token: do not log it
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
		err = run(ctx, s.routes())
	}
	if err = errors.Join(err, db.Close()); err != nil {
		log.Fatal(err)
	}
}

// run serves until ctx is done.
func run(ctx context.Context, routes http.Handler) error {
	listening := &http.Server{Addr: "127.0.0.1:8080", Handler: routes,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second, WriteTimeout: 30 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- listening.ListenAndServe() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	// Let the calls in progress finish: each may be moving a player's assets.
	ending, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return listening.Shutdown(ending)
}
