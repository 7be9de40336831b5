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

func TestAStoreOnSQLite(t *testing.T) {
	t.Chdir(t.TempDir())
	// block: db, err := sql.Open(
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	_, err = db.Exec(ramp.SQLite.Schema())
	require.NoError(t, err)
	require.FileExists(t, "game.db")
	apply := func(context.Context, *sql.Tx, ramp.Step) error { return nil }
	store := ramp.Must(ramp.NewSQLStore(ramp.SQLStoreConfig{DB: db, Dialect: ramp.SQLite, Apply: apply}))
	require.NoError(t, store.Check(t.Context()))
}
