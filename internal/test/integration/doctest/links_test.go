package doctest

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

var (
	anyFence = regexp.MustCompile("(?ms)^```.*?^```$")
	link     = regexp.MustCompile(`(?s)\[[^\]]*\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
)

// anchors returns the anchors of a document's headings, as GitHub generates them: in lower
// case, without punctuation, and with hyphens for spaces.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(anyFence.ReplaceAllString(text, ""), -1) {
		title := link.ReplaceAllStringFunc(m[1], func(l string) string { return l[1:strings.Index(l, "]")] })
		slug := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', '0' <= r && r <= '9', 'a' <= r && r <= 'z', r > 127:
				return r
			}
			return -1
		}, strings.ToLower(title))
		name := slug
		for i := 1; found[name]; i++ {
			name = fmt.Sprintf("%s-%d", slug, i)
		}
		found[name] = true
	}
	return found
}

// brokenLinks returns the relative links of a document that have no target.
func brokenLinks(document, text string) (checked int, broken []string) {
	for _, m := range link.FindAllStringSubmatch(anyFence.ReplaceAllString(text, ""), -1) {
		if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
			continue
		}
		checked++
		file, anchor, _ := strings.Cut(m[1], "#")
		target := document
		if file != "" {
			target = path.Join(path.Dir(document), file)
		}
		full := filepath.Join(root, target)
		if _, err := os.Stat(full); err != nil {
			broken = append(broken, m[1])
			continue
		}
		if anchor == "" {
			continue
		}
		there, err := os.ReadFile(full)
		if err != nil || !anchors(string(there))[anchor] {
			broken = append(broken, m[1])
		}
	}
	return checked, broken
}

func TestEveryRelativeLinkLeadsSomewhere(t *testing.T) {
	all := 0
	for _, document := range documents(t) {
		checked, broken := brokenLinks(document, read(t, document))
		assert.Empty(t, broken, document)
		all += checked
	}
	require.Greater(t, all, 50, "the links are found")
}

// docs/README.md is the index.
func TestTheIndexLinksToEveryDocument(t *testing.T) {
	index := read(t, "docs/README.md")
	for _, document := range documents(t) {
		if link := filepath.ToSlash(must.Get(filepath.Rel("docs", document))(t)); document != "docs/README.md" {
			assert.Contains(t, index, "]("+link, "docs/README.md does not link to %s", document)
		}
	}
}

// In a clone and in the module of a game, go doc ramp.X finds the command ramp. So the documents
// say the whole path.
func TestGoDocFindsWhatTheDocumentsAskFor(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes longer than -short allows") // go doc is compiled before it is run first
	}
	found, asked := 0, regexp.MustCompile("`go doc (?:-\\w+ )*([^`]+)`")
	for _, document := range documents(t) {
		for _, m := range asked.FindAllStringSubmatch(read(t, document), -1) {
			found++
			require.True(t, strings.HasPrefix(m[1], module), "%s: go doc %s", document, m[1])
			out, err := exec.CommandContext(t.Context(), "go", "doc", m[1]).CombinedOutput()
			assert.NoError(t, err, "%s: go doc %s: %s", document, m[1], out)
		}
	}
	require.Greater(t, found, 3)
}

func TestABrokenLinkIsFound(t *testing.T) {
	_, broken := brokenLinks("docs/x.md",
		"[a](missing.md) [b](orders.md#no-such-heading) [c](../README.md#install) [d](https://example.com)")
	require.Equal(t, []string{"missing.md", "orders.md#no-such-heading"}, broken)
}

// Every section of the interface that a comment cites has a heading in
// docs/interface.md.
func TestEverySectionThatACommentCitesExists(t *testing.T) {
	cited := regexp.MustCompile(`\binterface,? (?:section )?(\d(?:\.\d)?)\b`)
	headings := regexp.MustCompile(`(?m)^#{2,3} (\d(?:\.\d)?)\.? `)
	sections := map[string]bool{}
	for _, m := range headings.FindAllStringSubmatch(read(t, "docs/interface.md"), -1) {
		sections[m[1]] = true
	}
	files := must.Get(filepath.Glob(root + "/*.go"))(t)
	for _, document := range documents(t) {
		files = append(files, filepath.Join(root, document))
	}
	found := 0
	for _, file := range files {
		text := must.Get(os.ReadFile(file))(t)
		for _, m := range cited.FindAllStringSubmatch(string(text), -1) {
			assert.True(t, sections[m[1]], "%s cites interface %s", filepath.Base(file), m[1])
			found++
		}
	}
	require.Greater(t, found, 50)
}

// The package documentation links to the documents on the public forge.
func TestThePackageLinksToDocumentsThatExist(t *testing.T) {
	forge := regexp.MustCompile(`https://github\.com/token-ramp/ramp-go/(?:blob|tree)/main/(\S+)`)
	linked := forge.FindAllStringSubmatch(read(t, "ramp.go"), -1)
	require.NotEmpty(t, linked)
	for _, m := range linked {
		_, err := os.Stat(filepath.Join(root, m[1]))
		assert.NoError(t, err)
	}
}
