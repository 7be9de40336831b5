// Package transport sends the HTTP requests of the clients of package ramp: with limits of time and
// size, with retries, and with no word about a URL that may hold a credential.
package transport

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Delays between attempts.
const (
	minBackoff    = 200 * time.Millisecond
	maxBackoff    = 5 * time.Second
	maxRetryAfter = 30 * time.Second // a longer Retry-After ends the attempts
)

// UserAgent is sent with every request.
const UserAgent = "ramp-go"

// Transport sends HTTP requests. Make one with [New].
type Transport struct {
	Timeout time.Duration // of an attempt; the caller applies it
	Retries int
	Log     *slog.Logger
	Now     func() time.Time

	client http.Client
	pool   *http.Transport // of client, if nobody else uses it
}

// New sets the defaults of t, and copies client. wrong is called with each field that is wrong.
func New(client *http.Client, t Transport, wrong func(field, problem string)) *Transport {
	if t.Timeout < 0 {
		wrong("Timeout", "must not be negative")
	}
	if t.Retries < -1 {
		wrong("Retries", "must be at least -1, which means none")
	}
	t.Timeout = cmp.Or(t.Timeout, 10*time.Second)
	t.Retries = max(0, cmp.Or(t.Retries, 2))
	t.Log = cmp.Or(t.Log, slog.New(slog.DiscardHandler))
	if t.Now == nil {
		t.Now = time.Now
	}
	if client != nil {
		t.client = *client
	} else if t.pool = NewPool(); t.pool != nil {
		t.client.Transport = t.pool
	}
	// A redirected call would reach an address that was not configured.
	t.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &t
}

const (
	// maxConnections is how many connections a client opens to a host, and keeps.
	maxConnections = 100

	// An HTTP/2 connection that is silent for pingAfter is pinged, and closed if the ping is not
	// answered within pingWait.
	pingAfter = 3 * time.Second
	pingWait  = 2 * time.Second
)

// NewPool returns a transport for many concurrent calls to one host, with the
// proxy, dialer and TLS settings of http.DefaultTransport. That one keeps two idle
// connections per host, so a server under load would open a new connection for
// almost every call. And it never notices that an HTTP/2 connection died without a
// word, as behind a NAT, and would use it for every later call. NewPool returns nil if the
// program replaced http.DefaultTransport, perhaps for tracing: that one is used then.
func NewPool() *http.Transport {
	pool, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil
	}
	pool = pool.Clone()
	pool.MaxIdleConnsPerHost = max(pool.MaxIdleConnsPerHost, maxConnections)
	pool.MaxConnsPerHost = cmp.Or(pool.MaxConnsPerHost, pool.MaxIdleConnsPerHost)
	pool.HTTP2 = cmp.Or(pool.HTTP2, new(http.HTTP2Config))
	pool.HTTP2.SendPingTimeout = cmp.Or(pool.HTTP2.SendPingTimeout, pingAfter)
	pool.HTTP2.PingTimeout = cmp.Or(pool.HTTP2.PingTimeout, pingWait)
	return pool
}

// Answer is an HTTP response with its whole body.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// ErrTooLarge means that an answer is larger than the limit.
var ErrTooLarge = errors.New("the answer is too large")

// RetryAfter returns the delay that the answer asks for, or 0. A time is compared with the time of
// the answer, because the two clocks may differ.
func (a *Answer) RetryAfter(now time.Time) time.Duration {
	value := strings.TrimSpace(a.Header.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	at, _ := http.ParseTime(value) // anything else is the zero time
	if sent, err := http.ParseTime(a.Header.Get("Date")); err == nil {
		now = sent
	}
	return max(0, at.Sub(now))
}

// Post makes one request and reads an answer of up to limit bytes. Its errors do
// not contain the URL, which may hold a credential. The caller limits the time.
func (t *Transport) Post(
	ctx context.Context, address string, header http.Header, body []byte, limit int64,
) (*Answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, withoutURL(err)
	}
	request.Header = header
	response, err := t.client.Do(request)
	if err != nil {
		return nil, withoutURL(err)
	}
	defer response.Body.Close()
	const maxPrealloc = 1 << 20 // because Content-Length is only a claim
	read := bytes.NewBuffer(make([]byte, 0, min(max(response.ContentLength, 0), maxPrealloc)+bytes.MinRead))
	if _, err := read.ReadFrom(io.LimitReader(response.Body, limit+1)); err != nil {
		return nil, fmt.Errorf("read the answer: %w", withoutURL(err))
	}
	if int64(read.Len()) > limit {
		return nil, ErrTooLarge
	}
	body = bytes.TrimPrefix(read.Bytes(), []byte("\ufeff")) // a byte order mark is no JSON
	return &Answer{response.StatusCode, response.Header, body}, nil
}

func withoutURL(err error) error {
	var at *url.Error
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// Retryable marks an error that may pass.
type Retryable struct {
	Err   error
	After time.Duration // the minimum delay before the next attempt, or 0

	Answered bool // by the right address, such as a rate limit
}

func (e *Retryable) Error() string { return e.Err.Error() }
func (e *Retryable) Unwrap() error { return e.Err }

// Marked returns the mark in an error, or an empty one.
func Marked(err error) Retryable {
	var found *Retryable
	if errors.As(err, &found) {
		return *found
	}
	return Retryable{}
}

// Unmarked returns an error without its mark.
func Unmarked(err error) error { return cmp.Or(Marked(err).Err, err) }

// Retry calls attempt until it succeeds, fails with an error that is not retryable,
// or Retries is exhausted. It returns the error of the last attempt, without the
// mark.
func (t *Transport) Retry(ctx context.Context, attempt func() error) error {
	for n := 0; ; n++ {
		err := attempt()
		retryable := Marked(err)
		if retryable.Err == nil {
			return err
		}
		if n == t.Retries || ctx.Err() != nil {
			return retryable.Err
		}
		wait := max(backoff(n), retryable.After)
		if deadline, ok := ctx.Deadline(); wait > maxRetryAfter || ok && time.Until(deadline) < wait {
			return retryable.Err
		}
		t.Log.LogAttrs(ctx, slog.LevelWarn, "ramp: retrying",
			slog.Int("attempt", n+1), slog.Duration("wait", wait), slog.Any("error", retryable.Err))
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return fmt.Errorf("%w (while waiting after: %w)", ctx.Err(), retryable.Err)
		}
	}
}

// Leave closes the idle connections of a pool of our own after a failure that may pass. The name of
// the other side may have moved while its old address still answers, such as with 503: a connection
// that works would be used forever. A rate limit is an answer of the right address.
func (t *Transport) Leave(err error) {
	if failed := Marked(err); t.pool != nil && failed.Err != nil && !failed.Answered {
		t.pool.CloseIdleConnections()
	}
}

// backoff returns the delay after attempt n: between half of the full delay and all
// of it.
func backoff(n int) time.Duration {
	full := maxBackoff
	if n < 10 {
		full = min(maxBackoff, minBackoff<<n)
	}
	return full/2 + rand.N(full/2+1)
}
