package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/token-ramp/ramp-go/internal/typed"
)

// checkTexts names what another program, such as a page or a shell, has added to an argument or the value of
// a flag, replaced in it or cut from it. It quotes no value, which may be a secret.
func (c *call) checkTexts(arguments []string) error {
	var problems []string
	for _, text := range arguments {
		if problem := typed.Problem(text); problem != "" {
			problems = append(problems, "the argument "+problem)
		}
	}
	c.VisitAll(func(f *flag.Flag) {
		texts := []string{f.Value.String()}
		switch value := f.Value.(type) {
		case *repeating:
			texts = value.texts
		default:
			if f.Name == "restart" { // the quotes are its shell's
				return
			}
		}
		for _, text := range texts {
			if problem := typed.Problem(text); problem != "" {
				problems = append(problems, c.sourceOf(f)+" "+problem)
			}
		}
	})
	if problems == nil {
		return nil
	}
	return errors.New(strings.Join(problems, "; "))
}

// sourceOf names where the value of a flag comes from.
func (c *call) sourceOf(f *flag.Flag) string {
	if name := variable(c.FlagSet, f.Name); !c.given[f.Name] && os.Getenv(name) != "" {
		return name + ", for -" + f.Name + ","
	}
	return "-" + f.Name
}

// environment returns the value of a variable that sets no flag.
func environment(name string) (string, error) {
	text := strings.TrimSuffix(os.Getenv(name), "\r") // of a file from Windows
	if problem := typed.Problem(text); problem != "" {
		return "", misuse{fmt.Errorf("%s %s", name, problem)}
	}
	return text, nil
}
