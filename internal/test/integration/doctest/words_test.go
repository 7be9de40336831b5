package doctest

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Words that a reader has to parse twice, or that are not American English. Move
// one from the second list to the first when no file of the module has it.
var (
	avoidedEverywhere = []string{"ours to blame", "turns callers away", "stands for its default", "what it is for",
		"for ever ",
		"is no news", "be it away", "said there", "trying again",
		"behaviour", "colour", "favour", "honour", "neighbour", "recognis", "organis", "cancelled",
		"cancelling", "whilst",
		"does not show", "as it came", "is away", "says whether", "what became of", "what becomes of",
		"person has to look",
		"goes otherwise", "brings about", "one's own", "lets its owner", "no order is about", "written at once"}
	avoidedInThePackage = []string{"as received", "look-up"}
)

func TestTheWordsAreEasyToRead(t *testing.T) {
	t.Chdir(root)
	seen := map[string]int{}
	require.NoError(t, filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == "node_modules" || name != "." && strings.HasPrefix(name, ".")):
			return fs.SkipDir
		case !slices.Contains([]string{".go", ".md", ".html", ".sql"}, filepath.Ext(name)), name == "words_test.go":
			return nil
		}
		seen[filepath.Ext(name)]++
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		// A phrase may be broken over two lines of a comment.
		flat := strings.ToLower(strings.Join(strings.Fields(string(text)), " "))
		flat = strings.ReplaceAll(strings.ReplaceAll(flat, " // ", " "), " -- ", " ")
		avoided := avoidedEverywhere
		if filepath.Dir(path) == "." && filepath.Ext(name) == ".go" {
			avoided = slices.Concat(avoidedEverywhere, avoidedInThePackage)
		}
		for _, words := range avoided {
			assert.False(t, strings.Contains(flat, words), "%s: %q", path, words)
		}
		return nil
	}))
	require.Greater(t, seen[".go"], 200)
	require.NotZero(t, seen[".md"]*seen[".html"]*seen[".sql"])
}
