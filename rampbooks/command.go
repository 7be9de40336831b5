package rampbooks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/console"
	"github.com/token-ramp/ramp-go/internal/invalid"
)

// Command is a command line for the people who read the books; see [NewCommand].
type Command func(ctx context.Context, r *Reconciler, args []string, out io.Writer) error

// NewCommand returns a command of this package for a program of yours, and adds the flags
// of the command to those of the program. Parse them, make a [Reconciler], and run the command
// with the arguments that are left. It prints to out. Package support has the commands for single
// orders.
//
//	reconcile       compares the orders with the chain, and fails if they disagree or, without
//	                -position, if there was nothing to compare: [Reconciler.Reconcile]
//	decide UUID     stores what a person decided about a finding of the books: [Reconciler.Decide]
//	entries         lists what was decided
//
// Ask each for its flags with -help.
func NewCommand(name string, flags *flag.FlagSet) (Command, error) {
	define, known := map[string]func(*flag.FlagSet) action{
		"reconcile": newReconcile, "decide": newDecide, "entries": newEntries,
	}[name]
	if !known {
		return nil, fmt.Errorf("there is no command %q: use reconcile, decide or entries", name)
	}
	run := define(flags)
	return func(ctx context.Context, r *Reconciler, args []string, out io.Writer) error {
		if err := r.made(); err != nil {
			return err
		}
		if err := cmp.Or(console.Texts(flags), rules[name].Check(flags)); err != nil {
			return err
		}
		return run(ctx, call{On: r, Args: args, Out: out})
	}, nil
}

type (
	action = console.Action[*Reconciler]
	call   = console.Call[*Reconciler]
)

func newDecide(flags *flag.FlagSet) action {
	var e Entry
	flags.StringVar(&e.Who, "who", "", "`name` of the person who decides; required")
	flags.StringVar(&e.Reason, "reason", "", "what was decided, and why; required")
	flags.StringVar((*string)(&e.Finding), "finding", "",
		"`kind` of the finding, such as ended_otherwise; required without -reverse")
	console.Hash(flags, &e.TxHash, "tx", "`hash` of the transaction, for a finding without an order, or "+
		"with a UUID for one\nthat is ambiguous: the transaction of this order")
	flags.TextVar(&e.Reverses, "reverse", uuid.Nil, "`ID` of the decision that is reversed; takes no UUID")
	flags.Func("moved", "what you have moved, such as item_gold=-500 for `items` taken from a player; "+
		"may be repeated", e.addMoved)
	decide := func(ctx context.Context, c call) error {
		stored, err := c.On.Decide(ctx, e)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(c.Out, "entry %s is stored\n", stored.ID)
		return err
	}
	order := console.WithOrder(func(ctx context.Context, c call, id uuid.UUID) error {
		e.Order = id
		return decide(ctx, c)
	})
	return func(ctx context.Context, c call) error {
		about := e.TxHash != (common.Hash{}) && len(c.Args) == 0
		if about || e.Reverses != uuid.Nil {
			return console.Without(decide)(ctx, c)
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
	console.Period(flags, &from, &to, "list decisions since this `time`; by default all of them")
	return console.Without(func(ctx context.Context, c call) error {
		if c.On.config.Journal == nil {
			return invalid.Field("Config.Journal", "is required")
		}
		entries, err := c.On.config.Journal.Entries(ctx, from)
		if err != nil {
			return err
		}
		table := tabwriter.NewWriter(c.Out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "ENTRY\tTIME\tWHO\tREASON\tFINDING\tORDER\tTRANSACTION\tMOVED\tREVERSES")
		for _, e := range entries {
			if !to.IsZero() && !e.At.Before(to) {
				break
			}
			row := []string{e.ID.String(), e.At.Format(time.RFC3339)}
			for _, text := range []string{
				e.Who, e.Reason, string(e.Finding),
				console.EmptyUnless(e.Order != uuid.Nil, e.Order.String()),
				console.EmptyUnless(e.TxHash != common.Hash{}, e.TxHash.Hex()), movedText(e.Moved),
				console.EmptyUnless(e.Reverses != uuid.Nil, e.Reverses.String()),
			} {
				row = append(row, console.Quote(text))
			}
			fmt.Fprintln(table, strings.Join(row, "\t"))
		}
		return table.Flush()
	})
}

func newReconcile(flags *flag.FlagSet) action {
	var s span
	console.Period(flags, &s.from, &s.to,
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
	return console.Without(func(ctx context.Context, c call) error {
		write := map[string]func(*Reconciliation, []Line) error{
			"text": func(b *Reconciliation, _ []Line) error {
				_, err := io.WriteString(c.Out, b.Text())
				return err
			},
			"json":   func(b *Reconciliation, _ []Line) error { return json.NewEncoder(c.Out).Encode(b) },
			"totals": func(b *Reconciliation, _ []Line) error { return b.WriteTotalsCSV(c.Out, sign) },
			"lines": func(b *Reconciliation, lines []Line) error {
				return b.WriteLinesCSV(c.Out, sign, lines)
			},
			"lines-json": func(b *Reconciliation, lines []Line) error {
				return json.NewEncoder(c.Out).Encode(map[string]any{
					"about": b.About, "from": b.From, "to": b.To, "lines": lines})
			},
		}[*format]
		if write == nil {
			return errors.New("-format must be text, json, totals, lines or lines-json")
		}
		s.lines = strings.HasPrefix(*format, "lines")
		if sign != DecimalPoint && *format != "lines" && *format != "totals" {
			return errors.New("-decimal means nothing without -format lines or -format totals, which are CSV")
		}
		var position PositionStore
		if *file != "" {
			position = PositionFile(*file)
		}
		unlock, err := lockPosition(ctx, position)
		if err != nil {
			return err
		}
		defer unlock()
		books, lines, err := c.On.reconcileSince(ctx, position, s)
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
		if err := c.On.keepPosition(ctx, position, books); err != nil {
			return err
		}
		if books.Stalled != "" {
			return errors.New("the books stand still: " + books.Stalled)
		}
		if n := books.findingCount(); n > 0 {
			return fmt.Errorf("orders and chain disagree; findings: %d", n)
		}
		return nil
	})
}

// rules are, for each command, which of its flags mean nothing beside others.
var rules = map[string]console.Rules{
	"decide":    {Alone: [][]string{{"reverse", "finding"}, {"reverse", "tx"}}},
	"reconcile": {With: map[string][]string{"decimal": {"format"}}},
}
