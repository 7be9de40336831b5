package dbtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	ramp "github.com/token-ramp/ramp-go"
)

// Property 11: one transaction ends one order. Without the rule, a caller who has the
// HMAC key and one successful transaction is paid for it once per order.

func (o order) reportBy(txHash string, status uint64) *ramp.Result {
	r := o.report(status)
	r.TxHash = txHash
	return r
}

func TestOneTransactionPaysOneOrder(t *testing.T) {
	eachMode(t, func(t *testing.T, p *place) {
		w := newWorld(t, p, nil)
		w.give("alice", "gold", 100)
		w.give("bob", "gold", 100)
		first, second := newOrder("alice", burn("gold", 5)), newOrder("bob", burn("gold", 7)) // one wallet, two sessions
		w.expect(w.validate(first), "200")
		w.expect(w.validate(second), "200")
		paidBy := func(o order, txHash string) answer {
			return w.post(ramp.PathResult, o.session, o.reportBy(txHash, success))
		}
		w.expect(paidBy(first, txHash("ab")), "200")
		for _, same := range []string{txHash("ab"), "0X" + strings.ToUpper(txHash("ab")[2:])} {
			w.expect(paidBy(second, same), "500 INTERNAL_ERROR")
		}
		w.books(moves{first.id: {"grant alice +5 gold"}, second.id: nil})
		w.expectAutocommit()
		heard := second.id.String() + " was accepted: tx_hash"
		if len(w.conflicts) != 2 || w.conflicts[0] != heard {
			t.Errorf("the hook heard %q", w.conflicts)
		}

		_, err := w.store.Update(t.Context(), second.id, ramp.Finish(second.reportBy(txHash("ab"), success), day0))
		expectTaken(t, err, second, first)

		w.expect(paidBy(first, txHash("ab")), "200")
		w.expect(paidBy(second, txHash("cd")), "200")
		w.books(moves{first.id: {"grant alice +5 gold"}, second.id: {"grant bob +7 gold"}})
	})
}

// expectTaken fails the test unless err says that the transaction of o has ended other.
func expectTaken(t *testing.T, err error, o, other order) {
	t.Helper()
	var conflict *ramp.ConflictError
	if !errors.As(err, &conflict) || conflict.Other == nil {
		t.Fatalf("the transaction has ended another order, but: %v", err)
	}
	if conflict.Field != "tx_hash" || conflict.Order.UUID != o.id || conflict.Order.State != ramp.OrderAccepted || conflict.Order.TxHash != "" ||
		conflict.Other.UUID != other.id || conflict.Other.State != ramp.OrderSucceeded {
		t.Errorf("the conflict is %+v with %+v", conflict, conflict.Other)
	}
}

// Of several orders that one transaction ends at the same moment, one wins. A database
// may abort others, whose repeat finds out.
func TestOneTransactionRacesForSeveralOrders(t *testing.T) {
	const rounds, rivals = 5, 4
	eachMode(t, func(t *testing.T, p *place) {
		w, want := newWorld(t, p, nil), moves{}
		for round := range rounds {
			orders := make([]order, rivals)
			for i := range orders {
				player := fmt.Sprintf("player%d-%d", round, i)
				w.give(player, "gold", 100)
				orders[i] = newOrder(player, burn("gold", 5))
				w.expect(w.validate(orders[i]), "200")
			}
			hash := txHashOf(orders[0].id)
			results := make([]answer, rivals)
			var wg sync.WaitGroup
			for i, o := range orders {
				wg.Go(func() { results[i] = w.post(ramp.PathResult, o.session, o.reportBy(hash, success)) })
			}
			wg.Wait()
			won := 0
			for i, o := range orders {
				if results[i].status == http.StatusOK {
					won++
					want[o.id] = []string{"grant " + o.session + " +5 gold"}
				}
			}
			if won != 1 {
				t.Errorf("%d of %d orders have ended by one transaction: %v", won, rivals, results)
			}
			for _, o := range orders {
				if want[o.id] == nil {
					w.expect(w.post(ramp.PathResult, o.session, o.reportBy(hash, success)), "500 INTERNAL_ERROR")
				}
			}
		}
		w.books(want)
		w.expectAutocommit()
	})
}

