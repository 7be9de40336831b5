//go:build docs

// The blocks of docs/orders.md.
package orders

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
	"modernc.org/sqlite"
)

// database opens a database that has the table for orders.
func database(t *testing.T) *sql.DB {
	t.Helper()
	t.Chdir(t.TempDir())
	// block: db, err := sql.Open(
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	_, err = db.Exec(ramp.SQLite.Schema())
	require.NoError(t, err)
	require.FileExists(t, "game.db")
	return db
}

// players is a game whose Apply moves nothing.
type players struct{}

func (players) Authenticate(context.Context, ramp.Session) error { return nil }
func (players) Assets(context.Context, ramp.Session) (*ramp.Player, error) {
	return &ramp.Player{}, nil
}
func (players) Apply(context.Context, *sql.Tx, ramp.Step) error { return nil }

func page(context.Context, *ramp.ConflictError, *ramp.Result) error { return nil }

var studio players

func key(t *testing.T) (ramp.HMACKey, *ramp.Signer) {
	t.Helper()
	key, err := ramp.TextKey("key from the console")
	require.NoError(t, err)
	signer, err := ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef")
	require.NoError(t, err)
	return key, signer
}

func TestOnSQL(t *testing.T) {
	db := database(t)
	key, signer := key(t)
	terms := ramp.AnyTerms
	// block: store, err := ramp.NewSQLStore(ramp.SQLStoreConfig{DB: db, Dialect: ramp.PostgreSQL, Apply: studio.Apply})
	require.NoError(t, err)
	require.NotNil(t, handler)
	require.NoError(t, store.Check(t.Context()))
}

func newStore(t *testing.T) *ramp.SQLStore {
	t.Helper()
	db := database(t)
	// block: store, err := ramp.NewSQLStore(ramp.SQLStoreConfig{DB: db, Dialect: ramp.PostgreSQL, Apply: studio.Apply, Retries:
	require.NoError(t, err)
	return store
}

// block: // raced reports

func TestATransactionOfYourOwn(t *testing.T) {
	db := database(t)
	store, err := ramp.NewSQLStore(ramp.SQLStoreConfig{DB: db, Dialect: ramp.SQLite, Apply: studio.Apply})
	require.NoError(t, err)
	ctx, session := t.Context(), ramp.Session{ID: "session-1"}
	request := &ramp.ValidateRequest{UUID: uuid.New(), Intent: mint}
	moved := 0
	move := func(_ context.Context, _ *sql.Tx, session string, effect ramp.Effect) error {
		require.Equal(t, "session-1", session)
		require.Equal(t, ramp.Take, effect.Kind)
		moved++
		return nil
	}
	func() {
		// block: tx, err := db.BeginTx(
		require.NoError(t, err)
	}()
	require.Equal(t, 1, moved)
	order, err := store.Order(ctx, request.UUID)
	require.NoError(t, err)
	require.Equal(t, ramp.OrderAccepted, order.State)
}

var mint = ramp.Intent{
	Method: ramp.MethodMint, Type: ramp.Assemble,
	From: []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: "item_gold", Amount: ramp.NewAmount(100)}},
	To:   []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: "0x00000000000000000000000000000000000070c3", Amount: ramp.NewAmount(1)}},
}

// The interface in the block must be the same as in the package.
type (
	Transition = ramp.Transition
	Step       = ramp.Step
)

// block: type Store interface

var _ Store = ramp.Store(nil)

type store struct {
	mu     sync.Mutex
	orders map[uuid.UUID]ramp.Order
	byTx   map[string]uuid.UUID
	apply  func(context.Context, ramp.Step) error
}

// block: func (s *store) Update(

func TestAStoreInMemory(t *testing.T) {
	applied := 0
	s := &store{orders: map[uuid.UUID]ramp.Order{}, byTx: map[string]uuid.UUID{}, apply: func(context.Context, ramp.Step) error { applied++; return nil }}
	next := ramp.Accept(ramp.Session{ID: "session-1"}, &ramp.ValidateRequest{UUID: uuid.New(), Intent: mint}, time.Now())
	for range 2 {
		_, err := s.Update(t.Context(), uuid.Nil, next)
		require.NoError(t, err)
	}
	require.Equal(t, 1, applied)
}

func onPgx(ctx context.Context, pool *pgxpool.Pool, store *ramp.SQLStore, result *ramp.Result,
	move func(context.Context, *pgx.Conn, ramp.Step) error,
) error {
	// block: db := stdlib.OpenDBFromPool(
	return err
}

func TestAGameOnPgx(t *testing.T) {
	address := os.Getenv("RAMP_TEST_POSTGRESQL")
	if address == "" {
		t.Skip("*** NOT TESTED: RAMP_TEST_POSTGRESQL is not set ***")
	}
	ctx := t.Context()
	open := func(database string) *pgxpool.Pool {
		config, err := pgxpool.ParseConfig(address)
		require.NoError(t, err)
		config.ConnConfig.Database = cmp.Or(database, config.ConnConfig.Database)
		pool, err := pgxpool.NewWithConfig(ctx, config)
		require.NoError(t, err)
		t.Cleanup(pool.Close)
		return pool
	}
	name := "doctest_" + strings.ToLower(rand.Text())
	_, err := open("").Exec(ctx, "CREATE DATABASE "+name)
	require.NoError(t, err)
	pool := open(name)
	_, err = pool.Exec(ctx, ramp.PostgreSQL.Schema()+"; CREATE TABLE moves (kind TEXT)")
	require.NoError(t, err)
	store, err := ramp.NewSQLStore(ramp.SQLStoreConfig{DB: stdlib.OpenDBFromPool(pool), Dialect: ramp.PostgreSQL, Apply: studio.Apply})
	require.NoError(t, err)
	id := uuid.New()
	_, err = store.Update(ctx, id, ramp.Accept(ramp.Session{ID: "session-1"}, &ramp.ValidateRequest{UUID: id, Intent: mint}, time.Now()))
	require.NoError(t, err)

	failed := &ramp.Result{UUID: id, Receipt: ramp.Receipt{Status: ramp.NewQuantity(0)}}
	for range 2 {
		require.NoError(t, onPgx(ctx, pool, store, failed, func(ctx context.Context, conn *pgx.Conn, step ramp.Step) error {
			_, err := conn.Exec(ctx, "INSERT INTO moves VALUES ($1)", step.Effect.Kind.String())
			return err
		}))
	}
	var moved string
	require.NoError(t, pool.QueryRow(ctx, "SELECT string_agg(kind, ',') FROM moves").Scan(&moved))
	require.Equal(t, "give back", moved)
}

