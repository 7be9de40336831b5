package hosttest

import (
	"context"
	"database/sql"

	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/reflectx"
	ramp "github.com/token-ramp/ramp-go"
)

func newSQLX(*sql.DB) (apply, error) {
	mapper := reflectx.NewMapperFunc("db", sqlx.NameMapper)
	return func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
		game := &sqlx.Tx{Tx: tx, Mapper: mapper} // it does not know its driver
		return each(step, func(h Holding, least int64) (int64, error) {
			query, args, err := sqlx.Named(`UPDATE holdings SET amount = amount + :delta
				WHERE session_id = :session AND asset = :asset AND amount >= :least`,
				map[string]any{"delta": h.Amount, "session": h.SessionID, "asset": h.Asset, "least": least})
			if err != nil {
				return 0, err
			}
			return affected(game.ExecContext(ctx, sqlx.Rebind(sqlx.DOLLAR, query), args...))
		}, func(h Holding) error {
			_, err := game.ExecContext(ctx, "INSERT INTO holdings (session_id, asset, amount) VALUES ($1, $2, $3)", h.SessionID, h.Asset, h.Amount)
			return err
		})
	}, nil
}
