package conformance

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
)

// endpoint is one of the two endpoints whose calls carry an HMAC. Cases about the result
// endpoint begin with an approved mint, so that a forged call could gain something.
type endpoint struct {
	name string
	path func(*Target) string
	body func(t *trial) (order, object) // returns a valid body and its order
	over func(t *trial, o order)        // ends the order after a refusal; a validate call is approved first

	// tampered returns what was signed, and what is sent instead.
	tampered func(t *trial, right object) (signed, sent object)
}

var (
	atValidate = endpoint{"validate", func(t *Target) string { return t.ValidatePath },
		func(t *trial) (order, object) { o := t.mint(); return o, o.body },
		func(t *trial, o order) {
			t.approve(o)
			t.confirm(o, failure)
		},
		func(t *trial, right object) (signed, sent object) {
			return right, right.with("intent.from.0.amount", t.times(3)).with("intent.to.0.amount", number(3*t.target.Tokens))
		}}
	atResult = endpoint{"result", func(t *Target) string { return t.ResultPath },
		func(t *trial) (order, object) { o := t.approve(t.mint()); return o, o.result(failure) },
		func(t *trial, o order) { t.confirm(o, failure) },
		func(_ *trial, right object) (signed, sent object) {
			return right.with("receipt.status", success), right
		}}
)

// send posts a body with changed headers.
func (e endpoint) send(t *trial, o order, right object, bend func(http.Header, []byte)) answer {
	body := right.bytes()
	header := t.signed(t.player, body)
	bend(header, body)
	return e.noted(t, o, right, t.post(e.path(t.target), header, body))
}

// noted records the answer to a call about an order that was sent in an unusual way.
func (e endpoint) noted(t *trial, o order, right object, a answer) answer {
	if e.name == atResult.name {
		return t.told(o, right, a)
	}
	return t.asked(o, a)
}

// takes requires a success for a body that is signed as it is.
func (e endpoint) takes(t *trial, o order, right object, body []byte) {
	a := e.noted(t, o, right, t.post(e.path(t.target), t.signed(t.player, body), body))
	if e.name == atResult.name {
		t.confirmed(a)
		return
	}
	t.approved(a)
}

// hmacCases returns the cases about the X-HMAC-SIGNATURE header (interface 5.2).
func hmacCases() []Case {
	var cases []Case
	for _, e := range []endpoint{atValidate, atResult} {
		cases = append(cases, e.hmacCases()...)
	}
	return cases
}

