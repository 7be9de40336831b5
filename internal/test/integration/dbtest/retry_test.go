package dbtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/ramptest"
)

// A transaction that the database aborted for racing with another one is retried, unless
// the studio wants otherwise.

// race makes the transaction of Apply lose against a real rival.
type race struct {
	name    string
	dialect rampsql.Dialect
	mode    mode
	lose    func(w *world, ctx context.Context, tx *sql.Tx, step ramp.Step) (lost, err error) // lost is the error of tx
}

var races = []race{
	{"serialization failure", rampsql.PostgreSQL, mode{isolation: sql.LevelRepeatableRead}, (*world).outdate},
	{"deadlock", rampsql.PostgreSQL, mode{}, (*world).deadlockOnPostgreSQL},
	{"deadlock", rampsql.MySQL, mode{}, (*world).victim},
	{"row that has changed", rampsql.MySQL, mode{params: "&innodb_snapshot_isolation=ON", only: "MariaDB"},
		(*world).outdate},
}

// outdate lets a rival change a row after tx took its snapshot.
func (w *world) outdate(ctx context.Context, tx *sql.Tx, _ ramp.Step) (lost, err error) {
	var before int
	if err := tx.QueryRowContext(ctx, "SELECT n FROM statistics").Scan(&before); err != nil { // InnoDB takes it here
		return nil, err
	}
	if _, err := w.db.Exec("UPDATE statistics SET n = n + 100"); err != nil {
		return nil, err
	}
	_, lost = tx.ExecContext(ctx, "UPDATE statistics SET n = n + 1")
	return lost, nil
}

// deadlockOnPostgreSQL makes tx the victim, not its rival: the rival waits first, but
// checks for a deadlock only after an hour.
func (w *world) deadlockOnPostgreSQL(ctx context.Context, tx *sql.Tx, _ ramp.Step) (lost, err error) {
	rival, err := w.admin.Begin()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rival.Rollback()) }()
	if _, err := rival.Exec("SET LOCAL deadlock_timeout = '1h'; SET LOCAL search_path = " + w.schema +
		"; UPDATE statistics SET n = n + 100"); err != nil {
		return nil, err
	}
	var process int
	if err := rival.QueryRow("SELECT pg_backend_pid()").Scan(&process); err != nil {
		return nil, err
	}
	gone := make(chan error, 1)
	go func() { // waits for the rows that tx moved
		_, err := rival.Exec("UPDATE holdings SET amount = amount")
		gone <- err
	}()
	for waits := false; !waits; time.Sleep(time.Millisecond) {
		if err := w.admin.QueryRow("SELECT EXISTS (SELECT 1 FROM pg_locks WHERE pid = $1 AND NOT granted)",
			process).Scan(&waits); err != nil {
			return nil, err
		}
	}
	_, lost = tx.ExecContext(ctx, "UPDATE statistics SET n = n + 1")
	return lost, <-gone // tx has lost its locks with its transaction
}

func TestARaceThatIsLost(t *testing.T) {
	for _, r := range races {
		d := databaseOf(t, r.dialect)
		t.Run(d.name+"/"+r.name, func(t *testing.T) {
			p := newPlace(t, d, r.mode, statistics)
			if p.quickDeadlocks != "" {
				run(t, p.admin, fmt.Sprintf(p.quickDeadlocks, p.schema, "10ms"))
			}
			w := newWorld(t, p, nil)
			w.give("alice", "gold", 100)
			s := studio{db: p.db, dialect: p.dialect}
			var losses, calls int
			apply := func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
				calls++
				if err := s.Apply(ctx, tx, step); err != nil { // is rolled back
					return err
				}
				if losses > 0 {
					losses--
					lost, err := r.lose(w, ctx, tx, step)
					if lost == nil || err != nil {
						t.Errorf("the race was not lost: %v", err)
					}
					return lost
				}
				return nil
			}
			config := rampsql.Config{DB: p.db, Dialect: p.dialect, Apply: apply, Logger: ramptest.Logger(t),
				TxOptions: &sql.TxOptions{Isolation: p.mode.isolation}}
			want := moves{}
			for _, c := range []struct {
				name    string
				retries int
				losses  int
				calls   int
				answer  string
			}{
				{"without retries", -1, 1, 1, "500 INTERNAL_ERROR"},
				{"one race of two repeats", 2, 1, 2, "200"},
				{"as many races as repeats", 2, 2, 3, "200"},
				{"one race too many", 2, 3, 3, "500 INTERNAL_ERROR"},
				{"three races by default", 0, 3, 4, "200"},
			} {
				config.Retries = c.retries
				o := newOrder("alice", mint("gold", 5))
				on := newWorld(t, p, must.Get(rampsql.New(config))(t))
				losses, calls = c.losses, 0
				w.expect(on.validate(o), c.answer)
				equal(t, c.name+": calls of Apply", calls, c.calls)
				if c.answer == "200" {
					want[o.id] = []string{"take alice -5 gold"}
				}
				w.assertMoves(want)
				losses = 0
				w.expect(on.validate(o), "200")
				losses, calls = c.losses, 0
				w.expect(on.result(o, failure), c.answer)
				equal(t, c.name+": calls of Apply", calls, c.calls)
				losses = 0
				w.expect(on.result(o, failure), "200")
				want[o.id] = []string{"take alice -5 gold", "give back alice +5 gold"}
				w.assertMoves(want)
				w.expectAutocommit()
			}
		})
	}
}

