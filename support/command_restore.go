package support

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/token-ramp/ramp-go/internal/console"
)

func newMissing(*flag.FlagSet) action { return missing }

// lost returns what the logs that the arguments name have, and the store lacks.
func lost(ctx context.Context, c call) ([]Logged, error) {
	if len(c.Args) == 0 {
		return nil, errors.New("arguments are required, after the flags: the files of the logs")
	}
	var logs []io.Reader
	for _, file := range c.Args {
		log, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer log.Close()
		logs = append(logs, log)
	}
	return c.On.Lost(ctx, logs...)
}

func missing(ctx context.Context, c call) error {
	lost, err := lost(ctx, c)
	for _, l := range lost {
		what := "waits again"
		if l.Missing {
			what = "is missing"
		}
		effects := strings.Join(l.Effects, ", then ")
		fmt.Fprintf(c.Out, "%s %s; it was %s\t%s\t%s\t%s\n", l.UUID, what,
			console.Quote(string(l.State)), console.Quote(l.SessionID), console.Quote(effects),
			console.Quote(l.TxHash))
	}
	return err
}

func newRestore(flags *flag.FlagSet) action {
	d := newDecision(flags)
	evidenceFlags(flags, d)
	return func(ctx context.Context, c call) error {
		lost, unread := lost(ctx, c)
		steps, failed := c.On.Restore(ctx, lost, *d) // goes on after an error, which names its order
		for _, step := range steps {
			if err := printStep(c.Out, step, nil); err != nil {
				return err
			}
		}
		_, err := fmt.Fprintf(c.Out, "orders that were lost: %d\n", len(lost))
		return errors.Join(unread, failed, err)
	}
}
