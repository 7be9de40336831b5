package ramp

import (
	"context"
	"sync"

	"github.com/google/uuid"
)

// Store keeps orders, and applies what they move. The package has [NewSQLStore]
// and [NewMemoryStore]; write one for any database that can change an order and
// what it moves in one atomic operation. ramptest.TestStore tests it, and
// docs/stores.md says how to write it, with examples for pgx and Redis.
//
// A Store must be safe for concurrent use.
type Store interface {
	// Update takes one step of the order that is stored under id: it calls next
	// with that order, nil if there is none, and returns next's step.
	//
	// If the step is New, Update stores its Order and applies its Effect in one
	// atomic operation: both happen, or neither. That holds for an Effect of
	// Nothing too, because a game may decline a burn there. If applying fails,
	// nothing is stored, and Update returns an error that wraps the cause. If it
	// panics, nothing is stored either.
	//
	// Two calls for one id must not both take a step from the same stored
	// order: lock it, or compare and swap. next may be called any number of
	// times, also with nil although an order is stored; the step that counts is
	// the one of the order that was replaced. An error of next is returned
	// unchanged, and nothing is stored. From next(nil), an error that wraps
	// [ErrOrderUnknown] only says that next needs the stored order.
	Update(ctx context.Context, id uuid.UUID, next Transition) (Step, error)
}

// MemoryStore is a [Store] in the memory of one process, for tests, prototypes
// and the first hour. What it holds is lost when the process ends, and so is
// what players have paid.
type MemoryStore struct {
	apply  func(context.Context, Step) error
	mu     sync.Mutex
	orders map[uuid.UUID]Order
}

// MemoryStoreConfig configures a [MemoryStore].
type MemoryStoreConfig struct {
	// Apply brings about the effect of a step, whole or not at all. Steps are
	// applied one at a time. It may decline a step that opens an order, with
	// [Reject]; see [SQLStoreConfig].Apply for what it may decline. It must not
	// call the store. Required.
	Apply func(ctx context.Context, step Step) error
}

// NewMemoryStore returns an empty store. The error is an [*InvalidError] if
// Apply is missing.
func NewMemoryStore(c MemoryStoreConfig) (*MemoryStore, error) {
	if c.Apply == nil {
		return nil, invalid("MemoryStoreConfig.Apply", "is required")
	}
	return &MemoryStore{apply: c.Apply, orders: map[uuid.UUID]Order{}}, nil
}

// Update implements [Store].
func (s *MemoryStore) Update(ctx context.Context, id uuid.UUID, next Transition) (Step, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var stored *Order
	if order, ok := s.orders[id]; ok {
		order = order.clone()
		stored = &order
	}
	step, err := next(stored)
	if err != nil || !step.New {
		return step, err
	}
	if err := s.apply(ctx, step); err != nil {
		return Step{}, err
	}
	s.orders[id] = step.Order.clone()
	return step, nil
}
