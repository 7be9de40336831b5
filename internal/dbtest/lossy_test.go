package dbtest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
)

var errLost = errors.New("the connection broke before the answer came")

// lossy opens the place through a driver that loses answers while lost is above 0: a
// commit succeeds, but the caller gets an error; rows arrive, but not their end; and
// MySQL does not turn autocommit on again.
func lossy(t *testing.T, p *place, lost *atomic.Int64) *sql.DB {
	t.Helper()
	db := sql.OpenDB(lossyConnector{driver: p.db.Driver(), dsn: p.dsn, lost: lost})
	t.Cleanup(func() { check(t, db.Close()) })
	return db
}

type lossyConnector struct {
	driver driver.Driver
	dsn    string
	lost   *atomic.Int64
	bad    *atomic.Int64 // number of transactions that do not begin because of a bad connection; nil for none
}

func (c lossyConnector) Driver() driver.Driver { return c.driver }

func (c lossyConnector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.driver.Open(c.dsn)
	return lossyConn{Conn: conn, lost: c.lost, bad: c.bad}, err
}

// lossyConn implements only the required methods of a driver; database/sql does not
// need the optional ones.
type lossyConn struct {
	driver.Conn
	lost, bad *atomic.Int64
}

func (c lossyConn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

func (c lossyConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	if c.bad != nil && c.bad.Add(-1) >= 0 {
		return nil, driver.ErrBadConn
	}
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, options)
	return lossyTx{Tx: tx, lost: c.lost}, err
}

func (c lossyConn) Prepare(query string) (driver.Stmt, error) {
	stmt, err := c.Conn.Prepare(query)
	return lossyStmt{Stmt: stmt, query: query, lost: c.lost}, err
}

type lossyStmt struct {
	driver.Stmt
	query string
	lost  *atomic.Int64
}

func (s lossyStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	turnsOn := s.query == "SET autocommit = 1"
	commits := strings.HasPrefix(s.query, "SET autocommit = IF(")
	if turnsOn && s.lost.Load() > 0 {
		s.lost.Add(-1)
		return nil, errLost
	}
	done, err := s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
	if commits && err == nil && s.lost.Load() > 0 {
		s.lost.Add(-1)
		return nil, errLost
	}
	return done, err
}

func (s lossyStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
	return lossyRows{Rows: rows, lost: s.lost}, err
}

type lossyRows struct {
	driver.Rows
	lost *atomic.Int64
}

func (r lossyRows) Next(dest []driver.Value) error {
	err := r.Rows.Next(dest)
	if err == io.EOF && r.lost.Load() > 0 {
		r.lost.Add(-1)
		return errLost
	}
	return err
}

type lossyTx struct {
	driver.Tx
	lost *atomic.Int64
}

func (tx lossyTx) Commit() error {
	err := tx.Tx.Commit()
	if err == nil && tx.lost.Load() > 0 {
		tx.lost.Add(-1)
		return errLost
	}
	return err
}
