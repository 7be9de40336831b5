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
//	find TEXT       lists the orders of a UUID, a transaction, a wallet, a session or a player:
//	                [Orders.Find]
//	missing LOG...  lists what logs have and the store lacks: [Orders.Lost]
//	show UUID       shows an order and the transactions that may be its own: [Orders.Show]
//	finish UUID     ends an order as its transaction ended: [Orders.Finish]
//	finish -fitting lists the orders that the books mark as fitting, and with -yes ends them:
//	                [Orders.FinishFitting]
//	abandon UUID    ends an order whose result will never come: [Orders.Abandon]
//	decide UUID     stores what a person decided about a finding of the books: [Orders.Decide]
//	entries         lists what was decided
//	reconcile       compares the orders with the chain, and fails if they disagree or, without
//	                -position, if there was nothing to compare: [Orders.Reconcile]
//
// Ask each for its flags with -help.
func NewCommand(name string, flags *flag.FlagSet) (Command, error) {
	define, known := map[string]func(*flag.FlagSet) action{
		"list": newList, "count": newCount, "find": newFind, "missing": newMissing, "show": newShow,
		"finish": newFinish, "abandon": newAbandon, "reconcile": newReconcile,
		"decide": newDecide, "entries": newEntries,
	}[name]
	if !known {
		return nil,
			fmt.Errorf("there is no command %q: use list, count, find, missing, show, finish, abandon, "+
				"decide, entries or reconcile", name)
	}
	run := define(flags)
	return func(ctx context.Context, o *Orders, args []string, out io.Writer) error {
		if err := o.made(); err != nil {
			return err
		}
		return run(ctx, call{Orders: o, args: args, out: out})
	}, nil
}

// action is what a command does.
type action func(ctx context.Context, c call) error

// call is what a command is called with.
type call struct {
	*Orders
	args []string // without the flags
	out  io.Writer
}

// without returns an action that takes no argument.
func without(run action) action {
	return func(ctx context.Context, c call) error {
		if len(c.args) > 0 {
			return fmt.Errorf("unexpected argument %q", c.args[0])
		}
		return run(ctx, c)
	}
}

// with returns an action that takes one argument. what says what it is.
func with(what string, run func(ctx context.Context, c call, argument string) error) action {
	return func(ctx context.Context, c call) error {
		if len(c.args) != 1 {
			return fmt.Errorf("one argument is required, after the flags: %s", what)
		}
		return run(ctx, c, c.args[0])
	}
}

// withOrder returns an action on an order.
func withOrder(run func(ctx context.Context, c call, id uuid.UUID) error) action {
	return with("the UUID of an order", func(ctx context.Context, c call, argument string) error {
		id, err := uuid.Parse(argument)
		if err != nil {
			return fmt.Errorf("%q is not a UUID: give all its 36 characters", argument)
		}
		return run(ctx, c, id)
	})
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
	period(flags, &from, &to,
		"list the orders that ended since this `time` instead, a date or a time in RFC 3339")
	return without(func(ctx context.Context, c call) error {
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
			if err == nil && len(sessions) == 0 {
				err = fmt.Errorf("there is no player %q with a session", *player)
			}
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
		refused, err := c.refusals(ctx, all...)
		if err != nil {
			return err
		}
		_, err = io.WriteString(c.out, ordersTable(all, refused)+younger)
		return err
	})
}

func newFind(flags *flag.FlagSet) action {
	asJSON := flags.Bool("json", false, "print JSON")
	what := "a UUID, a transaction, a wallet, a session or a player"
	return with(what, func(ctx context.Context, c call, text string) error {
		orders, err := c.Find(ctx, text)
		if err != nil {
			return err
		}
		if *asJSON {
			return json.NewEncoder(c.out).Encode(orders)
		}
		refused, err := c.refusals(ctx, orders...)
		if err != nil {
			return err
		}
		_, err = io.WriteString(c.out, ordersTable(orders, refused))
		return err
	})
}

func newCount(*flag.FlagSet) action { return without(count) }

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
	if store, ok := c.config.Store.(refusalLedger); ok {
		mints, _, err := store.CountRefused(ctx, ramp.Mint)
		burns, _, failed := store.CountRefused(ctx, ramp.Burn)
		if err = cmp.Or(err, failed); err != nil {
			return err
		}
		fmt.Fprintf(table, "and were refused\t%d\t%d\n", mints, burns)
	}
	return table.Flush()
}

func newMissing(*flag.FlagSet) action {
	return func(ctx context.Context, c call) error {
		if len(c.args) == 0 {
			return errors.New("arguments are required, after the flags: the files of the logs")
		}
		return missing(ctx, c)
	}
}

