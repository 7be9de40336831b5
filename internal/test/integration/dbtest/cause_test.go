package dbtest

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/rollback"
	"github.com/token-ramp/ramp-go/rampsql"
)

// Property 10: an error names its cause.

func expectText(t *testing.T, err error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("the error does not say %q: %v", text, err)
		}
	}
}

// Check names the wrong dialect. Without it, the first order fails, and not its result.
func TestTheWrongDialectAcceptsNoOrder(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		for _, d := range databases {
			if d.dialect == p.dialect {
				continue
			}
			store := newStore(t, &place{database: d, db: p.db}, applyNothing)
			expectText(t, store.Check(t.Context(), ""),
				"ramp: check: the dialect is "+string(d.dialect)+", but the database does not answer like it")
			o := newOrder("alice", mint("gold", 5))
			if _, err := store.Update(t.Context(), o.id, o.accept()); err == nil {
				t.Errorf("%s takes the statements of %s: let one that opens an order have what %s lacks, in "+
					"dialect.go, as DEFAULT and IIF do", p.name, d.name, p.name)
			}
		}
	})
}

func TestAnErrorOfApplyNamesStepAndOrder(t *testing.T) {
	broken := errors.New("the table is missing")
	var fails error
	store := newStore(t, placeOn(t, rampsql.SQLite), func(context.Context, *sql.Tx, ramp.Step) error { return fails })
	o := newOrder("alice", mint("gold", 5))
	abandon := ramp.Abandon("case 17", time.Now())
	expect := func(next ramp.Transition, state ramp.OrderState) {
		t.Helper()
		fails = broken
		_, err := store.Update(t.Context(), o.id, next)
		if !errors.Is(err, broken) {
			t.Errorf("the cause is not found in %v", err)
		}
		expectText(t, err, "ramp: order "+o.id.String()+": Apply ("+string(state)+"): the table is missing")
		fails = nil
	}
	if _, err := store.Update(t.Context(), o.id, abandon); !errors.Is(err, ramp.ErrOrderUnknown) ||
		strings.Contains(err.Error(), "Apply") {
		t.Errorf("an error before Apply is blamed on it: %v", err)
	}
	expect(o.accept(), ramp.OrderAccepted)
	take(t, store, o.id, o.accept())
	expect(o.finish(failure), ramp.OrderFailed)
	expect(o.finish(success), ramp.OrderSucceeded)
	expect(abandon, ramp.OrderAbandoned)
}

// With a single connection, an Apply that uses the database instead of the transaction
// waits for itself.
func TestApplyThatUsesTheDatabaseInsteadOfTx(t *testing.T) {
	t.Parallel()
	const advice = "does Apply use tx"
	eachDatabase(t, func(t *testing.T, p *place) {
		p.db.SetMaxOpenConns(1)
		check(t, p.db.Ping())   // connects, which is not in the time that follows
		cancelWait := func() {} // called as soon as Apply waits
		apply := func(ctx context.Context, _ *sql.Tx, _ ramp.Step) error {
			waits, cancel := p.db.Stats().WaitCount, cancelWait
			go func() {
				for ctx.Err() == nil && p.db.Stats().WaitCount == waits {
					time.Sleep(time.Millisecond)
				}
				cancel()
			}()
			_, err := p.db.ExecContext(ctx, "UPDATE holdings SET amount = amount")
			return err
		}
		store := newStore(t, p,
			func(ctx context.Context, tx *sql.Tx, step ramp.Step) error { return apply(ctx, tx, step) })
		o := newOrder("alice", mint("gold", 5))
		for _, cause := range []error{context.DeadlineExceeded, context.Canceled} {
			ctx, cancel := context.WithCancel(context.Background())
			if cause == context.DeadlineExceeded {
				ctx, cancel = context.WithTimeout(ctx, time.Second)
			} else {
				cancelWait = cancel
			}
			_, err := store.Update(ctx, o.id, o.accept())
			cancel()
			if !errors.Is(err, cause) {
				t.Errorf("ended with %v", err)
			}
			expectText(t, err, advice)
		}
		cancelWait = func() {}
		// as in a test with ramptest
		ctx, cancel := context.WithTimeout(rollback.Ask(context.Background()), time.Second)
		defer cancel()
		_, err := store.Update(ctx, o.id, o.accept())
		expectText(t, err, advice)

		// On SQLite, tx has the only lock.
		apply = func(context.Context, *sql.Tx, ramp.Step) error {
			return errors.New("database is locked (5) (SQLITE_BUSY)")
		}
		_, err = store.Update(context.Background(), o.id, o.accept())
		if err == nil || strings.Contains(err.Error(), advice) != p.file {
			t.Errorf("ended with %v", err)
		}

		// Another error, or one after a wait that ended, does not give this advice.
		for _, apply = range []func(context.Context, *sql.Tx, ramp.Step) error{
			func(context.Context, *sql.Tx, ramp.Step) error { return context.DeadlineExceeded },
			func(ctx context.Context, _ *sql.Tx, _ ramp.Step) error {
				ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
				defer cancel()
				if p.db.PingContext(ctx) == nil {
					t.Error("there was a free connection")
				}
				return errors.New("rejected")
			},
		} {
			_, err = store.Update(context.Background(), o.id, o.accept())
			if err == nil || strings.Contains(err.Error(), advice) {
				t.Errorf("ended with %v", err)
			}
		}
	})
}
