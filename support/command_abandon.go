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
	return console.WithOrder(func(ctx context.Context, c call, id uuid.UUID) error {
		step, err := c.On.Abandon(ctx, id, *d)
		return printStep(c.Out, step, err)
	})
}
