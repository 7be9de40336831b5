package dbtest

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/racedetector"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/ramptest/storetest"
)

type applies = func(ctx context.Context, tx *sql.Tx, step ramp.Step) error

// schedulesOf returns the schedules of a place, for an Apply that gets the database of its server.
func schedulesOf(t *testing.T, p *place, apply func(db *sql.DB) applies) storetest.Interleavings {
	t.Helper()
	if p.tidb {
		t.Skip("the walk asks InnoDB which connections wait for a lock")
	}
	s := storetest.Interleavings{
		Connector: must.Get(p.connector(p.dsn))(t),
		Dialect:   p.dialect,
		Assets:    []string{"gold"},
		Give: func(ctx context.Context, session, asset string, balance int64) error {
			return insert(ctx, p.db, p.dialect, session, asset, balance)
		},
		Balance: kitBalance(p),
		Open: func(db *sql.DB) (ramp.Store, error) {
			return rampsql.New(rampsql.Config{DB: db, Dialect: p.dialect, Apply: apply(db), Logger: ramptest.Logger(t),
				TxOptions: &sql.TxOptions{Isolation: p.mode.isolation}})
		},
	}
	if p.quickDeadlocks != "" {
		run(t, p.admin, fmt.Sprintf(p.quickDeadlocks, p.schema, "5ms"))
	}
	if p.env != "" {
		s.Admin = must.Get(p.connector(addressOf(t, p.env)))(t)
	}
	return s
}

func kitBalance(p *place) func(ctx context.Context, session, asset string) (int64, error) {
	return func(ctx context.Context, session, asset string) (n int64, err error) {
		err = p.db.QueryRowContext(ctx,
			bind(p.dialect, "SELECT COALESCE(MAX(amount), 0) FROM holdings WHERE session_id = ? AND asset = ?"),
			session, asset).Scan(&n)
		return n, err
	}
}

// lean moves what a step moves, and nothing else.
func lean(d rampsql.Dialect) func(*sql.DB) applies {
	return func(*sql.DB) applies {
		return func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
			for _, a := range step.Effect.Assets {
				if err := moveOne(ctx, tx, d, step, a); err != nil {
					return err
				}
			}
			return nil
		}
	}
}

func moveOne(ctx context.Context, tx execer, d rampsql.Dialect, step ramp.Step, a ramp.AssetAmount) error {
	delta, err := step.Effect.Delta(a).Int64()
	if err != nil {
		return err
	}
	least := int64(math.MinInt64)
	if step.Effect.Kind == ramp.Take {
		least = -delta
	}
	held, err := add(ctx, tx, d, step.Order.SessionID, a.ID, delta, least)
	switch {
	case err != nil || held:
		return err
	case step.Effect.Kind == ramp.Take:
		return ramp.Reject("INVALID_BALANCE")
	}
	return insert(ctx, tx, d, step.Order.SessionID, a.ID, delta)
}

// heedless is lean, but ignores the errors after which the database has rolled back the transaction.
func heedless(d rampsql.Dialect) func(*sql.DB) applies {
	return func(db *sql.DB) applies {
		return func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
			err := lean(d)(db)(ctx, tx, step)
			if err != nil && strings.Contains(err.Error(), "roll back the transaction") {
				return nil
			}
			return err
		}
	}
}

const envAll = "INTERLEAVINGS_ALL"

// withFaults reports whether a test is to walk through the faults: in make long.
func withFaults() bool { return os.Getenv(envAll) != "" }

// The store and the simplest Apply are right in every schedule.
func TestEveryInterleaving(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		if !p.file {
			racedetector.Skip(t)
		}
		s := schedulesOf(t, p, lean(p.dialect))
		s.NoFaults = !withFaults()
		storetest.TestInterleavings(t, s)
	})
}

// If the database rolls back a transaction, and Apply ignores that, nothing is stored or moved.
func TestEveryInterleavingOfACarelessApply(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		if !withFaults() || p.strict {
			t.Skip("INTERLEAVINGS_ALL is not set")
		}
		storetest.TestInterleavings(t, schedulesOf(t, p, heedless(p.dialect)))
	})
}

func TestEveryInterleavingOfThreeCalls(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		if os.Getenv(envAll) == "" || p.slowWalk {
			t.Skip("INTERLEAVINGS_ALL is not set")
		}
		s := schedulesOf(t, p, lean(p.dialect))
		s.ThreeCalls = true
		storetest.TestInterleavings(t, s)
	})
}
