package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go/internal/redact"
	"github.com/token-ramp/ramp-go/internal/typed"
	"github.com/token-ramp/ramp-go/ramptest/control"
)

const ordersUsage = `usage: ramp orders [UUID] [flags]

Lists the orders of a running emulator, newest first, below the calls that led to no order,
such as one that the game refused. With a UUID, or the first characters of one, it shows
what happened to that order.

Example: ramp orders -attention

Exit status: 0 if all is well, 1 if a listed order or call needs attention or -wait timed out, 2
if the emulator is unreachable, 3 if a listed order is disputed and nothing else is wrong.
`

// orders lists orders, or shows one.
func orders(ctx context.Context, of *call) (int, error) {
	c := newCaller(of)
	c.canPrintJSON()
	var q control.OrdersQuery
	c.StringVar(&q.SessionID, "session", "", "list only orders of this session `ID`")
	c.StringVar(&q.State, "state", "",
		"list only orders in this `state`: waiting, done, loss, unconfirmed, disputed, unknown")
	c.BoolVar(&q.Attention, "attention", false, "list only orders that need attention")
	c.StringVar(&q.Before, "before", "", "list only orders before this `UUID`, the last of the list before")
	c.IntVar(&q.Limit, "n", 20, "list at most this `number` of orders")
	c.canWait()
	rest, err := c.parse(0, 1)
	if err != nil {
		return 0, err
	}
	if problem := typed.Cut(strings.Join(append(rest, q.Before), " ")); problem != "" {
		return 0, misuse{errors.New("a UUID " + problem)}
	}
	if err := c.connect(ctx); err != nil {
		return 0, err
	}
	if len(rest) == 1 {
		return c.showOne(ctx, rest[0])
	}
	list, err := c.Orders(ctx, q)
	switch {
	case err != nil:
		return 0, err
	case c.json:
		printJSON(c.out, list)
	default:
		table(list, q, c.out)
	}
	for _, e := range list.Calls {
		if e.Verdict().Attention {
			return statusLoss, nil
		}
	}
	return statusOf(list.Orders...), nil
}

// table prints orders, one a line.
func table(list control.OrderList, q control.OrdersQuery, out io.Writer) {
	calls := printer{out: out}
	if len(list.Calls) > 0 {
		fmt.Fprintln(out, "Calls that led to no order:")
	}
	for _, e := range list.Calls {
		calls.event(e)
	}
	switch {
	case len(list.Orders) > 0 && len(list.Calls) > 0:
		fmt.Fprintln(out)
	case len(list.Orders) > 0:
	case len(list.Calls) > 0:
		return
	case q.SessionID != "" || q.State != "" || q.Attention || q.Before != "":
		fmt.Fprintln(out, "No order matches.")
		return
	default:
		fmt.Fprintln(out, "No orders yet. Open your game's exchange page, or use ramp trigger.")
		return
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "UUID\tTIME\tORDER\tPLAYER\tBOOKS\tSTATE")
	for _, o := range list.Orders {
		fmt.Fprintf(w, "%.8s\t%s\t%s %s\t%s\t%s\t%s  %s\n", o.UUID, o.Placed.Format(time.TimeOnly),
			o.Do, o.Amount,
			oneLine(redact.Isolate(o.Player())), oneLine(moved(&o)), strings.ToUpper(string(o.State)),
			oneLine(o.Verdict.String()))
	}
	_ = w.Flush() // if stdout is closed, nobody is reading
	if list.More {
		fmt.Fprintf(out, "%d of %d; -before %.8s shows the next\n", len(list.Orders), list.Total,
			list.Orders[len(list.Orders)-1].UUID)
	}
}

// showOne prints an order and its events.
func (c *caller) showOne(ctx context.Context, id string) (int, error) {
	o, err := c.Order(ctx, id, control.OrderQuery{})
	if err == nil && c.wait {
		o, err = c.waitFor(ctx, o)
	}
	var events []control.Event
	if err == nil && !c.json {
		events, err = c.eventsOf(ctx, o.UUID)
	}
	if err != nil {
		return 0, err
	}
	if !c.json {
		tokens := "tokens"
		if o.Amount == "1" {
			tokens = "token"
		}
		transaction := "no transaction"
		if o.TxStatus != "" {
			transaction = "transaction " + o.TxHash.Hex()
		}
		fmt.Fprintf(c.out, "%s %s %s of %s, %s\n", o.Do, o.Amount, tokens,
			oneLine(redact.Isolate(o.Player())), transaction)
		p := printer{out: c.out}
		for _, e := range events {
			p.event(e)
		}
	}
	return c.finish(&o), nil
}

