package ramptest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/ramptest"
)

// Each fault that a document shows for a command line is read, and those that few tests think of have a row.
func TestTheFaultsOfTheDocumentsAreRead(t *testing.T) {
	shown := regexp.MustCompile("`-fault ([^`]+)`")
	seen := map[string]bool{}
	for _, document := range must.Get(filepath.Glob("../docs/*.md"))(t) {
		for _, m := range shown.FindAllStringSubmatch(string(must.Get(os.ReadFile(document))(t)), -1) {
			fault, err := ramptest.ParseFault(m[1])
			assert.NoError(t, err, document)
			assert.Equal(t, m[1], fault.String())
			seen[m[1]] = true
		}
	}
	for _, fault := range []ramptest.Fault{ramptest.ResultBeforeAnswer(), ramptest.Reorganized(),
		ramptest.ReorganizedUnnoticed(), ramptest.LostAnswer(ramptest.OnResult)} {
		assert.True(t, seen[fault.String()], "docs/testing.md has no row of %s", fault)
	}
}
