package doctest

import (
	"go/ast"
	"go/build"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5" // comments link to its names
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// goPackage is what doc links of one package can lead to.
type goPackage struct {
	names   map[string]bool   // "Name", or "Type.Name" for a method or a field
	imports map[string]string // paths by name
}

// goPackages are packages by folder and name.
type goPackages map[string]*goPackage

func (all goPackages) add(folder string, file *ast.File) *goPackage {
	key := folder + " " + file.Name.Name
	p := all[key]
	if p == nil {
		p = &goPackage{names: map[string]bool{}, imports: map[string]string{}}
		all[key] = p
	}
	for _, spec := range file.Imports {
		at, _ := strconv.Unquote(spec.Path.Value) // the parser has accepted it
		if spec.Name != nil {
			p.imports[spec.Name.Name] = at
			continue
		}
		name := path.Base(at)
		if strings.Trim(name, "v0123456789") == "" { // a major version
			name = path.Base(path.Dir(at))
		}
		p.imports[strings.TrimSuffix(name, "-go")] = at
	}
	of := "" // the type whose members are visited
	ast.Inspect(file, func(node ast.Node) bool {
		var names []*ast.Ident
		in := ""
		switch n := node.(type) {
		case *ast.FuncDecl:
			names = []*ast.Ident{n.Name}
			if n.Recv != nil {
				in, _, _ = strings.Cut(strings.TrimPrefix(types.ExprString(n.Recv.List[0].Type), "*"), "[")
			}
		case *ast.TypeSpec:
			of = n.Name.Name
			p.names[of] = true
			return true
		case *ast.ValueSpec:
			names = n.Names
		case *ast.Field:
			names, in = n.Names, of
		default:
			return true
		}
		for _, name := range names {
			p.names[strings.TrimPrefix(in+"."+name.Name, ".")] = true
		}
		return false
	})
	return p
}

// imported returns the package that an importer's folder imports under a path.
func (all goPackages) imported(t *testing.T, folder, at string) *goPackage {
	t.Helper()
	if p := all[at]; p != nil {
		return p
	}
	folder = must.Get(filepath.Abs(folder))(t)
	found := must.Get(build.Import(at, folder, 0))(t)
	for _, name := range found.GoFiles {
		all[at] = all.add(at,
			must.Get(parser.ParseFile(token.NewFileSet(), filepath.Join(found.Dir, name), nil,
				parser.SkipObjectResolution))(t))
	}
	return all[at]
}

// docLink matches a link to an exported name, as package go/doc/comment describes it.
var docLink = regexp.MustCompile(`(?m)(?:^|[\s("])\[\*?(?:([a-z]\w*)\.)?([A-Z]\w*(?:\.[A-Z]\w*)?)\](?:$|[\s[:punct:]])`)

// brokenDocLinks returns the doc links in the comments of a file that lead nowhere.
func (all goPackages) brokenDocLinks(t *testing.T, folder string, file *ast.File) (checked int, broken []string) {
	t.Helper()
	own := all[folder+" "+file.Name.Name]
	for _, group := range file.Comments {
		for _, m := range docLink.FindAllStringSubmatch(group.Text(), -1) {
			checked++
			target, from := own, m[1]
			if from != "" {
				at, ok := own.imports[from]
				if !ok {
					at, ok = comment.DefaultLookupPackage(from)
				}
				if !ok {
					broken = append(broken, strings.TrimSpace(m[0]))
					continue
				}
				target = all.imported(t, folder, at)
			}
			if !target.names[m[2]] {
				broken = append(broken, strings.TrimSpace(m[0]))
			}
		}
	}
	return checked, broken
}

func TestEveryDocLinkLeadsSomewhere(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes longer than -short allows")
	}
	all, files := goPackages{}, map[string]*ast.File{}
	require.NoError(t, filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if entry.IsDir() && entry.Name() == "node_modules" {
			return filepath.SkipDir
		}
		if path.Ext(name) != ".go" {
			return err
		}
		files[name], err = parser.ParseFile(token.NewFileSet(), name, nil,
			parser.ParseComments|parser.SkipObjectResolution)
		if err == nil {
			all.add(filepath.Dir(name), files[name])
		}
		return err
	}))
	found := 0
	for name, file := range files {
		checked, broken := all.brokenDocLinks(t, filepath.Dir(name), file)
		assert.Empty(t, broken, name)
		found += checked
	}
	require.Greater(t, found, 300)
}

func TestABrokenDocLinkIsFound(t *testing.T) {
	const text = `package x

import "log/slog"

// A is like [A], [A.B], [*A], [slog.Default], [errors.Is] and [http.Get], see [A.C] and
// [D], but a[B] and [b] are no links.
type A struct{ B slog.Level } // [errors.Isnt]
`
	file := must.Get(parser.ParseFile(token.NewFileSet(), "x.go", text, parser.ParseComments))(t)
	all := goPackages{}
	all.add(".", file)
	checked, broken := all.brokenDocLinks(t, ".", file)
	assert.Equal(t, 9, checked)
	assert.Equal(t, []string{"[http.Get],", "[A.C]", "[D],", "[errors.Isnt]"}, broken)
}
