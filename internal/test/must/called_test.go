package must_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// forgets lists the statements of a file that call Get, or the must of an example, and give no test to what it
// returns. They compile, and check nothing.
func forgets(t *testing.T, file string, text any) (list []string) {
	t.Helper()
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, text, parser.SkipObjectResolution)
	require.NoError(t, err)
	ast.Inspect(parsed, func(n ast.Node) bool {
		var dropped ast.Expr
		switch n := n.(type) {
		case *ast.ExprStmt:
			dropped = n.X
		case *ast.AssignStmt:
			if name, ok := n.Lhs[0].(*ast.Ident); ok && name.Name == "_" {
				dropped = n.Rhs[0]
			}
		}
		if call, ok := dropped.(*ast.CallExpr); ok && isMust(call.Fun) {
			list = append(list, fset.Position(call.Pos()).String())
		}
		return true
	})
	return list
}

func isMust(f ast.Expr) bool {
	switch f := f.(type) {
	case *ast.Ident:
		return f.Name == "must"
	case *ast.SelectorExpr:
		from, ok := f.X.(*ast.Ident)
		return ok && from.Name == "must" && f.Sel.Name == "Get"
	}
	return false
}

func TestEachTestIsGivenToGet(t *testing.T) {
	for statement, n := range map[string]int{
		"must.Get(f())": 1, "must(f())": 1, "_ = must.Get(f())": 1,
		"must.Get(f())(t)": 0, "must(f())(t)": 0, "_ = must.Get(f())(t)": 0, "x := must.Get(f())(t)": 0,
	} {
		assert.Len(t, forgets(t, "a.go", "package a\nfunc a() {\n"+statement+"\n}"), n, statement)
	}
	root, files := filepath.Join("..", "..", ".."), 0
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		ofTests := strings.HasSuffix(path, "_test.go") ||
			strings.HasSuffix(path, ".go") && strings.HasPrefix(path, filepath.Join(root, "internal", "test"))
		if err == nil && ofTests {
			files++
			assert.Empty(t, forgets(t, path, nil))
		}
		return err
	}))
	assert.Greater(t, files, 100)
}