// eventsOf returns the events of an order.
func (c *caller) eventsOf(ctx context.Context, id uuid.UUID) ([]control.Event, error) {
	var events []control.Event
	q := control.EventsQuery{UUID: id.String()}
	for {
		list, err := c.Events(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, e := range list.Events {
			events, q.After = append(events, e), e.Number
		}
		if !list.More {
			return events, nil
		}
	}
}

const resendUsage = `usage: ramp resend UUID [flags]

Sends the result of an order to the game again, now. The first characters of a UUID are
enough.

Example: ramp resend b65696e5 -outcome failed

Exit status: 0 if the game confirmed, 1 if it did not or the order needs attention, 2 if
nothing was sent, 3 if the order is disputed.
`

// resend sends the result of an order again.
func resend(ctx context.Context, of *call) (int, error) {
	c := newCaller(of)
	c.canPrintJSON()
	outcome := c.String("outcome", "",
		"first end a pending transaction with this `outcome`: succeeded or failed. If the transaction has "+
			"ended otherwise, the result contradicts it")
	rest, err := c.parse(1, 1)
	if err != nil {
		return 0, err
	}
	if problem := typed.Cut(rest[0]); problem != "" {
		return 0, misuse{errors.New("the UUID " + problem)}
	}
	if err := c.connect(ctx); err != nil {
		return 0, err
	}
	sent, err := c.Send(ctx, rest[0], control.SendRequest{Outcome: *outcome})
	if err != nil {
		return 0, err
	}
	if sent.Error != "" {
		fmt.Fprintln(c.errs, colored(c.errs, red, "NOT CONFIRMED"), oneLine(sent.Error))
	}
	if status := c.finish(&sent.Order); status != statusDone || sent.Error == "" {
		return status, nil
	}
	return statusLoss, nil
}

const advanceUsage = `usage: ramp advance DURATION [flags]

Advances the clock of a running emulator by a duration such as 90s, 15m or 12h. The
emulator produces the blocks and sends the results that fall due in that time.

Example: ramp advance 12h

Exit status: 0 if all is well, 1 if an order whose result was sent needs attention, 2 if
the emulator is unreachable, 3 if one is disputed.
`

// advance advances the emulator's clock.
func advance(ctx context.Context, of *call) (int, error) {
	c := newCaller(of)
	c.canPrintJSON()
	rest, err := c.parse(1, 1)
	if err != nil {
		return 0, err
	}
	by, err := time.ParseDuration(rest[0])
	if err != nil {
		return 0, misuse{fmt.Errorf("%q is not a duration; write 90s, 15m or 12h", rest[0])}
	}
	if err := c.connect(ctx); err != nil {
		return 0, err
	}
	stop := func() {}
	if isTerminal(c.errs) {
		stop = c.showClock(ctx, by, 500*time.Millisecond)
	}
	passed, err := c.Advance(ctx, control.AdvanceRequest{By: rest[0]})
	stop()
	if err != nil {
		return 0, err
	}
	text := c.out
	if c.json {
		printJSON(c.out, passed)
		text = io.Discard
	}
	fmt.Fprintln(text, "It is", passed.Now.Format(time.DateTime))
	var sent []control.OrderReport
	seen := make(map[uuid.UUID]bool)
	for _, d := range passed.Deliveries {
		said := "confirmed"
		switch {
		case d.Error != "":
			said = colored(text, red, oneLine(d.Error))
		case d.Lost:
			said = "the answer was lost on purpose"
		}
		fmt.Fprintf(text, "%s  %.8s  result #%d  %s\n", d.Time.Format(time.TimeOnly), d.UUID, d.Attempt, said)
		if seen[d.UUID] {
			continue
		}
		seen[d.UUID] = true
		o, err := c.Order(ctx, d.UUID.String(), control.OrderQuery{})
		if err != nil || !o.Attention {
			continue // an order that the emulator has dropped since needs none
		}
		sent = append(sent, o)
		show(text, &o)
	}
	return statusOf(sent...), nil
}

// showClock shows on one line of stderr how far the emulator's clock is, until stop is called.
func (c *caller) showClock(ctx context.Context, by, interval time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var until time.Time
		for {
			about, err := c.Describe(ctx)
			if err == nil {
				if until.IsZero() {
					until = about.Now.Add(by)
				}
				fmt.Fprintf(c.errs, "\r\x1b[KIt is %s, on the way to %s", about.Now.Format(time.DateTime),
					until.Format(time.DateTime))
			}
			select {
			case <-ctx.Done():
				fmt.Fprint(c.errs, "\r\x1b[K")
				return
			case <-time.After(interval):
			}
		}
	}()
	return func() { cancel(); <-ended }
}
