package doctest

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// command describes how to test a command of the documents. It runs in the root, as
// written except for the replacements.
type command struct {
	begins  string   // the command begins with this text
	replace []string // old, new, …: replaces placeholders for the reader's values
	more    string   // added at the end, such as a free port
	until   string   // a regular expression for a line of its output; a server is then interrupted
	skip    string   // why it is not run
	long    bool     // it compiles what no other test of make test needs, so -short skips it
}

const (
	readme  = "TestTheFirstServerOfTheREADME runs it"
	backups = "examples/gameserver runs it"
	express = "internal/test/integration/judgetest runs it"
	judged  = "TestAfterTheLinesOfTheEmulatorTheJudgeNeedsNoOtherFlag runs it"
)

var commands = []command{
	{begins: "go test -v -run FiveOrders ./examples/first", until: `^ +mint +3 +1000/10 +700/7 +700/7 +700/7 +700/7$`},
	{begins: "git clone https://github.com/token-ramp/ramp-go", skip: "the module is not published yet"},
	{begins: "go mod edit -replace ", skip: readme},
	{begins: "go get github.com/token-ramp/ramp-go", skip: "the module is not published yet"},
	{begins: "go mod tidy", skip: readme},
	{begins: "go run ./cmd/ramp emulate -game ", skip: readme},
	{begins: "go run ./examples/first", skip: readme},
	{begins: "curl -s -o /dev/null ", skip: readme},
	{begins: "go run ./cmd/ramp trigger mint -wait -page -", skip: readme},
	{begins: "internal/test/databases go ", skip: ".ci/run runs it"},
	{begins: "go run ./cmd/ramp emulate -json", until: `"validator_key":"0x[0-9a-f]{64}"`},
	{begins: "go -C examples/gameserver run . -any-page -any-rate", skip: judged},
	{begins: "go -C examples/gameserver run .", more: "-addr 127.0.0.1:0 -db sqlite:DATABASE",
		until: `^ready on http://`},
	{begins: "go run ./cmd/ramp check", skip: judged},
	{begins: "RAMP_HMAC_KEY=trial ramp check", skip: express},
	{begins: "npm install --prefix examples/express", skip: express},
	{begins: "DATABASE_URL=", skip: express},
	{begins: "curl -LO https://github.com/", skip: "nothing is published yet"},
	{begins: "sha256sum ", skip: "nothing is published yet"},
	{begins: "install -D ", skip: "nothing is published yet"},
	{begins: "go run github.com/token-ramp/ramp-go/cmd/ramp emulate", more: "-listen 127.0.0.1:0",
		until: `RAMP_VALIDATOR_KEY=0x[0-9a-f]{64}`},
	{begins: "go -C internal/test/newest/bench test -run '^$' -bench '/(Parse|Receipt)'", long: true,
		replace: []string{"201x", "1x"}, until: `^BenchmarkCosts/ParseResult,_20_logs/.* ratio`},
	{begins: "go -C internal/test/newest/bench test ", skip: "it measures for a minute or more"},
	{begins: "go -C internal/test/integration/dbtest test -count 1 -timeout 1h ", skip: "it takes an hour"},
	{begins: "RAMP_TEST_MYSQL=", skip: "the cluster is the reader's"},
	{begins: "RAMP_TEST_POSTGRESQL=", skip: "the cluster is the reader's"},
	{begins: "pg_dump ", skip: backups},
	{begins: "pg_restore ", skip: backups},
	{begins: "mariadb-dump ", skip: backups},
	{begins: "mariadb ", skip: backups},
	{begins: "sqlite3 ", skip: backups},
	{begins: "cp game.backup.db ", skip: backups},
	{begins: "RAMP_RPC_URL=… gameserver reconcile", skip: backups},
	{begins: "RAMP_RPC_URL=… gameserver orders finish -fitting", skip: backups},
	{begins: "gameserver orders decide", skip: backups},
}

var (
	continued = regexp.MustCompile(`\\\n\s*`)
	remark    = regexp.MustCompile(`(^|\s+)# .*$`)
)

// shellCommands returns the commands of all documents, each once, and fails if
// one is not in the table.
func shellCommands(t *testing.T) map[string]command {
	t.Helper()
	found, used := map[string]command{}, map[int]bool{}
	for _, document := range documents(t) {
		for _, b := range blocks(t, document, "sh") {
			for _, line := range strings.Split(continued.ReplaceAllString(b.text, ""), "\n") {
				if line = strings.TrimSpace(remark.ReplaceAllString(line, "")); line == "" {
					continue
				}
				known := false
				for i, c := range commands {
					if strings.HasPrefix(line, c.begins) { // the first match wins
						found[line], used[i], known = c, true, true
						break
					}
				}
				require.True(t, known, "%s:%d: add this command to the table in shell_test.go: %s", document,
					b.line, line)
			}
		}
	}
	unlabeled := regexp.MustCompile(`(?m)^(go|make|npm) `)
	for _, document := range documents(t) {
		for _, b := range blocks(t, document, "") {
			require.NotRegexp(t, unlabeled, b.text, "%s:%d: label this block sh", document, b.line)
		}
	}
	for i, c := range commands {
		require.True(t, used[i], "no document has the command %q any more", c.begins)
	}
	return found
}

func TestShellCommandsDoWhatTheDocumentsSay(t *testing.T) {
	t.Parallel()
	found := shellCommands(t)
	for line, c := range found {
		t.Run(c.begins, func(t *testing.T) {
			t.Parallel()
			run(t, line, c)
		})
	}
}

// run runs a command until its output matches, and returns the group of the match. A
// server keeps running until the test ends.
func run(t *testing.T, line string, c command) string {
	t.Helper()
	if c.skip != "" {
		t.Skip(c.skip)
	}
	if c.long && testing.Short() {
		t.Skip("it takes longer than -short allows")
	}
	line = strings.NewReplacer(c.replace...).Replace(line) + " " + c.more
	line = strings.NewReplacer("DATABASE", filepath.Join(t.TempDir(), "game.db")).Replace(line)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	sh := exec.CommandContext(ctx, "sh", "-c", line)
	sh.Dir, sh.Env = root, append(os.Environ(), "RAMP_HMAC_KEY=", "RAMP_VALIDATOR_KEY=")
	sh.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that the child process of go run is interrupted too
	signal := func(s syscall.Signal) error { return syscall.Kill(-sh.Process.Pid, s) }
	sh.Cancel = func() error { return signal(syscall.SIGKILL) }
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	sh.Stdout, sh.Stderr = writer, writer
	require.NoError(t, sh.Start())
	require.NoError(t, writer.Close())
	t.Cleanup(func() {
		if err := signal(syscall.SIGINT); !errors.Is(err, syscall.ESRCH) {
			require.NoError(t, err)
		}
		_ = sh.Wait() // an interrupted command reports an error
		_ = reader.Close()
	})

	want, output := regexp.MustCompile(c.until), &strings.Builder{}
	for lines := bufio.NewScanner(reader); lines.Scan(); {
		output.WriteString(lines.Text() + "\n")
		if m := want.FindStringSubmatch(lines.Text()); m != nil {
			go func() { // so that a full pipe does not block the command
				for lines.Scan() {
				}
			}()
			return m[len(m)-1]
		}
	}
	require.Fail(t, "the command did not print what it must", "%s\n%s", line, output)
	return ""
}
