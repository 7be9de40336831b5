package dbtest

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/rollback"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/ramptest"
)

// twoSchemas returns a database whose only connection is in one schema, and the name of another. Both have
// the tables.
func twoSchemas(t *testing.T, d database) (db *sql.DB, here, there string) {
	t.Helper()
	var names [2]string
	for n := range names {
		names[n] = "ramp_" + strings.ReplaceAll(uuid.NewString(), "-", "")[:12]
		db = open(t, d.driver, d.empty(t, names[n]))
		run(t, db, d.dialect.Schema())
	}
	db.SetMaxOpenConns(1)
	return db, names[1], names[0]
}

// A part of the game leaves the only connection in the schema of another shard, outside of an order or in
// Apply. No order is written there: the connection is given up, and the order goes on with a new one.
func TestNoOrderIsWrittenWhereAConnectionWasLeft(t *testing.T) {
	eachServer(t, func(t *testing.T, d database) {
		for _, c := range []struct {
			name  string
			apply func(there string) apply
			leave func(t *testing.T, db *sql.DB, there string)
		}{
			{"outside of an order", func(string) apply { return applyNothing },
				func(t *testing.T, db *sql.DB, there string) { t.Helper(); run(t, db, fmt.Sprintf(d.enter, there)) }},
			{"in Apply", func(there string) apply {
				left := false
				return func(ctx context.Context, tx *sql.Tx, step ramp.Step) (err error) {
					if step.Effect.Kind == ramp.Take && !left {
						_, err = tx.ExecContext(ctx, fmt.Sprintf(d.enter, there))
						left = true
					}
					return err
				}
			}, func(*testing.T, *sql.DB, string) {}},
		} {
			t.Run(c.name, func(t *testing.T) {
				db, here, there := twoSchemas(t, d)
				store := must.Get(rampsql.New(rampsql.Config{DB: db, Dialect: d.dialect, Apply: c.apply(there),
					Logger: ramptest.Logger(t)}))(t)
				for n := range 3 {
					o := newOrder("alice", mint("gold", 5))
					_, err := store.Update(t.Context(), o.id, o.accept())
					if err != nil && strings.Contains(err.Error(), "left") {
						take(t, store, o.id, o.accept()) // as the next delivery does
					} else {
						check(t, err)
					}
					c.leave(t, db, there)
					take(t, store, o.id, ramp.Finish(o.report(success), time.Now()))
					for schema, want := range map[string]int{here: n + 1, there: 0} {
						var rows int
						check(t, db.QueryRow("SELECT COUNT(*) FROM "+schema+
							".ramp_orders WHERE state = 'succeeded'").Scan(&rows))
						equal(t, fmt.Sprintf("orders in %s, where here is %s", schema, here), rows, want)
					}
				}
			})
		}
	})
}

// In a test, what Apply leaves behind on its connection is an error that names it.
func TestATestSeesWhatApplyLeavesOnTheConnection(t *testing.T) {
	for _, c := range []struct {
		dialect          rampsql.Dialect
		statement, names string // what it sets; "" for what ends with the transaction
	}{
		{rampsql.PostgreSQL, "SET search_path = pg_catalog", "search_path"},
		{rampsql.PostgreSQL, "SET ROLE pg_monitor", "current_user"},
		{rampsql.PostgreSQL, "SET statement_timeout = 12345", "statement_timeout"},
		{rampsql.PostgreSQL, "SET LOCAL search_path = pg_catalog", ""},
		{rampsql.PostgreSQL, "SET LOCAL ROLE pg_monitor", ""},
		{rampsql.MySQL, "SET SESSION sql_mode = ''", "sql_mode"},
		{rampsql.MySQL, "SET time_zone = '+07:00'", "time_zone"},
		{rampsql.MySQL, "USE information_schema", "database"},
		{rampsql.MySQL, "SELECT 1", ""},
		{rampsql.SQLite, "PRAGMA query_only = 0", ""},
		{rampsql.SQLite, "CREATE TEMP TABLE ramp_orders (n INTEGER)", "temporary table ramp_orders"},
	} {
		t.Run(c.statement, func(t *testing.T) {
			d := databaseOf(t, c.dialect)
			connect := newEmpty(t, c.dialect)
			db := connect(t)
			check(t, create(t.Context(), db, d.dialect))
			store := must.Get(rampsql.New(rampsql.Config{DB: db, Dialect: c.dialect, Logger: ramptest.Logger(t),
				Apply: func(ctx context.Context, tx *sql.Tx, _ ramp.Step) error {
					_, err := tx.ExecContext(ctx, c.statement)
					return err
				}}))(t)
			o := newOrder("alice", mint("gold", 5))
			_, err := store.Update(rollback.Ask(t.Context()), o.id, o.accept())
			if c.names == "" {
				check(t, err)
			} else if err == nil || !strings.Contains(err.Error(), "Apply") || !strings.Contains(err.Error(), c.names) {
				t.Errorf("%v does not say that Apply must leave %s", err, c.names)
			}
		})
	}
}
