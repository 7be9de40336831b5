package judge

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// mismatch records a wrong answer.
func (t *trial) mismatch(a answer, want string) { t.failAt(a, a.String(), want) }

func (t *trial) failAt(a answer, saw, want string) {
	t.end(&finding{saw: saw, want: want, step: a.step, status: a.status, look: a.look(), call: a.call,
		note: t.strange(a)})
}

// answered requires an answer of any kind.
func (t *trial) answered(a answer) bool {
	switch {
	case errors.Is(a.err, errBusy):
		t.untried("%w", a.err)
	case a.err != nil && a.status != 0: // it was cut off
		t.failAt(a, a.shown, "a whole answer")
	case a.err != nil:
		t.failAt(a, "no answer: "+a.shown, "an answer")
	}
	return t.err == nil
}

// approved requires an approval. Its envelope is judged by a case of its own.
func (t *trial) approved(a answer) { t.wantsSuccess(a, a.succeeded) }

// strict requires the envelope of a success.
func (t *trial) strict(a answer) { t.wantsSuccess(a, a.strictly()) }

func (t *trial) wantsSuccess(a answer, given bool) {
	if t.answered(a) && !given {
		t.mismatch(a, "HTTP 200 with success true and errorCode null")
	}
}

// confirmed requires the confirmation of a result (interface 4.3, 6), or the answer that
// the server is known to give instead.
func (t *trial) confirmed(a answer) {
	if t.answered(a) && !(a.strictly() && a.null("data")) && a.look() != t.server.known.answers[a.kind()] {
		t.unconfirmed(a, "HTTP 200 with success true, errorCode null and data null")
	}
}

// unconfirmed records the wrong answer to a result. Any status but 200 loses it, sooner or later.
func (t *trial) unconfirmed(a answer, want string) {
	t.mismatch(a, want)
	if a.status != http.StatusOK {
		t.does(Loses)
	}
}

// does adds to a finding what it does to money, if there is one.
func (t *trial) does(harm Harm) {
	if f, ok := t.err.(*finding); ok {
		f.does = max(f.does, harm)
	}
}

// confirms reports whether an answer confirms a result, or is the one that the server is known
// to give instead.
func (t *trial) confirms(a answer) bool {
	return a.succeeded || a.err == nil && a.look() == t.server.known.answers[a.kind()]
}

const notRejected = "it was not rejected, which is for another case"

// rejected requires any answer but a success, because a framework or a JSON parser may
// answer before the game does.
func (t *trial) rejected(a answer) {
	confusing := a.call != nil && a.call.Path == t.ResultPath && t.server.known.confusing[a.call.Path]
	if t.either(a) && !confusing {
		t.mismatch(a, "a rejection")
	}
}

// either requires an approval or a rejection, and reports whether it was an approval.
func (t *trial) either(a answer) (approved bool) {
	return t.answered(a) && a.succeeded
}

// strange explains an answer that the game's handler cannot have written. It returns ""
// for any other.
func (t *trial) strange(a answer) string {
	if a.err != nil || a.call == nil || a.envelope != nil &&
		(a.envelope["success"] != nil || a.status < 300) {
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
	// the handler may have errors of its own form
	case a.envelope != nil && a.status != http.StatusUnauthorized:
		return call + ": the answer has no envelope (" + how + ")"
	}
	return call + " was not answered by the game's handler, because the answer has no envelope (" + how + ")"
}

const confirmedOrAgain = "a confirmation, or HTTP 500 for another delivery"

// confirmedOrLater requires that a result is confirmed, or answered with HTTP 500, so that it
// is sent again. It reports whether it was confirmed.
func (t *trial) confirmedOrLater(a answer) (confirmed bool) {
	confirmed = t.confirms(a)
	if t.answered(a) && !confirmed && a.status != http.StatusInternalServerError {
		t.unconfirmed(a, confirmedOrAgain)
	}
	return confirmed
}
