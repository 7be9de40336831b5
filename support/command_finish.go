package support

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go/internal/console"
	"github.com/token-ramp/ramp-go/internal/invalid"
)

func newFinish(flags *flag.FlagSet) action {
	d := newDecision(flags)
	evidenceFlags(flags, d)
	var transaction common.Hash
	console.Hash(flags, &transaction, "tx",
		"`hash` of the transaction that the order has ended with; required for one UUID")
	flags.BoolVar(&d.Batch, "batch", false,
		"although the transaction has ended another order: it settles several, and moved enough for "+
			"all of them")
	fitting := flags.Bool("fitting", false,
		"list the orders that fit one transaction and no other; takes no UUID")
	m := newMany(flags)
	flags.BoolVar(&m.yes, "yes", false,
		"with -fitting: end these orders, each with its transaction; nothing is given back. With several\n"+
			"UUIDs: end these orders, each with the transaction that proves how it ended and fits no other")
	var from, to time.Time
	console.Period(flags, &from, &to,
		"with -fitting: orders that have waited for 13 hours since this `time`; by default 3 days ago")
	one := console.WithOrder(func(ctx context.Context, c call, id uuid.UUID) error {
		if transaction == (common.Hash{}) {
			return errors.New("-tx is required: the order ends as its transaction did")
		}
		step, err := c.On.Finish(ctx, id, transaction, *d)
		return printStep(c.Out, step, err)
	})
	all := console.Without(func(ctx context.Context, c call) error {
		if from.IsZero() {
			from = c.On.config.Now().Add(-3 * 24 * time.Hour)
		}
		return finishFitting(ctx, c, from, to, m.yes, *d)
	})
	return func(ctx context.Context, c call) error {
		switch {
		case *fitting:
			return all(ctx, c)
		case m.wanted(c) && transaction != (common.Hash{}):
			return errors.New("-tx is for one UUID: each of several orders has a transaction of its own")
		case m.wanted(c):
			return m.run(ctx, c, d, c.On.finishing(d))
		default:
			return one(ctx, c)
		}
	}
}

// finishFitting lists the orders that the books mark as fitting, and ends them.
func finishFitting(ctx context.Context, c call, from, to time.Time, yes bool, d Decision) error {
	if yes {
		if _, err := d.text(); err != nil {
			return err
		}
	}
	if c.On.config.Books == nil {
		return invalid.Field("Config.Books", "is required with -fitting")
	}
	books, err := c.On.config.Books.Reconcile(ctx, from, to)
	if err != nil {
		return err
	}
	for _, f := range books.Findings {
		if !f.Fitting {
			continue
		}
		order, err := c.On.order(ctx, f.Orders[0].UUID)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.Out, "%s\ttokens: %s (%s)\t%s\n", console.OrderRow(&order),
			f.Orders[0].Tokens, console.Quote(f.Orders[0].Product), f.Events[0].TxHash)
	}
	if !yes {
		_, err := fmt.Fprintf(c.Out, "orders that fit: %d; end them with -yes\n", books.Fitting)
		return err
	}
	steps, failed := c.On.FinishFitting(ctx, books, d) // goes on after an error, which names its order
	for _, step := range steps {
		if err := printStep(c.Out, step, nil); err != nil {
			return errors.Join(err, failed)
		}
	}
	_, err = fmt.Fprintf(c.Out, "orders that fit: %d, of which were ended: %d\n", books.Fitting, len(steps))
	return errors.Join(err, failed)
}
