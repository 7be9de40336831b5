package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/redact"
)

// said returns what somebody else said as a verdict may show it: without the
// secrets and every piece of one, for what shows a secret may have cut it, and
// without what a terminal would obey. Our own words do not go through it:
// taking a secret out of them would tell what it is.
func (t *trial) said(text string, secrets ...string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' {
			return '.'
		}
		return r
	}, redact.Pieces(append(secrets, t.secrets...)...).Text(text))
}

// answer is what the server said to a call.
type answer struct {
	status   int
	header   http.Header
	body     []byte
	envelope map[string]json.RawMessage // nil if the body is no JSON object
	shown    string                     // the errorCode, or the text of err, as a verdict may show it
	step     string                     // what was asked
	err      error                      // there was no answer
}

// call is one call as it goes over the wire.
type call struct {
	method, path string
	header       http.Header // written as it is, in the case that it has
	body         io.Reader
	length       int64  // -1 sends the body in chunks
	alone        bool   // on a connection of its own: what a server leaves unread of it spoils no other call
	hmac         string // what would be the right one, for no verdict may hold it
}

// errBusy says that a server wants fewer calls, for longer than a call may take.
var errBusy = errors.New("the server answered HTTP 429, and asked for more patience than Target.Timeout (-timeout) allows")

// try makes a call, again if the server asks for patience. It leaves the trial
// alone, so that many may run at once.
func (t *trial) try(c call) answer {
	if t.err != nil {
		return answer{err: t.err}
	}
	ctx, cancel := context.WithTimeout(t.ctx, t.target.Timeout)
	defer cancel()
	deadline, _ := ctx.Deadline()
	for {
		a := t.once(ctx, c)
		a.step = c.method + " " + c.path
		if a.status != http.StatusTooManyRequests {
			return a
		}
		wait := retryAfter(a.header.Get("Retry-After"))
		again, whole := c.body.(io.Seeker)
		if c.body != nil && !whole || time.Until(deadline) < wait || !sleep(ctx, wait) {
			return answer{err: errBusy}
		}
		if whole {
			_, _ = again.Seek(0, io.SeekStart)
		}
	}
}

// retryAfter reads the header of that name: seconds, or a time. A second is for
// those who do not say.
func retryAfter(text string) time.Duration {
	if seconds, err := strconv.ParseUint(text, 10, 16); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if when, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(when))
	}
	return time.Second
}

// sleep says whether it could sleep to the end.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (t *trial) once(ctx context.Context, c call) answer {
	request, err := http.NewRequestWithContext(ctx, c.method, t.target.URL+c.path, c.body)
	if err != nil {
		return answer{err: err}
	}
	request.Header, request.ContentLength, request.Close = t.withTargetHeader(c.header), c.length, c.alone
	secrets := []string{c.hmac}
	for name, values := range c.header {
		if strings.EqualFold(name, signature) { // the case of names is what some calls are about
			secrets = append(secrets, values...)
		}
	}
	response, err := t.client.Do(request)
	if err != nil {
		return answer{err: err, shown: t.failure(err, secrets)}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, mostAnswer))
	a := answer{status: response.StatusCode, header: response.Header, body: body, err: err}
	if json.Unmarshal(body, &a.envelope) != nil {
		a.envelope = nil
	}
	a.shown = t.shown(a.code(), secrets)
	if err != nil {
		a.shown = t.failure(err, secrets)
	}
	return a
}

// failure says why there was no answer. The usual causes have words of ours, of
// which nothing is to be taken out.
func (t *trial) failure(err error, secrets []string) string {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed"
	case errors.Is(err, context.DeadlineExceeded):
		return "none within " + t.target.Timeout.String()
	default:
		return t.said(err.Error(), secrets...)
	}
}

// withTargetHeader adds the headers that the target wants on every call.
func (t *trial) withTargetHeader(header http.Header) http.Header {
	if len(t.target.Header) == 0 {
		return header
	}
	all := maps.Clone(header)
	for name, values := range t.target.Header {
		if all.Get(name) == "" {
			all[name] = values
		}
	}
	return all
}

