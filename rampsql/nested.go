package rampsql

import (
	"context"
	"database/sql"
	"errors"
	"strings"
)

// errNested says that the transactions of a store would be part of another one.
var errNested = errors.New("the connection is in a transaction already, such as one that a test rolls back " +
	"at its end: give each test a database of its own, because a store commits")

// nestedPostgreSQL asks twice when the transaction began: outside of one, each statement has its own.
func nestedPostgreSQL(ctx context.Context, conn *sql.Conn) (bool, error) {
	var began [2]string
	for i := range began {
		if err := conn.QueryRowContext(ctx, "SELECT now()::text").Scan(&began[i]); err != nil {
			return false, err
		}
	}
	return began[0] == began[1], nil
}

// nestedMySQL sets a savepoint, which ends with its statement unless that is part of a transaction. That
// there is none is said in the language of the server, with its name.
func nestedMySQL(ctx context.Context, conn *sql.Conn) (bool, error) {
	if _, err := conn.ExecContext(ctx, "SAVEPOINT ramp_check"); err != nil {
		return false, err
	}
	_, err := conn.ExecContext(ctx, "RELEASE SAVEPOINT ramp_check")
	if err != nil && strings.Contains(err.Error(), "ramp_check") {
		return false, nil
	}
	return err == nil, err
}

// nestedSQLite sets a setting to what it is, which SQLite allows only outside of a transaction.
func nestedSQLite(ctx context.Context, conn *sql.Conn) (bool, error) {
	var level string
	if err := conn.QueryRowContext(ctx, "PRAGMA synchronous").Scan(&level); err != nil {
		return false, err
	}
	_, err := conn.ExecContext(ctx, "PRAGMA synchronous = "+level)
	if err != nil && strings.Contains(err.Error(), "inside a transaction") {
		return true, nil
	}
	return false, err
}
