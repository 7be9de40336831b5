package hosttest

import (
	"context"
	"database/sql"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	ramp "github.com/token-ramp/ramp-go"
)

// newEnt uses the driver of ent. A generated client takes it as ent.NewClient(ent.Driver(driver)).
func newEnt(*sql.DB) (apply, error) {
	return func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
		driver := entsql.NewDriver(dialect.Postgres, entsql.Conn{ExecQuerier: tx})
		return each(step, func(h Holding, least int64) (int64, error) {
			query, args := entsql.Dialect(dialect.Postgres).Update("holdings").Add("amount", h.Amount).
				Where(entsql.And(entsql.EQ("session_id", h.SessionID), entsql.EQ("asset", h.Asset), entsql.GTE("amount", least))).Query()
			var done sql.Result
			if err := driver.Exec(ctx, query, args, &done); err != nil {
				return 0, err
			}
			return done.RowsAffected()
		}, func(h Holding) error {
			query, args := entsql.Dialect(dialect.Postgres).Insert("holdings").Columns("session_id", "asset", "amount").
				Values(h.SessionID, h.Asset, h.Amount).Query()
			return driver.Exec(ctx, query, args, nil)
		})
	}, nil
}
