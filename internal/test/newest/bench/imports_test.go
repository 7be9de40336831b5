package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// TestImportCost builds two servers, which need no keys because nobody runs them, and prints
// their sizes.
func TestImportCost(t *testing.T) {
	for name, program := range map[string]string{
		"net/http and encoding/json": `import ("encoding/json"; "net/http")

func main() {
	_ = http.ListenAndServe("127.0.0.1:0", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		_ = json.NewDecoder(r.Body).Decode(&body)
		_ = json.NewEncoder(w).Encode(body)
	}))
}`,
		"ramp": `import ("context"; "net/http"; "github.com/ethereum/go-ethereum/common"
			ramp "github.com/token-ramp/ramp-go")

func main() {
	ctx, client, chain := context.Background(), new(ramp.Client), new(ramp.RPC)
	_, _ = client.Initialize(ctx, ramp.InitializeRequest{})
	_, _ = chain.BlockByNumber(ctx, ramp.Latest, true)
	_, _, _ = chain.WaitTransaction(ctx, common.Hash{}, 1)
	_ = http.ListenAndServe("127.0.0.1:0", new(ramp.Handler))
}`,
	} {
		file := filepath.Join(t.TempDir(), "main.go")
		require.NoError(t, os.WriteFile(file, []byte("package main\n\n"+program), 0o600))
		out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", file+".bin", file).CombinedOutput()
		require.NoError(t, err, "%s", out)
		fmt.Printf("%s: %.1f MB\n", name, float64(must.Get(os.Stat(file+".bin"))(t).Size())/1e6)
	}
}
