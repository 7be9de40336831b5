package dbtest

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// A purse is full when the result comes. The refusal, with its reason, is known until the order has
// ended, and noting it changes no answer.
func TestTheLastRefusalOfAResultIsKnown(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		var full error
		s := studio{db: p.db, dialect: p.dialect}
		w := newWorld(t, p, newStore(t, p, func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
			if step.Effect.Kind == ramp.Grant && !step.Rehearsal && full != nil {
				return full
			}
			return s.Apply(ctx, tx, step)
		}))
		w.give("alice", "gold", 10)
		bought, sold := newOrder("alice", burn("gold", 5)), newOrder("alice", mint("gold", 7))
		w.expect(w.validate(bought), "200")
		w.expect(w.validate(sold), "200")
		count := func(d ramp.Direction, want int) time.Time {
			t.Helper()
			n, first, err := w.store.CountRefused(t.Context(), d)
			check(t, err)
			equal(t, string(d)+"s that wait and were refused", n, want)
			return first
		}
		equal(t, "no refusal", count(ramp.Burn, 0).IsZero(), true)

		full = errors.New("the purse\nis full")
		before := time.Now().Add(-time.Second)
		for range 3 {
			w.expect(w.result(bought, success), "500 INTERNAL_ERROR")
		}
		w.expect(w.result(newOrder("alice", burn("gold", 5)), success), "500 INTERNAL_ERROR") // an unknown order
		noted := must.Get(w.store.Refusals(t.Context(), bought.id, sold.id))(t)
		equal(t, "refusals", len(noted), 1)
		refusal := noted[bought.id]
		equal(t, "how often", refusal.Count, 3)
		equal(t, "why", refusal.Reason, "ramp: order "+bought.id.String()+": Apply (succeeded): the purse is full")
		if refusal.First.Before(before) || refusal.Last.Before(refusal.First) || refusal.Last.After(time.Now()) {
			t.Errorf("from %v to %v", refusal.First, refusal.Last)
		}
		equal(t, "since when", count(ramp.Burn, 1).Equal(refusal.First), true)
		count(ramp.Mint, 0)

		if p.admin == nil {
			run(t, p.db, "ALTER TABLE ramp_refusals RENAME TO gone")
		} else {
			run(t, p.admin, "ALTER TABLE "+p.schema+".ramp_refusals RENAME TO "+map[bool]string{
				true: p.schema + ".", false: ""}[p.driver == "mysql"]+"gone")
		}
		w.expect(w.result(bought, success), "500 INTERNAL_ERROR") // nobody can note it, and the answer is the same
		full = nil
		w.expect(w.result(bought, success), "200")
		w.expect(w.result(sold, success), "200")
		if err := w.store.Check(t.Context(), ""); err == nil {
			t.Error("Check finds a table where there is none")
		}
	})
}

// When the order has ended, nothing counts it any more, and nothing was cleared.
func TestARefusalEndsWithItsOrder(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		store := newStoreOf(t, p, applyNothing, ramp.Testnet, "project")
		o := newOrder("alice", burn("gold", 5))
		take(t, store, o.id, o.accept())
		check(t, store.Refused(t.Context(), o.id, "the purse is full"))
		take(t, store, o.id, ramp.Finish(o.report(success), day0))
		n, _, err := store.CountRefused(t.Context(), ramp.Burn)
		check(t, err)
		equal(t, "refused burns that wait", n, 0)
		equal(t, "refusals that are kept", len(must.Get(store.Refusals(t.Context(), o.id))(t)), 1)

		p.may(t, "DELETE")
		run(t, p.db, "UPDATE ramp_orders SET accepted_at = 0")
		n = must.Get(store.DeleteFinished(t.Context(), ramp.Burn, time.Now().AddDate(0, 0, -7)))(t)
		equal(t, "orders that were deleted", n, 1)
		equal(t, "refusals of a deleted order", len(must.Get(store.Refusals(t.Context(), o.id))(t)), 0)
		equal(t, "refusals of no order", len(must.Get(store.Refusals(t.Context()))(t)), 0)
	})
}
