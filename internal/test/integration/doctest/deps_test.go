package doctest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

const module = "github.com/token-ramp/ramp-go"

// Importing the package must not link a node. These are the allowed imports, and
// the modules behind them.
var (
	directImports = []string{
		"github.com/ethereum/go-ethereum/common",
		"github.com/ethereum/go-ethereum/common/hexutil",
		"github.com/ethereum/go-ethereum/crypto",
		"github.com/google/uuid",
		module + "/internal/redact", module + "/internal/rollback", module + "/internal/storable",
		module + "/internal/transport", module + "/internal/typed", module + "/internal/wire",
	}
	ourPackages = []string{
		module, module + "/internal/redact", module + "/internal/rollback", module + "/internal/storable",
		module + "/internal/transport", module + "/internal/typed", module + "/internal/wire",
	}
	linkedModules = []string{
		module,
		"github.com/ethereum/go-ethereum",
		"github.com/google/uuid",
		"github.com/ProjectZKM/Ziren/crates/go-runtime/zkvm_runtime", // go-ethereum's, for one platform
		"github.com/decred/dcrd/dcrec/secp256k1/v4",                  // go-ethereum's, without cgo
		"github.com/holiman/uint256",                                 // go-ethereum's
		"golang.org/x/sys",                                           // go-ethereum's
	}
	linkedEthereum = []string{
		"common", "common/hexutil", "common/math", "crypto", "crypto/keccak",
		"crypto/secp256k1", "rlp", "rlp/internal/rlpstruct",
	}
)

type listed struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Module     *struct{ Path string }
}

// goList returns the packages that a pattern needs, without their tests, as the
// module in dir builds them.
func goList(t *testing.T, dir, env, pattern string) []listed {
	t.Helper()
	command := exec.Command("go", "list", "-deps", "-json=ImportPath,Standard,Imports,Module", pattern)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly", env)
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	require.NoError(t, err, stderr.String())
	var all []listed
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var p listed
		require.NoError(t, d.Decode(&p))
		all = append(all, p)
	}
	return all
}

func TestImportingCostsNoNode(t *testing.T) {
	for _, linked := range linkedModules[1:] {
		assert.True(t, strings.Contains(read(t, "docs/security.md"), linked), "docs/security.md has no %s", linked)
	}
	t.Chdir(root)
	for name, build := range map[string]struct{ dir, env string }{
		"cgo":                         {".", "CGO_ENABLED=1"},
		"without cgo":                 {".", "CGO_ENABLED=0"},
		"with the newest go-ethereum": {"internal/test/newest", "CGO_ENABLED=1"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat(filepath.Join(build.dir, "go.mod")); err != nil {
				t.Skip("not a clone of the repository")
			}
			seen := map[string]bool{}
			for _, p := range goList(t, build.dir, build.env, module) {
				seen[p.ImportPath] = true
				if p.Standard {
					continue
				}
				require.NotNil(t, p.Module, p.ImportPath)
				assert.Contains(t, linkedModules, p.Module.Path, "%s comes from another module", p.ImportPath)
				if name, ok := strings.CutPrefix(p.ImportPath, "github.com/ethereum/go-ethereum/"); ok {
					assert.Contains(t, linkedEthereum, name, "a heavy package of go-ethereum is linked")
				}
				if p.Module.Path != module {
					continue
				}
				assert.Contains(t, ourPackages, p.ImportPath, "another package of the module is linked")
				for _, path := range p.Imports {
					if strings.Contains(path, ".") { // not of the standard library
						assert.Contains(t, directImports, path)
					}
					// uint256, which go-ethereum needs, imports database/sql, but nothing of ours does.
					assert.NotContains(t, []string{"html", "regexp", "database/sql", "database/sql/driver"}, path,
						"%s imports it", p.ImportPath)
				}
			}
			assert.True(t, seen[module] && seen["github.com/ethereum/go-ethereum/crypto"] &&
				seen["github.com/google/uuid"],
				"go list did not see the package")
			assert.False(t, seen["html"], "html and its names of 2,231 characters are linked")
			for _, heavy := range []string{"rpc", "ethclient", "core/types", "accounts/keystore", "log", "params"} {
				assert.False(t, seen["github.com/ethereum/go-ethereum/"+heavy], heavy)
			}
		})
	}
}

// Only tests may import testify.
func TestTestifyStaysInTests(t *testing.T) {
	t.Chdir(root)
	for _, p := range goList(t, ".", "CGO_ENABLED=1", "./...") {
		assert.False(t, strings.HasPrefix(p.ImportPath, "github.com/stretchr/"), "%s is linked", p.ImportPath)
	}

	// go list leaves out what a build tag leaves out; the sources do not.
	found, _ := exec.Command("git", "grep", "-l", `"github.com/stretchr/`, "--", "*.go",
		":!*_test.go").Output() // an error if there are none
	assert.Empty(t, string(found))
	assert.NotEmpty(t,
		must.Get(exec.Command("git", "grep", "-l", `"github.com/stretchr/`, "--", "*_test.go").Output())(t))
}

func TestGoModLocksNobodyOut(t *testing.T) {
	text := read(t, "go.mod")
	assert.Contains(t, text, "module "+module+"\n\ngo 1.25.0\n\nrequire",
		"the oldest release that docs/compatibility.md promises, and no toolchain")
	assert.NotRegexp(t, `(?m)^(toolchain|replace|exclude|retract)`, text, "an importer's build would not see it")
	var direct []string
	for _, m := range regexp.MustCompile(`(?m)^(?:require)?\s+(\S+) v\S+$`).FindAllStringSubmatch(text,
		-1) { // those without a comment
		direct = append(direct, m[1])
	}
	assert.Equal(t,
		[]string{"github.com/ethereum/go-ethereum", "github.com/google/uuid", "github.com/stretchr/testify"}, direct)
}

// What travels in a context is a channel that a reader does not expect.
func TestOnlyTheRollbackTravelsInAContext(t *testing.T) {
	using := regexp.MustCompile(`context\.WithValue\(|\b[cC](?:on)?te?xt?(?:\(\))?\.Value\(`)
	found := 0
	for _, dir := range append(publicPackages(t), "internal/rollback", "internal/evidence", "internal/redact") {
		for _, file := range sourcesOf(t, dir) {
			if using.MatchString(read(t, path.Join(dir, file))) && file != "deadline.go" { // which passes it on
				found++
				assert.Equal(t, "internal/rollback", dir, file)
			}
		}
	}
	require.Equal(t, 3, found, "for a rollback, for a failure, and for a visit")
}
