package interleaving

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"reflect"
	"slices"
	"sync/atomic"
)

// The errors that a server gets. They are of no driver, as those of a proxy are.
var (
	errRefused    = errors.New("the interleaving lets the database refuse this statement")
	errRolledBack = errors.New(
		"the interleaving lets the database refuse this statement and roll back the transaction")
	errBroken = errors.New("the interleaving lets the connection break")
	errKilled = errors.New("the interleaving has killed this server")
)

// conn is a connection of a server. It stops before each statement, and sends it when the scheduler
// lets it go on.
type conn struct {
	driver.Conn
	server *server
	id     int64       // the database's name of the connection; 0 for a file
	gone   atomic.Bool // whether it was broken
	inTx   atomic.Bool
	held   Rows // what its transaction has touched

	// snapshots is whether a transaction reads what was committed at its first statement. The database
	// may then abort one of two transactions, and races is whether it does.
	snapshots, races bool
}

// keptConn is a connection that database/sql keeps after a rollback.
type keptConn struct{ *conn }

func (c keptConn) IsValid() bool { return !c.gone.Load() && c.Conn.(driver.Validator).IsValid() }

// wrap returns a connection with the optional methods of the driver's that change what
// database/sql does.
func (c *conn) wrap() driver.Conn {
	_, resets := c.Conn.(driver.SessionResetter)
	if _, validates := c.Conn.(driver.Validator); resets && validates {
		return keptConn{c}
	}
	return c
}

func (c *conn) ResetSession(ctx context.Context) error {
	if c.gone.Load() {
		return driver.ErrBadConn
	}
	if resetter, ok := c.Conn.(driver.SessionResetter); ok {
		return resetter.ResetSession(ctx)
	}
	return nil
}

func (c *conn) CheckNamedValue(value *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(value)
	}
	return driver.ErrSkip
}

// RegisterCommitHook passes the commit hook of a store on to a driver of SQLite.
func (c *conn) RegisterCommitHook(hook func() int32) {
	register := reflect.ValueOf(c.Conn).MethodByName("RegisterCommitHook")
	if !register.IsValid() || register.Type().NumIn() != 1 || register.Type().In(0).Kind() != reflect.Func {
		return
	}
	of := register.Type().In(0)
	register.Call([]reflect.Value{reflect.MakeFunc(of, func([]reflect.Value) []reflect.Value {
		return []reflect.Value{reflect.ValueOf(hook()).Convert(of.Out(0))}
	})})
}

func (c *conn) Close() error {
	c.server.forget(c)
	c.left()
	gone := c.gone.Swap(true)
	if gone && c.id == 0 { // a file, which was closed when the connection broke
		return nil
	}
	err := c.Conn.Close()
	if !gone && c.id != 0 && c.server.playing.Load() { // the database may not have noticed yet
		c.server.end(c.id)
	}
	return err
}

// left notes that no transaction is open.
func (c *conn) left() {
	if c.inTx.Swap(false) {
		c.server.open.Add(-1)
	}
}

// sever breaks the connection, as the end of a process does.
func (c *conn) sever() {
	if c.gone.Swap(true) {
		return
	}
	if c.id == 0 {
		_ = c.Conn.Close()
	} else {
		c.server.end(c.id)
	}
	c.left()
}

// pass stops before a statement, and sends it if it may.
func (c *conn) pass(st *Statement, send func() error) error {
	s := c.server
	if c.gone.Load() {
		return driver.ErrBadConn
	}
	st.Server, st.conn, st.fate, st.Affected = s.n, c.id, make(chan Fault), -1
	st.InTx, st.Outside, st.races = c.inTx.Load(), !c.inTx.Load() && s.open.Load() > 0, c.races
	st.all = st.rows.and(c.held)
	if !s.playing.Load() {
		s.note(st)
		st.Err = send()
		return st.Err
	}
	s.events <- event{server: s, stops: st}
	st.Err = c.meet(<-st.fate, st, send)
	return st.Err
}

