package rampbooks

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/catalog"
	"github.com/token-ramp/ramp-go/internal/orderlist"
)

// matchUnclaimed judges the events without an order by their transaction, and keeps those that fit
// an order.
func (c *comparison) matchUnclaimed(ctx context.Context) error {
	for _, transaction := range c.byTransaction.unclaimed {
		stored, err := c.config.Store.OrderByTransaction(ctx, transaction[0].TxHash)
		switch {
		case err == nil && c.scope.Check(&stored) == nil && stored.State != ramp.OrderSucceeded &&
			stored.FinishedAt.Before(transaction[0].Time.Add(-maxDelay)):
			// the order was forgotten before its transaction came
			c.byTransaction.pair(c.catalog.Order(stored), transaction)
		case err == nil && c.known[transaction[0].TxHash] && stored.FinishedAt.Before(c.from):
			c.byTransaction.pair(c.catalog.Order(stored), transaction) // which an order has lost that waits
		case err == nil && c.scope.Check(&stored) == nil && stored.State == ramp.OrderSucceeded:
			// its own part is judged with it, now or later
			if own, rest := takeOf(c.catalog.Order(stored), transaction); own != nil {
				events, err := c.candidatesOf(ctx, rest)
				if err != nil {
					return err
				}
				c.byAmount.add(events, candidate{ChainEvent: *own, orders: []ramp.Order{stored}})
			}
		case err == nil: // of another project, or judged with the order
		case !errors.Is(err, ramp.ErrOrderUnknown):
			return err
		default:
			elsewhere, err := c.isElsewhere(ctx, transaction)
			if err == nil && !elsewhere {
				err = c.addCandidates(ctx, transaction)
			}
			if err != nil {
				return err
			}
		}
	}
	c.byTransaction.unclaimed = nil
	return nil
}

// isElsewhere reports whether an order that the store does not have has claimed a transaction. The orders
// here that wait and that it fits learn of it. What the journal says comes first.
func (c *comparison) isElsewhere(ctx context.Context, transaction []ChainEvent) (bool, error) {
	claims, hash := orderlist.ClaimsOf(c.config.Store), transaction[0].TxHash
	if claims == nil {
		return false, nil
	}
	if kept, err := c.keptOrders(ctx, hash); err != nil || len(kept) > 0 {
		return false, err
	}
	claimed, err := claims.Claimed(ctx, hash)
	if err != nil || len(claimed) == 0 {
		return false, err
	}
	if _, err := c.config.Store.Order(ctx, claimed[0]); !errors.Is(err, ramp.ErrOrderUnknown) {
		if errors.Is(err, ramp.ErrOrderForeign) {
			err = nil
		}
		return false, err // it is judged with this order
	}
	for _, e := range transaction {
		one, err := c.candidateOf(ctx, e)
		if err != nil {
			return false, err
		}
		for _, o := range one.orders {
			if o.State == ramp.OrderAccepted {
				c.byAmount.elsewhere[o.UUID] = claim{hash, claimed[0]}
			}
		}
	}
	if c.counts(transaction[0].Time) {
		c.findings.elsewhere++
	}
	return true, nil
}

// addRest adds the candidates of what a transaction has moved for other orders than the one that it ended,
// whose own event is given, and reports true, if each of these events fits an order, or is a fee.
func (c *comparison) addRest(
	ctx context.Context, o *catalog.Order, own *ChainEvent, rest []ChainEvent,
) (bool, error) {
	events, err := c.candidatesOf(ctx, rest)
	if err != nil {
		return false, err
	}
	beside := candidate{ChainEvent: *own, orders: []ramp.Order{o.Order}}
	if len(c.byAmount.orphans(append(slices.Clone(events), beside))) > 0 {
		return false, nil
	}
	c.byAmount.add(events, beside)
	return true, nil
}

// splitByJournal splits what a transaction moved at once for several orders, if the journal says which ones
// these are: each has its share.
func (c *comparison) splitByJournal(ctx context.Context, transaction []ChainEvent) error {
	hash := transaction[0].TxHash
	kept, err := c.keptOrders(ctx, hash)
	if err != nil || len(kept) == 0 {
		return err
	}
	stored, err := c.config.Store.OrderByTransaction(ctx, hash)
	switch {
	case err == nil:
		isStored := func(o ramp.Order) bool { return o.UUID == stored.UUID }
		kept = append(slices.DeleteFunc(kept, isStored), stored)
	case !errors.Is(err, ramp.ErrOrderUnknown):
		return err
	}
	orders := make([]*catalog.Order, len(kept))
	for i, o := range kept {
		orders[i] = c.catalog.Order(o)
	}
	for i := range transaction {
		transaction[i].splitFor(orders)
	}
	return nil
}

