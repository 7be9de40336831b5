package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"strings"
)

// parse reads the flags, and returns the arguments. Flags may come before and after
// the arguments. The number of arguments must be between least and most.
func (c *call) parse(least, most int) (rest []string, err error) {
	for args := c.args; err == nil; args = c.Args()[1:] {
		if err = c.Parse(args); err != nil || c.NArg() == 0 {
			break
		}
		rest = append(rest, c.Arg(0))
	}
	if err == nil {
		c.given, err = readEnvironment(c.FlagSet)
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		c.SetOutput(c.out)
		c.Usage()
		c.printFlags()
		return nil, err
	case err != nil:
		if name, ok := strings.CutPrefix(err.Error(), "flag provided but not defined: -"); ok {
			var names []string
			c.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
			err = fmt.Errorf("there is no flag -%s%s", oneLine(name), didYouMean(name, "-", names))
		}
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
		if err = cmp.Or(c.checkMeaning(rest), c.checkTexts(rest)); err == nil {
			return rest, nil
		}
	}
	return nil, misuse{err}
}
