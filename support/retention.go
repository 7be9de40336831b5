package support

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/orderlist"
	"github.com/token-ramp/ramp-go/rampbooks"
)

// retention knows which orders of a direction the store has not deleted. Stores delete the older ones first,
// and those that have succeeded before the others. So one that has succeeded, and was not spared, shows that
// none was deleted which was accepted after its end.
type retention struct {
	*Orders
	store     rampbooks.OrderLister // nil if it lists no orders, and so deletes none
	direction ramp.Direction

	shown    time.Time               // the end of an order that shows it, if one was found
	searched time.Time               // no order shows it that ended before
	traded   map[string][]ramp.Order // by wallet: many orders are often of one
}

func (o *Orders) retentionOf(d ramp.Direction) *retention {
	store, err := o.lister()
	if err != nil {
		store = nil
	}
	return &retention{Orders: o, store: store, direction: d, traded: map[string][]ramp.Order{}}
}

// isWhole reports whether no order was deleted that was accepted after a time. It searches backwards, because
// the store may have a million older orders of the other direction.
func (r *retention) isWhole(ctx context.Context, after time.Time) (bool, error) {
	const first, last = 24 * time.Hour, 1 << 10 * 24 * time.Hour
	if r.store == nil || !r.shown.IsZero() && r.shown.Before(after) {
		return true, nil
	}
	if !after.After(r.searched) {
		return false, nil
	}
	to := after
	for span := first; span <= last; span *= 2 {
		from := to.Add(-span)
		if span == last {
			from = time.Time{}
		}
		if found, err := r.search(ctx, from, to); found || err != nil {
			return found, err
		}
		to = from
	}
	r.searched = after
	return false, nil
}

// search looks for an order that shows it among those that ended from a time to before another.
func (r *retention) search(ctx context.Context, from, to time.Time) (bool, error) {
	for page, err := range r.scope.Pages(func(page ramp.OrderPage) ([]ramp.Order, error) {
		return r.store.Ended(ctx, from, to, page)
	}) {
		if err != nil {
			return false, err
		}
		for i := range page {
			spared, err := r.isSpared(ctx, &page[i])
			if err != nil {
				return false, err
			}
			if !spared {
				r.shown = page[i].FinishedAt
				return true, nil
			}
		}
	}
	return false, nil
}

// isSpared reports whether an order may be there although newer ones were deleted: because another one of
// its wallet waited, or any, if its player was erased, or because it is not one of those that are deleted
// first.
func (r *retention) isSpared(ctx context.Context, order *ramp.Order) (bool, error) {
	if order.Direction != r.direction || order.State != ramp.OrderSucceeded ||
		!common.IsHexAddress(order.UserAddress) {
		return true, nil
	}
	wallet := strings.ToLower(order.UserAddress)
	if _, read := r.traded[wallet]; !read {
		var every orderlist.Scope // an order of another project spares others, too
		all, err := every.All(orderlist.Of(ctx, r.store.UserOrders, order.UserAddress))
		if err != nil {
			return false, err
		}
		r.traded[wallet] = all
	}
	return slices.ContainsFunc(r.traded[wallet], func(other ramp.Order) bool {
		waited := other.State == ramp.OrderAccepted ||
			other.FinishedAt.After(order.FinishedAt.Add(orderlist.MinDeletedAge))
		return waited && other.Direction == r.direction &&
			!other.AcceptedAt.Add(-orderlist.KeptBefore).After(order.FinishedAt)
	}), nil
}

// endedDeleted reports whether the transaction of a time may have ended an order that was deleted since.
func (o *Orders) endedDeleted(ctx context.Context, d ramp.Direction, at time.Time) (bool, error) {
	if at.After(o.config.Now().Add(-orderlist.MinDeletedAge)) {
		return false, nil
	}
	whole, err := o.retentionOf(d).isWhole(ctx, at.Add(-maxDelay))
	return err == nil && !whole, err
}
