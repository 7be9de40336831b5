package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/support"
)

// lists runs the commands that only read: list, conflicts and missing.
func lists(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("gameserver orders "+args[0], flag.ContinueOnError)
	flags.SetOutput(stderr)
	address := flags.String("db", "sqlite:gameserver.db", "`database` of the server")
	run, count := printConflicts, 0
	switch args[0] {
	case "list":
		var s selection
		flags.DurationVar(&s.older, "older", 13*time.Hour, "list orders that have waited longer than this `duration`; the service stops delivering after 12 hours")
		flags.StringVar(&s.direction, "direction", "", "list only waiting orders of this `direction`, mint or burn; a burn that waits has moved nothing")
		flags.StringVar(&s.player, "player", "", "list all orders of a player's `name` instead")
		flags.StringVar(&s.session, "session", "", "list all orders of a session `ID` instead")
		flags.StringVar(&s.wallet, "address", "", "list all orders of a wallet's `address` instead")
		flags.StringVar(&s.ended, "ended", "", "list the orders that ended from one time up to another instead, such as\n`2026-11-01T08:00:00Z,2026-11-02T09:30:00Z`")
		run = s.print
	case "missing":
		run, count = printLost(flags), 1
	}
	if err := parse(flags, args[1:], count); err != nil {
		return err
	}
	game, store, err := openOrders(ctx, *address)
	if err != nil {
		return err
	}
	defer game.db.Close()
	return run(ctx, game, store, stdout)
}

// selection says which orders to list: those of a player, a session or a wallet, those
// that ended between two times, or those that wait.
type selection struct {
	older                                     time.Duration
	direction, player, session, wallet, ended string
}

// print prints the orders. Rows that are no orders do not hide the others.
func (s *selection) print(ctx context.Context, game *game, store *ramp.SQLStore, out io.Writer) error {
	lists, err := s.lists(ctx, game, store)
	if err != nil {
		return err
	}
	var all []ramp.Order
	var damaged error
	for _, list := range lists {
		for page := (ramp.OrderPage{}); ; {
			orders, err := list(page)
			all, damaged = append(all, orders...), errors.Join(damaged, err)
			if len(orders) == 0 {
				break
			}
			page.After = orders[len(orders)-1]
		}
	}
	_, err = fmt.Fprint(out, support.Table(all))
	return errors.Join(err, damaged)
}

// lists returns functions that return the pages of the lists.
func (s *selection) lists(ctx context.Context, game *game, store *ramp.SQLStore) (lists []func(ramp.OrderPage) ([]ramp.Order, error), err error) {
	sessions := []string{s.session}
	switch {
	case s.player != "":
		if sessions, err = game.ids(ctx, game.db, "SELECT id FROM sessions WHERE player = ?", s.player); err != nil {
			return nil, err
		}
		fallthrough
	case s.session != "":
		for _, id := range sessions {
			lists = append(lists, func(p ramp.OrderPage) ([]ramp.Order, error) { return store.SessionOrders(ctx, id, p) })
		}
	case s.wallet != "":
		lists = append(lists, func(p ramp.OrderPage) ([]ramp.Order, error) { return store.UserOrders(ctx, s.wallet, p) })
	case s.ended != "":
		first, last, _ := strings.Cut(s.ended, ",")
		from, wrong := time.Parse(time.RFC3339, first)
		to, alsoWrong := time.Parse(time.RFC3339, last)
		if wrong != nil || alsoWrong != nil {
			return nil, errors.New("-ended must be two times, such as 2026-11-01T08:00:00Z,2026-11-02T09:30:00Z")
		}
		lists = append(lists, func(p ramp.OrderPage) ([]ramp.Order, error) { return store.Ended(ctx, from, to, p) })
	default:
		before := time.Now().Add(-s.older)
		for _, d := range []ramp.Direction{ramp.Mint, ramp.Burn} {
			if s.direction == "" || s.direction == d.String() {
				lists = append(lists, func(p ramp.OrderPage) ([]ramp.Order, error) { return store.Waiting(ctx, d, before, p) })
			}
		}
		if len(lists) == 0 {
			return nil, errors.New("-direction must be mint or burn")
		}
	}
	return lists, nil
}

// keep stores a conflict for a person. A repeat is stored once.
func (g *game) keep(ctx context.Context, conflict *ramp.ConflictError, r *ramp.Result) error {
	insert := "INSERT INTO conflicts (uuid, field, tx_hash, state, at) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
	if g.dialect == ramp.MySQL {
		insert = strings.Replace(insert, "ON CONFLICT DO NOTHING", "ON DUPLICATE KEY UPDATE at = conflicts.at", 1)
	}
	hash := fmt.Sprintf("%+q", r.TxHash) // ASCII
	_, err := g.db.ExecContext(ctx, g.bind(insert), r.UUID.String(), conflict.Field, hash[1:min(len(hash)-1, 67)], string(conflict.Order.State), time.Now().Unix())
	return err
}

// printConflicts lists the results that contradicted their orders, newest first.
func printConflicts(ctx context.Context, game *game, _ *ramp.SQLStore, out io.Writer) error {
	rows, err := game.db.QueryContext(ctx, "SELECT uuid, state, field, tx_hash, at FROM conflicts ORDER BY at DESC, uuid")
	if err != nil {
		return err
	}
	defer rows.Close()
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "UUID\tSTATE\tDIFFERS\tTX_HASH OF THE RESULT\tTIME")
	for rows.Next() {
		var id, state, field, hash string
		var at int64
		if err := rows.Scan(&id, &state, &field, &hash, &at); err != nil {
			return err
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", id, state, field, hash, time.Unix(at, 0).UTC().Format(time.RFC3339))
	}
	return errors.Join(rows.Err(), table.Flush())
}

// printLost lists the orders of a log that the database, which was restored, lacks.
func printLost(flags *flag.FlagSet) func(context.Context, *game, *ramp.SQLStore, io.Writer) error {
	return func(ctx context.Context, _ *game, store *ramp.SQLStore, out io.Writer) error {
		log, err := os.Open(flags.Arg(0))
		if err != nil {
			return err
		}
		defer log.Close()
		orders, err := support.New(support.Config{Store: store})
		if err != nil {
			return err
		}
		lost, err := orders.Lost(ctx, log)
		for _, o := range lost {
			what := "waits again"
			if o.Missing {
				what = "is missing"
			}
			fmt.Fprintf(out, "%s %s; it was %s\t%s\t%s\t%s\n", o.UUID, what, o.State, o.SessionID, strings.Join(o.Effects, ", then "), o.TxHash)
		}
		return err
	}
}
