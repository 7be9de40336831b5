package hosttest

import (
	"context"
	"database/sql"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/mysqldialect"
	"github.com/uptrace/bun/dialect/pgdialect"
)

func openBun(db database) *bun.DB {
	if db.dialect == rampsql.MySQL {
		return bun.NewDB(db.DB, mysqldialect.New())
	}
	return bun.NewDB(db.DB, pgdialect.New())
}

func newBun(db database) (apply, error) {
	handle := openBun(db)
	return func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
		return each(step, func(h Holding) (int64, error) {
			update := handle.NewUpdate().Conn(tx).Model((*Holding)(nil)) // Conn in every query
			return affected(update.Set("amount = amount - ?", h.Amount).
				Where("session_id = ? AND asset = ? AND amount >= ?", h.SessionID, h.Asset, h.Amount).Exec(ctx))
		}, func(h Holding) error {
			insert := handle.NewInsert().Conn(tx).Model(&h)
			if db.dialect == rampsql.MySQL {
				insert = insert.On("DUPLICATE KEY UPDATE").Set("amount = amount + VALUES(amount)")
			} else {
				insert = insert.On("CONFLICT (session_id, asset) DO UPDATE").
					Set("amount = holding.amount + excluded.amount")
			}
			_, err := insert.Exec(ctx)
			return err
		})
	}, nil
}
