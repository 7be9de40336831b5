package doctest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

const changelog = `# Changelog

## [Unreleased]

## [0.2.0] - 2026-12-01

### Added

- Something.

## [0.1.0] - 2026-11-21

- The first.

[Unreleased]: https://example.com/compare/v0.2.0...HEAD
[0.2.0]: https://example.com/releases/tag/v0.2.0
[0.1.0]: https://example.com/releases/tag/v0.1.0
`

// example returns the go.mod of an example that requires a version of the package.
func example(version string) string {
	return "module " + module + "/examples/keys\n\ngo 1.25.0\n\nrequire " + module + " " + version + "\n\nreplace " +
		module + " => ../..\n"
}

// repository is a clone of a repository with the release script, a changelog and
// a .ci/run that passes.
type repository struct {
	t   *testing.T
	dir string
}

func newRepository(t *testing.T) *repository {
	r := &repository{t, filepath.Join(t.TempDir(), "clone")}
	script := must.Get(os.ReadFile(".ci/release"))(t)
	r.write(".ci/release", string(script))
	r.write(".ci/run", "#!/bin/sh\n")
	r.write("CHANGELOG.md", changelog)
	r.write("examples/keys/go.mod", example("v0.2.0"))
	r.git("init", "-q", "--bare", "--template=", "../origin")
	r.git("init", "-q", "-b", "main", "--template=")
	r.git("remote", "add", "origin", "../origin")
	r.publish()
	return r
}

// copy copies a repository and its origin, which is faster than making them.
func (r *repository) copy(t *testing.T) *repository {
	folder := t.TempDir()
	require.NoError(t, os.CopyFS(folder, os.DirFS(filepath.Dir(r.dir))))
	return &repository{t, filepath.Join(folder, "clone")}
}

func (r *repository) write(name, text string) {
	r.t.Helper()
	name = filepath.Join(r.dir, name)
	require.NoError(r.t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(r.t, os.WriteFile(name, []byte(text), 0o755))
}

// run returns what a command wrote, without the settings of whoever tests.
func (r *repository) run(name string, args ...string) (string, error) {
	command := exec.Command(name, args...)
	command.Dir = r.dir
	command.Env = slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "GIT_") })
	command.Env = append(command.Env, "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a",
		"GIT_COMMITTER_EMAIL=a@example.com")
	out, err := command.CombinedOutput()
	return string(out), err
}

func (r *repository) git(args ...string) string {
	r.t.Helper()
	out, err := r.run("git", args...)
	require.NoError(r.t, err, "git %s: %s", args, out)
	return out
}

// publish commits everything, and pushes it.
func (r *repository) publish() {
	r.t.Helper()
	r.git("add", "-A")
	r.git("commit", "-q", "--allow-empty", "-m", "a change")
	r.git("push", "-q", "origin", "main")
}

