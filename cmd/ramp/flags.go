package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	ramp "github.com/token-ramp/ramp-go"
)

// newFlags returns the flag set of a command. about is the help text above the
// flags.
func newFlags(name, about string) *flag.FlagSet {
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	set.SetOutput(io.Discard) // parse writes the error
	set.Usage = func() { fmt.Fprintf(set.Output(), "%s\nFlags:\n", about) }
	return set
}

// parse reads the flags and arguments of a command. Flags may come before and after
// the arguments. The number of arguments must be between least and most.
func parse(set *flag.FlagSet, args []string, least, most int, std stdio) (rest []string, err error) {
	for err == nil {
		if err = set.Parse(args); err != nil || set.NArg() == 0 {
			break
		}
		rest, args = append(rest, set.Arg(0)), set.Args()[1:]
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		set.SetOutput(std.out)
		set.Usage()
		set.PrintDefaults()
		return nil, err
	case err != nil:
	case len(rest) < least:
		err = errors.New("an argument is missing")
	case len(rest) > most && most == 0:
		err = errors.New("it takes flags only")
	case len(rest) > most:
		err = errors.New("there are too many arguments")
		if set.Lookup("wait") != nil {
			err = errors.New("there are too many arguments (-wait takes no value; -timeout limits it)")
		}
	default:
		return rest, nil
	}
	return nil, misuse{err}
}

// endpointFlags adds the flags for the paths of a game's endpoints.
func endpointFlags(set *flag.FlagSet, assets, validate, result *string) {
	set.StringVar(assets, "assets", ramp.PathAssets, "`path` of the Get Assets endpoint below the server's URL")
	set.StringVar(validate, "validate", ramp.PathValidate, "`path` of the Validate Order endpoint below it")
	set.StringVar(result, "result", ramp.PathResult, "`path` of the result endpoint below it")
}

// repeated adds a flag that may be repeated.
func repeated(set *flag.FlagSet, into *[]string, name, usage string) {
	set.Func(name, usage, func(text string) error {
		*into = append(*into, text)
		return nil
	})
}

// misuse is the reason why a command cannot run, about which its help may say more.
type misuse struct{ error }

// Colors for a terminal.
const (
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	violet = "\x1b[35m"
	gray   = "\x1b[90m"
	normal = "\x1b[0m"
)

// colored returns text in a color if w is a terminal. NO_COLOR turns colors off.
func colored(w io.Writer, color, text string) string {
	if color == "" || !isTerminal(w) || os.Getenv("NO_COLOR") != "" {
		return text
	}
	return color + text + normal
}
