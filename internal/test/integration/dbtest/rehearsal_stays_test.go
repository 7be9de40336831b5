package dbtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/ramptest"
)

// lastingTables are tables of MySQL and MariaDB that no rollback changes.
var lastingTables = []struct{ engine, options string }{
	{"MyISAM", ""}, {"MEMORY", ""}, {"Aria", "TRANSACTIONAL = 0"}, {"Aria", "TRANSACTIONAL = 1"},
}

// playRehearsals plays ten burns of a player at the same moment and five after one another. It returns how much
// gold stayed, and the error of the last.
func playRehearsals(t *testing.T, p *place, store *rampsql.Store) (gold int64, last error) {
	t.Helper()
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			o := newOrder("alice", burn("gold", 1000))
			if _, err := store.Update(t.Context(), o.id, o.accept()); err == nil {
				t.Error("a burn was accepted whose rehearsed grant stays")
			}
		})
	}
	all.Wait()
	for range 5 {
		o := newOrder("alice", burn("gold", 1000))
		if _, last = store.Update(t.Context(), o.id, o.accept()); last == nil {
			t.Error("a burn was accepted whose rehearsed grant stays")
		}
	}
	check(t, p.administrator().QueryRow(
		"SELECT COALESCE(SUM(amount), 0) FROM holdings WHERE session_id = 'alice'").Scan(&gold))
	return gold, last
}

// A rehearsal on a table that no rollback changes would pay. So the store asks the database for such tables
// before its first rehearsal, and Check does.
func TestNoRehearsalOnATableThatNoRollbackChanges(t *testing.T) {
	for _, table := range lastingTables {
		t.Run(table.engine+table.options, func(t *testing.T) {
			p := onMariaDB(t, "ALTER TABLE holdings ENGINE = "+table.engine+" "+table.options+";"+
				"INSERT INTO holdings (session_id, asset, amount) VALUES ('alice', 'gold', 7);")
			store := newStore(t, p, studio{db: p.db, dialect: p.dialect}.Apply)
			gold, err := playRehearsals(t, p, store)
			equal(t, "gold", gold, 7)
			expectText(t, err, "table holdings is of the engine "+table.engine, "UntouchedTables")
			expectText(t, store.Check(t.Context(), ""), "table holdings is of the engine "+table.engine)

			// What is not a burn goes on.
			o := newOrder("alice", mint("gold", 5))
			take(t, store, o.id, o.accept())
		})
	}
}

// A table of which the studio says that Apply never touches it is no fault.
func TestTablesThatApplyNeverTouches(t *testing.T) {
	p := onMariaDB(t, "CREATE TABLE chat (line TEXT) ENGINE = MyISAM; CREATE VIEW talk AS SELECT line FROM chat;")
	s := studio{db: p.db, dialect: p.dialect}
	store := must.Get(rampsql.New(rampsql.Config{DB: p.db, Dialect: p.dialect, Apply: s.Apply,
		UntouchedTables: []string{"chat"}, Logger: ramptest.Logger(t)}))(t)
	check(t, store.Check(t.Context(), ""))
	o := newOrder("alice", burn("gold", 5))
	take(t, store, o.id, o.accept())
}

