package rampbooks

import (
	"cmp"
	"context"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence"
	"github.com/token-ramp/ramp-go/internal/orderlist"
)

// maxTaken is how many transactions are read for one order that waits.
const maxTaken = 10

// findTaken looks for the orders that have ended by an event which fits an order that waits without one: the
// event may be its own, and the other one ended wrongly.
func (c *comparison) findTaken(ctx context.Context, waiting []ramp.Order) error {
	hasEvent := map[uuid.UUID]bool{}
	for _, e := range c.byAmount.candidates {
		for _, o := range e.orders {
			hasEvent[o.UUID] = true
		}
	}
	for _, o := range waiting {
		if hasEvent[o.UUID] || c.displaced[o.UUID] || !common.IsHexAddress(o.UserAddress) {
			continue
		}
		others, err := c.equalOrders(ctx, &o)
		if err != nil {
			return err
		}
		receipts, calls := make([]ramp.Receipt, len(others)), make([]ramp.BatchCall, len(others))
		for i, other := range others {
			calls[i] = evidence.Call(&receipts[i], "eth_getTransactionReceipt", other.TxHash)
		}
		if len(calls) == 0 {
			continue
		}
		if calls, err = evidence.Ask(ctx, c.Reconciler.chain, calls...); err != nil {
			return err
		}
		for i := range others {
			if calls[i].Err != nil {
				continue
			}
			transactions, err := c.reader.transactions(ctx, receipts[i].Logs)
			if err != nil {
				return err
			}
			fits := func(e ChainEvent) bool { may, _ := c.byAmount.belongs(&e, &o); return may }
			if slices.ContainsFunc(transactions, func(events []ChainEvent) bool {
				return slices.ContainsFunc(events, fits)
			}) {
				c.byAmount.taken[o.UUID] = others[i]
				break
			}
		}
	}
	return nil
}

// equalOrders returns orders of as many of the same token for the user of an order that have ended by a
// transaction since it was accepted, first those of other sessions, and then the oldest.
func (c *comparison) equalOrders(ctx context.Context, o *ramp.Order) ([]ramp.Order, error) {
	this := c.catalog.Order(*o)
	if this.Units == nil {
		return nil, nil
	}
	all, err := c.scope.All(orderlist.Of(ctx, c.config.Store.UserOrders, o.UserAddress))
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(other ramp.Order) bool {
		if other.UUID == o.UUID || other.State != ramp.OrderSucceeded || other.TxHash == "" ||
			other.Direction != o.Direction || other.FinishedAt.Before(o.AcceptedAt.Add(-skew)) {
			return true
		}
		that := c.catalog.Order(other)
		return that.Token != this.Token || that.Units == nil || that.Units.Cmp(this.Units) != 0
	})
	slices.SortFunc(all, func(a, b ramp.Order) int { return a.FinishedAt.Compare(b.FinishedAt) })
	slices.SortStableFunc(all, func(a, b ramp.Order) int {
		own := func(other *ramp.Order) int {
			if other.SessionID == o.SessionID {
				return 1
			}
			return 0
		}
		return cmp.Compare(own(&a), own(&b))
	})
	return all[:min(len(all), maxTaken)], nil
}
