package judge

import (
	"net/http"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/gamecall"
)

// assets makes the assets call of a session, with changed headers.
func (t *trial) assets(s ramp.Session, bends ...headerEdit) answer {
	header := gamecall.Header(s)
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
	return t.deliver(call{method: http.MethodPost, path: path, header: gamecall.Header(t.player),
		body: message.bytes()})
}

// offer makes the validate call of an order, which may be approved or rejected, and reports
// whether it was approved.
func (t *trial) offer(o order) (approved bool) { return t.either(t.validate(o)) }

// validate makes the validate call of an order as the service does.
func (t *trial) validate(o order) answer {
	t.server.sends(o)
	return t.recordValidate(o, t.deliver(t.call(t.ValidatePath, o.session(), o.body.bytes())))
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
	return t.reportAs(o.session(), o, status, edits...)
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
