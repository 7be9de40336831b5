package doctest

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// The packages have other files on each of these platforms, or an int of 32 bits. Types are checked without
// a compiler, which takes a second and not a minute; internal/test/elsewhere builds for all platforms.
func TestTypesFitOnOtherPlatforms(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes longer than -short allows")
	}
	t.Parallel()
	row := regexp.MustCompile("(?m)^\\| the command `ramp` \\|.*$").FindString(read(t, "docs/in-your-build.md"))
	for _, platform := range []string{"aix/ppc64", "darwin/arm64", "js/wasm", "plan9/386", "windows/386"} {
		t.Run(platform, func(t *testing.T) {
			wrong := typeErrors(t, platform)
			if strings.Contains(row, "`"+platform+"`") {
				require.NotEmpty(t, wrong, "docs/in-your-build.md names it")
			}
			for _, err := range wrong {
				command := strings.Contains(err.Error(), filepath.Join("cmd", "ramp"))
				assert.True(t, command && strings.Contains(row, "`"+platform+"`"), err)
			}
		})
	}
}

// typeErrors returns what is wrong with the packages of the root module on a platform.
func typeErrors(t *testing.T, platform string) (wrong []error) {
	t.Helper()
	system, processor, _ := strings.Cut(platform, "/")
	list := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,GoFiles,Standard,ImportMap", "./...")
	list.Dir = root
	list.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0", "GOWORK=off")
	out, err := list.Output()
	require.NoError(t, err)
	known := checked{"unsafe": types.Unsafe}
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var p struct {
			ImportPath, Dir string
			GoFiles         []string
			Standard        bool
			ImportMap       map[string]string
		}
		require.NoError(t, d.Decode(&p))
		if p.ImportPath == "unsafe" {
			continue
		}
		set := token.NewFileSet()
		var files []*ast.File
		for _, name := range p.GoFiles {
			files = append(files,
				must.Get(parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution))(t))
		}
		for path, vendored := range p.ImportMap {
			known[path] = known[vendored]
		}
		config := types.Config{Importer: known, IgnoreFuncBodies: p.Standard, Sizes: types.SizesFor("gc", processor),
			Error: func(err error) {
				if !p.Standard {
					wrong = append(wrong, err)
				}
			}}
		known[p.ImportPath], _ = config.Check(p.ImportPath, set, files, nil) // its errors are in wrong
	}
	require.Contains(t, known, module+"/ramptest/conformance")
	return wrong
}

// checked are packages, by the path of an import.
type checked map[string]*types.Package

func (c checked) Import(path string) (*types.Package, error) {
	if c[path] == nil {
		return nil, errors.New("it has not been checked before its importer: " + path)
	}
	return c[path], nil
}
