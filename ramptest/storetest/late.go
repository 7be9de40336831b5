package storetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
)

// Late is a transport for the HTTP client of a store's database, such as that of a document database. It
// passes all requests on. For one subtest of [TestStore], it lets a request time out, and sends it to the
// server only after the call was answered. A network does so, too, while the client has long sent its
// request again: the late one must then change nothing. It is safe for concurrent use.
type Late struct {
	// Base sends the requests. The default is [http.DefaultTransport].
	Base http.RoundTripper

	mu    sync.Mutex
	until int // how many requests come before the one that is held, and itself; 0 means that none is
	held  *http.Request
	body  []byte
}

// RoundTrip sends a request, or lets it time out.
func (l *Late) RoundTrip(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	hold := l.until == 1
	l.until = max(0, l.until-1)
	l.mu.Unlock()
	if hold {
		var body []byte
		if r.Body != nil {
			var err error
			if body, err = io.ReadAll(r.Body); err != nil {
				return nil, errors.Join(err, r.Body.Close())
			}
			if err := r.Body.Close(); err != nil {
				return nil, err
			}
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.held, l.body = r, body
		return nil, errLate{}
	}
	return l.base().RoundTrip(r)
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
