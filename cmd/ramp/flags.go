package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	ramp "github.com/token-ramp/ramp-go"
)

// call is a call of a command, which adds its flags.
type call struct {
	stdio
	*flag.FlagSet
	about string // the help text above the flags
	args  []string
}

func newCall(std stdio, name, about string, args []string) *call {
	c := &call{std, flag.NewFlagSet(name, flag.ContinueOnError), about, args}
	c.SetOutput(io.Discard) // parse writes the error
	c.Usage = func() { fmt.Fprintf(c.Output(), "%s\nFlags:\n", c.about) }
	return c
}

// parse reads the flags, and returns the arguments. Flags may come before and after
// the arguments. The number of arguments must be between least and most.
func (c *call) parse(least, most int) (rest []string, err error) {
	for args := c.args; err == nil; args = c.Args()[1:] {
		if err = c.Parse(args); err != nil || c.NArg() == 0 {
			break
		}
		rest = append(rest, c.Arg(0))
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		c.SetOutput(c.out)
		c.Usage()
		c.PrintDefaults()
		return nil, err
	case err != nil:
	case len(rest) < least:
		err = errors.New("an argument is missing")
	case len(rest) > most && most == 0:
		err = errors.New("it takes flags only")
	case len(rest) > most:
		err = errors.New("there are too many arguments")
		if c.Lookup("wait") != nil {
			err = errors.New("there are too many arguments (-wait takes no value; -timeout limits it)")
		}
	default:
		return rest, nil
	}
	return nil, misuse{err}
}

// endpointFlags adds the flags for the paths of a game's endpoints.
func (c *call) endpointFlags(assets, validate, result *string) {
	c.StringVar(assets, "assets", ramp.PathAssets, "`path` of the Get Assets endpoint below the server's URL")
	c.StringVar(validate, "validate", ramp.PathValidate, "`path` of the Validate Order endpoint below it")
	c.StringVar(result, "result", ramp.PathResult, "`path` of the result endpoint below it")
}

// repeated adds a flag that may be repeated.
func (c *call) repeated(into *[]string, name, usage string) {
	c.Func(name, usage, func(text string) error {
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
