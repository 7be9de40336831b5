package dbtest

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

// Property 10: an error names its cause.

// applier is a studio whose Apply is a function.
type applier struct {
	studio
	apply func(ctx context.Context, tx *sql.Tx, step ramp.Step) error
}

func (s applier) Apply(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
	return s.apply(ctx, tx, step)
}

func expectText(t *testing.T, err error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("the error does not say %q: %v", text, err)
		}
	}
}

func TestTheWrongDialectIsNamed(t *testing.T) {
	ctx := context.Background()
	eachDatabase(t, func(t *testing.T, p *place) {
		o := newOrder("alice", mint("gold", 5))
		for _, d := range databases {
			if d.dialect == p.dialect {
				continue
			}
			orders, err := ramp.NewOrders(d.dialect)
			check(t, err)
			for name, step := range map[string]func(tx *sql.Tx) error{
				"accept": func(tx *sql.Tx) error {
					_, err := orders.Accept(ctx, tx, ramp.Session{ID: o.session}, o.validateRequest())
					return err
				},
				"finish": func(tx *sql.Tx) error {
					_, err := orders.Finish(ctx, tx, o.report(success))
					return err
				},
				"waiting": func(tx *sql.Tx) error {
					_, err := orders.Waiting(ctx, tx, time.Now(), 1)
					return err
				},
			} {
				tx, err := p.db.Begin()
				check(t, err)
				err = step(tx)
				check(t, tx.Rollback())
				if err == nil || errors.Is(err, ramp.ErrOrderUnknown) {
					continue // what both dialects understand
				}
				t.Logf("%s with %s: %v", name, d.name, err)
				expectText(t, err, "the dialect is "+d.name, "check that the database is one")
			}
			// The first statement of a new order is one that only its own dialect has.
			tx, err := p.db.Begin()
			check(t, err)
			_, err = orders.Accept(ctx, tx, ramp.Session{ID: o.session}, o.validateRequest())
			check(t, tx.Rollback())
			if err == nil {
				t.Errorf("%s takes the statements of %s", p.name, d.name)
			}

			// SQLGame says so too, although its own first statement differs.
			game, err := ramp.NewSQLGame(p.db, d.dialect, studio{db: p.db, dialect: p.dialect})
			check(t, err)
			err = game.Validate(ctx, ramp.Session{ID: o.session}, o.validateRequest())
			t.Logf("game with %s: %v", d.name, err)
			expectText(t, err, "the dialect is "+d.name, "check that the database is one")
		}
		// An error of the right dialect has no such advice.
		orders, err := ramp.NewOrders(p.dialect)
		check(t, err)
		tx, err := p.db.Begin()
		check(t, err)
		_, err = orders.Finish(ctx, tx, o.report(success))
		check(t, tx.Rollback())
		if !errors.Is(err, ramp.ErrOrderUnknown) || strings.Contains(err.Error(), "dialect") {
			t.Errorf("an unknown order: %v", err)
		}
	})
}

func TestAnErrorOfApplyNamesStepAndOrder(t *testing.T) {
	ctx := context.Background()
	eachDatabase(t, func(t *testing.T, p *place) {
		broken := errors.New("the table is missing")
		s := applier{studio: studio{db: p.db, dialect: p.dialect}}
		var fails error
		s.apply = func(context.Context, *sql.Tx, ramp.Step) error { return fails }
		game, err := ramp.NewSQLGame(p.db, p.dialect, s)
		check(t, err)
		o := newOrder("alice", mint("gold", 5))
		session := ramp.Session{ID: o.session}
		expectCause := func(err error, state ramp.OrderState) {
			t.Helper()
			if !errors.Is(err, broken) {
				t.Errorf("the cause is not found in %v", err)
			}
			expectText(t, err, "ramp: order "+o.id.String()+": Apply ("+string(state)+"): the table is missing")
		}

		fails = broken
		expectCause(game.Validate(ctx, session, o.validateRequest()), ramp.OrderAccepted)
		fails = ramp.Reject("INVALID_BALANCE")
		err = game.Validate(ctx, session, o.validateRequest())
		var refusal *ramp.Refusal
		if !errors.As(err, &refusal) || refusal.Code != "INVALID_BALANCE" {
			t.Errorf("declined with %v", err)
		}
		expectText(t, err, o.id.String(), "Apply (accepted)")
		fails = nil
		check(t, game.Validate(ctx, session, o.validateRequest()))
		fails = broken
		expectCause(game.Result(ctx, session, o.report(failure)), ramp.OrderFailed)
		expectCause(game.Result(ctx, session, o.report(success)), ramp.OrderSucceeded)
		expectCause(game.Abandon(ctx, o.id, "case 17"), ramp.OrderAbandoned)
		if err := game.Abandon(ctx, uuid.New(), "case 17"); strings.Contains(err.Error(), "Apply") {
			t.Errorf("an error before Apply is blamed on it: %v", err)
		}
	})
}

// With one connection, Apply that uses the database waits for itself.
func TestApplyThatUsesTheDatabaseInsteadOfTx(t *testing.T) {
	const advice = "Apply must use tx"
	eachDatabase(t, func(t *testing.T, p *place) {
		p.db.SetMaxOpenConns(1)
		s := applier{studio: studio{db: p.db, dialect: p.dialect}}
		cancelWait := func() {} // is called once Apply waits
		s.apply = func(ctx context.Context, _ *sql.Tx, _ ramp.Step) error {
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
		game, err := ramp.NewSQLGame(p.db, p.dialect, &s)
		check(t, err)
		o := newOrder("alice", mint("gold", 5))
		for _, cause := range []error{context.DeadlineExceeded, context.Canceled} {
			ctx, cancel := context.WithCancel(context.Background())
			if cause == context.DeadlineExceeded {
				ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
			} else {
				cancelWait = cancel
			}
			err = game.Validate(ctx, ramp.Session{ID: o.session}, o.validateRequest())
			cancel()
			if !errors.Is(err, cause) {
				t.Errorf("ended with %v", err)
			}
			expectText(t, err, advice, "the pool of 1 connection")
		}

		// A deadline that has another cause gets no such advice.
		s.apply = func(context.Context, *sql.Tx, ramp.Step) error { return context.DeadlineExceeded }
		err = game.Validate(context.Background(), ramp.Session{ID: o.session}, o.validateRequest())
		if err == nil || strings.Contains(err.Error(), advice) {
			t.Errorf("ended with %v", err)
		}
	})
}
