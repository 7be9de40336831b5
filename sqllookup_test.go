package ramp_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
)

// internal/dbtest tests Check on real databases.
func TestCheckRejectsAServerThatIsTooOld(t *testing.T) {
	for _, c := range []struct {
		dialect ramp.Dialect
		version string
		want    string // "" if it is new enough
	}{
		{ramp.PostgreSQL, "9.4.26", "the database is PostgreSQL 9.4, but must be 9.5 or newer"},
		{ramp.PostgreSQL, "9.5.0", ""},
		{ramp.PostgreSQL, "15.18 (Debian 15.18-0+deb12u1)", ""},
		{ramp.PostgreSQL, "19devel", ""},
		{ramp.MySQL, "5.7.44-log", "the database is MySQL 5.7, but must be 8.0 or newer"},
		{ramp.MySQL, "8.0.46", ""},
		{ramp.MySQL, "8.0.mysql_aurora.3.08.0", ""},
		{ramp.MySQL, "9.5.0", ""},
		{ramp.MySQL, "10.4.34-MariaDB", "the database is MariaDB 10.4, but must be 10.5 or newer"},
		{ramp.MySQL, "10.11.19-MariaDB-0+deb12u1", ""},
		{ramp.MySQL, "unknown", ""},
		{ramp.SQLite, "3.36.0", "the database is SQLite 3.36, but must be 3.37 or newer"},
		{ramp.SQLite, "3.50.4", ""},
	} {
		db := sql.OpenDB(versionDB(c.version))
		defer db.Close()
		store, err := ramp.NewSQLStore(ramp.SQLStoreConfig{DB: db, Dialect: c.dialect, Apply: applyNothing})
		require.NoError(t, err)
		err = store.Check(t.Context())
		if c.want == "" {
			assert.NoError(t, err, c.version)
		} else {
			assert.EqualError(t, err, "ramp: check: "+c.want)
		}
	}
}

// versionDB is a database that answers with its version.
type versionDB string

func (v versionDB) Connect(context.Context) (driver.Conn, error) { return v, nil }
func (v versionDB) Driver() driver.Driver                        { return nil }
func (v versionDB) Close() error                                 { return nil }
func (v versionDB) Begin() (driver.Tx, error)                    { return nil, io.ErrUnexpectedEOF }
func (v versionDB) Prepare(query string) (driver.Stmt, error) {
	switch {
	case strings.Contains(strings.ToUpper(query), "COUNT(*)"):
		return versionStmt("1"), nil // index of tx_hash
	case strings.Contains(query, "column_name"), strings.Contains(query, "pragma_table_info"):
		return versionStmt(""), nil // no column is wrong
	}
	return versionStmt(v), nil
}

type versionStmt string

func (versionStmt) Close() error                                { return nil }
func (versionStmt) NumInput() int                               { return 0 }
func (versionStmt) Exec([]driver.Value) (driver.Result, error)  { return driver.RowsAffected(0), nil }
func (v versionStmt) Query([]driver.Value) (driver.Rows, error) { return &versionRows{string(v)}, nil }

type versionRows struct{ left string }

func (*versionRows) Columns() []string { return []string{"version"} }
func (*versionRows) Close() error      { return nil }

func (r *versionRows) Next(into []driver.Value) error {
	if r.left == "" {
		return io.EOF
	}
	into[0], r.left = r.left, ""
	return nil
}

// A list that was cut short must not pass for a short one.
func TestAListThatBreaksOffIsAnError(t *testing.T) {
	db := sql.OpenDB(brokenDB{})
	defer db.Close()
	store, err := ramp.NewSQLStore(ramp.SQLStoreConfig{DB: db, Dialect: ramp.SQLite, Apply: applyNothing})
	require.NoError(t, err)
	orders, err := store.Waiting(t.Context(), ramp.Mint, time.Now(), ramp.OrderPage{})
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.Nil(t, orders)
	orders, err = store.SessionOrders(t.Context(), "session-1", ramp.OrderPage{})
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.Nil(t, orders)
	orders, err = store.Ended(t.Context(), time.Time{}, time.Now(), ramp.OrderPage{})
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.Nil(t, orders)
	n, err := store.DeleteFinished(t.Context(), ramp.Mint, time.Now().AddDate(0, -1, 0))
	assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
	assert.Zero(t, n)
}

// brokenDB loses its connection before the end of every answer.
type brokenDB struct{ versionDB }

func (b brokenDB) Connect(context.Context) (driver.Conn, error) { return b, nil }
func (b brokenDB) Prepare(string) (driver.Stmt, error)          { return brokenStmt{}, nil }

type brokenStmt struct{ versionStmt }

func (brokenStmt) NumInput() int                             { return -1 }
func (brokenStmt) Query([]driver.Value) (driver.Rows, error) { return brokenRows{}, nil }

type brokenRows struct{}

func (brokenRows) Columns() []string         { return []string{"uuid"} }
func (brokenRows) Close() error              { return nil }
func (brokenRows) Next([]driver.Value) error { return io.ErrUnexpectedEOF }
