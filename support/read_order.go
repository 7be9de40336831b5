package support

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/invalid"
	"github.com/token-ramp/ramp-go/internal/orderlist"
	"github.com/token-ramp/ramp-go/rampbooks"
)

// lister returns the store, which must be a [rampbooks.OrderLister].
func (o *Orders) lister() (rampbooks.OrderLister, error) {
	if err := o.made(); err != nil {
		return nil, err
	}
	if store, ok := o.config.Store.(rampbooks.OrderLister); ok {
		return store, nil
	}
	return nil, invalid.Field("Config.Store", "must be a rampbooks.OrderLister")
}

// order returns the stored order. It asks a [rampbooks.OrderLister] for no right to write.
func (o *Orders) order(ctx context.Context, id uuid.UUID) (ramp.Order, error) {
	if err := o.made(); err != nil {
		return ramp.Order{}, err
	}
	if store, ok := o.config.Store.(rampbooks.OrderLister); ok {
		order, err := store.Order(ctx, id)
		if err == nil {
			err = o.scope.Check(&order)
		}
		return order, err
	}
	step, err := o.config.Store.Update(ctx, id, o.scope.Only(func(stored *ramp.Order) (ramp.Step, error) {
		if stored == nil {
			return ramp.Step{}, fmt.Errorf("ramp: order %s: %w", id, ramp.ErrOrderUnknown)
		}
		return ramp.Step{Order: *stored}, nil // a repeat: nothing is stored
	}))
	return step.Order, err
}

// endedOther returns another order that a transaction has ended, or nil if there is none or
// the store is no [rampbooks.OrderLister].
func (o *Orders) endedOther(ctx context.Context, id uuid.UUID, transaction common.Hash) (*ramp.Order, error) {
	store, ok := o.config.Store.(rampbooks.OrderLister)
	if !ok {
		return nil, nil
	}
	return orderlist.EndedOther(ctx, store.OrderByTransaction, id, transaction)
}
