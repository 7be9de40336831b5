package support

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/orderlist"
	"github.com/token-ramp/ramp-go/internal/typed"
)

// Find returns the orders that a text leads to, newest first: the UUID of an order, the hash of its
// transaction, the address of a wallet, the ID of a session, or the name of a player if Config.Sessions
// is set. A text that can be several of these, such as a session that looks like a UUID, is looked up as
// each. It is what a player, or whoever helps one, has at hand. If no order is found, the error wraps
// [ramp.ErrOrderUnknown]. The store must be a [rampbooks.OrderLister].
func (o *Orders) Find(ctx context.Context, text string) ([]ramp.Order, error) {
	store, err := o.lister()
	if err != nil {
		return nil, err
	}
	text = strings.TrimSpace(text)
	var orders []ramp.Order
	var failed error // the first one; an order that is unknown as one thing may be known as another
	add := func(found []ramp.Order, err error) {
		for _, order := range found {
			same := func(other ramp.Order) bool { return other.UUID == order.UUID }
			if !slices.ContainsFunc(orders, same) {
				orders = append(orders, order)
			}
		}
		if !errors.Is(err, ramp.ErrOrderUnknown) {
			failed = cmp.Or(failed, err)
		}
	}
	one := func(order ramp.Order, err error) {
		if err == nil {
			err = o.scope.Check(&order)
		}
		if err != nil {
			add(nil, err)
		} else {
			add([]ramp.Order{order}, nil)
		}
	}
	if id, err := uuid.Parse(text); err == nil {
		one(store.Order(ctx, id))
	}
	var hash common.Hash
	if hash.UnmarshalText([]byte(text)) == nil {
		one(store.OrderByTransaction(ctx, hash))
	}
	if common.IsHexAddress(text) {
		add(o.scope.All(orderlist.Of(ctx, store.UserOrders, text)))
	}
	sessions := []string{text}
	if o.config.Sessions != nil {
		more, err := o.config.Sessions(ctx, text)
		add(nil, err)
		sessions = append(sessions, more...)
	}
	for _, session := range sessions {
		add(o.scope.All(orderlist.Of(ctx, store.SessionOrders, session)))
	}
	slices.SortStableFunc(orders, func(a, b ramp.Order) int { return b.AcceptedAt.Compare(a.AcceptedAt) })
	switch {
	case len(orders) > 0 && errors.Is(failed, ramp.ErrOrderForeign):
		return orders, nil
	case failed != nil:
		return nil, failed
	case len(orders) == 0:
		what := ""
		if problem := cmp.Or(typed.Problem(text), typed.Cut(text)); problem != "" {
			what = " (it " + problem + ")"
		}
		return nil, fmt.Errorf(
			"ramp: find: it is no UUID, transaction, wallet, session or player with an order%s: %w",
			what, ramp.ErrOrderUnknown)
	}
	return orders, nil
}
