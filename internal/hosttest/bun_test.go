package hosttest

import (
	"context"
	"database/sql"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
)

func newBun(db *sql.DB) (apply, error) {
	handle := bun.NewDB(db, pgdialect.New())
	return func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
		return each(step, func(h Holding, least int64) (int64, error) {
			return affected(handle.NewUpdate().Conn(tx).Model((*Holding)(nil)). // Conn in every query
												Set("amount = amount + ?", h.Amount).
												Where("session_id = ? AND asset = ? AND amount >= ?", h.SessionID, h.Asset, least).Exec(ctx))
		}, func(h Holding) error {
			_, err := handle.NewInsert().Conn(tx).Model(&h).Exec(ctx)
			return err
		})
	}, nil
}
