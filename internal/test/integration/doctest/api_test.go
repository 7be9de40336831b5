package doctest

import (
	"bytes"
	"flag"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

var updateAPI = flag.Bool("update-api", false, "write the golden files of the exported API anew")

// A studio's code depends on the exported names and their shape. A change of
// them is a decision, and this test makes it a visible one.
func TestExportedAPI(t *testing.T) {
	for _, dir := range publicPackages(t) {
		t.Run(dir, func(t *testing.T) {
			file := goldenAPI(dir)
			got := exportedAPI(t, dir)
			if *updateAPI {
				require.NoError(t, os.MkdirAll(filepath.Join(root, path.Dir(file)), 0o755))
				require.NoError(t, os.WriteFile(filepath.Join(root, file), []byte(got), 0o644))
			}
			want, _ := os.ReadFile(filepath.Join(root, file)) // none: everything is new
			was, is := strings.Split(string(want), "\n"), strings.Split(got, "\n")
			gone := slices.DeleteFunc(slices.Clone(was), func(line string) bool { return slices.Contains(is, line) })
			added := slices.DeleteFunc(is, func(line string) bool { return slices.Contains(was, line) })
			if got != string(want) {
				t.Errorf("the exported API is not the one of %s:\n- %s\n+ %s\nIf that is meant, record it: %s",
					file, strings.Join(gone, "\n- "), strings.Join(added, "\n+ "),
					"go -C internal/test/integration/doctest test -run TestExportedAPI -update-api .")
			}
		})
	}
}

// publicPackages returns the directories of the packages of the root module that others can import.
func publicPackages(t *testing.T) (dirs []string) {
	t.Helper()
	require.NoError(t, fs.WalkDir(os.DirFS(root), ".", func(dir string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		_, module := os.Stat(filepath.Join(root, dir, "go.mod"))
		hidden := dir != "." && strings.HasPrefix(entry.Name(), ".")
		if hidden || dir != "." && module == nil ||
			slices.Contains([]string{"internal", "cmd", "examples", "testdata"}, entry.Name()) {
			return fs.SkipDir
		}
		if len(sourcesOf(t, dir)) > 0 {
			dirs = append(dirs, dir)
		}
		return nil
	}))
	require.Contains(t, dirs, "ramptest/control")
	return dirs
}

// core are the packages that a server needs to connect a game. All other public packages are the kit. What a
// version promises is not the same for both: see docs/compatibility.md.
var core = []string{".", "rampsql", "rampproof"}

// goldenAPI returns the file with the exported names of a package.
func goldenAPI(dir string) string {
	part := "kit"
	if slices.Contains(core, dir) {
		part = "core"
	}
	name := strings.Replace(dir, ".", "ramp", 1)
	return "testdata/api/" + part + "/" + strings.ReplaceAll(name, "/", "-") + ".txt"
}

// docs/compatibility.md lists the golden file of each public package, and no other, and there is no other.
func TestThePromiseNamesEveryPackage(t *testing.T) {
	var want, listed, there []string
	for _, dir := range publicPackages(t) {
		want = append(want, goldenAPI(dir))
	}
	rows := regexp.MustCompile(`(?m)^\| .* \| (core|kit) \| .*\(\.\./(\S+\.txt)\) \|$`)
	for _, row := range rows.FindAllStringSubmatch(read(t, "docs/compatibility.md"), -1) {
		listed = append(listed, row[2])
		assert.Equal(t, row[1], path.Base(path.Dir(row[2])))
	}
	assert.ElementsMatch(t, want, listed)
	for _, file := range must.Get(filepath.Glob(filepath.Join(root, "testdata/api/*/*")))(t) {
		there = append(there, filepath.ToSlash(must.Get(filepath.Rel(root, file))(t)))
	}
	assert.ElementsMatch(t, want, there)
}

// Who imports the core links nothing of the kit.
func TestTheCoreStandsAlone(t *testing.T) {
	t.Chdir(root)
	for _, dir := range core {
		for _, p := range goList(t, ".", "CGO_ENABLED=1", "./"+dir) {
			name, ours := strings.CutPrefix(p.ImportPath, module+"/")
			assert.True(t, !ours || slices.Contains(core, name) || strings.HasPrefix(name, "internal/"),
				"%s links %s", dir, p.ImportPath)
		}
	}
}

// exportedAPI returns every exported declaration of a package without comments
// and blank lines, in the order of go doc.
func exportedAPI(t *testing.T, dir string) string {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range sourcesOf(t, dir) {
		name = path.Join(dir, name)
		files = append(files,
			must.Get(parser.ParseFile(fset, name, read(t, name), parser.SkipObjectResolution|parser.ParseComments))(t))
	}
	pkg := must.Get(doc.NewFromFiles(fset, files, path.Join(module, dir)))(t)

	var out strings.Builder
	write := func(node ast.Node) {
		ast.Inspect(node, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GenDecl:
				n.Doc = nil
			case *ast.FuncDecl:
				n.Doc, n.Body = nil, nil
			case *ast.Field:
				n.Doc, n.Comment = nil, nil
			case *ast.TypeSpec:
				n.Doc, n.Comment = nil, nil
			case *ast.ValueSpec:
				n.Doc, n.Comment = nil, nil
			}
			return true
		})
		var b bytes.Buffer
		require.NoError(t, (&printer.Config{Mode: printer.RawFormat, Tabwidth: 1}).Fprint(&b, fset, node))
		for line := range strings.Lines(b.String()) {
			if line := strings.TrimRight(line, "\n"); strings.TrimSpace(line) != "" {
				out.WriteString(spaces.ReplaceAllString(line, "$1 ") + "\n")
			}
		}
	}
	list := func(values []*doc.Value, funcs []*doc.Func) {
		for _, v := range values {
			write(v.Decl)
		}
		for _, f := range funcs {
			write(f.Decl)
		}
	}
	list(append(pkg.Consts, pkg.Vars...), pkg.Funcs)
	for _, kind := range pkg.Types {
		write(kind.Decl)
		list(append(kind.Consts, kind.Vars...), append(kind.Funcs, kind.Methods...))
	}
	require.Contains(t, out.String(), "func ")
	return out.String()
}