// In a transaction of the caller, the error is the same. On PostgreSQL, which answers
// nothing after an error, it does not have the other order.
func TestOneTransactionPaysOneOrderInUpdateTx(t *testing.T) {
	eachMode(t, func(t *testing.T, p *place) {
		w := newWorld(t, p, nil)
		first := newOrder("alice", burn("gold", 5))
		take(t, w.store, first.id, first.accept())
		losers := make([]order, 3)
		for i := range losers {
			losers[i] = newOrder("bob", burn("gold", 7))
			take(t, w.store, losers[i].id, losers[i].accept())
		}
		finish := func(o order) error {
			tx, err := p.db.BeginTx(t.Context(), &sql.TxOptions{Isolation: p.mode.isolation})
			check(t, err)
			defer func() { _ = tx.Rollback() }()
			if _, err := w.store.UpdateTx(t.Context(), tx, o.id, ramp.Finish(o.reportBy(txHash("ab"), success), day0)); err != nil {
				return err
			}
			return tx.Commit()
		}
		check(t, finish(first))
		errs := make([]error, len(losers))
		var wg sync.WaitGroup
		for i, o := range losers { // at once: to look for the winner must not be a deadlock
			wg.Go(func() { errs[i] = finish(o) })
		}
		wg.Wait()
		for i, o := range losers {
			if p.dialect == ramp.SQLite && !errors.Is(errs[i], ramp.ErrOrderConflict) {
				errs[i] = finish(o) // SQLITE_BUSY: its snapshot was outdated
			}
			if p.dialect != ramp.PostgreSQL {
				expectTaken(t, errs[i], o, first)
				continue
			}
			var conflict *ramp.ConflictError
			if !errors.As(errs[i], &conflict) || conflict.Order.UUID != o.id || conflict.Other == nil || conflict.Other.TxHash != txHash("ab") {
				t.Errorf("the transaction has ended another order, but: %v", errs[i])
			}
			expectText(t, errs[i], "tx_hash has ended another order")
		}
	})
}

// A damaged row keeps its transaction. It must not make the answer another one.
func TestADamagedRowKeepsItsTransaction(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		w := newWorld(t, p, nil)
		first, second := newOrder("alice", burn("gold", 5)), newOrder("alice", burn("gold", 7))
		w.give("alice", "gold", 100)
		for _, o := range []order{first, second} {
			w.expect(w.validate(o), "200")
		}
		w.expect(w.post(ramp.PathResult, first.session, first.reportBy(txHash("ab"), success)), "200")
		_, err := p.db.Exec(bind(p.dialect, "UPDATE ramp_orders SET intent = '' WHERE uuid = ?"), first.id.String())
		check(t, err)
		_, err = w.store.Update(t.Context(), second.id, ramp.Finish(second.reportBy(txHash("ab"), success), day0))
		expectTaken(t, err, second, first)
	})
}

// The error of a step that failed for another reason stays what it is.
func TestAnotherErrorOfAnEndIsNoConflict(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		broken := errors.New("broken")
		store := newStore(t, p, func(_ context.Context, _ *sql.Tx, step ramp.Step) error {
			if step.Order.State == ramp.OrderSucceeded {
				return broken
			}
			return nil
		})
		o := newOrder("alice", burn("gold", 5))
		take(t, store, o.id, o.accept())
		if _, err := store.Update(t.Context(), o.id, o.finish(success)); !errors.Is(err, broken) || errors.Is(err, ramp.ErrOrderConflict) {
			t.Errorf("ended with %v", err)
		}
	})
}
