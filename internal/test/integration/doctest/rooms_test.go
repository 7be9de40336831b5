package doctest

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// delivering is the file that delivers results.
const delivering = "./ramptest/internal/delivery/delivery.go"

// How a result is delivered must be read without the rest of the emulator. A floor is what a file stands on: the
// longest chain of names that one file uses and the next one declares. It is counted twice: with each other
// package of the emulator as one room, of which a reader knows what its names promise, and with each of their
// files, as if the reader opened them all.
func TestDeliveringIsReadOnSixFloors(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes longer than -short allows")
	}
	packages, load := modulePackages(t, ".")
	files, rooms := map[string]map[string]bool{}, map[string]map[string]bool{}
	for path, p := range packages {
		if !strings.HasPrefix(path, "./ramptest") {
			continue
		}
		assert.LessOrEqual(t, len(p.GoFiles), 25, "%s: divide it where it has two subjects", path)
		for _, use := range usesOf(t, path, p, load) {
			user, owner := path+"/"+use.user, use.in+"/"+use.owner
			enter(files, user, owner)
			if use.in == path {
				enter(rooms, user, owner)
			} else {
				enter(rooms, user, use.in)
				enter(rooms, path, use.in)
			}
		}
	}
	require.Contains(t, files, delivering)
	below := longest(rooms, delivering)
	t.Logf("rooms: %s", strings.Join(below, "\n"))
	assert.LessOrEqual(t, len(below), 6, "floors: %v", below)
	below = longest(files, delivering)
	t.Logf("files: %s", strings.Join(below, "\n"))
	assert.LessOrEqual(t, len(below)-1, 6, "files below the first: %v", below)
}

func TestTheLongestChain(t *testing.T) {
	needs := map[string]map[string]bool{}
	for _, pair := range []string{"a b", "b c", "a c", "c d", "x d", "a a"} {
		user, owner, _ := strings.Cut(pair, " ")
		enter(needs, user, owner)
	}
	assert.Equal(t, []string{"a", "b", "c", "d"}, longest(needs, "a"))
	assert.Equal(t, []string{"x", "d"}, longest(needs, "x"))
}

// use is a name that a file of a package uses, and that a file of the same or another one declares.
type use struct{ user, in, owner string }

// usesOf returns the uses of names of the emulator in a package.
func usesOf(t *testing.T, path string, p modulePackage, load importer.Lookup) (uses []use) {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		file := filepath.Join(p.Dir, name)
		files = append(files, must.Get(parser.ParseFile(fset, file, nil, parser.SkipObjectResolution))(t))
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", load)}
	pkg, err := config.Check(p.ImportPath, fset, files, &info)
	require.NoError(t, err)
	fileOf := func(pos token.Pos) string { return filepath.Base(fset.Position(pos).Filename) }
	for ident, object := range info.Uses {
		if _, imported := object.(*types.PkgName); imported || object.Pkg() == nil {
			continue
		}
		in := path
		if object.Pkg() != pkg {
			in = "." + strings.TrimPrefix(object.Pkg().Path(), module)
		}
		if strings.HasPrefix(in, "./ramptest") {
			uses = append(uses, use{fileOf(ident.Pos()), in, fileOf(object.Pos())})
		}
	}
	return uses
}

func enter(needs map[string]map[string]bool, user, owner string) {
	if user == owner {
		return
	}
	if needs[user] == nil {
		needs[user] = map[string]bool{}
	}
	needs[user][owner] = true
}

// longest returns the longest chain that begins with a room. A circle, which TestFilesStandOnEachOther names, ends it.
func longest(needs map[string]map[string]bool, from string) (chain []string) {
	known := map[string][]string{}
	var below func(string) []string
	below = func(room string) []string {
		if chain, ok := known[room]; ok {
			return chain
		}
		var best []string
		known[room] = []string{room}
		for next := range needs[room] {
			if chain := below(next); len(chain) > len(best) || len(chain) == len(best) && chain[0] < best[0] {
				best = chain
			}
		}
		known[room] = append([]string{room}, best...)
		return known[room]
	}
	return below(from)
}
