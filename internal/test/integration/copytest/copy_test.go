package copytest

import (
	"archive/zip"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

const (
	root  = "../../../.."
	path  = "github.com/token-ramp/ramp-go"
	gonew = "golang.org/x/tools/cmd/gonew@v0.52.0"
)

// version is a release that nobody has published. It is a new one in each run, because the
// go command keeps a release forever.
var version = fmt.Sprintf("v0.0.%d", time.Now().Unix())

// longest matches the tests of examples that take longest. They read nothing outside of the example that another
// test of it does not read, so they need not run in a copy.
const longest = "^(TestTheJudge|TestEachTroubleRaises|TestBodies|TestEveryInterleaving)"

// Each example works as a copy outside of the repository, with a released package and the
// version that the release script writes. An example that is a module is copied by gonew,
// and each folder of another one as it is. The examples themselves are tested on databases,
// and vetted.
func TestCopiesOfTheExamplesWork(t *testing.T) {
	env := publish(t)
	modules := modules(t)
	for _, example := range examples(t) {
		t.Run(example, func(t *testing.T) {
			dir := t.TempDir()
			if slices.Contains(modules, "examples/"+example) {
				run(t, dir, env, "go", "run", gonew, path+"/examples/"+example+"@"+version, "example.com/game", dir)
				for _, needs := range needed(t, filepath.Join(dir, "go.mod")) {
					run(t, dir, env, "go", "mod", "edit", "-dropreplace", needs)
				}
			} else {
				require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join(root, "examples", example))))
				run(t, dir, env, "go", "mod", "init", "example.com/game")
				run(t, dir, env, "go", "get", path+"@"+version)
			}
			run(t, dir, env, "go", "mod", "tidy")
			run(t, dir, env, "go", "build", "-o", os.DevNull, "./...")
			if sources(t, filepath.Join(root, "examples", example)) { // else each folder of it is tested
				run(t, dir, env, "go", "test", "-short", "-vet=off", "-skip", longest, "./...")
			}
		})
	}
}

// The commands of the documents work without a clone.
func TestCommandsOfTheReleaseWork(t *testing.T) {
	env := publish(t)
	bin := t.TempDir()
	run(t, bin, append(env, "GOBIN="+bin), "go", "install", path+"/cmd/ramp@latest")
	require.Contains(t, run(t, bin, env, filepath.Join(bin, "ramp"), "version"), version)
}

// examples returns the folders of examples that are a program, a package or a module.
func examples(t *testing.T) (found []string) {
	t.Helper()
	modules := modules(t)
	for _, pattern := range []string{"*", "keys/*", "stores/*"} {
		for _, folder := range must.Get(filepath.Glob(filepath.Join(root, "examples", pattern)))(t) {
			name := filepath.ToSlash(must.Get(filepath.Rel(filepath.Join(root, "examples"), folder))(t))
			if sources(t, folder) || slices.Contains(modules, "examples/"+name) {
				found = append(found, name)
			}
		}
	}
	require.GreaterOrEqual(t, len(found), 8, found)
	return found
}

// sources reports whether a folder has files of Go.
func sources(t *testing.T, folder string) bool {
	t.Helper()
	return len(must.Get(filepath.Glob(filepath.Join(folder, "*.go")))(t)) > 0
}

// modules returns the folders of the examples that are modules, as examples/keys.
func modules(t *testing.T) (folders []string) {
	t.Helper()
	for _, file := range list(t, "examples") {
		if filepath.Base(file) == "go.mod" {
			folders = append(folders, filepath.ToSlash(filepath.Dir(file)))
		}
	}
	return folders
}

