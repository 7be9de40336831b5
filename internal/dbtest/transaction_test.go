package dbtest

import (
	"database/sql"
	"errors"
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
			tx := ramp.Must(p.db.BeginTx(t.Context(), &sql.TxOptions{Isolation: p.mode.isolation}))
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
