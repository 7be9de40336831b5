package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestImportCost builds small servers, which need no keys because nobody runs them, and
// prints their sizes, and how many packages outside the standard library they link.
func TestImportCost(t *testing.T) {
	const byHand = `_ = http.ListenAndServe("127.0.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if json.NewDecoder(r.Body).Decode(&body) == nil {
			_ = json.NewEncoder(w).Encode(body)
		}
	}))`
	for _, p := range []struct{ name, imports, body string }{
		{"net/http and encoding/json", `"encoding/json"; "net/http"`, byHand},
		{"the same and go-ethereum's crypto", `"encoding/json"; "net/http"; "github.com/ethereum/go-ethereum/common/hexutil"; "github.com/ethereum/go-ethereum/crypto"`,
			`key, _ := crypto.GenerateKey()
			var signature hexutil.Bytes
			_ = signature.UnmarshalText(nil)
			signature, _ = crypto.Sign(signature, key)
			println(signature.String())
			` + byHand},
		{"ramp", `"context"; "net/http"; ramp "github.com/token-ramp/ramp-go"`, `var client *ramp.Client
			var chain *ramp.RPC
			_, _ = client.Initialize(context.Background(), ramp.InitializeRequest{})
			_, _ = chain.BlockByNumber(context.Background(), ramp.Latest, true)
			_, _, _ = chain.Confirm(context.Background(), nil, 1)
			_ = http.ListenAndServe("127.0.0.1:0", new(ramp.Handler))`},
	} {
		file := filepath.Join(t.TempDir(), "main.go")
		binary := file + ".bin"
		source := "package main\n\nimport (" + p.imports + ")\n\nfunc main() {\n" + p.body + "\n}\n"
		require.NoError(t, os.WriteFile(file, []byte(source), 0o600))
		out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", binary, file).CombinedOutput()
		require.NoError(t, err, "%s", out)
		packages, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", file).Output()
		require.NoError(t, err)
		info, err := os.Stat(binary)
		require.NoError(t, err)
		fmt.Printf("%s: %.1f MB, %d packages\n", p.name, float64(info.Size())/1e6, len(strings.Fields(string(packages)))-1) // without itself
	}
}
