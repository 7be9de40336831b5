// Package nextrelease makes the release after this one, for tests in which servers of two releases run
// side by side: a copy of the repository in which an order has one more field, of_next_release, and its table
// one more column and one more index. Nobody else gives a field this name. What the copy changes is what
// CONTRIBUTING.md asks of whoever adds a field; the statements of its migrations are in testdata/next. Its
// tables have the two versions that follow those of this release.
package nextrelease

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/token-ramp/ramp-go/internal/test/must"
)

const field = "\tOfNextRelease string `json:\"of_next_release,omitempty\"`"

// edit is a line that is added to a file of the copy.
type edit struct{ file, after, added string }

// edits are those of every release. $COLUMN and $INDEX are versions of the tables.
var edits = []edit{
	{"types.go", "`json:\"user_address\"`", field},
	{"order.go", "`json:\"settled,omitempty\"`", field},
	{"order.go", "UserAddress: r.UserAddress,", "\t\tOfNextRelease: r.OfNextRelease,"},
	{"order.go", `p.requireStorable(o.ProjectID, "project_id"`,
		"\tp.requireStorable(o.OfNextRelease, \"of_next_release\", storable.MaxText)"},
	{"order.go", `return stored.conflict("digest")`,
		"\t\tcase stored.OfNextRelease != \"\" && stored.OfNextRelease != opened.OfNextRelease:\n" +
			"\t\t\treturn stored.conflict(\"of_next_release\")"},

	{"rampsql/columns.go", "any { return &r.intent }},",
		"\t{\"of_next_release\", $COLUMN, text, storable.MaxText, ofPlayer, atAccept,\n" +
			"\t\tfunc(r *orderRow) any { return (*optional)(&r.OfNextRelease) }},"},
	{"rampsql/columns.go", `{"ramp_orders_tx_hash", 1},`, "\t{\"ramp_orders_network\", $INDEX},"},
}

// Those of the schema of each dialect. An index is a statement, or a key of its table.
var (
	columnOfSchema = edit{after: "JSON as text", added: "    of_next_release TEXT,"}
	indexOfSchema  = edit{after: "ON ramp_orders (tx_hash);",
		added: "CREATE INDEX IF NOT EXISTS ramp_orders_network ON ramp_orders (network, accepted_at);"}
	keyOfSchema = edit{after: "UNIQUE KEY ramp_orders_tx_hash",
		added: "    KEY ramp_orders_network (network, accepted_at),"}
)

// Copy copies the repository at root and makes the next release of the copy. It returns its directory.
func Copy(t *testing.T, root string) string {
	t.Helper()
	dir := t.TempDir()
	if err := copyFiles(os.DirFS(root), dir); err != nil {
		t.Fatal(err)
	}
	newest := newestVersion(t, dir)
	versions := strings.NewReplacer("$COLUMN", strconv.Itoa(newest+1), "$INDEX", strconv.Itoa(newest+2))
	for _, e := range append(editsOfSchemas(t, dir), edits...) {
		path := filepath.Join(dir, e.file)
		before, after, found := strings.Cut(string(must.Get(os.ReadFile(path))(t)), e.after)
		if !found || strings.Contains(after, e.after) {
			t.Fatalf("internal/test/nextrelease adds %q after a line of %s with %q, which must be there "+
				"once: let edits have a line of today", e.added, e.file, e.after)
		}
		rest, after, _ := strings.Cut(after, "\n")
		text := before + e.after + rest + "\n" + versions.Replace(e.added) + "\n" + after
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range must.Get(filepath.Glob(filepath.Join(root, "testdata/next/*.sql")))(t) {
		name := strings.NewReplacer("column", strconv.Itoa(newest+1), "index", strconv.Itoa(newest+2)).
			Replace(filepath.Base(file))
		migration := must.Get(os.ReadFile(file))(t)
		if err := os.WriteFile(filepath.Join(dir, "rampsql/schema", name), migration, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// editsOfSchemas returns those of the schema of each dialect.
func editsOfSchemas(t *testing.T, dir string) (list []edit) {
	t.Helper()
	for _, file := range must.Get(filepath.Glob(filepath.Join(dir, "rampsql/schema/*.sql")))(t) {
		name := filepath.Base(file)
		if strings.Contains(name, "-") {
			continue // it is a migration
		}
		index := indexOfSchema
		if strings.Contains(string(must.Get(os.ReadFile(file))(t)), keyOfSchema.after) {
			index = keyOfSchema
		}
		for _, e := range []edit{columnOfSchema, index} {
			e.file = "rampsql/schema/" + name
			list = append(list, e)
		}
	}
	return list
}

// newestVersion returns the version of the tables of this release. Each but the first has its migrations.
func newestVersion(t *testing.T, dir string) int {
	t.Helper()
	newest := 1
	for _, file := range must.Get(filepath.Glob(filepath.Join(dir, "rampsql/schema/*-*.sql")))(t) {
		_, version, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".sql"), "-")
		newest = max(newest, must.Get(strconv.Atoi(version))(t))
	}
	return newest
}

// copyFiles copies a directory without what is not of the repository.
func copyFiles(from fs.FS, to string) error {
	return fs.WalkDir(from, ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.Name() == ".git" || entry.Name() == "node_modules":
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(to, path), 0o700)
		}
		text, err := fs.ReadFile(from, path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, path), text, 0o600)
	})
}
