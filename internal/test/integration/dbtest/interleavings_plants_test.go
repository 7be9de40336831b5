package dbtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/racedetector"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/ramptest/storetest"
)

// plant is a mistake in a studio's Apply, and what the failure says.
type plant struct {
	name   string
	says   string
	faults bool // whether something else must go wrong, so that it is found
	harms  []rampsql.Dialect
	apply  func(rampsql.Dialect) func(db *sql.DB) applies
}

var (
	everywhere = dialectsOf(func(database) bool { return true })
	onServers  = dialectsOf(func(d database) bool { return !d.file }) // where two transactions can write
)

var plants = []plant{
	{
		name: "the balance is read and then written", harms: onServers,
		says: "is read and then written",
		apply: eachMove(func(m move) error {
			amount, err := m.amount(m.tx)
			if errors.Is(err, sql.ErrNoRows) {
				return m.right(m.tx)
			}
			if err != nil {
				return err
			}
			if amount+m.delta < 0 {
				return ramp.Reject("INVALID_BALANCE")
			}
			return m.exec("UPDATE holdings SET amount = ? WHERE session_id = ? AND asset = ?",
				amount+m.delta, m.step.Order.SessionID, m.asset.ID)
		}),
	},
	{
		name: "tx.Commit in Apply", harms: everywhere,
		says: "Apply ended the transaction",
		apply: after(func(tx *sql.Tx, err error) error {
			return errors.Join(err, tx.Commit())
		}),
	},
	{
		name: "the database instead of tx", harms: everywhere,
		says:  "to the database, instead of tx",
		apply: eachMove(func(m move) error { return m.right(m.db) }),
	},
	{
		name: "RowsAffected is ignored", harms: everywhere,
		says: "changed no row, and Apply approved",
		apply: eachMove(func(m move) error {
			if m.step.Effect.Kind != ramp.Take {
				return m.right(m.tx)
			}
			return m.exec(
				"UPDATE holdings SET amount = amount + ? WHERE session_id = ? AND asset = ? AND amount + ? >= 0",
				m.delta, m.step.Order.SessionID, m.asset.ID, m.delta)
		}),
	},
	{
		name: "locks in two orders", harms: onServers,
		says: "the calls lock rows in two orders",
		apply: around(func(step ramp.Step, right func(ramp.Step) error) error {
			if step.Effect.Kind == ramp.GiveBack { // what was taken last goes back first
				step.Effect.Assets = slices.Clone(step.Effect.Assets)
				slices.Reverse(step.Effect.Assets)
			}
			return right(step)
		}),
	},
	{
		name: "memory says what was applied", harms: everywhere, faults: true,
		says: "only the transaction may remember what was applied",
		apply: func(d rampsql.Dialect) func(db *sql.DB) applies {
			return func(db *sql.DB) applies {
				applied := map[string]bool{} // of one server, which makes one call at a time
				return around(func(step ramp.Step, right func(ramp.Step) error) error {
					key := fmt.Sprint(step.Order.UUID, step.Order.State)
					if applied[key] {
						return nil
					}
					applied[key] = !step.Rehearsal
					return right(step)
				})(d)(db)
			}
		},
	},
	{
		name: "a missing row is not created", harms: everywhere,
		says: "a grant creates a missing row",
		apply: eachMove(func(m move) error {
			held, err := add(m.ctx, m.tx, m.dialect, m.step.Order.SessionID, m.asset.ID, m.delta, max(0, -m.delta))
			if err == nil && !held && m.step.Effect.Kind == ramp.Take {
				err = ramp.Reject("INVALID_BALANCE")
			}
			return err
		}),
	},
	{
		name: "a check outside of the transaction", harms: everywhere,
		says: "to the database, instead of tx",
		apply: eachMove(func(m move) error {
			amount, err := m.amount(m.db)
			if err == nil && amount+m.delta < 0 {
				err = ramp.Reject("INVALID_BALANCE")
			}
			if err != nil {
				return err
			}
			return m.exec("UPDATE holdings SET amount = amount + ? WHERE session_id = ? AND asset = ?",
				m.delta, m.step.Order.SessionID, m.asset.ID)
		}),
	},
	{
		name: "an error of tx is ignored", faults: true,
		says:  "failed, and Apply ignored the error",
		harms: dialectsOf(func(d database) bool { return !d.strict }),
		apply: after(func(_ *sql.Tx, err error) error {
			var rejection *ramp.Rejection
			if errors.As(err, &rejection) {
				return err
			}
			return nil
		}),
	},
}

