package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// Late is a transport for the HTTP client of a store's database, such as that of a document database. It
// passes all requests on. For one subtest of [TestStore], it lets a request time out, and sends it to the
// server only after the call was answered. A network does so, too, while the client has long sent its
// request again: the late one must then change nothing. For another subtest, it answers a read as it was
// answered before, like a replica that lags behind: what the store writes then must be compared with what
// is stored. It is safe for concurrent use.
type Late struct {
	// Base sends the requests. The default is [http.DefaultTransport].
	Base http.RoundTripper

	mu    sync.Mutex
	until int // how many requests come before the one that is held, and itself; 0 means that none is
	held  *http.Request
	body  []byte

	answers map[string]answered // of requests, by what they ask; nil if they are not kept
	stale   bool                // whether the next request that was answered before gets that answer
}

// answered is an answer that was kept.
type answered struct {
	*http.Response
	body []byte
}

// RoundTrip sends a request, or lets it time out.
func (l *Late) RoundTrip(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	hold := l.until == 1
	l.until = max(0, l.until-1)
	keep := l.answers != nil
	l.mu.Unlock()
	if !hold && !keep {
		return l.base().RoundTrip(r)
	}
	body, err := readAll(r.Body)
	if err != nil {
		return nil, err
	}
	if hold {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.held, l.body = r, body
		return nil, errLate{}
	}
	return l.kept(r, body)
}

// kept answers a request as before, or keeps its answer.
func (l *Late) kept(r *http.Request, body []byte) (*http.Response, error) {
	asks := fmt.Sprintln(r.Method, r.URL, r.Header["Idempotency-Key"], string(body))
	l.mu.Lock()
	old, known := l.answers[asks]
	stale := known && l.stale
	l.stale = l.stale && !known
	l.mu.Unlock()
	if !stale {
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
		response, err := l.base().RoundTrip(r)
		if err != nil {
			return nil, err
		}
		old = answered{Response: response}
		if old.body, err = readAll(response.Body); err != nil {
			return nil, err
		}
		l.mu.Lock()
		if !known {
			l.answers[asks] = old
		}
		l.mu.Unlock()
	}
	response := *old.Response
	response.Body = io.NopCloser(bytes.NewReader(old.body))
	return &response, nil
}

func readAll(body io.ReadCloser) ([]byte, error) {
	if body == nil {
		return nil, nil
	}
	text, err := io.ReadAll(body)
	return text, errors.Join(err, body.Close())
}

// keepAnswers begins to keep the first answer of each request, or ends it.
func (l *Late) keepAnswers(keep bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers, l.stale = nil, false
	if keep {
		l.answers = map[string]answered{}
	}
}

// beStale lets the next request that was answered before get that answer again.
func (l *Late) beStale() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stale = true
}

// wasStale ends beStale, and reports whether a request has got such an answer.
func (l *Late) wasStale() (was bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was = !l.stale
	l.stale = false
	return was
}

func (l *Late) base() http.RoundTripper {
	if l.Base == nil {
		return http.DefaultTransport
	}
	return l.Base
}

// hold lets one of the next requests time out: 1 is the next one.
func (l *Late) hold(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.until, l.held = n, nil
}

// release sends the request that was held, and reports whether there is one.
func (l *Late) release(ctx context.Context) (bool, error) {
	l.mu.Lock()
	r, body := l.held, l.body
	l.until, l.held = 0, nil
	l.mu.Unlock()
	if r == nil {
		return false, nil
	}
	r = r.Clone(ctx)
	r.Body = io.NopCloser(bytes.NewReader(body))
	response, err := l.base().RoundTrip(r)
	if err != nil {
		return true, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return true, errors.Join(err, response.Body.Close())
}

// errLate is how a client learns that a request has timed out.
type errLate struct{}

// Error says what a client sees.
func (errLate) Error() string { return "storetest: no answer came in time" }

// Timeout makes it a net.Error that is one, so that a client sends the request again.
func (errLate) Timeout() bool { return true }

// Temporary is a part of net.Error.
func (errLate) Temporary() bool { return true }
