package hosttest

import (
	"context"
	"database/sql"

	ramp "github.com/token-ramp/ramp-go"
)

func newSQLC(db database) (apply, error) {
	queries := newQueries(db)
	return func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
		game := queries.WithTx(tx)
		return each(step, func(h Holding) (int64, error) { return game.Take(ctx, h) },
			func(h Holding) error { return game.Add(ctx, h) })
	}, nil
}

// Queries has the form of the code that sqlc generates for database/sql. It generates one package for
// each kind of database; this one has the texts of both.
type Queries struct {
	db        dbtx
	take, add string
}

type dbtx interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}

func newQueries(db database) *Queries {
	return &Queries{db: db.DB,
		take: db.text(
			"UPDATE holdings SET amount = amount - $1 WHERE session_id = $2 AND asset = $3 AND amount >= $4",
			"UPDATE holdings SET amount = amount - ? WHERE session_id = ? AND asset = ? AND amount >= ?"),
		add: db.text(`INSERT INTO holdings (session_id, asset, amount) VALUES ($1, $2, $3)
				ON CONFLICT (session_id, asset) DO UPDATE SET amount = holdings.amount + excluded.amount`,
			`INSERT INTO holdings (session_id, asset, amount) VALUES (?, ?, ?)
				ON DUPLICATE KEY UPDATE amount = amount + VALUES(amount)`)}
}

func (q *Queries) WithTx(tx *sql.Tx) *Queries { return &Queries{db: tx, take: q.take, add: q.add} }

func (q *Queries) Take(ctx context.Context, h Holding) (int64, error) {
	return affected(q.db.ExecContext(ctx, q.take, h.Amount, h.SessionID, h.Asset, h.Amount))
}

func (q *Queries) Add(ctx context.Context, h Holding) error {
	_, err := q.db.ExecContext(ctx, q.add, h.SessionID, h.Asset, h.Amount)
	return err
}
