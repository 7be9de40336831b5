// To make it yours: change nothing. Keep the limits of openDatabase.

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// openDatabase opens an address such as sqlite:PATH, postgres://…, or mysql: and a DSN of
// github.com/go-sql-driver/mysql, such as mysql:user@tcp(host:3306)/game. Keep the password
// out of it, in PGPASSWORD or MYSQL_PWD: every process can read arguments.
func openDatabase(address string, connections int) (*sql.DB, dialect, error) {
	d, err := dialectOf(address)
	if err != nil {
		return nil, d, err
	}
	db, err := d.open(address)
	if err != nil { // err may contain the address, which has a password
		return nil, d, fmt.Errorf("-db: the %s driver rejects this address", d.sql)
	}
	if d.file { // one connection, so that callers in this process wait their turn fairly
		connections = 1
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	db.SetConnMaxIdleTime(3 * time.Minute) // sooner than a server or a proxy closes it
	return db, d, nil
}

// database runs the statements of the game.
type database struct {
	db      *sql.DB
	dialect dialect
	bound   sync.Map // of statements, what bind returned
}

// bind returns a statement as the database reads it.
func (d *database) bind(statement string) string {
	if bound, ok := d.bound.Load(statement); ok {
		return bound.(string)
	}
	bound := d.dialect.translate(statement)
	d.bound.Store(statement, bound)
	return bound
}

// querier is a *sql.DB or *sql.Tx.
type querier interface {
	QueryContext(ctx context.Context, query string, arguments ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, statement string, arguments ...any) (sql.Result, error)
}

// insertNew inserts a row unless its key exists.
func (d *database) insertNew(ctx context.Context, db querier, table, columns string, values ...any) error {
	places := strings.TrimSuffix(strings.Repeat("?, ", len(values)), ", ")
	_, err := db.ExecContext(ctx, d.bind("INSERT INTO "+table+" ("+columns+") VALUES ("+places+")"+
		" ON CONFLICT DO NOTHING"), values...)
	return err
}

// column returns the first column of each row.
func (d *database) column(
	ctx context.Context, db querier, query string, arguments ...any,
) (list []string, err error) {
	rows, err := db.QueryContext(ctx, d.bind(query), arguments...)
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
func (d *database) change(
	ctx context.Context, db querier, n int64, statement string, arguments ...any,
) error {
	done, err := db.ExecContext(ctx, d.bind(statement), arguments...)
	if err != nil {
		return err
	}
	changed, err := done.RowsAffected()
	if err == nil && changed != n {
		err = fmt.Errorf("%w: %d instead of %d", errRows, changed, n)
	}
	return err
}
