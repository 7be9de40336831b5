package dbtest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampsql"
)

// An intent that JSON cannot represent is rejected before anything is stored.
func TestAnIntentThatCannotBeWrittenIsNotStored(t *testing.T) {
	p := placeOn(t, rampsql.SQLite)
	store := newStore(t, p, applyNothing)
	o := newOrder("alice", mint("gold", 5))
	o.intent.TargetCandidate = json.RawMessage(`{`)
	_, err := store.Update(t.Context(), o.id, o.accept())
	expectText(t, err, "ramp: order "+o.id.String()+": ", "json")
	waiting := must.Get(store.Waiting(t.Context(), ramp.Mint, time.Now().Add(time.Hour), ramp.OrderPage{Limit: 10}))(t)
	equal(t, "orders that are stored", len(waiting), 0)
}

func TestAMissingTableIsNotBlamedOnTheDialect(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		store := newStore(t, p, applyNothing)
		o := newOrder("alice", mint("gold", 5))
		_, updating := store.Update(t.Context(), o.id, o.accept())
		_, listing := store.Waiting(t.Context(), ramp.Mint, time.Now(), ramp.OrderPage{Limit: 1})
		expectText(t, updating, "ramp: order "+o.id.String()+": insert: ", "ramp_orders")
		expectText(t, listing, "ramp: waiting orders: ", "ramp_orders")
		if text := errors.Join(updating, listing).Error(); strings.Contains(text, "dialect") {
			t.Error(text)
		}
	}, "DROP TABLE ramp_orders;")
}

// These errors occur before the statements of a dialect, so testing SQLite is enough.
func TestADatabaseThatIsClosed(t *testing.T) {
	db := must.Get(sql.Open("sqlite", ":memory:"))(t)
	check(t, db.Close())
	store := newStore(t, &place{database: databaseOf(t, rampsql.SQLite), db: db}, applyNothing)
	o := newOrder("alice", mint("gold", 5))
	_, err := store.Update(t.Context(), o.id, o.accept())
	expectText(t, err, "ramp: begin: sql: database is closed")
	_, err = store.Waiting(t.Context(), ramp.Mint, time.Now(), ramp.OrderPage{Limit: 1})
	expectText(t, err, "ramp: waiting orders: sql: database is closed")
	expectText(t, store.Check(t.Context(), ""), "ramp: check: sql: database is closed")
}

// If the database does not store the end of an order, that is an error, whatever the
// database reports.
func TestAnEndThatIsNotWrittenIsAnError(t *testing.T) {
	for trigger, want := range map[string]string{
		"RAISE(ABORT, 'no end')": "update: no end",
		"RAISE(IGNORE)":          "update: the order was finished despite the lock",
	} {
		p := placeOn(t, rampsql.SQLite,
			"CREATE TRIGGER ends BEFORE UPDATE OF state ON ramp_orders BEGIN SELECT "+trigger+"; END;")
		applied := 0
		store := newStore(t, p, func(context.Context, *sql.Tx, ramp.Step) error { applied++; return nil })
		o := newOrder("alice", mint("gold", 5))
		must.Get(store.Update(t.Context(), o.id, o.accept()))(t)
		_, err := store.Update(t.Context(), o.id, o.finish(failure))
		if err == nil ||
			!strings.Contains(strings.ReplaceAll(err.Error(), "constraint failed: ", ""),
				"ramp: order "+o.id.String()+": "+want) {
			t.Errorf("under %s: %v", trigger, err)
		}
		equal(t, "steps that were applied under "+trigger, applied, 1)
	}
}

// A database rolls back the transaction after some errors, PostgreSQL after each. The
// author of Apply must be told that it ignored one.
func TestATransactionThatTheDatabaseEndedIsExplained(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		store := newStore(t, p, func(ctx context.Context, tx *sql.Tx, _ ramp.Step) error {
			if p.strict {
				_, _ = tx.ExecContext(ctx, "UPDATE nothing SET n = 1")
				return nil
			}
			_, err := tx.ExecContext(ctx, "ROLLBACK") // as an error would
			return err
		})
		o := newOrder("alice", mint("gold", 5))
		_, err := store.Update(t.Context(), o.id, o.accept())
		expectText(t, err, "commit: a statement in Apply failed, and the database rolled back the whole transaction")
	})
}

