package main

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// What names a command names one that exists, and the usage names all.
func TestTheUsageNamesEveryCommand(t *testing.T) {
	_, list, _ := strings.Cut(usage, "\n\n")
	var listed []string
	for _, m := range regexp.MustCompile(`(?m)(?:^ |  ) ([a-z]+) {2,}`).FindAllStringSubmatch(list, -1) {
		if m[1] != "help" {
			listed = append(listed, m[1])
		}
	}
	assert.ElementsMatch(t, slices.Collect(maps.Keys(commands)), listed,
		"the usage in main.go names other commands")
	comment, _, _ := strings.Cut(string(must.Get(os.ReadFile("main.go"))(t)), "\npackage main\n")
	lines := strings.Join(regexp.MustCompile(`(?m)^  .*\n`).FindAllString(list, -1), "")
	table := "\n//" + strings.ReplaceAll("\n"+lines, "\n  ", "\n//\t") + "//\n"
	assert.True(t, strings.Contains(comment, table),
		"the package comment in main.go must list the commands as the usage does:\n%s", lines)

	named := map[string][]string{
		"alone in meaning.go":             slices.Collect(maps.Keys(alone)),
		"needed in meaning.go":            slices.Collect(maps.Keys(needed)),
		"refusedPairs in meaning_test.go": slices.Collect(maps.Keys(refusedPairs)),
		"refusedAlone in meaning_test.go": slices.Collect(maps.Keys(refusedAlone)),
		"variables in environment.go":     nil,
	}
	for name := range variables {
		if command, _, ofOne := strings.Cut(name, " "); ofOne {
			named["variables in environment.go"] = append(named["variables in environment.go"], command)
		}
	}
	for where, names := range named {
		for _, name := range names {
			_, exists := commands[name]
			assert.True(t, exists, "%s names the command %s, which does not exist", where, name)
		}
	}
}
