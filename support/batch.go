package support

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/invalid"
	"github.com/token-ramp/ramp-go/internal/orderlist"
)

// batchOf returns the orders besides one that have ended by a transaction: the one that stores it, and then
// those that were added. whole is false if one of these cannot be read, so that nobody knows what it
// has left of what the transaction moved.
func (o *Orders) batchOf(
	ctx context.Context, order, stored *ramp.Order, added []uuid.UUID,
) (ended []*ramp.Order, whole bool, err error) {
	ended, whole = []*ramp.Order{stored}, true
	known := []uuid.UUID{stored.UUID, order.UUID} // this one may have been added, and not ended
	for _, id := range added {
		if slices.Contains(known, id) {
			continue
		}
		known = append(known, id)
		one, err := o.order(ctx, id)
		switch {
		case errors.Is(err, ramp.ErrOrderUnknown), errors.Is(err, ramp.ErrOrderForeign):
			whole = false
		case err != nil:
			return nil, false, err
		case one.State == ramp.OrderSucceeded && one.TxHash != "" &&
			!strings.EqualFold(one.TxHash, stored.TxHash):
			// its own result came before it was ended with this one
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
	claimed, err := o.claimed(ctx, transaction)
	if err != nil {
		return err
	}
	ended, whole, err := o.batchOf(ctx, order, stored, slices.Concat(added, claimed))
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
	if err := o.joinClaim(ctx, order.UUID, stored.UUID, transaction, claimed); err != nil {
		return err
	}
	return o.config.Books.KeepBatch(ctx, transaction, added, order.UUID, d.Who, d.Reason)
}

// claimed returns the orders that have claimed a transaction, if the store has claims.
func (o *Orders) claimed(ctx context.Context, transaction common.Hash) ([]uuid.UUID, error) {
	claims := orderlist.ClaimsOf(o.config.Store)
	if claims == nil {
		return nil, nil
	}
	return claims.Claimed(ctx, transaction)
}

// joinClaim adds an order to those that have claimed a transaction, if the store has claims. stored is the
// order that stores the transaction; it may have ended before the store had claims.
func (o *Orders) joinClaim(
	ctx context.Context, order, stored uuid.UUID, transaction common.Hash, claimed []uuid.UUID,
) error {
	claims := orderlist.ClaimsOf(o.config.Store)
	if claims == nil || slices.Contains(claimed, order) {
		return nil
	}
	join := []uuid.UUID{order}
	if len(claimed) == 0 {
		join = []uuid.UUID{stored, order}
	}
	for n, joins := range join {
		holder, err := claims.Claim(ctx, transaction, len(claimed)+n, joins)
		if err != nil {
			return err
		}
		if holder != joins {
			return fmt.Errorf("ramp: order %s: order %s has claimed transaction %s at the same moment: "+
				"look at the order again", order, holder, transaction)
		}
	}
	return nil
}
