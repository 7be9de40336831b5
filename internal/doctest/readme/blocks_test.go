//go:build docs

// The blocks of README.md: a game on SQL whose wiring is tested as shown.
package readme

import (
	"context"
	"database/sql"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
	_ "modernc.org/sqlite"
)

type game struct{ db *sql.DB }

func (g *game) Authenticate(_ context.Context, s ramp.Session) error {
	if s.ID != session.ID || !s.Token.Equal(session.Token) {
		return ramp.Reject("INVALID_USER")
	}
	return nil
}

func (g *game) Assets(context.Context, ramp.Session) (*ramp.Player, error) {
	return &ramp.Player{Assets: []ramp.Asset{{ID: "gold", Balance: ramp.NewAmount(goldIn(g.db))}}}, nil
}

// block: func (g *game) Apply(ctx context.Context, tx *sql.Tx

var session = ramp.Session{ID: "character-1", Token: ramp.NewAccessToken("token-1")}

func page(context.Context, *ramp.ConflictError, *ramp.Result) error { return nil }

// open returns a database with one character, who has 1000 gold and no gems.
func open(t *testing.T) *sql.DB {
	t.Helper()
	db := ramp.Must(sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "game.db")+"?_txlock=immediate"))
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	for _, statement := range []string{
		ramp.SQLite.Schema(),
		"CREATE TABLE balances (player TEXT, asset TEXT, amount INTEGER NOT NULL)",
		"INSERT INTO balances VALUES ('" + session.ID + "', 'gold', 1000)",
	} {
		ramp.Must(db.Exec(statement))
	}
	return db
}

func TestTheTestOfTheREADME(t *testing.T) {
	db := open(t)
	key := ramp.Must(ramp.TextKey("key from the console"))
	signer := ramp.Must(ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"))
	items := func(id string) []ramp.Item {
		return []ramp.Item{{ID: id, Amount: ramp.NewAmount(100), IconURL: "https://example.com/icon.png"}}
	}
	terms := ramp.Must(ramp.NewTerms(ramp.TermsConfig{ProjectID: "project-1", Network: ramp.Testnet, Products: []ramp.Product{
		{Name: "gold", Token: "0x00000000000000000000000000000000000070c3", Materials: items("gold"), Outputs: items("gold")},
		{Name: "gem", Token: "0x0000000000000000000000000000000000006e30", Materials: items("gem"), Outputs: items("gem")},
	}}))
	server := httptest.NewServer(nil) // the node's address, before it is known
	server.Close()
	newHandler := func(node *ramp.RPC) http.Handler {
		ctx, g, mux := t.Context(), &game{db}, http.NewServeMux()
		const chainID = 7002
		t.Setenv("RAMP_RPC_URL", server.URL)
		// block: store := ramp.Must(ramp.NewSQLStore(
		require.ErrorIs(t, err, ramp.ErrUnreachable, "Check looks for the node")
		config := ramp.HandlerConfig{Players: g, Store: store, Terms: terms, Key: key, Signer: signer, OnConflict: page, Chain: node}
		handler = ramp.Must(ramp.NewHandler(config))
		require.NoError(t, handler.Check(ctx))
		return handler
	}
	before, gold := int64(1000), func() int64 { return goldIn(db) }
	// block: service := ramptest.Start(
	require.Contains(t, service.Timeline(), "#2   200  success")

	// An asset without a row is a declined order, not an error of SQL.
	started = ramp.Must(client.Initialize(t.Context(), ramp.InitializeRequest{Product: "gem"}))
	_, err = service.Mint(t.Context(), started.UUID, session, ramp.NewAmount(1))
	require.ErrorContains(t, err, "INVALID_BALANCE")
}

func goldIn(db *sql.DB) (gold int64) {
	if err := db.QueryRow("SELECT amount FROM balances WHERE asset = 'gold'").Scan(&gold); err != nil {
		panic(err)
	}
	return gold
}
