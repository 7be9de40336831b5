package rampbooks

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/orderlist"
)

// describe says what the orders of decisions are about.
func (c *comparison) describe(ctx context.Context, decisions []DecisionRow) error {
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
