package ramptest

import (
	"io"
	"log/slog"
	"sync"
	"testing"
)

// Logger returns a logger for what a test starts, such as [ramp.HandlerConfig].Logger and
// [ramp.ClientConfig].Logger. go test shows what is logged with the test, if it fails, and with -v. What is
// logged after the end of the test is dropped: a write to a test that has ended panics.
func Logger(t testing.TB) *slog.Logger {
	out := &testOutput{to: t.Output()}
	t.Cleanup(out.end)
	return slog.New(slog.NewTextHandler(out, nil))
}

// testOutput writes to a test until its end.
type testOutput struct {
	mu sync.Mutex
	to io.Writer
}

func (o *testOutput) Write(line []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.to.Write(line)
}

func (o *testOutput) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.to = io.Discard
}
