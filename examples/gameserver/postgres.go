// To make it yours: remove this file if you do not use PostgreSQL.

package main

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/token-ramp/ramp-go/rampsql"
)

func init() {
	const lock = "7242164" // of this program
	d := dialect{sql: rampsql.PostgreSQL, form: "postgres://…", open: openPostgreSQL,
		translate: numberArguments, denied: "permission denied for",
		lock: "SELECT pg_try_advisory_lock(" + lock + ")", unlock: "SELECT pg_advisory_unlock(" + lock + ")",
		impatient: "SET lock_timeout = '1s'", patient: "RESET lock_timeout", gaveUp: "SQLSTATE 55P03",
		createIndexes: createPostgreSQLIndexes}
	dialects["postgres"], dialects["postgresql"] = d, d
}

func openPostgreSQL(address string) (*sql.DB, error) {
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return nil, err
	}
	config.ConnectTimeout = cmp.Or(config.ConnectTimeout, connectTimeout)
	return stdlib.OpenDB(*config), nil
}

// numberArguments writes $1, $2, … for each ?.
func numberArguments(statement string) string {
	parts := strings.Split(statement, "?")
	for n := range parts[1:] {
		parts[n] += "$" + strconv.Itoa(n+1)
	}
	return strings.Join(parts, "")
}

// createPostgreSQLIndexes creates missing indexes while orders are written, and those anew that a migration
// left invalid because it was interrupted: nothing uses such an index, and IF NOT EXISTS would accept it.
func createPostgreSQLIndexes(ctx context.Context, db *sql.DB, conn *sql.Conn, statements []string,
	says func(text string)) error {
	if len(statements) == 0 {
		return nil
	}
	var pid int
	if err := conn.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		return err
	}
	ended := make(chan struct{})
	watched := make(chan struct{})
	go func() { defer close(watched); watchPostgreSQL(ctx, db, pid, ended, says) }()
	defer func() { close(ended); <-watched }()
	for {
		var invalid string
		err := conn.QueryRowContext(ctx, "SELECT i.indexrelid::regclass::text FROM pg_index i"+
			" WHERE i.indrelid = 'ramp_orders'::regclass AND NOT i.indisvalid LIMIT 1").Scan(&invalid)
		if errors.Is(err, sql.ErrNoRows) {
			break
		}
		if err == nil {
			says("the index " + invalid +
				" is invalid, because a migration was interrupted; it is made anew")
			_, err = conn.ExecContext(ctx, "DROP INDEX CONCURRENTLY "+invalid) // quoted by the server
		}
		if err != nil {
			return fmt.Errorf("drop an invalid index: %w", err)
		}
	}
	for _, statement := range statements {
		if !strings.Contains(statement, " CONCURRENTLY ") { // it is of Schema
			statement = strings.Replace(statement, " INDEX ", " INDEX CONCURRENTLY ", 1)
		}
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("create the indexes, and drop what is invalid with the next migration: %w", err)
		}
	}
	return nil
}

// watchPostgreSQL says which transactions a process of the database waits for: an index is built once every
// transaction that is older has ended.
func watchPostgreSQL(ctx context.Context, db *sql.DB, pid int, ended chan struct{},
	says func(text string)) {
	said := ""
	for {
		select {
		case <-ended:
			return
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
		var waits sql.NullString
		err := db.QueryRowContext(ctx,
			`SELECT string_agg(format('process %s of user %s (%s, %s), since %s', pid, usename,
			coalesce(nullif(application_name, ''), 'no application_name'), state,
			date_trunc('second', xact_start)), '; ' ORDER BY pid)
			FROM pg_stat_activity WHERE pid = ANY (pg_blocking_pids($1))`, pid).Scan(&waits)
		if err == nil && waits.String != "" && waits.String != said {
			said = waits.String
			says("the index waits for the transaction of " + said +
				"; to end it: SELECT pg_terminate_backend(…)")
		}
	}
}
