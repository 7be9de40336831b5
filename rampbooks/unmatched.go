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

// matchUnmatched looks up what has no partner by its transaction: the orders of the user of each
// event, and the older events of the user of each order.
func (c *comparison) matchUnmatched(ctx context.Context) error {
	waiting, err := c.waitedTooLong(ctx)
	if err != nil {
		return err
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
	read := map[common.Hash]bool{}
	for _, transaction := range kept {
		read[transaction[0].TxHash] = true
	}
	isKept := func(transaction []ChainEvent) bool { return read[transaction[0].TxHash] }
	older = append(slices.DeleteFunc(older, isKept), kept...)
	isKnown := func(transaction []ChainEvent) bool { return c.known[transaction[0].TxHash] }
	older = append(slices.DeleteFunc(older, isKnown), c.older...)
	for _, transaction := range older {
		if err := c.splitByJournal(ctx, transaction); err != nil {
			return err
		}
	}
	c.byTransaction.unclaimed = append(c.byTransaction.unclaimed, older...)
	if err := c.matchUnclaimed(ctx); err != nil {
		return err
	}
	for _, transaction := range c.byTransaction.others {
		if err := c.addCandidates(ctx, transaction); err != nil {
			return err
		}
	}
	if c.displaced, err = c.settleDifferences(ctx); err != nil {
		return err
	}
	if err := c.findShared(ctx); err != nil {
		return err
	}
	if err := c.findTaken(ctx, waiting); err != nil {
		return err
	}
	c.byAmount.resolve(waiting, c.byTransaction.withoutHash, c.displaced)
	return nil
}

// waitedTooLong returns the orders whose results should have come by the end of the period. Earlier books
// have found those that waited too long before it.
func (c *comparison) waitedTooLong(ctx context.Context) (waiting []ramp.Order, err error) {
	for _, d := range []ramp.Direction{ramp.Mint, ramp.Burn} {
		orders, err := c.scope.All(func(page ramp.OrderPage) ([]ramp.Order, error) {
			if page.After.UUID == uuid.Nil {
				page.After = ramp.Order{UUID: uuid.Max, AcceptedAt: c.from.Add(-maxDelay - time.Millisecond)}
			}
			return c.config.Store.Waiting(ctx, d, c.to.Add(-maxDelay), page)
		})
		if err != nil {
			return nil, err
		}
		waiting = append(waiting, orders...)
	}
	return waiting, nil
}

// findShared reports the orders whose transaction had ended another one.
func (c *comparison) findShared(ctx context.Context) error {
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
	return nil
}

// settleDifferences judges the orders whose transaction moved something else, together
// with the orders that it fits, which it returns: they have lost it.
func (c *comparison) settleDifferences(ctx context.Context) (lost map[uuid.UUID]bool, err error) {
	lost = map[uuid.UUID]bool{}
	for _, d := range c.byTransaction.differing {
		if own, rest, ok := splitBatch(d.order, d.events); ok {
			if ok, err = c.addRest(ctx, d.order, own, rest); err != nil {
				return nil, err
			} else if ok { // it settled several orders
				continue
			}
		}
		orders := []ramp.Order{d.order.Order}
		for _, e := range d.events {
			one, err := c.candidateOf(ctx, e)
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
