package support

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
)

// Ledger is a [ramp.Store] that lists its orders, such as rampsql.Store, whose methods
// say what these do. They lock nothing and write nothing. [Orders.Reconcile] and the command
// list need one. If it also has the methods Refusals and CountRefused of rampsql.Store, the
// commands list, show and count say whose end was refused, and why.
type Ledger interface {
	Order(ctx context.Context, id uuid.UUID) (ramp.Order, error)
	Ended(ctx context.Context, from, to time.Time, page ramp.OrderPage) ([]ramp.Order, error)
	Waiting(ctx context.Context, d ramp.Direction, before time.Time,
		page ramp.OrderPage) ([]ramp.Order, error)
	SessionOrders(ctx context.Context, sessionID string, page ramp.OrderPage) ([]ramp.Order, error)
	UserOrders(ctx context.Context, address string, page ramp.OrderPage) ([]ramp.Order, error)
	OrderByTransaction(ctx context.Context, hash common.Hash) (ramp.Order, error)
	CountWaiting(ctx context.Context, d ramp.Direction, before time.Time) (n int, oldest time.Time, err error)
}

// ledger returns the store, which must be a [Ledger].
func (o *Orders) ledger() (Ledger, error) {
	if err := o.made(); err != nil {
		return nil, err
	}
	if store, ok := o.config.Store.(Ledger); ok {
		return store, nil
	}
	return nil, invalid("Config.Store", "must be a Ledger")
}

// order returns the stored order. It asks a [Ledger] for no right to write.
func (o *Orders) order(ctx context.Context, id uuid.UUID) (ramp.Order, error) {
	if err := o.made(); err != nil {
		return ramp.Order{}, err
	}
	if ledger, ok := o.config.Store.(Ledger); ok {
		order, err := ledger.Order(ctx, id)
		if err == nil {
			err = o.foreign(&order)
		}
		return order, err
	}
	step, err := o.config.Store.Update(ctx, id, o.mine(func(stored *ramp.Order) (ramp.Step, error) {
		if stored == nil {
			return ramp.Step{}, fmt.Errorf("ramp: order %s: %w", id, ramp.ErrOrderUnknown)
		}
		return ramp.Step{Order: *stored}, nil // a repeat: nothing is stored
	}))
	return step.Order, err
}

// listing returns a page of a list of orders.
type listing = func(ramp.OrderPage) ([]ramp.Order, error)

// of returns the listing of a user or a session.
func of(ctx context.Context, list func(context.Context, string, ramp.OrderPage) ([]ramp.Order, error),
	name string) listing {
	return func(page ramp.OrderPage) ([]ramp.Order, error) { return list(ctx, name, page) }
}

// pages reads a list of orders page by page, without those of other projects and networks.
// A damaged row comes with an error, but is listed.
func (o *Orders) pages(list listing) iter.Seq2[[]ramp.Order, error] {
	damaged := func(order ramp.Order) bool { return isDamaged(&order) }
	return func(yield func([]ramp.Order, error) bool) {
		for page := (ramp.OrderPage{Limit: 1000}); ; {
			orders, err := list(page)
			if err != nil && !slices.ContainsFunc(orders, damaged) {
				yield(nil, err)
				return
			}
			if len(orders) == 0 {
				return
			}
			page.After = orders[len(orders)-1]
			orders = slices.DeleteFunc(orders,
				func(order ramp.Order) bool { return o.foreign(&order) != nil })
			if !yield(orders, nil) {
				return
			}
		}
	}
}

// all reads a whole list.
func (o *Orders) all(list listing) (all []ramp.Order, err error) {
	for page, failed := range o.pages(list) {
		all, err = append(all, page...), failed
	}
	return all, err
}

// endedOther returns another order that a transaction has ended, or nil if there is none or
// the store is no [Ledger].
func (o *Orders) endedOther(ctx context.Context, id uuid.UUID, transaction common.Hash) (*ramp.Order, error) {
	store, ok := o.config.Store.(Ledger)
	if !ok {
		return nil, nil
	}
	order, err := store.OrderByTransaction(ctx, transaction)
	switch {
	case errors.Is(err, ramp.ErrOrderUnknown):
		return nil, nil
	case err != nil, order.UUID == id:
		return nil, err
	default:
		return &order, nil
	}
}

// isDamaged reports whether a row is not a valid order.
func isDamaged(o *ramp.Order) bool { return o.Direction == "" }

// refusalLedger is a [Ledger] that knows why the ends of orders were refused.
type refusalLedger interface {
	Refusals(ctx context.Context, orders ...uuid.UUID) (map[uuid.UUID]ramp.Refusal, error)
	CountRefused(ctx context.Context, d ramp.Direction) (n int, first time.Time, err error)
}

// refusals returns why the ends of those orders were refused that wait.
func (o *Orders) refusals(ctx context.Context, orders ...ramp.Order) (map[uuid.UUID]ramp.Refusal, error) {
	var waiting []uuid.UUID
	for _, order := range orders {
		if order.State == ramp.OrderAccepted {
			waiting = append(waiting, order.UUID)
		}
	}
	store, ok := o.config.Store.(refusalLedger)
	if !ok || len(waiting) == 0 {
		return nil, nil
	}
	return store.Refusals(ctx, waiting...)
}

// refused says how often, since when and why the end of an order was refused.
func refused(r *ramp.Refusal) string {
	return fmt.Sprintf("%d times since %s, last %s: %s",
		r.Count, r.First.Format(time.RFC3339), r.Last.Format(time.RFC3339), r.Reason)
}
