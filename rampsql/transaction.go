package rampsql

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

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
// transaction's own. PostgreSQL rejects every statement after an error, and only a
// statement of Apply can end its transaction.
type transaction interface {
	tx() *sql.Tx

	// connection returns that of the transaction.
	connection() *sql.Conn

	// giveUp rolls back and closes the connection, so that nobody gets it from the pool.
	giveUp()

	// commit commits if the transaction still holds what its step wrote: claim in the row of id.
	commit(ctx context.Context, id uuid.UUID, claim string) error

	// confirm ends a transaction that has read a row and written nothing: what it read then survives
	// whatever a commit survives.
	confirm() error

	// close rolls back. It returns the connection to the pool in its original state, or discards it.
	// It returns how the transaction had ended before, or nil.
	close(ctx context.Context) error
}

// commitTime limits a commit, which goes on if the context of its call ends. A backup can block
// commits for as long as it takes. Whether such a commit was stored, a repeat finds out.
const commitTime = 3 * time.Second

// committing returns the context of a commit.
func committing(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), commitTime)
}

var (
	//nolint:staticcheck // ST1005: Apply is a name
	errEnded = errors.New("Apply ended the transaction: it must not call Commit or Rollback, " +
		"nor send a statement that commits, such as CREATE TABLE on MySQL")
	//nolint:staticcheck // ST1005: Apply is a name
	errOutside = errors.New("Apply ended the transaction, as COMMIT does, and on MySQL CREATE TABLE, " +
		"or it ignored the error with which the database did: it must return every error of tx")
)

// ended returns errEnded for the error of a transaction that has ended, otherwise nil.
func ended(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return errEnded
	}
	return nil
}

var errRolledBack = errors.New("a statement in Apply failed, and the database rolled back " +
	"the whole transaction, but Apply ignored the error; it must return every error of tx")

// lost adds errOutside to the error of a savepoint that is not in its transaction any more.
func lost(err error) error {
	if vanished(err) && ended(err) == nil || strings.Contains(err.Error(), "transaction is aborted") {
		return fmt.Errorf("%w (%w)", err, errOutside)
	}
	return err
}

// vanished reports whether a savepoint is not in its transaction any more: Apply has ended that, or the
// database has. The texts are those of PostgreSQL, twice, of MySQL and MariaDB, and of SQLite.
func vanished(err error) bool {
	for _, text := range []string{
		"can only be used in transaction block", "savepoint \"ramp_rehearsal\" does not exist",
		"SAVEPOINT ramp_rehearsal does not exist", "no such savepoint",
	} {
		if strings.Contains(err.Error(), text) {
			return true
		}
	}
	return ended(err) != nil
}

// unusable adds to the error of a connection that cannot be used what Apply may have done.
func unusable(err error) error {
	if errors.Is(err, driver.ErrBadConn) {
		return fmt.Errorf("%w (the connection was lost, or Apply left rows open: "+
			"close them before the next statement)", err)
	}
	return err
}

type postgresTx struct{ *connTx }

func beginPostgreSQL(ctx context.Context, p pool) (transaction, error) {
	return beginOnConn(ctx, p, func(c *connTx) (transaction, error) { return postgresTx{c}, nil })
}

// commit asks first whether a statement of Apply has ended the transaction, because PostgreSQL
// answers COMMIT with success then, too.
func (t postgresTx) commit(ctx context.Context, id uuid.UUID, claim string) error {
	lost, err := t.lost(ctx, id, claim)
	if err != nil {
		return err
	}
	if lost {
		return cmp.Or(t.Rollback(), errOutside)
	}
	return named(t.Commit())
}

// named adds to the error of a commit that PostgreSQL has rolled back instead.
func named(err error) error {
	// The texts of pgx and lib/pq.
	if err != nil && (strings.Contains(err.Error(), "resulted in rollback") ||
		strings.Contains(err.Error(), "failed transaction")) {
		err = fmt.Errorf("%w (%w)", errRolledBack, err)
	}
	return err
}

// lost reports whether the connection is in no transaction any more. The driver pgx knows that
// without asking the server, and lib/pq itself refuses to commit then. Behind another driver, or
// one that wraps these, it looks for what the step wrote.
func (t postgresTx) lost(ctx context.Context, id uuid.UUID, claim string) (lost bool, err error) {
	asks := false
	err = t.conn.Raw(func(conn any) error {
		status, known := pgxStatus(conn)
		lost = known && status == 'I'
		asks = !known && !strings.HasPrefix(reflect.TypeOf(conn).String(), "*pq.")
		return nil
	})
	if err != nil || !asks {
		return lost, err
	}
	var stored string
	query := "SELECT claim FROM ramp_orders WHERE uuid = $1"
	err = t.QueryRowContext(ctx, query, id.String()).Scan(&stored)
	if errors.Is(err, sql.ErrNoRows) {
		return true, nil
	}
	return err == nil && stored != claim, named(err)
}

// pgxStatus returns the status of the transaction of a connection of github.com/jackc/pgx/v5/stdlib:
// 'I' is idle. This package does not depend on a driver, so it asks for two of the methods by their
// names: conn.Conn().PgConn().TxStatus(). They are constants, so the linker still drops other methods.
func pgxStatus(conn any) (status byte, known bool) {
	value, ok := called(reflect.ValueOf(conn).MethodByName("Conn"))
	if ok {
		value, ok = called(value.MethodByName("PgConn"))
	}
	if !ok {
		return 0, false
	}
	pgConn, known := value.Interface().(interface{ TxStatus() byte })
	if known {
		status = pgConn.TxStatus()
	}
	return status, known
}

