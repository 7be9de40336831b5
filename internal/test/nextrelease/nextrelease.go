// Package nextrelease makes the release after this one, for tests in which servers of two releases run
// side by side: a copy of the repository in which an order has a field more, memo, and its table a
// column and an index more. What the copy changes is what the guide in CONTRIBUTING.md asks of whoever
// adds a field; the statements of its migrations are in testdata/next. Its tables have the two versions that
// follow those of this release.
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

const memo = "\tMemo string `json:\"memo,omitempty\"`"

// edits are the lines that are added to files of the copy. $COLUMN and $INDEX are
// versions of the tables.
var edits = []struct{ file, after, added string }{
	{"types.go", "`json:\"user_address\"`", memo},
	{"order.go", "`json:\"settled,omitempty\"`", memo},
	{"order.go", "UserAddress: r.UserAddress,", "\t\tMemo: r.Memo,"},
	{"order.go", `p.requireStorable(o.ProjectID, "project_id"`,
		"\tp.requireStorable(o.Memo, \"memo\", storable.MaxText)"},
	{"order.go", `return stored.conflict("digest")`,
		"\t\tcase stored.Memo != \"\" && stored.Memo != opened.Memo:\n" +
			"\t\t\treturn stored.conflict(\"memo\")"},

	{"rampsql/columns.go", "any { return &r.intent }},",
		"\t{\"memo\", $COLUMN, text, storable.MaxText, ofPlayer, atAccept,\n" +
			"\t\tfunc(r *orderRow) any { return (*optional)(&r.Memo) }},"},
	{"rampsql/columns.go", `{"ramp_orders_tx_hash", 1},`, "\t{\"ramp_orders_network\", $INDEX},"},

	{"rampsql/schema/postgresql.sql", "JSON as text", "    memo         text,"},
	{"rampsql/schema/mysql.sql", "JSON as text", "    memo         TEXT        NULL,"},
	{"rampsql/schema/sqlite.sql", "JSON as text", "    memo         TEXT,"},
	{"rampsql/schema/postgresql.sql", "ON ramp_orders (tx_hash);",
		"CREATE INDEX IF NOT EXISTS ramp_orders_network ON ramp_orders (network, accepted_at);"},
	{"rampsql/schema/mysql.sql", "UNIQUE KEY ramp_orders_tx_hash",
		"    KEY ramp_orders_network (network, accepted_at),"},
	{"rampsql/schema/sqlite.sql", "ON ramp_orders (tx_hash);",
		"CREATE INDEX IF NOT EXISTS ramp_orders_network ON ramp_orders (network, accepted_at);"},
}

// Copy copies the repository at root and makes the next release of the copy. It returns its directory.
func Copy(t *testing.T, root string) string {
	t.Helper()
	dir := t.TempDir()
	if err := copyFiles(os.DirFS(root), dir); err != nil {
		t.Fatal(err)
	}
	newest := newestVersion(t, dir)
	versions := strings.NewReplacer("$COLUMN", strconv.Itoa(newest+1), "$INDEX", strconv.Itoa(newest+2))
	for _, e := range edits {
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
