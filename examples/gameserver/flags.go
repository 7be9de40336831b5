// To make it yours: change nothing, or read the configuration of your game.

package main

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"
)

// errUsage is wrapped by errors in the arguments.
var errUsage = errors.New("see -help")

// byEnvironment returns the variable that sets a flag, or "". What decides about an order, or switches a
// check off, is said in the arguments only.
func byEnvironment(name string) string {
	switch name {
	case "db", "connections", "project", "former-projects", "network", "token", "sword-token", "chain-id",
		"confirmations", "payers",
		"contracts", "decimals", "cap", "addr", "drain", "metrics", "books":
		return "RAMP_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	}
	return ""
}

// parse reads the arguments, and from the environment what they do not set.
func parse(flags *flag.FlagSet, args []string, getenv func(string) string) error {
	flags.VisitAll(func(f *flag.Flag) {
		if variable := byEnvironment(f.Name); variable != "" {
			f.Usage += " [" + variable + "]"
		}
	})
	err := flags.Parse(args)
	set := map[string]bool{}
	flags.Visit(func(f *flag.Flag) {
		set[f.Name] = true
		free := slices.Contains([]string{"reason", "settled", "player", "session"}, f.Name)
		if problem := pasted(f.Value.String()); err == nil && problem != "" && !free {
			err = fmt.Errorf("-%s %s", f.Name, problem)
		}
	})
	flags.VisitAll(func(f *flag.Flag) {
		variable := byEnvironment(f.Name)
		if err != nil || variable == "" || set[f.Name] || getenv(variable) == "" {
			return
		}
		text := strings.TrimSuffix(getenv(variable), "\r") // of a file from Windows
		if problem := pasted(text); problem != "" {
			err = fmt.Errorf("%s %s", variable, problem)
		} else if failed := f.Value.Set(text); failed != nil {
			err = fmt.Errorf("%s: %w", variable, failed)
		}
	})
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		err = fmt.Errorf("%w: %w", err, errUsage)
	}
	return err
}

// pasted says what a page, a file or a shell has added to a text, or returns "".
func pasted(text string) string {
	unseen := func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }
	switch at := strings.IndexFunc(text, unseen); {
	case at >= 0:
		r, _ := utf8.DecodeRuneInString(text[at:])
		return fmt.Sprintf("has a character that nobody sees (%U)", r)
	case strings.TrimSpace(text) != text:
		return "begins or ends with white space"
	case len(text) > 1 && strings.ContainsAny(text[:1], "\"'`") && text[0] == text[len(text)-1],
		strings.HasPrefix(text, "“"), strings.HasPrefix(text, "„"):
		return "has quotes around it"
	}
	return ""
}

// addresses reads a flag that lists addresses.
func addresses(list *[]common.Address) func(string) error {
	return func(text string) error {
		for one := range strings.SplitSeq(text, ",") {
			var a common.Address
			if err := a.UnmarshalText([]byte(strings.TrimSpace(one))); err != nil {
				return err
			}
			*list = append(*list, a)
		}
		return nil
	}
}
