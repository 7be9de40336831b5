package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	ramp "github.com/token-ramp/ramp-go"
	"modernc.org/sqlite"
)

// openDatabase opens sqlite:PATH, postgres://… or mysql://….
func openDatabase(address string) (*sql.DB, ramp.Dialect, error) {
	scheme, rest, _ := strings.Cut(address, ":")
	var db *sql.DB
	var dialect ramp.Dialect
	var err error
	switch scheme {
	case "sqlite":
		path, e := filepath.Abs(rest)
		if rest == "" || e != nil {
			return nil, 0, errors.New("-db: sqlite: needs a path")
		}
		// SQLite allows one writer at a time. With one connection, callers in
		// this process wait their turn fairly. The timeout applies to other
		// processes.
		dialect = ramp.SQLite
		query := url.Values{"_txlock": {"immediate"}, "_pragma": {"busy_timeout(10000)", "journal_mode(wal)", "synchronous(full)"}}
		file := url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}
		if db, err = sql.Open("sqlite", file.String()); err == nil {
			db.SetMaxOpenConns(1)
		}
	case "postgres", "postgresql":
		dialect = ramp.PostgreSQL
		if db, err = sql.Open("pgx", address); err == nil {
			db.SetMaxOpenConns(20)
		}
	case "mysql":
		dialect = ramp.MySQL
		var dsn string
		if dsn, err = mysqlDSN(address); err != nil {
			return nil, 0, err
		}
		if db, err = sql.Open("mysql", dsn); err == nil {
			db.SetMaxOpenConns(20)
			db.SetConnMaxLifetime(3 * time.Minute)
		}
	default:
		return nil, 0, errors.New("-db must be sqlite:PATH, postgres://… or mysql://…")
	}
	if err != nil { // err may contain the address, which has a password
		return nil, 0, fmt.Errorf("-db: the %s driver rejects this address", dialect)
	}
	db.SetMaxIdleConns(20)
	return db, dialect, nil
}

// mysqlDSN converts mysql://user:password@host:port/name?param=value into the
// driver's format.
func mysqlDSN(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || len(u.Path) < 2 {
		return "", errors.New("-db: must be mysql://user:password@host:port/name")
	}
	config := mysql.NewConfig()
	config.Net, config.Addr, config.DBName = "tcp", u.Host, u.Path[1:]
	if u.Port() == "" {
		config.Addr += ":3306"
	}
	config.User = u.User.Username()
	config.Passwd, _ = u.User.Password()
	dsn := config.FormatDSN()
	if u.RawQuery != "" {
		separator := "?"
		if strings.Contains(dsn, "?") {
			separator = "&"
		}
		dsn += separator + u.RawQuery
	}
	return dsn, nil
}

// describe returns where the data is, without the password.
func describe(address string) string {
	if path, ok := strings.CutPrefix(address, "sqlite:"); ok {
		if absolute, err := filepath.Abs(path); err == nil {
			path = absolute
		}
		return "SQLite in " + path
	}
	u, err := url.Parse(address)
	if err != nil {
		return "a database"
	}
	return u.Scheme + " on " + u.Host
}

// migrate creates missing tables. It retries, because two processes may start at the
// same time. A larger game uses a migration tool and a separate database user for
// this.
func migrate(ctx context.Context, db *sql.DB, dialect ramp.Dialect) (err error) {
	for attempt := range 10 {
		if attempt > 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(time.Duration(attempt) * 100 * time.Millisecond):
			}
		}
		if err = createTables(ctx, db, dialect); err == nil {
			return nil
		}
	}
	return fmt.Errorf("create the tables: %w", err)
}

// schema creates the game's own tables. Balances are whole numbers. The game rejects
// fractions, so nothing is rounded, and the database rejects negative balances.
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
    balance BIGINT      NOT NULL CHECK (balance >= 0),
    PRIMARY KEY (player, item)
);
CREATE TABLE IF NOT EXISTS swords (
    id       VARCHAR(64) NOT NULL PRIMARY KEY,
    player   VARCHAR(64) NOT NULL,
    order_id VARCHAR(64) NOT NULL DEFAULT '', -- the mint that it is set aside for, or that took it to the chain
    token_id VARCHAR(80) NOT NULL DEFAULT '', -- the token that it is on the chain
    UNIQUE (player, id), UNIQUE (order_id, id), UNIQUE (token_id, id) -- for lookups
);
CREATE TABLE IF NOT EXISTS conflicts (
    uuid    VARCHAR(36) NOT NULL, -- of the order that a result contradicted
    field   VARCHAR(64) NOT NULL,
    tx_hash VARCHAR(66) NOT NULL, -- of the result
    state   VARCHAR(16) NOT NULL, -- of the order
    at      BIGINT      NOT NULL,
    PRIMARY KEY (uuid, field, tx_hash)
);
`

func createTables(ctx context.Context, db *sql.DB, dialect ramp.Dialect) error {
	own := schema
	if dialect == ramp.MySQL { // whose text is not case-sensitive by default
		own = strings.ReplaceAll(own, ") NOT NULL", ") CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL")
	}
	for statement := range strings.SplitSeq(dialect.Schema()+own, ";\n") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// raced reports whether the database ended a transaction for racing another one.
func raced(err error) bool {
	var postgres interface{ SQLState() string } // of pgx and lib/pq
	var maria *mysql.MySQLError
	var lite *sqlite.Error // of modernc.org/sqlite
	switch {
	case errors.As(err, &postgres):
		return postgres.SQLState() == "40001" || postgres.SQLState() == "40P01" // serialization failure, deadlock
	case errors.As(err, &maria):
		return maria.Number == 1213 // deadlock
	case errors.As(err, &lite):
		return lite.Code()&0xff == 5 // SQLITE_BUSY
	}
	return false
}
