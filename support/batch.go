package support

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/invalid"
)

// batchOf returns the orders besides one that have ended by a transaction: the one that stores it, and then
// those that Books have added. whole is false if one of these cannot be read, so that nobody knows what it
// has left of what the transaction moved.
func (o *Orders) batchOf(
	ctx context.Context, order, stored *ramp.Order, added []uuid.UUID,
) (ended []*ramp.Order, whole bool, err error) {
	ended, whole = []*ramp.Order{stored}, true
	for _, id := range added {
		if id == order.UUID { // it was added, and did not end
			continue
		}
		one, err := o.order(ctx, id)
		switch {
		case errors.Is(err, ramp.ErrOrderUnknown), errors.Is(err, ramp.ErrOrderForeign):
			whole = false
		case err != nil:
			return nil, false, err
		default:
			ended = append(ended, &one)
		}
	}
	return ended, whole, nil
}

// joinBatch lets an order end by a transaction that has ended other orders, if what it moved covers all of
// them.
func (o *Orders) joinBatch(ctx context.Context, order *ramp.Order, result *ramp.Result, d Decision) error {
	if order.State != ramp.OrderAccepted {
		return nil
	}
	if o.config.Books == nil {
		return invalid.Field("Config.Books", "is required with Decision.Batch")
	}
	transaction := common.HexToHash(result.TxHash)
	stored, err := o.endedOther(ctx, order.UUID, transaction)
	if err != nil {
		return err
	}
	if stored == nil || stored.State != result.Outcome() {
		return fmt.Errorf("ramp: order %s: transaction %s has ended no other order with this outcome: "+
			"finish the order without Batch", order.UUID, transaction)
	}
	added, err := o.config.Books.BatchOf(ctx, transaction)
	if err != nil {
		return err
	}
	ended, whole, err := o.batchOf(ctx, order, stored, added)
	if err != nil {
		return err
	}
	if !whole {
		return fmt.Errorf("ramp: order %s: another order that has ended by transaction %s cannot be read, "+
			"so nobody knows whether it covers this one: look at it, and settle this one in another way",
			order.UUID, transaction)
	}
	if err := o.prover.Covers(order, ended, &result.Receipt); err != nil {
		return err
	}
	return o.config.Books.KeepBatch(ctx, transaction, added, order.UUID, d.Who, d.Reason)
}
