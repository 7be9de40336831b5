package regions

import (
	"context"
	"errors"
	"flag"
	"io"

	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/support"
)

// Run runs a command for a person, such as list, count, find UUID or reconcile: those of packages support
// and rampbooks. Give desk and books the store of all databases, which is that of the handler. Each command
// then asks every database, and fails if one does not answer.
func Run(
	ctx context.Context, desk *support.Orders, books *rampbooks.Reconciler, args []string, out io.Writer,
) error {
	if len(args) == 0 {
		return errors.New("name a command, such as list")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	flags.SetOutput(out)
	command, err := support.NewCommand(args[0], flags)
	compare, failed := rampbooks.NewCommand(args[0], flags)
	if err != nil && failed != nil {
		return errors.Join(err, failed)
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if command == nil {
		return compare(ctx, books, flags.Args(), out)
	}
	return command(ctx, desk, flags.Args(), out)
}
