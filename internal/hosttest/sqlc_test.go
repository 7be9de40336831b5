package hosttest

import (
	"context"
	"database/sql"

	ramp "github.com/token-ramp/ramp-go"
)

func newSQLC(db *sql.DB) (apply, error) {
	queries := &Queries{db: db}
	return func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
		game := queries.WithTx(tx)
		return each(step, func(h Holding, least int64) (int64, error) {
			return game.Change(ctx, h, least)
		}, func(h Holding) error { return game.Insert(ctx, h) })
	}, nil
}

// Queries has the form of the code that sqlc generates for database/sql.
type Queries struct{ db dbtx }

type dbtx interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}

func (q *Queries) WithTx(tx *sql.Tx) *Queries { return &Queries{db: tx} }

func (q *Queries) Change(ctx context.Context, h Holding, least int64) (int64, error) {
	return affected(q.db.ExecContext(ctx, `UPDATE holdings SET amount = amount + $1
		WHERE session_id = $2 AND asset = $3 AND amount >= $4`, h.Amount, h.SessionID, h.Asset, least))
}

func (q *Queries) Insert(ctx context.Context, h Holding) error {
	_, err := q.db.ExecContext(ctx, "INSERT INTO holdings (session_id, asset, amount) VALUES ($1, $2, $3)", h.SessionID, h.Asset, h.Amount)
	return err
}
