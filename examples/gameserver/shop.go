package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ramp "github.com/token-ramp/ramp-go"
)

// shop closes or opens the shop: while it is closed, every server with this database
// declines every new order, signs nothing, and still takes results.
func shop(ctx context.Context, name string, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("gameserver shop "+name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	s := newSettings(flags)
	by := newDecision(flags)
	if err := parse(flags, args); err != nil {
		return err
	}
	if (name != "close" && name != "open") || flags.NArg() > 0 {
		return fmt.Errorf("use shop close, or shop open: %w", errUsage)
	}
	why, err := by()
	if err != nil {
		return err
	}
	game, _, err := s.open(ctx, false)
	if err != nil {
		return err
	}
	defer game.db.Close()
	closed, text := "", "The shop is open.\n"
	if name == "close" {
		closed = why
	}
	if err := game.insertNew(ctx, game.db, "shop", "id, closed", 1, closed); err != nil {
		return err
	}
	if _, err := game.db.ExecContext(ctx, game.bind("UPDATE shop SET closed = ? WHERE id = 1"), closed); err != nil {
		return err
	}
	slog.New(slog.NewJSONHandler(stderr, nil)).WarnContext(ctx, "shop "+name, "reason", why)
	if closed != "" { // a call that was asked before may still be answered
		text = fmt.Sprintf("The shop is closed. The last signature leaves before %s.\n", time.Now().Add(writeTimeout).UTC().Format(time.RFC3339))
	}
	_, err = io.WriteString(stdout, text)
	return err
}

// newDecision adds the flags -who and -reason, and returns a function that reads them.
func newDecision(flags *flag.FlagSet) func() (string, error) {
	who := flags.String("who", "", "`name` of the person who decides; required")
	reason := flags.String("reason", "", "why; required")
	return func() (string, error) {
		if *who == "" || *reason == "" {
			return "", fmt.Errorf("-who and -reason are required: %w", errUsage)
		}
		return *who + ": " + *reason, nil
	}
}

// checkOpen rejects an order before it begins while the shop is closed. bindWallet decides.
func (g *game) checkOpen(ctx context.Context) error {
	closed, err := g.column(ctx, g.db, "SELECT closed FROM shop WHERE closed <> ?", "")
	if err == nil && len(closed) > 0 {
		err = shopClosed(closed[0])
	}
	return err
}

func shopClosed(why string) error {
	return &ramp.Rejection{Code: "SHOP_CLOSED", Err: errors.New("closed by " + why)}
}

// observe registers gauges of what a person has to end: a shop that is closed, and
// conflicts that nobody has closed.
func (g *game) observe(registry prometheus.Registerer) {
	for _, one := range []struct{ name, help, query string }{
		{"ramp_shop_closed", "1 while new orders are declined.", "SELECT id FROM shop WHERE closed <> ?"},
		{"ramp_conflicts_open", "Results that contradict their order and that nobody has closed.", "SELECT uuid FROM conflicts WHERE closed = ?"},
	} {
		gauge(registry, one.name, one.help, nil, func(ctx context.Context) (float64, error) {
			rows, err := g.column(ctx, g.db, one.query, "")
			return float64(len(rows)), err
		})
	}
}
