package hosttest

import (
	"context"
	"database/sql"

	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/reflectx"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampsql"
)

func newSQLX(db database) (apply, error) {
	mapper := reflectx.NewMapperFunc("db", sqlx.NameMapper)
	bind := sqlx.DOLLAR
	if db.dialect == rampsql.MySQL {
		bind = sqlx.QUESTION
	}
	return func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
		game := &sqlx.Tx{Tx: tx, Mapper: mapper} // it does not know its driver
		named := func(query string, h Holding) (int64, error) {
			query, args, err := sqlx.Named(query,
				map[string]any{"amount": h.Amount, "session": h.SessionID, "asset": h.Asset})
			if err != nil {
				return 0, err
			}
			return affected(game.ExecContext(ctx, sqlx.Rebind(bind, query), args...))
		}
		return each(step, func(h Holding) (int64, error) {
			return named(`UPDATE holdings SET amount = amount - :amount
				WHERE session_id = :session AND asset = :asset AND amount >= :amount`, h)
		}, func(h Holding) error {
			_, err := named("INSERT INTO holdings (session_id, asset, amount) VALUES (:session, :asset, :amount) "+
				db.text("ON CONFLICT (session_id, asset) DO UPDATE SET amount = holdings.amount + excluded.amount",
					"ON DUPLICATE KEY UPDATE amount = amount + VALUES(amount)"), h)
			return err
		})
	}, nil
}
