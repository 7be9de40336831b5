package support

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/console"
	"github.com/token-ramp/ramp-go/internal/invalid"
	"github.com/token-ramp/ramp-go/internal/orderlist"
)

func newList(flags *flag.FlagSet) action {
	older := flags.Duration("older", maxDelay,
		"list orders that have waited longer than this `duration`; the service stops delivering "+
			"after 12 hours")
	direction := flags.String("direction", "",
		"list only waiting orders of this `direction`, mint or burn; a burn that waits has moved nothing")
	asJSON := flags.Bool("json", false, "print JSON")
	player := flags.String("player", "", "list all orders of a player's `name` instead")
	session := flags.String("session", "", "list all orders of a session `ID` instead")
	address := flags.String("address", "", "list all orders of a wallet's `address` instead")
	byHand := flags.Bool("by-hand", false,
		"list only what a person has ended; needs -from, -player, -session or -address")
	var from, to time.Time
	console.Period(flags, &from, &to,
		"list the orders that ended since this `time` instead, a date or a time in RFC 3339")
	return console.Without(func(ctx context.Context, c call) error {
		store, err := c.On.lister()
		if err != nil {
			return err
		}
		var all []ramp.Order
		younger := ""
		read := func(list orderlist.List) {
			orders, failed := c.On.scope.All(list)
			all, err = append(all, orders...), cmp.Or(err, failed)
		}
		now := c.On.config.Now()
		switch {
		case *player != "" && c.On.config.Sessions == nil:
			return invalid.Field("Config.Sessions", "is required to list the orders of a player")
		case *player != "":
			sessions, failed := c.On.config.Sessions(ctx, *player)
			err = failed
			if err == nil && len(sessions) == 0 {
				err = fmt.Errorf("there is no player %q with a session", *player)
			}
			for _, id := range sessions {
				read(orderlist.Of(ctx, store.SessionOrders, id))
			}
		case *session != "":
			read(orderlist.Of(ctx, store.SessionOrders, *session))
		case *address != "":
			read(orderlist.Of(ctx, store.UserOrders, *address))
		case !from.IsZero() || !to.IsZero():
			if to.IsZero() {
				to = now
			}
			read(func(p ramp.OrderPage) ([]ramp.Order, error) { return store.Ended(ctx, from, to, p) })
		case *byHand:
			return errors.New(
				"-by-hand needs -from, -player, -session or -address: nobody has ended an order that waits")
		case !slices.Contains([]string{"", "mint", "burn"}, *direction):
			return errors.New("-direction must be mint or burn")
		default:
			if *older > 0 {
				younger = fmt.Sprintf(
					"Orders that wait, but not yet for %s, are not listed: use -older 0s.\n", *older)
			}
			for _, d := range []ramp.Direction{ramp.Mint, ramp.Burn} {
				if *direction == "" || *direction == string(d) {
					read(func(p ramp.OrderPage) ([]ramp.Order, error) {
						return store.Waiting(ctx, d,
							now.Add(-*older), p)
					})
				}
			}
		}
		if *byHand {
			all = slices.DeleteFunc(all, func(o ramp.Order) bool { return o.Reason == "" })
		}
		if err != nil {
			return err
		}
		if *asJSON {
			return printOrders(c.Out, all)
		}
		refused, err := orderlist.Refusals(ctx, c.On.config.Store, all...)
		if err != nil {
			return err
		}
		_, err = io.WriteString(c.Out, ordersTable(all, refused)+younger)
		return err
	})
}
