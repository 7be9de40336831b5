package rampsql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"
)

// pool is where a transaction gets its connection.
type pool struct {
	db      *sql.DB
	options *sql.TxOptions
	hooks   *commitHooks
}

// transaction is a transaction of a [Store]. It closes a gap of MySQL and
// SQLite: at some errors, such as a deadlock, they roll back the whole transaction,
// and later statements would commit one by one. A game that ignores the error would
// then move assets for an order that is not recorded. Therefore autocommit is
// turned off on MySQL, and on SQLite a hook rejects every commit but the
// transaction's own. PostgreSQL rejects every statement after an error, and needs
// neither.
type transaction interface {
	tx() *sql.Tx

	// commit commits if the transaction still holds what its step wrote: claim in the row of id.
	commit(ctx context.Context, id uuid.UUID, claim string) error

	// close rolls back unless the transaction was committed. It returns the connection to the pool in
	// its original state, or discards it.
	close(ctx context.Context)
}

var errRolledBack = errors.New("a statement in Apply failed, and the database rolled back " +
	"the whole transaction, but Apply ignored the error; it must return every error of tx")

type postgresTx struct{ *sql.Tx }

func beginPostgreSQL(ctx context.Context, p pool) (transaction, error) {
	tx, err := p.db.BeginTx(ctx, p.options)
	return postgresTx{tx}, err
}

func (t postgresTx) tx() *sql.Tx           { return t.Tx }
func (t postgresTx) close(context.Context) { _ = t.Rollback() }

func (t postgresTx) commit(context.Context, uuid.UUID, string) error {
	err := t.Commit()
	// The texts of pgx and lib/pq.
	if err != nil && (strings.Contains(err.Error(), "resulted in rollback") ||
		strings.Contains(err.Error(), "failed transaction")) {
		err = fmt.Errorf("%w (%w)", errRolledBack, err)
	}
	return err
}

// connTx is a transaction and its connection, whose state it changes.
type connTx struct {
	*sql.Tx
	conn *sql.Conn
}

func (t *connTx) tx() *sql.Tx { return t.Tx }

// beginOnConn begins a transaction on a connection of its own, and calls prepare.
// The server may have closed an idle connection. Nothing has been done then, so it
// retries with another one, as database/sql does.
func beginOnConn(
	ctx context.Context, p pool, prepare func(*connTx) (transaction, error),
) (transaction, error) {
	for attempt := 1; ; attempt++ {
		conn, err := p.db.Conn(ctx)
		if err != nil {
			return nil, err
		}
		tx, err := conn.BeginTx(ctx, p.options)
		if err == nil {
			return prepare(&connTx{tx, conn})
		}
		_ = conn.Close()
		if !errors.Is(err, driver.ErrBadConn) || attempt == 3 {
			return nil, err
		}
	}
}

type mysqlTx struct {
	*connTx
	committed bool
}

func beginMySQL(ctx context.Context, p pool) (transaction, error) {
	return beginOnConn(ctx, p, func(c *connTx) (transaction, error) {
		t := &mysqlTx{connTx: c}
		if _, err := t.ExecContext(ctx, "SET autocommit = 0"); err != nil {
			t.close(ctx)
			return nil, err
		}
		return t, nil
	})
}

// commit turns autocommit on, which commits. The server evaluates the condition
// first and rejects the value 2. So one round trip checks, commits and restores. It
// checks only the claim, which differs for every step. The state may be the same if
// another delivery has finished the order meanwhile.
func (t *mysqlTx) commit(ctx context.Context, id uuid.UUID, claim string) error {
	statement := literally("SET autocommit = IF((SELECT claim FROM ramp_orders WHERE uuid = $1) = $2, 1, 2)",
		id.String(), claim)
	_, err := t.ExecContext(context.WithoutCancel(ctx), statement)
	if err == nil {
		err = t.Commit() // usually a no-op, but a proxy may not have passed autocommit on
	} else if strings.Contains(err.Error(), "'autocommit'") {
		err = fmt.Errorf("%w (%w)", errRolledBack, err)
	}
	t.committed = err == nil
	return err
}

// close turns autocommit on again, which would commit an open transaction. So it
// does that only after the server has confirmed the rollback: after a canceled
// context, for example, database/sql may still be rolling back.
func (t *mysqlTx) close(ctx context.Context) {
	err := t.Rollback()
	if err == nil {
		_, err = t.conn.ExecContext(context.WithoutCancel(ctx), "SET autocommit = 1")
	}
	if !t.committed && err != nil {
		_ = t.conn.Raw(func(any) error { return driver.ErrBadConn }) // discards it
	}
	_ = t.conn.Close()
}

type sqliteTx struct {
	*connTx
	reject *atomic.Bool // whether the commit hook of the connection rejects commits
}

func beginSQLite(ctx context.Context, p pool) (transaction, error) {
	return beginOnConn(ctx, p, func(c *connTx) (transaction, error) {
		t := &sqliteTx{connTx: c}
		if err := c.conn.Raw(func(conn any) error { t.reject = p.hooks.of(conn); return nil }); err != nil {
			t.close(ctx)
			return nil, err
		}
		t.reject.Store(true)
		return t, nil
	})
}

func (t *sqliteTx) commit(context.Context, uuid.UUID, string) error {
	t.reject.Store(false)
	err := t.Commit()
	if err != nil && strings.Contains(err.Error(), "no transaction is active") {
		err = fmt.Errorf("%w (%w)", errRolledBack, err)
	}
	return err
}

func (t *sqliteTx) close(context.Context) {
	_ = t.Rollback()
	if t.reject != nil {
		t.reject.Store(false)
	}
	_ = t.conn.Close()
}

// commitHooks holds, for each connection to SQLite, whether its commit hook rejects
// commits. Setting a hook anew for each transaction would leak: mattn/go-sqlite3
// keeps every hook until the connection closes.
type commitHooks struct {
	mu   sync.Mutex
	hook map[any]*atomic.Bool
}

// of returns the flag of a connection of a driver, and sets the hook of a new one.
func (h *commitHooks) of(conn any) *atomic.Bool {
	const maxConns = 1000 // closed connections are not removed one by one
	if !reflect.TypeOf(conn).Comparable() {
		return new(atomic.Bool) // not one of the two drivers
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	reject := h.hook[conn]
	if reject == nil {
		reject = new(atomic.Bool)
		setCommitHook(conn, reject)
		if h.hook == nil || len(h.hook) == maxConns {
			h.hook = map[any]*atomic.Bool{}
		}
		h.hook[conn] = reject
	}
	return reject
}

// setCommitHook makes a SQLite connection reject every commit while reject is true.
//
// modernc.org/sqlite and mattn/go-sqlite3 both have the method RegisterCommitHook,
// but with their own types, and this package does not depend on a driver. With
// other drivers, setCommitHook does nothing.
func setCommitHook(conn any, reject *atomic.Bool) {
	register := reflect.ValueOf(conn).MethodByName("RegisterCommitHook")
	if !register.IsValid() || register.Type().NumIn() != 1 {
		return
	}
	hook := register.Type().In(0)
	if hook.Kind() != reflect.Func || hook.NumIn() != 0 || hook.NumOut() != 1 ||
		!hook.Out(0).ConvertibleTo(reflect.TypeFor[int]()) {
		return
	}
	register.Call([]reflect.Value{reflect.MakeFunc(hook, func([]reflect.Value) []reflect.Value {
		code := 0
		if reject.Load() {
			code = 1
		}
		return []reflect.Value{reflect.ValueOf(code).Convert(hook.Out(0))}
	})})
}
