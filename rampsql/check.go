package rampsql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Check returns an error if the database is not of the dialect or too old, if the table,
// a column or the unique index of tx_hash is missing, if a column is too narrow or of
// another type, if the user may not write, or if a pooler loses prepared statements,
// which shows if the pool has a second connection. [ramp.Handler.Check] calls it. It changes
// nothing.
func (s *Store) Check(ctx context.Context) error {
	db := s.config.DB
	err := s.check(ctx, db)
	cause := err
	if err == nil && db.Stats().MaxOpenConnections != 1 {
		cause = s.onSecondConnection(ctx, db)
	}
	var state interface{ SQLState() string }
	if errors.As(cause, &state) && (state.SQLState() == "42P05" || state.SQLState() == "26000") {
		return fmt.Errorf("ramp: check: a pooler loses the driver's prepared statements; "+
			"docs/databases.md has settings for it: %w", cause)
	}
	return err
}

// onSecondConnection repeats a statement that another connection has prepared. Behind a
// pooler, both may be one connection of the server, which knows the name already.
func (s *Store) onSecondConnection(ctx context.Context, db *sql.DB) error {
	first, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer first.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Second) // the others may be in use
	defer cancel()
	var version string
	return db.QueryRowContext(ctx, s.version).Scan(&version)
}

func (s *Store) check(ctx context.Context, db *sql.DB) error {
	if err := db.PingContext(ctx); err != nil {
		return fmt.Errorf("ramp: check: %w", err)
	}
	var version string
	if err := db.QueryRowContext(ctx, s.version).Scan(&version); err != nil {
		return fmt.Errorf("ramp: check: the dialect is %s, but the database does not answer like it: %w",
			s.config.Dialect, err)
	}
	if err := s.checkVersion(version); err != nil {
		return fmt.Errorf("ramp: check: %w", err)
	}
	const columns = "direction, " + orderColumns
	for _, statement := range []string{
		"SELECT " + columns + " FROM ramp_orders WHERE 1 = 0",
		// Matches no row; the key is for sql_safe_updates of MySQL.
		"UPDATE ramp_orders SET claim = claim WHERE uuid IS NULL",
		"INSERT INTO ramp_orders (" + columns + ") SELECT " + columns + " FROM ramp_orders WHERE 1 = 0",
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("ramp: check: table ramp_orders, which Dialect.Schema creates, "+
				"is unusable for %.6s: %w", statement, err)
		}
	}
	var column, kind string
	err := db.QueryRowContext(ctx, s.wrongColumn).Scan(&column, &kind)
	if err == nil {
		return fmt.Errorf("ramp: check: column %s of table ramp_orders is of type %s, "+
			"or narrower than Dialect.Schema creates it", column, kind)
	}
	var indexes int
	if errors.Is(err, sql.ErrNoRows) {
		err = db.QueryRowContext(ctx, s.hashIndexes).Scan(&indexes)
	}
	switch {
	case err != nil:
		return fmt.Errorf("ramp: check: read the columns and indexes: %w", err)
	case indexes == 0:
		return errors.New("ramp: check: table ramp_orders has no unique index of tx_hash alone, " +
			"as Dialect.Schema creates it: one transaction could end two orders")
	}
	return nil
}
