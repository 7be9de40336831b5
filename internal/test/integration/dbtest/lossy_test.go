package dbtest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// through lets the place use connections of its driver that are wrapped.
func (p *place) through(t *testing.T, wrap func(driver.Conn) driver.Conn) {
	t.Helper()
	p.db = sql.OpenDB(connector{p.db.Driver(), p.dsn, wrap})
	t.Cleanup(func() { check(t, p.db.Close()) })
}

type connector struct {
	driver driver.Driver
	dsn    string
	wrap   func(driver.Conn) driver.Conn
}

func (c connector) Driver() driver.Driver { return c.driver }

func (c connector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.driver.Open(c.dsn)
	if err != nil {
		return nil, err
	}
	return c.wrap(conn), nil
}

var (
	errLost    = errors.New("the connection broke before the answer came")
	errRefused = errors.New("the proxy does not know this setting")
)

// faults are those of a place, whose last query for rows they know.
type faults struct {
	// lost counts the answers that are lost: a commit succeeds, but the caller gets an
	// error, and rows arrive, but not their end.
	lost atomic.Int64

	bad     atomic.Int64 // transactions that do not begin because of a bad connection
	refused string       // a statement

	query string
	args  []any

	onExec func(query string) // is called after each statement without rows
}

// lossy gives the place a driver with faults.
func lossy(t *testing.T, p *place) *faults {
	t.Helper()
	f := &faults{}
	p.through(t, func(conn driver.Conn) driver.Conn { return lossyConn{conn, f} })
	return f
}

// loses reports whether the next answer is lost.
func (f *faults) loses() bool { return f.lost.Load() > 0 && f.lost.Add(-1) >= 0 }

// lossyConn implements only the required methods of a driver; database/sql does not
// need the optional ones.
type lossyConn struct {
	driver.Conn
	faults *faults
}

func (c lossyConn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

func (c lossyConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	if c.faults.bad.Add(-1) >= 0 {
		return nil, driver.ErrBadConn
	}
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, options)
	return lossyTx{tx, c.faults}, err
}

func (c lossyConn) Prepare(query string) (driver.Stmt, error) {
	if query == c.faults.refused {
		return nil, errRefused
	}
	stmt, err := c.Conn.Prepare(query)
	return lossyStmt{stmt, query, c.faults}, err
}

type lossyStmt struct {
	driver.Stmt
	query  string
	faults *faults
}

func (s lossyStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	done, err := s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
	if s.faults.onExec != nil {
		s.faults.onExec(s.query)
	}
	if err == nil && strings.HasPrefix(s.query, "SET autocommit = IF(") && s.faults.loses() {
		return nil, errLost
	}
	return done, err
}

func (s lossyStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	s.faults.query, s.faults.args = s.query, nil
	for _, arg := range args {
		s.faults.args = append(s.faults.args, arg.Value)
	}
	rows, err := s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := &lossyRows{columns: rows.Columns(), faults: s.faults}
	for {
		row := make([]driver.Value, len(all.columns))
		if err := rows.Next(row); err == io.EOF {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		for i, value := range row {
			if text, ok := value.([]byte); ok { // of the driver, until the next row
				row[i] = slices.Clone(text)
			}
		}
		all.rows = append(all.rows, row)
	}
}

// lossyRows are the rows of a query, all of which have arrived: the connection is free.
type lossyRows struct {
	columns []string
	rows    [][]driver.Value
	faults  *faults
}

func (r *lossyRows) Columns() []string { return r.columns }
func (*lossyRows) Close() error        { return nil }

func (r *lossyRows) Next(dest []driver.Value) error {
	if len(r.rows) == 0 && r.faults.loses() {
		return errLost
	} else if len(r.rows) == 0 {
		return io.EOF
	}
	copy(dest, r.rows[0])
	r.rows = r.rows[1:]
	return nil
}

type lossyTx struct {
	driver.Tx
	faults *faults
}

func (tx lossyTx) Commit() error {
	err := tx.Tx.Commit()
	if err == nil && tx.faults.loses() {
		return errLost
	}
	return err
}
