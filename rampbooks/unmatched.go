package rampbooks

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/orderlist"
)

// matchRest looks up what has no partner by its transaction: the orders of the user of each
// event, and the older events of the user of each order.
func (c *comparison) matchRest(ctx context.Context) error {
	var waiting []ramp.Order
	for _, d := range []ramp.Direction{ramp.Mint, ramp.Burn} {
		list := func(page ramp.OrderPage) ([]ramp.Order, error) {
			if page.After.UUID == uuid.Nil { // what waited before the period was found then
				page.After = ramp.Order{UUID: uuid.Max, AcceptedAt: c.from.Add(-maxDelay - time.Millisecond)}
			}
			return c.config.Store.Waiting(ctx, d, c.to.Add(-maxDelay), page)
		}
		orders, err := c.scope.All(list)
		if err != nil {
			return err
		}
		waiting = append(waiting, orders...)
	}
	ended := slices.Concat(c.byTransaction.withoutHash, c.byTransaction.lateFailures)
	older, err := c.olderOf(ctx, ended)
	if err != nil {
		return err
	}
	kept, err := c.keptOlder(ctx, ended)
	if err != nil {
		return err
	}
	older = append(older, kept...)
	isKnown := func(transaction []ChainEvent) bool { return c.known[transaction[0].TxHash] }
	c.byTransaction.unclaimed = append(append(c.byTransaction.unclaimed, slices.DeleteFunc(older, isKnown)...), c.older...)
	if err := c.lookUp(ctx); err != nil {
		return err
	}
	for _, transaction := range c.byTransaction.others {
		if err := c.candidates(ctx, transaction); err != nil {
			return err
		}
	}
	if c.displaced, err = c.settleDifferences(ctx); err != nil {
		return err
	}
	for _, o := range c.byTransaction.shared {
		orders := []ramp.Order{o}
		hash := common.HexToHash(o.TxHash)
		other, err := orderlist.EndedOther(ctx, c.config.Store.OrderByTransaction, o.UUID, hash)
		if err != nil {
			return err
		}
		if other != nil {
			orders = append(orders, *other)
		}
		c.findings.add(SharedTransaction, ByTransaction, "its transaction has ended another order, too",
			nil, orders...)
	}
	c.byAmount.resolve(waiting, c.byTransaction.withoutHash, c.displaced)
	return nil
}

// settleDifferences judges the orders whose transaction moved something else, together
// with the orders that it fits, which it returns: they have lost it.
func (c *comparison) settleDifferences(ctx context.Context) (lost map[uuid.UUID]bool, err error) {
	lost = map[uuid.UUID]bool{}
	for _, d := range c.byTransaction.differing {
		orders := []ramp.Order{d.order.Order}
		for _, e := range d.events {
			one, err := c.candidate(ctx, e)
			if err != nil {
				return nil, err
			}
			for _, o := range one.orders {
				if o.UUID != d.order.UUID {
					orders, lost[o.UUID] = append(orders, o), true
					d.detail += fmt.Sprintf("; it fits order %s, which is %s", o.UUID, o.State)
					d.judged = d.judged || c.waitedNow(&o)
				}
			}
		}
		if d.judged {
			c.findings.add(Differs, ByTransaction, d.detail, d.events, orders...)
		}
	}
	return lost, nil
}
