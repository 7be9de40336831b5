package hosttest

import (
	"context"
	"database/sql"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampsql"
	"gorm.io/driver/mysql"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// inTx returns a GORM handle whose statements all run in tx.
func inTx(ctx context.Context, db *gorm.DB, tx *sql.Tx) *gorm.DB {
	session := db.Session(&gorm.Session{NewDB: true, Context: ctx})
	session.Statement.ConnPool = tx
	return session
}

func openGORM(db database, config *gorm.Config) (*gorm.DB, error) {
	if db.dialect == rampsql.MySQL {
		return gorm.Open(mysql.New(mysql.Config{Conn: db.DB}), config)
	}
	return gorm.Open(postgres.New(postgres.Config{Conn: db.DB}), config)
}

func newGORM(config gorm.Config) func(db database) (apply, error) {
	return func(db database) (apply, error) {
		own := config // GORM keeps the dialect in it
		handle, err := openGORM(db, &own)
		return func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
			session := inTx(ctx, handle, tx)
			return each(step, func(h Holding) (int64, error) {
				done := session.Model(&Holding{}).
					Where("session_id = ? AND asset = ? AND amount >= ?", h.SessionID, h.Asset, h.Amount).
					Update("amount", gorm.Expr("amount - ?", h.Amount))
				return done.RowsAffected, done.Error
			}, func(h Holding) error {
				return session.Clauses(clause.OnConflict{
					Columns:   []clause.Column{{Name: "session_id"}, {Name: "asset"}},
					DoUpdates: clause.Assignments(map[string]any{"amount": gorm.Expr("holdings.amount + ?", h.Amount)}),
				}).Create(&h).Error
			})
		}, err
	}
}
