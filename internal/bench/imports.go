package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const importSubject = "import cost"

// programs are small servers: one with the standard library only, one that also
// signs as a validator must, and one with the handler and both clients of the
// SDK. They are built and never run, so they need no keys.
var programs = []struct{ name, source string }{
	{"net/http and encoding/json", `package main

import (
	"encoding/json"
	"net/http"
)

func main() {
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if json.NewDecoder(r.Body).Decode(&body) == nil {
			_ = json.NewEncoder(w).Encode(body)
		}
	})
	_ = http.ListenAndServe("127.0.0.1:0", nil)
}
`},
	{"the same and go-ethereum's crypto", `package main

import (
	"encoding/json"
	"net/http"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
)

func main() {
	key, _ := crypto.GenerateKey()
	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		var digest hexutil.Bytes
		if json.NewDecoder(r.Body).Decode(&digest) == nil {
			signature, _ := crypto.Sign(digest, key)
			_ = json.NewEncoder(w).Encode(hexutil.Bytes(signature))
		}
	})
	_ = http.ListenAndServe("127.0.0.1:0", nil)
}
`},
	{"ramp", `package main

import (
	"context"
	"net/http"

	ramp "github.com/token-ramp/ramp-go"
)

type game struct{ ramp.Game }

func main() {
	var key ramp.HMACKey
	var signer *ramp.Signer
	var client *ramp.Client
	var chain *ramp.RPC
	_, _ = client.Initialize(context.Background(), ramp.InitializeRequest{})
	_, _ = chain.BlockByNumber(context.Background(), ramp.Latest, true)
	_, _, _ = chain.Confirm(context.Background(), nil, 1)
	_ = key
	_ = signer
	_ = game{}
	_ = http.ListenAndServe("127.0.0.1:0", new(ramp.Handler))
}
`},
}

// printImportCost builds the programs and prints their sizes. If a build fails, it
// reports the failure and continues, because the other rows do not depend on it.
func printImportCost() {
	dir, err := os.MkdirTemp("", "ramp-bench-")
	if err != nil {
		fmt.Println("Import cost was not measured:", err)
		return
	}
	defer os.RemoveAll(dir)
	fmt.Println("| a small stripped program that imports | binary | packages outside the standard library |")
	fmt.Println("|---|---|---|")
	for i, p := range programs {
		file, binary := filepath.Join(dir, fmt.Sprintf("%d.go", i)), filepath.Join(dir, fmt.Sprint(i))
		packages, err := build(file, binary, p.source)
		if err != nil {
			fmt.Printf("| %s | was not built: %v | |\n", p.name, err)
			continue
		}
		info, err := os.Stat(binary)
		if err != nil {
			fmt.Printf("| %s | was not built: %v | |\n", p.name, err)
			continue
		}
		fmt.Printf("| %s | %.1f MB | %d |\n", p.name, float64(info.Size())/1e6, packages)
	}
}

// build compiles one file in the context of this module, in which the command runs,
// and counts its dependencies.
func build(file, binary, source string) (packages int, err error) {
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		return 0, err
	}
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", binary, file).CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%w: %s", err, strings.Join(strings.Fields(string(out)), " "))
	}
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", file).Output()
	if err != nil {
		return 0, err
	}
	return len(strings.Fields(string(out))) - 1, nil // without the program itself
}
