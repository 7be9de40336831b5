// This file creates the tables, as a step before each deployment. To make it yours: if you have
// migrations of your own, add the statements of rampsql's Dialect.Schema and those of the schema in
// schema.go to them, with each new release also those of Dialect.Migrations, and drop this file.
// Otherwise change nothing.

package main

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
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

// migration creates missing tables, and missing columns and indexes while orders are written, and binds
// the wallets of orders that wait.
type migration struct {
	db      *sql.DB
	dialect dialect
	says    func(text string) // what it waits for
}

// run migrates, or waits while another process does.
func (m *migration) run(ctx context.Context) error {
	conn, err := m.db.Conn(ctx) // the lock is that of a connection
	if err != nil {
		return err
	}
	defer conn.Close()
	if m.dialect.lock != "" {
		// Do not wait in the database: building an index waits for every statement that runs.
		for had, waits := false, false; !had; waits = true {
			if err := conn.QueryRowContext(ctx, m.dialect.lock).Scan(&had); err != nil {
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
		defer func() { _, _ = conn.ExecContext(context.WithoutCancel(ctx), m.dialect.unlock) }()
	}
	if err := m.upgrade(ctx, conn); err != nil {
		return fmt.Errorf("upgrade the table of orders: %w", err)
	}
	indexes, err := m.createTables(ctx, conn)
	if err != nil {
		return err
	}
	if m.dialect.createIndexes != nil {
		if err := m.dialect.createIndexes(ctx, m.db, conn, indexes, m.says); err != nil {
			return err
		}
	}
	if _, err = conn.ExecContext(ctx, m.dialect.translate(bindWaiting)); err == nil {
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

// upgrade brings a table of orders that an earlier release has created to the version of this one.
func (m *migration) upgrade(ctx context.Context, conn *sql.Conn) error {
	version, err := m.dialect.sql.Version(ctx, conn)
	if err != nil || version == 0 { // there is none
		return err
	}
	for _, statement := range m.dialect.sql.Migrations(version) {
		if m.dialect.createIndexes != nil && strings.Contains(statement, " INDEX ") {
			err = m.dialect.createIndexes(ctx, m.db, conn, []string{statement}, m.says)
		} else {
			err = m.change(ctx, conn, statement)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// change runs a statement that locks a table for a moment. It waits for each transaction that has begun,
// and every call would wait behind it. So it gives up after a second, and tries again.
func (m *migration) change(ctx context.Context, conn *sql.Conn, statement string) error {
	if m.dialect.impatient != "" {
		if _, err := conn.ExecContext(ctx, m.dialect.impatient); err != nil {
			return err
		}
		defer func() { _, _ = conn.ExecContext(context.WithoutCancel(ctx), m.dialect.patient) }()
	}
	for said := false; ; said = true {
		_, err := conn.ExecContext(ctx, statement)
		if err == nil || m.dialect.gaveUp == "" || !strings.Contains(err.Error(), m.dialect.gaveUp) {
			return err
		}
		if !said {
			m.says("a transaction holds the table of orders; retrying until it has ended")
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

// createTables creates missing tables in one transaction. It returns the statements that create
// indexes, where an index in the transaction would block all writes.
func (m *migration) createTables(ctx context.Context, conn *sql.Conn) (indexes []string, err error) {
	var statements []string
	for statement := range strings.SplitSeq(schema, ";\n") {
		statements = append(statements, m.dialect.translate(statement))
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }()
	for _, statement := range append(strings.Split(m.dialect.sql.Schema(), ";\n"), statements...) {
		if m.dialect.createIndexes != nil && strings.Contains(statement, " INDEX IF ") {
			indexes = append(indexes, statement)
		} else if strings.TrimSpace(statement) != "" {
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return nil, fmt.Errorf("create the tables: %w", err)
			}
		}
	}
	return indexes, tx.Commit()
}
