package judge

import (
	"bytes"
	"compress/gzip"
	"strings"

	"github.com/token-ramp/ramp-go/internal/gamecall"
)

// endpoint is one of the two endpoints whose calls carry an HMAC. Cases about the result
// endpoint begin with an approved mint, so that a forged call could gain something.
type endpoint string

const (
	atValidate endpoint = "validate"
	atResult   endpoint = "result"
)

// valid is a valid call of the case's player to an endpoint, which a case sends in another way.
type valid struct {
	at    endpoint
	t     *trial
	order order
	body  object
}

func (e endpoint) valid(t *trial) valid {
	o := t.plain()
	if e == atValidate {
		return valid{e, t, o, o.body}
	}
	return valid{e, t, t.approve(o), o.result(failure)}
}

// forged returns a valid call that would gain something if a forged one were believed. If
// the server gives nothing back when a mint fails, that is the result of a burn.
func (e endpoint) forged(t *trial) valid {
	givesBack, grants := t.server.waits("mint-fails") == "", t.server.waits("burn-succeeds") == ""
	if e == atValidate || t.has("mint") && givesBack || !grants {
		return e.valid(t)
	}
	o := t.approve(t.burn())
	return valid{e, t, o, o.result(success)}
}

// rejects requires that a call is rejected, moves nothing and does not affect its order:
// the right call still works.
func (e endpoint) rejects(t *trial, send func(valid) answer) {
	v := e.forged(t)
	then := t.now()
	t.denies(send(v), then)
	if e == atValidate {
		t.approve(v.order)
	}
	t.closes(v.order, statusOf(v.body))
}

// answers requires a success.
func (e endpoint) answers(t *trial, send func(valid) answer) {
	v := e.valid(t)
	v.accepted(send(v))
	t.closes(v.order, failure)
}

// answersWith requires a success of a call with changed headers.
func (e endpoint) answersWith(t *trial, bend headerEdit) {
	e.answers(t, func(v valid) answer { return v.send(bend) })
}

// call returns a call with a body, as the service makes it.
func (v valid) call(body []byte) call {
	if v.at == atResult {
		return v.t.call(v.t.ResultPath, v.order.session(), body)
	}
	return v.t.call(v.t.ValidatePath, v.order.session(), body)
}

// send makes the call with changed headers.
func (v valid) send(bend headerEdit) answer {
	c := v.call(v.body.bytes())
	bend(v.t, c.header, c.body)
	return v.noted(v.t.deliver(c))
}

// unsigned makes the call with a wrong HMAC.
func (v valid) unsigned() answer { return v.send(unsigned) }

// accepted requires an approval or a confirmation.
func (v valid) accepted(a answer) {
	if v.at == atResult {
		v.t.confirmed(a)
	} else {
		v.t.approved(a)
	}
}

// noted records the answer to the call, or to one that means the same.
func (v valid) noted(a answer) answer {
	if v.at == atResult {
		return v.t.recordResult(v.order, v.body, a)
	}
	return v.t.recordValidate(v.order, a)
}

// tampered makes the call with a body that was changed after it had been signed.
func (v valid) tampered() answer {
	signed, sent := v.body, v.body.bent(multiplied(fromAmount, 3), multiplied(toAmount, 3))
	if v.at == atResult {
		signed, sent = v.body.with("receipt.status", opposite(statusOf(v.body))), v.body
	}
	c := v.call(signed.bytes())
	c.body = sent.bytes()
	return v.t.deliver(c)
}

// packed makes the call with a body that was packed after it had been signed. The HMAC is that of
// the raw body (5.2), so a server that accepts it unpacks what anybody sends.
func (v valid) packed() answer {
	c := v.call(v.body.bytes())
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, _ = w.Write(c.body) // into memory
	_ = w.Close()
	c.header["content-encoding"], c.body = []string{"gzip"}, packed.Bytes()
	return v.t.deliver(c)
}

// unsigned replaces the HMAC with zeros.
var unsigned = setHeader(gamecall.Signature, strings.Repeat("00", 32))
