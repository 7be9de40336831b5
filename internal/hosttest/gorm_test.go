package hosttest

import (
	"context"
	"database/sql"

	ramp "github.com/token-ramp/ramp-go"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

// inTx returns a GORM handle whose statements all run in tx.
func inTx(ctx context.Context, db *gorm.DB, tx *sql.Tx) *gorm.DB {
	session := db.Session(&gorm.Session{NewDB: true, Context: ctx})
	session.Statement.ConnPool = tx
	return session
}

func newGORM(config *gorm.Config) func(db *sql.DB) (apply, error) {
	return func(db *sql.DB) (apply, error) {
		handle, err := gorm.Open(postgres.New(postgres.Config{Conn: db}), config)
		return func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
			session := inTx(ctx, handle, tx)
			return each(step, func(h Holding, least int64) (int64, error) {
				done := session.Model(&Holding{}).
					Where("session_id = ? AND asset = ? AND amount >= ?", h.SessionID, h.Asset, least).
					Update("amount", gorm.Expr("amount + ?", h.Amount))
				return done.RowsAffected, done.Error
			}, func(h Holding) error { return session.Create(&h).Error })
		}, err
	}
}
