package judge

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
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/gamecall"
	"github.com/token-ramp/ramp-go/internal/reach"
	"github.com/token-ramp/ramp-go/internal/redact"
)

// errBusy means that a server rate-limits calls for longer than a call may take.
var errBusy = errors.New(
	"the server, or a proxy before it, limits the rate of calls, and answered HTTP 429 for longer than " +
		"-timeout allows: exempt the service's endpoints from the limit")

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
		if t.server.layers.answered(c, a) {
			t.ledger.layered.Store(true)
		}
		// by a policy, such as one open order for each player
		rejected := a.isRejection() && a.header.Get("Retry-After") == ""
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
	got, err := gamecall.Do(t.client, request, mostAnswer)
	if err != nil {
		return answer{err: err, shown: t.noAnswer(err, secrets...)}
	}
	a := answer{status: got.Status, header: got.Header, body: got.Body, err: got.Cut}
	if json.Unmarshal(a.body, &a.envelope) != nil {
		a.envelope = nil
	}
	a.succeeded = t.isGiven(c.path, a)
	a.shown = t.shown(a.code(), secrets)
	if a.err != nil {
		a.shown = fmt.Sprintf("the answer was cut off after %d bytes of its body: %s", len(a.body),
			t.noAnswer(a.err, secrets...))
	}
	return a
}

// isGiven reports whether an answer gives what was asked for. It is lenient: the form of
// each kind of answer is judged by a case of its own. An answer with a validatorSig is an
// approval unless it says success false, and one without a list of assets shows none.
func (t *trial) isGiven(path string, a answer) bool {
	switch success := a.success(); path {
	case t.ValidatePath:
		signed := a.approval().ValidatorSig != ""
		return signed && success != "false" || success == "true" && !t.server.known.confusing[path]
	case t.ResultPath:
		return success == "true" || a.look() == t.server.known.confirmation
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
	case reach.Refused(err):
		return "the connection was refused"
	case reach.Closed(err):
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
	header := gamecall.Header(s)
	header[gamecall.Signature] = []string{t.Key.Sign(body)}
	return header
}

// headerEdit changes the headers of a call that has been signed.
type headerEdit func(t *trial, header http.Header, body []byte)

const (
	crowd      = 8       // concurrent calls of a case
	mostAnswer = 1 << 20 // bytes; the rest of an answer is not read
)

// note records a call and its answer, and returns the record.
func (t *trial) note(c call, a answer) *Call {
	made := Call{Method: c.method, Path: c.path, URL: t.URL + c.path, Status: a.status}
	if id := first(c.header, gamecall.SessionID); len(id) <= 100 {
		made.Session = t.said(id)
	}
	if id := uuidIn.FindSubmatch(c.body[:min(len(c.body), mostBody)]); id != nil {
		made.UUID = string(id[1])
	}
	if a.err != nil {
		made.Answer = a.shown
	} else {
		made.Answer = t.excerpt(a.body, c)
		var header []string
		for _, name := range []string{"Content-Type", "Location", "Retry-After", "Server"} {
			if value := a.header.Get(name); value != "" {
				header = append(header, name+": "+t.said(value, c.secrets()...))
			}
		}
		made.Header = strings.Join(header, ", ")
	}
	t.calls.add(made)
	return &made
}

// excerpt returns the beginning of an answer on one line, without secrets and signatures.
func (t *trial) excerpt(body []byte, c call) string {
	text := string(body[:min(len(body), 4*mostShown)])
	text = signatureIn.ReplaceAllString(text, "[signature]")
	return redact.New(append(c.secrets(), t.secrets...)...).Line(text, mostShown)
}

var (
	uuidIn      = regexp.MustCompile(`"uuid":"([^"]{1,100})"`)
	signatureIn = regexp.MustCompile(`(0x)?[0-9a-fA-F]{128,132}`)
)
