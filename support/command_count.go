package support

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/console"
	"github.com/token-ramp/ramp-go/internal/orderlist"
)

func newCount(*flag.FlagSet) action { return console.Without(count) }

func count(ctx context.Context, c call) error {
	store, err := c.On.lister()
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "WAITING LONGER THAN\tMINTS\tBURNS")
	now := c.On.config.Now()
	for _, age := range []time.Duration{0, 5 * time.Minute, time.Hour, maxDelay, 7 * 24 * time.Hour} {
		mints, _, err := store.CountWaiting(ctx, ramp.Mint, now.Add(-age))
		burns, _, failed := store.CountWaiting(ctx, ramp.Burn, now.Add(-age))
		if err = cmp.Or(err, failed); err != nil {
			return err
		}
		fmt.Fprintf(table, "%s\t%d\t%d\n", age, mints, burns)
	}
	if store, ok := c.On.config.Store.(orderlist.RefusalStore); ok {
		mints, _, err := store.CountRefused(ctx, ramp.Mint)
		burns, _, failed := store.CountRefused(ctx, ramp.Burn)
		if err = cmp.Or(err, failed); err != nil {
			return err
		}
		fmt.Fprintf(table, "and were refused\t%d\t%d\n", mints, burns)
	}
	return table.Flush()
}
