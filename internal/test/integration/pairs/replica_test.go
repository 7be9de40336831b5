package pairs

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	ramp "github.com/token-ramp/ramp-go"
)

// versions are all that was stored of each order.
type versions struct {
	mu sync.Mutex
	of map[uuid.UUID][]version
}

type version struct {
	order ramp.Order
	at    time.Time
}

func (v *versions) add(o ramp.Order, at time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.of == nil {
		v.of = map[uuid.UUID][]version{}
	}
	v.of[o.UUID] = append(v.of[o.UUID], version{o, at})
}

func (v *versions) all(id uuid.UUID) []version {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.of[id])
}

func (v *versions) ids() []uuid.UUID {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Collect(maps.Keys(v.of))
}

// replica shows the orders as they were a while ago.
type replica struct{ *store }

// then returns an order as it was, if it was there. What is older than the scene has always been as it is.
func (r replica) then(o ramp.Order) (was ramp.Order, there bool) {
	list := r.w.versions.all(o.UUID)
	if len(list) == 0 {
		return o, true
	}
	until := r.w.now().Add(-r.w.books.lag)
	for _, v := range list {
		if !v.at.After(until) {
			was, there = v.order, true
		}
	}
	return was, there
}

// keep returns the orders of a list as they were, of those that fit.
func (r replica) keep(list []ramp.Order, err error, fits func(ramp.Order) bool) (kept []ramp.Order, _ error) {
	for _, o := range list {
		if was, there := r.then(o); there && fits(was) {
			kept = append(kept, was)
		}
	}
	return kept, err
}

func isAny(ramp.Order) bool       { return true }
func hasEnded(o ramp.Order) bool  { return o.State != ramp.OrderAccepted }
func isWaiting(o ramp.Order) bool { return o.State == ramp.OrderAccepted }

func (r replica) Order(ctx context.Context, id uuid.UUID) (ramp.Order, error) {
	return r.one(r.store.Order(ctx, id))
}

func (r replica) OrderByTransaction(ctx context.Context, hash common.Hash) (ramp.Order, error) {
	o, err := r.one(r.orders.OrderByTransaction(ctx, hash))
	if err == nil && isWaiting(o) {
		return ramp.Order{}, ramp.ErrOrderUnknown
	}
	return o, err
}

func (r replica) one(o ramp.Order, err error) (ramp.Order, error) {
	was, there := r.then(o)
	if err == nil && !there {
		err = ramp.ErrOrderUnknown
	}
	return was, err
}

func (r replica) Ended(ctx context.Context, from, to time.Time, page ramp.OrderPage) ([]ramp.Order, error) {
	list, err := r.orders.Ended(ctx, from, to, page)
	return r.keep(list, err, hasEnded)
}

func (r replica) SessionOrders(ctx context.Context, session string, page ramp.OrderPage) ([]ramp.Order, error) {
	list, err := r.orders.SessionOrders(ctx, session, page)
	return r.keep(list, err, isAny)
}

func (r replica) UserOrders(ctx context.Context, address string, page ramp.OrderPage) ([]ramp.Order, error) {
	list, err := r.orders.UserOrders(ctx, address, page)
	return r.keep(list, err, isAny)
}

// Waiting also lists those that have ended since. All are on one page.
func (r replica) Waiting(
	ctx context.Context, d ramp.Direction, before time.Time, page ramp.OrderPage,
) ([]ramp.Order, error) {
	list, err := r.store.Waiting(ctx, d, before, page)
	kept, err := r.keep(list, err, isWaiting)
	if err != nil || page.After.UUID != uuid.Nil {
		return kept, err
	}
	for _, id := range r.w.versions.ids() {
		was, there := r.then(ramp.Order{UUID: id})
		listed := slices.ContainsFunc(list, func(o ramp.Order) bool { return o.UUID == id })
		if there && isWaiting(was) && was.Direction == d && was.AcceptedAt.Before(before) && !listed {
			kept = append(kept, was)
		}
	}
	slices.SortFunc(kept, func(a, b ramp.Order) int {
		return cmp.Or(a.AcceptedAt.Compare(b.AcceptedAt), cmp.Compare(a.UUID.String(), b.UUID.String()))
	})
	return kept, nil
}
