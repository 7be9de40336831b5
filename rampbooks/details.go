package rampbooks

import (
	"context"
	"errors"
	"iter"

	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/orderlist"
)

// describeDecisions says what the orders of decisions are about.
func (c *comparison) describeDecisions(ctx context.Context, decisions []DecisionRow) error {
	for i := range decisions {
		d := &decisions[i]
		if d.Order == uuid.Nil {
			continue
		}
		order, err := c.config.Store.Order(ctx, d.Order)
		if errors.Is(err, ramp.ErrOrderUnknown) { // it was deleted
			continue
		}
		if err != nil {
			return err
		}
		t := c.catalog.Order(order)
		d.Product, d.Token, d.Direction = t.Product(), t.Token, t.Direction
	}
	return nil
}

// addRefusals says of the orders of findings that wait why their ends were refused.
func (c *comparison) addRefusals(ctx context.Context, findings []Finding) error {
	var orders []ramp.Order
	for _, f := range findings {
		for _, found := range f.Orders {
			orders = append(orders, ramp.Order{UUID: found.UUID, State: found.State})
		}
	}
	refused, err := orderlist.Refusals(ctx, c.config.Store, orders...)
	for _, f := range findings {
		for i := range f.Orders {
			if refusal, ok := refused[f.Orders[i].UUID]; ok {
				f.Orders[i].Refusal = &refusal
			}
		}
	}
	return err
}

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
