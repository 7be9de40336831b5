package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A studio removes the files of the databases and of the proxies that it does not use, and nothing else.
func TestAFileIsADatabaseOrTheProxies(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes longer than -short allows")
	}
	for name, files := range map[string][]string{
		"SQLite alone":     {"postgres.go", "mysql.go", "mysql_test.go"},
		"PostgreSQL alone": {"sqlite.go", "mysql.go", "mysql_test.go"},
		"MySQL alone":      {"sqlite.go", "postgres.go"},
		"no proxies":       must(filepath.Glob("proxy_*_test.go"))(t),
	} {
		t.Run(name, func(t *testing.T) {
			without := map[string]string{}
			for _, file := range files {
				path, err := filepath.Abs(file)
				check(t, err)
				without[path] = "" // go reads it as removed
			}
			overlay := filepath.Join(t.TempDir(), "overlay.json")
			text, err := json.Marshal(map[string]any{"Replace": without})
			check(t, err)
			check(t, os.WriteFile(overlay, text, 0o600))
			if out, err := exec.Command("go", "vet", "-overlay", overlay, ".").CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}
