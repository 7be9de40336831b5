package ramptest

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
)

// Logger returns a logger for what a test starts, such as [ramp.HandlerConfig].Logger and
// [ramp.ClientConfig].Logger. If the test fails, go test shows the last 10 lines with it, and with -v each
// line at once. What is logged after the end of the test is dropped: a write to a test that has ended panics.
func Logger(t testing.TB) *slog.Logger {
	out := &testOutput{to: t.Output(), atOnce: testing.Verbose()}
	t.Cleanup(out.end)
	return slog.New(slog.NewTextHandler(out, nil))
}

// testOutput writes to a test until its end.
type testOutput struct {
	atOnce bool

	mu      sync.Mutex
	to      io.Writer
	last    [][]byte // lines that are written at the end
	dropped int      // lines before them
}

func (o *testOutput) Write(line []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.atOnce {
		return o.to.Write(line)
	}
	if o.last = append(o.last, bytes.Clone(line)); len(o.last) > 10 {
		o.last = o.last[1:]
		o.dropped++
	}
	return len(line), nil
}

func (o *testOutput) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.dropped > 0 {
		fmt.Fprintf(o.to, "%d lines of the log before these: go test -v shows them\n", o.dropped)
	}
	for _, line := range o.last {
		_, _ = o.to.Write(line)
	}
	o.to, o.atOnce = io.Discard, true
}
