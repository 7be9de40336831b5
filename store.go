package ramp

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go/internal/redact"
)

// Store keeps orders and applies their effects: that of package
// [github.com/token-ramp/ramp-go/rampsql], [MemoryStore], or your own for a database that
// can change an order and the game's assets in one atomic operation. Package
// ramptest/storetest tests it, and docs/stores.md explains how to write it, with an
// example for Redis. Keep an order in its JSON form, as text: see [Order].
//
// A client that sends a request again when no answer comes, as those of document databases do, makes one
// more demand: its first request may still arrive after the call was rejected. It must then change nothing,
// so let the rejection write something with which the database compares it. Where items are limited in size
// or in number, an order has at most [MaxOrder] bytes, its end included, and a step changes the balance of
// each of its assets: refuse a validate call whose end would not fit.
//
// A Store must be safe for concurrent use. It may have a method
//
//	Check(ctx context.Context, network Network) error
//
// which [Handler.Check] calls. It returns every fault because of which orders of this network could not
// be stored or ended. It may have a method
//
//	Refused(ctx context.Context, id uuid.UUID, reason string) error
//
// which notes that the end of an order was refused, by Apply or because of what the chain shows. It
// stores the present time and the reason. It writes nothing unless the order is stored and waits. Its
// error is only logged; see [Refusal].
//
// If databases share their tokens, a store has [Claims], and a method
//
//	Claims() Claims
//
// by which packages rampbooks and support find them.
//
// A store that wraps another one, such as for metrics, should embed its type, such as *rampsql.Store. If
// it embeds this interface, it hides the methods above, and those that packages rampproof and support
// need.
type Store interface {
	// Update takes one step of the order that is stored under id: it calls next with that order, or
	// nil if there is none, and returns the step.
	//
	// If the step is New, Update stores its Order and applies its Effect in one atomic operation: both
	// happen, or neither. It also calls Apply if the Effect is Nothing, because the game may reject a
	// burn there. If the step is [Step.Settled], it stores the Order and applies nothing. If applying
	// fails or panics, nothing is stored, and the error wraps the cause.
	//
	// One transaction ends one order: if the step ends the order with a TxHash by which another order
	// has ended, nothing is stored, and the error is a [*ConflictError] with Field "tx_hash" and Other
	// set. So let the same atomic operation check the hash, for example by a unique index.
	//
	// Two calls for one id must not both take a step from the same stored order: lock it, or
	// compare and swap. You may call next any number of times. You may also try next(nil) before
	// you know whether an order is stored. If it then returns a step, store it only if no order is
	// stored; otherwise load the stored order and call next with it. If it returns an error that
	// wraps [ErrOrderUnknown], load the order and call next with it; if no order is stored, return
	// that error. Return every other error of next unchanged, and store nothing. If you called next
	// more than once, return the step that you stored: the one that next computed from the order
	// that your write replaced, or from nil if the order is new.
	Update(ctx context.Context, id uuid.UUID, next Transition) (Step, error)
}

// Claims note which order each transaction has ended, in one place for all databases that sell the same
// tokens. Each database knows only its own orders. Without Claims, one transaction could end an order in
// each of them, and somebody with the HMAC key would be paid in each. Package rampsql has Claims in a table.
//
// A [Store] with Claims calls Claim after the transition has returned a new step with a TxHash, which the
// evidence holds for, and before it stores this step. What Claim has stored must not be rolled back with the
// step: otherwise both of two databases could claim first. If another order has the place 0, nothing is
// stored, and the error is a [*ConflictError] as for an order of the same database, whose Other may have no
// more than its UUID and its TxHash. If the step is not stored after all, the claim stays, and a repeat
// finds it.
type Claims interface {
	// Claim notes that an order ends by a transaction, and returns the order that has this place among those
	// of the transaction: the same order, also if it has claimed before, or another one. The place is 0.
	// Package support adds an order to a batch, at the place that says how many have claimed before it.
	Claim(ctx context.Context, transaction common.Hash, place int, order uuid.UUID) (uuid.UUID, error)

	// Claimed returns the orders that have claimed a transaction, by their places. An order may have claimed
	// and not ended.
	Claimed(ctx context.Context, transaction common.Hash) ([]uuid.UUID, error)
}

