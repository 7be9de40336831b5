package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/ramptest/control"
)

// order starts orders at an emulator.
func (d *desktop) order(t *testing.T, times int) {
	t.Helper()
	client := control.Client{URL: d.API}
	terms := control.Terms{Token: "0x00000000000000000000000000000000000070c3", Network: ramp.Testnet,
		ProjectID: "project-1",
		Materials: []control.Item{{ID: "item_gold", Amount: "1"}}, Outputs: []control.Item{{ID: "item_gold",
			Amount: "1"}}}
	for n := range times {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		_, err := client.Start(ctx, control.StartRequest{Do: "mint", SessionID: "session-1", AccessToken: testToken,
			Terms: &terms})
		cancel()
		require.NoError(t, err, "order %d", n)
	}
}

// Whoever starts the emulator reads its first line, and seldom the rest: POST /control/orders then
// stopped after 16 orders with -json, and after 365 without. RAMP_TEST_ORDERS=10000 tries more.
func TestTheEmulatorDoesNotWaitForAReader(t *testing.T) {
	times, err := strconv.Atoi(os.Getenv("RAMP_TEST_ORDERS"))
	if err != nil {
		times = 50
	}
	d := &desktop{shop: &shop{gold: 1_000_000}}
	// A pipe of this program has no buffer: not even one line would pass.
	d.started, _, _ = beginJSON(t, slices.Concat(console(), []string{"-game", newShop(t, d.shop), "-speed", "50"})...)
	d.order(t, times)
}

// program returns the command as a process of its own, begun by a line of sh in which "$@" is the command.
// It is this test under another name; see TestMain.
func program(t *testing.T, line string, args ...string) *exec.Cmd {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("it has no sh, and no SIGPIPE")
	}
	path := filepath.Join(t.TempDir(), "ramp")
	require.NoError(t, os.Symlink(must.Get(os.Executable())(t), path))
	command := exec.Command("sh", slices.Concat([]string{"-c", line, "sh", path}, args)...)
	t.Cleanup(func() {
		if command.Process != nil {
			_ = command.Process.Kill()
		}
	})
	return command
}

// beginProgram begins an emulator as a process, and returns what it prints first.
func beginProgram(t *testing.T, line string, args ...string) (command *exec.Cmd, s started, rest io.ReadCloser,
	errs *lockedText) {
	t.Helper()
	command = program(t, line, slices.Concat([]string{"emulate", "-json", "-listen", "127.0.0.1:0"},
		console(), args)...)
	rest, errs = must.Get(command.StdoutPipe())(t), &lockedText{}
	command.Stderr = errs
	require.NoError(t, command.Start())
	first, err := bufio.NewReader(rest).ReadBytes('\n')
	require.NoError(t, err, "%s", errs)
	require.NoError(t, json.Unmarshal(first, &s))
	return command, s, rest, errs
}

// lockedText is a text that one goroutine writes and another one reads.
type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// The reader takes the first line and goes, as head -n 1 does. A program that writes to a closed pipe is
// ended by the system, unless it says otherwise.
func TestAReaderThatGoesDoesNotEndTheEmulator(t *testing.T) {
	t.Parallel()
	d := &desktop{shop: &shop{gold: 1_000_000}}
	command, first, rest, errs := beginProgram(t, `exec "$@"`, "-game", newShop(t, d.shop), "-speed", "50")
	d.started = first
	require.NoError(t, rest.Close())
	d.order(t, 20)
	require.NoError(t, command.Process.Signal(os.Interrupt))
	assert.NoError(t, command.Wait(), "it ends as it was asked to: %s", errs)
	assert.Empty(t, errs.String())
}

