package ramp

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
	"unicode"
	"unicode/utf8"
)

// Pauses between attempts; see ClientConfig.Retries.
const (
	firstPause = 200 * time.Millisecond
	mostPause  = 5 * time.Second
	mostWait   = 30 * time.Second // the longest Retry-After that is waited for
)

const userAgent = "ramp-go"

// transport is what a client knows of HTTP, whatever it says over it.
type transport struct {
	client  http.Client
	timeout time.Duration
	retries int
	log     *slog.Logger
	now     func() time.Time

	observer Observer
}

// transportConfig is what the configs of the clients have in common.
type transportConfig struct {
	client  *http.Client
	timeout time.Duration
	retries int
	log     *slog.Logger
	now     func() time.Time

	observer Observer
}

// newTransport checks c, a part of the config of that name, and fills it up.
func newTransport(p *problems, name string, c transportConfig) *transport {
	if c.timeout < 0 {
		p.add(name+".Timeout", "must not be negative")
	}
	if c.retries < -1 {
		p.add(name+".Retries", "must not be below -1, which means none")
	}
	t := &transport{
		timeout: cmp.Or(c.timeout, 10*time.Second),
		retries: max(0, cmp.Or(c.retries, 2)),
		log:     cmp.Or(c.log, slog.New(slog.DiscardHandler)),
		now:     c.now,

		observer: c.observer,
	}
	if t.now == nil {
		t.now = time.Now
	}
	if c.client != nil {
		t.client = *c.client
	} else {
		t.client.Transport = newPool()
	}
	// A signed call must not reach an address that nobody configured.
	t.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return t
}

// idleConnections is how many connections a client keeps open to its one host.
const idleConnections = 100

// newPool returns a transport for the calls of many goroutines to one host, with
// the proxy, dialer, TLS and HTTP/2 settings of http.DefaultTransport. That one
// keeps two idle connections per host, so a server under load would open a new
// connection for almost every call.
func newPool() http.RoundTripper {
	pool, ok := http.DefaultTransport.(*http.Transport)
	if !ok { // the program replaced it, for tracing perhaps
		return http.DefaultTransport
	}
	pool = pool.Clone()
	pool.MaxIdleConnsPerHost = max(pool.MaxIdleConnsPerHost, idleConnections)
	return pool
}

// begin starts an operation, and returns the context of it.
func (t *transport) begin(ctx context.Context, kind OperationKind, name string) (context.Context, Operation) {
	op := Operation{Kind: kind, Name: name, Begun: t.now()}
	return t.observer.start(ctx, op), op
}

// end ends an operation, and returns how long it took.
func (t *transport) end(ctx context.Context, op Operation, err error) time.Duration {
	op.Duration, op.Err = t.now().Sub(op.Begun), err
	t.observer.end(ctx, op)
	return op.Duration
}

// answer is an HTTP response that was read whole.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// retryAfter is what the answer asks for, 0 if nothing.
func (a *answer) retryAfter(now time.Time) time.Duration {
	value := strings.TrimSpace(a.header.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	at, _ := http.ParseTime(value) // what is no date is long ago
	return max(0, at.Sub(now))
}

var errAnswerTooLarge = errors.New("the answer is too large")

// post sends body once and reads an answer of at most limit bytes. Its errors
// hold no URL, which may have a credential in it.
func (t *transport) post(ctx context.Context, address string, header http.Header, body []byte, limit int64) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, t.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, withoutURL(err)
	}
	request.Header = header
	if _, ok := header["User-Agent"]; !ok {
		header.Set("User-Agent", userAgent)
	}
	response, err := t.client.Do(request)
	if err != nil {
		return nil, withoutURL(err)
	}
	defer response.Body.Close()
	const mostAtOnce = 1 << 20 // of a length that the other side merely claims
	read := bytes.NewBuffer(make([]byte, 0, min(max(response.ContentLength, 0), mostAtOnce)+bytes.MinRead))
	if _, err := read.ReadFrom(io.LimitReader(response.Body, max(limit, limit+1))); err != nil {
		return nil, fmt.Errorf("read the answer: %w", withoutURL(err))
	}
	if int64(read.Len()) > limit {
		return nil, errAnswerTooLarge
	}
	return &answer{status: response.StatusCode, header: response.Header, body: read.Bytes()}, nil
}

func withoutURL(err error) error {
	var at *url.Error
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// transient marks a failure that may pass.
type transient struct {
	error
	after time.Duration // how long to wait at least, 0 if nobody said
}

// unmarked returns an error without the mark of a transient one.
func unmarked(err error) error {
	var passing *transient
	if errors.As(err, &passing) {
		return passing.error
	}
	return err
}

// retry makes attempts until one succeeds or fails for good. The error is that
// of the last attempt, without the mark.
func (t *transport) retry(ctx context.Context, attempt func() error) error {
	for n := 0; ; n++ {
		err := attempt()
		var passing *transient
		if !errors.As(err, &passing) {
			return err
		}
		if n == t.retries || ctx.Err() != nil {
			return passing.error
		}
		wait := max(pause(n), passing.after)
		if deadline, ok := ctx.Deadline(); wait > mostWait || ok && time.Until(deadline) < wait {
			return passing.error
		}
		t.log.LogAttrs(ctx, slog.LevelWarn, "ramp: trying again",
			slog.Int("attempt", n+1), slog.Duration("wait", wait), slog.Any("error", passing.error))
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return fmt.Errorf("%w (while waiting after: %w)", ctx.Err(), passing.error)
		}
	}
}

// pause is the wait after attempt n, between half of the full one and all of it.
func pause(n int) time.Duration {
	full := mostPause
	if n < 10 {
		full = min(mostPause, firstPause<<n)
	}
	return full/2 + rand.N(full/2+1)
}

const (
	mostExcerpt      = 200             // bytes of foreign text in an error
	maxExcerptSource = 4 * mostExcerpt // of which an excerpt is made
)

// excerpt is the beginning of foreign text, fit for one line of a log.
func excerpt(text string) string {
	text = text[:min(len(text), maxExcerptSource)]
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), r == utf8.RuneError:
			return ' '
		case !unicode.IsPrint(r):
			return -1
		default:
			return r
		}
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= mostExcerpt {
		return text
	}
	end := mostExcerpt
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
