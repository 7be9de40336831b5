package ramptest

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"sync"
	"testing"
)

// Logger returns a logger for what a test starts, such as [ramp.HandlerConfig].Logger and
// [ramp.ClientConfig].Logger. If the test fails, go test shows the last 10 warnings and errors of all its
// loggers, and with -v each line at once. What is logged after the end of the test is dropped: a write to a
// test that has ended panics.
func Logger(t testing.TB) *slog.Logger {
	s := talkOf(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.to == nil {
		s.to, s.atOnce = t.Output(), testing.Verbose()
	}
	return slog.New(slog.NewTextHandler(s, nil))
}

// maxTail is how many lines of the log a test that failed shows.
const maxTail = 10

// talk is what a test says besides its errors: one for all its loggers and services together, because
// one that starts 40 of them would otherwise show 400 lines.
type talk struct {
	mu     sync.Mutex
	to     io.Writer // nil without a logger
	atOnce bool
	last   [][]byte // lines that are written at the end
	others int      // lines that are not
	told   bool     // what happened to a service
}

// tests holds the tests that run, because a test has no place for what its loggers and services share.
var tests sync.Map // testing.TB to *talk

// talkOf returns what a test says besides its errors.
func talkOf(t testing.TB) *talk {
	s, shared := new(talk), reflect.TypeOf(t).Comparable() // that of another framework may not be
	if shared {
		if known, is := tests.LoadOrStore(t, s); is {
			return known.(*talk)
		}
	}
	t.Cleanup(func() {
		if shared {
			tests.Delete(t)
		}
		s.end()
	})
	return s
}

// Write writes a line of a log.
func (s *talk) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.atOnce {
		return s.to.Write(line)
	}
	if _, level, _ := bytes.Cut(line, []byte(" level=")); bytes.HasPrefix(level, []byte("INFO ")) ||
		bytes.HasPrefix(level, []byte("DEBUG ")) { // the first one: a text may quote another
		s.others++
		return len(line), nil
	}
	if s.last = append(s.last, bytes.Clone(line)); len(s.last) > maxTail {
		s.last = s.last[1:]
		s.others++
	}
	return len(line), nil
}

func (s *talk) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.others > 0 && len(s.last) > 0 {
		fmt.Fprintf(s.to, "%d other lines of the log: go test -v shows them\n", s.others)
	}
	for _, line := range s.last {
		_, _ = s.to.Write(line)
	}
	s.to, s.atOnce = io.Discard, true
}

// tells reports whether a service may tell what happened: the first one of a test that asks.
func (s *talk) tells() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	told := s.told
	s.told = true
	return !told
}
