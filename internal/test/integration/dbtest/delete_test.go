package dbtest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// Only orders that finished before the limit are deleted, and never one that waits.
func TestDeletingFinishedOrders(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		store := newStoreOf(t, p, applyNothing, ramp.Testnet, "project")
		limit := day0.Add(24 * time.Hour)
		succeed := func(o order, at time.Time) ramp.Transition { return ramp.Finish(o.report(success), at) }
		fail := func(o order, at time.Time) ramp.Transition { return ramp.Finish(o.report(failure), at) }
		abandon := func(_ order, at time.Time) ramp.Transition { return ramp.Abandon("case 17", at) }
		lives := func(intent func(...any) ramp.Intent) map[string]order {
			made := func(at time.Time, end func(order, time.Time) ramp.Transition, ended time.Time) order {
				o := newOrder("alice", intent("gold", 5))
				if end == nil {
					o.user = "0xcc00000000000000000000000000000000000000"
				}
				take(t, store, o.id, acceptAt(o, at))
				if end != nil { // it does not wait
					take(t, store, o.id, end(o, ended))
				}
				return o
			}
			return map[string]order{
				"succeeded":     made(day0, succeed, limit.Add(-time.Millisecond)),
				"failed":        made(day0, fail, limit.Add(-time.Millisecond)),
				"abandoned":     made(day0, abandon, limit.Add(-time.Millisecond)),
				"waits":         made(day0, nil, time.Time{}),
				"ended late":    made(day0, succeed, limit),
				"accepted late": made(limit, succeed, limit.Add(-time.Hour)), // a clock was set back
			}
		}
		all := map[ramp.Direction]map[string]order{ramp.Mint: lives(mint), ramp.Burn: lives(burn)}
		if _, err := store.DeleteFinished(t.Context(), ramp.Mint, limit); err == nil && !p.file {
			t.Error("deleted without the right to")
		} else if !p.file {
			expectText(t, err, "ramp: delete finished orders: ")
		}
		p.may(t, "DELETE")
		gone := func(o order) bool {
			t.Helper()
			_, err := store.Order(t.Context(), o.id)
			if err != nil && !errors.Is(err, ramp.ErrOrderUnknown) {
				t.Fatal(err)
			}
			return err != nil
		}
		for _, direction := range []ramp.Direction{ramp.Mint, ramp.Burn} {
			for must.Get(store.DeleteFinished(t.Context(), direction, limit))(t) > 0 {
			}
			for of, orders := range all {
				for name, o := range orders {
					old := (of == ramp.Mint || direction == ramp.Burn) &&
						strings.Contains("succeeded failed abandoned", name)
					if gone(o) != old {
						t.Errorf("when %ss were deleted, a %s that %s: deleted %t", direction, of, name, !old)
					}
				}
			}
		}
	})
}

// While an order waits, a transaction of its wallet keeps the order that it has ended: otherwise it would end the one
// that waits, too.
func TestNothingIsDeletedThatExplainsATransaction(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		p.may(t, "DELETE")
		store := newStoreOf(t, p, applyNothing, ramp.Testnet, "project")
		const long = 24 * time.Hour
		placed := func(user string, intent ramp.Intent, at time.Time) order {
			o := newOrder("alice", intent)
			o.user = user
			take(t, store, o.id, acceptAt(o, at))
			return o
		}
		const wallet = "0xBb00000000000000000000000000000000000000"
		const another = "0xcc00000000000000000000000000000000000000"
		waits := placed(strings.ToLower(wallet), mint("gold", 5), day0.Add(2*long))
		deleted := map[string]bool{}
		ids := map[string]order{}
		for name, o := range map[string]order{
			"ended long before":      placed(wallet, mint("gold", 5), day0),
			"accepted before":        placed(wallet, mint("gold", 5), day0.Add(time.Hour)),
			"accepted later":         placed(wallet, mint("gold", 5), day0.Add(2*long+time.Hour)),
			"of another wallet":      placed(another, mint("gold", 5), day0.Add(2*long+time.Hour)),
			"of the other direction": placed(wallet, burn("gold", 5), day0.Add(2*long+time.Hour)),
			"of an erased player":    placed("erased-1", mint("gold", 5), day0.Add(2*long+time.Hour)),
		} {
			ended := day0.Add(3 * long)
			if name == "ended long before" {
				ended = day0.Add(2*long - 2*time.Hour)
			}
			take(t, store, o.id, ramp.Finish(o.report(success), ended))
			ids[name] = o
		}
		deletes := func() map[string]bool {
			for _, d := range []ramp.Direction{ramp.Mint, ramp.Burn} {
				must.Get(store.DeleteFinished(t.Context(), d, day0.Add(4*long)))(t)
			}
			for name, o := range ids {
				_, err := store.Order(t.Context(), o.id)
				deleted[name] = errors.Is(err, ramp.ErrOrderUnknown)
			}
			return deleted
		}
		equal(t, "deleted", fmt.Sprint(deletes()), "map[accepted before:false accepted later:false "+
			"ended long before:true of an erased player:false of another wallet:true of the other direction:true]")
		take(t, store, waits.id, ramp.Finish(waits.report(success), day0.Add(3*long)))
		equal(t, "deleted once nothing waits", fmt.Sprint(deletes()), "map[accepted before:true accepted later:true "+
			"ended long before:true of an erased player:true of another wallet:true of the other direction:true]")
	})
}

