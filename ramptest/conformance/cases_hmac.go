package conformance

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"

	ramp "github.com/token-ramp/ramp-go"
)

// endpoint is one of the two endpoints whose calls carry an HMAC. Cases about the result
// endpoint begin with an approved mint, so that a forged call could gain something.
type endpoint struct {
	name string
	path func(*Target) string
	body func(t *trial) (order, object) // returns a valid body and its order

	// tampered returns what was signed, and what is sent instead.
	tampered func(t *trial, right object) (signed, sent object)
}

var (
	atValidate = endpoint{"validate", func(t *Target) string { return t.ValidatePath },
		func(t *trial) (order, object) { o := t.plain(); return o, o.body },
		func(t *trial, right object) (signed, sent object) {
			return right, right.with("intent.from.0.amount", t.times(3)).with("intent.to.0.amount", number(3*t.Tokens))
		}}
	atResult = endpoint{"result", func(t *Target) string { return t.ResultPath },
		func(t *trial) (order, object) { o := t.approve(t.plain()); return o, o.result(failure) },
		func(_ *trial, right object) (signed, sent object) {
			if statusOf(right) == success {
				return right.with("receipt.status", failure), right
			}
			return right.with("receipt.status", success), right
		}}
)

// rejects requires that a call is rejected, moves nothing and does not affect its order:
// the right call still works.
func (e endpoint) rejects(t *trial, send func(o order, right object) answer) {
	o, right := e.forged(t)
	then := t.now()
	t.rejected(send(o, right))
	t.still(then)
	status, moved := failure, int64(0)
	if e.name == atResult.name {
		status, moved = o.proof()
	} else {
		t.approve(o)
	}
	t.closes(o, status, moved)
}

// forged returns an order and a call that would gain something if it were believed. If
// the server gives nothing back when a mint fails, that is the result of a burn.
func (e endpoint) forged(t *trial) (order, object) {
	if e.name == atValidate.name || t.has("mint") && t.judge.waits("mint-fails") == "" || t.judge.waits("burn-succeeds") != "" {
		return e.body(t)
	}
	o := t.approve(t.burn())
	status, _ := o.proof()
	return o, o.result(status)
}

// proof returns the status with which the result of an order gives the player something,
// and how many order amounts the whole order then moved.
func (o order) proof() (status string, moved int64) {
	if o.burns() {
		return success, 1
	}
	return failure, 0
}

// answers requires a success.
func (e endpoint) answers(t *trial, send func(o order, right object) answer) {
	o, right := e.body(t)
	e.accepted(t, send(o, right))
	t.closes(o, failure, 0)
}

// call returns a call with a body, as the service makes it for the case's player.
func (e endpoint) call(t *trial, body []byte) call { return t.call(e.path(t.Target), t.player, body) }

// answersWith requires a success of a call with changed headers.
func (e endpoint) answersWith(t *trial, bend headerEdit) {
	e.answers(t, func(o order, right object) answer { return e.send(t, o, right, bend) })
}

// send posts a body with changed headers.
func (e endpoint) send(t *trial, o order, right object, bend headerEdit) answer {
	c := e.call(t, right.bytes())
	bend(t, c.header, c.body)
	return e.noted(t, o, right, t.deliver(c))
}

// accepted requires an approval or a confirmation.
func (e endpoint) accepted(t *trial, a answer) {
	if e.name == atResult.name {
		t.confirmed(a)
	} else {
		t.approved(a)
	}
}

// noted records the answer to a call about an order that was sent in an unusual way.
func (e endpoint) noted(t *trial, o order, right object, a answer) answer {
	if e.name == atResult.name {
		return t.recordResult(o, right, a)
	}
	return t.recordValidate(o, a)
}

// hmacCases returns the cases about the X-HMAC-SIGNATURE header (interface 5.2).
func hmacCases() []Case {
	return slices.Concat(atValidate.hmacCases(), atResult.hmacCases())
}

