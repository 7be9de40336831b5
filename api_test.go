package ramp_test

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

	"github.com/stretchr/testify/require"
)

var updateAPI = flag.Bool("update-api", false, "write testdata/api.txt anew")

// A studio's code depends on the exported names and their shape. A change of
// them is a decision, and this test makes it a visible one.
func TestExportedAPI(t *testing.T) {
	const file = "testdata/api.txt"
	got := exportedAPI(t)
	if *updateAPI {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
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
	t.Errorf("the exported API is not the one of %s:\n%s\nIf that is meant, record it: go test -run TestExportedAPI -update-api .",
		file, difference.String())
}

// exportedAPI writes every exported declaration of the package without its
// comments, in the order of go doc, blank lines left out.
func exportedAPI(t *testing.T) string {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	names, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		files = append(files, file)
	}
	pkg, err := doc.NewFromFiles(fset, files, module)
	require.NoError(t, err)

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

// spaces are those that align a column, which a change of a neighbour moves.
var spaces = regexp.MustCompile(`(\S)[ \t]+`)
