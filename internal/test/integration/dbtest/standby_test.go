package dbtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampsql"
)

// A commit that waits for a synchronous standby is visible when its wait is given up, and a failover
// loses it. So neither the call that gave up is confirmed nor a repeat or a conflict that has read
// the row, until the standby has it.
func TestAnAnswerWaitsForTheStandby(t *testing.T) {
	primary, standby := newCluster(t)
	address := fmt.Sprintf("postgres://ramp@127.0.0.1:%d/postgres?sslmode=disable", primary.port)
	run(t, open(t, "pgx", address), rampsql.PostgreSQL.Schema()+tables)
	for _, driver := range []string{"pgx", "postgres"} { // the latter is lib/pq
		t.Run(driver, func(t *testing.T) {
			d := databaseOf(t, rampsql.PostgreSQL)
			d.driver = driver
			p := &place{database: d, mode: d.modes[0], db: open(t, driver, address)}
			store := newStore(t, p, applyNothing)
			sold, bought, ended := newOrder("alice", mint("gold", 5)), newOrder("alice", burn("gold", 5)),
				newOrder("alice", mint("gold", 7))
			check(t, p.db.Ping())
			take(t, store, bought.id, bought.accept())
			take(t, store, ended.id, ended.accept())

			standby.kill()
			calls := []struct {
				name string
				o    order
				next ramp.Transition
			}{
				{"a validate", sold, sold.accept()},
				{"its repeat", sold, sold.accept()},
				{"its repeat again", sold, sold.accept()},
				{"a result", bought, bought.finish(success)},
				{"its repeat", bought, bought.finish(success)},
				{"its repeat again", bought, bought.finish(success)},
				{"another outcome", bought, bought.finish(failure)},
				{"an abandonment", ended, ramp.Abandon("alice: case 17", day0)},
				{"a result of what was abandoned", ended, ended.finish(success)},
			}
			for _, c := range calls {
				ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
				step, err := store.Update(ctx, c.o.id, c.next)
				cancel()
				if err == nil || errors.Is(err, ramp.ErrOrderConflict) {
					t.Errorf("%s was answered with %v, and no standby has what it rests on: %v",
						c.name, step.Order.State, err)
				}
			}
			var rows int
			check(t, p.db.QueryRow("SELECT count(*) FROM ramp_orders WHERE uuid IN ($1, $2, $3) AND (claim <> '')",
				sold.id.String(), bought.id.String(), ended.id.String()).Scan(&rows))
			equal(t, "orders that can be seen", rows, 3)

			standby.start()
			for _, c := range calls {
				step, err := store.Update(t.Context(), c.o.id, c.next)
				switch {
				case c.name == "another outcome" || c.name == "a result of what was abandoned":
					equal(t, c.name+" is a conflict", errors.Is(err, ramp.ErrOrderConflict), true)
				case err != nil || step.New:
					t.Errorf("%s, now that the standby has it: new %v, %v", c.name, step.New, err)
				}
			}
		})
	}
}
