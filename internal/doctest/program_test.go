package doctest

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The program of the README becomes a new module beside a clone, and plays a mint and a burn
// against the emulator, with the commands of the README.
func TestTheProgramOfTheREADME(t *testing.T) {
	t.Parallel()
	const mod, ramp = "go mod init ", "go run github.com/token-ramp/ramp-go/cmd/ramp "
	var lines []string
	for _, b := range blocks(t, "README.md", "sh") {
		for line := range strings.Lines(b.text) {
			lines = append(lines, remark.ReplaceAllString(strings.TrimSpace(line), ""))
		}
	}
	at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, mod) })
	require.GreaterOrEqual(t, at, 0)
	commands := lines[at : at+4]
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := listener.Addr().String()
	require.NoError(t, listener.Close())
	folder := t.TempDir()
	clone, err := filepath.Abs(root)
	require.NoError(t, err)
	written := strings.NewReplacer("127.0.0.1:8080", address, "../ramp-go", clone)
	program := blocks(t, "README.md", "go")[0].text
	require.NoError(t, os.WriteFile(filepath.Join(folder, "main.go"), []byte(written.Replace(program)), 0o600))

	in := func(t *testing.T, line, until string) string {
		t.Helper()
		return run(t, "cd "+folder+" && "+written.Replace(line), command{until: until}, nil)
	}
	const build = "go build -ldflags='-s -w' -o " // half the time, without what a debugger needs
	in(t, commands[0]+" && "+build+"ramp "+strings.Fields(ramp)[2]+" && "+build+"game . && echo built", "^built$")
	in(t, strings.Replace(commands[1], ramp, "./ramp ", 1)+" -listen 127.0.0.1:0 | while read -r line; do echo $line >>printed; echo $line; done", "RAMP_VALIDATOR_KEY=")
	require.Equal(t, "go run .", commands[2])
	for _, order := range []string{"mint", "mint -fault transaction-fails", "burn -amount 2"} {
		t.Run(order, func(t *testing.T) {
			page := in(t, "eval $(grep ^export printed | sed 's/$/;/') && exec ./game", ` open (http\S+)$`)
			require.Eventually(t, func() bool { // it prints the page before it listens
				connection, err := net.Dial("tcp", address)
				return err == nil && connection.Close() == nil
			}, time.Minute, 10*time.Millisecond)
			trigger := strings.NewReplacer(ramp, "./ramp ", "THE PAGE", page, "mint", order).Replace(commands[3])
			in(t, trigger+" && echo done", "^done$")
			in(t, trigger+" || echo used", "^used$") // a page is for one order
		})
	}
}
