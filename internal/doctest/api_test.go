package doctest

import (
	"bytes"
	"flag"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
)

var updateAPI = flag.Bool("update-api", false, "write testdata/api.txt anew")

// A studio's code depends on the exported names and their shape. A change of
// them is a decision, and this test makes it a visible one.
func TestExportedAPI(t *testing.T) {
	const file = "testdata/api.txt"
	got := exportedAPI(t)
	if *updateAPI {
		require.NoError(t, os.WriteFile(filepath.Join(root, file), []byte(got), 0o644))
	}
	want := read(t, file)
	was, is := strings.Split(want, "\n"), strings.Split(got, "\n")
	gone := slices.DeleteFunc(slices.Clone(was), func(line string) bool { return slices.Contains(is, line) })
	added := slices.DeleteFunc(is, func(line string) bool { return slices.Contains(was, line) })
	if got != want {
		t.Errorf("the exported API is not the one of %s:\n- %s\n+ %s\nIf that is meant, record it: go -C internal/doctest test -run TestExportedAPI -update-api .",
			file, strings.Join(gone, "\n- "), strings.Join(added, "\n+ "))
	}
}

// exportedAPI returns every exported declaration of the package without comments
// and blank lines, in the order of go doc.
func exportedAPI(t *testing.T) string {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range sources() {
		files = append(files, ramp.Must(parser.ParseFile(fset, name, read(t, name), parser.SkipObjectResolution|parser.ParseComments)))
	}
	pkg := ramp.Must(doc.NewFromFiles(fset, files, module))

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
	require.Contains(t, out.String(), "func NewHandler(")
	return out.String()
}

// spaces match the alignment of columns, which changes with a neighboring line.
var spaces = regexp.MustCompile(`(\S)[ \t]+`)

// Types, functions, methods, fields, constants and variables: a comment counts for each name
// in the lines below it up to an empty one, and that of a group for all names in it.
func TestEveryExportedNameIsDocumented(t *testing.T) {
	declared := regexp.MustCompile(`^(?:func (?:\(\w* ?\*?[A-Z]\w*\) )?|type |var |const |\t)([A-Z]\w*)[ ,(]`)
	opens := regexp.MustCompile(`^(?:type [A-Z].* (?:struct|interface) \{|(const|var) \()$`)
	seen := 0
	for _, file := range sources() {
		documented, group, inside := false, false, false
		for _, line := range strings.Split(read(t, file), "\n") {
			documented = line != "" && (documented || strings.Contains(line, "//"))
			if m := declared.FindStringSubmatch(line); m != nil && (inside || line[0] != '\t') {
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
	require.Greater(t, seen, 400, "the check sees the package")
}
