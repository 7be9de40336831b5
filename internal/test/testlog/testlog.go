// Package testlog gives the log of what is tested to the test: go test shows it with the test that failed,
// and with -v.
package testlog

import (
	"io"
	"log/slog"
	"sync"
	"testing"
)

// New returns a logger of a test. What is logged after the end of the test is dropped, because nobody would
// know whose it is.
func New(t testing.TB) *slog.Logger {
	out := &output{to: t.Output()}
	t.Cleanup(out.end)
	return slog.New(slog.NewTextHandler(out, nil))
}

// output writes to a test until its end: a test that has ended panics.
type output struct {
	mu sync.Mutex
	to io.Writer
}

func (o *output) Write(line []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.to.Write(line)
}

func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.to = io.Discard
}
