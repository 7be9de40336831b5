package dbtest

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/storetest"
)

// SQLStore passes the test kit for stores on every database in every mode.
func TestSQLStoreKeepsTheContract(t *testing.T) {
	eachMode(t, func(t *testing.T, p *place) { testKit(t, p, nil) })
}

func testKit(t *testing.T, p *place, crash func() error) {
	storetest.TestStore(t, func(t *testing.T, approve func(ramp.Step) error) storetest.Target {
		k := kitHoldings{p}
		apply := func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
			if err := k.move(ctx, tx, step); err != nil {
				return err
			}
			return approve(step)
		}
		return storetest.Target{
			Stores: []ramp.Store{newStore(t, p, apply), newStore(t, p, apply)}, // like two machines
			Give:   k.give, Balance: k.balance, Crash: crash,
		}
	})
}

// kitHoldings keeps the balances of the kit in the table holdings. It stores hashes of
// the kit's names, which are longer than the columns.
type kitHoldings struct{ *place }

func short(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:])
}

func (k kitHoldings) give(ctx context.Context, session, asset string, balance int64) error {
	if k.insert(ctx, k.db, session, asset, balance) == nil {
		return nil
	}
	_, err := k.db.ExecContext(ctx, bind(k.dialect, "UPDATE holdings SET amount = ? WHERE session_id = ? AND asset = ?"),
		balance, short(session), short(asset))
	return err
}

func (k kitHoldings) balance(ctx context.Context, session, asset string) (balance int64, err error) {
	err = k.db.QueryRowContext(ctx, bind(k.dialect, "SELECT amount FROM holdings WHERE session_id = ? AND asset = ?"),
		short(session), short(asset)).Scan(&balance)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return balance, err
}

func (k kitHoldings) insert(ctx context.Context, on execer, session, asset string, balance int64) error {
	_, err := on.ExecContext(ctx, bind(k.dialect, "INSERT INTO holdings (session_id, asset, amount) VALUES (?, ?, ?)"),
		short(session), short(asset), balance)
	return err
}

func (k kitHoldings) move(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
	inOrder := slices.SortedFunc(slices.Values(step.Effect.Assets), func(a, b ramp.AssetAmount) int {
		return strings.Compare(short(a.ID), short(b.ID))
	})
	for _, asset := range inOrder {
		delta, err := step.Effect.Delta(asset).Int64()
		if err != nil {
			return err
		}
		switch held, err := add(ctx, tx, k.dialect, short(step.Order.SessionID), short(asset.ID), delta); {
		case err != nil:
			return err
		case held:
		case step.Effect.Kind == ramp.Take:
			return ramp.Reject("INVALID_BALANCE")
		default:
			if err := k.insert(ctx, tx, step.Order.SessionID, asset.ID, delta); err != nil {
				return err
			}
		}
	}
	return nil
}