// move is the movement of one asset of a step.
type move struct {
	ctx     context.Context
	dialect rampsql.Dialect
	db      *sql.DB
	tx      *sql.Tx
	step    ramp.Step
	asset   ramp.AssetAmount
	delta   int64
}

func (m move) right(on execer) error { return moveOne(m.ctx, on, m.dialect, m.step, m.asset) }

func (m move) exec(statement string, args ...any) error {
	_, err := m.tx.ExecContext(m.ctx, bind(m.dialect, statement), args...)
	return err
}

func (m move) amount(from interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}) (amount int64, err error) {
	const query = "SELECT amount FROM holdings WHERE session_id = ? AND asset = ?"
	err = from.QueryRowContext(m.ctx, bind(m.dialect, query), m.step.Order.SessionID, m.asset.ID).Scan(&amount)
	return amount, err
}

// eachMove returns an Apply that makes each movement in a way of its own.
func eachMove(apply func(move) error) func(rampsql.Dialect) func(db *sql.DB) applies {
	return func(d rampsql.Dialect) func(db *sql.DB) applies {
		return func(db *sql.DB) applies {
			return func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
				for _, a := range step.Effect.Assets {
					delta, err := step.Effect.Delta(a).Int64()
					if err != nil {
						return err
					}
					if err := apply(move{ctx, d, db, tx, step, a, delta}); err != nil {
						return err
					}
				}
				return nil
			}
		}
	}
}

// around returns an Apply that does something before the right one.
func around(apply func(step ramp.Step,
	right func(ramp.Step) error) error) func(rampsql.Dialect) func(db *sql.DB) applies {
	return func(d rampsql.Dialect) func(db *sql.DB) applies {
		return func(db *sql.DB) applies {
			return func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
				return apply(step, func(step ramp.Step) error { return lean(d)(db)(ctx, tx, step) })
			}
		}
	}
}

// after returns an Apply that does something after the right one.
func after(apply func(tx *sql.Tx, err error) error) func(rampsql.Dialect) func(db *sql.DB) applies {
	return func(d rampsql.Dialect) func(db *sql.DB) applies {
		return func(db *sql.DB) applies {
			return func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
				return apply(tx, lean(d)(db)(ctx, tx, step))
			}
		}
	}
}

// listener is a test that keeps what it is told.
type listener struct {
	testing.TB
	told string
}

func (l *listener) Helper()                           {}
func (l *listener) Logf(string, ...any)               {}
func (l *listener) Error(args ...any)                 { l.told += fmt.Sprintln(args...) }
func (l *listener) Errorf(format string, args ...any) { l.told += fmt.Sprintf(format, args...) }

// Mistakes that studios make are found, and called by their names.
func TestInterleavingsFindMistakesOfStudios(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes longer than -short allows")
	}
	racedetector.Skip(t)
	eachDatabase(t, func(t *testing.T, p *place) {
		for _, plant := range plants {
			harms := slices.Contains(plant.harms, p.dialect)
			if plant.faults && (!harms || !withFaults()) {
				continue
			}
			t.Run(plant.name, func(t *testing.T) {
				s := schedulesOf(t, p, plant.apply(p.dialect))
				s.Assets, s.NoFaults = []string{"gem", "gold"}, !plant.faults
				l := &listener{TB: t}
				storetest.TestInterleavings(l, s)
				t.Log(l.told)
				if harms != strings.Contains(l.told, plant.says) || !harms && l.told != "" {
					t.Errorf("must say %q on %v", plant.says, plant.harms)
				}
			})
		}
	})
}