func TestReleaseRejects(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes longer than -short allows")
	}
	t.Chdir(root)
	whole := newRepository(t)
	replaced := func(old, with string) func(*repository) {
		return func(r *repository) {
			require.Contains(r.t, changelog, old)
			r.write("CHANGELOG.md", strings.Replace(changelog, old, with, 1))
			r.publish()
		}
	}
	for name, tt := range map[string]struct {
		tag    string
		before func(*repository)
		want   string
	}{
		"a version without v":       {tag: "0.2.0", want: "not the tag of a version"},
		"a version of two numbers":  {tag: "v0.2", want: "not the tag of a version"},
		"a leading zero":            {tag: "v0.02.0", want: "not the tag of a version"},
		"more after the version":    {tag: "v0.2.0+build", want: "not the tag of a version"},
		"a version of another path": {tag: "v2.0.0", want: "not the tag of a version"},
		"a changed file": {before: func(r *repository) { r.write("CHANGELOG.md", changelog+"\n") },
			want: "not clean;"},
		"a file that git is told to hide": {before: func(r *repository) {
			r.git("config", "status.showUntrackedFiles", "no")
			r.write("new", "")
		}, want: "not clean;"},
		"a file that git does not know": {before: func(r *repository) { r.write("new", "") }, want: "not clean;"},
		"another branch": {before: func(r *repository) { r.git("checkout", "-q", "-b", "other") },
			want: "made on main"},
		"no branch": {before: func(r *repository) { r.git("checkout", "-q", "--detach") },
			want: "made on main"},
		"a tag that exists": {before: func(r *repository) { r.git("tag", "v0.2.0") }, want: "the tag v0.2.0 exists;"},
		"a tag that exists on origin only": {before: func(r *repository) {
			r.git("tag", "v0.2.0")
			r.git("push", "-q", "origin", "v0.2.0")
			r.git("tag", "-d", "v0.2.0")
		}, want: "exists on origin"},
		"a commit that is not on origin": {before: func(r *repository) {
			r.git("commit", "-q", "--allow-empty", "-m",
				"x")
		}, want: "not what origin has"},
		"an origin that is unreachable": {before: func(r *repository) {
			r.git("remote", "set-url", "origin",
				"nowhere")
		}, want: "origin cannot be asked"},
		"no origin": {before: func(r *repository) { r.git("remote", "remove", "origin") },
			want: "origin cannot be asked"},
		"a candidate without a section": {tag: "v0.2.0-rc.1", want: "no heading '## [0.2.0-rc.1]"},
		"a version without a section":   {tag: "v0.3.0", want: "no heading '## [0.3.0]"},
		"another version, but for a dot": {before: replaced("## [0.2.0]", "## [0x2.0]"),
			want: "no heading '## [0.2.0]"},
		"a section without a date": {before: replaced("[0.2.0] - 2026-12-01", "[0.2.0]"),
			want: "no heading '## [0.2.0]"},
		"an empty section": {before: replaced("- Something.", ""), want: "says nothing about 0.2.0"},
		"entries left under Unreleased": {before: replaced("[Unreleased]\n", "[Unreleased]\n\n- More.\n"),
			want: "entries under Unreleased"},
		"a heading without a link": {before: replaced("[0.2.0]: https", "[0.2.1]: https"), want: "no link for [0.2.0]"},
		"examples of another version": {before: func(r *repository) {
			r.write("examples/keys/go.mod", example("v0.1.0"))
			r.publish()
		}, want: "the examples now require v0.2.0; commit and push that"},
		"tests that fail": {before: func(r *repository) { r.write(".ci/run", "#!/bin/sh\nexit 1\n"); r.publish() },
			want: ".ci/run failed"},
		"tests that change the tree": {before: func(r *repository) {
			r.write(".ci/run", "#!/bin/sh\necho >left\n")
			r.publish()
		}, want: "not clean after .ci/run"},
		"a commit that is made during the tests": {before: func(r *repository) {
			r.write(".ci/run", "#!/bin/sh\ngit commit -q --allow-empty -m x\n")
			r.publish()
		}, want: "moved while .ci/run ran"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := whole.copy(t)
			if tt.before != nil {
				tt.before(r)
			}
			if tt.tag == "" {
				tt.tag = "v0.2.0"
			}
			tags := r.git("tag")
			out, err := r.run(".ci/release", tt.tag)
			require.Error(t, err, out)
			assert.Contains(t, out, tt.want)
			assert.Equal(t, tags, r.git("tag"), "a tag was made")
		})
	}
}

func TestReleaseMakesATag(t *testing.T) {
	t.Chdir(root)
	r := newRepository(t)
	out, err := r.run(".ci/release", "v0.2.0")
	require.NoError(t, err, out)
	assert.Contains(t, out, "\tgit push origin v0.2.0\n\tgit push origin examples/keys/v0.2.0\n")
	assert.Equal(t, "examples/keys/v0.2.0\nv0.2.0\n", r.git("tag"))
	assert.Equal(t, r.git("rev-parse", "HEAD"), r.git("rev-parse", "examples/keys/v0.2.0^{commit}"))
	assert.Equal(t, "tag\n", r.git("cat-file", "-t", "v0.2.0"), "the tag is annotated")
	assert.Equal(t, r.git("rev-parse", "HEAD"), r.git("rev-parse", "v0.2.0^{commit}"))
	message := r.git("tag", "-l", "--format=%(contents)", "v0.2.0")
	assert.Contains(t, message, "### Added\n\n- Something.")
	assert.NotContains(t, message, "The first.")
	assert.Empty(t, r.git("ls-remote", "--tags", "origin"), "nothing is published")
}

// modules lists the directories of every go.mod, from the root of the repository.
func modules(t *testing.T) (dirs []string) {
	list := exec.Command("git", "ls-files", "--full-name", ":(top)*go.mod")
	for file := range strings.Lines(string(must.Get(list.Output())(t))) {
		dirs = append(dirs, filepath.ToSlash(filepath.Dir(file)))
	}
	slices.Sort(dirs)
	return dirs
}

func TestEveryModuleIsKeptUpToDate(t *testing.T) {
	t.Chdir(root)
	text := must.Get(os.ReadFile(".github/dependabot.yml"))(t)
	var listed []string
	for _, entry := range strings.Split(string(text), "- package-ecosystem: ")[1:] {
		if !strings.HasPrefix(entry, "gomod\n") {
			continue
		}
		for _, match := range regexp.MustCompile(`(?m)^ +(?:directory:|-) /(\S*)$`).FindAllStringSubmatch(entry, -1) {
			listed = append(listed, filepath.ToSlash(filepath.Clean(match[1])))
		}
	}
	slices.Sort(listed)
	assert.Equal(t, modules(t), listed, "the modules of .github/dependabot.yml")
}

