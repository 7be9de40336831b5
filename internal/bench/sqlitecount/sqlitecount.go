// Package sqlitecount opens SQLite databases and counts the statements that a program
// executes on them. SQLite has no network connection on which others could count.
package sqlitecount

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"os"

	"modernc.org/sqlite"
)

// The bytes that are written for each statement.
const (
	Execute     = 'E' // every other statement
	Transaction = 'T' // BEGIN, COMMIT or ROLLBACK
)

// FD is the file descriptor to which [Open] writes.
const FD = 3

// Open replaces sql.Open("sqlite", address) in a program. The database writes one byte
// to FD before each statement.
func Open(address string) (*sql.DB, error) {
	return New(address, os.NewFile(FD, "statements")), nil
}

// New opens a database that writes one byte before each statement.
func New(address string, to io.Writer) *sql.DB {
	return sql.OpenDB(connector{address, to})
}

type connector struct {
	address string
	to      io.Writer
}

func (c connector) Driver() driver.Driver { return &sqlite.Driver{} }

func (c connector) Connect(context.Context) (driver.Conn, error) {
	opened, err := c.Driver().Open(c.address)
	if err != nil {
		return nil, err
	}
	return &conn{opened.(sqliteConn), c.to}, nil
}

// sqliteConn has every method of a connection that database/sql or the SDK uses. The
// SDK finds RegisterCommitHook by its name.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
	sqlite.HookRegisterer
}

type conn struct {
	sqliteConn
	to io.Writer
}

func (c *conn) count(statement byte) error {
	_, err := c.to.Write([]byte{statement})
	return err
}

func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if err := c.count(Execute); err != nil {
		return nil, err
	}
	return c.sqliteConn.ExecContext(ctx, query, args)
}

func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if err := c.count(Execute); err != nil {
		return nil, err
	}
	return c.sqliteConn.QueryContext(ctx, query, args)
}

// Executions of a prepared statement would not be counted.
var errPrepare = errors.New("sqlitecount: prepared statements are not supported")

func (c *conn) Prepare(string) (driver.Stmt, error) { return nil, errPrepare }

func (c *conn) PrepareContext(context.Context, string) (driver.Stmt, error) { return nil, errPrepare }

func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if err := c.count(Transaction); err != nil {
		return nil, err
	}
	begun, err := c.sqliteConn.BeginTx(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &tx{begun, c}, nil
}

type tx struct {
	driver.Tx
	conn *conn
}

func (t *tx) Commit() error { return errors.Join(t.conn.count(Transaction), t.Tx.Commit()) }

func (t *tx) Rollback() error { return errors.Join(t.conn.count(Transaction), t.Tx.Rollback()) }