// plain is an errorCode that is one: what else a server writes there may hold
// what was sent to it.
var plain = regexp.MustCompile(`^[A-Za-z0-9_ .:-]{1,40}$`)

// shown is an errorCode as a verdict may show it.
func (t *trial) shown(code string, secrets []string) string {
	if !plain.MatchString(code) || t.said(code, secrets...) != code {
		return fmt.Sprintf("of %d bytes that are better not shown", len(code))
	}
	return strconv.Quote(code)
}

// signed are the headers of a validate or result call (interface 4.3).
func (t *trial) signed(s ramp.Session, body []byte) http.Header {
	header := t.headers(s)
	header[signature] = []string{t.target.Key.Sign(body)}
	return header
}

// The headers of the interface (4.3), in the case in which the service writes
// them.
const (
	authorization = "x-dapp-authorization"
	sessionID     = "x-dapp-sessionid"
	signature     = "x-hmac-signature"
)

// headers are those of an assets call (interface 4.3).
func (t *trial) headers(s ramp.Session) http.Header {
	return http.Header{
		"Content-Type": {"application/json"},
		authorization:  {"Bearer " + s.Token.Reveal()},
		sessionID:      {s.ID},
	}
}

func (t *trial) get(header http.Header) answer {
	a := t.try(call{method: http.MethodGet, path: t.target.AssetsPath, header: header})
	a.step = "assets"
	return a
}

func (t *trial) assets(s ramp.Session) answer { return t.get(t.headers(s)) }

func (t *trial) post(path string, header http.Header, body []byte) answer {
	return t.try(call{method: http.MethodPost, path: path, header: header,
		body: bytes.NewReader(body), length: int64(len(body)), hmac: t.target.Key.Sign(body)})
}

// validate asks for an order as the service does.
func (t *trial) validate(o order) answer {
	body := o.body.bytes()
	return t.asked(o, t.post(t.target.ValidatePath, t.signed(o.owner, body), body))
}

// asked is the answer to the validate call of an order, which may have come in
// some odd way.
func (t *trial) asked(o order, a answer) answer {
	a.step = "validate a mint"
	if o.burns() {
		a.step = "validate a burn"
	}
	if a.err == nil && a.succeeded() {
		t.ledger.approved(o)
	}
	return a
}

// report tells how an order ended, as the service does.
func (t *trial) report(o order, result object) answer {
	body := result.bytes()
	return t.told(o, result, t.post(t.target.ResultPath, t.signed(o.owner, body), body))
}

// told is the answer to the result of an order, which may have come in some odd
// way.
func (t *trial) told(o order, result object, a answer) answer {
	status := statusOf(result)
	a.step = "result: " + string(kindOf(o, status))
	if a.err == nil && a.succeeded() {
		t.ledger.confirmed(o, status)
	}
	return a
}

func (a answer) succeeded() bool { return string(a.envelope["success"]) == "true" }

func (a answer) declined() bool {
	return string(a.envelope["success"]) == "false" && a.code() != "" && a.null("data")
}

// null says whether a field is null. One that is missing counts as null; the
// cases of the envelopes look closer.
func (a answer) null(name string) bool {
	value, ok := a.envelope[name]
	return !ok || string(value) == "null"
}

// code is the errorCode, empty if it is no string.
func (a answer) code() string {
	var code string
	_ = json.Unmarshal(a.envelope["errorCode"], &code)
	return code
}

// String says what was answered, in few words and without data.
func (a answer) String() string {
	if a.envelope == nil {
		return fmt.Sprintf("HTTP %d with a body that is no JSON object", a.status)
	}
	success, code := kind(a.envelope["success"]), kind(a.envelope["errorCode"])
	if text := string(a.envelope["success"]); text == "true" || text == "false" {
		success = text
	}
	if a.code() != "" {
		code = a.shown
	}
	return fmt.Sprintf("HTTP %d, success %s, errorCode %s, data %s", a.status, success, code, kind(a.envelope["data"]))
}

func kind(b json.RawMessage) string {
	switch {
	case len(b) == 0:
		return "missing"
	case string(b) == "null":
		return "null"
	default:
		return "given"
	}
}
