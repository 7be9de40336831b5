package support

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/orderlist"
)

// Find returns the orders that a text leads to, newest first: the UUID of an order, the hash of its
// transaction, the address of a wallet, the ID of a session, or the name of a player if Config.Sessions
// is set. It is what a player, or whoever helps one, has at hand. If no order is found, the error wraps
// [ramp.ErrOrderUnknown]. The store must be a [rampbooks.OrderLister].
func (o *Orders) Find(ctx context.Context, text string) ([]ramp.Order, error) {
	store, err := o.lister()
	if err != nil {
		return nil, err
	}
	text = strings.TrimSpace(text)
	one := func(order ramp.Order, err error) ([]ramp.Order, error) {
		if err == nil {
			err = o.scope.Check(&order)
		}
		if err != nil {
			return nil, err
		}
		return []ramp.Order{order}, nil
	}
	if id, err := uuid.Parse(text); err == nil {
		return one(store.Order(ctx, id))
	}
	var hash common.Hash
	if hash.UnmarshalText([]byte(text)) == nil {
		return one(store.OrderByTransaction(ctx, hash))
	}
	if common.IsHexAddress(text) {
		orders, err := o.scope.All(orderlist.Of(ctx, store.UserOrders, text))
		return orders, unknownUnless(orders, err)
	}
	sessions := []string{text}
	if o.config.Sessions != nil {
		more, err := o.config.Sessions(ctx, text)
		if err != nil {
			return nil, err
		}
		sessions = append(sessions, more...)
	}
	var orders []ramp.Order
	for _, session := range sessions {
		more, err := o.scope.All(orderlist.Of(ctx, store.SessionOrders, session))
		if err != nil {
			return nil, err
		}
		orders = append(orders, more...)
	}
	slices.SortStableFunc(orders, func(a, b ramp.Order) int { return b.AcceptedAt.Compare(a.AcceptedAt) })
	return orders, unknownUnless(orders, nil)
}

// unknownUnless returns err, or an error if there are no orders.
func unknownUnless(orders []ramp.Order, err error) error {
	if err == nil && len(orders) == 0 {
		err = fmt.Errorf(
			"ramp: find: it is no UUID, transaction, wallet, session or player with an order: %w",
			ramp.ErrOrderUnknown)
	}
	return err
}
