package dbtest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

// on runs a test on one kind of database.
func on(t *testing.T, dialect ramp.Dialect, migrations ...string) *place {
	t.Helper()
	n := slices.IndexFunc(databases, func(d database) bool { return d.dialect == dialect })
	return newPlace(t, databases[n], databases[n].modes[0], migrations...)
}

// IDs are stored with escapes, so the test includes the limits of Unicode ranges.
func TestEveryCharacterOfAnAssetIDIsStored(t *testing.T) {
	const id = "a\x00\x1f\x7f\u0080\ud7ff\ue000\ufffe\uffff\U00010000\U0010fffd\U0010ffff"
	eachDatabase(t, func(t *testing.T, p *place) {
		store := newStore(t, p, applyNothing)
		o := newOrder("alice", mint(id, 5))
		_, err := store.Update(context.Background(), o.id, o.accept())
		check(t, err)
		waiting, err := store.Waiting(context.Background(), ramp.Mint, time.Now().Add(time.Hour), ramp.OrderPage{Limit: 10})
		check(t, err)
		if len(waiting) != 1 || waiting[0].Assets[0].ID != id {
			t.Errorf("read back: %+v", waiting)
		}
	})
}

// MySQL statements contain their values, so the effect of a quote or a backslash must not
// depend on the rest of the value.
func TestEveryCharacterOfATextIsStored(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		store := newStore(t, p, applyNothing)
		tx, err := p.db.Begin()
		check(t, err)
		defer func() { _ = tx.Rollback() }() // if the test fails, so that the database can be dropped
		want := map[uuid.UUID]string{}
		for _, r := range "\u0080\uffff" {
			o := newOrder("alice", mint("gold", 5))
			o.project = string(r)
			want[o.id] = o.project
			_, err := store.UpdateTx(context.Background(), tx, o.id, o.accept())
			check(t, err)
		}
		for c := byte(1); c < 0x80; c++ {
			o := newOrder("alice", mint("gold", 5))
			o.project = "p" + string(rune(c))
			want[o.id] = o.project
			_, err := store.UpdateTx(context.Background(), tx, o.id, o.accept())
			check(t, err)
		}
		check(t, tx.Commit())
		waiting, err := store.Waiting(context.Background(), ramp.Mint, time.Now().Add(time.Hour), ramp.OrderPage{Limit: 1000})
		check(t, err)
		if len(waiting) != len(want) {
			t.Errorf("%d of %d orders are stored", len(waiting), len(want))
		}
		for _, o := range waiting {
			if o.ProjectID != want[o.UUID] {
				t.Errorf("%q is stored as %q", want[o.UUID], o.ProjectID)
			}
		}
	})
}

func TestAReasonMayHaveEveryCharacter(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		store := newStore(t, p, applyNothing)
		o := newOrder("alice", mint("gold", 5))
		_, err := store.Update(context.Background(), o.id, o.accept())
		check(t, err)
		step, err := store.Update(context.Background(), o.id, ramp.Abandon("lost \U0001F600", time.Now()))
		check(t, err)
		stored, err := store.Order(context.Background(), o.id)
		check(t, err)
		if stored.Reason != step.Order.Reason {
			t.Errorf("the reason is stored as %q", stored.Reason)
		}
	})
}

// An intent that JSON cannot represent is rejected before anything is stored.
func TestAnIntentThatCannotBeWrittenIsNotStored(t *testing.T) {
	p := on(t, ramp.SQLite)
	store := newStore(t, p, applyNothing)
	o := newOrder("alice", mint("gold", 5))
	o.intent.TargetCandidate = json.RawMessage(`{`)
	_, err := store.Update(context.Background(), o.id, o.accept())
	expectText(t, err, "ramp: order "+o.id.String()+": ", "json")
	waiting, err := store.Waiting(context.Background(), ramp.Mint, time.Now().Add(time.Hour), ramp.OrderPage{Limit: 10})
	check(t, err)
	if len(waiting) != 0 {
		t.Errorf("%d orders are stored", len(waiting))
	}
}

