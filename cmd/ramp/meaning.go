package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// alone are flags of a command of which one makes the other mean nothing, if the arguments set both. What the
// environment sets is a default.
var alone = map[string][][2]string{
	"check":   {{"json", "q"}, {"json", "v"}, {"q", "v"}, {"amount", "unique"}},
	"trigger": {{"page", "uuid"}, {"page", "session"}, {"json", "q"}},
}

// needed are the flags that mean nothing unless the arguments or the environment set one of others.
var needed = map[string]map[string][]string{
	"trigger": {"timeout": {"wait"}, "network": termFlags, "project": termFlags, "fee": termFlags},
	"orders":  {"timeout": {"wait"}},
	"record":  {"service-listen": {"service"}},
	"connect": {"assets": {"game"}, "validate": {"game"}, "result": {"game"}, "session": {"page", "game"}},
}

var termFlags = []string{"token", "material", "output"}

// sets reports whether a flag was set to something other than its default.
func (c *call) sets(name string) bool {
	f := c.Lookup(name)
	if r, ok := f.Value.(*repeating); ok {
		return len(r.texts) > 0
	}
	return f.Value.String() != f.DefValue
}

// checkMeaning returns an error if an argument means nothing beside the others.
func (c *call) checkMeaning(arguments []string) error {
	for _, pair := range alone[c.Name()] {
		if c.given[pair[0]] && c.given[pair[1]] && c.sets(pair[0]) && c.sets(pair[1]) {
			return fmt.Errorf("-%s and -%s mean nothing together: give one of the two", pair[0], pair[1])
		}
	}
	for name, others := range needed[c.Name()] {
		if c.given[name] && !slices.ContainsFunc(others, c.sets) {
			return fmt.Errorf("-%s means nothing without -%s", name, strings.Join(others, " or -"))
		}
	}
	switch c.Name() {
	case "check":
		return c.checkList()
	case "orders":
		return c.checkOrder(len(arguments) > 0)
	}
	return nil
}

// checkList returns an error if -list comes with a flag that it does not use.
func (c *call) checkList() (err error) {
	if !c.sets("list") {
		return nil
	}
	for _, name := range c.givenNames() {
		if !slices.Contains([]string{"list", "json", "run"}, name) && c.sets(name) {
			return fmt.Errorf("-%s means nothing with -list, which tries nothing", name)
		}
	}
	return nil
}

// checkOrder returns an error if a flag for a list of orders comes with a UUID, or the reverse.
func (c *call) checkOrder(one bool) error {
	if !one && c.sets("wait") {
		return errors.New("-wait means nothing without the UUID of an order")
	}
	for _, name := range c.givenNames() {
		if one && slices.Contains([]string{"session", "state", "attention", "before", "n"}, name) {
			return fmt.Errorf("-%s means nothing with the UUID of an order: it chooses what a list has", name)
		}
	}
	return nil
}

// givenNames returns the flags that the arguments set, sorted.
func (c *call) givenNames() (names []string) {
	for name := range c.given {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
