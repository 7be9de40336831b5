// To make it yours: remove the databases that you do not use, and add the tables of schema to your
// migrations.
// Keep the limits of openDatabase.

package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/token-ramp/ramp-go/rampsql"
	_ "modernc.org/sqlite"
)

// connectTimeout limits a connection to one host of the database. Without it, a host that neither
// answers nor refuses would keep the driver from asking the next one.
const connectTimeout = 2 * time.Second

// openDatabase opens sqlite:PATH, postgres://…, or mysql: and a DSN of
// github.com/go-sql-driver/mysql, such as mysql:user@tcp(host:3306)/game. Keep the password
// out of it, in PGPASSWORD or MYSQL_PWD: every process can read arguments.
func openDatabase(address string, connections int) (db *sql.DB, dialect rampsql.Dialect, err error) {
	switch scheme, rest, _ := strings.Cut(address, ":"); scheme {
	case "sqlite":
		// SQLite allows one writer at a time. With one connection, callers in this
		// process wait their turn fairly. The timeout applies to other processes.
		dialect, connections = rampsql.SQLite, 1
		query := url.Values{"_txlock": {"immediate"},
			"_pragma": {"busy_timeout(10000)", "journal_mode(wal)", "synchronous(full)"}}
		db, err = sql.Open("sqlite", "file:"+url.PathEscape(rest)+"?"+query.Encode())
	case "postgres", "postgresql":
		dialect = rampsql.PostgreSQL
		var config *pgx.ConnConfig
		if config, err = pgx.ParseConfig(address); err == nil {
			config.ConnectTimeout = cmp.Or(config.ConnectTimeout, connectTimeout)
			db = stdlib.OpenDB(*config)
		}
	case "mysql":
		dialect = rampsql.MySQL
		var config *mysql.Config
		if config, err = mysql.ParseDSN(rest); err == nil {
			config.Passwd = cmp.Or(config.Passwd, os.Getenv("MYSQL_PWD")) // pgx reads PGPASSWORD itself
			config.Timeout = cmp.Or(config.Timeout, connectTimeout)
			if config.Params == nil {
				config.Params = map[string]string{}
			}
			config.Params["autocommit"] = "1" // which a server may have turned off
			db, err = sql.Open("mysql", config.FormatDSN())
		}
	default:
		return nil, "", errors.New("-db must be sqlite:PATH, postgres://… or mysql:DSN")
	}
	if err != nil { // err may contain the address, which has a password
		return nil, "", fmt.Errorf("-db: the %s driver rejects this address", dialect)
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	db.SetConnMaxIdleTime(3 * time.Minute) // sooner than a server or a proxy closes it
	return db, dialect, nil
}

// schema creates the game's own tables. Balances are whole numbers. The game rejects
// fractions, so nothing is rounded. A negative balance is a debt, such as after a chargeback.
const schema = `
CREATE TABLE IF NOT EXISTS sessions (
    id         VARCHAR(64) NOT NULL PRIMARY KEY,
    player     VARCHAR(64) NOT NULL,
    token_hash VARCHAR(64) NOT NULL,
    expires_at BIGINT      NOT NULL -- of the token; the session itself is kept for late results
);
CREATE TABLE IF NOT EXISTS inventory (
    player  VARCHAR(64) NOT NULL,
    item    VARCHAR(64) NOT NULL,
    balance BIGINT      NOT NULL,
    PRIMARY KEY (player, item)
);
CREATE TABLE IF NOT EXISTS mailbox (
    order_id   VARCHAR(36) NOT NULL,
    item       VARCHAR(64) NOT NULL,
    session_id VARCHAR(64) NOT NULL, -- of the order
    amount     BIGINT      NOT NULL,
    taken      BIGINT      NOT NULL DEFAULT 0, -- 1 when the player has taken it
    PRIMARY KEY (order_id, item), UNIQUE (session_id, order_id, item) -- for lookups
);
CREATE TABLE IF NOT EXISTS swords (
    id       VARCHAR(64) NOT NULL PRIMARY KEY,
    player   VARCHAR(64) NOT NULL,
    order_id VARCHAR(64) NOT NULL DEFAULT '', -- the mint that reserved it, or took it
    token_id VARCHAR(80) NOT NULL DEFAULT '', -- the token that it is on the chain
    UNIQUE (player, id), UNIQUE (order_id, id), UNIQUE (token_id, id) -- for lookups
);
CREATE TABLE IF NOT EXISTS conflicts (
    uuid    VARCHAR(36) NOT NULL, -- of the order that a result contradicted
    field   VARCHAR(64) NOT NULL,
    tx_hash VARCHAR(66) NOT NULL, -- of the result
    state   VARCHAR(16) NOT NULL, -- of the order
    at      VARCHAR(20) NOT NULL, -- in RFC 3339, UTC
    closed  VARCHAR(999) NOT NULL DEFAULT '', -- who has resolved it, and why
    PRIMARY KEY (uuid, field, tx_hash)
);
CREATE TABLE IF NOT EXISTS moved ( -- what became tokens, for -cap
    item        VARCHAR(64) NOT NULL,
    who         VARCHAR(64) NOT NULL, -- a player, or empty for all
    hour        BIGINT NOT NULL, -- since 1970, the newest in which something moved
    in_hour     BIGINT NOT NULL,
    before_hour BIGINT NOT NULL, -- in the hour before it
    day         BIGINT NOT NULL,
    in_day      BIGINT NOT NULL,
    before_day  BIGINT NOT NULL,
    PRIMARY KEY (item, who), UNIQUE (item, hour, who), UNIQUE (item, day, who) -- for lookups
);
CREATE TABLE IF NOT EXISTS findings (
    id      VARCHAR(64) NOT NULL PRIMARY KEY, -- of what does not fit, the same in all books
    kind    VARCHAR(32) NOT NULL,
    uuid    VARCHAR(36) NOT NULL, -- of its first order, or empty
    tx_hash VARCHAR(66) NOT NULL, -- of its first event, or empty
    about   TEXT        NOT NULL, -- all its orders and events
    mint    BIGINT      NOT NULL, -- 1 if it is a mint that was not signed for an order
    detail  VARCHAR(999) NOT NULL,
    at      VARCHAR(20) NOT NULL, -- in RFC 3339, UTC
    entry   VARCHAR(36) NOT NULL DEFAULT '' -- of the decision that has ended it
);
CREATE TABLE IF NOT EXISTS shop (
    id     INTEGER      NOT NULL PRIMARY KEY, -- 1
    closed VARCHAR(999) NOT NULL -- who has closed it, and why; empty if it is open
);
CREATE TABLE IF NOT EXISTS decisions (
    id     VARCHAR(36)  NOT NULL PRIMARY KEY,
    at     VARCHAR(20)  NOT NULL, -- in RFC 3339, UTC
    name   VARCHAR(16)  NOT NULL, -- close, open, resolve or prune
    about  VARCHAR(99)  NOT NULL, -- the order or transaction of a conflict, or which orders were deleted
    who    VARCHAR(99)  NOT NULL,
    reason VARCHAR(999) NOT NULL
);
CREATE TABLE IF NOT EXISTS entries (
    id       VARCHAR(36)   NOT NULL PRIMARY KEY,
    at       BIGINT        NOT NULL, -- milliseconds since 1970, UTC
    who      VARCHAR(255)  NOT NULL,
    reason   VARCHAR(4096) NOT NULL,
    finding  VARCHAR(64)   NOT NULL,
    order_id VARCHAR(36)   NOT NULL, -- or ''
    tx_hash  VARCHAR(66)   NOT NULL, -- or ''
    moved    VARCHAR(4096) NOT NULL, -- JSON
    reverses VARCHAR(36)   NOT NULL, -- or ''
    UNIQUE (at, id) -- for lookups
);
CREATE TABLE IF NOT EXISTS wallets (
    wallet VARCHAR(42) NOT NULL PRIMARY KEY, -- in lower case
    player VARCHAR(64) NOT NULL
);
` + pagesSchema

// bind converts the placeholders of a statement to those of the database.
func (g *game) bind(statement string) string {
	if g.dialect != rampsql.PostgreSQL {
		return statement
	}
	if bound, ok := g.bound.Load(statement); ok {
		return bound.(string)
	}
	parts := strings.Split(statement, "?")
	for n := range parts[1:] {
		parts[n] += "$" + strconv.Itoa(n+1)
	}
	bound := strings.Join(parts, "")
	g.bound.Store(statement, bound)
	return bound
}

// database is a *sql.DB or *sql.Tx.
type database interface {
	QueryContext(ctx context.Context, query string, arguments ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, statement string, arguments ...any) (sql.Result, error)
}

// insertNew inserts a row unless its key exists.
func (g *game) insertNew(ctx context.Context, db database, table, columns string, values ...any) error {
	unless := " ON CONFLICT DO NOTHING"
	if g.dialect == rampsql.MySQL { // whose INSERT IGNORE also ignores other errors
		first, _, _ := strings.Cut(columns, ",")
		unless = fmt.Sprintf(" ON DUPLICATE KEY UPDATE %[1]s = %[2]s.%[1]s", first, table)
	}
	places := strings.TrimSuffix(strings.Repeat("?, ", len(values)), ", ")
	_, err := db.ExecContext(ctx,
		g.bind("INSERT INTO "+table+" ("+columns+") VALUES ("+places+")"+unless), values...)
	return err
}

// column returns the first column of each row.
func (g *game) column(ctx context.Context, db database, query, argument string) (list []string, err error) {
	rows, err := db.QueryContext(ctx, g.bind(query), argument)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		list = append(list, text)
	}
	return list, rows.Err()
}

// errRows is wrapped by the error of a statement that changed another number of rows.
var errRows = errors.New("the wrong number of rows was changed")

// change runs a statement that must change n rows.
func (g *game) change(ctx context.Context, db database, n int64, statement string, arguments ...any) error {
	done, err := db.ExecContext(ctx, g.bind(statement), arguments...)
	if err != nil {
		return err
	}
	changed, err := done.RowsAffected()
	if err == nil && changed != n {
		err = fmt.Errorf("%w: %d instead of %d", errRows, changed, n)
	}
	return err
}
