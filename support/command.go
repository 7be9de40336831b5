package support

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/console"
	"github.com/token-ramp/ramp-go/internal/invalid"
	"github.com/token-ramp/ramp-go/internal/orderlist"
)

// Command is a command line for the people who decide about orders; see [NewCommand].
type Command func(ctx context.Context, o *Orders, args []string, out io.Writer) error

// NewCommand returns a command of this package for a program of yours, and adds the flags
// of the command to those of the program. Parse them, make an [Orders], and run the command
// with the arguments that are left. It prints to out. Package rampbooks has the commands for the books.
//
//	list            lists the orders that have waited for 13 hours, or those of a player, a
//	                session, a wallet or a time, and who has ended them by hand
//	count           counts the orders that wait, by their age
//	find TEXT       lists the orders of a UUID, a transaction, a wallet, a session or a player:
//	                [Orders.Find]
//	missing LOG...  lists what logs have and the store lacks: [Orders.Lost]
//	restore LOG...  stores it again, after a backup was restored: [Orders.Restore]
//	show UUID       shows an order and the transactions that may be its own: [Orders.Show]
//	finish UUID     ends an order as its transaction ended: [Orders.Finish]
//	finish -fitting lists the orders that the books mark as fitting, and with -yes ends them:
//	                [Orders.FinishFitting]
//	abandon UUID    ends an order whose result will never come: [Orders.Abandon]
//
// Ask each for its flags with -help.
func NewCommand(name string, flags *flag.FlagSet) (Command, error) {
	define, known := map[string]func(*flag.FlagSet) action{
		"list": newList, "count": newCount, "find": newFind, "missing": newMissing,
		"restore": newRestore, "show": newShow, "finish": newFinish, "abandon": newAbandon,
	}[name]
	if !known {
		return nil,
			fmt.Errorf("there is no command %q: use list, count, find, missing, restore, show, "+
				"finish or abandon", name)
	}
	run := define(flags)
	return func(ctx context.Context, o *Orders, args []string, out io.Writer) error {
		if err := o.made(); err != nil {
			return err
		}
		return run(ctx, call{On: o, Args: args, Out: out})
	}, nil
}

type (
	action = console.Action[*Orders]
	call   = console.Call[*Orders]
)

func newList(flags *flag.FlagSet) action {
	older := flags.Duration("older", maxDelay,
		"list orders that have waited longer than this `duration`; the service stops delivering "+
			"after 12 hours")
	direction := flags.String("direction", "",
		"list only waiting orders of this `direction`, mint or burn; a burn that waits has moved nothing")
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
		refused, err := orderlist.Refusals(ctx, c.On.config.Store, all...)
		if err != nil {
			return err
		}
		_, err = io.WriteString(c.Out, ordersTable(all, refused)+younger)
		return err
	})
}

func newFind(flags *flag.FlagSet) action {
	asJSON := flags.Bool("json", false, "print JSON")
	what := "a UUID, a transaction, a wallet, a session or a player"
	return console.With(what, func(ctx context.Context, c call, text string) error {
		orders, err := c.On.Find(ctx, text)
		if err != nil {
			return err
		}
		if *asJSON {
			return json.NewEncoder(c.Out).Encode(orders)
		}
		refused, err := orderlist.Refusals(ctx, c.On.config.Store, orders...)
		if err != nil {
			return err
		}
		_, err = io.WriteString(c.Out, ordersTable(orders, refused))
		return err
	})
}

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

func newMissing(*flag.FlagSet) action { return missing }

// lost returns what the logs that the arguments name have, and the store lacks.
func lost(ctx context.Context, c call) ([]Logged, error) {
	if len(c.Args) == 0 {
		return nil, errors.New("arguments are required, after the flags: the files of the logs")
	}
	var logs []io.Reader
	for _, file := range c.Args {
		log, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer log.Close()
		logs = append(logs, log)
	}
	return c.On.Lost(ctx, logs...)
}

func missing(ctx context.Context, c call) error {
	lost, err := lost(ctx, c)
	for _, l := range lost {
		what := "waits again"
		if l.Missing {
			what = "is missing"
		}
		effects := strings.Join(l.Effects, ", then ")
		fmt.Fprintf(c.Out, "%s %s; it was %s\t%s\t%s\t%s\n", l.UUID, what,
			console.Quote(string(l.State)), console.Quote(l.SessionID), console.Quote(effects),
			console.Quote(l.TxHash))
	}
	return err
}

func newRestore(flags *flag.FlagSet) action {
	d := newDecision(flags)
	evidenceFlags(flags, d)
	return func(ctx context.Context, c call) error {
		lost, unread := lost(ctx, c)
		steps, failed := c.On.Restore(ctx, lost, *d) // goes on after an error, which names its order
		for _, step := range steps {
			if err := printStep(c.Out, step, nil); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintf(c.Out, "orders that were lost: %d\n", len(lost))
		return errors.Join(unread, failed, err)
	}
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

func newFinish(flags *flag.FlagSet) action {
	d := newDecision(flags)
	evidenceFlags(flags, d)
	var transaction common.Hash
	flags.Func("tx", "`hash` of the transaction that the order has ended with; required without -fitting",
		func(text string) error { return transaction.UnmarshalText([]byte(text)) })
	flags.BoolVar(&d.Batch, "batch", false,
		"although the transaction has ended another order: it settles several, and moved enough for all of them")
	fitting := flags.Bool("fitting", false,
		"list the orders that fit one transaction and no other; takes no UUID")
	yes := flags.Bool("yes", false,
		"with -fitting: end these orders, each with its transaction; nothing is given back")
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
		return finishFitting(ctx, c, from, to, *yes, *d)
	})
	return func(ctx context.Context, c call) error {
		if *fitting {
			return all(ctx, c)
		}
		return one(ctx, c)
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

// evidenceFlags adds the flags for the two risks of giving back or granting twice.
func evidenceFlags(flags *flag.FlagSet, d *Decision) {
	flags.BoolVar(&d.AgainstEvidence, "against-evidence", false,
		"although the chain shows something else, which you have looked at; this may pay twice")
	flags.BoolVar(&d.WithoutEvidence, "without-evidence", false,
		"although the chain could not show that nothing happened; this may pay twice")
	flags.StringVar(&d.Settled, "settled", "",
		"`how` the assets were settled in another way, such as by mail: the game then moves nothing; "+
			"needs -against-evidence")
}

func newDecision(flags *flag.FlagSet) *Decision {
	d := new(Decision)
	flags.StringVar(&d.Who, "who", "", "`name` of the person who decides; required")
	flags.StringVar(&d.Reason, "reason", "", "why the result cannot arrive; required")
	return d
}

// printStep says what was moved, so that nobody moves it again by hand.
func printStep(out io.Writer, step ramp.Step, err error) error {
	if err != nil {
		return err
	}
	moved := "the game has moved: " + step.Effect.String()
	switch {
	case step.Settled():
		moved = "the game has moved nothing, because it was settled in another way: " + step.Order.Settled
	case !step.New:
		before, at := step.Order.Moved()
		moved = fmt.Sprintf("it was so before, and nothing was moved now; at %s, the game had moved: %s",
			at.Format(time.RFC3339), before)
	}
	_, err = fmt.Fprintf(out, "%s is %s; %s\n", step.Order.UUID, step.Order.State, console.Quote(moved))
	return err
}
