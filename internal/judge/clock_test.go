package judge_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/token-ramp/ramp-go/internal/test/racedetector"
)

func TestMain(m *testing.M) {
	// Thousands of calls leave much garbage and keep little, so the collector would take a
	// quarter of the time.
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}

// skipSlow skips a test that takes minutes with the race detector, or longer than -short
// allows.
func skipSlow(t *testing.T, short bool) {
	t.Helper()
	racedetector.Skip(t)
	if short && testing.Short() {
		t.Skip("it takes longer than -short allows")
	}
}

// inVirtualTime runs a test with a clock that jumps ahead whenever the judge and the
// server do nothing but wait. What the test measures is how long they wait, however fast
// the machine is.
func inVirtualTime(t *testing.T, m mutant, test func(t *testing.T, s *studio)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, newStudio(t, m, &wires{calls: make(chan net.Conn), done: make(chan struct{})}))
	})
}

// wires is a network in memory, because the clock does not jump while a call waits for
// a real one.
type wires struct {
	handler http.Handler
	running sync.WaitGroup // calls of the handler
	calls   chan net.Conn
	done    chan struct{}
	once    sync.Once
}

// RoundTrip calls the handler as a server would, in less time.
func (w *wires) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.closed() {
		return nil, net.ErrClosed
	}
	// A server learns that its caller is gone, and not when the caller will give up.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	context.AfterFunc(r.Context(), cancel)
	served := r.WithContext(ctx)
	served.Host, served.RequestURI, served.RemoteAddr = cmp.Or(r.Host, r.URL.Host), r.URL.RequestURI(), "127.0.0.1:1"
	served.Header, served.Body = http.Header{}, cmp.Or(r.Body, io.ReadCloser(http.NoBody))
	for name, values := range r.Header {
		for _, value := range values {
			served.Header.Add(name, strings.TrimSpace(value))
		}
	}
	recorder, answered := httptest.NewRecorder(), make(chan bool, 1)
	w.running.Go(func() {
		defer cancel()
		defer func() { answered <- recover() == nil }()
		w.handler.ServeHTTP(recorder, served)
	})
	select {
	case ok := <-answered:
		if w.closed() { // the handler closed the connections before it answered
			return nil, net.ErrClosed
		}
		if ok {
			return recorder.Result(), nil
		}
		return nil, io.EOF // as of a connection that a panic has closed
	case <-w.done:
		return nil, net.ErrClosed
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

func (w *wires) closed() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

func (w *wires) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	in, answer := net.Pipe()
	request, out := net.Pipe()
	select {
	case w.calls <- wire{request, answer}:
		return wire{in, out}, nil
	case <-w.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (w *wires) Accept() (net.Conn, error) {
	select {
	case conn := <-w.calls:
		return conn, nil
	case <-w.done:
		return nil, net.ErrClosed
	}
}

func (w *wires) Close() error {
	w.once.Do(func() { close(w.done) })
	return nil
}

func (w *wires) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// wire is one end of a connection. Like one of TCP, it can end what it writes and still
// read.
type wire struct {
	net.Conn
	out net.Conn
}

func (w wire) Write(p []byte) (int, error)        { return w.out.Write(p) }
func (w wire) CloseWrite() error                  { return w.out.Close() }
func (w wire) Close() error                       { return errors.Join(w.Conn.Close(), w.out.Close()) }
func (w wire) SetWriteDeadline(t time.Time) error { return w.out.SetWriteDeadline(t) }
func (w wire) SetDeadline(t time.Time) error {
	return errors.Join(w.Conn.SetDeadline(t), w.out.SetDeadline(t))
}
