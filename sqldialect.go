package ramp

import (
	"context"
	"database/sql"
	"database/sql/driver"
	_ "embed" // for the schema files
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"
)

// Dialect is a kind of SQL database.
type Dialect string

// The dialects.
const (
	PostgreSQL Dialect = "postgresql" // PostgreSQL 9.5 or newer
	MySQL      Dialect = "mysql"      // MySQL 8.0, MariaDB 10.5 (with InnoDB), TiDB 8.5, or newer
	SQLite     Dialect = "sqlite"     // SQLite 3.37 or newer
)

// dialect is all that differs between the databases.
type dialect struct {
	schema string

	version  string    // asks for the version
	products []product // the first whose name is in the answer, or the last

	wrongColumn string // selects a column that is too narrow or of another type, and its type
	hashIndexes string // counts the unique indexes of tx_hash alone

	insert    string // inserts an order, unless its UUID exists
	returning bool   // insert returns the row
	lock      string // selects an order and locks it
	latest    string // makes a SELECT read what was committed last, not a snapshot
	literal   bool   // arguments are written into the statement

	begin func(ctx context.Context, p pool) (transaction, error)
}

// pool is where a transaction gets its connection.
type pool struct {
	db      *sql.DB
	options *sql.TxOptions
	hooks   *commitHooks
}

// product is a database that a dialect fits, and its oldest version.
type product struct {
	name         string
	major, minor int
}

var (
	//go:embed schema/postgresql.sql
	schemaPostgreSQL string
	//go:embed schema/mysql.sql
	schemaMySQL string
	//go:embed schema/sqlite.sql
	schemaSQLite string
)

// orderColumns are the columns that readOrder reads. The direction, which follows
// from the intent, is a column for lookups only.
const (
	orderColumns = "uuid, claim, state, network, project_id, session_id, user_address, digest, " +
		"intent, tx_hash, reason, accepted_at, finished_at"
	selectOrders = "SELECT " + orderColumns + " FROM ramp_orders "
	insertOrder  = "INSERT INTO ramp_orders (direction, " + orderColumns + ") VALUES " +
		"($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, NULL, '', $11, "
	orReturn    = ") ON CONFLICT (uuid) DO UPDATE SET claim = ramp_orders.claim RETURNING " + orderColumns
	lockOrder   = selectOrders + "WHERE uuid = $1 FOR UPDATE"
	wrongColumn = "SELECT column_name, data_type FROM information_schema.columns" +
		" WHERE table_schema = %s AND table_name = 'ramp_orders' AND (CASE" +
		" WHEN column_name IN ('accepted_at', 'finished_at') THEN data_type <> 'bigint'" +
		" ELSE column_name IN ('uuid', 'claim', 'state', 'direction', 'network', 'project_id'," +
		" 'session_id', 'user_address', 'digest', 'intent', 'tx_hash', 'reason')" +
		" AND data_type NOT LIKE '%%char%%' AND data_type NOT LIKE '%%text'" +
		" AND data_type NOT IN ('uuid', 'enum', 'USER-DEFINED') END" +
		" OR character_maximum_length < CASE column_name WHEN 'uuid' THEN 36 WHEN 'claim' THEN 26" +
		" WHEN 'state' THEN 9 WHEN 'direction' THEN 4 WHEN 'network' THEN 7 WHEN 'digest' THEN 66" +
		" WHEN 'tx_hash' THEN 66 WHEN 'reason' THEN 4096 WHEN 'intent' THEN 65535 ELSE CASE" +
		" WHEN column_name IN ('project_id', 'session_id', 'user_address') THEN 1024 ELSE 0 END END)"
)

