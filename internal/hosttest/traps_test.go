package hosttest

import (
	"database/sql"
	"testing"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/reflectx"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

// The traps that docs/databases.md names are there. Each statement would run in tx, and is
// rolled back, if its library was used correctly.
func TestTraps(t *testing.T) {
	const insert = "INSERT INTO holdings VALUES ('alice', 'gold', 1)"
	for name, c := range map[string]struct {
		use     func(t *testing.T, db *sql.DB, tx *sql.Tx)
		escapes bool // whether the statement is not rolled back
	}{
		"GORM, ConnPool set on the handle's session": {func(t *testing.T, db *sql.DB, tx *sql.Tx) {
			handle := ramp.Must(gorm.Open(postgres.New(postgres.Config{Conn: db}), &gorm.Config{PrepareStmt: true}))
			check(t, inTx(t.Context(), handle, tx).Exec(insert).Error)
		}, false},
		"GORM, another Session with NewDB on the handle": {func(t *testing.T, db *sql.DB, tx *sql.Tx) {
			handle := ramp.Must(gorm.Open(postgres.New(postgres.Config{Conn: db}), &gorm.Config{}))
			inTx(t.Context(), handle, tx)
			check(t, handle.WithContext(t.Context()).Exec(insert).Error)
		}, true},
		"sqlc, the queries that WithTx was called on": {func(t *testing.T, db *sql.DB, tx *sql.Tx) {
			queries := &Queries{db: db}
			queries.WithTx(tx)
			check(t, queries.Insert(t.Context(), Holding{"alice", "gold", 1}))
		}, true},
		"bun, a query without Conn": {func(t *testing.T, db *sql.DB, _ *sql.Tx) {
			ramp.Must(bun.NewDB(db, pgdialect.New()).NewInsert().Model(&Holding{"alice", "gold", 1}).Exec(t.Context()))
		}, true},
		"sqlx, NamedExec": {func(t *testing.T, _ *sql.DB, tx *sql.Tx) {
			game := &sqlx.Tx{Tx: tx, Mapper: reflectx.NewMapperFunc("db", sqlx.NameMapper)}
			if _, err := game.NamedExec("INSERT INTO holdings VALUES (:s, 'gold', 1)", map[string]any{"s": "alice"}); err == nil {
				t.Error("NamedExec works")
			}
		}, false},
		"ent, Tx": {func(t *testing.T, _ *sql.DB, tx *sql.Tx) {
			driver := entsql.NewDriver(dialect.Postgres, entsql.Conn{ExecQuerier: tx})
			for name, call := range map[string]func() error{
				"Tx":    func() error { _, err := driver.Tx(t.Context()); return err },
				"Close": driver.Close,
			} {
				func() {
					defer func() {
						if recover() == nil {
							t.Errorf("%s does not panic", name)
						}
					}()
					_ = call()
				}()
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			db := newDatabase(t)
			tx := ramp.Must(db.Begin())
			c.use(t, db, tx)
			check(t, tx.Rollback())
			var n int
			check(t, db.QueryRow("SELECT count(*) FROM holdings").Scan(&n))
			if (n == 1) != c.escapes {
				t.Errorf("after the rollback there are %d rows", n)
			}
		})
	}
}
