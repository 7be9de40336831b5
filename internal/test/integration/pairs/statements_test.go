package pairs

import (
	"context"
	"database/sql/driver"

	modernc "modernc.org/sqlite"
)

// keeper opens connections to SQLite that keep their statements: otherwise the driver prepares each anew, which takes
// longer than to run it.
type keeper struct {
	driver driver.Driver
	name   string
}

func (k keeper) Driver() driver.Driver { return k.driver }

func (k keeper) Connect(context.Context) (driver.Conn, error) {
	c, err := k.driver.Open(k.name)
	if err != nil {
		return nil, err
	}
	return &keeping{c.(connection), map[string]statement{}}, nil
}

// connection is what one of the driver can do.
type connection interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
	RegisterCommitHook(callback modernc.CommitHookFn)
}

type statement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// keeping is a connection with the statements that nobody uses now.
type keeping struct {
	connection
	kept map[string]statement
}

// take returns a statement, which is prepared if it is not kept, or in use.
func (c *keeping) take(ctx context.Context, query string) (statement, error) {
	if s := c.kept[query]; s != nil {
		delete(c.kept, query)
		return s, nil
	}
	s, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return s.(statement), nil
}

func (c *keeping) keep(query string, s statement) {
	if c.kept[query] != nil {
		_ = s.Close()
		return
	}
	c.kept[query] = s
}

func (c *keeping) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	s, err := c.take(ctx, query)
	if err != nil {
		return nil, err
	}
	defer c.keep(query, s)
	return s.ExecContext(ctx, args)
}

func (c *keeping) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.take(ctx, query)
	if err != nil {
		return nil, err
	}
	rows, err := s.QueryContext(ctx, args)
	if err != nil {
		c.keep(query, s)
		return nil, err
	}
	return &keptRows{rows, func() { c.keep(query, s) }}, nil
}

func (c *keeping) Close() error {
	for _, s := range c.kept {
		_ = s.Close()
	}
	return c.connection.Close()
}

type keptRows struct {
	driver.Rows
	keep func()
}

func (r *keptRows) Close() error {
	defer r.keep()
	return r.Rows.Close()
}
