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

// A player is deleted while an order waits. The game cannot move the assets any more, so a person
// settles them in another way and ends the order.
func TestAPersonEndsTheOrderOfADeletedPlayer(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		s := studio{db: p.db, dialect: p.dialect}
		applied := 0
		apply := func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
			applied++
			var players int
			query := bind(p.dialect, "SELECT count(*) FROM players WHERE id = ?")
			err := tx.QueryRowContext(ctx, query, step.Order.SessionID).Scan(&players)
			if err == nil && players == 0 {
				err = errors.New("no such player")
			}
			if err != nil {
				return err
			}
			return s.Apply(ctx, tx, step)
		}
		w := newWorld(t, p, newStoreOf(t, p, apply, ramp.Testnet, "project"))
		run(t, p.db, "INSERT INTO players VALUES ('alice')")
		w.give("alice", "gold", 100)
		sold, bought, gone := newOrder("alice", mint("gold", 60)), newOrder("alice", burn("gold", 5)),
			newOrder("alice", mint("gold", 7))
		for _, o := range []order{sold, bought, gone} {
			w.expect(w.validate(o), "200")
		}
		run(t, p.db, "UPDATE players SET id = 'somebody else'")
		run(t, p.db, "UPDATE holdings SET amount = 0")

		w.expect(w.result(sold, failure), "500 INTERNAL_ERROR")
		w.expect(w.result(bought, success), "500 INTERNAL_ERROR")
		for name, next := range map[string]ramp.Transition{
			"finish": sold.finish(failure), "abandon": ramp.Abandon("alice: deleted", day0),
		} {
			if _, err := w.store.Update(t.Context(), sold.id, next); err == nil {
				t.Errorf("%s moved the assets of a player who is gone", name)
			}
		}
		before := applied
		const how = "by mail, ticket 17 📨"
		for o, next := range map[*order]ramp.Transition{
			&sold: ramp.Finish(sold.report(failure), day0), &bought: ramp.Finish(bought.report(success), day0),
			&gone: ramp.Abandon("alice: deleted", day0),
		} {
			step := must.Get(w.store.Update(t.Context(), o.id, ramp.Settled(how, next)))(t)
			equal(t, "the effect", step.Effect.Kind, ramp.Nothing)
			equal(t, "how, as it is stored", must.Get(w.store.Order(t.Context(), o.id))(t).Settled, how)
		}
		w.expect(w.result(sold, failure), "200") // a repeat
		w.expect(w.result(bought, success), "200")
		w.expect(w.result(gone, failure), "200")
		equal(t, "calls of Apply for what was settled in another way", applied-before, 0)
		var left int
		check(t, p.db.QueryRow("SELECT SUM(amount) FROM holdings").Scan(&left))
		equal(t, "the balances", left, 0)
		for _, d := range []ramp.Direction{ramp.Mint, ramp.Burn} {
			n, _, err := w.store.CountWaiting(t.Context(), d, time.Now())
			check(t, err)
			equal(t, "waiting orders", n, 0)
		}
		if n := must.Get(w.store.EraseSession(t.Context(), "alice", time.Now().AddDate(0, 0, -7)))(t); n != 3 {
			t.Errorf("%d orders of the deleted player were made anonymous, not 3", n)
		}
	}, "CREATE TABLE players (id VARCHAR(64) PRIMARY KEY);")
}
