package hosttest

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"
	_ "github.com/jackc/pgx/v5/stdlib"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/ramptest/storetest"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

const envPostgreSQL = "RAMP_TEST_POSTGRESQL"

// Holding is a balance, as GORM, bun and the others map it.
type Holding struct {
	SessionID string
	Asset     string
	Amount    int64
}

// apply is the Apply of a game.
type apply = func(context.Context, *sql.Tx, ramp.Step) error

// each moves the assets of a step. change reports how many rows
// it changed: it may refuse to take, and never to grant or give back, for which least is
// smaller than any balance.
func each(step ramp.Step, change func(h Holding, least int64) (int64, error), insert func(Holding) error) error {
	for _, asset := range step.Effect.Assets {
		delta, err := step.Effect.Delta(asset).Int64()
		if err != nil {
			return err
		}
		h := Holding{SessionID: step.Order.SessionID, Asset: asset.ID, Amount: delta}
		least := int64(math.MinInt64)
		if step.Effect.Kind == ramp.Take {
			least = -delta
		}
		switch n, err := change(h, least); {
		case err != nil:
			return err
		case n == 1:
		case step.Effect.Kind == ramp.Take:
			return ramp.Reject("INVALID_BALANCE")
		default:
			if err := insert(h); err != nil {
				return err
			}
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
	for name, open := range map[string]func(*sql.DB) (apply, error){
		"GORM":             newGORM(&gorm.Config{Logger: quiet}),
		"GORM PrepareStmt": newGORM(&gorm.Config{Logger: quiet, PrepareStmt: true}),
		"sqlc":             newSQLC,
		"sqlx":             newSQLX,
		"bun":              newBun,
		"ent":              newEnt,
	} {
		t.Run(name, func(t *testing.T) {
			db := newDatabase(t)
			move := ramp.Must(open(db))
			storetest.TestStore(t, func(t *testing.T, approve func(ramp.Step) error) storetest.Target {
				store := ramp.Must(rampsql.New(rampsql.Config{DB: db, Dialect: rampsql.PostgreSQL,
					Apply: func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
						if err := move(ctx, tx, step); err != nil {
							return err
						}
						return approve(step)
					}}))
				return storetest.Target{Stores: []ramp.Store{store},
					Give: func(ctx context.Context, session, asset string, balance int64) error {
						_, err := db.ExecContext(ctx, `INSERT INTO holdings VALUES ($1, $2, $3)
							ON CONFLICT (session_id, asset) DO UPDATE SET amount = $3`, session, asset, balance)
						return err
					},
					Balance: func(ctx context.Context, session, asset string) (n int64, err error) {
						err = db.QueryRowContext(ctx, "SELECT coalesce(max(amount), 0) FROM holdings WHERE session_id = $1 AND asset = $2", session, asset).Scan(&n)
						return n, err
					}}
			})
		})
	}
}

// newDatabase returns a new schema of PostgreSQL with the tables.
func newDatabase(t *testing.T) *sql.DB {
	t.Helper()
	address := os.Getenv(envPostgreSQL)
	if address == "" {
		t.Skip("*** NOT TESTED: " + envPostgreSQL + " is not set ***")
	}
	name := "ramp_" + strings.ReplaceAll(uuid.NewString(), "-", "")[:12]
	u := ramp.Must(url.Parse(address))
	query := u.Query()
	query.Set("search_path", name)
	u.RawQuery = query.Encode()
	db := ramp.Must(sql.Open("pgx", u.String()))
	db.SetMaxOpenConns(20)
	ramp.Must(db.Exec("CREATE SCHEMA " + name))
	t.Cleanup(func() {
		ramp.Must(db.Exec("DROP SCHEMA " + name + " CASCADE"))
		check(t, db.Close())
	})
	ramp.Must(db.Exec(rampsql.PostgreSQL.Schema() + `CREATE TABLE holdings (
		session_id TEXT, asset TEXT, amount BIGINT NOT NULL, PRIMARY KEY (session_id, asset))`))
	return db
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestMain(m *testing.M) {
	code := m.Run()
	if os.Getenv(envPostgreSQL) == "" {
		fmt.Fprintf(os.Stderr, "\n*** NOT TESTED, because %s is not set: run internal/dbtest/databases go test ***\n", envPostgreSQL)
	}
	os.Exit(code)
}
