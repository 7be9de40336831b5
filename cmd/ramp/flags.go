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

	groups []flagGroup     // the help's, after those without one
	given  map[string]bool // the flags that the arguments set, after parse
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
		below, any := flag.NewFlagSet("", flag.ContinueOnError), false
		below.SetOutput(c.Output())
		c.VisitAll(func(f *flag.Flag) {
			if printed[f.Name] || n+1 < len(groups) && !groups[n+1].before[f.Name] {
				return
			}
			printed[f.Name], any = true, true
			below.Var(f.Value, f.Name, f.Usage+" ["+variable(c.FlagSet, f.Name)+"]")
			below.Lookup(f.Name).DefValue = f.DefValue
		})
		if any {
			fmt.Fprintf(c.Output(), "\n%s:\n", group.title)
			below.PrintDefaults()
		}
	}
	fmt.Fprint(c.Output(),
		"\nA flag that is not given is read from the variable in brackets. If it may be repeated, the "+
			"variable\n"+
			"has one value a line.\n")
}

func newCall(std stdio, name, about string, args []string) *call {
	c := &call{stdio: std, FlagSet: flag.NewFlagSet(name, flag.ContinueOnError), about: about, args: args}
	c.SetOutput(io.Discard) // parse writes the error
	c.Usage = func() { fmt.Fprintf(c.Output(), "%s", c.about) }
	return c
}

// endpointFlags adds the flags for the paths of a game's endpoints.
func (c *call) endpointFlags(assets, validate, result *string) {
	c.StringVar(assets, "assets", ramp.PathAssets, "`path` of the Get Assets endpoint below the server's URL")
	c.StringVar(validate, "validate", ramp.PathValidate, "`path` of the Validate Order endpoint below it")
	c.StringVar(result, "result", ramp.PathResult, "`path` of the result endpoint below it")
}

// flagError names the flags instead of the fields that they set.
func flagError(err error) error {
	var wrong *ramp.InvalidError
	if !errors.As(err, &wrong) {
		return err
	}
	flags := map[string]string{
		"Config.Game": "-game", "Config.AssetsPath": "-assets", "Config.ValidatePath": "-validate",
		"Config.ResultPath": "-result", "Config.Standalone.PublicURL": "-url",
		"Config.Standalone.Speed": "-speed",
		"Config.FailureStatus":    "-failure-status", "Config.Timeout": "-timeout",
		"ClientConfig.URL": "-url", "intent.project_id": "-project", "intent.token": "-token",
		"intent.network": "-network",
	}
	var problems []string
	for _, f := range wrong.Fields {
		problems = append(problems, cmp.Or(flags[f.Path], f.Path)+" "+f.Problem)
	}
	return errors.New(strings.Join(problems, "; "))
}

// repeatedFunc adds a flag that may be repeated, and calls add for each value.
func (c *call) repeatedFunc(name, usage string, add func(text string) error) {
	c.Var(&repeating{add: add}, name, usage+"; may be repeated")
}

// repeated adds a flag that may be repeated.
func (c *call) repeated(into *[]string, name, usage string) {
	c.repeatedFunc(name, usage, func(text string) error {
		*into = append(*into, text)
		return nil
	})
}

// need returns an error that names the flags which are missing, in the order in which one gives them. Each
// flag has what its value is, which is empty if the flag is not missing.
func need(flags ...[2]string) error {
	var missing []string
	for _, flag := range flags {
		if flag[1] != "" {
			missing = append(missing, flag[0]+" ("+flag[1]+")")
		}
	}
	switch n := len(missing); n {
	case 0:
		return nil
	case 1:
		return misuse{errors.New(missing[0] + " is required")}
	default:
		list := strings.Join(missing[:n-1], ", ") + " and " + missing[n-1]
		return misuse{errors.New(list + " are required")}
	}
}

// ifEmpty returns what a value is if it is missing.
func ifEmpty(value, what string) string {
	if value != "" {
		return ""
	}
	return what
}

// keyFlags are the flags of the HMAC key. The key itself stands in the environment or in a file, because
// others can see the arguments of a process.
type keyFlags struct{ file, encoding string }

// needKey says what the HMAC key is, for need.
const needKey = "a file with the console's HMAC key, or set RAMP_HMAC_KEY"

// keyFileFlag adds the flag for the file of the HMAC key.
func (c *call) keyFileFlag(k *keyFlags, more string) {
	c.StringVar(&k.file, "key-file", "",
		"`file` with the console's HMAC key (default $RAMP_HMAC_KEY"+more+")")
}

// encodingFlag adds the flag for the encoding of the HMAC key.
func (c *call) encodingFlag(k *keyFlags) {
	c.StringVar(&k.encoding, "key-encoding", "",
		"`encoding` of the HMAC key: text (the default) or base64url")
}

// text returns the console's text of the key, or "" if there is none.
func (k *keyFlags) text() (string, error) {
	if k.file == "" {
		return os.Getenv("RAMP_HMAC_KEY"), nil
	}
	text, err := os.ReadFile(k.file)
	if err != nil {
		return "", misuse{fmt.Errorf("-key-file: %w", err)}
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

// readKey parses an HMAC key in one of its two encodings.
func readKey(text, encoding string) (ramp.HMACKey, error) {
	switch cmp.Or(encoding, "text") {
	case "text":
		return ramp.TextKey(text)
	case "base64url":
		return ramp.Base64URLKey(text)
	default:
		return ramp.HMACKey{},
			errors.New("-key-encoding, or RAMP_HMAC_KEY_ENCODING, must be text or base64url")
	}
}

// misuse is the reason why a command cannot run, about which its help may say more.
type misuse struct{ error }