func (e endpoint) hmacCases() []Case {
	const (
		fix  = "Compute HMAC-SHA256 over the raw bytes of the body with the console's key, and compare all 32 bytes in constant time."
		keep = "Compute the HMAC over the bytes that you received: read the body once, verify, and decode afterwards."
	)
	of := func(sign func(key ramp.HMACKey, body []byte) string) headerEdit {
		return func(t *trial, header http.Header, body []byte) {
			header[signature] = []string{sign(t.Key, body)}
		}
	}
	call := "A " + e.name + " call "
	wrong := rows[headerEdit]{
		{"missing", "without an HMAC", Must, setHeader(signature)},
		{"empty", "with an empty HMAC", Must, setHeader(signature, "")},
		{"short", "with half an HMAC", Must, of(func(key ramp.HMACKey, body []byte) string { return key.Sign(body)[:32] })},
		{"long", "with an HMAC that goes on after its end", Must, of(func(key ramp.HMACKey, body []byte) string { return key.Sign(body) + "00" })},
		{"not-hex", "with an HMAC that is not hex", Must, setHeader(signature, strings.Repeat("zz", 32))},
		{"zero", "with an HMAC of zeros", Must, unsigned},
		{"last-digit", "whose HMAC differs in its last digit", Must, of(func(key ramp.HMACKey, body []byte) string { return otherEnd(key.Sign(body)) })},
		{"other-key", "with an HMAC under another key", Must, of(func(_ ramp.HMACKey, body []byte) string { return sum([]byte("another key"), body) })},
		{"empty-key", "with an HMAC under an empty key", Must, of(func(_ ramp.HMACKey, body []byte) string { return sum(nil, body) })},
		{"other-body", "with the HMAC of another body", Must, of(func(key ramp.HMACKey, _ []byte) string { return key.Sign([]byte("{}")) })},
		{"no-body", "with the HMAC of no body", Must, of(func(key ramp.HMACKey, _ []byte) string { return key.Sign(nil) })},
		{"digest", "with the plain SHA-256 of its body", Must, of(func(_ ramp.HMACKey, body []byte) string { return fmt.Sprintf("%x", sha256.Sum256(body)) })},
		{"two", "with two HMACs, of which the first is wrong,", Should, func(_ *trial, header http.Header, _ []byte) {
			header[signature] = []string{strings.Repeat("00", 32), header[signature][0]}
		}},
	}.inputs(func(t *trial, bend headerEdit) {
		e.rejects(t, func(o order, right object) answer { return e.send(t, o, right, bend) })
	})
	tampered := must("tampered", "whose body was changed on the way", func(t *trial) {
		e.rejects(t, func(_ order, right object) answer {
			signed, sent := e.tampered(t, right)
			c := e.call(t, signed.bytes())
			c.body = sent.bytes()
			return t.deliver(c)
		})
	})
	raw := rows[bytesEdit]{
		{"indented", "a pretty-printed body", Must, func(right []byte) []byte {
			var b bytes.Buffer
			_ = json.Indent(&b, right, " ", "\t")
			return slices.Concat([]byte("\r\n "), b.Bytes(), []byte("\r\n"))
		}},
		{"escapes", "a body that writes letters as JSON escapes", Must, func(right []byte) []byte {
			return bytes.Replace(right, []byte(`"mint"`), []byte(`"\u006dint"`), 1)
		}},
		{"order", "fields in another order", Must, uuidFirst},
		{"unicode", "an unknown field in Korean, quotes and angle brackets", Should, func(right []byte) []byte {
			return slices.Concat([]byte(`{"note":"홍길동 <\"&\/>",`), right[1:])
		}},
	}.inputs(func(t *trial, change bytesEdit) {
		o, right := e.body(t)
		body := change(right.bytes())
		e.accepted(t, e.noted(t, o, right, t.deliver(e.call(t, body))))
		if f, ok := t.err.(*finding); ok && !ascii(string(body)) && t.tradesUnicode() {
			f.grave = true // no order about such an asset is ever approved
		}
		t.closes(o, failure, 0)
	})
	return []Case{
		{ID: e.name + "-hmac-wrong", early: true, Section: "5.2", Fix: fix, Inputs: append(wrong, tampered),
			Title: call + "that is not authentic is rejected and moves nothing."},
		{ID: e.name + "-hmac-raw", Section: "5.2", Fix: keep, Inputs: raw,
			Title: call + "is authentic however its JSON is written, because the HMAC is over the bytes."},
		{ID: e.name + "-hmac-first", Level: Should, Section: "5.2",
			Fix:   "Verify the HMAC before you decode anything of the body.",
			Title: call + "that is neither authentic nor JSON gets the answer of one that is not authentic.",
			run: func(t *trial) {
				o, right := e.body(t)
				bad := e.send(t, o, right, unsigned)
				if bad.succeeded {
					t.skip(notRejected)
				}
				text := e.call(t, []byte("this is not JSON"))
				unsigned(t, text.header, nil)
				worse := t.deliver(text)
				t.rejected(worse)
				if t.err == nil && (bad.status != worse.status || bad.code() != worse.code()) {
					t.fail("the answer "+worse.String(), "the answer that JSON with the same HMAC gets: "+bad.String())
				}
			}},
		{ID: e.name + "-hmac-kept-secret", Section: "5.2",
			Fix:   "Do not tell a caller the right HMAC.",
			Title: "The answer to " + strings.ToLower(call) + "with a wrong HMAC does not contain the right one.",
			run: func(t *trial) {
				o, right := e.body(t)
				a := e.send(t, o, right, unsigned)
				if t.answered(a) && bytes.Contains(bytes.ToLower(a.body), []byte(t.Key.Sign(right.bytes()))) {
					t.failAt(a, "the right HMAC in the answer", "an answer without it")
				}
			}},
		{ID: e.name + "-hmac-capitals", Level: Should, Section: "5.2",
			Fix:   "Decode the hex of the header and compare bytes, not text.",
			Title: call + "whose HMAC is in upper-case hex is answered.",
			run: func(t *trial) {
				e.answersWith(t, of(func(key ramp.HMACKey, body []byte) string { return strings.ToUpper(key.Sign(body)) }))
			}},
	}
}