// block: func (g *game) Apply(

type game struct{ moved int }

func (g *game) move(context.Context, *sql.Tx, ramp.Step) error { g.moved++; return nil }

func TestAnOutbox(t *testing.T) {
	db, g := database(t), new(game)
	_, err := db.Exec("CREATE TABLE outbox (message_key TEXT PRIMARY KEY, player TEXT)")
	require.NoError(t, err)
	store, err := ramp.NewSQLStore(ramp.SQLStoreConfig{DB: db, Dialect: ramp.SQLite, Apply: g.Apply})
	require.NoError(t, err)
	id := uuid.New()
	for range 2 {
		_, err = store.Update(t.Context(), id, ramp.Accept(ramp.Session{ID: "session-1"}, &ramp.ValidateRequest{UUID: id, Intent: mint}, time.Now()))
		require.NoError(t, err)
	}
	var message string
	require.NoError(t, db.QueryRow("SELECT message_key FROM outbox").Scan(&message))
	require.Equal(t, id.String()+"/accepted", message)
	require.Equal(t, 1, g.moved)
}

func TestPages(t *testing.T) {
	ctx, store := t.Context(), newStore(t)
	err := func() error {
		// block: page := ramp.OrderPage{
		return nil
	}()
	require.NoError(t, err)
}

func TestDeletingFinishedOrders(t *testing.T) {
	ctx, store := t.Context(), newStore(t)
	require.NoError(t, func() error {
		// block: for {
	}())
}

// block: func (g *game) swords(

// A sword comes back from a mint that failed, and from the chain.
func TestUniqueItems(t *testing.T) {
	db := database(t)
	db.SetMaxOpenConns(1)
	for _, statement := range []string{
		"CREATE TABLE swords (id TEXT, owner TEXT, order_id TEXT, token_id TEXT)",
		"INSERT INTO swords VALUES ('a', 'session-1', '', ''), ('b', 'session-1', '', '')",
	} {
		_, err := db.Exec(statement)
		require.NoError(t, err)
	}
	g := &game{}
	store, err := ramp.NewSQLStore(ramp.SQLStoreConfig{DB: db, Dialect: ramp.SQLite, Apply: g.swords})
	require.NoError(t, err)
	key, signer := key(t)
	sword := []ramp.Item{{ID: "item_sword", Amount: ramp.NewAmount(1), IconURL: "sword.png", IsNonFungible: true}}
	terms, err := ramp.NewTerms(ramp.TermsConfig{Products: []ramp.Product{{Name: "sword", Intent: ramp.InitializeIntent{
		Network: ramp.Testnet, ProjectID: "project-1", Token: "0x0000000000000000000000000000000000005b0d", Materials: sword, Outputs: sword}}}})
	require.NoError(t, err)
	handler, err := ramp.NewHandler(ramp.HandlerConfig{Players: owners{db}, Store: store, Terms: terms, Key: key, Signer: signer})
	require.NoError(t, err)
	service := ramptest.Start(t, ramptest.Config{Key: key, Validator: signer.Address(), Handler: handler, PerToken: true})
	client, err := ramp.NewClient(ramp.ClientConfig{URL: service.URL(), Key: key, Terms: terms, HTTPClient: service.Client()})
	require.NoError(t, err)
	trade := func(order func(context.Context, uuid.UUID, ramp.Session, ramp.Amount, ...ramptest.Fault) (*ramptest.Order, error), want string, faults ...ramptest.Fault) {
		t.Helper()
		started, err := client.Initialize(t.Context(), ramp.InitializeRequest{Product: "sword"})
		require.NoError(t, err)
		_, err = order(t.Context(), started.UUID, ramp.Session{ID: "session-1", Token: ramp.NewAccessToken("token-1")}, ramp.NewAmount(1), faults...)
		require.NoError(t, err)
		service.Advance(time.Minute)
		var free string
		require.NoError(t, db.QueryRow("SELECT coalesce(group_concat(id, ''), '') FROM swords WHERE order_id = ''").Scan(&free))
		require.Equal(t, want, free)
	}
	trade(service.Mint, "ab", ramptest.TransactionFails())
	trade(service.Mint, "b", ramptest.ResultTwice())
	trade(service.Mint, "")
	trade(service.Burn, "a", ramptest.ResultTwice())
	trade(service.Burn, "ab")
}

// owners counts the swords of players.
type owners struct{ db *sql.DB }

func (owners) Authenticate(context.Context, ramp.Session) error { return nil }

func (o owners) Assets(ctx context.Context, s ramp.Session) (*ramp.Player, error) {
	var n int64
	err := o.db.QueryRowContext(ctx, "SELECT count(*) FROM swords WHERE owner = $1 AND order_id = ''", s.ID).Scan(&n)
	return &ramp.Player{Assets: []ramp.Asset{{ID: "item_sword", Balance: ramp.NewAmount(n)}}}, err
}
