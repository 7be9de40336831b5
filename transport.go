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
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/token-ramp/ramp-go/internal/redact"
)

// Delays between attempts; see [ClientConfig].Retries.
const (
	minBackoff    = 200 * time.Millisecond
	maxBackoff    = 5 * time.Second
	maxRetryAfter = 30 * time.Second // a longer Retry-After ends the attempts
)

const userAgent = "ramp-go"

// transport sends HTTP requests for a [Client] or an [RPC], with timeouts and
// retries.
type transport struct {
	client  http.Client
	pool    *http.Transport // of client, if nobody else uses it
	timeout time.Duration
	retries int
	log     *slog.Logger
	now     func() time.Time

	observer Observer
}

// newTransport checks t, sets its defaults, and copies client. name is the name of
// the config in errors.
func newTransport(p *problems, name string, client *http.Client, t transport) *transport {
	if t.timeout < 0 {
		p.add(name+".Timeout", "must not be negative")
	}
	if t.retries < -1 {
		p.add(name+".Retries", "must be at least -1, which means none")
	}
	t.timeout = cmp.Or(t.timeout, 10*time.Second)
	t.retries = max(0, cmp.Or(t.retries, 2))
	t.log = cmp.Or(t.log, slog.New(slog.DiscardHandler))
	if t.now == nil {
		t.now = time.Now
	}
	if client != nil {
		t.client = *client
	} else if t.pool = newPool(); t.pool != nil {
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

// newPool returns a transport for many concurrent calls to one host, with the
// proxy, dialer and TLS settings of http.DefaultTransport. That one keeps two idle
// connections per host, so a server under load would open a new connection for
// almost every call. And it never notices that an HTTP/2 connection died without a
// word, as behind a NAT, and would use it for every later call. newPool returns nil if the
// program replaced http.DefaultTransport, perhaps for tracing: that one is used then.
func newPool() *http.Transport {
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

// begin starts an operation and returns its context.
func (t *transport) begin(ctx context.Context, kind OperationKind, name string) (context.Context, Operation) {
	op := Operation{Kind: kind, Name: name, Begun: t.now()}
	return t.observer.start(ctx, op), op
}

// end ends an operation and returns its duration.
func (t *transport) end(ctx context.Context, op Operation, err error) time.Duration {
	op.Duration, op.Err = t.now().Sub(op.Begun), err
	t.observer.end(ctx, op)
	return op.Duration
}

// answer is an HTTP response with its whole body.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// retryAfter returns the delay that the answer asks for, or 0. A time is compared with the time of
// the answer, because the two clocks may differ.
func (a *answer) retryAfter(now time.Time) time.Duration {
	value := strings.TrimSpace(a.header.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	at, _ := http.ParseTime(value) // anything else is the zero time
	if sent, err := http.ParseTime(a.header.Get("Date")); err == nil {
		now = sent
	}
	return max(0, at.Sub(now))
}

// post makes one request and reads an answer of up to limit bytes. Its errors do
// not contain the URL, which may hold a credential. The caller limits the time.
func (t *transport) post(ctx context.Context, address string, header http.Header, body []byte, limit int64) (*answer, error) {
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
		return nil, ErrAnswerTooLarge
	}
	body = bytes.TrimPrefix(read.Bytes(), []byte("\ufeff")) // a byte order mark is no JSON
	return &answer{status: response.StatusCode, header: response.Header, body: body}, nil
}

func withoutURL(err error) error {
	var at *url.Error
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// retryableError marks an error that may pass.
type retryableError struct {
	error
	after time.Duration // the minimum delay before the next attempt, or 0

	answered bool // by the right address, such as a rate limit
}

func (e *retryableError) Unwrap() error { return e.error }

// marked returns the retryable mark in an error, or an empty one.
func marked(err error) retryableError {
	var found *retryableError
	if errors.As(err, &found) {
		return *found
	}
	return retryableError{}
}

// withoutMark returns an error without its retryable mark.
func withoutMark(err error) error { return cmp.Or(marked(err).error, err) }

// retry calls attempt until it succeeds, fails with an error that is not retryable,
// or Retries is exhausted. It returns the error of the last attempt, without the
// mark.
func (t *transport) retry(ctx context.Context, attempt func() error) error {
	for n := 0; ; n++ {
		err := attempt()
		retryable := marked(err)
		if retryable.error == nil {
			return err
		}
		if n == t.retries || ctx.Err() != nil {
			return retryable.error
		}
		wait := max(backoff(n), retryable.after)
		if deadline, ok := ctx.Deadline(); wait > maxRetryAfter || ok && time.Until(deadline) < wait {
			return retryable.error
		}
		t.log.LogAttrs(ctx, slog.LevelWarn, "ramp: retrying",
			slog.Int("attempt", n+1), slog.Duration("wait", wait), slog.Any("error", retryable.error))
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return fmt.Errorf("%w (while waiting after: %w)", ctx.Err(), retryable.error)
		}
	}
}

// leave closes the idle connections of a pool of our own after a failure that may pass. The name of
// the other side may have moved while its old address still answers, such as with 503: a connection
// that works would be used forever. A rate limit is an answer of the right address.
func (t *transport) leave(err error) {
	if failed := marked(err); t.pool != nil && failed.error != nil && !failed.answered {
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

// maxExcerpt is how much foreign text an error shows, so that with our own words it
// stays below [redact.MaxError] bytes.
const maxExcerpt = 400

// excerpt returns the beginning of foreign text on one line.
func excerpt(text string) string { return redact.New().Line(text, maxExcerpt) }

// boundedError is an error whose text is cut.
type boundedError struct {
	error
	text string
}

func (e *boundedError) Error() string { return e.text }
func (e *boundedError) Unwrap() error { return e.error }

// bounded returns err with a text of at most [redact.MaxError] bytes on one line.
// Foreign text in it must have been redacted.
func bounded(err error) error {
	if err == nil || len(err.Error()) <= redact.MaxError {
		return err
	}
	return &boundedError{err, redact.New().Line(err.Error(), redact.MaxError)}
}

// checkBase returns the base URL of a service without trailing slashes.
func checkBase(p *problems, path, base string, insecure bool) string {
	u, problem := parseURL(base, insecure)
	if problem == "" && (u.User != nil || u.RawQuery != "" || u.ForceQuery || strings.Contains(base, "#")) {
		problem = "must not have a user, a query or a fragment"
	}
	if problem != "" {
		p.add(path, "%s", problem)
		return ""
	}
	return strings.TrimRight(u.String(), "/")
}

// parseURL parses an absolute URL of the service or of a node. If it is unusable,
// problem says why without quoting it, because it may contain a credential.
// insecure accepts http for every host.
func parseURL(text string, insecure bool) (u *url.URL, problem string) {
	if what := unseen(text); what != "" {
		return nil, "must not have " + what
	}
	u, err := url.Parse(text)
	switch {
	case text == "":
		return nil, "is required"
	case strings.TrimSpace(text) != text:
		return nil, "must not begin or end with white space"
	case err != nil, u.Hostname() == "", u.Scheme != "https" && u.Scheme != "http":
		return nil, "must be an absolute https URL"
	case u.Scheme == "http" && !insecure && !isPrivate(u.Hostname()):
		return nil, "must be https, unless the host is on a private network"
	default:
		return u, ""
	}
}

// isPrivate reports whether a host can only be on a private network.
func isPrivate(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if !strings.ContainsAny(host, ".:") {
		// Browsers and getaddrinfo read a number as an IPv4 address.
		_, err := strconv.ParseUint(host, 0, 64)
		return err != nil
	}
	return strings.HasSuffix(host, ".localhost") || strings.HasSuffix(host, ".local") ||
		strings.HasSuffix(host, ".internal")
}

// secretsOf returns the secrets of a URL: user, password, query values, and path
// segments that are long enough to be a key, unlike "data" or "eth-mainnet".
func secretsOf(u *url.URL) []string {
	const minSegment = 16 // characters
	password, _ := u.User.Password()
	secrets := []string{u.User.Username(), password}
	for _, parameter := range strings.FieldsFunc(u.RawQuery, func(c rune) bool { return c == '&' || c == ';' }) {
		_, value, named := strings.Cut(parameter, "=")
		if !named {
			value = parameter
		}
		if decoded, err := url.QueryUnescape(value); err == nil {
			value = decoded
		}
		secrets = append(secrets, value)
	}
	for _, segment := range strings.Split(u.Path, "/") {
		if utf8.RuneCountInString(segment) >= minSegment {
			secrets = append(secrets, segment)
		}
	}
	return secrets
}