// tradesUnicode reports whether the player lists an asset whose ID is not ASCII, or the
// server approves a burn to one whose body is written in ASCII. The trial may have failed.
func (t *trial) tradesUnicode() bool {
	for id := range t.before.assets {
		if !ascii(id) {
			return true
		}
	}
	now := *t
	now.err = nil
	o := now.burn().bent(set("intent.to.0.id", "검"))
	post := func(path string, message object) answer {
		body := bytes.ReplaceAll(message.bytes(), []byte("검"), []byte(`\uac80`))
		return now.deliver(now.call(path, t.player, body))
	}
	if now.err != nil || !now.recordValidate(o, post(t.ValidatePath, o.body)).succeeded {
		return false
	}
	now.recordResult(o, o.result(failure), post(t.ResultPath, o.result(failure)))
	return true
}

func ascii(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII })
}

// uuidFirst moves the field uuid, which is the last one in alphabetical order.
func uuidFirst(right []byte) []byte {
	i, end := bytes.LastIndex(right, []byte(`,"uuid":`)), len(right)-1
	return slices.Concat([]byte("{"), right[i+1:end], []byte(","), right[1:i], []byte("}"))
}

// unsigned makes a call with a wrong HMAC.
func (e endpoint) unsigned(t *trial) answer {
	o, right := e.body(t)
	return e.send(t, o, right, unsigned)
}

// unsigned replaces the HMAC with zeros.
var unsigned = setHeader(signature, strings.Repeat("00", 32))

// sum computes an HMAC with any key, even an empty one, which a [ramp.HMACKey] cannot be.
func sum(key, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}
