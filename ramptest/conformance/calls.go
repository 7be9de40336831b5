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
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/redact"
)

// said returns foreign text in a form that a verdict may show: without secrets and
// control characters. Text of this package must not go through it: redacting a word of
// it would reveal that the word is a secret.
func (t *trial) said(text string, secrets ...string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' {
			return '.'
		}
		return r
	}, redact.New(append(secrets, t.secrets...)...).Text(text))
}

// answer is the server's answer to a call.
type answer struct {
	status    int
	header    http.Header
	body      []byte
	envelope  map[string]json.RawMessage // nil if the body is not a JSON object
	shown     string                     // the errorCode or the text of err, in a form that a verdict may show
	succeeded bool                       // what was asked for was given, or confirmed
	step      string                     // what was asked
	call      *Call                      // the call, as a verdict shows it
	err       error                      // why there was no answer
}

// call is one HTTP call.
type call struct {
	method, path string
	header       http.Header // its names are sent in the case in which they are written
	body         []byte
	arriving     func() io.Reader // returns what is sent instead of body, if it is not nil
	length       int64            // the length of the body; -1 sends it in chunks
	alone        bool             // use a separate connection, so that what a server leaves unread cannot break another call
	hmac         string           // the right HMAC, which no verdict may show
}

// errBusy means that a server rate-limits calls for longer than a call may take.
var errBusy = errors.New("the server, or a proxy before it, limits the rate of calls, and answered HTTP 429 for longer than -timeout allows: exempt the service's endpoints from the limit")

// try makes a call, and repeats it while the server rate-limits it. It does not change
// the trial, so that it is safe for concurrent use.
func (t *trial) try(c call) answer {
	if t.err != nil {
		return answer{err: t.err}
	}
	ctx, cancel := context.WithTimeout(t.ctx, t.Timeout)
	defer cancel()
	deadline, _ := ctx.Deadline()
	c.hmac = t.Key.Sign(c.body)
	if c.method != http.MethodGet || c.path != t.AssetsPath {
		defer t.ledger.called()
	}
	for {
		a := t.attempt(ctx, c)
		a.step = c.method + " " + c.path
		a.call = t.note(c, a)
		t.judge.layers.answered(t, c, a)
		rejected := a.isRejection() && a.header.Get("Retry-After") == "" // by a policy, such as one open order for each player
		if a.status != http.StatusTooManyRequests || c.path == t.ValidatePath && rejected {
			return a
		}
		wait := RetryAfter(a.header.Get("Retry-After"))
		if time.Until(deadline) <= wait || !sleep(ctx, wait) {
			return answer{err: errBusy, call: a.call}
		}
	}
}

// RetryAfter parses a Retry-After header. It defaults to a second.
func RetryAfter(text string) time.Duration {
	if seconds, err := strconv.ParseUint(text, 10, 16); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if when, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(when))
	}
	return time.Second
}

// sleep waits for d. It reports false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	waits, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	<-waits.Done()
	return ctx.Err() == nil
}

func (t *trial) attempt(ctx context.Context, c call) answer {
	request, err := http.NewRequestWithContext(ctx, c.method, t.URL+c.path, bytes.NewReader(c.body))
	if err != nil {
		return answer{err: err}
	}
	maps.Copy(request.Header, t.Header)
	maps.Copy(request.Header, c.header)
	request.Close = c.alone
	if c.arriving != nil {
		request.Body, request.GetBody, request.ContentLength = io.NopCloser(c.arriving()), nil, c.length
	}
	secrets := c.secrets()
	response, err := t.client.Do(request)
	if err != nil {
		return answer{err: err, shown: t.noAnswer(err, secrets...)}
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, mostAnswer))
	a := answer{status: response.StatusCode, header: response.Header, body: body, err: err}
	if json.Unmarshal(body, &a.envelope) != nil {
		a.envelope = nil
	}
	a.succeeded = t.isGiven(c.path, a)
	a.shown = t.shown(a.code(), secrets)
	if err != nil {
		a.shown = fmt.Sprintf("the answer was cut off after %d bytes of its body: %s", len(body), t.noAnswer(err, secrets...))
	}
	return a
}