// If that is false, or Apply commits, the database tells at the first rehearsal: its grant stays, the error
// says what to take back, and nothing is signed until the server starts again.
func TestOneRehearsalThatStaysIsTheLast(t *testing.T) {
	const pay = "CREATE PROCEDURE pay(player VARCHAR(64), n BIGINT) BEGIN" +
		" UPDATE holdings SET amount = amount + n WHERE session_id = player; COMMIT; END"
	onTable := func(s studio) apply { return s.Apply }
	rejected := func(s studio) apply {
		return func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
			if err := s.Apply(ctx, tx, step); err != nil || !step.Rehearsal {
				return err
			}
			return ramp.Reject("INVENTORY_FULL")
		}
	}
	calling := func(studio) apply {
		return func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
			for _, a := range step.Effect.Assets {
				if _, err := tx.ExecContext(ctx, "CALL pay(?, ?)", step.Order.SessionID,
					must.Get(step.Effect.Delta(a).Int64())(t)); err != nil {
					return err
				}
			}
			return nil
		}
	}
	type example struct {
		name, migration string
		apply           func(studio) apply
	}
	examples := []example{
		{"a rejected grant on MyISAM", "ALTER TABLE holdings ENGINE = MyISAM;", rejected},
		{"a procedure that commits", "", calling},
	}
	for _, table := range lastingTables {
		examples = append(examples, example{table.engine + table.options,
			"ALTER TABLE holdings ENGINE = " + table.engine + " " + table.options + ";", onTable})
	}
	for _, c := range examples {
		t.Run(c.name, func(t *testing.T) {
			p := onMariaDB(t, c.migration+
				"INSERT INTO holdings (session_id, asset, amount) VALUES ('alice', 'gold', 7);")
			run(t, p.admin, pay)
			run(t, p.admin, fmt.Sprintf(p.grant, p.schema, "EXECUTE"))
			s := studio{db: p.db, dialect: p.dialect}
			open := func() *rampsql.Store {
				return must.Get(rampsql.New(rampsql.Config{DB: p.db, Dialect: p.dialect, Apply: c.apply(s),
					UntouchedTables: []string{"holdings"}, Logger: ramptest.Logger(t)}))(t)
			}
			gold, err := playRehearsals(t, p, open())
			equal(t, "gold after one process", gold, 1007)
			expectText(t, err, "was not rolled back", "grant +1000 gold", "alice", "start the server again")
			gold, _ = playRehearsals(t, p, open())
			equal(t, "gold after two processes", gold, 2007)

			// No repeat of the call whose grant stayed is signed, neither now nor after a start.
			rows := must.Get(p.db.Query("SELECT uuid FROM ramp_orders WHERE state = 'accepted'"))(t)
			defer rows.Close()
			for rows.Next() {
				t.Error("an order whose grant was paid already waits, and could be signed")
			}
			check(t, rows.Err())
		})
	}
}

// Other warnings, and a connection that breaks, are no grant that stays.
func TestAWarningIsNoGrantThatStays(t *testing.T) {
	p := onMariaDB(t, "CREATE TABLE seen (n INT PRIMARY KEY); INSERT INTO seen VALUES (1);")
	breaks := true
	store := newStore(t, p, func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
		if !step.Rehearsal {
			return nil
		}
		if breaks {
			breaks = false
			var id int
			check(t, tx.QueryRowContext(ctx, "SELECT connection_id()").Scan(&id))
			must.Get(p.administrator().Exec(fmt.Sprintf("KILL %d", id)))(t)
			for range 1000 { // until the server has closed it
				if _, err := tx.ExecContext(ctx, "SELECT 1"); err != nil {
					return nil
				}
				time.Sleep(time.Millisecond)
			}
			t.Error("the connection was not killed")
		}
		_, err := tx.ExecContext(ctx, "INSERT IGNORE INTO seen VALUES (1)") // warns
		return err
	})
	o := newOrder("alice", burn("gold", 5))
	if _, err := store.Update(t.Context(), o.id, o.accept()); err == nil {
		t.Error("a burn was accepted on a connection that broke")
	}
	for range 3 {
		o := newOrder("alice", burn("gold", 5))
		take(t, store, o.id, o.accept())
	}
}

