package doctest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// In every module, a file should be readable with only the files below it in mind.
func TestFilesStandOnEachOther(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes longer than -short allows")
	}
	seen := map[string]bool{}
	for _, dir := range modules(t) {
		packages, load := modulePackages(t, dir)
		for path, p := range packages {
			seen[path] = true
			needs := fileNeeds(t, p.Dir, p.GoFiles, load)
			if circle := biggestCircle(needs); circle != nil {
				t.Errorf(`%s: %d files need each other: %s
Move declarations to the file of their subject, until a lower file names nothing of a higher one.
What to begin with:
%s`, path, len(circle), strings.Join(circle, " "), strings.Join(remedies(needs), "\n"))
			}
		}
	}
	for _, path := range []string{".", "./ramptest", "./examples/gameserver", "./internal/test/newest/bench"} {
		require.True(t, seen[path], path)
	}
}

func TestFloorsAreMeasured(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"top.go":    "package p\n\nfunc top() { middle() }\n",
		"middle.go": "package p\n\nfunc middle() { ground{}.method() }\n",
		"ground.go": "package p\n\ntype ground struct{ field int }\n\nfunc (ground) method() {}\n",
		"high.go":   "package p\n\nfunc high(g ground) int { return g.field + low }\n",
		"low.go":    "package p\n\nvar low int\n\nfunc lower() { top(); high(ground{}) }\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	needs := fileNeeds(t, dir, []string{"top.go", "middle.go", "ground.go"}, nil)
	assert.Equal(t, map[string]map[string][]string{
		"top.go": {"middle.go": {"middle"}}, "middle.go": {"ground.go": {"ground", "method"}},
	}, needs)
	assert.Empty(t, biggestCircle(needs))

	needs = fileNeeds(t, dir, []string{"top.go", "middle.go", "ground.go", "high.go", "low.go"}, nil)
	assert.Equal(t, []string{"high.go", "low.go"}, biggestCircle(needs))
	assert.Equal(t, []string{
		"without what high.go uses of low.go (low), a circle of 0 files",
		"without what low.go uses of high.go (high), a circle of 0 files",
	}, remedies(needs))
}

type modulePackage struct {
	ImportPath, Dir, Export                            string
	Module                                             *struct{ Main bool }
	GoFiles, IgnoredGoFiles, TestGoFiles, XTestGoFiles []string
}

// modulePackages returns the packages of the module in dir by their paths in the repository, and what loads
// a package that they import.
func modulePackages(t *testing.T, dir string) (map[string]modulePackage, importer.Lookup) {
	t.Helper()
	list := exec.Command("go", "list", "-deps", "-export",
		"-json=ImportPath,Dir,Export,Module,GoFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles", "./...")
	list.Dir, list.Env = filepath.Join(root, dir), append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly")
	var stderr strings.Builder
	list.Stderr = &stderr
	out, err := list.Output()
	require.NoError(t, err, stderr.String())
	packages, exports := map[string]modulePackage{}, map[string]string{}
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var p modulePackage
		require.NoError(t, d.Decode(&p))
		exports[p.ImportPath] = p.Export
		if p.Module != nil && p.Module.Main {
			packages["."+strings.TrimPrefix(p.ImportPath, module)] = p
		}
	}
	return packages, func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
}

// fileNeeds returns, for each file and each other file, which names that the other one
// declares it uses: types, functions, methods, fields, variables and constants.
func fileNeeds(t *testing.T, dir string, names []string, load importer.Lookup) map[string]map[string][]string {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		files = append(files,
			must.Get(parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution))(t))
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", load)}
	pkg, err := config.Check(dir, fset, files, &info)
	require.NoError(t, err)

	fileOf := func(pos token.Pos) string { return filepath.Base(fset.Position(pos).Filename) }
	needs := map[string]map[string][]string{}
	for ident, object := range info.Uses {
		user, owner := fileOf(ident.Pos()), fileOf(object.Pos())
		if object.Pkg() != pkg || user == owner {
			continue
		}
		if needs[user] == nil {
			needs[user] = map[string][]string{}
		}
		if !slices.Contains(needs[user][owner], object.Name()) {
			needs[user][owner] = append(needs[user][owner], object.Name())
			slices.Sort(needs[user][owner])
		}
	}
	return needs
}

// biggestCircle returns the files of the biggest circle, or none.
func biggestCircle(needs map[string]map[string][]string) (biggest []string) {
	reached := map[string]map[string]bool{} // from a file, the files it needs through any others
	for from := range needs {
		reached[from] = map[string]bool{}
		for next := slices.Collect(maps.Keys(needs[from])); len(next) > 0; {
			file := next[0]
			next = next[1:]
			if !reached[from][file] {
				reached[from][file] = true
				next = slices.AppendSeq(next, maps.Keys(needs[file]))
			}
		}
	}
	for _, from := range slices.Sorted(maps.Keys(reached)) {
		circle := slices.Sorted(maps.Keys(reached[from]))
		circle = slices.DeleteFunc(circle, func(to string) bool { return !reached[to][from] })
		if len(circle) > len(biggest) {
			biggest = circle
		}
	}
	return biggest
}

// remedies returns the five uses without which the biggest circle would be smallest.
func remedies(needs map[string]map[string][]string) (best []string) {
	type remedy struct {
		left, names int
		text        string
	}
	var all []remedy
	circle := biggestCircle(needs)
	for _, user := range circle {
		for _, owner := range circle {
			if names := needs[user][owner]; names != nil {
				delete(needs[user], owner)
				left := len(biggestCircle(needs))
				needs[user][owner] = names
				all = append(all,
					remedy{left, len(names), fmt.Sprintf("without what %s uses of %s (%s), a circle of %d files",
						user, owner, strings.Join(names, ", "), left)})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b remedy) int {
		return cmp.Or(cmp.Compare(a.left, b.left), cmp.Compare(a.names, b.names))
	})
	for _, r := range all[:min(5, len(all))] {
		best = append(best, r.text)
	}
	return best
}