// A rival holds SQLite's only lock until the store reports that it lost the race. The
// driver has waited for it already, so only a studio may want to wait again.
func TestABusySQLite(t *testing.T) {
	p := newPlace(t, databaseOf(t, rampsql.SQLite), mode{params: "&_txlock=immediate"})
	p.db = open(t, p.driver, strings.Replace(p.dsn, "busy_timeout(20000)", "busy_timeout(1)", 1))
	w := newWorld(t, p, nil)
	w.give("alice", "gold", 100)
	s := studio{db: p.db, dialect: p.dialect}
	var rival *sql.Tx
	lock := func() { rival = must.Get(p.db.Begin())(t) }
	config := rampsql.Config{DB: p.db, Dialect: p.dialect, Apply: s.Apply, Logger: ramptest.Logger(t)}
	byDefault := must.Get(rampsql.New(config))(t)
	var asked int
	config.Retries, config.Retryable = 1, func(err error) bool {
		asked++
		check(t, rival.Rollback())
		return strings.Contains(err.Error(), "SQLITE_BUSY")
	}
	once := must.Get(rampsql.New(config))(t)

	o := newOrder("alice", mint("gold", 5))
	lock()
	w.expect(newWorld(t, p, byDefault).validate(o), "500 INTERNAL_ERROR")
	check(t, rival.Rollback())
	lock()
	w.expect(newWorld(t, p, once).validate(o), "200")
	lock()
	w.expect(newWorld(t, p, once).result(o, failure), "200")
	equal(t, "errors that were asked about", asked, 2)
	w.assertMoves(moves{o.id: {"take alice -5 gold", "give back alice +5 gold"}})
}

// Retries end with the context of the call.
func TestRepeatsEndWithTheContext(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		ctx, cancel := context.WithCancel(t.Context())
		calls := 0
		failed := errors.New("lost")
		store := must.Get(rampsql.New(rampsql.Config{DB: p.db, Dialect: p.dialect, Retries: 1_000_000,
			Logger:    ramptest.Logger(t),
			Retryable: func(error) bool { return true },
			Apply: func(context.Context, *sql.Tx, ramp.Step) error {
				if calls++; calls == 3 {
					cancel()
				}
				return failed
			}}))(t)
		o := newOrder("alice", mint("gold", 5))
		if _, err := store.Update(ctx, o.id, o.accept()); !errors.Is(err, failed) || calls != 3 {
			t.Errorf("after %d calls of Apply: %v", calls, err)
		}
	})
}

// What Apply does to its step in an attempt that is rolled back changes no later attempt.
func TestAnAttemptSharesNoMemoryWithTheNext(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		calls := 0
		store := must.Get(rampsql.New(rampsql.Config{DB: p.db, Dialect: p.dialect, Logger: ramptest.Logger(t),
			Retryable: func(error) bool { return true },
			Apply: func(_ context.Context, _ *sql.Tx, step ramp.Step) error {
				if calls++; calls == 1 {
					step.Order.Intent.From[0].ID = "other"
					return errors.New("lost")
				}
				return nil
			}}))(t)
		o := newOrder("alice", mint("gold", 5))
		step, err := store.Update(t.Context(), o.id, o.accept())
		check(t, err)
		equal(t, "calls of Apply", calls, 2)
		equal(t, "the asset of the second attempt", step.Order.Intent.From[0].ID, "gold")
		equal(t, "the stored asset", must.Get(store.Order(t.Context(), o.id))(t).Intent.From[0].ID, "gold")
	})
}

// pgx prepares statements once for each connection. After a migration, PostgreSQL refuses
// them once (0A000).
func TestAMigrationCostsNoOrder(t *testing.T) {
	p := placeOn(t, rampsql.PostgreSQL)
	p.db.SetMaxOpenConns(1) // so that each order meets the statements of the one before
	w := newWorld(t, p, nil)
	w.give("alice", "gold", 100)
	orders := []order{newOrder("alice", mint("gold", 5)), newOrder("alice", mint("gold", 7)),
		newOrder("alice", mint("gold", 11))}
	want := moves{}
	for n, o := range orders {
		for _, waiting := range orders[:n] { // prepared for their accepting and their end
			w.expect(w.result(waiting, failure), "200")
		}
		w.expect(w.validate(o), "200")
		want[o.id] = []string{"take alice -" + o.intent.From[0].Amount.String() + " gold"}
		run(t, p.admin,
			"ALTER TABLE "+p.schema+".ramp_orders ALTER reason TYPE "+[]string{"varchar(4096)", "text",
				"varchar(5000)"}[n])
	}
	for _, o := range orders {
		w.expect(w.result(o, failure), "200")
		amount := o.intent.From[0].Amount.String() + " gold"
		want[o.id] = []string{"take alice -" + amount, "give back alice +" + amount}
	}
	w.assertMoves(want)
}
