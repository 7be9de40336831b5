package sqlitecount_test

import (
	"bytes"
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/bench/sqlitecount"
)

func TestEveryStatementIsCounted(t *testing.T) {
	var counted bytes.Buffer
	db := sqlitecount.New("file:"+filepath.Join(t.TempDir(), "test.db"), &counted)
	defer db.Close()
	_, err := db.Exec("CREATE TABLE numbers (n INTEGER)")
	require.NoError(t, err)
	var n int
	require.NoError(t, db.QueryRow("SELECT count(*) FROM numbers").Scan(&n))
	for _, end := range []func(*sql.Tx) error{(*sql.Tx).Commit, (*sql.Tx).Rollback} {
		tx, err := db.Begin()
		require.NoError(t, err)
		_, err = tx.Exec("INSERT INTO numbers VALUES (?)", 1)
		require.NoError(t, err)
		require.NoError(t, end(tx))
	}
	_, err = db.Prepare("SELECT 1")
	require.Error(t, err, "its executions would not be counted")
	assert.Equal(t, "EE"+"TET"+"TET", counted.String())
}

// The counted server is as safe as the real one, so it executes the same statements.
func TestTheSDKStillFindsTheCommitHook(t *testing.T) {
	db := sqlitecount.New("file:"+filepath.Join(t.TempDir(), "test.db"), &bytes.Buffer{})
	defer db.Close()
	_, err := db.Exec(ramp.SQLite.Schema())
	require.NoError(t, err)
	var committed error
	store, err := ramp.NewSQLStore(ramp.SQLStoreConfig{DB: db, Dialect: ramp.SQLite, Apply: func(ctx context.Context, tx *sql.Tx, _ ramp.Step) error {
		_, committed = tx.ExecContext(ctx, "COMMIT")
		return committed
	}})
	require.NoError(t, err)
	id := uuid.New()
	request, err := ramp.ParseValidate([]byte(strings.ReplaceAll(`{"user_sig":"0xa9c5","user_address":"0x00000000000000000000000000000000000000aa",
		"project_id":"p","digest":"0x0000000000000000000000000000000000000000000000000000000000000001","uuid":"UUID",
		"intent":{"method":"mint","type":"assemble","from":[{"type":"asset","id":"gold","amount":1}],
		"to":[{"type":"ERC20","id":"0x00000000000000000000000000000000000070c3","amount":1}]}}`, "UUID", id.String())))
	require.NoError(t, err)
	_, err = store.Update(t.Context(), id, ramp.Accept(ramp.Session{ID: "s"}, request, time.Now()))
	require.Error(t, err)
	require.Error(t, committed, "the hook refuses a commit that is not the store's own")
	_, err = store.Order(t.Context(), id)
	require.ErrorIs(t, err, ramp.ErrOrderUnknown)
}
