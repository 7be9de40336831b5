package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	ramp "github.com/token-ramp/ramp-go"
)

// stdio holds the standard streams of a command.
type stdio struct {
	in        io.Reader
	out, errs io.Writer
}

// The exit statuses of the commands that drive an emulator.
const (
	statusDone       = 0
	statusLoss       = 1 // an order needs attention, the game rejected or failed, or -wait timed out
	statusNotReached = 2 // nothing was done: the emulator is unreachable, or the command is invalid
	statusDisputed   = 3 // an order is disputed, and nothing else is wrong
)

// statusInterrupted is the exit status of any command after a second signal, as shells have it.
const statusInterrupted = 130

// call is a call of a command, which adds its flags.
type call struct {
	stdio
	*flag.FlagSet
	about string // the help text above the flags
	args  []string

	groups []flagGroup // the help's, after those without one
}

// flagGroup is a heading of a help text, with the flags below it.
type flagGroup struct {
	title  string
	before map[string]bool // the flags that were defined before it
}

// group begins a heading in the help text, for the flags that are defined from now on.
func (c *call) group(title string) {
	before := map[string]bool{}
	c.VisitAll(func(f *flag.Flag) { before[f.Name] = true })
	c.groups = append(c.groups, flagGroup{title, before})
}

// printFlags prints the help of all flags, group by group.
func (c *call) printFlags() {
	printed := map[string]bool{}
	groups := append([]flagGroup{{title: "Flags"}}, c.groups...)
	for n, group := range groups {
		below := flag.NewFlagSet("", flag.ContinueOnError)
		below.SetOutput(c.Output())
		c.VisitAll(func(f *flag.Flag) {
			if printed[f.Name] || n+1 < len(groups) && !groups[n+1].before[f.Name] {
				return
			}
			printed[f.Name] = true
			below.Var(f.Value, f.Name, f.Usage)
			below.Lookup(f.Name).DefValue = f.DefValue
		})
		fmt.Fprintf(c.Output(), "\n%s:\n", group.title)
		below.PrintDefaults()
	}
}

func newCall(std stdio, name, about string, args []string) *call {
	c := &call{stdio: std, FlagSet: flag.NewFlagSet(name, flag.ContinueOnError), about: about, args: args}
	c.SetOutput(io.Discard) // parse writes the error
	c.Usage = func() { fmt.Fprintf(c.Output(), "%s", c.about) }
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
		c.printFlags()
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

// encodingFlag adds the flag for the encoding of the HMAC key.
func (c *call) encodingFlag() *string {
	return c.String("key-encoding", "", "`encoding` of the HMAC key: text or base64url (default $RAMP_HMAC_KEY_ENCODING, else text)")
}

// flagError names the flags instead of the fields that they set.
func flagError(err error) error {
	var wrong *ramp.InvalidError
	if !errors.As(err, &wrong) {
		return err
	}
	flags := map[string]string{
		"Config.Game": "-game", "Config.AssetsPath": "-assets", "Config.ValidatePath": "-validate",
		"Config.ResultPath": "-result", "Config.Desk.PublicURL": "-url", "Config.Desk.Speed": "-speed",
		"Config.FailureStatus": "-failure-status", "Config.Timeout": "-timeout",
		"ClientConfig.URL": "-url", "intent.project_id": "-project", "intent.token": "-token",
		"intent.network": "-network",
	}
	var problems []string
	for _, f := range wrong.Fields {
		problems = append(problems, cmp.Or(flags[f.Path], f.Path)+" "+f.Problem)
	}
	return errors.New(strings.Join(problems, "; "))
}

// readKey parses an HMAC key in one of its two encodings.
func readKey(text, encoding string) (ramp.HMACKey, error) {
	switch cmp.Or(encoding, os.Getenv("RAMP_HMAC_KEY_ENCODING"), "text") {
	case "text":
		return ramp.TextKey(text)
	case "base64url":
		return ramp.Base64URLKey(text)
	default:
		return ramp.HMACKey{}, errors.New("-key-encoding, or RAMP_HMAC_KEY_ENCODING, must be text or base64url")
	}
}

// misuse is the reason why a command cannot run, about which its help may say more.
type misuse struct{ error }
