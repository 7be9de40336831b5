package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"text/tabwriter"
	"time"

	"github.com/ethereum/go-ethereum/common"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/support"
)

// orders runs a command for a person who decides about orders whose result does not
// arrive. Nothing else in this program ends an order without a result.
func orders(ctx context.Context, name string, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("gameserver orders "+name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	s := newSettings(flags)
	command, err := support.NewCommand(name, flags)
	var resolved *string
	var by func() (string, error)
	switch {
	case name == "conflicts":
		resolved = flags.String("close", "", "close the conflicts of the order with this `UUID`, which a person has resolved")
		by = newDecision(flags)
	case err != nil:
		return fmt.Errorf("%w: %w", err, errUsage)
	}
	if err := parse(flags, args); err != nil {
		return err
	}
	if name == "conflicts" && flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: %w", flags.Arg(0), errUsage)
	}
	game, store, err := s.open(ctx, false)
	if err != nil {
		return err
	}
	defer game.db.Close()
	if name == "conflicts" {
		if *resolved != "" {
			why, err := by()
			if err != nil {
				return err
			}
			if err := game.closeConflicts(ctx, *resolved, why); err != nil {
				return err
			}
		}
		return game.printConflicts(ctx, stdout)
	}
	log := slog.New(slog.NewJSONHandler(stderr, nil))
	var chain *ramp.RPC
	var proof *ramp.Proof
	switch {
	case name == "reconcile" && s.token == (common.Address{}):
		return errors.New("-token is required: the orders are compared with its events")
	case s.chainID != 0:
		if chain, err = s.chain(getenv("RAMP_RPC_URL"), log, ramp.Observer{}); err != nil {
			return err
		}
		proof = s.proof()
		proof.AnyFailure = proof.AnyFailure || name == "reconcile" // which ends no order
	case name == "finish" || name == "reconcile":
		return fmt.Errorf("RAMP_RPC_URL and -chain-id are required: %s reads the chain", name)
	}
	desk, err := s.desk(game, store, chain, proof, log)
	if err != nil {
		return err
	}
	return command(ctx, desk, flags.Args(), stdout)
}

// keepConflict stores a result that contradicts its order, for a person. A repeat is
// stored once.
func (g *game) keepConflict(ctx context.Context, conflict *ramp.ConflictError, r *ramp.Result) error {
	hash := fmt.Sprintf("%+q", r.TxHash) // ASCII
	return g.insertNew(ctx, g.db, "conflicts", "uuid, field, tx_hash, state, at",
		r.UUID.String(), conflict.Field, hash[1:min(len(hash)-1, 67)], string(conflict.Order.State), time.Now().Unix())
}

// closeConflicts ends the alert about the conflicts of an order.
func (g *game) closeConflicts(ctx context.Context, id, why string) error {
	done, err := g.db.ExecContext(ctx, g.bind("UPDATE conflicts SET closed = ? WHERE uuid = ? AND closed = ''"), why, id)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); n == 0 {
		return cmp.Or(err, fmt.Errorf("order %q has no open conflict", id))
	}
	return nil
}

// printConflicts lists the conflicts, newest first.
func (g *game) printConflicts(ctx context.Context, out io.Writer) error {
	rows, err := g.db.QueryContext(ctx, "SELECT uuid, state, field, tx_hash, at, closed FROM conflicts ORDER BY at DESC, uuid")
	if err != nil {
		return err
	}
	defer rows.Close()
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "UUID\tSTATE\tDIFFERS\tTX_HASH OF THE RESULT\tTIME\tCLOSED")
	for rows.Next() {
		var id, state, field, hash, closed string
		var at int64
		if err := rows.Scan(&id, &state, &field, &hash, &at, &closed); err != nil {
			return err
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", id, state, field, hash, time.Unix(at, 0).UTC().Format(time.RFC3339), cmp.Or(closed, "-"))
	}
	return errors.Join(rows.Err(), table.Flush())
}
