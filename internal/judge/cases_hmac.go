package judge

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

	"github.com/token-ramp/ramp-go/internal/gamecall"
)

// hmacCases returns the cases about the X-HMAC-SIGNATURE header (interface 5.2).
func hmacCases() []Case {
	return slices.Concat(atValidate.hmacCases(), atResult.hmacCases())
}

func (e endpoint) hmacCases() []Case {
	change := func(to func(right string, body []byte) string) headerEdit {
		return func(_ *trial, header http.Header, body []byte) {
			header[gamecall.Signature] = []string{to(header[gamecall.Signature][0], body)}
		}
	}
	under := func(key string) headerEdit {
		return change(func(_ string, body []byte) string { return sum(key, body) })
	}
	over := func(body string) headerEdit {
		return func(t *trial, header http.Header,
			_ []byte) {
			header[gamecall.Signature] = []string{t.Key.Sign([]byte(body))}
		}
	}
	call := "A " + string(e) + " call "
	wrong := rows[headerEdit]{Must: {
		{"missing", "without an HMAC", setHeader(gamecall.Signature)},
		{"empty", "with an empty HMAC", setHeader(gamecall.Signature, "")},
		{"short", "with half an HMAC", change(func(right string, _ []byte) string { return right[:32] })},
		{"long", "with an HMAC that goes on after its end", setHeader(gamecall.Signature, "HMAC00")},
		{"not-hex", "with an HMAC that is not hex", setHeader(gamecall.Signature, strings.Repeat("zz", 32))},
		{"zero", "with an HMAC of zeros", unsigned},
		{"last-digit", "whose HMAC differs in its last digit",
			change(func(right string, _ []byte) string { return otherEnd(right) })},
		{"other-key", "with an HMAC under another key", under("another key")},
		{"empty-key", "with an HMAC under an empty key", under("")},
		{"other-body", "with the HMAC of another body", over("{}")},
		{"no-body", "with the HMAC of no body", over("")},
		{"digest", "with the plain SHA-256 of its body",
			change(func(_ string, body []byte) string { return fmt.Sprintf("%x", sha256.Sum256(body)) })},
	}, Should: {
		{"two", "with two HMACs, of which the first is wrong,",
			setHeader(gamecall.Signature, strings.Repeat("00", 32), "HMAC")},
	}}.inputs(func(t *trial, bend headerEdit) {
		e.rejects(t, func(v valid) answer { return v.send(bend) })
	})
	tampered := must("tampered", "whose body was changed on the way",
		func(t *trial) { e.rejects(t, valid.tampered) })
	packed := should("packed", "whose HMAC is that of what its packed body (gzip) unpacks to",
		func(t *trial) { e.rejects(t, valid.packed) })
	raw := rows[func(right []byte) []byte]{Must: {
		{"indented", "a pretty-printed body", func(right []byte) []byte {
			return slices.Concat([]byte("\r\n "), indented(right, " ", "\t"), []byte("\r\n"))
		}},
		{"escapes", "a body that writes letters as JSON escapes", func(right []byte) []byte {
			return bytes.Replace(right, []byte(`"mint"`), []byte(`"\u006dint"`), 1)
		}},
		{"order", "fields in another order", uuidFirst},
	}, Should: {
		{"unicode", "an unknown field in Korean, quotes and angle brackets", func(right []byte) []byte {
			return slices.Concat([]byte(`{"note":"홍길동 <\"&\/>",`), right[1:])
		}},
	}}.inputs(func(t *trial, change func(right []byte) []byte) {
		v := e.valid(t)
		body := change(v.body.bytes())
		v.accepted(v.noted(t.deliver(v.call(body))))
		if f, ok := t.err.(*finding); ok && !ascii(string(body)) && t.tradesUnicode() {
			f.grave = true // no order about such an asset is ever approved
		}
		t.closes(v.order, failure)
	})
	return []Case{
		{ID: string(e) + "-hmac-wrong", early: true, Inputs: append(wrong, tampered, packed),
			Fix: "Compute HMAC-SHA256 over the raw bytes of the body with the console's key, and " +
				"compare all 32 bytes in constant time.",
			Title: call + "that is not authentic is rejected and moves nothing."},
		{ID: string(e) + "-hmac-raw", Inputs: raw,
			Fix: "Compute the HMAC over the bytes that you received: read the body once, verify, and " +
				"decode afterwards.",
			Title: call + "is authentic however its JSON is written, because the HMAC is over the bytes."},
		{ID: string(e) + "-hmac-first", Level: Should,
			Fix:   "Verify the HMAC before you decode anything of the body.",
			Title: call + "that is neither authentic nor JSON gets the answer of one that is not authentic.",
			run: func(t *trial) {
				v := e.valid(t)
				bad := v.unsigned()
				if bad.succeeded {
					t.skip(notRejected)
				}
				text := v.call([]byte("this is not JSON"))
				unsigned(t, text.header, nil)
				worse := t.deliver(text)
				t.rejected(worse)
				if bad.status != worse.status || bad.code() != worse.code() {
					t.fail("the answer "+worse.String(),
						"the answer that JSON with the same HMAC gets: "+bad.String())
				}
			}},
		{ID: string(e) + "-hmac-kept-secret",
			Fix: "Do not tell a caller the right HMAC.",
			Title: "The answer to " + strings.ToLower(call) +
				"with a wrong HMAC does not contain the right one.",
			run: func(t *trial) {
				v := e.valid(t)
				a := v.unsigned()
				if t.answered(a) &&
					bytes.Contains(bytes.ToLower(a.body), []byte(t.Key.Sign(v.body.bytes()))) {
					t.failAt(a, "the right HMAC in the answer", "an answer without it")
				}
			}},
		{ID: string(e) + "-hmac-capitals", Level: Should,
			Fix:   "Decode the hex of the header and compare bytes, not text.",
			Title: call + "whose HMAC is in upper-case hex is answered.",
			run: func(t *trial) {
				e.answersWith(t,
					change(func(right string, _ []byte) string { return strings.ToUpper(right) }))
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
	o := now.burn(set("intent.to.0.id", "검"))
	send := func(v valid) answer {
		return v.noted(now.deliver(v.call(bytes.ReplaceAll(v.body.bytes(), []byte("검"), []byte(`\uac80`)))))
	}
	if now.err != nil || !send(valid{atValidate, &now, o, o.body}).succeeded {
		return false
	}
	send(valid{atResult, &now, o, o.result(failure)})
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

// indented writes JSON on several lines.
func indented(right []byte, prefix, indent string) []byte {
	var b bytes.Buffer
	_ = json.Indent(&b, right, prefix, indent)
	return b.Bytes()
}

// sum computes an HMAC with any key, even an empty one, which a [ramp.HMACKey] cannot be.
func sum(key string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}
