package regions

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Move moves a player to another database, whether or not an order waits. Its steps can each be repeated, so
// call it again after an error or a crash, until it returns nil. Do not run two moves of a player at the same
// time. While a player is moved, the game must let the player do nothing, and orders are declined.
//
// callTime is how long a call of the service may take, with its commit, such as 12 seconds.
func (g *Game) Move(ctx context.Context, player string, to int, callTime time.Duration) error {
	from, err := g.closePlayer(ctx, player, to)
	if err != nil {
		return err
	}
	// A call that has found the player open may still accept an order.
	select {
	case <-time.After(callTime):
	case <-ctx.Done():
		return ctx.Err()
	}
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return g.leave(ctx, player, from, to) },
		func(ctx context.Context) error { return g.arrive(ctx, player, to) },
		func(ctx context.Context) error { return g.register(ctx, player, from, to) },
		g.Deliver,
		func(ctx context.Context) error { return g.open(ctx, player) },
	} {
		if err := step(ctx); err != nil {
			return fmt.Errorf("move %s to shard %d: %w", player, to, err)
		}
	}
	return nil
}

// closePlayer lets no new order of a player be accepted, and returns where the player is.
func (g *Game) closePlayer(ctx context.Context, player string, to int) (from int, err error) {
	err = g.Directory.QueryRowContext(ctx, "UPDATE players SET target = $1"+
		" WHERE player = $2 AND (target IS NULL OR target = $1) RETURNING shard", to, player).Scan(&from)
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("there is no player %s, or the player is being moved elsewhere", player)
	}
	return from, err
}

// leave makes parcels of all that a player has.
func (g *Game) leave(ctx context.Context, player string, from, to int) error {
	if from == to { // the move had come so far before
		return nil
	}
	return inTransaction(ctx, g.Shards[from], func(tx *sql.Tx) error {
		here, err := isResident(ctx, tx, player)
		if err != nil || !here {
			return err
		}
		for _, statement := range []string{
			"INSERT INTO parcels (id, player, asset, amount)" +
				" SELECT gen_random_uuid()::text, player, asset, amount" +
				" FROM balances WHERE player = $1 AND amount > 0",
			"DELETE FROM balances WHERE player = $1",
			"DELETE FROM residents WHERE player = $1",
		} {
			if _, err := tx.ExecContext(ctx, statement, player); err != nil {
				return err
			}
		}
		return nil
	})
}

// arrive makes a player a resident.
func (g *Game) arrive(ctx context.Context, player string, to int) error {
	_, err := g.Shards[to].ExecContext(ctx,
		"INSERT INTO residents (player) VALUES ($1) ON CONFLICT DO NOTHING", player)
	return err
}

// register writes down where a player is and has been.
func (g *Game) register(ctx context.Context, player string, from, to int) error {
	return inTransaction(ctx, g.Directory, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO former_shards (player, shard) VALUES ($1, $2)"+
			" ON CONFLICT DO NOTHING", player, from)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, "UPDATE players SET shard = $1 WHERE player = $2", to, player)
		return err
	})
}

// open lets orders of a player be accepted again.
func (g *Game) open(ctx context.Context, player string) error {
	_, err := g.Directory.ExecContext(ctx, "UPDATE players SET target = NULL WHERE player = $1", player)
	return err
}

// parcel is what belongs to a player who is elsewhere.
type parcel struct {
	id, player, asset string
	amount            int64
	target            int
}

// Deliver takes up to a thousand parcels of each database to where their players are. Call it every minute,
// in any number of processes. A database that does not answer keeps only its own parcels waiting.
func (g *Game) Deliver(ctx context.Context) error {
	var failed []error
	for from, db := range g.Shards {
		parcels, err := g.parcels(ctx, db)
		failed = append(failed, err)
		for _, p := range parcels {
			if err := g.deliver(ctx, db, p); err != nil {
				failed = append(failed, fmt.Errorf("parcel %s of shard %d: %w", p.id, from, err))
			}
		}
	}
	return errors.Join(failed...)
}

// parcels lists parcels, each with its target, which never changes: only there can be seen
// whether it arrived.
func (g *Game) parcels(ctx context.Context, db *sql.DB) (all []parcel, err error) {
	rows, err := db.QueryContext(ctx, "SELECT id, player, asset, amount FROM parcels LIMIT 1000")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var p parcel
		if err := rows.Scan(&p.id, &p.player, &p.asset, &p.amount); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, rows.Err()
}

// deliver takes one parcel to where its player is. If the player has moved on meanwhile, it is
// a parcel there.
func (g *Game) deliver(ctx context.Context, db *sql.DB, p parcel) error {
	place, err := g.Place(ctx, p.player)
	if err != nil {
		return err
	}
	err = db.QueryRowContext(ctx,
		"UPDATE parcels SET target = COALESCE(target, $1) WHERE id = $2 RETURNING target",
		place.Shard, p.id).Scan(&p.target)
	if errors.Is(err, sql.ErrNoRows) { // another process has delivered it
		return nil
	}
	if err != nil {
		return err
	}
	err = inTransaction(ctx, g.Shards[p.target], func(tx *sql.Tx) error {
		done, err := tx.ExecContext(ctx,
			"INSERT INTO delivered (id) VALUES ($1) ON CONFLICT DO NOTHING", p.id)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			return err
		}
		here, err := isResident(ctx, tx, p.player)
		if err != nil {
			return err
		}
		return give(ctx, tx, here, p.player, p.asset, p.amount)
	})
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "DELETE FROM parcels WHERE id = $1", p.id)
	return err
}

func inTransaction(ctx context.Context, db *sql.DB, do func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}