// The server closes connections that are idle for long. If every connection of the pool is
// bad, the database is unreachable.
func TestBadConnectionsAreReplacedTwice(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		if p.replaces {
			t.Skip("database/sql handles it there")
		}
		for bad, want := range map[int64]error{2: nil, 3: driver.ErrBadConn} {
			lossy(t, p).bad.Store(bad)
			o := newOrder("alice", mint("gold", 5))
			if _, err := newStore(t, p, applyNothing).Update(t.Context(), o.id, o.accept()); !errors.Is(err, want) {
				t.Errorf("with %d bad connections, it ended with %v", bad, err)
			}
		}
	})
}

// If autocommit were on, the statements after a rollback by MySQL itself would each be
// committed. So if it cannot be turned off, the transaction does not begin.
func TestMySQLThatKeepsAutocommitBeginsNothing(t *testing.T) {
	p := placeOn(t, rampsql.MySQL)
	lossy(t, p).refused = "SET autocommit = 0"
	store := newStore(t, p, func(context.Context, *sql.Tx, ramp.Step) error {
		t.Error("applied")
		return nil
	})
	o := newOrder("alice", mint("gold", 5))
	_, err := store.Update(t.Context(), o.id, o.accept())
	expectText(t, err, "ramp: begin: "+errRefused.Error())
}

// A commit that fails for another reason is not blamed on Apply.
func TestACommitThatSQLiteRejectsIsNotBlamedOnApply(t *testing.T) {
	p := placeOn(t, rampsql.SQLite,
		"CREATE TABLE a (id PRIMARY KEY); CREATE TABLE b (id REFERENCES a DEFERRABLE INITIALLY DEFERRED);")
	p.db = open(t, p.driver, p.dsn+"&_pragma=foreign_keys(1)")
	store := newStore(t, p, func(ctx context.Context, tx *sql.Tx, _ ramp.Step) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO b VALUES (1)")
		return err
	})
	o := newOrder("alice", mint("gold", 5))
	_, err := store.Update(t.Context(), o.id, o.accept())
	expectText(t, err, "commit: ", "FOREIGN KEY")
	if err != nil && strings.Contains(err.Error(), "Apply") {
		t.Error(err)
	}
}

// A driver may have another method named RegisterCommitHook. The store then works as
// with a driver without hooks.
func TestADriverWithAnotherKindOfCommitHook(t *testing.T) {
	for name, wrap := range map[string]func(sqliteConn) driver.Conn{
		"of no argument":      func(c sqliteConn) driver.Conn { return hookOfNothing{c} },
		"of two":              func(c sqliteConn) driver.Conn { return hookOfTwo{c} },
		"of a number":         func(c sqliteConn) driver.Conn { return hookOf[int]{c} },
		"whose hook takes":    func(c sqliteConn) driver.Conn { return hookOf[func(sqliteConn) int32]{c} },
		"whose hook is mute":  func(c sqliteConn) driver.Conn { return hookOf[func()]{c} },
		"whose hook is text":  func(c sqliteConn) driver.Conn { return hookOf[func() string]{c} },
		"whose hook is wordy": func(c sqliteConn) driver.Conn { return hookOf[func() (int32, error)]{c} },
	} {
		t.Run(name, func(t *testing.T) {
			p := placeOn(t, rampsql.SQLite)
			p.through(t, func(conn driver.Conn) driver.Conn { return wrap(conn.(sqliteConn)) })
			store := newStore(t, p, applyNothing)
			o := newOrder("alice", mint("gold", 5))
			for _, next := range []ramp.Transition{o.accept(), o.finish(failure)} {
				step := must.Get(store.Update(t.Context(), o.id, next))(t)
				if !step.New {
					t.Errorf("repeated: %+v", step)
				}
			}
		})
	}
}

// sqliteConn is a connection without hooks.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ExecerContext
	driver.QueryerContext
}

type (
	hookOfNothing   struct{ sqliteConn }
	hookOfTwo       struct{ sqliteConn }
	hookOf[Arg any] struct{ sqliteConn }
)

func (hookOfNothing) RegisterCommitHook()                  { panic("called") }
func (hookOfTwo) RegisterCommitHook(func() int, io.Writer) { panic("called") }
func (hookOf[Arg]) RegisterCommitHook(Arg)                 { panic("called") }
