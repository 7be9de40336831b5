package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
	"github.com/token-ramp/ramp-go/ramptest"
)

const ordersUsage = `usage: ramp orders [UUID] [flags]

Lists the orders of a running emulator, newest first. With a UUID, or the first
characters of one, it shows what happened to that order.

Exit status: 0 if all is well, 1 if a listed order has a loss or -wait timed out, 2 if
the emulator is unreachable.
`

// orders lists orders, or shows one.
func orders(ctx context.Context, args []string, std stdio) int {
	set := newFlags("orders", ordersUsage)
	at := atFlag(set)
	session := set.String("session", "", "list only orders of this session `ID`")
	state := set.String("state", "", "list only orders in this `state`: pending, delivering, confirmed, refused, given up")
	limit := set.Int("n", 20, "list at most this `number` of orders")
	wait := set.Bool("wait", false, "wait until nothing more happens to the order by itself")
	timeout := set.Duration("timeout", 30*time.Second, "how long -wait waits")
	inJSON := set.Bool("json", false, "print JSON")
	rest, status, ok := parse(set, args, 0, 1, std)
	if !ok {
		return status
	}
	r, err := connect(ctx, *at)
	if err != nil {
		return notReached(std, "orders", err)
	}
	if len(rest) == 1 {
		return r.showOne(ctx, rest[0], *wait, *timeout, *inJSON, std)
	}
	q := url.Values{"limit": {strconv.Itoa(*limit)}, "session_id": {*session}, "state": {*state}}
	var listed json.RawMessage
	if err := r.call(ctx, http.MethodGet, "/control/orders?"+q.Encode(), nil, &listed); err != nil {
		return r.status(std, "orders", err)
	}
	var list struct {
		Orders []order
		Total  int
	}
	if err := json.Unmarshal(listed, &list); err != nil {
		return r.status(std, "orders", err)
	}
	if *inJSON {
		fmt.Fprintf(std.out, "%s\n", listed)
	} else {
		if len(list.Orders) == 0 && (*session != "" || *state != "") {
			fmt.Fprintln(std.out, "No order has this session and state.")
		} else {
			table(list.Orders, std)
		}
		if list.Total > len(list.Orders) {
			fmt.Fprintf(std.out, "%d of %d; -n shows more\n", len(list.Orders), list.Total)
		}
	}
	for _, o := range list.Orders {
		if o.Loss {
			return statusLoss
		}
	}
	return statusDone
}

// table prints orders, one a line.
func table(list []order, std stdio) {
	if len(list) == 0 {
		fmt.Fprintln(std.out, "No orders yet. Open your game's exchange page, or use ramp trigger.")
		return
	}
	w := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "UUID\tTIME\tORDER\tPLAYER\tBOOKS\tSTATE")
	for _, o := range list {
		word, said := o.verdict()
		fmt.Fprintf(w, "%.8s\t%s\t%s %s\t%s\t%s\t%s  %s\n", o.UUID, o.Placed.Format("15:04:05"), o.Do, o.Amount,
			oneLine(o.player()), oneLine(o.books()), word, oneLine(said))
	}
	_ = w.Flush() // if stdout is closed, nobody is reading
}

// oneLine makes foreign text safe for one line of a terminal: printable, and of limited
// length.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	const most = 300
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// showOne prints an order and its events.
func (r *remote) showOne(ctx context.Context, id string, wait bool, timeout time.Duration, inJSON bool, std stdio) int {
	var o order
	if err := r.call(ctx, http.MethodGet, "/control/orders/"+url.PathEscape(id), nil, &o); err != nil {
		return r.status(std, "orders", err)
	}
	if wait {
		if err := r.wait(ctx, &o, timeout, std); err != nil {
			return r.status(std, "orders", err)
		}
	}
	if !inJSON {
		events, err := r.events(ctx, o.UUID)
		if err != nil {
			return r.status(std, "orders", err)
		}
		tokens := "tokens"
		if o.Amount == "1" {
			tokens = "token"
		}
		fmt.Fprintf(std.out, "%s %s %s of %s, transaction %s\n", o.Do, o.Amount, tokens, oneLine(o.player()), o.TxHash)
		p := printer{out: std.out}
		for _, e := range events {
			p.event(e)
		}
	}
	return finish(&o, wait, inJSON, false, std)
}

