package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A studio removes the files of the databases and of the proxies that it does not use, and nothing else.
func TestAFileIsADatabaseOrTheProxies(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes longer than -short allows")
	}
	removed := map[string][]string{"no proxies": must(filepath.Glob("proxy_*_test.go"))(t)}
	for database := range filesOfDatabases(t) {
		for other, files := range filesOfDatabases(t) {
			if other != database {
				removed[database+" alone"] = append(removed[database+" alone"], files...)
			}
		}
	}
	for name, files := range removed {
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
				t.Errorf("the program without %v: let the file of a database use none of another: %s", files, out)
			}
		})
	}
}

// filesOfDatabases returns the files of each database, such as mysql.go and mysql_test.go.
func filesOfDatabases(t *testing.T) map[string][]string {
	t.Helper()
	databases := map[string][]string{}
	for _, file := range must(filepath.Glob("*.go"))(t) {
		name, text := strings.TrimSuffix(file, ".go"), string(must(os.ReadFile(file))(t))
		if !strings.HasSuffix(name, "_test") && strings.Contains(text, "dialect{sql: rampsql.") {
			databases[name] = must(filepath.Glob(name + "*.go"))(t)
		}
	}
	if len(databases) < 3 {
		t.Fatalf("only %v were found", databases)
	}
	return databases
}
