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
)

// Command is a command line for the people who decide about orders; see [NewCommand].
type Command func(ctx context.Context, o *Orders, args []string, out io.Writer) error

// NewCommand returns a command of this package for a program of yours, and adds the flags
// of the command to those of the program. Parse them, make an [Orders], and run the command
// with the arguments that are left. It prints to out.
//
//	list            lists the orders that have waited for 13 hours, or those of a player, a
//	                session, a wallet or a time, and who has ended them by hand
//	count           counts the orders that wait, by their age
//	missing LOG     lists what a log has and the store lacks: [Orders.Lost]
//	show UUID       shows an order and the transactions that may be its own: [Orders.Show]
//	finish UUID     ends an order as its transaction ended: [Orders.Finish]
//	abandon UUID    ends an order whose result will never come: [Orders.Abandon]
//	reconcile       compares the books with the chain, and fails if they disagree or, without
//	                -position, if there was nothing to compare: [Orders.Reconcile]
//
// Ask each for its flags with -help.
func NewCommand(name string, flags *flag.FlagSet) (Command, error) {
	const anOrder = "the UUID of an order"
	command, known := map[string]struct {
		define func(*flag.FlagSet) action
		takes  string // what its argument is
	}{"list": {newList, ""}, "count": {newCount, ""}, "missing": {newMissing, "the file of a log"}, "show": {newShow, anOrder},
		"finish": {newFinish, anOrder}, "abandon": {newAbandon, anOrder}, "reconcile": {newReconcile, ""}}[name]
	if !known {
		return nil, fmt.Errorf("there is no command %q: use list, count, missing, show, finish, abandon or reconcile", name)
	}
	run, takes := command.define(flags), command.takes
	return func(ctx context.Context, o *Orders, args []string, out io.Writer) (err error) {
		c := call{Orders: o, argument: strings.Join(args, ""), out: out}
		switch {
		case takes == "" && len(args) > 0:
			return fmt.Errorf("unexpected argument %q", args[0])
		case takes != "" && len(args) != 1:
			return fmt.Errorf("one argument is required, after the flags: %s", takes)
		case takes == anOrder:
			if c.id, err = uuid.Parse(c.argument); err != nil {
				return fmt.Errorf("%q is not a UUID: give all its 36 characters", c.argument)
			}
		}
		return run(ctx, c)
	}, nil
}

// action is what a command does.
type action func(ctx context.Context, c call) error

// call is what a command is called with.
type call struct {
	*Orders
	argument string    // "" if it takes none
	id       uuid.UUID // of the order that the argument names, if it names one
	out      io.Writer
}

// period adds the flags -from and -to.
func period(flags *flag.FlagSet, from, to *time.Time, usage string) {
	add := func(name string, at *time.Time, usage string) {
		flags.Func(name, usage, func(text string) (err error) {
			if *at, err = time.Parse(time.DateOnly, text); err != nil {
				*at, err = time.Parse(time.RFC3339, text)
			}
			return err
		})
	}
	add("from", from, usage)
	add("to", to, "`end`, likewise, and not included; by default now")
}

func newList(flags *flag.FlagSet) action {
	older := flags.Duration("older", maxDelay, "list orders that have waited longer than this `duration`; the service stops delivering after 12 hours")
	direction := flags.String("direction", "", "list only waiting orders of this `direction`, mint or burn; a burn that waits has moved nothing")
	player := flags.String("player", "", "list all orders of a player's `name` instead")
	session := flags.String("session", "", "list all orders of a session `ID` instead")
	address := flags.String("address", "", "list all orders of a wallet's `address` instead")
	byHand := flags.Bool("by-hand", false, "list only what a person has ended; needs -from, -player, -session or -address")
	var from, to time.Time
	period(flags, &from, &to, "list the orders that ended since this `time` instead, a date or a time in RFC 3339")
	return func(ctx context.Context, c call) error {
		store, err := c.ledger()
		if err != nil {
			return err
		}
		var all []ramp.Order
		younger := ""
		read := func(list listing) {
			orders, failed := c.all(list)
			all, err = append(all, orders...), cmp.Or(err, failed)
		}
		now := c.config.Now()
		switch {
		case *player != "" && c.config.Sessions == nil:
			return invalid("Config.Sessions", "is required to list the orders of a player")
		case *player != "":
			sessions, failed := c.config.Sessions(ctx, *player)
			err = failed
			for _, id := range sessions {
				read(of(ctx, store.SessionOrders, id))
			}
		case *session != "":
			read(of(ctx, store.SessionOrders, *session))
		case *address != "":
			read(of(ctx, store.UserOrders, *address))
		case !from.IsZero() || !to.IsZero():
			if to.IsZero() {
				to = now
			}
			read(func(p ramp.OrderPage) ([]ramp.Order, error) { return store.Ended(ctx, from, to, p) })
		case *byHand:
			return errors.New("-by-hand needs -from, -player, -session or -address: nobody has ended an order that waits")
		case !slices.Contains([]string{"", "mint", "burn"}, *direction):
			return errors.New("-direction must be mint or burn")
		default:
			if *older > 0 {
				younger = fmt.Sprintf("Orders that wait, but not yet for %s, are not listed: use -older 0s.\n", *older)
			}
			for _, d := range []ramp.Direction{ramp.Mint, ramp.Burn} {
				if *direction == "" || *direction == string(d) {
					read(func(p ramp.OrderPage) ([]ramp.Order, error) { return store.Waiting(ctx, d, now.Add(-*older), p) })
				}
			}
		}
		if *byHand {
			all = slices.DeleteFunc(all, func(o ramp.Order) bool { return o.Reason == "" })
		}
		if err == nil {
			_, err = io.WriteString(c.out, Table(all)+younger)
		}
		return err
	}
}

