package rampbooks

import (
	"context"
	"iter"

	"github.com/token-ramp/ramp-go"
)

// countWaiting counts the orders that had waited too long at the end of the period, and wait still.
func (c *comparison) countWaiting(ctx context.Context, books *Reconciliation) (err error) {
	for d, count := range map[ramp.Direction]*int{ramp.Mint: &books.WaitingMints,
		ramp.Burn: &books.WaitingBurns} {
		if *count, _, err = c.config.Store.CountWaiting(ctx, d, c.to.Add(-maxDelay)); err != nil {
			return err
		}
	}
	return nil
}

// addInFlight adds the mints that had not ended at the end of the period: those that wait still,
// and those that ended since.
func (c *comparison) addInFlight(ctx context.Context) error {
	now := c.config.Now()
	waiting := c.scope.Pages(func(page ramp.OrderPage) ([]ramp.Order, error) {
		return c.config.Store.Waiting(ctx, ramp.Mint, c.to, page)
	})
	ended := c.scope.Pages(func(page ramp.OrderPage) ([]ramp.Order, error) {
		return c.config.Store.Ended(ctx, c.to, now, page)
	})
	for _, all := range []iter.Seq2[[]ramp.Order, error]{waiting, ended} {
		for orders, err := range all {
			if err != nil {
				return err
			}
			for i := range orders {
				c.totals.inFlight(&orders[i])
			}
		}
	}
	return nil
}
