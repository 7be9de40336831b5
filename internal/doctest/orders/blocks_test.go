//go:build docs

// The blocks of docs/orders.md.
package orders

import (
	"context"
	"database/sql"
	"testing"

	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	_ "modernc.org/sqlite"
)

// anyTerms accept every order.
var anyTerms, _ = ramp.NewTerms(ramp.TermsConfig{Any: true})

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
	terms, game := anyTerms, players{}
	// block: store, err := ramp.NewSQLStore(ramp.SQLStoreConfig{DB: db, Dialect: ramp.PostgreSQL, Apply: game.Apply})
	require.NoError(t, err)
	require.NotNil(t, handler)
	require.NoError(t, store.Check(t.Context()))
}

var mint = ramp.Intent{
	Method: ramp.MethodMint, Type: ramp.Assemble,
	From: []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: "item_gold", Amount: ramp.NewAmount(100)}},
	To:   []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: "0x00000000000000000000000000000000000070c3", Amount: ramp.NewAmount(1)}},
}
