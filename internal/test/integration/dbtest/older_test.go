package dbtest

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampsql"
)

// older is a server of the release before: its statements know neither the column settled nor the table
// ramp_refusals. A deployment runs it beside ours, on the same table.
type older struct {
	db      *sql.DB
	dialect rampsql.Dialect
}

const olderColumns = "uuid, claim, state, network, project_id, session_id, user_address, digest, intent, tx_hash, " +
	"reason, accepted_at, finished_at"

// accept stores an order.
func (s older) accept(ctx context.Context, o order) error {
	step, err := o.accept()(nil)
	if err != nil {
		return err
	}
	const orReturn = ") ON CONFLICT (uuid) DO UPDATE SET claim = ramp_orders.claim RETURNING uuid"
	insert := "INSERT INTO ramp_orders (direction, " + olderColumns + ") VALUES " +
		"(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, '', ?, " + map[rampsql.Dialect]string{
		rampsql.PostgreSQL: "DEFAULT" + orReturn,
		rampsql.MySQL:      "NULL) ON DUPLICATE KEY UPDATE uuid = ramp_orders.uuid",
		rampsql.SQLite:     "IIF(0, 0, NULL)" + orReturn,
	}[s.dialect]
	return s.transact(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, bind(s.dialect, insert), string(step.Order.Direction), o.id.String(),
			uuid.NewString()[:26], string(step.Order.State), "", o.project, o.session, o.user, o.digest.String(),
			string(ramp.Must(json.Marshal(o.intent))), step.Order.AcceptedAt.UnixMilli())
		return err
	})
}

// finish ends an order by its transaction, unless it has ended, and returns how it has ended.
func (s older) finish(ctx context.Context, o order, state ramp.OrderState) (ended ramp.OrderState, err error) {
	err = s.transact(ctx, func(tx *sql.Tx) error {
		lock := "SELECT state, claim FROM ramp_orders WHERE uuid = ? FOR UPDATE"
		if s.dialect == rampsql.SQLite {
			lock = "UPDATE ramp_orders SET claim = claim WHERE uuid = ? RETURNING state, claim"
		}
		var claim string
		if err := tx.QueryRowContext(ctx, bind(s.dialect, lock), o.id.String()).Scan(&ended, &claim); err != nil {
			return err
		}
		if ended != ramp.OrderAccepted {
			return nil
		}
		ended = state
		update := "UPDATE ramp_orders SET claim = ?, state = ?, tx_hash = NULLIF(?, ''), reason = ?, " +
			"finished_at = ? WHERE uuid = ? AND claim = ?"
		_, err := tx.ExecContext(ctx, bind(s.dialect, update),
			uuid.NewString()[:26], string(state), txHashOf(o.id), "", time.Now().UnixMilli(), o.id.String(), claim)
		return err
	})
	return ended, err
}

func (s older) transact(ctx context.Context, do func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// In a deployment, a server of the release before goes on. Its orders and the trial orders of Check do not
// hinder each other, and each side ends the orders of the other, once.
func TestBesideAServerOfTheReleaseBefore(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, p *place) {
		before, store := older{p.db, p.dialect}, newStore(t, p, applyNothing)
		done := make(chan struct{})
		var wg sync.WaitGroup
		orders := make([][]order, 3)
		for n := range orders {
			wg.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
					}
					theirs, ours := newOrder("alice", mint("gold", 5)), newOrder("bob", burn("gold", 5))
					check(t, before.accept(t.Context(), theirs))
					take(t, store, ours.id, ours.accept())
					orders[n] = append(orders[n], theirs, ours)
					if len(orders[n])%4 == 0 { // the other half is ended by the other side
						continue
					}
					ramp.Must(before.finish(t.Context(), theirs, ramp.OrderSucceeded))
					take(t, store, ours.id, ours.finish(1))
				}
			})
		}
		for range *checks {
			check(t, store.Check(t.Context(), ramp.Testnet))
		}
		close(done)
		wg.Wait()
		for _, o := range orders[0] {
			waits := ramp.Must(store.Order(t.Context(), o.id)).State == ramp.OrderAccepted
			if waits {
				step := ramp.Must(store.Update(t.Context(), o.id, o.accept()))
				equal(t, "whether a repeat is new", step.New, false)
			}
			if o.session == "bob" { // ours, which they end
				how := ramp.Must(before.finish(t.Context(), o, ramp.OrderSucceeded))
				equal(t, "how it ends", how, ramp.OrderSucceeded)
				step := ramp.Must(store.Update(t.Context(), o.id, o.finish(1)))
				equal(t, "whether its end is new to us", step.New, false)
				continue
			}
			step := ramp.Must(store.Update(t.Context(), o.id, o.finish(1)))
			equal(t, "whether its end is new", step.New, waits)
			how := ramp.Must(before.finish(t.Context(), o, ramp.OrderFailed))
			equal(t, "how it ends", how, ramp.OrderSucceeded)
		}
		var trials int
		check(t, p.db.QueryRow("SELECT COUNT(*) FROM ramp_orders WHERE project_id = 'ramp check'").Scan(&trials))
		equal(t, "trial orders that stay", trials, 0)
		t.Logf("%d checks beside %d orders of both", *checks, len(slices.Concat(orders...)))
	})
}