// isGiven reports whether an answer gives what was asked for. It is lenient: the form of
// each kind of answer is judged by a case of its own. An answer with a validatorSig is an
// approval unless it says success false, and one without a list of assets shows none.
func (t *trial) isGiven(path string, a answer) bool {
	switch success := a.success(); path {
	case t.ValidatePath:
		return a.approval().ValidatorSig != "" && success != "false" || success == "true" && !t.judge.known.confusing[path]
	case t.ResultPath:
		return success == "true" || a.look() == t.judge.known.confirmation
	default:
		var data struct {
			V1 struct{ Assets *[]json.RawMessage }
		}
		return decode(a.envelope["data"], &data) && data.V1.Assets != nil
	}
}

// noAnswer returns why a call got no answer, in a form that a verdict may show. For the
// usual reasons it uses words of this package, which need no redaction.
func (t *trial) noAnswer(err error, secrets ...string) string {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection was closed"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout after " + t.Timeout.String()
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	var call *url.Error
	if errors.As(err, &call) {
		err = call.Err // without the method and the URL, which the reader knows
	}
	return t.said(err.Error(), secrets...)
}

// safeCode matches an errorCode that is plainly a code. Any other text there may quote
// what was sent to the server.
var safeCode = regexp.MustCompile(`^[A-Za-z0-9_ .:-]{1,40}$`)

// shown returns an errorCode in a form that a verdict may show.
func (t *trial) shown(code string, secrets []string) string {
	if !safeCode.MatchString(code) || t.said(code, secrets...) != code {
		return fmt.Sprintf("of %d bytes (not shown)", len(code))
	}
	return strconv.Quote(code)
}

// signed returns the headers of a validate or result call (interface 4.3).
func (t *trial) signed(s ramp.Session, body []byte) http.Header {
	header := t.headers(s)
	header[signature] = []string{t.Key.Sign(body)}
	return header
}

// The headers of the interface (4.3), in the case in which the service writes
// them.
const (
	authorization = "x-dapp-authorization"
	sessionID     = "x-dapp-sessionid"
	signature     = "x-hmac-signature"
)

// headers returns the headers of an assets call (interface 4.3).
func (t *trial) headers(s ramp.Session) http.Header {
	return http.Header{
		"Content-Type": {"application/json"},
		authorization:  {"Bearer " + s.Token.Reveal()},
		sessionID:      {s.ID},
	}
}

// assets makes the assets call of a session, with changed headers.
func (t *trial) assets(s ramp.Session, bends ...headerEdit) answer {
	header := t.headers(s)
	for _, bend := range bends {
		bend(t, header, nil)
	}
	a := t.try(call{method: http.MethodGet, path: t.AssetsPath, header: header})
	a.step = "assets"
	return a
}

// call returns a validate or result call as the service makes it.
func (t *trial) call(path string, s ramp.Session, body []byte) call {
	return call{method: http.MethodPost, path: path, header: t.signed(s, body), body: body}
}

// deliver makes a validate or result call. Like the service, it delivers a result again after
// HTTP 500 (interface 6).
func (t *trial) deliver(c call) answer {
	a := t.try(c)
	if a.status == http.StatusInternalServerError && c.path == t.ResultPath {
		a = t.try(c)
	}
	return a
}

// post makes a call of the case's player without an HMAC.
func (t *trial) post(path string, message object) answer {
	return t.deliver(call{method: http.MethodPost, path: path, header: t.headers(t.player), body: message.bytes()})
}

// offer makes the validate call of an order, which may be approved or rejected, and reports
// whether it was approved.
func (t *trial) offer(o order) (approved bool) { return t.either(t.validate(o)) }

// validate makes the validate call of an order as the service does.
func (t *trial) validate(o order) answer {
	t.judge.sends(o)
	return t.recordValidate(o, t.deliver(t.call(t.ValidatePath, o.owner, o.body.bytes())))
}

// recordValidate records the answer to a validate call of an order, which may have been sent in
// an unusual way.
func (t *trial) recordValidate(o order, a answer) answer {
	a.step = "validate a mint"
	if o.burns() {
		a.step = "validate a burn"
	}
	if a.err == nil && a.succeeded {
		t.ledger.approved(o)
		t.looksAt(o, a.approval())
	} else if a.err == nil && t.leaks(o, a) {
		t.saw(leaked, "the validator's signature in a rejection")
	}
	return a
}

// report makes the result call of an order as the service does, with an edited result.
func (t *trial) report(o order, status string, edits ...edit) answer {
	return t.reportAs(o.owner, o, status, edits...)
}