// called returns the result of a method without arguments. ok is false if it is no such method.
func called(method reflect.Value) (result reflect.Value, ok bool) {
	if !method.IsValid() || method.Type().NumIn() != 0 || method.Type().NumOut() != 1 {
		return reflect.Value{}, false
	}
	return method.Call(nil)[0], true
}

// confirm commits: it waits for a standby, as the commit of the row did.
func (t postgresTx) confirm() error { return t.Commit() }

func (t postgresTx) close(context.Context) error {
	err := ended(t.Rollback())
	_ = t.conn.Close()
	return err
}

// connTx is a transaction and its connection, whose state it changes.
type connTx struct {
	*sql.Tx
	conn *sql.Conn
}

func (t *connTx) tx() *sql.Tx { return t.Tx }

func (t *connTx) connection() *sql.Conn { return t.conn }

func (t *connTx) giveUp() {
	_ = t.Rollback()
	_ = t.conn.Raw(func(any) error { return driver.ErrBadConn })
}

// confirm does nothing: neither InnoDB nor SQLite has something to wait for if nothing was written.
func (t *connTx) confirm() error { return nil }

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
			_ = t.close(ctx)
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
	ctx, cancel := committing(ctx)
	defer cancel()
	_, err := t.ExecContext(ctx, statement)
	if err == nil {
		err = t.Commit() // usually a no-op, but a proxy may not have passed autocommit on
	} else if strings.Contains(err.Error(), "'autocommit'") {
		err = fmt.Errorf("%w (%w), or Apply has left the database with USE", errRolledBack, err)
	}
	if err != nil && strings.Contains(err.Error(), "SAVEPOINT") { // which such a connection has for a commit
		err = fmt.Errorf("%w (%w)", errNested, err)
	}
	t.committed = err == nil
	return err
}

// close turns autocommit on again, which would commit an open transaction. So it
// does that only after the server has confirmed the rollback: after a canceled
// context, for example, database/sql may still be rolling back.
func (t *mysqlTx) close(ctx context.Context) error {
	rolledBack := t.Rollback()
	err := rolledBack
	if err == nil {
		ctx, cancel := committing(ctx)
		defer cancel()
		_, err = t.conn.ExecContext(ctx, "SET autocommit = 1")
	}
	if !t.committed && err != nil {
		_ = t.conn.Raw(func(any) error { return driver.ErrBadConn }) // discards it
	}
	_ = t.conn.Close()
	return ended(rolledBack)
}

type sqliteTx struct {
	*connTx
	hook *commitHook // of the connection
}

func beginSQLite(ctx context.Context, p pool) (transaction, error) {
	return beginOnConn(ctx, p, func(c *connTx) (transaction, error) {
		t := &sqliteTx{connTx: c}
		if err := c.conn.Raw(func(conn any) error { t.hook = p.hooks.of(conn); return nil }); err != nil {
			_ = t.close(ctx)
			return nil, err
		}
		t.hook.met.Store(false)
		t.hook.rejects.Store(true)
		return t, nil
	})
}

// commit looks for the claim first: after an error that rolled back everything and that
// Apply ignored, a savepoint begins a new transaction, whose commit would succeed.
func (t *sqliteTx) commit(ctx context.Context, id uuid.UUID, claim string) error {
	var stored string
	err := t.QueryRowContext(ctx, "SELECT claim FROM ramp_orders WHERE uuid = $1", id.String()).Scan(&stored)
	if errors.Is(err, sql.ErrNoRows) || err == nil && stored != claim {
		return errRolledBack
	}
	if err != nil {
		return err
	}
	t.hook.rejects.Store(false)
	err = t.Commit()
	if err != nil && strings.Contains(err.Error(), "no transaction is active") {
		err = fmt.Errorf("%w (%w)", errRolledBack, err)
	}
	return err
}

func (t *sqliteTx) close(context.Context) error {
	err := ended(t.Rollback())
	if t.hook != nil {
		t.hook.rejects.Store(false)
		if err == nil && t.hook.met.Load() {
			err = errOutside
		}
	}
	_ = t.conn.Close()
	return err
}

// commitHook is what the commit hook of a connection to SQLite does.
type commitHook struct {
	rejects atomic.Bool // every commit
	met     atomic.Bool // whether it has rejected one
}

// allows reports whether a commit may go on.
func (h *commitHook) allows() bool {
	if h.rejects.Load() {
		h.met.Store(true)
		return false
	}
	return true
}

// commitHooks holds the commit hook of each connection to SQLite. Setting a hook anew for
// each transaction would leak: mattn/go-sqlite3 keeps every hook until the connection
// closes.
type commitHooks struct {
	mu   sync.Mutex
	hook map[any]*commitHook
}

// of returns the hook of a connection of a driver, and sets that of a new one.
func (h *commitHooks) of(conn any) *commitHook {
	const maxConns = 1000 // closed connections are not removed one by one
	if !reflect.TypeOf(conn).Comparable() {
		return new(commitHook) // not one of the two drivers
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	hook := h.hook[conn]
	if hook == nil {
		hook = new(commitHook)
		setCommitHook(conn, hook)
		if h.hook == nil || len(h.hook) == maxConns {
			h.hook = map[any]*commitHook{}
		}
		h.hook[conn] = hook
	}
	return hook
}

// setCommitHook makes a SQLite connection ask before each commit.
//
// modernc.org/sqlite and mattn/go-sqlite3 both have the method RegisterCommitHook,
// but with their own types, and this package does not depend on a driver. With
// other drivers, setCommitHook does nothing.
func setCommitHook(conn any, ours *commitHook) {
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
		if !ours.allows() {
			code = 1
		}
		return []reflect.Value{reflect.ValueOf(code).Convert(hook.Out(0))}
	})})
}
