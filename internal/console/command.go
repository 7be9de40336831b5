package console

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go/internal/typed"
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
		id, err := typed.ParseUUID(argument)
		if err != nil {
			return fmt.Errorf("%+q is not a UUID: it %w", argument, err)
		}
		return run(ctx, c, id)
	})
}

// Hash adds a flag for the hash of a transaction.
func Hash(flags *flag.FlagSet, into *common.Hash, name, usage string) {
	flags.Func(name, usage, func(text string) (err error) {
		*into, err = typed.ParseHash(text)
		return err
	})
}

// Texts returns an error that names a flag to which another program, such as a page or a shell, has added
// something. The name of a player or a session may be any text, and what a person says may be quoted.
func Texts(flags *flag.FlagSet) (err error) {
	flags.Visit(func(f *flag.Flag) {
		text := f.Value.String()
		problem := typed.Problem(text)
		switch f.Name {
		case "player", "session":
			return
		case "who", "reason", "settled":
			if problem = typed.Unseen(text); problem != "" {
				problem = "must not have " + problem
			}
		}
		if problem != "" && err == nil {
			err = fmt.Errorf("-%s %s", f.Name, problem)
		}
	})
	return err
}

// Rules say which flags mean nothing beside others.
type Rules struct {
	// Alone are groups of flags, of which only one may be given.
	Alone [][]string

	// With has, for a flag, those of which one must be given, too.
	With map[string][]string
}

// Check returns an error if a flag that was given means nothing.
func (r Rules) Check(flags *flag.FlagSet) error {
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = f.Value.String() != "false" })
	for _, group := range r.Alone {
		group = slices.DeleteFunc(slices.Clone(group), func(name string) bool { return !given[name] })
		if len(group) > 1 {
			return fmt.Errorf("-%s and -%s mean nothing together: give one of the two", group[0], group[1])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.With)) {
		any := func(other string) bool { return given[other] }
		if given[name] && !slices.ContainsFunc(r.With[name], any) {
			others := strings.Join(r.With[name], " or -")
			return fmt.Errorf("-%s means nothing without -%s", name, others)
		}
	}
	return nil
}

// Period adds the flags -from and -to.
func Period(flags *flag.FlagSet, from, to *time.Time, usage string) {
	add := func(name string, at *time.Time, usage string) {
		flags.Func(name, usage, func(text string) (err error) {
			if *at, err = time.Parse(time.DateOnly, text); err != nil {
				*at, err = time.Parse(time.RFC3339, text)
			}
			if err != nil {
				err = errors.New("must be a date, such as 2026-11-29, or a time, such as " +
					"2026-11-29T00:00:00Z")
			} else if !from.IsZero() && !to.IsZero() && !to.After(*from) {
				err = errors.New("-to must be after -from")
			}
			return err
		})
	}
	add("from", from, usage)
	add("to", to, "`end`, likewise, and not included; by default now")
}
