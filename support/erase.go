package support

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/invalid"
	"github.com/token-ramp/ramp-go/internal/orderlist"
)

// eraser is a store that makes orders anonymous, such as rampsql.Store.
type eraser interface {
	EraseSession(ctx context.Context, sessionID string, before time.Time) (int, error)
}

// EraseSession makes those orders of a session anonymous that ended before a time, as EraseSession of the
// store does, and returns how many. Before that, it has [Config].Books keep which transaction on the chain
// belongs to each order that has not succeeded by a transaction that it stores, such as to an abandoned
// mint that was minted after all: the books find that one only by the user's address, and erasing removes
// the address. Who and why are stored with it, and must not name the player.
//
// If [Config].Books is missing and there is such an order, EraseSession fails. With
// [Decision].WithoutEvidence it keeps none. Later books may then find events that nobody ordered.
func (o *Orders) EraseSession(
	ctx context.Context, sessionID string, before time.Time, d Decision,
) (erased int, err error) {
	if err := o.made(); err != nil {
		return 0, err
	}
	if _, err := d.text(); err != nil {
		return 0, err
	}
	lister, err := o.lister()
	if err != nil {
		return 0, err
	}
	store, ok := o.config.Store.(eraser)
	if !ok {
		return 0, invalid.Field("Config.Store", "must have the method EraseSession")
	}
	orders, err := o.scope.All(orderlist.Of(ctx, lister.SessionOrders, strings.TrimSpace(sessionID)))
	if err != nil {
		return 0, err
	}
	orders = slices.DeleteFunc(orders, func(order ramp.Order) bool {
		return order.State == ramp.OrderAccepted || !order.FinishedAt.Before(before) ||
			order.TxHash != "" && order.State == ramp.OrderSucceeded ||
			!common.IsHexAddress(order.UserAddress)
	})
	switch {
	case len(orders) == 0:
	case o.config.Books != nil:
		if err := o.config.Books.KeepMatches(ctx, orders, d.Who, d.Reason); err != nil {
			return 0, fmt.Errorf("ramp: erase a session: %w", err)
		}
	case !d.WithoutEvidence:
		return 0, fmt.Errorf("ramp: erase a session: %w: without them, nobody can tell whether a "+
			"transaction on the chain belongs to order %s, and later books may find events that nobody "+
			"ordered; if you read no books, erase without evidence",
			invalid.Field("Config.Books", "are missing"), orders[0].UUID)
	}
	erased, err = store.EraseSession(ctx, sessionID, before)
	if err == nil {
		o.log().WarnContext(ctx, "ramp: session erased", "who", strings.TrimSpace(d.Who),
			"reason", strings.TrimSpace(d.Reason), "orders", erased)
	}
	return erased, err
}
