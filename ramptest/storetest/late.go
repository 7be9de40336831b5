package storetest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"

	ramp "github.com/token-ramp/ramp-go"
)

// Late is a transport for the HTTP client of a store's database, such as that of a document database. It passes
// all requests on. For one subtest of [TestStore], it lets a request time out, and sends it to the server only
// after the call was answered. A network does so, too, while the client has long sent its request again: the
// late one must then change nothing. It is safe for concurrent use.
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
func (l *Late) release(k *trial) bool {
	l.mu.Lock()
	r, body := l.held, l.body
	l.until, l.held = 0, nil
	l.mu.Unlock()
	if r == nil {
		return false
	}
	r = r.Clone(k.ctx)
	r.Body = io.NopCloser(bytes.NewReader(body))
	response, err := l.base().RoundTrip(r)
	if err != nil {
		k.fail("the late request could not be sent: %v", err)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	return true
}

// errLate is how a client learns that a request has timed out.
type errLate struct{}

func (errLate) Error() string   { return "storetest: no answer came in time" }
func (errLate) Timeout() bool   { return true }
func (errLate) Temporary() bool { return true }

// lateRequests holds each request of a validate call in turn: the first, the second, and so on.
func (k *trial) lateRequests() {
	for n := 1; ; n++ {
		d := k.player(3).deal(mint(gold(5)))
		k.Late.hold(n)
		_, err := k.Stores[0].Update(k.ctx, d.UUID, d.accepts())
		if err == nil {
			k.fail("a validate of 5 gold was accepted of a player with 3")
		}
		d.give("gold", 10) // which the player has won meanwhile
		if !k.Late.release(k) {
			if n == 1 {
				k.fail("no request of the store came through the Late of the Fixture: " +
					"let the client of your database use it as its transport")
			}
			return
		}
		stored, taken := d.stored(d.UUID), 10-d.balance("gold")
		switch {
		case rejected(err) && (taken != 0 || stored != nil):
			k.fail("request %d of a validate call came late, after the call was rejected: it took %d gold of the "+
				"player. Let the rejection write something that the late request is compared with", n, taken)
		case !slices.Contains([]int64{0, 5}, taken) || (taken == 5) != (stored != nil):
			k.fail("request %d of a validate call came late, and %d gold are taken of an order that is %v",
				n, taken, stored)
		}
	}
}

func rejected(err error) bool {
	var rejection *ramp.Rejection
	return errors.As(err, &rejection)
}
