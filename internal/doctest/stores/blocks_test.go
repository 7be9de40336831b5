//go:build docs

// The blocks of docs/stores.md.
package stores

import (
	"context"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/storetest"
)

type contract interface {
	// block: Update(
}

var _ contract = ramp.Store(nil)

// block: func TestStore(

// The store of the block represents one on pgx, but keeps everything in memory.
type Store struct {
	memory  *memory
	approve func(context.Context, pgx.Tx, ramp.Step) error
}

type balanceKey struct{ session, asset string }

type memory struct {
	mu       sync.Mutex
	orders   map[uuid.UUID]ramp.Order
	byTx     map[string]uuid.UUID
	balances map[balanceKey]int64
}

var (
	shared       = &memory{orders: map[uuid.UUID]ramp.Order{}, byTx: map[string]uuid.UUID{}, balances: map[balanceKey]int64{}}
	poolA, poolB = shared, shared
	crash        func() error
)

func give(_ context.Context, session, asset string, n int64) error {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.balances[balanceKey{session, asset}] = n
	return nil
}

func balance(_ context.Context, session, asset string) (int64, error) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	return shared.balances[balanceKey{session, asset}], nil
}

func (s *Store) Update(ctx context.Context, id uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	var stored *ramp.Order
	if order, ok := s.memory.orders[id]; ok {
		stored = &order
	}
	step, err := next(stored)
	if err != nil || !step.New {
		return step, err
	}
	txHash := step.Order.TxHash
	if other, taken := s.memory.byTx[txHash]; taken && txHash != "" && other != id {
		order := s.memory.orders[other]
		return ramp.Step{}, &ramp.ConflictError{Order: *stored, Field: "tx_hash", Other: &order}
	}
	moved := map[balanceKey]int64{}
	for _, asset := range step.Effect.Assets {
		delta, err := step.Effect.Delta(asset).Int64()
		if err != nil {
			return ramp.Step{}, err
		}
		key := balanceKey{step.Order.SessionID, asset.ID}
		if moved[key] = s.memory.balances[key] + delta; moved[key] < 0 {
			return ramp.Step{}, ramp.Reject("INVALID_BALANCE")
		}
	}
	if err := s.approve(ctx, nil, step); err != nil {
		return ramp.Step{}, err
	}
	if err := ctx.Err(); err != nil {
		return ramp.Step{}, err
	}
	for key, n := range moved {
		s.memory.balances[key] = n
	}
	s.memory.orders[id], s.memory.byTx[txHash] = step.Order, id
	return step, nil
}
