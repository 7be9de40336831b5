package support

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"io"

	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go/internal/console"
	"github.com/token-ramp/ramp-go/internal/orderlist"
)

func newFind(flags *flag.FlagSet) action {
	asJSON := flags.Bool("json", false, "print JSON")
	what := "a UUID, a transaction, a wallet, a session or a player"
	return console.With(what, func(ctx context.Context, c call, text string) error {
		orders, err := c.On.Find(ctx, text)
		if err != nil {
			return err
		}
		if *asJSON {
			return printOrders(c.Out, orders)
		}
		refused, err := orderlist.Refusals(ctx, c.On.config.Store, orders...)
		if err != nil {
			return err
		}
		_, err = io.WriteString(c.Out, ordersTable(orders, refused))
		return err
	})
}

func newShow(flags *flag.FlagSet) action {
	asJSON := flags.Bool("json", false, "print JSON")
	return console.WithOrder(func(ctx context.Context, c call, id uuid.UUID) error {
		report, err := c.On.Show(ctx, id)
		switch {
		case report == nil:
			return err
		case *asJSON:
			return cmp.Or(err, json.NewEncoder(c.Out).Encode(report))
		default:
			_, failed := io.WriteString(c.Out, report.Text())
			return cmp.Or(err, failed)
		}
	})
}
