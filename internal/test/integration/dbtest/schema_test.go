package dbtest

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/ramptest"
)

// Several servers create the tables of a new database at once.
func TestTheSchemaIsCreatedByServersThatStartTogether(t *testing.T) {
	const servers, rounds = 6, 5
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			for range rounds {
				starts := make([]chan error, servers)
				connect := newEmpty(t, d.dialect)
				for n := range starts {
					db := connect(t)
					starts[n] = make(chan error, 1)
					go func() { starts[n] <- create(t.Context(), db, d.dialect) }()
				}
				for _, ended := range starts {
					check(t, <-ended)
				}
				store := must.Get(rampsql.New(rampsql.Config{DB: connect(t), Dialect: d.dialect,
					Logger: ramptest.Logger(t),
					Apply:  func(context.Context, *sql.Tx, ramp.Step) error { return nil }}))(t)
				check(t, store.Check(t.Context(), ""))
			}
		})
	}
}

// create runs the schema and a table of the game as one text.
func create(ctx context.Context, db *sql.DB, dialect rampsql.Dialect) error {
	_, err := db.ExecContext(ctx, dialect.Schema()+"CREATE TABLE IF NOT EXISTS game (id VARCHAR(64) PRIMARY KEY);")
	return err
}

// While one server creates the tables, another one waits for it and then finds them.
func TestTheSchemaWaitsForTheServerThatCreatesIt(t *testing.T) {
	connect := newEmpty(t, rampsql.PostgreSQL)
	db := connect(t)
	first := must.Get(db.Begin())(t)
	defer func() { _ = first.Rollback() }()
	must.Get(first.Exec(rampsql.PostgreSQL.Schema()))(t)
	second := make(chan error, 1)
	go func() { second <- create(t.Context(), connect(t), rampsql.PostgreSQL) }()
	for waiting := 0; waiting == 0; time.Sleep(time.Millisecond) {
		check(t, db.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
			WHERE NOT l.granted AND a.query LIKE '%ramp_orders%'`).Scan(&waiting))
		select {
		case err := <-second:
			t.Fatalf("it did not wait: %v", err)
		default:
		}
	}
	check(t, first.Commit())
	check(t, <-second)
}

// newEmpty creates a database without tables, and returns how to connect to it.
func newEmpty(t *testing.T, dialect rampsql.Dialect) func(t *testing.T) *sql.DB {
	t.Helper()
	name := "ramp_" + strings.ReplaceAll(uuid.NewString(), "-", "")[:12]
	d := databaseOf(t, dialect)
	dsn := d.empty(t, name)
	return func(t *testing.T) *sql.DB { t.Helper(); return open(t, d.driver, dsn) }
}
