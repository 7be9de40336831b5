package judge

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	largeBody   = 5 << 20 // bytes; more than servers, frameworks and proxies accept by default
	largeHeader = 6 << 10 // bytes; as long as a long access token makes the headers
)

// answerCases returns the cases about the one rule that everything follows from: the service
// delivers a result again only after HTTP 500 or no answer (interface 6), so any other answer to a
// result that had no effect loses it, and the assets of a failed mint with it.
func answerCases() []Case {
	const rule = "Answer a result with HTTP 200 once it has had its effect, and with HTTP 500 " +
		"whatever fails, " +
		"also in each layer before the handler: after any other status, the service never delivers it again."
	return []Case{
		{ID: "result-not-lost", early: true, Inputs: []Input{
			must("unknown", "for an order that is not known yet", func(t *trial) {
				o := t.mint()
				t.confirmedOrAgain(t.report(o, failure))
				t.moved(0)
			}),
			must("no-status", "without a status, for an order that is known", func(t *trial) {
				o := t.approve(t.mint())
				result := o.readable(o.result(failure).bent(drop("receipt.status")))
				a := t.deliver(t.call(t.ResultPath, o.owner, result.bytes()))
				a.step = "a result without a status"
				if t.confirmedOrAgain(a) {
					t.movedAs(o, failure) // 3 has it given back unless the status is 0x1
				}
				t.closes(o, failure)
			}, "mint-fails"),
			must("too-large", "of 5 MiB, for an order that is known", func(t *trial) {
				o := t.approve(t.mint())
				v := valid{atResult, t, o, o.result(failure).with("note", strings.Repeat("x", largeBody))}
				c := v.call(v.body.bytes())
				// What rejects the length answers before the body, which it does not read.
				c.length, c.arriving = int64(len(c.body)), func() io.Reader {
					return io.MultiReader(pause(100*time.Millisecond), bytes.NewReader(c.body))
				}
				if t.confirmedOrAgain(v.noted(t.deliver(c))) {
					t.movedAs(o, failure)
				}
				t.closes(o, failure)
			}, "mint-fails"),
			should("large-header", "with headers of 6 KiB, for an order that is known", func(t *trial) {
				o := t.approve(t.mint())
				v := valid{atResult, t, o, o.result(failure)}
				a := v.send(func(_ *trial, header http.Header, _ []byte) {
					header["x-padding"] = []string{strings.Repeat("x", largeHeader)}
				})
				if t.confirmedOrAgain(a) {
					t.movedAs(o, failure)
				}
				t.closes(o, failure)
			}, "mint-fails"),
			must("at-validate", "at the validate address, for an order that is known", func(t *trial) {
				o := t.approve(t.mint())
				t.comesAgainFrom(o, t.ValidatePath)
				t.closes(o, failure)
			}, "mint-fails"),
			should("misspelled", "at a misspelled address, for an order that is known", func(t *trial) {
				o := t.approve(t.mint())
				t.comesAgainFrom(o, t.ResultPath+"s")
				t.comesAgainFrom(o, t.ResultPath+"/")
				t.closes(o, failure)
			}, "mint-fails"),
		},
			Fix:   rule,
			Title: "A result that cannot have its effect yet is answered with HTTP 500, or not at all."},
	}
}

// comesAgainFrom requires that the result of a mint that failed comes again after it came to another
// address, unless it had its effect there.
func (t *trial) comesAgainFrom(o order, path string) {
	a := t.deliver(t.call(path, o.owner, o.result(failure).bytes()))
	a.step = "a result at the address " + path
	if a.err == nil && a.status != http.StatusInternalServerError && !t.givenBack(o) {
		t.mismatch(a, "HTTP 500, so that it comes again once the address is right")
	}
}

// confirmedOrAgain requires that a result is confirmed with HTTP 200, or comes again: after HTTP 500, or
// after no answer. It reports whether it was confirmed.
func (t *trial) confirmedOrAgain(a answer) (confirmed bool) {
	switch {
	case t.err != nil || a.err != nil && a.status == 0, a.status == http.StatusInternalServerError:
		return false
	case a.status != http.StatusOK:
		t.mismatch(a, "HTTP 200 or 500, or no answer")
	}
	return t.err == nil
}

// givenBack reports whether the player owns what an order that failed has taken.
func (t *trial) givenBack(o order) bool {
	return len(t.off(t.before, t.now(), o.effect(failure))) == 0
}
