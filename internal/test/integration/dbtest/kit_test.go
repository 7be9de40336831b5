package dbtest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"slices"
	"testing"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/ramptest/storetest"
)

// The store passes the test kit for stores on every database in every mode.
func TestTheStoreKeepsTheContract(t *testing.T) {
	eachMode(t, func(t *testing.T, p *place) { testKit(t, p, nil) })
}

func testKit(t *testing.T, p *place, crash func() error) {
	storetest.TestStore(t, func(t *testing.T, approve func(ramp.Step) error) storetest.Fixture {
		k := kitHoldings{p}
		apply := func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
			if err := k.move(ctx, tx, step); err != nil {
				return err
			}
			return approve(step)
		}
		return storetest.Fixture{
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
	if insert(ctx, k.db, k.dialect, short(session), short(asset), balance) == nil {
		return nil
	}
	_, err := k.db.ExecContext(ctx,
		bind(k.dialect, "UPDATE holdings SET amount = ? WHERE session_id = ? AND asset = ?"),
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

func (k kitHoldings) move(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
	step.Order.SessionID = short(step.Order.SessionID)
	step.Effect.Assets = slices.Clone(step.Effect.Assets)
	for i, a := range step.Effect.Assets {
		step.Effect.Assets[i].ID = short(a.ID)
	}
	slices.SortFunc(step.Effect.Assets, func(a, b ramp.AssetAmount) int { return cmp.Compare(a.ID, b.ID) })
	return studio{dialect: k.dialect}.Apply(ctx, tx, step)
}

// So do shards, for players who have moved from one database to the other.
func TestShardsKeepTheContract(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		here := newPlace(t, p.database, p.mode)
		storetest.TestStore(t, func(t *testing.T, approve func(ramp.Step) error) storetest.Fixture {
			shared := newClaims(t, here)
			shards := func() ramp.Store {
				var stores []*rampsql.Store
				for _, p := range []*place{p, here} {
					k := kitHoldings{p}
					apply := func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
						if err := k.move(ctx, tx, step); err != nil {
							return err
						}
						return approve(step)
					}
					stores = append(stores, newClaimingStore(t, p, apply, shared))
				}
				return must.Get(rampsql.NewShards(rampsql.ShardsConfig{Stores: stores,
					Place: func(context.Context, string) (rampsql.Place, error) {
						return rampsql.Place{Shard: 1, Former: []int{0, 1}}, nil
					}}))(t)
			}
			k := kitHoldings{here}
			return storetest.Fixture{Stores: []ramp.Store{shards(), shards()}, Give: k.give, Balance: k.balance}
		})
	})
}
