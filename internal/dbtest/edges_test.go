package dbtest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	ramp "github.com/token-ramp/ramp-go"
)

// on runs a test on one kind of database.
func on(t *testing.T, dialect ramp.Dialect, migrations ...string) *place {
	t.Helper()
	n := slices.IndexFunc(databases, func(d database) bool { return d.dialect == dialect })
	return newPlace(t, databases[n], databases[n].modes[0], migrations...)
}

// An ID is stored in escapes, so the ends of the ranges of Unicode matter.
func TestEveryCharacterOfAnAssetIDIsStored(t *testing.T) {
	const id = "a\x00\x1f\x7f\u0080\ud7ff\ue000\ufffe\uffff\U00010000\U0010fffd\U0010ffff"
	eachDatabase(t, func(t *testing.T, p *place) {
		store := newStore(t, p, applyNothing)
		o := newOrder("alice", mint(id, 5))
		_, err := store.Update(context.Background(), o.id, o.accept())
		check(t, err)
		waiting, err := store.Waiting(context.Background(), time.Now().Add(time.Hour), 10)
		check(t, err)
		if len(waiting) != 1 || waiting[0].Assets[0].ID != id {
			t.Errorf("read back: %+v", waiting)
		}
	})
}

// An intent that JSON cannot hold is refused before anything is stored.
func TestAnIntentThatCannotBeWrittenIsNotStored(t *testing.T) {
	p := on(t, ramp.SQLite)
	store := newStore(t, p, applyNothing)
	o := newOrder("alice", mint("gold", 5))
	o.intent.TargetCandidate = json.RawMessage(`{`)
	_, err := store.Update(context.Background(), o.id, o.accept())
	expectText(t, err, "ramp: order "+o.id.String()+": ", "json")
	waiting, err := store.Waiting(context.Background(), time.Now().Add(time.Hour), 10)
	check(t, err)
	if len(waiting) != 0 {
		t.Errorf("%d orders are stored", len(waiting))
	}
}

// What occurs twice in a stored intent was not written by this package.
func TestAStoredIntentIsReadStrictly(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		store := newStore(t, p, applyNothing)
		o := newOrder("alice", mint("gold", 5))
		_, err := store.Update(context.Background(), o.id, o.accept())
		check(t, err)
		intent, err := json.Marshal(o.intent)
		check(t, err)
		_, err = p.db.Exec(bind(p.dialect, "UPDATE ramp_orders SET intent = ?"), `{"target_candidate":1,"target_candidate":2,`+string(intent[1:]))
		check(t, err)
		_, err = store.Update(context.Background(), o.id, o.finish(failure))
		expectText(t, err, "what is stored under "+o.id.String()+" is no order", "occurs more than once")
	})
}

// The advice about the pool is for who waited in vain, and for nobody else.
func TestAnErrorOfApplyAfterAWaitIsNotBlamedOnThePool(t *testing.T) {
	p := on(t, ramp.SQLite)
	p.db.SetMaxOpenConns(1)
	declined := errors.New("declined")
	store := newStore(t, p, func(ctx context.Context, _ *sql.Tx, _ ramp.Step) error {
		ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		if err := p.db.PingContext(ctx); err == nil {
			return errors.New("there was a free connection")
		}
		return declined
	})
	o := newOrder("alice", mint("gold", 5))
	_, err := store.Update(context.Background(), o.id, o.accept())
	if !errors.Is(err, declined) || strings.Contains(err.Error(), "pool") {
		t.Errorf("ended with %v", err)
	}
}

func TestAMissingTableIsNotBlamedOnTheDialect(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			store := newStore(t, newPlace(t, d, d.modes[0], "DROP TABLE ramp_orders;"), applyNothing)
			o := newOrder("alice", mint("gold", 5))
			_, updating := store.Update(context.Background(), o.id, o.accept())
			_, listing := store.Waiting(context.Background(), time.Now(), 1)
			expectText(t, updating, "ramp: order "+o.id.String()+": insert: ", "ramp_orders")
			expectText(t, listing, "ramp: waiting orders: ", "ramp_orders")
			if text := errors.Join(updating, listing).Error(); strings.Contains(text, "dialect") {
				t.Error(text)
			}
		})
	}
}

// No dialect gets as far as its own statements here, so SQLite does for all.
func TestADatabaseThatIsClosedBeginsNothing(t *testing.T) {
	for _, d := range databases {
		db, err := sql.Open("sqlite", ":memory:")
		check(t, err)
		check(t, db.Close())
		store, err := ramp.NewSQLStore(ramp.SQLStoreConfig{DB: db, Dialect: d.dialect, Apply: applyNothing})
		check(t, err)
		o := newOrder("alice", mint("gold", 5))
		_, err = store.Update(context.Background(), o.id, o.accept())
		expectText(t, err, "ramp: begin: sql: database is closed")
		_, err = store.Waiting(context.Background(), time.Now(), 1)
		expectText(t, err, "ramp: waiting orders: sql: database is closed")
	}
}

