//go:build docs

// The blocks of README.md: a game on SQL whose wiring is tested as shown.
package readme

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"io"
	"log/slog"
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

// block: // A token of gold costs 100 gold

const (
	hmacKey      = "key from the console"
	validatorKey = "0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"
	sessionID    = "character-1"
	token        = "token-1"
)

var session = ramp.Session{ID: sessionID, Token: ramp.NewAccessToken(token)}

func page(context.Context, *ramp.ConflictError, *ramp.Result) error { return nil }

// open returns a database with one character, who has 1000 gold.
func open(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "game.db")+"?_txlock=immediate")
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	hash := sha256.Sum256([]byte(token))
	for _, statement := range []string{
		ramp.SQLite.Schema(),
		"CREATE TABLE sessions (id TEXT, token_hash BLOB)",
		"CREATE TABLE characters (id TEXT, gold INTEGER, gems INTEGER)",
		"INSERT INTO characters VALUES ('" + sessionID + "', 1000, 0)",
	} {
		_, err := db.Exec(statement)
		require.NoError(t, err)
	}
	_, err = db.Exec("INSERT INTO sessions VALUES ($1, $2)", sessionID, hash[:])
	require.NoError(t, err)
	return db
}

func mount(t *testing.T, mux *http.ServeMux, db *sql.DB, chain *ramp.RPC, terms *ramp.Terms, key ramp.HMACKey, signer *ramp.Signer, logger *slog.Logger) *ramp.Handler {
	t.Helper()
	ctx := t.Context()
	// block: g := &game{db}
	require.NoError(t, err)
	return handler
}

func TestTheWiringTradesWithTheService(t *testing.T) {
	ctx, db, mux := t.Context(), open(t), http.NewServeMux()
	t.Setenv("RAMP_HMAC_KEY", hmacKey)
	t.Setenv("RAMP_VALIDATOR_KEY", validatorKey)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	consoleKey, err := ramp.TextKey(hmacKey)
	require.NoError(t, err)
	registered, err := ramp.NewKeySigner(validatorKey)
	require.NoError(t, err)
	emulated, err := ramptest.New(ramptest.Config{Key: consoleKey, Validator: registered.Address(), Game: server.URL})
	require.NoError(t, err)
	t.Cleanup(emulated.Close)
	t.Setenv("RAMP_RPC_URL", emulated.RPCURL(ramp.Testnet))
	t.Setenv("RAMP_API_URL", emulated.URL())
	t.Setenv("RAMP_FRONTEND_URL", emulated.URL())
	const chainID = 7002

	// block: logger := slog.New(
	require.NoError(t, err)
	mount(t, mux, db, chain, terms, key, signer, logger)
	// block: client, err := ramp.NewClient(
	require.NoError(t, err)
	require.Contains(t, address, started.UUID.String())

	_, err = emulated.Mint(ctx, started.UUID, session, ramp.NewAmount(2))
	require.NoError(t, err)
	for _, sent := range emulated.Advance(time.Hour) {
		require.NoError(t, sent.Err)
	}
	require.Equal(t, 800, goldIn(t, db))
}

func TestTheTestOfTheREADME(t *testing.T) {
	db, logger := open(t), slog.New(slog.NewTextHandler(io.Discard, nil))
	key, err := ramp.TextKey(hmacKey)
	require.NoError(t, err)
	signer, err := ramp.NewKeySigner(validatorKey)
	require.NoError(t, err)
	terms, err := ramp.NewTerms(ramp.TermsConfig{ProjectID: "project-1", Network: ramp.Testnet, Products: products})
	require.NoError(t, err)
	newHandler := func(chain *ramp.RPC) http.Handler {
		return mount(t, http.NewServeMux(), db, chain, terms, key, signer, logger)
	}
	before, gold := 1000, func() int { return goldIn(t, db) }
	// block: service := ramptest.Start(
	require.Contains(t, service.Timeline(), "#2   200  success")
}

func goldIn(t *testing.T, db *sql.DB) (gold int) {
	t.Helper()
	require.NoError(t, db.QueryRow("SELECT gold FROM characters").Scan(&gold))
	return gold
}