// events returns the events of an order.
func (r *remote) events(ctx context.Context, id uuid.UUID) ([]ramptest.Event, error) {
	var listed struct{ Events []ramptest.Event }
	err := r.call(ctx, http.MethodGet, "/control/events?uuid="+id.String(), nil, &listed)
	return listed.Events, err
}

const resendUsage = `usage: ramp resend UUID [flags]

Sends the result of an order to the game again, now. The first characters of a UUID are
enough.

Exit status: 0 if the game confirmed, 1 if it did not or there is a loss, 2 if nothing
was sent.
`

// resend sends the result of an order again.
func resend(ctx context.Context, args []string, std stdio) int {
	set := newFlags("resend", resendUsage)
	at := atFlag(set)
	outcome := set.String("outcome", "", "first end a pending transaction with this `outcome`: succeeded or failed. If the transaction has ended otherwise, the result contradicts it")
	inJSON := set.Bool("json", false, "print the order as JSON")
	rest, status, ok := parse(set, args, 1, 1, std)
	if !ok {
		return status
	}
	r, err := connect(ctx, *at)
	if err != nil {
		return notReached(std, "resend", err)
	}
	var answer struct {
		Order order
		Error string
	}
	body := map[string]string{"outcome": *outcome}
	if err := r.call(ctx, http.MethodPost, "/control/orders/"+url.PathEscape(rest[0])+"/send", body, &answer); err != nil {
		return r.status(std, "resend", err)
	}
	if answer.Error != "" {
		fmt.Fprintln(std.errs, colored(std.errs, red, "NOT CONFIRMED"), oneLine(answer.Error))
	}
	if status := finish(&answer.Order, false, *inJSON, false, std); status != statusDone || answer.Error == "" {
		return status
	}
	return statusLoss
}

const advanceUsage = `usage: ramp advance DURATION [flags]

Advances the clock of a running emulator by a duration such as 90s, 15m or 12h. The
emulator produces the blocks and sends the results that fall due in that time.

Exit status: 0 if all is well, 1 if an order whose result was sent has a loss, 2 if the
emulator is unreachable.
`

// advance advances the emulator's clock.
func advance(ctx context.Context, args []string, std stdio) int {
	set := newFlags("advance", advanceUsage)
	at := atFlag(set)
	inJSON := set.Bool("json", false, "print JSON")
	rest, status, ok := parse(set, args, 1, 1, std)
	if !ok {
		return status
	}
	if _, err := time.ParseDuration(rest[0]); err != nil {
		return complain(std, "advance", fmt.Errorf("%q is not a duration; write 90s, 15m or 12h", rest[0]))
	}
	r, err := connect(ctx, *at)
	if err != nil {
		return notReached(std, "advance", err)
	}
	var text json.RawMessage
	if err := r.call(ctx, http.MethodPost, "/control/advance", map[string]string{"by": rest[0]}, &text); err != nil {
		return r.status(std, "advance", err)
	}
	var passed struct {
		Now        time.Time
		Deliveries []struct {
			UUID    uuid.UUID
			Attempt int
			Time    time.Time
			Status  int
			Error   string
		}
	}
	if err := json.Unmarshal(text, &passed); err != nil {
		return r.status(std, "advance", err)
	}
	if *inJSON {
		fmt.Fprintf(std.out, "%s\n", text)
	} else {
		fmt.Fprintln(std.out, "It is", passed.Now.Format("2006-01-02 15:04:05"))
	}
	status = statusDone
	seen := make(map[uuid.UUID]bool)
	for _, d := range passed.Deliveries {
		if !*inJSON {
			said := "confirmed"
			if d.Error != "" {
				said = colored(std.out, red, oneLine(d.Error))
			}
			fmt.Fprintf(std.out, "%s  %.8s  result #%d  %s\n", d.Time.Format("15:04:05"), d.UUID, d.Attempt, said)
		}
		if seen[d.UUID] {
			continue
		}
		seen[d.UUID] = true
		var o order
		if err := r.call(ctx, http.MethodGet, "/control/orders/"+d.UUID.String(), nil, &o); err == nil && o.Loss {
			status = statusLoss // an order that the emulator has dropped since had no loss
			if !*inJSON {
				o.show(std.out)
			}
		}
	}
	return status
}