// meet sends a statement that has this fate.
func (c *conn) meet(fate Fault, st *Statement, send func() error) error {
	s := c.server
	switch fate {
	case Refused:
		switch {
		case st.commits():
			c.exec(rollback)
		case s.dialect.strict && st.InTx: // let the database reject what comes after it
			c.exec("SELECT 1 / 0")
		}
		return errRefused
	case RolledBack:
		c.exec(rollback)
		c.held = Rows{}
		return errRolledBack
	case Unsent:
		c.sever()
		return errBroken
	case Killed:
		return errKilled
	case Canceled:
		s.cancel()
	}
	err := send()
	for s.dialect.file && isBusy(err) { // it would try again by itself
		s.events <- event{server: s, waits: true}
		switch <-st.fate {
		case Killed:
			return errKilled
		case Canceled:
			return errors.Join(context.Canceled, err)
		}
		err = send()
	}
	c.held = c.held.and(st.rows)
	if err == nil && st.ends() {
		c.held = Rows{}
	}
	switch fate {
	case Lost:
		c.sever()
		return errBroken
	case KilledBehind:
		s.events <- event{server: s, killed: true}
		<-st.fate
		return errKilled
	}
	return err
}

// touches returns the rows of a statement.
func (c *conn) touches(text string, args []driver.NamedValue) Rows {
	known := reads{c.server.dialect, c.server.names, c.inTx.Load(), c.snapshots, c.held}
	return known.rows(text, args)
}

// exec sends a statement of the interleaving's own.
func (c *conn) exec(text string) {
	ctx := context.Background()
	if execer, ok := c.Conn.(driver.ExecerContext); ok {
		_, _ = execer.ExecContext(ctx, text, nil)
	}
}

func (c *conn) Begin() (driver.Tx, error) { return c.BeginTx(context.Background(), driver.TxOptions{}) }

func (c *conn) BeginTx(ctx context.Context, options driver.TxOptions) (tx driver.Tx, err error) {
	st := &Statement{Text: begin, rows: Rows{}}
	if c.server.dialect.file { // it may lock the file
		st.rows = Rows{everything: true}
	}
	err = c.pass(st, func() (err error) {
		tx, err = c.Conn.(driver.ConnBeginTx).BeginTx(ctx, options)
		c.held = Rows{}
		if err == nil {
			c.inTx.Store(true)
			c.server.open.Add(1)
		}
		const readCommitted = 2 // sql.LevelReadCommitted
		c.races = c.snapshots || options.Isolation > readCommitted
		return err
	})
	return stoppingTx{tx, c}, err
}

// stoppingTx is a transaction of a conn.
type stoppingTx struct {
	driver.Tx
	conn *conn
}

func (tx stoppingTx) Commit() error {
	defer tx.conn.left()
	return tx.conn.pass(&Statement{Text: commit, rows: tx.conn.held}, tx.Tx.Commit)
}

func (tx stoppingTx) Rollback() error {
	defer tx.conn.left()
	return tx.conn.pass(&Statement{Text: rollback, rows: tx.conn.held}, tx.Tx.Rollback)
}

func (c *conn) ExecContext(
	ctx context.Context, text string, args []driver.NamedValue,
) (done driver.Result, err error) {
	st := &Statement{Text: text, rows: c.touches(text, args)}
	err = c.pass(st, func() (err error) {
		done, err = c.execute(ctx, text, args)
		return st.count(done, err)
	})
	return done, err
}

// count notes how many rows a statement changed.
func (st *Statement) count(done driver.Result, err error) error {
	if err == nil {
		if n, failed := done.RowsAffected(); failed == nil {
			st.Affected = n
		}
	}
	return err
}

