package hosttest

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/google/uuid"
	_ "github.com/jackc/pgx/v5/stdlib"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/ramptest/storetest"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// servers are the databases, with the variables that have their addresses.
var servers = []struct {
	name, env string
	open      func(t *testing.T, address string) database
}{
	{"PostgreSQL", "RAMP_TEST_POSTGRESQL", onPostgreSQL},
	{"MariaDB", "RAMP_TEST_MYSQL", onMariaDB},
}

// database has the tables of orders and of the game.
type database struct {
	*sql.DB
	dialect rampsql.Dialect
}

// text returns the text for the database.
func (d database) text(postgreSQL, mariaDB string) string {
	if d.dialect == rampsql.PostgreSQL {
		return postgreSQL
	}
	return mariaDB
}

// eachDatabase runs a test on a new database of each server.
func eachDatabase(t *testing.T, test func(t *testing.T, db database)) {
	for _, server := range servers {
		t.Run(server.name, func(t *testing.T) {
			address := os.Getenv(server.env)
			if address == "" {
				t.Skip("*** NOT TESTED: " + server.env + " is not set ***")
			}
			test(t, server.open(t, address))
		})
	}
}

// holdings returns the table of the game. text is the type of a session and of an asset.
func holdings(text string) string {
	return "CREATE TABLE holdings (session_id " + text + " NOT NULL, asset " + text + " NOT NULL, " +
		"amount BIGINT NOT NULL, PRIMARY KEY (session_id, asset))"
}

// exact is a text that is equal to no other on MariaDB. With the default collation, Alice is alice.
const exact = "VARCHAR(380) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"

func newName() string { return "ramp_" + strings.ReplaceAll(uuid.NewString(), "-", "")[:12] }

func onPostgreSQL(t *testing.T, address string) database {
	name, u := newName(), must.Get(url.Parse(address))(t)
	query := u.Query()
	query.Set("search_path", name)
	u.RawQuery = query.Encode()
	db := must.Get(sql.Open("pgx", u.String()))(t)
	db.SetMaxOpenConns(20)
	must.Get(db.Exec("CREATE SCHEMA " + name))(t)
	t.Cleanup(func() {
		must.Get(db.Exec("DROP SCHEMA " + name + " CASCADE"))(t)
		check(t, db.Close())
	})
	must.Get(db.Exec(rampsql.PostgreSQL.Schema() + holdings("TEXT")))(t)
	return database{db, rampsql.PostgreSQL}
}

func onMariaDB(t *testing.T, address string) database {
	config := must.Get(mysql.ParseDSN(address))(t)
	name := newName()
	config.MultiStatements = true
	admin := must.Get(sql.Open("mysql", config.FormatDSN()))(t)
	must.Get(admin.Exec("CREATE DATABASE " + name + "; USE " + name + ";" + rampsql.MySQL.Schema() +
		holdings(exact)))(t)
	config.MultiStatements, config.DBName = false, name
	db := must.Get(sql.Open("mysql", config.FormatDSN()))(t)
	db.SetMaxOpenConns(20)
	t.Cleanup(func() {
		check(t, db.Close())
		must.Get(admin.Exec("DROP DATABASE " + name))(t)
		check(t, admin.Close())
	})
	return database{db, rampsql.MySQL}
}

// Holding is a balance, as GORM, bun and the others map it.
type Holding struct {
	SessionID string
	Asset     string
	Amount    int64
}

// apply is the Apply of a game.
type apply = func(context.Context, *sql.Tx, ramp.Step) error

// each moves the assets of a step. take reports how many rows it changed: none if the balance is too
// low. add never fails for a player who has no row yet.
func each(step ramp.Step, take func(Holding) (int64, error), add func(Holding) error) error {
	for _, asset := range step.Effect.Assets {
		amount, err := asset.Amount.Int64()
		if err != nil {
			return err
		}
		h := Holding{SessionID: step.Order.SessionID, Asset: asset.ID, Amount: amount}
		if step.Effect.Kind != ramp.Take {
			if err := add(h); err != nil {
				return err
			}
			continue
		}
		switch n, err := take(h); {
		case err != nil:
			return err
		case n == 0:
			return ramp.Reject("INVALID_BALANCE")
		}
	}
	return nil
}

func affected(done sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}

// Each library keeps the contract of the store: what it moves is committed or rolled back
// with the order.
func TestLibrariesMoveAssetsInTheTransactionOfTheStore(t *testing.T) {
	quiet := logger.Default.LogMode(logger.Silent)
	for name, open := range map[string]func(database) (apply, error){
		"GORM":             newGORM(gorm.Config{Logger: quiet}),
		"GORM PrepareStmt": newGORM(gorm.Config{Logger: quiet, PrepareStmt: true}),
		"sqlc":             newSQLC,
		"sqlx":             newSQLX,
		"bun":              newBun,
		"ent":              newEnt,
	} {
		t.Run(name, func(t *testing.T) {
			eachDatabase(t, func(t *testing.T, db database) {
				t.Parallel()
				move := must.Get(open(db))(t)
				storetest.TestStore(t, func(t *testing.T, approve func(ramp.Step) error) storetest.Fixture {
					return storetest.Fixture{
						Stores: []ramp.Store{newStore(t, db, move, approve)}, Give: db.give, Balance: db.balance}
				})
			})
		})
	}
}

func newStore(t *testing.T, db database, move apply, approve func(ramp.Step) error) ramp.Store {
	return must.Get(rampsql.New(rampsql.Config{DB: db.DB, Dialect: db.dialect,
		Apply: func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
			if err := move(ctx, tx, step); err != nil {
				return err
			}
			return approve(step)
		}}))(t)
}

func (d database) give(ctx context.Context, session, asset string, balance int64) error {
	_, err := d.ExecContext(ctx, d.text(`INSERT INTO holdings VALUES ($1, $2, $3)
		ON CONFLICT (session_id, asset) DO UPDATE SET amount = excluded.amount`,
		"INSERT INTO holdings VALUES (?, ?, ?) ON DUPLICATE KEY UPDATE amount = VALUES(amount)"),
		session, asset, balance)
	return err
}

func (d database) balance(ctx context.Context, session, asset string) (n int64, err error) {
	const query = "SELECT coalesce(max(amount), 0) FROM holdings WHERE session_id = "
	err = d.QueryRowContext(ctx, query+d.text("$1 AND asset = $2", "? AND asset = ?"), session, asset).Scan(&n)
	return n, err
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, server := range servers {
		if os.Getenv(server.env) == "" {
			fmt.Fprintf(os.Stderr,
				"\n*** NOT TESTED, because %s is not set: run internal/test/databases go test ***\n", server.env)
		}
	}
	os.Exit(code)
}