func TestDeletingGoesOnInParts(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		fill(t, p, 2600) // 1,248 of them are finished mints
		run(t, p.db, "UPDATE ramp_orders SET user_address = 'nobody else' WHERE state = 'accepted'")
		p.may(t, "DELETE")
		store := newStoreOf(t, p, applyNothing, ramp.Testnet, "project")
		deleted := 0
		for {
			n := must.Get(store.DeleteFinished(t.Context(), ramp.Mint, day0.Add(24*time.Hour)))(t)
			if n > 1000 {
				t.Errorf("%d orders were deleted at once", n)
			}
			if deleted += n; n == 0 {
				break
			}
		}
		var left, want int
		check(t, p.db.QueryRow("SELECT count(*) FROM ramp_orders").Scan(&left))
		check(t,
			p.db.QueryRow("SELECT count(*) FROM ramp_orders WHERE direction = 'burn' OR state = 'accepted'").Scan(
				&want))
		if left != want || deleted != 2600-want {
			t.Errorf("%d orders were deleted, %d are left, not %d", deleted, left, want)
		}
	})
}

// A player is erased, and the books stay complete. What still waits keeps its session.
func TestErasingASession(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		store := newStoreOf(t, p, applyNothing, ramp.Testnet, "project")
		const long = 14 * 24 * time.Hour
		placed := func(session string, age time.Duration, ends bool) order {
			o := newOrder(session, mint("gold", 5))
			at := time.Now().Add(-age)
			take(t, store, o.id, acceptAt(o, at))
			if ends {
				take(t, store, o.id, ramp.Finish(o.report(failure), at.Add(time.Minute)))
			}
			return o
		}
		old, older := placed("alice", long, true), placed("alice", 2*long, true)
		kept := []order{placed("alice", time.Hour, true), placed("alice", long, false), placed("bob", long, true),
			placed("Alice", long, true)}
		n := must.Get(store.EraseSession(t.Context(), " alice ", time.Now().Add(-7*24*time.Hour)))(t)
		equal(t, "orders that were erased", n, 2)
		first := must.Get(store.Order(t.Context(), old.id))(t)
		second := must.Get(store.Order(t.Context(), older.id))(t)
		if !strings.HasPrefix(first.SessionID, "erased-") || first.UserAddress != first.SessionID ||
			second.SessionID != first.SessionID {
			t.Errorf("the session is %q at %q, and %q", first.SessionID, first.UserAddress, second.SessionID)
		}
		if first.TxHash != txHashOf(old.id) || len(first.Assets) != 1 || first.State != ramp.OrderFailed {
			t.Errorf("the order is %+v", first)
		}
		for _, o := range kept {
			if got, err := store.Order(t.Context(), o.id); err != nil || got.SessionID != o.session ||
				got.UserAddress != o.user {
				t.Errorf("the order of another is %+v, %v", got, err)
			}
		}
		if n, err := store.EraseSession(t.Context(), " ", time.Now().Add(-long)); n != 0 || err != nil {
			t.Errorf("no session has %d orders, %v", n, err)
		}
		if _, err := store.EraseSession(t.Context(), "alice", time.Now()); err == nil {
			t.Error("erased orders that may still be delivered")
		}
	})
}