func missing(ctx context.Context, c call) error {
	var logs []io.Reader
	for _, file := range c.args {
		log, err := os.Open(file)
		if err != nil {
			return err
		}
		defer log.Close()
		logs = append(logs, log)
	}
	lost, err := c.Lost(ctx, logs...)
	for _, l := range lost {
		what := "waits again"
		if l.Missing {
			what = "is missing"
		}
		effects := strings.Join(l.Effects, ", then ")
		fmt.Fprintf(c.out, "%s %s; it was %s\t%s\t%s\t%s\n", l.UUID, what,
			shown(string(l.State)), shown(l.SessionID), shown(effects), shown(l.TxHash))
	}
	return err
}

func newShow(flags *flag.FlagSet) action {
	asJSON := flags.Bool("json", false, "print JSON")
	return withOrder(func(ctx context.Context, c call, id uuid.UUID) error {
		report, err := c.Show(ctx, id)
		switch {
		case report == nil:
			return err
		case *asJSON:
			return cmp.Or(err, json.NewEncoder(c.out).Encode(report))
		default:
			_, failed := io.WriteString(c.out, report.Text())
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
	fitting := flags.Bool("fitting", false,
		"list the orders that fit one transaction and no other; takes no UUID")
	yes := flags.Bool("yes", false,
		"with -fitting: end these orders, each with its transaction; nothing is given back")
	var from, to time.Time
	period(flags, &from, &to,
		"with -fitting: orders that have waited for 13 hours since this `time`; by default 3 days ago")
	one := withOrder(func(ctx context.Context, c call, id uuid.UUID) error {
		if transaction == (common.Hash{}) {
			return errors.New("-tx is required: the order ends as its transaction did")
		}
		step, err := c.Finish(ctx, id, transaction, *d)
		return c.printStep(step, err)
	})
	all := without(func(ctx context.Context, c call) error {
		if from.IsZero() {
			from = c.config.Now().Add(-3 * 24 * time.Hour)
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
	books, err := c.Reconcile(ctx, from, to)
	if err != nil {
		return err
	}
	for _, f := range books.Findings {
		if f.Fitting {
			fmt.Fprintf(c.out, "%s\ttokens: %s (%s)\t%s\n",
				f.Orders[0].row(), f.Orders[0].Tokens, shown(f.Orders[0].Product), f.Events[0].TxHash)
		}
	}
	if !yes {
		_, err := fmt.Fprintf(c.out, "orders that fit: %d; end them with -yes\n", books.Fitting)
		return err
	}
	steps, failed := c.FinishFitting(ctx, books, d) // goes on after an error, which names its order
	for _, step := range steps {
		if err := c.printStep(step, nil); err != nil {
			return errors.Join(err, failed)
		}
	}
	_, err = fmt.Fprintf(c.out, "orders that fit: %d, of which were ended: %d\n", books.Fitting, len(steps))
	return errors.Join(err, failed)
}

func newAbandon(flags *flag.FlagSet) action {
	d := newDecision(flags)
	evidenceFlags(flags, d)
	flags.BoolVar(&d.Early, "early", false,
		"abandon the order before it has waited for 13 hours, although its result may still come")
	return withOrder(func(ctx context.Context, c call, id uuid.UUID) error {
		step, err := c.Abandon(ctx, id, *d)
		return c.printStep(step, err)
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

func newDecide(flags *flag.FlagSet) action {
	var e Entry
	flags.StringVar(&e.Who, "who", "", "`name` of the person who decides; required")
	flags.StringVar(&e.Reason, "reason", "", "what was decided, and why; required")
	flags.StringVar((*string)(&e.Finding), "finding", "",
		"`kind` of the finding, such as ended_otherwise; required without -reverse")
	flags.Func("tx", "`hash` of the transaction, for a finding without an order, or with a UUID for one\n"+
		"that is ambiguous: the transaction of this order",
		func(text string) error { return e.TxHash.UnmarshalText([]byte(text)) })
	flags.TextVar(&e.Reverses, "reverse", uuid.Nil, "`ID` of the decision that is reversed; takes no UUID")
	flags.Func("moved", "what you have moved, such as item_gold=-500 for `items` taken from a player; "+
		"may be repeated", e.addMoved)
	decide := func(ctx context.Context, c call) error {
		stored, err := c.Decide(ctx, e)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(c.out, "entry %s is stored\n", stored.ID)
		return err
	}
	order := withOrder(func(ctx context.Context, c call, id uuid.UUID) error {
		e.Order = id
		return decide(ctx, c)
	})
	return func(ctx context.Context, c call) error {
		about := e.TxHash != (common.Hash{}) && len(c.args) == 0
		if about || e.Reverses != uuid.Nil {
			return without(decide)(ctx, c)
		}
		return order(ctx, c)
	}
}

// addMoved reads the value of the flag -moved.
func (e *Entry) addMoved(text string) error {
	id, number, _ := strings.Cut(text, "=")
	amount, err := ramp.ParseAmount(number)
	if err != nil || id == "" {
		return errors.New("must be an item, = and an amount, which is below 0 if it was taken")
	}
	if e.Moved == nil {
		e.Moved = map[string]Amount{}
	}
	if _, twice := e.Moved[id]; twice {
		return fmt.Errorf("%s has an amount before", id)
	}
	e.Moved[id] = Amount{amount}
	return nil
}

func newEntries(flags *flag.FlagSet) action {
	var from, to time.Time
	period(flags, &from, &to, "list decisions since this `time`; by default all of them")
	return without(func(ctx context.Context, c call) error {
		if c.config.Journal == nil {
			return invalid("Config.Journal", "is required")
		}
		entries, err := c.config.Journal.Entries(ctx, from)
		if err != nil {
			return err
		}
		table := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "ENTRY\tTIME\tWHO\tREASON\tFINDING\tORDER\tTRANSACTION\tMOVED\tREVERSES")
		for _, e := range entries {
			if !to.IsZero() && !e.At.Before(to) {
				break
			}
			row := []string{e.ID.String(), e.At.Format(time.RFC3339)}
			for _, text := range []string{
				e.Who, e.Reason, string(e.Finding), emptyUnless(e.Order != uuid.Nil, e.Order.String()),
				emptyUnless(e.TxHash != common.Hash{}, e.TxHash.Hex()), movedText(e.Moved),
				emptyUnless(e.Reverses != uuid.Nil, e.Reverses.String()),
			} {
				row = append(row, shown(text))
			}
			fmt.Fprintln(table, strings.Join(row, "\t"))
		}
		return table.Flush()
	})
}

// printStep says what was moved, so that nobody moves it again by hand.
func (c call) printStep(step ramp.Step, err error) error {
	if err != nil {
		return err
	}
	moved := "the game has moved: " + step.Effect.String()
	switch {
	case step.Settled():
		moved = "the game has moved nothing, because it was settled in another way: " + step.Order.Settled
	case !step.New:
		moved = "it had ended so before, and nothing was moved"
	}
	_, err = fmt.Fprintf(c.out, "%s is %s; %s\n", step.Order.UUID, step.Order.State, shown(moved))
	return err
}

func newReconcile(flags *flag.FlagSet) action {
	var s span
	period(flags, &s.from, &s.to,
		"`beginning`, a date or a time in RFC 3339; by default where the last books ended, or a day ago")
	file := flags.String("position", "",
		"`file` that says where the last books ended, and then where these did")
	format := flags.String("format", "text",
		"`form` of the books: text, json, totals or lines (both as CSV), or lines-json")
	sign := DecimalPoint
	flags.Func("decimal", "`sign` before the decimals in CSV, point (the default) or comma; "+
		"with a comma, semicolons separate the columns", func(text string) error {
		known := false
		sign, known = map[string]DecimalSign{"point": DecimalPoint, "comma": DecimalComma}[text]
		if !known {
			return errors.New("must be point or comma")
		}
		return nil
	})
	return without(func(ctx context.Context, c call) error {
		write := map[string]func(*Reconciliation, []Line) error{
			"text": func(b *Reconciliation, _ []Line) error {
				_, err := io.WriteString(c.out, b.Text())
				return err
			},
			"json":   func(b *Reconciliation, _ []Line) error { return json.NewEncoder(c.out).Encode(b) },
			"totals": func(b *Reconciliation, _ []Line) error { return b.WriteTotalsCSV(c.out, sign) },
			"lines": func(b *Reconciliation, lines []Line) error {
				return b.WriteLinesCSV(c.out, sign, lines)
			},
			"lines-json": func(b *Reconciliation, lines []Line) error {
				return json.NewEncoder(c.out).Encode(map[string]any{
					"about": b.About, "from": b.From, "to": b.To, "lines": lines})
			},
		}[*format]
		if write == nil {
			return errors.New("-format must be text, json, totals, lines or lines-json")
		}
		s.lines = strings.HasPrefix(*format, "lines")
		unlock, err := position(*file).lock()
		if err != nil {
			return err
		}
		defer unlock()
		books, lines, err := c.since(ctx, position(*file), s)
		if err != nil {
			return err
		}
		if err := write(books, lines); err != nil {
			return err
		}
		if *file == "" && books.isEmpty() { // regular books have quiet nights
			return fmt.Errorf(
				"nothing was compared: from %s to %s no order of this project and network ended, and this "+
					"chain has no event of its tokens",
				books.From.Format(time.RFC3339), books.To.Format(time.RFC3339))
		}
		if err := c.keep(ctx, position(*file), books); err != nil {
			return err
		}
		if books.Stalled != "" {
			return errors.New("the books stand still: " + books.Stalled)
		}
		if n := books.found(); n > 0 {
			return fmt.Errorf("orders and chain disagree; findings: %d", n)
		}
		return nil
	})
}