// MemoryStore is a [Store] in memory, for tests and prototypes. Its orders are lost
// when the process ends, including what players have paid.
type MemoryStore struct {
	// Apply applies the effect of a step completely or not at all. Steps are applied one at a time.
	// With [Reject], it may reject a step that opens an order; Apply of rampsql.Config says what to
	// check. It must not call the store. Required.
	Apply func(ctx context.Context, step Step) error

	mu           sync.Mutex
	orders       map[uuid.UUID]Order
	transactions map[string]uuid.UUID // the orders that have ended by a transaction
}

// Update implements [Store].
func (s *MemoryStore) Update(ctx context.Context, id uuid.UUID, next Transition) (Step, error) {
	if s.Apply == nil {
		return Step{}, invalid("MemoryStore.Apply", "is required")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.orders == nil {
		s.orders, s.transactions = map[uuid.UUID]Order{}, map[string]uuid.UUID{}
	}
	var stored *Order
	if order, ok := s.orders[id]; ok {
		order = order.clone()
		stored = &order
	}
	step, err := next(stored)
	if err != nil || !step.New {
		return step, err
	}
	txHash := step.Order.TxHash
	if other, taken := s.transactions[txHash]; taken && txHash != "" && stored != nil && other != id {
		order := s.orders[other].clone()
		return Step{}, &ConflictError{Order: *stored, Field: "tx_hash", Other: &order}
	}
	if !step.Settled() {
		if err := s.Apply(ctx, step); err != nil {
			return Step{}, err
		}
	}
	s.orders[id] = step.Order.clone()
	s.transactions[txHash] = id
	return step, nil
}

// OrderByTransaction returns the order that a transaction has ended. If there is none, the
// error wraps [ErrOrderUnknown].
func (s *MemoryStore) OrderByTransaction(_ context.Context, hash common.Hash) (Order, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id, ended := s.transactions[hash.Hex()]; ended {
		return s.orders[id].clone(), nil
	}
	return Order{}, fmt.Errorf("ramp: order of transaction %s: %w", hash, ErrOrderUnknown)
}

// NewestSuccess returns the order that was the last to succeed by a transaction. It looks
// at the orders of the network, and at those that were stored without a network. If there
// is none, the error wraps [ErrOrderUnknown].
func (s *MemoryStore) NewestSuccess(_ context.Context, network Network) (newest Order, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.orders {
		ofNetwork := o.Network == network || o.Network == ""
		if ofNetwork && o.State == OrderSucceeded && o.TxHash != "" && o.FinishedAt.After(newest.FinishedAt) {
			newest = o
		}
	}
	if newest.State == "" {
		return Order{}, fmt.Errorf("ramp: newest success: %w", ErrOrderUnknown)
	}
	return newest.clone(), nil
}

// Refusal says that the end of an order was refused, such as by Apply, and that the order still waits.
// A result may come again, or a person ends the order.
type Refusal struct {
	UUID   uuid.UUID `json:"uuid"`   // of the order
	First  time.Time `json:"first"`  // the first refusal
	Last   time.Time `json:"last"`   // and the last
	Count  int       `json:"count"`  // how many there were
	Reason string    `json:"reason"` // of the last, on one line
}

// Refuse notes in a store that an order could not be ended, and why: refused is, for example, the error
// of Apply. The order still waits. If the store does not have the optional method Refused, which [Store]
// describes, Refuse does nothing. [Handler] calls it if it could not process a result, and package
// support if it could not carry out a person's decision. It takes two seconds at most. If ctx has
// already ended, because the time of the call was over, it does not count. If Refuse returns an error,
// nothing was noted. Log it only: answer the result, or the person, as if Refuse had succeeded.
func Refuse(ctx context.Context, store Store, id uuid.UUID, refused error) error {
	noting, ok := store.(interface {
		Refused(ctx context.Context, id uuid.UUID, reason string) error
	})
	if !ok {
		return nil
	}
	const most = 2 * time.Second
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	return noting.Refused(ctx, id, redact.New().Line(refused.Error(), maxRefusal))
}

// maxRefusal is the maximum length of a Refusal's Reason in bytes.
const maxRefusal = 1000

// OrderPage selects a page of the orders that a store lists. The zero value is the first one.
type OrderPage struct {
	// After is the last order of the page before; the list continues after it. Only its UUID and
	// AcceptedAt are used, or FinishedAt if the list is sorted by it. Zero is the beginning.
	After Order
	Limit int // the maximum number of orders on the page; the default is 100
}