// reportAs reports the result of an order with the headers of a session.
func (t *trial) reportAs(s ramp.Session, o order, status string, edits ...edit) answer {
	result := o.readable(o.result(status).bent(edits...))
	return t.recordResult(o, result, t.deliver(t.call(t.ResultPath, s, result.bytes())))
}

// recordResult records the answer to a result call of an order, which may have been sent in an
// unusual way.
func (t *trial) recordResult(o order, result object, a answer) answer {
	status := statusOf(result)
	a.step = "result: " + string(t.ledger.kind(o, status))
	if a.err == nil && t.confirms(a) {
		t.ledger.confirmed(o, status)
	}
	return a
}

// confirms reports whether an answer confirms a result, or is the one that the server is known
// to give instead.
func (t *trial) confirms(a answer) bool {
	return a.succeeded || a.err == nil && a.look() == t.judge.known.answers[a.kind()]
}

// success returns the text of the field success, or "".
func (a answer) success() string { return string(a.envelope["success"]) }

// strictly reports whether an answer has the envelope of a success with HTTP 200.
func (a answer) strictly() bool {
	return a.success() == "true" && a.status == http.StatusOK && a.null("errorCode")
}

// look returns what the answers to calls of the same kind have in common: everything but
// numbers and identifiers.
func (a answer) look() string {
	if a.err != nil {
		return ""
	}
	text := string(a.body[:min(len(a.body), 200)])
	if a.envelope != nil {
		text = fmt.Sprint(a.success(), a.code(), kind(a.envelope["data"]))
	}
	return fmt.Sprint(a.status, a.envelope != nil, varying.ReplaceAllString(text, "#"))
}

// varying matches the parts of an answer that differ from order to order.
var varying = regexp.MustCompile(`(0x)?[0-9a-fA-F]{8,}|[0-9]+`)

// isRejection reports whether an answer has the envelope of a failed check.
func (a answer) isRejection() bool {
	return a.success() == "false" && a.code() != "" && a.null("data")
}

// null reports whether a field is null. A missing field counts as null; the cases about
// the envelope are stricter.
func (a answer) null(name string) bool {
	value, ok := a.envelope[name]
	return !ok || string(value) == "null"
}

// code returns the errorCode, or "" if it is not a string.
func (a answer) code() string {
	var code string
	_ = json.Unmarshal(a.envelope["errorCode"], &code)
	return code
}

// String describes the answer briefly and without its data.
func (a answer) String() string {
	if a.envelope == nil {
		return fmt.Sprintf("HTTP %d with a body that is not a JSON object", a.status)
	}
	success, code := kind(a.envelope["success"]), kind(a.envelope["errorCode"])
	if text := a.success(); text == "true" || text == "false" {
		success = text
	}
	if a.code() != "" {
		code = a.shown
	}
	return fmt.Sprintf("HTTP %d, success %s, errorCode %s, data %s", a.status, success, code, kind(a.envelope["data"]))
}

// strange explains an answer that the game's handler cannot have written. It returns ""
// for any other.
func (t *trial) strange(a answer) string {
	if a.err != nil || a.call == nil || a.envelope != nil && (a.envelope["success"] != nil || a.status < 300) {
		return ""
	}
	call, how := a.call.Method+" "+a.call.URL, fmt.Sprintf("HTTP %d", a.status)
	switch {
	case a.status == http.StatusNotFound:
		how += ": there is no such path, or another program listens on this port"
	case a.status == http.StatusMethodNotAllowed:
		how += ": the path belongs to another method"
	case a.status >= 300 && a.status < 400:
		how += ", a redirect"
		if location := a.header.Get("Location"); location != "" {
			how += " to " + t.said(location)
		}
		how += "; the service does not follow it"
	case a.status == http.StatusRequestEntityTooLarge:
		how += ": something before it limits the size of a body"
	case a.status == http.StatusForbidden, a.status == 419:
		how += ": a framework's protection, for example against CSRF, or a proxy"
	case strings.Contains(a.header.Get("Content-Type"), "html"):
		how += ", a page of HTML"
	case a.envelope != nil && a.status != http.StatusUnauthorized: // the handler may have errors of its own form
		return call + ": the answer has no envelope (" + how + ")"
	}
	return call + " was not answered by the game's handler, because the answer has no envelope (" + how + ")"
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