// This package did not write a stored intent that has duplicate members.
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
		expectText(t, err, "the value stored under "+o.id.String()+" is not an order", "occurs more than once")
	})
}

// Only a caller who waited in vain for a connection gets the advice about the pool.
func TestAnErrorOfApplyAfterAWaitIsNotBlamedOnThePool(t *testing.T) {
	p := on(t, ramp.SQLite)
	p.db.SetMaxOpenConns(1)
	rejected := errors.New("rejected")
	store := newStore(t, p, func(ctx context.Context, _ *sql.Tx, _ ramp.Step) error {
		ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		if err := p.db.PingContext(ctx); err == nil {
			return errors.New("there was a free connection")
		}
		return rejected
	})
	o := newOrder("alice", mint("gold", 5))
	_, err := store.Update(context.Background(), o.id, o.accept())
	if !errors.Is(err, rejected) || strings.Contains(err.Error(), "pool") {
		t.Errorf("ended with %v", err)
	}
}

func TestAMissingTableIsNotBlamedOnTheDialect(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			store := newStore(t, newPlace(t, d, d.modes[0], "DROP TABLE ramp_orders;"), applyNothing)
			o := newOrder("alice", mint("gold", 5))
			_, updating := store.Update(context.Background(), o.id, o.accept())
			_, listing := store.Waiting(context.Background(), ramp.Mint, time.Now(), ramp.OrderPage{Limit: 1})
			expectText(t, updating, "ramp: order "+o.id.String()+": insert: ", "ramp_orders")
			expectText(t, listing, "ramp: waiting orders: ", "ramp_orders")
			if text := errors.Join(updating, listing).Error(); strings.Contains(text, "dialect") {
				t.Error(text)
			}
		})
	}
}

// These errors occur before the statements of a dialect, so testing SQLite is enough.
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
		_, err = store.Waiting(context.Background(), ramp.Mint, time.Now(), ramp.OrderPage{Limit: 1})
		expectText(t, err, "ramp: waiting orders: sql: database is closed")
	}
}

// If the database does not store the end of an order, that is an error, whatever the
// database reports.
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

// A database rolls back the transaction after some errors, PostgreSQL after each. The
// author of Apply must be told that it ignored one.
func TestATransactionThatTheDatabaseEndedIsExplained(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		store := newStore(t, p, func(ctx context.Context, tx *sql.Tx, _ ramp.Step) error {
			if p.dialect == ramp.PostgreSQL {
				_, _ = tx.ExecContext(ctx, "UPDATE nothing SET n = 1")
				return nil
			}
			_, err := tx.ExecContext(ctx, "ROLLBACK") // as an error would
			return err
		})
		o := newOrder("alice", mint("gold", 5))
		_, err := store.Update(context.Background(), o.id, o.accept())
		expectText(t, err, "commit: a statement in Apply failed, and the database rolled back the whole transaction")
	})
}

// A lost answer is not the fault of Apply either.
func TestACommitWhoseAnswerIsLostIsNotBlamedOnApply(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		var lost atomic.Int64
		p.db = lossy(t, p, &lost)
		store := newStore(t, p, func(context.Context, *sql.Tx, ramp.Step) error { lost.Store(1); return nil })
		o := newOrder("alice", mint("gold", 5))
		_, err := store.Update(context.Background(), o.id, o.accept())
		if !errors.Is(err, errLost) || strings.Contains(err.Error(), "Apply") {
			t.Errorf("ended with %v", err)
		}
	})
}