// keptOrders returns the orders that belong to a transaction as the journal says, without those that another
// one has ended since: a person was about to end them with this one, and their own result came.
func (c *comparison) keptOrders(ctx context.Context, hash common.Hash) (orders []ramp.Order, err error) {
	for _, id := range c.findings.journal.ordersOf[hash] {
		order, err := c.config.Store.Order(ctx, id)
		switch {
		case err == nil && !c.byAmount.hasEnded(&order):
			orders = append(orders, order)
		case err != nil && !errors.Is(err, ramp.ErrOrderUnknown): // it was deleted
			return nil, err
		}
	}
	return orders, nil
}

// addCandidates looks up the orders that the events of a transaction may belong to, and judges
// the events without any.
func (c *comparison) addCandidates(ctx context.Context, transaction []ChainEvent) error {
	events, err := c.candidatesOf(ctx, transaction)
	if err == nil {
		c.byAmount.add(events)
	}
	return err
}

// candidatesOf returns the events of a transaction, each with the orders that it may belong to. If the
// journal says which orders are those of the transaction, each of them has the event that fits it, to which
// no other order belongs: also if its player is erased, when no address tells. Such an order has one that
// fits no other, if there is one.
func (c *comparison) candidatesOf(
	ctx context.Context, transaction []ChainEvent,
) (events []candidate, err error) {
	if len(transaction) == 0 {
		return nil, nil
	}
	kept, err := c.keptOrders(ctx, transaction[0].TxHash)
	if err != nil {
		return nil, err
	}
	take := func(o *ramp.Order, from *[]ChainEvent) bool {
		own, rest := takeOf(c.catalog.Order(*o), *from)
		if *from = rest; own != nil {
			events = append(events, candidate{ChainEvent: *own, orders: []ramp.Order{*o}})
		}
		return own != nil
	}
	rest := transaction
	var erased []ramp.Order
	for _, o := range kept {
		if !common.IsHexAddress(o.UserAddress) {
			erased = append(erased, o)
			continue
		}
		take(&o, &rest)
	}
	if len(erased) > 0 {
		var free, fitting []ChainEvent
		for _, e := range rest {
			one, err := c.candidateOf(ctx, e)
			if err != nil {
				return nil, err
			}
			if len(one.orders) == 0 {
				free = append(free, e)
			} else {
				fitting = append(fitting, e)
			}
		}
		for _, o := range erased {
			_ = take(&o, &free) || take(&o, &fitting)
		}
		rest = slices.Concat(fitting, free)
	}
	for _, e := range rest {
		one, err := c.candidateOf(ctx, e)
		if err != nil {
			return nil, err
		}
		events = append(events, one)
	}
	return events, nil
}

// candidateOf returns an event and the orders that it may belong to. If some were accepted
// in the day before the event, the older ones are left out.
func (c *comparison) candidateOf(ctx context.Context, e ChainEvent) (candidate, error) {
	const near = 24 * time.Hour
	if c.user != e.User { // dust is often of one user
		orders, err := c.scope.All(orderlist.Of(ctx, c.config.Store.UserOrders, e.User.Hex()))
		if err != nil {
			return candidate{}, err
		}
		c.user = e.User
		c.orders = slices.DeleteFunc(orders,
			func(o ramp.Order) bool { // what belongs to another transaction for long
				return o.State == ramp.OrderSucceeded && o.TxHash != "" && o.FinishedAt.Before(c.from)
			})
	}
	found := candidate{ChainEvent: e}
	for _, o := range c.orders { // newest first
		if c.findings.journal.belongsElsewhere(o.UUID, e.TxHash) {
			continue
		}
		if len(found.orders) > 0 && o.AcceptedAt.Before(e.Time.Add(-near)) {
			break
		}
		may, late := c.byAmount.belongs(&e, &o)
		switch {
		case may:
			found.orders = append(found.orders, o)
		case o.AcceptedAt.After(e.Time.Add(skew)) && c.byAmount.mayFit(&e, &o):
			found.ahead = append(found.ahead, o)
		}
		found.late = found.late || late
	}
	return found, nil
}
