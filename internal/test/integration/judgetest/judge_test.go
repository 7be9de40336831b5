// Package judgetest holds ramp check against servers in Python and Node, which know
// nothing of its code: honest ones, of which it must not fail any, and the same with one
// bug each, of which it must name the right one first.
//
// go test runs a few of them. JUDGE_ALL=1 go test -timeout 2h runs all.
package judgetest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// What the servers have in the console.
const (
	consoleKey   = "the key of the console"
	validatorKey = "0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"
	contract     = "0x00000000000000000000000000000000c0ffee00"
)

var all = os.Getenv("JUDGE_ALL") != ""

// command is the ramp command, which TestMain builds.
var command string

func TestMain(m *testing.M) {
	directory, err := os.MkdirTemp("", "judgetest-")
	if err != nil {
		panic(err)
	}
	command = filepath.Join(directory, "ramp")
	build := exec.Command("go", "build", "-C", "../../../..", "-o", command, "./cmd/ramp")
	build.Stderr = os.Stderr
	status := 1
	if build.Run() == nil {
		status = m.Run()
	}
	_ = os.RemoveAll(directory)
	os.Exit(status)
}

// The servers, by the name of their language.
var servers = map[string][]string{
	"python": {"python3", "-B", "server.py"},
	"node":   {"node", "server.mjs"},
}

// server returns the command that starts a server. The test is skipped if its language is
// not installed.
func server(t *testing.T, language string, flags ...string) []string {
	t.Helper()
	if _, err := exec.LookPath(servers[language][0]); err != nil {
		t.Skip(servers[language][0] + " is not installed")
	}
	return slices.Concat(servers[language], flags)
}

// start starts a server on a port of its own. It returns its URL, and a shell command that
// starts it again.
func start(t *testing.T, language string, flags ...string) (url, restart string) {
	t.Helper()
	directory := t.TempDir()
	data, process := filepath.Join(directory, "data"), filepath.Join(directory, "process")
	run := server(t, language, append([]string{"-data", data}, flags...)...)
	serving := exec.Command(run[0], run[1:]...)
	var says bytes.Buffer
	serving.Stderr = &says
	out := must.Get(serving.StdoutPipe())(t)
	require.NoError(t, serving.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	done := make(chan error, 1)
	go func() { done <- serving.Wait() }()
	t.Cleanup(func() {
		_ = serving.Process.Kill()
		<-done
		id, err := os.ReadFile(process)
		if last := strings.TrimSpace(string(id)); err == nil && last != strconv.Itoa(serving.Process.Pid) {
			_ = exec.Command("kill", "-9", last).Run() // the judge started it
		}
		if t.Failed() && says.Len() > 0 {
			t.Log(says.String())
		}
	})
	require.NoError(t, err, "the server did not start")
	url = strings.TrimSpace(line)
	require.NoError(t, os.WriteFile(process, fmt.Append(nil, serving.Process.Pid), 0o600))
	again := append(run, "-port", url[strings.LastIndex(url, ":")+1:])
	for i := range again {
		again[i] = "'" + again[i] + "'"
	}
	restart = fmt.Sprintf(`kill -9 $(cat %[1]s); sleep 0.1; %[2]s >/dev/null 2>&1 & echo $! >%[1]s`, process,
		strings.Join(again, " "))
	return url, restart
}

// verdict is what ramp check says of a server.
type verdict struct {
	exit   int
	stderr string
	Causes []struct{ Cases []string }
	Cases  []struct{ ID, Outcome string }
}

// check judges a server.
func check(t *testing.T, url string, flags ...string) (v verdict) {
	t.Helper()
	out, errs, exit := ramped(t, url, append([]string{"-json"}, flags...)...)
	v.exit, v.stderr = exit, errs
	if out != "" {
		require.NoError(t, json.Unmarshal([]byte(out), &v), out)
	}
	return v
}

// ramped runs ramp check and returns what it writes.
func ramped(t *testing.T, url string, flags ...string) (out, errs string, exit int) {
	t.Helper()
	signer := must.Get(ramp.NewKeySigner(validatorKey))(t)
	judge := exec.CommandContext(t.Context(), command, append([]string{"check", "-url", url, "-login", "/login",
		"-key-encoding", "text", "-validator", signer.Address().Hex(), "-project", "project-1"}, flags...)...)
	var waived []string // what the server, or the test, does not offer
	for flag, cases := range map[string]string{"-token": "terms|/.*-(contract|rate)$", "-restart": "^restart$",
		"-login=": "^result-late$"} {
		if slices.Contains(flags, flag) == (flag == "-login=") {
			waived = append(waived, cases)
		}
	}
	if len(waived) > 0 {
		judge.Args = append(judge.Args, "-skip", strings.Join(waived, "|"))
	}
	var stdout, stderr strings.Builder
	judge.Env = append(os.Environ(), "RAMP_HMAC_KEY="+consoleKey)
	judge.Stdout, judge.Stderr = &stdout, &stderr
	_ = judge.Run()
	return stdout.String(), stderr.String(), judge.ProcessState.ExitCode()
}

// first returns the case that the judge says to mend first, or "".
func (v verdict) first() string {
	for _, cause := range v.Causes {
		if slices.Contains(v.with("failed"), cause.Cases[0]) {
			return cause.Cases[0]
		}
	}
	return ""
}

// with returns the cases that have an outcome.
func (v verdict) with(outcome string) (ids []string) {
	for _, c := range v.Cases {
		if c.Outcome == outcome {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

func (v verdict) String() string {
	return fmt.Sprintf("exit %d, first %q, failed %v, noted %v, unproven %d, untried %d %s", v.exit, v.first(),
		v.with("failed"), v.with("noted"), len(v.with("unproven")), len(v.with("untried")), strings.TrimSpace(v.stderr))
}

// matches reports whether a pattern matches all of the text.
func matches(pattern, text string) bool {
	return regexp.MustCompile("^(?:" + pattern + ")$").MatchString(text)
}

// faultsOf returns the names of all faults of a server.
func faultsOf(t *testing.T, language string) []string {
	t.Helper()
	run := server(t, language, "-list")
	out := must.Get(exec.Command(run[0], run[1:]...).Output())(t)
	return strings.Fields(string(out))
}

// TestTheServersSignAsWeDo compares their ECDSA with the one of the package.
func TestTheServersSignAsWeDo(t *testing.T) {
	signer := must.Get(ramp.NewKeySigner(validatorKey))(t)
	for language := range servers {
		for _, text := range []string{"0x9c22ff5f21f0b81b113e63f7db6da94fedef11b2119b4088b89664fb9a3cb658",
			"0x" + strings.Repeat("00", 31) + "01", "0x" + strings.Repeat("ff", 32)} {
			digest := must.Get(ramp.ParseDigest(text))(t)
			want := must.Get(signer.Sign(t.Context(), digest))(t)
			run := server(t, language, "-sign", text)
			got := must.Get(exec.Command(run[0], run[1:]...).Output())(t)
			assert.Equal(t, want.String(), strings.TrimSpace(string(got)), language)
		}
	}
}
