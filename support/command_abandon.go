package support

import (
	"context"
	"flag"

	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go/internal/console"
)

func newAbandon(flags *flag.FlagSet) action {
	d := newDecision(flags)
	evidenceFlags(flags, d)
	flags.BoolVar(&d.Early, "early", false,
		"abandon the order before it has waited for 13 hours, although its result may still come")
	m := newMany(flags)
	flags.BoolVar(&m.yes, "yes", false, "with several UUIDs: abandon these orders, each if it may be; "+
		"otherwise the command only shows what it would do")
	one := console.WithOrder(func(ctx context.Context, c call, id uuid.UUID) error {
		step, err := c.On.Abandon(ctx, id, *d)
		return printStep(c.Out, step, err)
	})
	return func(ctx context.Context, c call) error {
		if m.wanted(c) {
			return m.run(ctx, c, d, c.On.abandoning(d))
		}
		return one(ctx, c)
	}
}
