package support

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/console"
	"github.com/token-ramp/ramp-go/internal/typed"
)

// many are the flags of a command that can end many orders with one decision.
type many struct {
	file string
	yes  bool
}

func newMany(flags *flag.FlagSet) *many {
	m := new(many)
	flags.StringVar(&m.file, "file", "",
		"end the orders of this `file`, whose lines begin with a UUID, instead of those of the arguments")
	return m
}

// wanted reports whether a call is about more than one UUID.
func (m *many) wanted(c call) bool { return m.file != "" || len(c.Args) > 1 }

// endsOne is how one of many orders is ended.
type endsOne struct {
	// judge returns what the game would move, or why the order would not be ended.
	judge func(ctx context.Context, id uuid.UUID) (ramp.Effect, error)

	// end judges again, and ends the order.
	end func(ctx context.Context, id uuid.UUID) (ramp.Step, error)
}

// run shows what would become of each order, and with -yes ends it. It goes on after an error.
func (m *many) run(ctx context.Context, c call, d *Decision, order endsOne) error {
	if d.AgainstEvidence || d.WithoutEvidence || d.Early || d.Batch || d.Settled != "" {
		return errors.New("-against-evidence, -without-evidence, -early, -batch and -settled are " +
			"for one UUID, whose order a person has looked at")
	}
	ids, err := m.orders(c)
	if err != nil {
		return err
	}
	if m.yes {
		if _, err := d.text(); err != nil {
			return err
		}
	}
	done := 0
	var failed []error
	for _, id := range ids {
		if !m.yes {
			would, err := order.judge(ctx, id)
			text := "would be ended; the game would move: " + would.String()
			if err != nil {
				text = "would not be ended: " + err.Error()
			} else {
				done++
			}
			if _, err := fmt.Fprintf(c.Out, "%s %s\n", id, console.Quote(text)); err != nil {
				return err
			}
			continue
		}
		step, err := order.end(ctx, id)
		if err != nil {
			failed = append(failed, fmt.Errorf("order %s was not ended: %w", id, err))
			continue
		}
		if step.New {
			done++
		}
		if err := printStep(c.Out, step, nil); err != nil {
			return errors.Join(append(failed, err)...)
		}
	}
	text := "orders: %d, of which would be ended: %d; end them with -yes\n"
	if m.yes {
		text = "orders: %d, of which were ended: %d\n"
	}
	_, err = fmt.Fprintf(c.Out, text, len(ids), done)
	return errors.Join(append(failed, err)...)
}

// orders returns the UUIDs, each once.
func (m *many) orders(c call) (ids []uuid.UUID, err error) {
	add := func(text string) error {
		id, err := typed.ParseUUID(text)
		if err != nil {
			return fmt.Errorf("%+q is not a UUID: it %w", text, err)
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
		return nil
	}
	if m.file == "" {
		for _, argument := range c.Args {
			if err := add(argument); err != nil {
				return nil, err
			}
		}
		return ids, nil
	}
	if len(c.Args) > 0 {
		return nil, fmt.Errorf("unexpected argument %q: -file has the UUIDs", c.Args[0])
	}
	file, err := os.Open(m.file)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		if err := add(words[0]); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", m.file, n, err)
		}
	}
	return ids, lines.Err()
}

// waiting returns an order that waits.
func (o *Orders) waiting(ctx context.Context, id uuid.UUID) (ramp.Order, error) {
	order, err := o.order(ctx, id)
	if err == nil && order.State != ramp.OrderAccepted {
		err = fmt.Errorf("ramp: order %s: it has ended: it is %s", id, order.State)
	}
	return order, err
}

// abandoning abandons each of many orders.
func (o *Orders) abandoning(d *Decision) endsOne {
	return endsOne{
		judge: func(ctx context.Context, id uuid.UUID) (ramp.Effect, error) {
			order, err := o.waiting(ctx, id)
			if err == nil {
				err = o.checkUnused(ctx, id, *d)
			}
			if err != nil {
				return ramp.Effect{}, err
			}
			order.State = ramp.OrderAbandoned
			would, _ := order.Moved()
			return would, nil
		},
		end: func(ctx context.Context, id uuid.UUID) (ramp.Step, error) { return o.Abandon(ctx, id, *d) },
	}
}

// finishing finishes each of many orders with the transaction that proves how it ended, and fits no other.
func (o *Orders) finishing(d *Decision) endsOne {
	advised := func(ctx context.Context, id uuid.UUID) (*Report, error) {
		report, err := o.Show(ctx, id)
		if err == nil && report.Advice.Next != NextFinish {
			err = fmt.Errorf("ramp: order %s: %s", id, report.Advice.Do)
		}
		return report, err
	}
	return endsOne{
		judge: func(ctx context.Context, id uuid.UUID) (ramp.Effect, error) {
			report, err := advised(ctx, id)
			if err != nil {
				return ramp.Effect{}, err
			}
			order := report.Order
			order.State = ramp.OrderSucceeded // what failed moved no token, and is not shown
			would, _ := order.Moved()
			return would, nil
		},
		end: func(ctx context.Context, id uuid.UUID) (ramp.Step, error) {
			report, err := advised(ctx, id)
			if err != nil {
				return ramp.Step{}, err
			}
			return o.Finish(ctx, id, *report.Advice.Tx, *d)
		},
	}
}
