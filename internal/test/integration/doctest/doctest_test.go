// Package doctest checks the README and docs: their Go blocks compile and run, their
// shell commands run, their links work, and their lists of errors and tests are
// complete.
package doctest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

const root = "../../../.."

// documents returns the paths of the Markdown files that a reader of the root finds.
func documents(t *testing.T) []string {
	t.Helper()
	var paths []string
	for _, pattern := range []string{"*.md", "docs/*.md", "examples/*.md"} {
		found := must.Get(filepath.Glob(filepath.Join(root, pattern)))(t)
		require.NotEmpty(t, found)
		for _, file := range found {
			path := must.Get(filepath.Rel(root, file))(t)
			paths = append(paths, filepath.ToSlash(path))
		}
	}
	return paths
}

func read(t *testing.T, path string) string {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join(root, path)))(t)
	return string(text)
}

// block is a fenced block of a document.
type block struct {
	document string
	line     int // of its first line
	text     string
}

var fence = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")

func blocks(t *testing.T, document, language string) []block {
	t.Helper()
	text := read(t, document)
	var found []block
	for _, m := range fence.FindAllStringSubmatchIndex(text, -1) {
		if text[m[2]:m[3]] == language {
			found = append(found, block{document, 1 + strings.Count(text[:m[4]], "\n"), text[m[4]:m[5]]})
		}
	}
	return found
}

// The harness, blocks/blocks_test.go, has the declarations that the documents leave out. A
// comment "// block: TEXT" in it is the place of the block that begins with TEXT. The harness
// is compiled and run with the blocks in their places, so every block is tested as it is
// written.
var place = regexp.MustCompile(`(?m)^\s*// block: (.+)$`)

func TestGoBlocksCompileAndRun(t *testing.T) {
	t.Parallel()
	var found []block
	for _, document := range documents(t) {
		found = append(found, blocks(t, document, "go")...)
	}
	mounts := strings.ReplaceAll(read(t, "internal/test/integration/hosttest/mounts_test.go"), "\n\t", "\n")
	found = slices.DeleteFunc(found, func(b block) bool {
		begin, _, _ := strings.Cut(b.text, "\n")
		// See program_test.go, and internal/test/integration/hosttest, which has the frameworks.
		return begin == "package main" || b.document == "docs/frameworks.md" &&
			strings.Contains(mounts, "\n"+begin+"\n")
	})
	harness := must.Get(filepath.Abs("blocks/blocks_test.go"))(t)
	composed, overlay := filepath.Join(t.TempDir(), "blocks_test.go"), filepath.Join(t.TempDir(), "overlay.json")
	require.NoError(t,
		os.WriteFile(composed, compose(t, harness, string(must.Get(os.ReadFile(harness))(t)), found), 0o600))
	replace := must.Get(json.Marshal(map[string]map[string]string{"Replace": {harness: composed}}))(t)
	require.NoError(t, os.WriteFile(overlay, replace, 0o600))
	vet := "-vet=" // the checks that go test chooses
	if testing.Short() {
		vet = "-vet=off" // with an empty cache it reads all that the blocks import, SQLite too
	}
	out, err := exec.CommandContext(t.Context(), "go", "test", vet, "-short", "-count=1", "-tags", "docs",
		"-overlay", overlay, "./blocks").CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// compose puts blocks into their places in such a way that compiler errors name the line
// of the document.
func compose(t *testing.T, path, harness string, found []block) []byte {
	t.Helper()
	used := make([]bool, len(found))
	var composed strings.Builder
	end := 0
	for _, m := range place.FindAllStringSubmatchIndex(harness, -1) {
		begins := harness[m[2]:m[3]]
		i := slices.IndexFunc(found, func(b block) bool { return strings.HasPrefix(b.text, begins) })
		require.GreaterOrEqual(t, i, 0, "%s: no Go block of the document begins with %q", path, begins)
		require.False(t, used[i], "%s: two places for %q", path, begins)
		used[i] = true
		document := must.Get(filepath.Abs(filepath.Join(root, found[i].document)))(t)
		// Code that the documents show for PostgreSQL runs on SQLite, which needs no server.
		text := strings.ReplaceAll(found[i].text, "rampsql.PostgreSQL", "rampsql.SQLite")
		fmt.Fprintf(&composed, "%s\n//line %s:%d\n%s//line %s:%d", harness[end:m[0]], document, found[i].line, text,
			path, 1+strings.Count(harness[:m[1]], "\n"))
		end = m[1]
	}
	composed.WriteString(harness[end:])
	for i, b := range found {
		require.True(t, used[i], "%s:%d: this Go block is not tested: add \"// block: %s\" to %s",
			b.document, b.line, strings.SplitN(b.text, "\n", 2)[0], path)
	}
	return []byte(composed.String())
}

// This tests the test: a block that does not compile must be reported.
func TestABlockThatDoesNotCompileIsFound(t *testing.T) {
	folder := t.TempDir()
	composed := compose(t, "harness", "package x\n\nfunc f() {\n\t// block: missing(\n}\n",
		[]block{{"README.md", 7, "missing()\n"}})
	require.NoError(t, os.WriteFile(filepath.Join(folder, "x.go"), composed, 0o600))
	out, err := exec.CommandContext(t.Context(), "go", "vet", filepath.Join(folder, "x.go")).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "README.md:7: undefined: missing")
}
