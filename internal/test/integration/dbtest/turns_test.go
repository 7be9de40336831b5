package dbtest

import (
	"context"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// While somebody holds a row, such as a person in an open transaction, the calls for it wait, but not with all
// connections: another player trades at once. Afterwards each of them ends.
func TestALockedRowHoldsOneConnection(t *testing.T) {
	const calls, conns = 25, 5
	lockHoldings := func(order) string { return "UPDATE holdings SET amount = amount WHERE session_id = 'alice'" }
	lockOrder := func(o order) string {
		return "UPDATE ramp_orders SET claim = claim WHERE uuid = '" + o.id.String() + "'"
	}
	for _, c := range []struct {
		name string
		lock func(o order) string // o is the first order
		call func(store ramp.Store, ctx context.Context, o, first order) error
	}{
		{"results of a player whose row is locked", lockHoldings,
			func(s ramp.Store, ctx context.Context, o, _ order) error {
				_, err := s.Update(ctx, o.id, o.finish(failure))
				return err
			}},
		{"mints of a player whose row is locked", lockHoldings,
			func(s ramp.Store, ctx context.Context, _, _ order) error {
				o := newOrder("alice", mint("gold", 1))
				_, err := s.Update(ctx, o.id, o.accept())
				return err
			}},
		{"burns of a player whose row is locked", lockHoldings,
			func(s ramp.Store, ctx context.Context, _, _ order) error {
				o := newOrder("alice", burn("gold", 1))
				_, err := s.Update(ctx, o.id, o.accept())
				return err
			}},
		{"deliveries of an order that is locked", lockOrder, func(s ramp.Store, ctx context.Context, _, o order) error {
			_, err := s.Update(ctx, o.id, o.finish(failure))
			return err
		}},
		{"repeats of an order that is locked", lockOrder, func(s ramp.Store, ctx context.Context, _, o order) error {
			_, err := s.Update(ctx, o.id, o.accept())
			return err
		}},
		{"results and mints, in turns", lockHoldings, func() func(ramp.Store, context.Context, order, order) error {
			var n atomic.Int64
			return func(s ramp.Store, ctx context.Context, o, _ order) error {
				if n.Add(1)%2 == 0 {
					o = newOrder("alice", mint("gold", 1))
					_, err := s.Update(ctx, o.id, o.accept())
					return err
				}
				_, err := s.Update(ctx, o.id, o.finish(success))
				return err
			}
		}()},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachServer(t, func(t *testing.T, d database) {
				w := newWorld(t, newPlace(t, d, d.modes[0]), nil)
				w.give("alice", "gold", 1000)
				w.give("bob", "gold", 1000)
				proof := newOrder("bob", burn("gold", 1)) // so that rehearsals run side by side
				take(t, w.store, proof.id, proof.accept())
				var orders []order
				for range calls {
					o := newOrder("alice", mint("gold", 1))
					take(t, w.store, o.id, o.accept())
					orders = append(orders, o)
				}
				locked := must.Get(open(t, d.driver, w.dsn).Begin())(t)
				defer func() { _ = locked.Rollback() }() // so that a test that fails ends
				must.Get(locked.Exec(c.lock(orders[0])))(t)
				w.db.SetMaxOpenConns(conns)
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				var all sync.WaitGroup
				for _, o := range orders {
					all.Go(func() {
						if err := c.call(w.store, ctx, o, orders[0]); err != nil {
							t.Error(err)
						}
					})
				}
				for waiting := 0; waiting < calls; time.Sleep(time.Millisecond) { // for a turn, a connection or the row
					all := stacks()
					waiting = strings.Count(all, "rampsql.(*turns).take(") +
						strings.Count(all, "database/sql.(*DB).conn(") + w.db.Stats().InUse
				}
				soon, cancelSoon := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancelSoon()
				o := newOrder("bob", mint("gold", 5))
				must.Get(w.store.Update(soon, o.id, o.accept()))(t)
				must.Get(w.store.Update(soon, o.id, o.finish(success)))(t)
				check(t, locked.Rollback())
				all.Wait()
			})
		})
	}
}

// What has piled up for one player ends with its first delivery, within the deadline of a call.
func TestManyResultsOfOneSessionEndAtOnce(t *testing.T) {
	const deadline = 8 * time.Second // of gameserver
	many := 300
	if os.Getenv("RAMP_TEST_TIMES") != "" { // on a quiet machine
		many = 1500
	}
	eachServer(t, func(t *testing.T, d database) {
		w := newWorld(t, newPlace(t, d, d.modes[0]), nil)
		w.give("alice", "gold", int64(many))
		var orders []order
		for range many {
			o := newOrder("alice", mint("gold", 1))
			take(t, w.store, o.id, o.accept())
			orders = append(orders, o)
		}
		w.db.SetMaxOpenConns(20)
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		begun := time.Now()
		var all sync.WaitGroup
		var failed atomic.Int64
		for _, o := range orders {
			all.Go(func() {
				if _, err := w.store.Update(ctx, o.id, o.finish(failure)); err != nil {
					failed.Add(1)
				}
			})
		}
		all.Wait()
		t.Logf("%d results in %v", many, time.Since(begun).Round(time.Millisecond))
		equal(t, "results that failed", failed.Load(), 0)
		var gold int
		check(t, w.db.QueryRow("SELECT amount FROM holdings WHERE session_id = 'alice'").Scan(&gold))
		equal(t, "gold", gold, many)
	})
}
