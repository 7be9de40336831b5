package support

import (
	"context"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence"
	"github.com/token-ramp/ramp-go/internal/orderlist"
	"github.com/token-ramp/ramp-go/rampbooks"
)

// retention has, for each direction, when the oldest order ended that has succeeded and shows that none was
// deleted which was accepted later: stores delete the older ones first, and those that have succeeded before
// the others. It is nil if the store lists no orders, and so deletes none.
type retention map[ramp.Direction]time.Time

// retention reads what the store has retained.
func (o *Orders) retention(ctx context.Context) (retention, error) {
	store, err := o.lister()
	if err != nil {
		return nil, nil
	}
	since := retention{}
	page := ramp.OrderPage{Limit: 1000}
	for len(since) < 2 {
		ended, err := store.Ended(ctx, time.Time{}, o.config.Now(), page)
		if len(ended) == 0 {
			return since, err
		}
		for _, order := range ended {
			if _, known := since[order.Direction]; known || order.State != ramp.OrderSucceeded {
				continue
			}
			spared, err := o.isSpared(ctx, store, &order)
			if err != nil {
				return nil, err
			}
			if !spared {
				since[order.Direction] = order.FinishedAt
			}
		}
		page.After = ended[len(ended)-1]
	}
	return since, nil
}

// isSpared reports whether an order may have been kept when newer ones were deleted: because another order of its
// wallet waited, or any, if its player was erased.
func (o *Orders) isSpared(
	ctx context.Context, store rampbooks.OrderLister, order *ramp.Order,
) (bool, error) {
	if !common.IsHexAddress(order.UserAddress) {
		return true, nil
	}
	all, err := o.scope.All(orderlist.Of(ctx, store.UserOrders, order.UserAddress))
	for _, other := range all {
		waited := other.State == ramp.OrderAccepted ||
			other.FinishedAt.After(order.FinishedAt.Add(evidence.MinDeletedAge))
		if waited && other.Direction == order.Direction &&
			!other.AcceptedAt.Add(-skew).After(order.FinishedAt) {
			return true, err
		}
	}
	return false, err
}

// whole reports whether no order of a direction was deleted that was accepted after a time.
func (r retention) whole(d ramp.Direction, since time.Time) bool {
	oldest, known := r[d]
	return r == nil || known && oldest.Before(since)
}

// endedDeleted reports whether the transaction of a time may have ended an order that was deleted since.
func (o *Orders) endedDeleted(ctx context.Context, d ramp.Direction, at time.Time) (bool, error) {
	if at.After(o.config.Now().Add(-evidence.MinDeletedAge)) {
		return false, nil
	}
	retained, err := o.retention(ctx)
	return !retained.whole(d, at.Add(-maxDelay)), err
}
