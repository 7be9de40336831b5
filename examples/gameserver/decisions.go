// To make it yours: change nothing. Keep that who decided, and why, is stored with each decision.

package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/support"
)

// decision is a command of a person who says why. close closes the shop: every server with this
// database declines every new order, signs nothing, and still takes results. open opens it. resolve
// closes the conflicts of an order or a transaction, and with them their alert. prune deletes
// finished orders, and erase what is known of a player, as a user who may. Each is kept with who
// and why, which decisions lists.
type decision struct {
	name, who, reason, direction, before, player string
	withoutEvidence                              bool            // erases without a node
	desk                                         *support.Orders // to erase
}

func newDecision(name string, flags *flag.FlagSet) *decision {
	d := &decision{name: name}
	flags.StringVar(&d.who, "who", "", "`name` of the person who decides; required")
	flags.StringVar(&d.reason, "reason", "", "why; required")
	if name == "erase" {
		flags.StringVar(&d.player, "player", "", "`name` of the player; required")
		flags.BoolVar(&d.withoutEvidence, "without-evidence", false,
			"without a node; later books may then find events that nobody ordered")
	}
	if name == "prune" {
		flags.StringVar(&d.direction, "direction", "", "`direction` of the orders, mint or burn; required")
		flags.StringVar(&d.before, "before", "",
			"`date` before which they ended, such as 2026-05-01; required")
	}
	return d
}

// run makes the decision, and keeps it. id is the UUID or the hash of what is resolved, or "".
func (d *decision) run(ctx context.Context, g *game, store *rampsql.Store, id string) (said string,
	err error) {
	switch {
	case d.who == "" || d.reason == "" || (id == "") != (d.name != "resolve"):
		return "",
			fmt.Errorf("-who and -reason are required, and a UUID or a transaction to resolve: %w", errUsage)
	case d.name == "prune":
		return d.prune(ctx, g, store)
	case d.name == "erase":
		return d.erase(ctx, g, store)
	}
	tx, err := g.db.BeginTx(ctx, nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = tx.Rollback() }()
	if d.name == "resolve" {
		said, err = d.resolve(ctx, g, tx, id)
	} else {
		said, err = d.turn(ctx, g, tx)
	}
	if err == nil {
		_, err = d.keep(ctx, g, tx, id)
	}
	if err != nil {
		return "", err
	}
	return said, tx.Commit()
}

// turn closes or opens the shop.
func (d *decision) turn(ctx context.Context, g *game, tx *sql.Tx) (said string, err error) {
	closed := ""
	if d.name == "close" {
		closed = d.who + ": " + d.reason
	}
	if _, err := tx.ExecContext(ctx, g.bind("UPDATE shop SET closed = ?"), closed); err != nil {
		return "", err
	}
	if d.name == "open" {
		return "The shop is open.", nil
	}
	is, err := g.column(ctx, tx, shopClosed, "") // MySQL counts no row that was so before
	if err == nil && len(is) == 0 {
		err = errors.New("the shop is still open: gameserver migrate writes its row")
	}
	end := time.Now().Add(writeTimeout).UTC() // a call that was asked before may still be answered
	return "The shop is closed. The last signature leaves before " + end.Format(time.RFC3339) + ".", err
}

// resolve closes the conflicts of an order or a transaction.
func (d *decision) resolve(ctx context.Context, g *game, tx *sql.Tx, of string) (said string, err error) {
	n, err := g.resolve(ctx, tx, of, d.who+": "+d.reason)
	if err == nil && n == 0 {
		err = fmt.Errorf("%s has no open conflict; orders decide ends a finding of the books", of)
	}
	return fmt.Sprintf("Closed: %d.", n), err
}

// prune deletes finished orders, 1,000 at a time. The decision is kept before, and then how many it
// were. A finding about an order that is deleted could not be decided any more.
func (d *decision) prune(ctx context.Context, g *game, store *rampsql.Store) (said string, err error) {
	before, err := time.Parse(time.DateOnly, d.before)
	if err != nil {
		return "", err
	}
	const about = "SELECT f.uuid" + openFindings + " AND f.uuid <> '' AND f.at < ? ORDER BY f.at"
	open, err := g.column(ctx, g.db, about, before.Format(time.RFC3339))
	if err != nil {
		return "", err
	}
	if len(open) > 0 {
		return "", fmt.Errorf("findings of the books before that day: %d, the first about order %s: "+
			"decide them first", len(open), open[0])
	}
	what := fmt.Sprintf("%s before %s", d.direction, d.before)
	id, err := d.keep(ctx, g, g.db, what)
	total := 0
	for n := 1; n > 0 && err == nil; total += n {
		n, err = store.DeleteFinished(ctx, ramp.Direction(d.direction), before)
	}
	if id != "" {
		what += fmt.Sprintf(": %d orders", total)
		kept := g.change(ctx, g.db, 1, "UPDATE decisions SET about = ? WHERE id = ?", what, id)
		err = errors.Join(err, kept)
	}
	return fmt.Sprintf("%d orders were deleted.", total), err
}

// erase makes the orders of a player anonymous, and then deletes the player.
func (d *decision) erase(ctx context.Context, g *game, store *rampsql.Store) (said string, err error) {
	total, err := g.eraseOrders(ctx, store, d.desk, d.player,
		support.Decision{Who: d.who, Reason: d.reason, WithoutEvidence: d.withoutEvidence})
	if err != nil {
		return "", err
	}
	tx, err := g.db.BeginTx(ctx, nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = tx.Rollback() }()
	err = g.erasePlayer(ctx, tx, d.player)
	if err == nil {
		_, err = d.keep(ctx, g, tx, fmt.Sprintf("%d orders", total)) // without the name
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Orders made anonymous: %d. The rows of the player are deleted.", total), tx.Commit()
}

// keep stores who decided what, and why, for the command decisions.
func (d *decision) keep(ctx context.Context, g *game, db querier, about string) (id string, err error) {
	id = uuid.NewString()
	return id, g.insertNew(ctx, db, "decisions", "id, at, name, about, who, reason",
		id, time.Now().UTC().Format(time.RFC3339), d.name, about, d.who, d.reason)
}

// printDecisions lists the decisions, newest first.
func (g *game) printDecisions(ctx context.Context, out io.Writer) error {
	lines, err := g.column(ctx, g.db, `SELECT CONCAT(at, '  ', name, '  ', about, '  ', who, ': ', reason)
		FROM decisions WHERE id <> ? ORDER BY at DESC, id`, "")
	if err == nil {
		lines = append([]string{"TIME, DECISION, WHAT IT IS ABOUT, AND WHO DECIDED, AND WHY"}, lines...)
		_, err = fmt.Fprintln(out, strings.Join(lines, "\n"))
	}
	return err
}

// observe registers gauges of what a person has to end: a shop that is closed, and conflicts and
// findings that nobody has resolved.
func (g *game) observe(registry prometheus.Registerer) {
	closed := func(ctx context.Context) (float64, error) {
		rows, err := g.column(ctx, g.db, shopClosed, "")
		return float64(len(rows)), err
	}
	gauge(registry, "ramp_shop_closed", "1 if a person has closed the shop.", nil, closed)
	g.observeFindings(registry)
}
