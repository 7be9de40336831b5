package dbtest

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	ramp "github.com/token-ramp/ramp-go"
)

// This is the recipe for a game that uses pgx directly, which docs/orders.md links to: the
// game and database/sql share a pool, a connection and a transaction.
func TestOrdersBesidePgx(t *testing.T) {
	ctx := context.Background()
	for _, d := range databases {
		if d.dialect != ramp.PostgreSQL {
			continue
		}
		p := newPlace(t, d, d.modes[0])
		w := newWorld(t, p, nil)
		w.give("alice", "gold", 100)
		pool, err := pgxpool.New(ctx, p.dsn)
		check(t, err)
		defer pool.Close()
		db := stdlib.OpenDBFromPool(pool)
		defer db.Close()

		accept := func(o order, commit bool) {
			t.Helper()
			conn, err := db.Conn(ctx)
			check(t, err)
			defer conn.Close()
			tx, err := conn.BeginTx(ctx, nil)
			check(t, err)
			defer func() { _ = tx.Rollback() }()
			step, err := w.store.UpdateTx(ctx, tx, o.id, o.accept())
			check(t, err)
			check(t, conn.Raw(func(driver any) error {
				native := driver.(*stdlib.Conn).Conn() // in the same transaction
				batch := &pgx.Batch{}
				for _, a := range step.Effect.Assets {
					delta, err := step.Effect.Delta(a).Int64()
					if err != nil {
						return err
					}
					batch.Queue("UPDATE holdings SET amount = amount + $1 WHERE session_id = $2 AND asset = $3", delta, o.session, a.ID)
					batch.Queue("INSERT INTO moves VALUES ($1, $2, $3, $4, $5)", o.id.String(), o.session, step.Effect.Kind.String(), a.ID, delta)
				}
				if step.New {
					batch.Queue("INSERT INTO steps VALUES ($1, $2)", o.id.String(), step.Order.State)
				}
				return native.SendBatch(ctx, batch).Close()
			}))
			if commit {
				check(t, tx.Commit())
			}
		}
		o := newOrder("alice", mint("gold", 5))
		accept(o, false)
		w.books(moves{})
		accept(o, true)
		accept(o, true)
		w.books(moves{o.id: {"take alice -5 gold"}})
	}
}
