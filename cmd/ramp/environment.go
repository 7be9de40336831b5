package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
)

// variables are the environment variables of flags whose name alone would be ambiguous: another program,
// such as the game's server, reads the value under another name, or another command has a flag of this
// name for another purpose. A key is the name of a flag, or the names of a command and of its flag.
var variables = map[string]string{
	"at":              "RAMP_API_URL",
	"key-encoding":    "RAMP_HMAC_KEY_ENCODING",
	"check session":   "RAMP_SESSIONS",
	"check url":       "RAMP_GAME",
	"connect page":    "RAMP_FRONTEND_URL",
	"connect rpc":     "RAMP_RPC_URL",
	"connect url":     "RAMP_API_URL",
	"orders state":    "RAMP_ORDERS_STATE",
	"orders timeout":  "RAMP_WAIT_TIMEOUT",
	"ready timeout":   "RAMP_WAIT_TIMEOUT",
	"record listen":   "RAMP_RECORD_LISTEN",
	"trigger amount":  "RAMP_TRIGGER_AMOUNT",
	"trigger timeout": "RAMP_WAIT_TIMEOUT",
	"trigger uuid":    "RAMP_TRIGGER_UUID",
}

// variable returns the environment variable of a flag: RAMP_ and its name, with the exceptions above.
func variable(of *flag.FlagSet, name string) string {
	for _, key := range []string{of.Name() + " " + name, name} {
		if variable, ok := variables[key]; ok {
			return variable
		}
	}
	return "RAMP_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// readEnvironment sets the flags that the arguments have not set, and returns those that they have. An error
// names the variable, and not its value, which may be a secret.
func readEnvironment(flags *flag.FlagSet) (given map[string]bool, err error) {
	given = map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	var problems []error
	flags.VisitAll(func(f *flag.Flag) {
		name := variable(flags, f.Name)
		text := os.Getenv(name)
		if text == "" || given[f.Name] {
			return
		}
		values := []string{text}
		if _, repeated := f.Value.(*repeating); repeated {
			values = strings.Split(strings.TrimSpace(text), "\n")
		}
		for _, value := range values {
			if err := f.Value.Set(strings.TrimSuffix(value, "\r")); err != nil {
				problems = append(problems, fmt.Errorf("%s, for -%s: %w", name, f.Name, err))
			}
		}
	})
	return given, errors.Join(problems...)
}

// repeating is the value of a flag that may be repeated.
type repeating struct {
	add   func(text string) error
	texts []string
}

func (r *repeating) Set(text string) error {
	r.texts = append(r.texts, text)
	return r.add(text)
}

func (*repeating) String() string { return "" }
