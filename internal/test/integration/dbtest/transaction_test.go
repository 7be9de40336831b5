package dbtest

import (
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
	if conflict.Field != "tx_hash" || conflict.Order.UUID != o.id || conflict.Order.State != ramp.OrderAccepted ||
		conflict.Order.TxHash != "" ||
		conflict.Other.UUID != other.id || conflict.Other.State != ramp.OrderSucceeded {
		t.Errorf("the conflict is %+v with %+v", conflict, conflict.Other)
	}
}

func TestOneTransactionPaysOneOrder(t *testing.T) {
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
			_, err := w.store.Update(t.Context(), o.id, ramp.Finish(o.reportBy(txHash("ab"), success), day0))
			return err
		}
		check(t, finish(first))
		errs := make([]error, len(losers))
		var wg sync.WaitGroup
		for i, o := range losers { // at once: to look for the winner must not be a deadlock
			wg.Go(func() { errs[i] = finish(o) })
		}
		wg.Wait()
		for i, o := range losers {
			expectTaken(t, errs[i], o, first)
		}
	})
}
