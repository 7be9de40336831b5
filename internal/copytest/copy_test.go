package copytest

import (
	"archive/zip"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	root = "../.."
	path = "github.com/token-ramp/ramp-go"
)

// version is a release that nobody has published. It is a new one in each run, because the
// go command keeps a release forever.
var version = fmt.Sprintf("v0.0.%d", time.Now().Unix())

// Each example works as a copy outside of the repository, with a released package and the
// version that the release script writes. The examples themselves are tested on databases,
// and vetted.
func TestCopiesOfTheExamplesWork(t *testing.T) {
	env := publish(t)
	for _, example := range examples(t) {
		t.Run(example, func(t *testing.T) {
			dir := t.TempDir()
			check(t, os.CopyFS(dir, os.DirFS(filepath.Join(root, "examples", example))))
			if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
				run(t, dir, env, "go", "mod", "edit", "-require", path+"@"+version) // as .ci/release does
				run(t, dir, env, "go", "mod", "edit", "-dropreplace", path)
			} else { // an example of the package's own module
				run(t, dir, env, "go", "mod", "init", "example.com/game")
			}
			run(t, dir, env, "go", "get", path+"@"+version)
			run(t, dir, env, "go", "mod", "tidy")
			run(t, dir, env, "go", "build", "./...")
			run(t, dir, env, "go", "test", "-short", "-vet=off", "./...")
		})
	}
}

// The commands of the documents work without a clone.
func TestCommandsOfTheReleaseWork(t *testing.T) {
	env := publish(t)
	bin := t.TempDir()
	run(t, bin, append(env, "GOBIN="+bin), "go", "install", path+"/cmd/ramp@latest")
	if out := run(t, bin, env, filepath.Join(bin, "ramp"), "version"); !strings.Contains(out, version) {
		t.Errorf("ramp version printed %q, not %s", out, version)
	}
	if out := run(t, bin, env, "go", "run", path+"/examples/quickstart@latest"); !strings.Contains(out, "burn it") {
		t.Errorf("the quickstart printed\n%s", out)
	}
}

// examples returns the folders of examples that have a program or a package.
func examples(t *testing.T) (found []string) {
	t.Helper()
	for _, pattern := range []string{"*", "keys/*", "stores/*"} {
		folders, err := filepath.Glob(filepath.Join(root, "examples", pattern))
		check(t, err)
		for _, folder := range folders {
			if files, _ := filepath.Glob(filepath.Join(folder, "*.go")); len(files) > 0 {
				name, err := filepath.Rel(filepath.Join(root, "examples"), folder)
				check(t, err)
				found = append(found, filepath.ToSlash(name))
			}
		}
	}
	if len(found) < 8 {
		t.Fatalf("there are only the examples %v", found)
	}
	return found
}

// publish puts the package into a module proxy in a folder, and returns the environment
// in which the go command uses it first.
func publish(t *testing.T) []string {
	t.Helper()
	proxy := t.TempDir()
	versions := filepath.Join(proxy, filepath.FromSlash(path), "@v")
	check(t, os.MkdirAll(versions, 0o755))
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	check(t, err)
	for name, text := range map[string]string{
		"list":            version + "\n",
		version + ".info": fmt.Sprintf(`{"Version":%q,"Time":%q}`, version, time.Now().UTC().Format(time.RFC3339)),
		version + ".mod":  string(mod),
	} {
		check(t, os.WriteFile(filepath.Join(versions, name), []byte(text), 0o644))
	}
	pack(t, filepath.Join(versions, version+".zip"))
	t.Cleanup(func() { // the go command's own copies
		cache := strings.TrimSpace(run(t, ".", os.Environ(), "go", "env", "GOMODCACHE"))
		check(t, os.RemoveAll(filepath.Join(cache, filepath.FromSlash(path)+"@"+version)))
		kept, err := filepath.Glob(filepath.Join(cache, "cache", "download", filepath.FromSlash(path), "@v", version+".*"))
		check(t, err)
		for _, file := range kept {
			check(t, os.Remove(file))
		}
	})
	others := strings.TrimSpace(run(t, ".", os.Environ(), "go", "env", "GOPROXY"))
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "RAMP_TEST_") })
	return append(env, "GOPROXY=file://"+filepath.ToSlash(proxy)+","+others, "GONOSUMDB="+path,
		"GOFLAGS=-modcacherw", "GOWORK=off") // files that the cleanup may delete
}

// pack writes the files of the repository's main module as a module proxy serves them.
func pack(t *testing.T, name string) {
	t.Helper()
	file, err := os.Create(name)
	check(t, err)
	defer file.Close()
	archive := zip.NewWriter(file)
	files := strings.Split(strings.TrimSpace(run(t, root, os.Environ(), "git", "ls-files", "--cached", "--others", "--exclude-standard")), "\n")
	for _, f := range files {
		if nested(f) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, f))
		if os.IsNotExist(err) { // deleted, and not yet committed
			continue
		}
		check(t, err)
		w, err := archive.Create(path + "@" + version + "/" + f)
		check(t, err)
		_, err = w.Write(text)
		check(t, err)
	}
	check(t, archive.Close())
}

// nested reports whether a file is in a module of its own.
func nested(file string) bool {
	for dir := filepath.Dir(file); dir != "."; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(root, dir, "go.mod")); err == nil {
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
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