// An end that the database does not write is an error, whatever it says of it.
func TestAnEndThatIsNotWrittenIsAnError(t *testing.T) {
	for trigger, want := range map[string]string{
		"RAISE(ABORT, 'no end')": "update: no end",
		"RAISE(IGNORE)":          "update: the order was finished despite the lock",
	} {
		p := on(t, ramp.SQLite, "CREATE TRIGGER ends BEFORE UPDATE OF state ON ramp_orders BEGIN SELECT "+trigger+"; END;")
		applied := 0
		store := newStore(t, p, func(context.Context, *sql.Tx, ramp.Step) error { applied++; return nil })
		o := newOrder("alice", mint("gold", 5))
		_, err := store.Update(context.Background(), o.id, o.accept())
		check(t, err)
		_, err = store.Update(context.Background(), o.id, o.finish(failure))
		if err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), "constraint failed: ", ""), "ramp: order "+o.id.String()+": "+want) {
			t.Errorf("under %s: %v", trigger, err)
		}
		if applied != 1 {
			t.Errorf("under %s: %d steps were applied", trigger, applied)
		}
	}
}

func TestACallThatEndsInApplySaysThatNothingWasCommitted(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		ctx, cancel := context.WithCancel(context.Background())
		store := newStore(t, p, func(context.Context, *sql.Tx, ramp.Step) error { cancel(); return nil })
		o := newOrder("alice", mint("gold", 5))
		_, err := store.Update(ctx, o.id, o.accept())
		if !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
		expectText(t, err, "ramp: order "+o.id.String()+": not committed: ")
	})
}

// SQLite ends a transaction at some errors. Apply must hear that it ignored one.
func TestATransactionThatSQLiteEndedIsExplained(t *testing.T) {
	store := newStore(t, on(t, ramp.SQLite), func(ctx context.Context, tx *sql.Tx, _ ramp.Step) error {
		_, err := tx.ExecContext(ctx, "ROLLBACK") // as an error would
		return err
	})
	o := newOrder("alice", mint("gold", 5))
	_, err := store.Update(context.Background(), o.id, o.accept())
	expectText(t, err, "commit: a statement in Apply failed, and the database rolled back the whole transaction", "no transaction is active")
}

// A commit that fails for a reason of its own is not blamed on Apply.
func TestACommitThatSQLiteRefusesIsNotBlamedOnApply(t *testing.T) {
	p := on(t, ramp.SQLite, "CREATE TABLE a (id PRIMARY KEY); CREATE TABLE b (id REFERENCES a DEFERRABLE INITIALLY DEFERRED);")
	p.db = open(t, p.driver, p.dsn+"&_pragma=foreign_keys(1)")
	store := newStore(t, p, func(ctx context.Context, tx *sql.Tx, _ ramp.Step) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO b VALUES (1)")
		return err
	})
	o := newOrder("alice", mint("gold", 5))
	_, err := store.Update(context.Background(), o.id, o.accept())
	expectText(t, err, "commit: ", "FOREIGN KEY")
	if err != nil && strings.Contains(err.Error(), "Apply") {
		t.Error(err)
	}
}

// A driver may call something else RegisterCommitHook. The store works with it
// as with a driver that has no hooks.
func TestADriverWithAnotherKindOfCommitHook(t *testing.T) {
	for name, wrap := range map[string]func(sqliteConn) driver.Conn{
		"of no argument":      func(c sqliteConn) driver.Conn { return hookOfNothing{c} },
		"of two":              func(c sqliteConn) driver.Conn { return hookOfTwo{c} },
		"of a number":         func(c sqliteConn) driver.Conn { return hookOfANumber{c} },
		"whose hook takes":    func(c sqliteConn) driver.Conn { return hookThatTakes{c} },
		"whose hook is mute":  func(c sqliteConn) driver.Conn { return muteHook{c} },
		"whose hook is wordy": func(c sqliteConn) driver.Conn { return wordyHook{c} },
	} {
		t.Run(name, func(t *testing.T) {
			p := on(t, ramp.SQLite)
			p.db = sql.OpenDB(hookConnector{p.db.Driver(), p.dsn, wrap})
			t.Cleanup(func() { check(t, p.db.Close()) })
			store := newStore(t, p, applyNothing)
			o := newOrder("alice", mint("gold", 5))
			for _, next := range []ramp.Transition{o.accept(), o.finish(failure)} {
				step, err := store.Update(context.Background(), o.id, next)
				check(t, err)
				if !step.New {
					t.Errorf("repeated: %+v", step)
				}
			}
		})
	}
}

type hookConnector struct {
	driver driver.Driver
	dsn    string
	wrap   func(sqliteConn) driver.Conn
}

func (c hookConnector) Driver() driver.Driver { return c.driver }

func (c hookConnector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.driver.Open(c.dsn)
	if err != nil {
		return nil, err
	}
	return c.wrap(conn.(sqliteConn)), nil
}

// sqliteConn is a connection without its hooks.
type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ExecerContext
	driver.QueryerContext
}

type (
	hookOfNothing struct{ sqliteConn }
	hookOfTwo     struct{ sqliteConn }
	hookOfANumber struct{ sqliteConn }
	hookThatTakes struct{ sqliteConn }
	muteHook      struct{ sqliteConn }
	wordyHook     struct{ sqliteConn }
)

func (hookOfNothing) RegisterCommitHook()                       { panic("called") }
func (hookOfTwo) RegisterCommitHook(func() int, io.Writer)      { panic("called") }
func (hookOfANumber) RegisterCommitHook(int)                    { panic("called") }
func (hookThatTakes) RegisterCommitHook(func(sqliteConn) int32) { panic("called") }
func (muteHook) RegisterCommitHook(func())                      { panic("called") }
func (wordyHook) RegisterCommitHook(func() (int32, error))      { panic("called") }
