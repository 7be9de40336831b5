// Package orderlist reads the orders of one project and network from a store that lists them, for packages
// support and rampbooks.
package orderlist

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

// Scope is whose orders are read. A field that is empty hides none.
type Scope struct {
	Projects []string
	Network  ramp.Network
}

// Only makes a transition see only orders in the scope.
func (s Scope) Only(next ramp.Transition) ramp.Transition {
	return ramp.OnlyOf(s.Projects, s.Network, next)
}

// Check returns an error that wraps [ramp.ErrOrderForeign] if an order is of another project or network.
func (s Scope) Check(order *ramp.Order) error {
	_, err := s.Only(func(*ramp.Order) (ramp.Step, error) { return ramp.Step{}, nil })(order)
	return err
}

// List returns a page of a list of orders.
type List = func(ramp.OrderPage) ([]ramp.Order, error)

// Of returns the list of a user or a session.
func Of(ctx context.Context, list func(context.Context, string, ramp.OrderPage) ([]ramp.Order, error),
	name string) List {
	return func(page ramp.OrderPage) ([]ramp.Order, error) { return list(ctx, name, page) }
}

// Pages reads a list page by page, without the orders outside the scope. A damaged row comes with an
// error, but is listed.
func (s Scope) Pages(list List) iter.Seq2[[]ramp.Order, error] {
	damaged := func(order ramp.Order) bool { return IsDamaged(&order) }
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
			again := func(o ramp.Order) bool { return o.UUID == page.After.UUID }
			if page.After.UUID != uuid.Nil && slices.ContainsFunc(orders, again) {
				yield(nil, fmt.Errorf("ramp: the store lists order %s again on the page after it: "+
					"the list would not end", page.After.UUID))
				return
			}
			page.After = orders[len(orders)-1]
			orders = slices.DeleteFunc(orders, func(order ramp.Order) bool { return s.Check(&order) != nil })
			if !yield(orders, nil) {
				return
			}
		}
	}
}

// All reads a whole list.
func (s Scope) All(list List) (all []ramp.Order, err error) {
	for page, failed := range s.Pages(list) {
		all, err = append(all, page...), failed
	}
	return all, err
}

// IsDamaged reports whether a row is not a valid order.
func IsDamaged(o *ramp.Order) bool { return o.Direction == "" }

// EndedOther returns another order than one that a transaction has ended, or nil if there is none.
func EndedOther(
	ctx context.Context,
	byTransaction func(context.Context, common.Hash) (ramp.Order, error),
	id uuid.UUID, transaction common.Hash,
) (*ramp.Order, error) {
	order, err := byTransaction(ctx, transaction)
	switch {
	case errors.Is(err, ramp.ErrOrderUnknown):
		return nil, nil
	case err != nil, order.UUID == id:
		return nil, err
	default:
		return &order, nil
	}
}

// RefusalStore is a store that knows why the ends of orders were refused.
type RefusalStore interface {
	Refusals(ctx context.Context, orders ...uuid.UUID) (map[uuid.UUID]ramp.Refusal, error)
	CountRefused(ctx context.Context, d ramp.Direction) (n int, first time.Time, err error)
}

// Refusals returns why the ends of those orders were refused that wait, if the store is a [RefusalStore].
func Refusals(ctx context.Context, store any, orders ...ramp.Order) (map[uuid.UUID]ramp.Refusal, error) {
	var waiting []uuid.UUID
	for _, order := range orders {
		if order.State == ramp.OrderAccepted {
			waiting = append(waiting, order.UUID)
		}
	}
	refusals, ok := store.(RefusalStore)
	if !ok || len(waiting) == 0 {
		return nil, nil
	}
	return refusals.Refusals(ctx, waiting...)
}

// ClaimsOf returns the claims of a store, or nil if it has none.
func ClaimsOf(store any) ramp.Claims {
	of, ok := store.(interface{ Claims() ramp.Claims })
	if !ok {
		return nil
	}
	return of.Claims()
}