// examples/README.md names each example that gonew copies, which internal/test/integration/copytest does.
func TestTheExamplesNameEveryModule(t *testing.T) {
	t.Chdir(root)
	text := string(must.Get(os.ReadFile("examples/README.md"))(t))
	_, after, _ := strings.Cut(text, "These examples are modules")
	named, _, found := strings.Cut(after, "If you copy")
	require.True(t, found)
	for _, dir := range modules(t) {
		if example, ok := strings.CutPrefix(dir, "examples/"); ok {
			assert.Contains(t, named, example)
		}
	}
}

// examples/README.md has a line for each folder.
func TestEveryExampleHasALine(t *testing.T) {
	var folders, named []string
	for _, entry := range must.Get(os.ReadDir(filepath.Join(root, "examples")))(t) {
		if entry.IsDir() {
			folders = append(folders, entry.Name())
		}
	}
	rows := regexp.MustCompile(`(?m)^\| \[(\w+)\]`)
	for _, row := range rows.FindAllStringSubmatch(read(t, "examples/README.md"), -1) {
		named = append(named, row[1])
	}
	assert.ElementsMatch(t, folders, named)
}

// A nested module has the oldest go-ethereum, as the package requires it, or the
// newest, as internal/test/newest does; so the tests cover both and nothing between.
func TestModulesAgreeOnGoEthereum(t *testing.T) {
	t.Chdir(root)
	versions := map[string]string{}
	for _, dir := range modules(t) {
		text := string(must.Get(os.ReadFile(dir + "/go.mod"))(t))
		release := "1.25.0"
		if dir == "examples/nakama" { // a plugin has the release of its host
			release = "1.26.5"
		}
		assert.Contains(t, text, "\ngo "+release+"\n", dir)
		assert.NotContains(t, text, "\ntoolchain", dir)
		if m := regexp.MustCompile(`github.com/ethereum/go-ethereum (v\S+)`).FindStringSubmatch(text); m != nil {
			versions[dir] = m[1]
		}
	}
	oldest, newest := versions["."], versions["internal/test/newest"]
	require.NotEmpty(t, oldest)
	require.NotEmpty(t, newest)
	for dir, version := range versions {
		assert.Contains(t, []string{oldest, newest}, version, dir)
	}
}

// Every release of Go that is promised is one that the tests run on, here and on
// the forge.
func TestPromisedReleasesOfGoAreTested(t *testing.T) {
	t.Chdir(root)
	release := regexp.MustCompile(`\b1\.[0-9]+`)
	releases := func(file, line string) []string {
		text := must.Get(os.ReadFile(file))(t)
		found := regexp.MustCompile(line).Find(text)
		require.NotNil(t, found, "%s has no line %s", file, line)
		all := release.FindAllString(strings.ReplaceAll(string(found), "go1", "1"), -1)
		slices.Sort(all)
		return slices.Compact(all)
	}
	promised := releases("docs/compatibility.md", `(?m)^\| Go \| [0-9., and]+`)
	assert.Len(t, promised, 3)
	assert.Equal(t, promised, releases(".github/workflows/ci.yml", `(?m)^ +go: .*`))
	assert.Equal(t, promised, releases("Makefile", `(?m)^RELEASES :=.*`))
}

// What runs seldom is not seen to run nothing: each -run of a file finds a test, and a test reads each variable.
func TestWhatRunsSeldomRunsSomething(t *testing.T) {
	t.Chdir(root)
	tests := must.Get(exec.Command("git", "grep", "-hoE", `^func (Test|Fuzz)[A-Za-z0-9_]+|"[A-Z_]+_ALL"`, "--", "*.go").
		Output())(t)
	var names []string
	for line := range strings.Lines(string(tests)) {
		names = append(names, strings.TrimPrefix(strings.TrimSpace(line), "func "))
	}
	files, asked := must.Get(filepath.Glob(".github/workflows/*.yml"))(t), 0
	for _, file := range append(files, "Makefile", ".ci/run", "CONTRIBUTING.md") {
		text := string(must.Get(os.ReadFile(file))(t))
		for _, m := range regexp.MustCompile(`-run ([A-Z]\w+)|\b([A-Z_]+_ALL)=1`).FindAllStringSubmatch(text, -1) {
			asked++
			assert.True(t, slices.ContainsFunc(names, func(name string) bool {
				return m[1] != "" && strings.Contains(name, m[1]) || m[2] != "" && name == `"`+m[2]+`"`
			}), "%s: nothing has the name %s", file, m[0])
		}
	}
	assert.Greater(t, asked, 10)
}
