package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
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
	d.started, _, _ = beginJSON(t, slices.Concat(console, []string{"-game", newShop(t, d.shop), "-speed", "50"})...)
	d.order(t, times)
}

// The reader takes the first line and goes, as head -n 1 does. A program that writes to a closed pipe is
// ended by the system, unless it says otherwise.
func TestAReaderThatGoesDoesNotEndTheEmulator(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it has no SIGPIPE")
	}
	build := exec.Command("go", "build", "-o", t.TempDir()+"/ramp", ".")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	d := &desktop{shop: &shop{gold: 1_000_000}}
	command := exec.Command(build.Args[3], slices.Concat([]string{"emulate", "-json", "-listen", "127.0.0.1:0"},
		console,
		[]string{"-game", newShop(t, d.shop), "-speed", "50"})...)
	stdout := ramp.Must(command.StdoutPipe())
	var errs strings.Builder
	command.Stderr = &errs
	require.NoError(t, command.Start())
	t.Cleanup(func() { _ = command.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(line, &d.started))
	require.NoError(t, stdout.Close())
	d.order(t, 20)
	require.NoError(t, command.Process.Signal(os.Interrupt))
	assert.NoError(t, command.Wait(), "it ends as it was asked to: %s", &errs)
	assert.Empty(t, errs.String())
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
