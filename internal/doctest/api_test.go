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

// Types, functions, methods, fields, constants and variables: a comment of the
// group counts for each name in it.
func TestEveryExportedNameIsDocumented(t *testing.T) {
	t.Chdir(root)
	fset := token.NewFileSet()
	seen := 0
	check := func(name *ast.Ident, comments ...*ast.CommentGroup) {
		if !name.IsExported() {
			return
		}
		seen++
		documented := slices.ContainsFunc(comments, func(c *ast.CommentGroup) bool { return strings.TrimSpace(c.Text()) != "" })
		assert.True(t, documented, "%s: %s has no doc comment", fset.Position(name.Pos()), name.Name)
	}
	fields := func(list *ast.FieldList) {
		var group *ast.CommentGroup // of the lines before, up to an empty one
		end := 0
		for _, field := range list.List {
			if field.Doc != nil || fset.Position(field.Pos()).Line != end+1 {
				group = field.Doc
			}
			end = fset.Position(field.End()).Line
			for _, name := range field.Names {
				check(name, field.Doc, field.Comment, group)
			}
		}
	}
	for _, file := range sources(t, fset) {
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if receiver := decl.Recv; receiver == nil || exportedReceiver(receiver.List[0].Type) {
					check(decl.Name, decl.Doc)
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					switch spec := spec.(type) {
					case *ast.ValueSpec:
						for _, name := range spec.Names {
							check(name, spec.Doc, spec.Comment, decl.Doc)
						}
					case *ast.TypeSpec:
						check(spec.Name, spec.Doc, decl.Doc)
						if !spec.Name.IsExported() {
							continue
						}
						switch kind := spec.Type.(type) {
						case *ast.StructType:
							fields(kind.Fields)
						case *ast.InterfaceType:
							fields(kind.Methods)
						}
					}
				}
			}
		}
	}
	require.Greater(t, seen, 400, "the check sees the package")
}

func exportedReceiver(kind ast.Expr) bool {
	if pointer, ok := kind.(*ast.StarExpr); ok {
		kind = pointer.X
	}
	name, ok := kind.(*ast.Ident)
	return ok && name.IsExported()
}
