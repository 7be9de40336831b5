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
	t.Chdir(root)
	const file = "testdata/api.txt"
	got := exportedAPI(t)
	if *updateAPI {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want := ramp.Must(os.ReadFile(file))
	if got == string(want) {
		return
	}
	var difference strings.Builder
	was, is := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for _, line := range was {
		if !slices.Contains(is, line) {
			difference.WriteString("- " + line + "\n")
		}
	}
	for _, line := range is {
		if !slices.Contains(was, line) {
			difference.WriteString("+ " + line + "\n")
		}
	}
	t.Errorf("the exported API is not the one of %s:\n%s\nIf that is meant, record it: go -C internal/doctest test -run TestExportedAPI -update-api .",
		file, difference.String())
}

// exportedAPI returns every exported declaration of the package without comments
// and blank lines, in the order of go doc.
func exportedAPI(t *testing.T) string {
	t.Helper()
	fset := token.NewFileSet()
	pkg := ramp.Must(doc.NewFromFiles(fset, sources(t, fset), module))

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
	values := func(list []*doc.Value) {
		for _, v := range list {
			write(v.Decl)
		}
	}
	funcs := func(list []*doc.Func) {
		for _, f := range list {
			write(f.Decl)
		}
	}
	values(pkg.Consts)
	values(pkg.Vars)
	funcs(pkg.Funcs)
	for _, kind := range pkg.Types {
		write(kind.Decl)
		values(kind.Consts)
		values(kind.Vars)
		funcs(kind.Funcs)
		funcs(kind.Methods)
	}
	require.Contains(t, out.String(), "func NewHandler(")
	return out.String()
}

// spaces match the alignment of columns, which changes with a neighboring line.
var spaces = regexp.MustCompile(`(\S)[ \t]+`)

// sources parses the files of the package.
func sources(t *testing.T, fset *token.FileSet) (files []*ast.File) {
	t.Helper()
	names := ramp.Must(filepath.Glob("*.go"))
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file := ramp.Must(parser.ParseFile(fset, name, nil, parser.SkipObjectResolution|parser.ParseComments))
		files = append(files, file)
	}
	return files
}

// Types, functions, methods, fields, constants and variables: a comment counts for each name
// in the lines below it up to an empty one, and that of a group for all names in it.
func TestEveryExportedNameIsDocumented(t *testing.T) {
	declared := regexp.MustCompile(`^(?:func (?:\(\w* ?\*?[A-Z]\w*\) )?|type |var |const |\t)([A-Z]\w*)[ ,(]`)
	opens := regexp.MustCompile(`^(?:type [A-Z].* (?:struct|interface) \{|(const|var) \()$`)
	seen := 0
	for _, file := range ramp.Must(filepath.Glob(root + "/*.go")) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		documented, group, inside := false, false, false
		for _, line := range strings.Split(read(t, filepath.Base(file)), "\n") {
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