// values returns the dialect's values. Those of an unknown dialect have no schema.
func (d Dialect) values() *dialect {
	switch d {
	case PostgreSQL:
		return &dialect{
			schema:  schemaPostgreSQL,
			version: "SHOW server_version", products: []product{{"PostgreSQL", 9, 5}},
			wrongColumn: fmt.Sprintf(wrongColumn, "current_schema()"),
			hashIndexes: "SELECT count(*) FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]" +
				" WHERE i.indrelid = 'ramp_orders'::regclass AND i.indisunique AND i.indisvalid AND i.indnatts = 1 AND a.attname = 'tx_hash'" +
				" AND COALESCE(pg_get_expr(i.indpred, i.indrelid), '') IN ('', '(tx_hash IS NOT NULL)')",
			// DEFAULT is NULL here. SQLite rejects it, and PostgreSQL has no IIF, so that a
			// wrong dialect fails at the first order and not at its result.
			insert: insertOrder + "DEFAULT" + orReturn, returning: true, lock: lockOrder,
			begin: beginPostgreSQL,
		}
	case MySQL:
		return &dialect{
			schema:  schemaMySQL,
			version: "SELECT @@version", products: []product{{"MariaDB", 10, 5}, {"MySQL", 8, 0}},
			wrongColumn: fmt.Sprintf(wrongColumn, "DATABASE()"),
			hashIndexes: "SELECT COUNT(*) FROM (SELECT index_name FROM information_schema.statistics" +
				" WHERE table_schema = DATABASE() AND table_name = 'ramp_orders' AND non_unique = 0" +
				" GROUP BY index_name HAVING COUNT(*) = 1 AND MAX(column_name) = 'tx_hash' AND MAX(sub_part) IS NULL) AS found",
			// Not INSERT IGNORE, which turns other errors into warnings, and locks
			// an existing row so weakly that two repeats can deadlock.
			insert: insertOrder + "NULL) ON DUPLICATE KEY UPDATE uuid = ramp_orders.uuid", lock: lockOrder,
			// Not FOR UPDATE: two that lost against one transaction would deadlock.
			latest:  " LOCK IN SHARE MODE",
			literal: true, begin: beginMySQL,
		}
	case SQLite:
		return &dialect{
			schema:  schemaSQLite,
			version: "SELECT sqlite_version()", products: []product{{"SQLite", 3, 37}},
			wrongColumn: "SELECT name, type FROM pragma_table_info('ramp_orders') WHERE name IN ('accepted_at', 'finished_at') AND upper(type) NOT LIKE '%INT%'",
			hashIndexes: "SELECT COUNT(*) FROM pragma_index_list('ramp_orders') AS i WHERE i.\"unique\" = 1 AND i.partial = 0" +
				" AND (SELECT group_concat(name) FROM pragma_index_info(i.name)) = 'tx_hash'",
			insert: insertOrder + "IIF(0, 0, NULL)" + orReturn, returning: true,
			// SQLite has no FOR UPDATE. A write takes its only lock.
			lock:  "UPDATE ramp_orders SET claim = claim WHERE uuid = $1 RETURNING " + orderColumns,
			begin: beginSQLite,
		}
	default:
		return &dialect{}
	}
}

// Schema returns the statements that create the table of a [SQLStore], for your
// migrations. The module's directory schema has them as files too. Servers that start
// together may all run them: run the whole text at once, or in one transaction, because
// on PostgreSQL its first statement makes other servers wait until the transaction ends.
// It is empty for an unknown dialect.
func (d Dialect) Schema() string { return d.values().schema }

// checkVersion returns an error if the database is too old. A fork may format its
// version differently. That is not an error.
func (d *dialect) checkVersion(version string) error {
	want := d.products[len(d.products)-1]
	for _, p := range d.products {
		if strings.Contains(version, p.name) {
			want = p
			break
		}
	}
	var major, minor int
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n > 0 &&
		(major < want.major || major == want.major && minor < want.minor) {
		return fmt.Errorf("the database is %s %d.%d, but must be %d.%d or newer", want.name, major, minor, want.major, want.minor)
	}
	return nil
}

// bind returns a statement and its arguments as they are sent. Each statement has $1, $2
// and so on in this order, because SQLite counts them by where they first stand.
func (d *dialect) bind(statement string, args ...any) (string, []any) {
	if d.literal {
		return literally(statement, args...), nil
	}
	return statement, args
}

// literally writes the arguments into the statement, because with arguments the
// driver would prepare the statement first, in another round trip.
func literally(statement string, args ...any) string {
	for n := len(args); n > 0; n-- { // $10 before $1; no literal has a $
		statement = strings.ReplaceAll(statement, "$"+strconv.Itoa(n), literal(args[n-1]))
	}
	return statement
}

// literal writes a value for MySQL. Text with anything but letters, digits and
// dashes is written in hex, which has the same meaning under every sql_mode and
// character set.
func literal(value any) string {
	text, ok := value.(string)
	if !ok {
		return fmt.Sprintf("%d", value)
	}
	const safe = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	if strings.Trim(text, safe) != "" {
		return "_utf8mb4 X'" + hex.EncodeToString([]byte(text)) + "'"
	}
	return "'" + text + "'"
}

// transaction is a transaction of a [SQLStore]. It closes a gap of MySQL and
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

var errRolledBack = errors.New("a statement in Apply failed, and the database rolled back the whole transaction, " +
	"but Apply ignored the error; it must return every error of tx")

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
func beginOnConn(ctx context.Context, p pool, prepare func(*connTx) (transaction, error)) (transaction, error) {
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
