package ramptest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/ramptest"
)

// Each fault that a document shows for a command line is read, and each fault has a row in docs/testing.md.
func TestTheFaultsOfTheDocumentsAreRead(t *testing.T) {
	shown := regexp.MustCompile("`-fault ([^`]+)`")
	for _, document := range must.Get(filepath.Glob("../docs/*.md"))(t) {
		for _, m := range shown.FindAllStringSubmatch(string(must.Get(os.ReadFile(document))(t)), -1) {
			fault, err := ramptest.ParseFault(m[1])
			assert.NoError(t, err, document)
			assert.Equal(t, m[1], fault.String())
		}
	}
	// Each function that makes a fault has a row with its form, and the form is read.
	made := regexp.MustCompile(`(?s)^([A-Z]\w+)\([^)]*\) Fault \{.*newFault\((?:fmt\.Sprintf\()?"([a-z-]+)`)
	testing := string(must.Get(os.ReadFile("../docs/testing.md"))(t))
	rows := regexp.MustCompile("(?m)^\\| `.*`-fault .*$").FindAllString(testing, -1)
	found := 0
	for _, function := range strings.Split(string(must.Get(os.ReadFile("faults.go"))(t)), "\nfunc ") {
		m := made.FindStringSubmatch(function)
		if m == nil {
			continue
		}
		found++
		row := slices.IndexFunc(rows, func(row string) bool { return strings.Contains(row, "`"+m[1]+"(") })
		if assert.GreaterOrEqual(t, row, 0, "docs/testing.md has no row of %s", m[1]) {
			assert.Regexp(t, "`-fault "+m[2]+"[`=]", rows[row], m[1])
		}
		known := func(form [2]string) bool { name, _, _ := strings.Cut(form[0], "="); return name == m[2] }
		assert.True(t, slices.ContainsFunc(ramptest.FaultForms(), known), "faultForms has no row of %s", m[1])
	}
	assert.Len(t, ramptest.FaultForms(), found)
	// Each failure of a call between server and service, too.
	for _, method := range []string{"FailInitialize", "FailRPC", "FailAssets", "SetNode"} {
		assert.Contains(t, testing, "| `"+method+"(", "docs/testing.md")
	}
}
