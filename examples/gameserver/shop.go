package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampsql"
)

// decision is a command of a person who says why. close closes the shop: every server with
// this database declines every new order, signs nothing, and still takes results. open opens
// it. resolve closes the conflicts of an order, and with them the alert. prune deletes
// finished orders, as a user who may.
type decision struct{ name, who, reason, direction, before string }

func newDecision(name string, flags *flag.FlagSet) *decision {
	d := &decision{name: name}
	flags.StringVar(&d.who, "who", "", "`name` of the person who decides; required")
	flags.StringVar(&d.reason, "reason", "", "why; required")
	if name == "prune" {
		flags.StringVar(&d.direction, "direction", "", "`direction` of the orders, mint or burn; required")
		flags.StringVar(&d.before, "before", "", "`date` before which they ended, such as 2026-05-01; required")
	}
	return d
}

// run makes the decision. id is the UUID of the order whose conflicts are resolved, or "".
func (d *decision) run(ctx context.Context, g *game, store *rampsql.Store, id string) (said string, err error) {
	why := d.who + ": " + d.reason
	statement, values := "UPDATE shop SET closed = ?", []any{why}
	switch {
	case d.who == "" || d.reason == "" || (id == "") != (d.name != "resolve"):
		return "", fmt.Errorf("-who and -reason are required, and a UUID to resolve: %w", errUsage)
	case d.name == "prune":
		return d.prune(ctx, store)
	case d.name == "resolve":
		statement, values = "UPDATE conflicts SET closed = ? WHERE uuid = ? AND closed = ''", append(values, id)
		said = "The conflicts are closed."
	case d.name == "open":
		values[0], said = "", "The shop is open."
	default: // a call that was asked before may still be answered
		said = "The shop is closed. The last signature leaves before " + time.Now().Add(writeTimeout).UTC().Format(time.RFC3339) + "."
	}
	done, err := g.db.ExecContext(ctx, g.bind(statement), values...)
	if err == nil && d.name == "resolve" {
		if n, _ := done.RowsAffected(); n == 0 { // no driver fails
			err = fmt.Errorf("order %s has no open conflict", id)
		}
	}
	if err == nil && d.name == "close" && g.checkOpen(ctx) == nil {
		err = errors.New("the shop is still open: gameserver migrate writes its row")
	}
	return said, err
}

// prune deletes finished orders, 1,000 at a time.
func (d *decision) prune(ctx context.Context, store *rampsql.Store) (said string, err error) {
	before, err := time.Parse(time.DateOnly, d.before)
	total := 0
	for n := 1; n > 0 && err == nil; total += n {
		n, err = store.DeleteFinished(ctx, ramp.Direction(d.direction), before)
	}
	return fmt.Sprintf("%d orders were deleted.", total), err
}

// checkOpen rejects an order before it begins while the shop is closed. bindWallet decides.
func (g *game) checkOpen(ctx context.Context) error {
	closed, err := g.column(ctx, g.db, "SELECT closed FROM shop WHERE closed <> ?", "")
	if err == nil && len(closed) > 0 {
		err = &ramp.Rejection{Code: "SHOP_CLOSED", Err: errors.New("closed by " + closed[0])}
	}
	return err
}

// observe registers gauges of what a person has to end: a shop that is closed, and
// conflicts that nobody has resolved.
func (g *game) observe(registry prometheus.Registerer) {
	for name, query := range map[string]string{"ramp_shop_closed": "SELECT id FROM shop WHERE closed <> ?",
		"ramp_conflicts_open": "SELECT uuid FROM conflicts WHERE closed = ?"} {
		gauge(registry, name, "How many rows a person has to end.", nil, func(ctx context.Context) (float64, error) {
			rows, err := g.column(ctx, g.db, query, "")
			return float64(len(rows)), err
		})
	}
}