// spaces match the alignment of columns, which changes with a neighboring line.
var spaces = regexp.MustCompile(`(\S)[ \t]+`)

// Types, functions, methods, fields, constants and variables: a comment counts for each name
// in the lines below it up to an empty one, and that of a group for all names in it. Outside of
// the root, the comment of a type may speak for its fields.
func TestEveryExportedNameIsDocumented(t *testing.T) {
	declared := regexp.MustCompile(`^(?:func (?:\(\w* ?\*?[A-Z]\w*\) )?|type |var |const |\t)([A-Z]\w*)[ ,(]`)
	opens := regexp.MustCompile(`^(?:type [A-Z].* (?:struct|interface) \{|(const|var) \()$`)
	seen := 0
	for _, dir := range publicPackages(t) {
		for _, file := range sourcesOf(t, dir) {
			file = path.Join(dir, file)
			documented, group, inside := false, false, false
			for _, line := range strings.Split(read(t, file), "\n") {
				documented = line != "" && (documented || strings.Contains(line, "//"))
				if m := declared.FindStringSubmatch(line); m != nil && (inside && dir == "." || line[0] != '\t') {
					seen++
					assert.True(t, documented || group, "%s: %s has no doc comment", file, m[1])
				}
				if m := opens.FindStringSubmatch(line); m != nil {
					inside, group, documented = true, m[1] != "" && documented, false
				} else if line == ")" || line == "}" {
					inside, group = false, false
				}
			}
		}
	}
	require.Greater(t, seen, 500, "the check sees the packages")
}
