package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A studio removes the files of the databases that it does not use, and nothing else.
func TestAFileIsADatabase(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes longer than -short allows")
	}
	for _, kept := range []string{"sqlite.go", "postgres.go", "mysql.go"} {
		t.Run(kept, func(t *testing.T) {
			without := map[string]string{}
			for _, file := range []string{"sqlite.go", "postgres.go", "mysql.go"} {
				if file != kept {
					path, err := filepath.Abs(file)
					check(t, err)
					without[path] = "" // go reads it as removed
				}
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
