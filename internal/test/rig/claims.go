package rig

import (
	"context"
	"errors"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
)

// Claims are a [ramp.Claims] in memory.
type Claims struct {
	mu     sync.Mutex
	orders map[common.Hash][]uuid.UUID
}

func (c *Claims) Claim(
	_ context.Context, transaction common.Hash, place int, order uuid.UUID,
) (uuid.UUID, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.orders == nil {
		c.orders = map[common.Hash][]uuid.UUID{}
	}
	switch of := c.orders[transaction]; {
	case place < len(of):
		return of[place], nil
	case place > len(of):
		return uuid.Nil, errors.New("a place is left out")
	}
	c.orders[transaction] = append(c.orders[transaction], order)
	return order, nil
}

func (c *Claims) Claimed(_ context.Context, transaction common.Hash) ([]uuid.UUID, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.orders[transaction], nil
}

// Claiming is a store in memory with claims, as [ramp.Claims] demands.
type Claiming struct {
	*ramp.MemoryStore
	Shared *Claims
}

func (s Claiming) Claims() ramp.Claims { return s.Shared }

func (s Claiming) Update(ctx context.Context, id uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	return claimFirst(ctx, s.Shared, s.MemoryStore, id, next)
}

var errUnclaimed = errors.New("the transaction is not claimed")

// claimFirst takes a step of a store, and claims the transaction of one that ends an order before it is
// stored.
func claimFirst(
	ctx context.Context, claims ramp.Claims, store ramp.Store, id uuid.UUID, next ramp.Transition,
) (ramp.Step, error) {
	var order ramp.Order
	hash := ""
	step, err := store.Update(ctx, id, func(stored *ramp.Order) (ramp.Step, error) {
		step, err := next(stored)
		if err == nil && stored != nil && step.New && step.Order.TxHash != "" {
			order, hash = *stored, step.Order.TxHash
			return ramp.Step{}, errUnclaimed
		}
		return step, err
	})
	if !errors.Is(err, errUnclaimed) {
		return step, err
	}
	holder, err := claims.Claim(ctx, common.HexToHash(hash), 0, id)
	if err == nil && holder != id {
		err = &ramp.ConflictError{Order: order, Field: "tx_hash",
			Other: &ramp.Order{UUID: holder, TxHash: hash}}
	}
	if err != nil {
		return ramp.Step{}, err
	}
	return store.Update(ctx, id, next)
}
