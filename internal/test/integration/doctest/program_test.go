package doctest

import (
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// The first server of the README becomes a new module beside a clone, with the commands of the
// README, and plays against the emulator.
func TestTheFirstServerOfTheREADME(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes longer than -short allows")
	}
	lines := map[string]string{} // by their first words
	for _, b := range append(blocks(t, "README.md", "sh"), blocks(t, "docs/emulator.md", "sh")...) {
		for line := range strings.Lines(b.text) {
			for _, begin := range []string{"go mod edit ", "go mod tidy", "go run ./cmd/ramp emulate ", "curl ",
				"go run ./cmd/ramp trigger "} {
				if strings.HasPrefix(line, begin) {
					lines[begin] = strings.TrimSpace(line)
				}
			}
		}
	}
	require.Len(t, lines, 5)
	listener := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	folder := t.TempDir()
	clone := must.Get(filepath.Abs(root))(t)
	written := strings.NewReplacer("127.0.0.1:8080", address, "../ramp-go", clone,
		"go run ./cmd/ramp ", "./ramp ")
	program := written.Replace(read(t, "examples/first/main.go"))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "main.go"), []byte(program), 0o600))

	in := func(t *testing.T, line, until string) string {
		t.Helper()
		return run(t, "cd "+folder+" && "+written.Replace(line), command{until: until})
	}
	in(t, "go mod init game && "+lines["go mod edit "]+" && "+lines["go mod tidy"]+
		" && go build -o game . && go -C "+clone+" build -o $PWD/ramp ./cmd/ramp && echo built", "^built$")
	in(t, lines["go run ./cmd/ramp emulate "]+" -listen 127.0.0.1:0 | "+
		"while read -r line; do echo $line >>printed; echo $line; done", "RAMP_VALIDATOR_KEY=")
	in(t, "eval $(grep ^export printed | sed 's/$/;/') && exec ./game", "open (http\\S+)$")
	require.Eventually(t, func() bool { // it prints before it listens
		connection, err := net.Dial("tcp", address)
		return err == nil && connection.Close() == nil
	}, time.Minute, 10*time.Millisecond)
	for _, order := range []string{"mint", "mint -fault transaction-fails", "burn"} {
		t.Run(order, func(t *testing.T) {
			in(t, lines["curl "]+" && echo asked", "^asked$")
			trigger := strings.Replace(lines["go run ./cmd/ramp trigger "], "mint", order, 1)
			in(t, trigger+" && echo done", "^done$")
			in(t, trigger+" || echo used", "^used$") // a page is for one order
		})
	}
}

// The lines that the emulator prints first set everything but the address of the server, for the example
// server and for its judge.
func TestAfterTheLinesOfTheEmulatorTheJudgeNeedsNoOtherFlag(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes longer than -short allows")
	}
	folder := t.TempDir()
	printed := filepath.Join(folder, "printed")
	run(t, "go run ./cmd/ramp emulate -game http://127.0.0.1:1 -listen 127.0.0.1:0 | "+
		"while read -r line; do echo $line >>"+printed+"; echo $line; done", command{until: "RAMP_RPC_URL="})
	const exports = "eval $(grep -v RAMP_RPC_URL= %s | grep ^export | sed 's/$/;/') && "
	begin := strings.Replace(exports, "%s", printed, 1)
	url := run(t, begin+"go -C examples/gameserver run . -any-page -any-rate -addr 127.0.0.1:0 -db sqlite:DATABASE",
		command{until: `^ready on (http://\S+)`})
	run(t, begin+"go run ./cmd/ramp check -skip 'rate|restart' -url "+url, command{until: "^passed: none of "})

	url = run(t, begin+"go -C examples/gameserver run . -any-page -addr 127.0.0.1:0 -db sqlite:DATABASE",
		command{until: `^ready on (http://\S+)`})
	run(t, begin+"RAMP_RUN='terms|rate' go run ./cmd/ramp check -asset item_gem -amount 10 -tokens 1 -skip restart "+
		"-url "+url,
		command{until: "^passed: none of "})
}

// The scripts of the page about CI and certificates, against a game whose certificate is its own authority.
func TestTheScriptsOfTheEmulator(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes longer than -short allows")
	}
	scripts := blocks(t, "docs/emulator.md", "bash")
	require.Len(t, scripts, 2)
	folder := t.TempDir()
	game := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(game.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: game.Certificate().Raw})
	require.NoError(t, os.WriteFile(filepath.Join(folder, "authority.pem"), authority, 0o600))
	begin := "set -e; WORK=" + folder + "\n"
	run(t, begin+scripts[0].text+"echo ended with $?\n", command{until: "^ended with 0$"})

	own := strings.NewReplacer("https://localhost:8443", game.URL+" -listen 127.0.0.1:0")
	address := run(t, begin+own.Replace(scripts[1].text), command{until: `^export RAMP_API_URL=(\S+) `})
	run(t, begin+`"$WORK/ramp" trigger mint -session a=b -project p -material gold=1 `+
		"-token 0x00000000000000000000000000000000000070c3 -at "+address+" || true",
		command{until: "HTTP 404"})
}
