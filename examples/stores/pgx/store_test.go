package pgxstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"math"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/ramptest/storetest"
)

const balances = `CREATE TABLE balances (session_id TEXT, asset TEXT, amount BIGINT, PRIMARY KEY (session_id, asset))`

func configOf(db *sql.DB) rampsql.Config {
	return rampsql.Config{DB: db, Projects: []string{"project-1"}, Network: ramp.Testnet}
}

// place returns two pools of connections to an empty schema, like those of two machines.
func place(t *testing.T) (one, two *pgxpool.Pool) {
	t.Helper()
	address := os.Getenv("RAMP_TEST_POSTGRESQL")
	if address == "" {
		t.Skip("*** NOT TESTED: RAMP_TEST_POSTGRESQL is not set: run internal/test/databases go test ***")
	}
	name := "pgxstore_" + strings.ReplaceAll(uuid.NewString(), "-", "")[:12]
	u := must(url.Parse(address))(t)
	query := u.Query()
	query.Set("search_path", name)
	query.Set("pool_max_conns", "20")
	u.RawQuery = query.Encode()
	one, two = connect(t, u.String()), connect(t, u.String())
	must(one.Exec(t.Context(), "CREATE SCHEMA "+name))(t)
	must(one.Exec(t.Context(), rampsql.PostgreSQL.Schema()+balances))(t)
	t.Cleanup(func() {
		must(one.Exec(context.Background(), "DROP SCHEMA "+name+" CASCADE"))(t)
	})
	return one, two
}

func connect(t *testing.T, address string) *pgxpool.Pool {
	t.Helper()
	pool := must(pgxpool.New(context.Background(), address))(t)
	t.Cleanup(pool.Close)
	return pool
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Queries has the form of the code that sqlc generates for pgx.
type Queries struct{ db DBTX }

type DBTX interface {
	Exec(context.Context, string, ...any) (pgconn.CommandTag, error)
	Query(context.Context, string, ...any) (pgx.Rows, error)
	QueryRow(context.Context, string, ...any) pgx.Row
}

func (q *Queries) WithTx(tx pgx.Tx) *Queries { return &Queries{db: tx} }

func (q *Queries) Set(ctx context.Context, session, asset string, amount int64) error {
	_, err := q.db.Exec(ctx, `INSERT INTO balances VALUES ($1, $2, $3)
		ON CONFLICT (session_id, asset) DO UPDATE SET amount = $3`, session, asset, amount)
	return err
}

func (q *Queries) Balance(ctx context.Context, session, asset string) (n int64, err error) {
	err = q.db.QueryRow(ctx, "SELECT amount FROM balances WHERE session_id = $1 AND asset = $2 FOR UPDATE", session,
		asset).Scan(&n)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return n, err
}

// move is an Apply on the code of sqlc.
func move(ctx context.Context, q *Queries, step ramp.Step) error {
	for _, asset := range step.Effect.Assets {
		delta, err := step.Effect.Delta(asset).Int64()
		if err != nil {
			return ramp.Reject("INVALID_AMOUNT") // an item cannot be divided
		}
		owned, err := q.Balance(ctx, step.Order.SessionID, asset.ID)
		switch {
		case err != nil:
			return err
		case step.Effect.Kind == ramp.Take && owned+delta < 0, // only a mint may be refused
			step.Rehearsal && owned > math.MaxInt64-delta: // or what would not fit
			return ramp.Reject("INVALID_BALANCE")
		}
		if err := q.Set(ctx, step.Order.SessionID, asset.ID, owned+delta); err != nil {
			return err
		}
	}
	return nil
}

func TestStore(t *testing.T) {
	storetest.TestStore(t, func(t *testing.T, approve func(ramp.Step) error) storetest.Fixture {
		one, two := place(t)
		queries := &Queries{db: one}
		open := func(pool *pgxpool.Pool) ramp.Store {
			config := configOf(stdlib.OpenDBFromPool(pool))
			config.Projects, config.Network = nil, "" // the kit has projects of its own
			store := must(New(config,
				func(ctx context.Context, tx pgx.Tx, step ramp.Step) error {
					if err := move(ctx, queries.WithTx(tx), step); err != nil {
						return err
					}
					return approve(step)
				}))(t)
			check(t, store.Check(t.Context(), ""))
			return store
		}
		return storetest.Fixture{Stores: []ramp.Store{open(one), open(two)}, Give: queries.Set,
			Balance: queries.Balance}
	})
}

// A panic, or a connection that breaks, in the middle of a transaction ends the call at once,
// and the pool of one connection serves the next one.
func TestAnApplyThatFailsEndsItsTransaction(t *testing.T) {
	pool, _ := place(t)
	config := pool.Config()
	config.MaxConns = 1
	single := must(pgxpool.NewWithConfig(t.Context(), config))(t)
	defer single.Close()
	queries := &Queries{db: single}
	check(t, queries.Set(t.Context(), "alice", "gold", 100))
	var fail func(tx pgx.Tx) error
	var cancel context.CancelFunc
	store := must(New(configOf(stdlib.OpenDBFromPool(single)),
		func(ctx context.Context, tx pgx.Tx, step ramp.Step) error {
			check(t, move(ctx, queries.WithTx(tx), step))
			return fail(tx)
		}))(t)
	order := &ramp.ValidateRequest{UUID: uuid.New(), UserSig: "0xabcd",
		UserAddress: "0xbB00000000000000000000000000000000000000", ProjectID: "project-1",
		Intent: ramp.Intent{Method: ramp.MethodMint, Type: ramp.Assemble,
			From: []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: "gold", Amount: ramp.NewAmount(5)}},
			To: []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: "0x00000000000000000000000000000000000070c3",
				Amount: ramp.NewAmount(1)}}}}
	accept := ramp.Accept(ramp.Session{ID: "alice"}, order, time.Now())
	for name, f := range map[string]func(tx pgx.Tx) error{
		"a panic":          func(pgx.Tx) error { panic("a bug of the game") },
		"a bad connection": func(pgx.Tx) error { return driver.ErrBadConn },
		"a connection that broke": func(tx pgx.Tx) error {
			if _, err := tx.Exec(context.Background(), "SELECT pg_terminate_backend(pg_backend_pid())"); err != nil {
				return err
			}
			return errors.New("the connection did not break")
		},
		"a context that ends": func(tx pgx.Tx) error {
			cancel()
			if _, err := tx.Exec(context.Background(), "SELECT pg_sleep(0.1)"); err != nil {
				t.Errorf("the transaction ended before its Apply: %v", err)
			}
			return nil
		},
		"an error that Apply ignores": func(tx pgx.Tx) error {
			_, _ = tx.Exec(context.Background(), "SELECT 1/0")
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			fail = f
			var ctx context.Context
			ctx, cancel = context.WithCancel(t.Context())
			defer cancel() // what would end a transaction that hangs
			ended := make(chan error, 1)
			go func() {
				defer func() {
					if recover() != nil {
						ended <- errors.New("panicked")
					}
				}()
				_, err := store.Update(ctx, order.UUID, accept)
				ended <- err
			}()
			select {
			case err := <-ended:
				if err == nil {
					t.Error("no error")
				}
			case <-time.After(10 * time.Second):
				t.Fatal("the call hangs until its context ends")
			}
			n := must(queries.Balance(t.Context(), "alice", "gold"))(t)
			if n != 100 {
				t.Errorf("%d gold", n)
			}
		})
	}
}

// must returns a function that returns value to a test, or ends the test if err is not nil:
// must(os.ReadFile(path))(t).
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
