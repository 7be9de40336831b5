package support

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go/internal/orderlist"
)

// Show returns an order and the transactions that may be its own, best first. It changes
// nothing. If there is no such order, the error wraps [ramp.ErrOrderUnknown]. If the
// chain cannot be read, Show returns the order together with the error.
func (o *Orders) Show(ctx context.Context, id uuid.UUID) (*Report, error) {
	order, err := o.order(ctx, id)
	if err != nil {
		return nil, err
	}
	refused, err := orderlist.Refusals(ctx, o.config.Store, order)
	if err != nil {
		return nil, err
	}
	report := &Report{Order: order, OneDatabase: orderlist.ClaimsOf(o.config.Store) == nil}
	if why, ok := refused[id]; ok {
		report.Refusal = &why
	}
	if o.chain == nil {
		report.Unread = "no node is configured"
	} else if err = o.search(ctx, report); err != nil {
		report = &Report{Order: order, Refusal: report.Refusal, OneDatabase: report.OneDatabase,
			Unread: err.Error()}
		err = fmt.Errorf("ramp: order %s: read the chain: %w", id, err)
	}
	report.Advice = Advise(report, o.config.Now())
	return report, err
}