func newCount(*flag.FlagSet) action { return count }

func count(ctx context.Context, c call) error {
	store, err := c.ledger()
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "WAITING LONGER THAN\tMINTS\tBURNS")
	now := c.config.Now()
	for _, age := range []time.Duration{0, 5 * time.Minute, time.Hour, maxDelay, 7 * 24 * time.Hour} {
		mints, _, err := store.CountWaiting(ctx, ramp.Mint, now.Add(-age))
		burns, _, failed := store.CountWaiting(ctx, ramp.Burn, now.Add(-age))
		if err = cmp.Or(err, failed); err != nil {
			return err
		}
		fmt.Fprintf(table, "%s\t%d\t%d\n", age, mints, burns)
	}
	return table.Flush()
}

func newMissing(*flag.FlagSet) action { return missing }

func missing(ctx context.Context, c call) error {
	log, err := os.Open(c.argument)
	if err != nil {
		return err
	}
	defer log.Close()
	lost, err := c.Lost(ctx, log)
	for _, l := range lost {
		what := "waits again"
		if l.Missing {
			what = "is missing"
		}
		fmt.Fprintf(c.out, "%s %s; it was %s\t%s\t%s\t%s\n", l.UUID, what, shown(string(l.State)), shown(l.SessionID), shown(strings.Join(l.Effects, ", then ")), shown(l.TxHash))
	}
	return err
}

func newShow(flags *flag.FlagSet) action {
	asJSON := flags.Bool("json", false, "print JSON")
	return func(ctx context.Context, c call) error {
		report, err := c.Show(ctx, c.id)
		switch {
		case report == nil:
			return err
		case *asJSON:
			return cmp.Or(err, json.NewEncoder(c.out).Encode(report))
		default:
			_, failed := io.WriteString(c.out, report.Text())
			return cmp.Or(err, failed)
		}
	}
}

func newFinish(flags *flag.FlagSet) action {
	d := newDecision(flags)
	var transaction common.Hash
	flags.Func("tx", "`hash` of the transaction that the order has ended with; required",
		func(text string) error { return transaction.UnmarshalText([]byte(text)) })
	return func(ctx context.Context, c call) error {
		if transaction == (common.Hash{}) {
			return errors.New("-tx is required: the order ends as its transaction did")
		}
		step, err := c.Finish(ctx, c.id, transaction, *d)
		return c.printStep(step, err)
	}
}

func newAbandon(flags *flag.FlagSet) action {
	d := newDecision(flags)
	flags.BoolVar(&d.Anyway, "anyway", false, "abandon the order although a transaction may be its own, or no node can tell")
	flags.BoolVar(&d.Early, "early", false, "abandon the order before it has waited for 13 hours, although its result may still come")
	return func(ctx context.Context, c call) error {
		step, err := c.Abandon(ctx, c.id, *d)
		return c.printStep(step, err)
	}
}

func newDecision(flags *flag.FlagSet) *Decision {
	d := new(Decision)
	flags.StringVar(&d.Who, "who", "", "`name` of the person who decides; required")
	flags.StringVar(&d.Reason, "reason", "", "why the result cannot arrive; required")
	return d
}

// printStep says what was moved, so that nobody moves it again by hand.
func (c call) printStep(step ramp.Step, err error) error {
	if err != nil {
		return err
	}
	moved := "the game has moved: " + step.Effect.String()
	if !step.New {
		moved = "it had ended so before, and nothing was moved"
	}
	_, err = fmt.Fprintf(c.out, "%s is %s; %s\n", step.Order.UUID, step.Order.State, shown(moved))
	return err
}

func newReconcile(flags *flag.FlagSet) action {
	var from, to time.Time
	period(flags, &from, &to, "`beginning`, a date or a time in RFC 3339; by default where the last books ended, or a day ago")
	file := flags.String("position", "", "`file` that says where the last books ended, and then where these did")
	format := flags.String("format", "text", "`form` of the books: text, json or totals (as CSV)")
	return func(ctx context.Context, c call) error {
		write := map[string]func(*Reconciliation) error{
			"text":   func(b *Reconciliation) error { _, err := io.WriteString(c.out, b.Text()); return err },
			"json":   func(b *Reconciliation) error { return json.NewEncoder(c.out).Encode(b) },
			"totals": func(b *Reconciliation) error { return b.WriteTotalsCSV(c.out) },
		}[*format]
		if write == nil {
			return errors.New("-format must be text, json or totals")
		}
		books, err := c.since(ctx, position(*file), from, to)
		if err != nil {
			return err
		}
		if err := write(books); err != nil {
			return err
		}
		if *file == "" && len(books.Totals)+len(books.Chain)+len(books.Findings) == 0 { // regular books have quiet nights
			return fmt.Errorf("nothing was compared: from %s to %s no order of this project and network ended, and this chain has no event of its tokens",
				books.From.Format(time.RFC3339), books.To.Format(time.RFC3339))
		}
		if err := position(*file).keep(books); err != nil {
			return err
		}
		if books.To.Before(to) {
			c.log().WarnContext(ctx, "ramp: the books end before -to: later blocks are not final yet", "end", books.To)
		}
		if n := books.found(); n > 0 {
			return fmt.Errorf("orders and chain disagree; findings: %d", n)
		}
		return nil
	}
}