// Until a rehearsed grant was seen rolled back, one runs at a time; a call that waits for its turn holds no
// connection and ends with its context. Afterwards they run side by side.
func TestTheFirstRehearsalsRunOneAtATime(t *testing.T) {
	eachServer(t, func(t *testing.T, d database) {
		p := newPlace(t, d, d.modes[0])
		entered, leave := make(chan string), make(chan struct{})
		store := newStore(t, p, func(_ context.Context, _ *sql.Tx, step ramp.Step) error {
			if step.Rehearsal {
				entered <- step.Order.SessionID
				<-leave
			}
			return nil
		})
		accept := func(ctx context.Context, session string, done chan<- error) {
			o := newOrder(session, burn("gold", 5))
			_, err := store.Update(ctx, o.id, o.accept())
			done <- err
		}
		first, second, canceled := make(chan error, 1), make(chan error, 1), make(chan error, 1)
		go accept(t.Context(), "first", first)
		equal(t, "the rehearsal that began", <-entered, "first")
		ctx, cancel := context.WithCancel(t.Context())
		go accept(ctx, "canceled", canceled)
		cancel()
		if err := <-canceled; err == nil {
			t.Error("a call that waited for its turn was accepted after its context had ended")
		}
		equal(t, "connections in use", p.db.Stats().InUse, 1)
		leave <- struct{}{}
		check(t, <-first)

		go accept(t.Context(), "second", first)
		go accept(t.Context(), "third", second)
		<-entered
		<-entered // both are in Apply at once
		close(leave)
		check(t, <-first)
		check(t, <-second)
	})
}

// onMariaDB returns a place on MariaDB or MySQL, and skips a test that the server is not for.
func onMariaDB(t *testing.T, migration string) *place {
	t.Helper()
	d := databaseOf(t, rampsql.MySQL)
	m := d.modes[0]
	if strings.Contains(migration, "Aria") {
		m.only = "MariaDB"
	}
	return newPlace(t, d, m, migration)
}

// An Apply that ends the transaction of a rehearsal: only a commit keeps the grant. After a rollback, other
// burns go on.
func TestHowApplyEndsARehearsal(t *testing.T) {
	for _, c := range []struct {
		name string
		ends func(tx *sql.Tx) error
		kept bool
		on   []rampsql.Dialect
	}{
		{"Commit", (*sql.Tx).Commit, true, []rampsql.Dialect{rampsql.PostgreSQL, rampsql.MySQL}},
		{"Commit, which the hook refuses", (*sql.Tx).Commit, false, []rampsql.Dialect{rampsql.SQLite}},
		{"COMMIT", executes("COMMIT"), true, []rampsql.Dialect{rampsql.PostgreSQL, rampsql.MySQL}},
		{"COMMIT and BEGIN", executes("COMMIT", "BEGIN"), true, []rampsql.Dialect{rampsql.PostgreSQL, rampsql.MySQL}},
		{"CREATE TABLE", executes("CREATE TABLE more (n INT)"), true, []rampsql.Dialect{rampsql.MySQL}},
		{"ROLLBACK, ignored", executes("ROLLBACK"), false, []rampsql.Dialect{rampsql.MySQL}},
		{"Rollback and a rejection", func(tx *sql.Tx) error {
			return errors.Join(tx.Rollback(), ramp.Reject("INVENTORY_FULL"))
		}, false, []rampsql.Dialect{rampsql.PostgreSQL, rampsql.MySQL, rampsql.SQLite}},
	} {
		for _, dialect := range c.on {
			t.Run(c.name+"/"+string(dialect), func(t *testing.T) {
				p := placeOn(t, dialect)
				if strings.HasPrefix(c.name, "CREATE") {
					p.may(t, "CREATE")
				}
				s, ends := studio{db: p.db, dialect: dialect}, true
				store := newStore(t, p, func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
					if err := s.Apply(ctx, tx, step); err != nil || !step.Rehearsal || !ends {
						return err
					}
					ends = false
					return c.ends(tx)
				})
				o, next := newOrder("alice", burn("gold", 5)), newOrder("alice", burn("gold", 5))
				_, err := store.Update(t.Context(), o.id, o.accept())
				if err == nil {
					t.Error("a burn was accepted whose rehearsal ended the transaction")
				}
				_, after := store.Update(t.Context(), next.id, next.accept())
				if !c.kept {
					check(t, after)
					return
				}
				expectText(t, err, "was not rolled back", "alice", "grant +5 gold")
				expectText(t, after, "was not rolled back", "the burn is not accepted")
			})
		}
	}
}

// executes returns an end of a transaction by statements that database/sql does not know.
func executes(statements ...string) func(*sql.Tx) error {
	return func(tx *sql.Tx) error {
		for _, statement := range statements {
			if _, err := tx.Exec(statement); err != nil {
				return err
			}
		}
		return nil
	}
}
