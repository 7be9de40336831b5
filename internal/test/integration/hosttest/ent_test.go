package hosttest

import (
	"context"
	"database/sql"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	ramp "github.com/token-ramp/ramp-go"
)

// newEnt uses the driver of ent. A generated client takes it as ent.NewClient(ent.Driver(driver)).
func newEnt(db database) (apply, error) {
	name := db.text(dialect.Postgres, dialect.MySQL)
	return func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
		driver := entsql.NewDriver(name, entsql.Conn{ExecQuerier: tx})
		return each(step, func(h Holding) (int64, error) {
			query, args := entsql.Dialect(name).Update("holdings").Add("amount", -h.Amount).
				Where(entsql.And(entsql.EQ("session_id", h.SessionID), entsql.EQ("asset", h.Asset),
					entsql.GTE("amount", h.Amount))).Query()
			var done sql.Result
			if err := driver.Exec(ctx, query, args, &done); err != nil {
				return 0, err
			}
			return done.RowsAffected()
		}, func(h Holding) error {
			query, args := entsql.Dialect(name).Insert("holdings").Columns("session_id", "asset", "amount").
				Values(h.SessionID, h.Asset, h.Amount).
				OnConflict(entsql.ConflictColumns("session_id", "asset"), entsql.ResolveWith(func(u *entsql.UpdateSet) {
					u.Add("amount", h.Amount)
				})).Query()
			return driver.Exec(ctx, query, args, nil)
		})
	}, nil
}