// publish puts the package, and each example that is a module, into a module proxy in a
// folder. It returns the environment in which the go command uses it first.
func publish(t *testing.T) []string {
	t.Helper()
	proxy := t.TempDir()
	for _, dir := range append(modules(t), ".") {
		module := strings.TrimSuffix(path+"/"+dir, "/.")
		versions := filepath.Join(proxy, filepath.FromSlash(module), "@v")
		require.NoError(t, os.MkdirAll(versions, 0o755))
		mod := filepath.Join(versions, version+".mod")
		require.NoError(t, os.WriteFile(mod, must.Get(os.ReadFile(filepath.Join(root, dir, "go.mod")))(t), 0o644))
		for _, needs := range needed(t, mod) { // as .ci/release does
			run(t, ".", os.Environ(), "go", "mod", "edit", "-require", needs+"@"+version, mod)
		}
		for name, text := range map[string]string{
			"list":            version + "\n",
			version + ".info": fmt.Sprintf(`{"Version":%q,"Time":%q}`, version, time.Now().UTC().Format(time.RFC3339)),
		} {
			require.NoError(t, os.WriteFile(filepath.Join(versions, name), []byte(text), 0o644))
		}
		pack(t, filepath.Join(versions, version), dir, module)
		t.Cleanup(func() { forget(t, module) })
	}
	others := strings.TrimSpace(run(t, ".", os.Environ(), "go", "env", "GOPROXY"))
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "RAMP_TEST_") })
	return append(env, "GOPROXY=file://"+filepath.ToSlash(proxy)+","+others, "GONOSUMDB="+path,
		"GOFLAGS=-modcacherw", "GOWORK=off") // files that the cleanup may delete
}

// needed returns the modules of this repository that a module requires.
func needed(t *testing.T, mod string) (modules []string) {
	t.Helper()
	text := must.Get(os.ReadFile(mod))(t)
	for _, m := range regexp.MustCompile(`(?m)(`+regexp.QuoteMeta(path)+`\S*) v\d`).FindAllSubmatch(text, -1) {
		modules = append(modules, string(m[1]))
	}
	return modules
}

// forget deletes what the go command has kept of a module.
func forget(t *testing.T, module string) {
	t.Helper()
	cache := strings.TrimSpace(run(t, ".", os.Environ(), "go", "env", "GOMODCACHE"))
	module = filepath.FromSlash(module)
	require.NoError(t, os.RemoveAll(filepath.Join(cache, module+"@"+version)))
	for _, file := range must.Get(filepath.Glob(filepath.Join(cache, "cache", "download", module, "@v",
		version+".*")))(t) {
		require.NoError(t, os.Remove(file))
	}
}

// pack writes name.zip with the files of the module in dir, as a module proxy serves them.
// Its go.mod is name.mod.
func pack(t *testing.T, name, dir, module string) {
	t.Helper()
	file := must.Get(os.Create(name + ".zip"))(t)
	defer file.Close()
	archive := zip.NewWriter(file)
	for _, f := range list(t, dir) {
		inside := must.Get(filepath.Rel(dir, f))(t)
		if nested(dir, inside) {
			continue
		}
		from := filepath.Join(root, f)
		if inside == "go.mod" {
			from = name + ".mod"
		}
		w := must.Get(archive.Create(module + "@" + version + "/" + filepath.ToSlash(inside)))(t)
		must.Get(w.Write(must.Get(os.ReadFile(from))(t)))(t)
	}
	require.NoError(t, archive.Close())
}

// list returns the files of the repository below dir, also those that are not yet committed.
func list(t *testing.T, dir string) []string {
	t.Helper()
	files := strings.Fields(run(t, root, os.Environ(), "git", "ls-files", "--cached", "--others",
		"--exclude-standard", dir))
	return slices.DeleteFunc(files, func(f string) bool {
		_, err := os.Stat(filepath.Join(root, f))
		return os.IsNotExist(err) // deleted, and not yet committed
	})
}

// nested reports whether a file of the module in dir is in another module.
func nested(dir, file string) bool {
	for folder := filepath.Dir(file); folder != "."; folder = filepath.Dir(folder) {
		if _, err := os.Stat(filepath.Join(root, dir, folder, "go.mod")); err == nil {
			return true
		}
	}
	return false
}

func run(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	command := exec.Command(name, args...)
	command.Dir, command.Env = dir, env
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s\n%s", command, out)
	return string(out)
}
