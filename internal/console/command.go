package console

import (
	"context"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"
)

// Action is what a command does on something.
type Action[T any] func(ctx context.Context, c Call[T]) error

// Call is what a command is called with.
type Call[T any] struct {
	On   T
	Args []string // without the flags
	Out  io.Writer
}

// Without returns an action that takes no argument.
func Without[T any](run Action[T]) Action[T] {
	return func(ctx context.Context, c Call[T]) error {
		if len(c.Args) > 0 {
			return fmt.Errorf("unexpected argument %q", c.Args[0])
		}
		return run(ctx, c)
	}
}

// With returns an action that takes one argument. what says what it is.
func With[T any](what string, run func(ctx context.Context, c Call[T], argument string) error) Action[T] {
	return func(ctx context.Context, c Call[T]) error {
		if len(c.Args) != 1 {
			return fmt.Errorf("one argument is required, after the flags: %s", what)
		}
		return run(ctx, c, c.Args[0])
	}
}

// WithOrder returns an action on an order.
func WithOrder[T any](run func(ctx context.Context, c Call[T], id uuid.UUID) error) Action[T] {
	return With("the UUID of an order", func(ctx context.Context, c Call[T], argument string) error {
		id, err := uuid.Parse(argument)
		if err != nil {
			return fmt.Errorf("%q is not a UUID: give all its 36 characters", argument)
		}
		return run(ctx, c, id)
	})
}

// Period adds the flags -from and -to.
func Period(flags *flag.FlagSet, from, to *time.Time, usage string) {
	add := func(name string, at *time.Time, usage string) {
		flags.Func(name, usage, func(text string) (err error) {
			if *at, err = time.Parse(time.DateOnly, text); err != nil {
				*at, err = time.Parse(time.RFC3339, text)
			}
			return err
		})
	}
	add("from", from, usage)
	add("to", to, "`end`, likewise, and not included; by default now")
}
