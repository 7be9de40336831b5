// This file creates the tables, as a step before each deployment. To make it yours: if you have
// migrations of your own, add the statements of rampsql's Dialect.Schema and those of the schema in
// database.go to them, and drop this file. Otherwise change nothing.

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/token-ramp/ramp-go/rampsql"
)

// bindWaiting lets the wallet of each order that waits belong to the player of its first order.
// Otherwise, after the table of wallets was created, a thief with the HMAC key could name the wallet
// of a player who burns before that player does, and be paid for it.
const bindWaiting = `
INSERT INTO wallets (wallet, player)
SELECT lower(o.user_address), s.player
FROM ramp_orders o JOIN sessions s ON s.id = o.session_id
WHERE o.state = 'accepted'
ORDER BY o.accepted_at, o.uuid
ON CONFLICT DO NOTHING`

// migration creates missing tables, and missing indexes while orders are written, and binds the wallets
// of orders that wait.
type migration struct {
	db      *sql.DB
	dialect rampsql.Dialect
	says    func(text string) // what it waits for
}

// migrationLock is the name of the lock that one migration at a time has. On PostgreSQL it is a number.
const migrationLock = "7242164"

// run migrates, or waits while another process does.
func (m *migration) run(ctx context.Context) error {
	conn, err := m.db.Conn(ctx) // the lock is that of a connection
	if err != nil {
		return err
	}
	defer conn.Close()
	try, release := "", ""
	switch m.dialect {
	case rampsql.PostgreSQL:
		try, release = "SELECT pg_try_advisory_lock("+migrationLock+")",
			"SELECT pg_advisory_unlock("+migrationLock+")"
	case rampsql.MySQL:
		// A lock is one of the whole server, with a name of at most 64 characters.
		name := "CONCAT('migration." + migrationLock + ".', MD5(DATABASE()))"
		try, release = "SELECT GET_LOCK("+name+", 0) = 1", "SELECT RELEASE_LOCK("+name+")"
	}
	if try != "" {
		// Do not wait in the database: building an index waits for every statement that runs.
		for had, waits := false, false; !had; waits = true {
			if err := conn.QueryRowContext(ctx, try).Scan(&had); err != nil {
				return fmt.Errorf("wait for another migration: %w", err)
			}
			if !had && !waits {
				m.says("another migration runs; waiting until it has ended")
			}
			if !had {
				if err := pause(ctx, 200*time.Millisecond); err != nil {
					return err
				}
			}
		}
		// as the end of the connection does
		defer func() { _, _ = conn.ExecContext(context.WithoutCancel(ctx), release) }()
	}
	indexes, err := m.createTables(ctx, conn)
	if err != nil {
		return err
	}
	if err := m.createIndexes(ctx, conn, indexes); err != nil {
		return err
	}
	statement := bindWaiting
	if m.dialect == rampsql.MySQL {
		statement = strings.Replace(statement, "CONFLICT DO NOTHING",
			"DUPLICATE KEY UPDATE wallet = wallets.wallet", 1)
	}
	if _, err = conn.ExecContext(ctx, statement); err == nil {
		expired := fmt.Sprintf("DELETE FROM pages WHERE expires_at < %d", time.Now().Unix())
		_, err = conn.ExecContext(ctx, expired)
	}
	return err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// createTables creates missing tables in one transaction. It returns the statements that create
// indexes on PostgreSQL, where an index in the transaction would block all writes.
func (m *migration) createTables(ctx context.Context, conn *sql.Conn) (indexes []string, err error) {
	own := schema
	if m.dialect == rampsql.MySQL { // whose text is not case-sensitive by default
		own = strings.ReplaceAll(own, ") NOT NULL", ") CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL")
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }()
	for statement := range strings.SplitSeq(m.dialect.Schema()+own, ";\n") {
		if m.dialect == rampsql.PostgreSQL && strings.Contains(statement, " INDEX IF ") {
			indexes = append(indexes, strings.Replace(statement, " INDEX ", " INDEX CONCURRENTLY ", 1))
		} else if strings.TrimSpace(statement) != "" {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return nil, fmt.Errorf("create the tables: %w", err)
			}
		}
	}
	return indexes, tx.Commit()
}

// createIndexes creates missing indexes on PostgreSQL, and those anew that a migration left invalid
// because it was interrupted: nothing uses such an index, and IF NOT EXISTS would accept it.
func (m *migration) createIndexes(ctx context.Context, conn *sql.Conn, indexes []string) error {
	if len(indexes) == 0 {
		return nil
	}
	var pid int
	if err := conn.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		return err
	}
	ended := make(chan struct{})
	watched := make(chan struct{})
	go func() { defer close(watched); m.watch(ctx, pid, ended) }()
	defer func() { close(ended); <-watched }()
	for {
		var invalid string
		err := conn.QueryRowContext(ctx, "SELECT i.indexrelid::regclass::text FROM pg_index i"+
			" WHERE i.indrelid = 'ramp_orders'::regclass AND NOT i.indisvalid LIMIT 1").Scan(&invalid)
		if errors.Is(err, sql.ErrNoRows) {
			break
		}
		if err == nil {
			m.says("the index " + invalid +
				" is invalid, because a migration was interrupted; it is made anew")
			_, err = conn.ExecContext(ctx, "DROP INDEX CONCURRENTLY "+invalid) // quoted by the server
		}
		if err != nil {
			return fmt.Errorf("drop an invalid index: %w", err)
		}
	}
	for _, statement := range indexes {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("create the indexes, and drop what is invalid with the next migration: %w", err)
		}
	}
	return nil
}

// watch says which transactions the process of PostgreSQL waits for: an index is built once every
// transaction that is older has ended.
func (m *migration) watch(ctx context.Context, pid int, ended chan struct{}) {
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
		err := m.db.QueryRowContext(ctx,
			`SELECT string_agg(format('process %s of user %s (%s, %s), since %s', pid, usename,
			coalesce(nullif(application_name, ''), 'no application_name'), state,
			date_trunc('second', xact_start)), '; ' ORDER BY pid)
			FROM pg_stat_activity WHERE pid = ANY (pg_blocking_pids($1))`, pid).Scan(&waits)
		if err == nil && waits.String != "" && waits.String != said {
			said = waits.String
			m.says("the index waits for the transaction of " + said +
				"; to end it: SELECT pg_terminate_backend(…)")
		}
	}
}
