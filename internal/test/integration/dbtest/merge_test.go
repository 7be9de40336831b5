package dbtest

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampsql"
)

// Two shards become one as docs/many-games.md says: the tables of orders are copied, and a session that both
// have gets a new name in the orders that have ended. What waits ends once, what has ended is not opened again, and
// one transaction still ends one order.
func TestTwoShardsBecomeOne(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		other := newPlace(t, p.database, p.mode)
		moved := map[string]int64{}
		apply := func(_ context.Context, _ *sql.Tx, step ramp.Step) error {
			for _, a := range step.Effect.Assets {
				if !step.Rehearsal {
					moved[step.Order.SessionID] += must.Get(step.Effect.Delta(a).Int64())(t)
				}
			}
			return nil
		}
		first, second := newStore(t, p, apply), newStore(t, other, apply)
		kept, ended, waits := newOrder("1001", burn("gold", 5)), newOrder("1001", burn("gold", 7)),
			newOrder("2002", mint("gold", 9))
		take(t, first, kept.id, acceptAt(kept, day0))
		take(t, first, kept.id, kept.finish(success))
		take(t, second, ended.id, acceptAt(ended, day0))
		take(t, second, ended.id, ended.finish(success))
		take(t, second, waits.id, acceptAt(waits, day0))
		check(t, second.Refused(t.Context(), waits.id, "no room"))

		run(t, other.db, "UPDATE ramp_orders SET session_id = 's2-1001' WHERE session_id = '1001'")
		for _, table := range []string{"ramp_orders", "ramp_refusals"} {
			copyRows(t, other.db, p, table)
		}

		equal(t, "orders of 1001", len(must.Get(first.SessionOrders(t.Context(), "1001", ramp.OrderPage{}))(t)), 1)
		n, _, err := first.CountRefused(t.Context(), ramp.Mint)
		check(t, err)
		equal(t, "refusals", n, 1)
		for _, again := range []ramp.Transition{ended.accept(), ended.finish(success)} { // by a thief
			if _, err := first.Update(t.Context(), ended.id, again); err == nil {
				t.Error("a call of the order that was renamed is taken")
			}
		}
		for _, want := range []bool{true, false} {
			step := must.Get(first.Update(t.Context(), waits.id, waits.finish(failure)))(t)
			equal(t, "the mint that waited gives back once", step.New, want)
		}
		equal(t, "what has moved", fmt.Sprint(moved), "map[1001:12 2002:0]")
		late := newOrder("2002", burn("gold", 7))
		take(t, first, late.id, acceptAt(late, time.Now()))
		_, err = first.Update(t.Context(), late.id, ramp.Finish(late.reportBy(txHashOf(ended.id), success), time.Now()))
		if err == nil {
			t.Error("the transaction of an order of the other shard ends a second order")
		}
	})
}

// A burn that has ended is left behind, so a thief who has recorded its calls is paid again. One transaction has
// ended an order in each shard, so the copy of the second one is refused. A copy that is made twice is refused, too.
func TestWhatAMergeOfShardsMustNotLeaveOut(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		other := newPlace(t, p.database, p.mode)
		granted := 0
		apply := func(_ context.Context, _ *sql.Tx, step ramp.Step) error {
			if step.Effect.Kind == ramp.Grant && !step.Rehearsal {
				granted++
			}
			return nil
		}
		first, second := newStore(t, p, apply), newStore(t, other, apply)
		ends := func(store *rampsql.Store, o order, hash string) {
			t.Helper()
			take(t, store, o.id, o.accept())
			take(t, store, o.id, ramp.Finish(o.reportBy(hash, success), time.Now()))
		}
		behind, shared, twin := newOrder("a", burn("gold", 5)), newOrder("a", burn("gold", 5)),
			newOrder("b", burn("gold", 5))
		ends(second, behind, txHashOf(behind.id))
		ends(first, behind, txHashOf(behind.id)) // as by a thief, after a merge without it
		equal(t, "grants of one burn", granted, 2)

		ends(first, shared, txHashOf(shared.id))
		ends(second, twin, txHashOf(shared.id))
		for _, o := range []order{behind, twin} { // a copy that exists, and a transaction that has ended another order
			run(t, other.db, "UPDATE ramp_orders SET claim = 'this' WHERE uuid = '"+o.id.String()+"'")
			if err := tryToCopyRows(t, other.db, p, "ramp_orders", " WHERE claim = 'this'"); err == nil {
				t.Error("the row is copied")
			}
			run(t, other.db, "UPDATE ramp_orders SET claim = 'that'")
		}
		orders := must.Get(first.Ended(t.Context(), day0, time.Now().Add(time.Hour), ramp.OrderPage{}))(t)
		equal(t, "orders", len(orders), 2)
	})
}

// copyRows copies all columns of a table into another database.
func copyRows(t *testing.T, from *sql.DB, to *place, table string) {
	t.Helper()
	check(t, tryToCopyRows(t, from, to, table, ""))
}

func tryToCopyRows(t *testing.T, from *sql.DB, to *place, table, where string) error {
	t.Helper()
	rows := must.Get(from.Query("SELECT * FROM " + table + where))(t)
	defer rows.Close()
	columns := must.Get(rows.Columns())(t)
	insert := "INSERT INTO " + table + " (" + strings.Join(columns, ", ") + ") VALUES (?" +
		strings.Repeat(", ?", len(columns)-1) + ")"
	for rows.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		check(t, rows.Scan(into...))
		for i, value := range values {
			if text, ok := value.([]byte); ok {
				values[i] = string(text)
			}
		}
		if _, err := to.db.Exec(bind(to.dialect, insert), values...); err != nil {
			return err
		}
	}
	return rows.Err()
}
