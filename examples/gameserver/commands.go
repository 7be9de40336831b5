// To make it yours: change nothing. The commands need what settings.go reads.

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/support"
)

// runCommand runs a command for an operator, or for a person who decides about orders whose
// result does not arrive. Nothing else in this program ends an order without a result.
func runCommand(ctx context.Context, name string, args []string, getenv func(string) string,
	stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("gameserver orders "+name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	s := newSettings(flags)
	command, err := support.NewCommand(name, flags)
	books, failed := rampbooks.NewCommand(name, flags)
	var decides *decision
	if slices.Contains([]string{"close", "open", "resolve", "prune", "erase"}, name) {
		decides = newDecision(name, flags)
	} else if err != nil && failed != nil &&
		!slices.Contains([]string{"conflicts", "decisions", "migrate"}, name) {
		return fmt.Errorf("%w, or %w: %w", err, failed, errUsage)
	}
	if err := parse(flags, args, getenv); err != nil {
		return err
	}
	looks := []string{"list", "count", "find", "missing", "show", "conflicts", "decisions", "entries",
		"reconcile"}
	s.looks = slices.Contains(looks, name)
	game, store, err := s.open(ctx, name == "migrate")
	if err != nil {
		return err
	}
	defer game.db.Close()
	log := slog.New(slog.NewJSONHandler(stderr, nil))
	switch {
	case decides != nil:
		if name == "erase" {
			s.anyFailure = true // which ends no order
			proof, err := s.proof(getenv("RAMP_RPC_URL"), log, ramp.Observer{})
			if err == nil {
				decides.desk, err = s.desk(game, store, proof, log)
			}
			if err != nil {
				return err
			}
		}
		said, err := decides.run(ctx, game, store, flags.Arg(0))
		if err == nil {
			log.WarnContext(ctx, name, "who", decides.who, "reason", decides.reason, "uuid", flags.Arg(0))
			_, err = fmt.Fprintln(stdout, said)
		}
		return err
	case command == nil && books == nil && flags.NArg() > 0:
		return fmt.Errorf("unexpected argument %q: %w", flags.Arg(0), errUsage)
	case name == "migrate":
		return nil
	case name == "conflicts":
		return game.printConflicts(ctx, stdout)
	case name == "decisions":
		return game.printDecisions(ctx, stdout)
	}
	s.anyFailure = s.anyFailure || name == "reconcile" // which ends no order
	var proof *rampproof.Proof
	if slices.Contains([]string{"show", "finish", "abandon", "restore", "reconcile"}, name) {
		if proof, err = s.proof(getenv("RAMP_RPC_URL"), log, ramp.Observer{}); err != nil {
			return err
		}
	}
	switch {
	case name == "reconcile" && s.token == (common.Address{}):
		return errors.New("-token is required: the orders are compared with its events")
	case proof == nil && slices.Contains([]string{"finish", "restore", "reconcile"}, name):
		return fmt.Errorf("RAMP_RPC_URL and -chain-id are required: %s reads the chain", name)
	}
	if books != nil {
		reconciler, err := s.reconciler(game, store, proof, log)
		if err != nil {
			return err
		}
		return books(ctx, reconciler, flags.Args(), stdout)
	}
	desk, err := s.desk(game, store, proof, log)
	if err != nil {
		return err
	}
	return command(ctx, desk, flags.Args(), stdout)
}
