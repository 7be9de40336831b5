package hosttest

import (
	"database/sql"
	"errors"
	"testing"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/reflectx"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampsql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// The traps that docs/databases.md names are there. Each statement would run in tx, and is
// rolled back, if its library was used correctly.
func TestTraps(t *testing.T) {
	const insert = "INSERT INTO holdings VALUES ('alice', 'gold', 1)"
	for name, c := range map[string]struct {
		use     func(t *testing.T, db database, tx *sql.Tx)
		escapes bool // whether the statement is not rolled back
	}{
		"GORM, ConnPool set on the handle's session": {func(t *testing.T, db database, tx *sql.Tx) {
			handle := must.Get(openGORM(db, &gorm.Config{PrepareStmt: true}))(t)
			check(t, inTx(t.Context(), handle, tx).Exec(insert).Error)
		}, false},
		"GORM, another Session with NewDB on the handle": {func(t *testing.T, db database, tx *sql.Tx) {
			handle := must.Get(openGORM(db, &gorm.Config{}))(t)
			inTx(t.Context(), handle, tx)
			check(t, handle.WithContext(t.Context()).Exec(insert).Error)
		}, true},
		"sqlc, the queries that WithTx was called on": {func(t *testing.T, db database, tx *sql.Tx) {
			queries := newQueries(db)
			queries.WithTx(tx)
			check(t, queries.Add(t.Context(), Holding{"alice", "gold", 1}))
		}, true},
		"bun, a query without Conn": {func(t *testing.T, db database, _ *sql.Tx) {
			must.Get(openBun(db).NewInsert().Model(&Holding{"alice", "gold", 1}).Exec(t.Context()))(t)
		}, true},
		"sqlx, NamedExec": {func(t *testing.T, db database, tx *sql.Tx) {
			game := &sqlx.Tx{Tx: tx, Mapper: reflectx.NewMapperFunc("db", sqlx.NameMapper)}
			_, err := game.NamedExec("INSERT INTO holdings VALUES (:s, 'gold', 1)", map[string]any{"s": "alice"})
			if works := db.dialect == rampsql.MySQL; (err == nil) != works { // it writes ? for any database
				t.Error(err)
			}
		}, false},
		"ent, Tx": {func(t *testing.T, _ database, tx *sql.Tx) {
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
			eachDatabase(t, func(t *testing.T, db database) {
				tx := must.Get(db.Begin())(t)
				c.use(t, db, tx)
				check(t, tx.Rollback())
				var n int
				check(t, db.QueryRow("SELECT count(*) FROM holdings").Scan(&n))
				if (n == 1) != c.escapes {
					t.Errorf("after the rollback there are %d rows", n)
				}
			})
		})
	}
}

// On MariaDB, two calls that each change no row, because there is none, and then insert it, deadlock.
func TestAnUpdateOfNoRowLocksOtherCallsOut(t *testing.T) {
	eachDatabase(t, func(t *testing.T, db database) {
		var calls [2]*sql.Tx
		for i := range calls {
			calls[i] = must.Get(db.Begin())(t)
			must.Get(calls[i].Exec("UPDATE holdings SET amount = 1 WHERE session_id = 'alice' AND asset = 'gold'"))(t)
		}
		ended := make(chan error)
		for _, tx := range calls {
			go func() {
				_, err := tx.Exec("INSERT INTO holdings VALUES ('alice', 'gold', 1)")
				ended <- errors.Join(err, tx.Rollback()) // so that the other one goes on
			}()
		}
		err := errors.Join(<-ended, <-ended)
		var deadlock *mysql.MySQLError
		if locked := errors.As(err, &deadlock) && deadlock.Number == 1213; locked != (db.dialect == rampsql.MySQL) {
			t.Error(err)
		}
	})
}

// Account is a table that GORM creates.
type Account struct {
	SessionID string `gorm:"primaryKey;size:64"`
	Gold      int64
}

// On MariaDB, a table that GORM creates takes one player for another.
func TestATableOfGORMMixesPlayers(t *testing.T) {
	eachDatabase(t, func(t *testing.T, db database) {
		handle := must.Get(openGORM(db, &gorm.Config{Logger: logger.Discard}))(t)
		check(t, handle.AutoMigrate(&Account{}))
		check(t, handle.Create(&Account{SessionID: "alice", Gold: 1}).Error)
		found := handle.First(&Account{}, "session_id = ?", "Alice").Error
		if mixes := found == nil; mixes != (db.dialect == rampsql.MySQL) {
			t.Errorf("Alice has what alice owns: %t", mixes)
		}
	})
}