func (e endpoint) hmacCases() []Case {
	const (
		fix  = "Compute HMAC-SHA256 over the raw bytes of the body with the console's key, and compare all 32 bytes in constant time."
		keep = "Compute the HMAC over the bytes that you received: read the body once, verify, and decode afterwards."
	)
	// A forged call is declined, moves nothing and does not affect the order: the
	// authentic call still works.
	spoiled := func(bend func(t *trial, header http.Header, body []byte)) func(*trial) {
		return func(t *trial) {
			o, right := e.body(t)
			then := t.now()
			t.refused(e.send(t, o, right, func(header http.Header, body []byte) { bend(t, header, body) }))
			t.still(then)
			e.over(t, o)
			t.moved(0)
		}
	}
	signed := func(values ...string) func(*trial, http.Header, []byte) {
		return func(_ *trial, header http.Header, _ []byte) { header[signature] = values }
	}
	changed := func(change func(right string) string) func(*trial, http.Header, []byte) {
		return func(_ *trial, header http.Header, _ []byte) {
			header[signature] = []string{change(header[signature][0])}
		}
	}
	call := "A " + e.name + " call "
	var cases []Case
	for _, c := range []struct {
		id, title string
		level     Level
		bend      func(*trial, http.Header, []byte)
	}{
		{"missing", "without an HMAC", Must, signed()},
		{"empty", "with an empty HMAC", Must, signed("")},
		{"short", "with half an HMAC", Must, changed(func(right string) string { return right[:32] })},
		{"long", "with an HMAC that goes on after its end", Must, changed(func(right string) string { return right + "00" })},
		{"not-hex", "with an HMAC that is not hex", Must, signed(strings.Repeat("zz", 32))},
		{"zero", "with an HMAC of zeros", Must, signed(strings.Repeat("00", 32))},
		{"last-digit", "whose HMAC differs in its last digit", Must, changed(func(right string) string {
			last := byte('0')
			if right[63] == last {
				last = '1'
			}
			return right[:63] + string(last)
		})},
		{"other-key", "with an HMAC under another key", Must, func(_ *trial, header http.Header, body []byte) {
			header[signature] = []string{sum([]byte("another key"), body)}
		}},
		{"empty-key", "with an HMAC under an empty key", Must, func(_ *trial, header http.Header, body []byte) {
			header[signature] = []string{sum(nil, body)}
		}},
		{"other-body", "with the HMAC of another body", Must, func(t *trial, header http.Header, _ []byte) {
			header[signature] = []string{t.target.Key.Sign([]byte("{}"))}
		}},
		{"no-body", "with the HMAC of no body", Must, func(t *trial, header http.Header, _ []byte) {
			header[signature] = []string{t.target.Key.Sign(nil)}
		}},
		{"digest", "with the plain SHA-256 of its body", Must, func(_ *trial, header http.Header, body []byte) {
			plain := sha256.Sum256(body)
			header[signature] = []string{hex.EncodeToString(plain[:])}
		}},
		{"two", "with two HMACs, of which the first is wrong,", Should, func(_ *trial, header http.Header, _ []byte) {
			header[signature] = []string{strings.Repeat("00", 32), header[signature][0]}
		}},
	} {
		cases = append(cases, Case{ID: e.name + "-hmac-" + c.id, Level: c.level, Section: "5.2", Fix: fix,
			Title: call + c.title + " is declined and moves nothing.", run: spoiled(c.bend)})
	}
	return append(cases,
		Case{ID: e.name + "-tampered", Level: Must, Section: "5.2", Fix: keep,
			Title: call + "whose body was changed on the way is declined and moves nothing.",
			run: func(t *trial) {
				o, right := e.body(t)
				then := t.now()
				signed, sent := e.tampered(t, right)
				t.refused(t.post(e.path(t.target), t.signed(t.player, signed.bytes()), sent.bytes()))
				t.still(then)
				e.over(t, o)
				t.moved(0)
			}},
		Case{ID: e.name + "-hmac-envelope", Level: Must, Section: "7.2", Fix: envelope,
			Title: "The refusal of " + strings.ToLower(call) + "with a wrong HMAC has success false, a string as errorCode, and data null.",
			run: func(t *trial) {
				o, right := e.body(t)
				t.declined(e.send(t, o, right, unsigned))
			}},
		Case{ID: e.name + "-hmac-first", Level: Should, Section: "5.2",
			Fix:   "Verify the HMAC before you decode anything of the body.",
			Title: call + "that is neither authentic nor JSON gets the answer of one that is not authentic.",
			run: func(t *trial) {
				o, right := e.body(t)
				bad := e.send(t, o, right, unsigned)
				t.refused(bad)
				text := []byte("this is not JSON")
				header := t.signed(t.player, text)
				header[signature] = []string{strings.Repeat("00", 32)}
				worse := t.post(e.path(t.target), header, text)
				t.refused(worse)
				if t.err == nil && (bad.status != worse.status || bad.code() != worse.code()) {
					t.fail("the answer "+worse.String(), "the answer that JSON with the same HMAC gets: "+bad.String())
				}
			}},
		Case{ID: e.name + "-hmac-kept-secret", Level: Should, Section: "5.2",
			Fix:   "Do not tell a caller the right HMAC.",
			Title: "The answer to " + strings.ToLower(call) + "with a wrong HMAC does not contain the right one.",
			run: func(t *trial) {
				o, right := e.body(t)
				a := e.send(t, o, right, unsigned)
				if t.answered(a) && bytes.Contains(bytes.ToLower(a.body), []byte(t.target.Key.Sign(right.bytes()))) {
					t.fail("the right HMAC in the answer", "an answer without it")
				}
			}},
		Case{ID: e.name + "-hmac-capitals", Level: Should, Section: "5.2",
			Fix:   "Decode the hex of the header and compare bytes, not text.",
			Title: call + "whose HMAC is in upper-case hex is answered.",
			run: func(t *trial) {
				o, right := e.body(t)
				a := e.send(t, o, right, func(header http.Header, _ []byte) {
					header[signature] = []string{strings.ToUpper(header[signature][0])}
				})
				if t.answered(a) && !a.succeeded() {
					t.mismatch(a, "success")
				}
				t.confirm(o, failure)
				t.moved(0)
			}},
		Case{ID: e.name + "-raw-indented", Level: Must, Section: "5.2", Fix: keep,
			Title: call + "with a pretty-printed body is answered.",
			run: func(t *trial) {
				o, right := e.body(t)
				var b bytes.Buffer
				_ = json.Indent(&b, right.bytes(), " ", "\t")
				e.takes(t, o, right, append([]byte("\r\n "), append(b.Bytes(), "\r\n"...)...))
				t.confirm(o, failure)
				t.moved(0)
			}},
		Case{ID: e.name + "-raw-escapes", Level: Must, Section: "5.2", Fix: keep,
			Title: call + "whose body writes letters as JSON escapes is answered.",
			run: func(t *trial) {
				o, right := e.body(t)
				e.takes(t, o, right, bytes.Replace(right.bytes(), []byte(`"mint"`), []byte(`"\u006dint"`), 1))
				t.confirm(o, failure)
				t.moved(0)
			}},
		Case{ID: e.name + "-raw-order", Level: Must, Section: "5.2", Fix: keep,
			Title: call + "whose fields come in another order is answered.",
			run: func(t *trial) {
				o, right := e.body(t)
				id, _ := json.Marshal(right.at("uuid"))
				rest := right.without("uuid").bytes()
				e.takes(t, o, right, append([]byte(`{"uuid":`+string(id)+","), rest[1:]...))
				t.confirm(o, failure)
				t.moved(0)
			}},
		Case{ID: e.name + "-raw-unicode", Level: Should, Section: "5.2", Fix: keep,
			Title: call + "with an unknown field in Korean, quotes and angle brackets is answered.",
			run: func(t *trial) {
				o, right := e.body(t)
				body := right.bytes()
				e.takes(t, o, right, append([]byte(`{"note":"홍길동 <\"&\/>",`), body[1:]...))
				t.confirm(o, failure)
				t.moved(0)
			}},
	)
}

// unsigned replaces the HMAC with zeros.
func unsigned(header http.Header, _ []byte) { header[signature] = []string{strings.Repeat("00", 32)} }

// sum computes an HMAC with any key, even an empty one, which a [ramp.HMACKey] cannot be.
func sum(key, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}