// execute does what database/sql would: it prepares a statement that the driver does not execute
// at once.
func (c *conn) execute(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	if execer, ok := c.Conn.(driver.ExecerContext); ok {
		if done, err := execer.ExecContext(ctx, text, args); !errors.Is(err, driver.ErrSkip) {
			return done, err
		}
	}
	prepared, err := c.prepare(ctx, text)
	if err != nil {
		return nil, err
	}
	defer prepared.Close()
	return prepared.(driver.StmtExecContext).ExecContext(ctx, args)
}

func (c *conn) prepare(ctx context.Context, text string) (driver.Stmt, error) {
	if preparer, ok := c.Conn.(driver.ConnPrepareContext); ok {
		return preparer.PrepareContext(ctx, text)
	}
	return c.Conn.Prepare(text)
}

func (c *conn) QueryContext(
	ctx context.Context, text string, args []driver.NamedValue,
) (driver.Rows, error) {
	all := &rowsRead{}
	st := &Statement{Text: text, rows: c.touches(text, args)}
	if err := c.pass(st, func() error { return all.read(c.query(ctx, text, args)) }); err != nil {
		return nil, err
	}
	return all, nil
}

func (c *conn) query(
	ctx context.Context, text string, args []driver.NamedValue,
) (rows driver.Rows, end io.Closer, err error) {
	if queryer, ok := c.Conn.(driver.QueryerContext); ok {
		if rows, err = queryer.QueryContext(ctx, text, args); !errors.Is(err, driver.ErrSkip) {
			return rows, nil, err
		}
	}
	prepared, err := c.prepare(ctx, text)
	if err != nil {
		return nil, nil, err
	}
	rows, err = prepared.(driver.StmtQueryContext).QueryContext(ctx, args)
	return rows, prepared, err
}

// rowsRead are the rows of a query, all of which were read when it was sent.
type rowsRead struct {
	columns []string
	rows    [][]driver.Value
}

func (r *rowsRead) read(from driver.Rows, end io.Closer, err error) error {
	if end != nil {
		defer end.Close()
	}
	if err != nil {
		return err
	}
	defer from.Close()
	for r.columns = from.Columns(); ; {
		row := make([]driver.Value, len(r.columns))
		switch err := from.Next(row); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		for i, value := range row {
			if text, ok := value.([]byte); ok {
				row[i] = slices.Clone(text)
			}
		}
		r.rows = append(r.rows, row)
	}
}

func (r *rowsRead) Columns() []string { return r.columns }
func (r *rowsRead) Close() error      { return nil }

func (r *rowsRead) Next(row []driver.Value) error {
	if len(r.rows) == 0 {
		return io.EOF
	}
	copy(row, r.rows[0])
	r.rows = r.rows[1:]
	return nil
}

func (c *conn) Prepare(text string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), text)
}

func (c *conn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	if c.gone.Load() {
		return nil, driver.ErrBadConn
	}
	prepared, err := c.prepare(ctx, text)
	return &stoppingStmt{prepared, c, text}, err
}

// stoppingStmt is a prepared statement of a conn.
type stoppingStmt struct {
	driver.Stmt
	conn *conn
	text string
}

func (p *stoppingStmt) ExecContext(
	ctx context.Context, args []driver.NamedValue,
) (done driver.Result, err error) {
	st := &Statement{Text: p.text, rows: p.conn.touches(p.text, args)}
	err = p.conn.pass(st, func() (err error) {
		done, err = p.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
		return st.count(done, err)
	})
	return done, err
}

func (p *stoppingStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	all := &rowsRead{}
	st := &Statement{Text: p.text, rows: p.conn.touches(p.text, args)}
	err := p.conn.pass(st, func() error {
		rows, err := p.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
		return all.read(rows, nil, err)
	})
	return all, err
}

func (p *stoppingStmt) CheckNamedValue(value *driver.NamedValue) error {
	if checker, ok := p.Stmt.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(value)
	}
	return p.conn.CheckNamedValue(value)
}