// A reader that has what it wanted decides nothing about the command. What could not be written does.
func TestTheExitStatusSaysWhetherTheOutputWasWritten(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	require.NoError(t, read.Close())
	defer write.Close()
	closed := program(t, `exec "$@"`, "help", "check")
	closed.Stdout = write
	assert.NoError(t, closed.Run())

	if runtime.GOOS != "linux" {
		t.Skip("only Linux has /dev/full")
	}
	full := program(t, `exec "$@" 2>&1 >/dev/full`, "help", "check")
	out, err := full.CombinedOutput()
	var ended *exec.ExitError
	require.ErrorAs(t, err, &ended)
	assert.Equal(t, 1, ended.ExitCode())
	assert.Equal(t, "ramp: the output could not be written: write /dev/stdout: no space left on device\n", string(out))
}

// The first signal waits for the calls in progress, and says so. The second does not.
func TestTheSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	called, block := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(block) })
	game := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		called <- struct{}{}
		<-block
	}))
	t.Cleanup(game.CloseClientConnections)
	command, s, _, errs := beginProgram(t, `exec "$@"`, "-game", game.URL)
	client := control.Client{URL: s.API}
	go func() {
		terms := control.Terms{Token: "0x00000000000000000000000000000000000070c3", Network: ramp.Testnet,
			ProjectID: "p", Materials: []control.Item{{ID: "item_gold", Amount: "1"}}}
		_, _ = client.Start(context.Background(),
			control.StartRequest{Do: "mint", SessionID: "s", AccessToken: testToken, Terms: &terms})
	}()
	<-called
	require.NoError(t, command.Process.Signal(os.Interrupt))
	require.Eventually(t, func() bool { return strings.Contains(errs.String(), "waiting for calls in progress") },
		10*time.Second, 10*time.Millisecond)
	begun := time.Now()
	require.NoError(t, command.Process.Signal(os.Interrupt))
	var ended *exec.ExitError
	require.ErrorAs(t, command.Wait(), &ended)
	assert.Equal(t, statusInterrupted, ended.ExitCode())
	assert.Less(t, time.Since(begun), 5*time.Second, "a call takes 10")
	assert.Equal(t, "ramp emulate: waiting for calls in progress; Ctrl+C again ends at once\n"+
		"ramp: ended at once; calls in progress were cut off\n", errs.String())
}

// stuck is an output that takes nothing until it is released.
type stuck struct {
	text             strings.Builder
	blocked, release chan struct{}
}

func (s *stuck) Write(b []byte) (int, error) {
	select {
	case s.blocked <- struct{}{}:
	default:
	}
	<-s.release
	return s.text.Write(b)
}

// What does not fit is counted, where it would have stood.
func TestLinesThatNobodyReadAreCounted(t *testing.T) {
	for format, gap := range map[bool]string{false: "%d were not printed\n", true: "{\"skipped\":%d}\n"} {
		out := &stuck{blocked: make(chan struct{}, 1), release: make(chan struct{})}
		queue := &aside{out: out, gap: gap}
		p := &printer{out: queue, json: format}
		p.event(control.Event{Kind: control.KindResult, Failed: true})
		<-out.blocked
		for range keptLines + 5 {
			p.event(control.Event{Kind: control.KindResult, Failed: true})
		}
		close(out.release)
		require.NoError(t, queue.close())
		lines := strings.SplitAfter(out.text.String(), "\n")
		assert.Len(t, lines, 1+keptLines+1+1)
		assert.Equal(t, fmt.Sprintf(gap, 5), lines[len(lines)-2])
	}
}

// The end of the emulator waits for a reader, but not for long, and says if a write failed.
func TestTheEndWaitsShortlyForAReader(t *testing.T) {
	out := &stuck{blocked: make(chan struct{}, 1), release: make(chan struct{})}
	p := &aside{out: out}
	fmt.Fprintln(p, "line")
	begun := time.Now()
	require.NoError(t, p.close())
	assert.Less(t, time.Since(begun), 10*lastWait)
	close(out.release)

	full := errors.New("no space left on device")
	read, write := io.Pipe()
	require.NoError(t, read.CloseWithError(full))
	p = &aside{out: write}
	fmt.Fprintln(p, "line")
	assert.ErrorIs(t, p.close(), full)
	fmt.Fprintln(p, "line")
	assert.ErrorIs(t, p.close(), full)
}