// If every connection of the pool is bad, the database is unreachable.
func TestBadConnectionsAreReplacedTwice(t *testing.T) {
	for _, d := range databases {
		if d.dialect == ramp.PostgreSQL {
			continue // database/sql handles it there
		}
		for bad, want := range map[int64]error{2: nil, 3: driver.ErrBadConn} {
			t.Run(fmt.Sprint(d.name, "/", bad), func(t *testing.T) {
				p := newPlace(t, d, d.modes[0])
				var left, lost atomic.Int64
				left.Store(bad)
				p.db = sql.OpenDB(lossyConnector{driver: p.db.Driver(), dsn: p.dsn, lost: &lost, bad: &left})
				t.Cleanup(func() { check(t, p.db.Close()) })
				o := newOrder("alice", mint("gold", 5))
				_, err := newStore(t, p, applyNothing).Update(context.Background(), o.id, o.accept())
				if !errors.Is(err, want) {
					t.Errorf("ended with %v", err)
				}
			})
		}
	}
}

// If autocommit were on, the statements after a rollback by MySQL itself would each be
// committed. So if it cannot be turned off, the transaction does not begin.
func TestMySQLThatKeepsAutocommitBeginsNothing(t *testing.T) {
	p := on(t, ramp.MySQL)
	p.db = sql.OpenDB(rejecting{p.db.Driver(), p.dsn})
	t.Cleanup(func() { check(t, p.db.Close()) })
	store := newStore(t, p, func(context.Context, *sql.Tx, ramp.Step) error {
		t.Error("applied")
		return nil
	})
	o := newOrder("alice", mint("gold", 5))
	_, err := store.Update(context.Background(), o.id, o.accept())
	if !errors.Is(err, errRejected) {
		t.Errorf("ended with %v", err)
	}
	expectText(t, err, "ramp: begin: ")
}

var errRejected = errors.New("the proxy does not know this setting")

// rejecting is a connector whose connections do not turn autocommit off.
type rejecting struct {
	driver driver.Driver
	dsn    string
}

func (c rejecting) Driver() driver.Driver { return c.driver }

func (c rejecting) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.driver.Open(c.dsn)
	return rejectingConn{conn}, err
}

type rejectingConn struct{ driver.Conn }

func (c rejectingConn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, options)
}

func (c rejectingConn) Prepare(query string) (driver.Stmt, error) {
	if query == "SET autocommit = 0" {
		return nil, errRejected
	}
	return c.Conn.Prepare(query)
}

// A commit that fails for another reason is not blamed on Apply.
func TestACommitThatSQLiteRejectsIsNotBlamedOnApply(t *testing.T) {
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

// A driver may have another method named RegisterCommitHook. The store then works as
// with a driver without hooks.
func TestADriverWithAnotherKindOfCommitHook(t *testing.T) {
	for name, wrap := range map[string]func(sqliteConn) driver.Conn{
		"of no argument":      func(c sqliteConn) driver.Conn { return hookOfNothing{c} },
		"of two":              func(c sqliteConn) driver.Conn { return hookOfTwo{c} },
		"of a number":         func(c sqliteConn) driver.Conn { return hookOfANumber{c} },
		"whose hook takes":    func(c sqliteConn) driver.Conn { return hookThatTakes{c} },
		"whose hook is mute":  func(c sqliteConn) driver.Conn { return muteHook{c} },
		"whose hook is text":  func(c sqliteConn) driver.Conn { return textHook{c} },
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

// sqliteConn is a connection without hooks.
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
	textHook      struct{ sqliteConn }
	wordyHook     struct{ sqliteConn }
)

func (hookOfNothing) RegisterCommitHook()                       { panic("called") }
func (hookOfTwo) RegisterCommitHook(func() int, io.Writer)      { panic("called") }
func (hookOfANumber) RegisterCommitHook(int)                    { panic("called") }
func (hookThatTakes) RegisterCommitHook(func(sqliteConn) int32) { panic("called") }
func (muteHook) RegisterCommitHook(func())                      { panic("called") }
func (textHook) RegisterCommitHook(func() string)               { panic("called") }
func (wordyHook) RegisterCommitHook(func() (int32, error))      { panic("called") }
