package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// resultCases returns the cases about results that are repeated, contradict each other or
// belong to no order (interface 3, 6, 8).
func resultCases() []Case {
	const (
		once    = "Finish an order and apply its effect in one transaction; for a finished order, move nothing and answer HTTP 200."
		twice   = "Change the order's state with a lock or a conditional update, and apply the effect only if that succeeds; a check before the change is a race."
		first   = "Keep the first outcome of an order, move nothing for another one, and let a person investigate."
		stored  = "Take owner, direction, assets and amounts from the order that you stored at validate, not from the result."
		odd     = "Act on the uuid and status of an authentic result, and take what moves from the stored order; answer HTTP 500, never 4xx, to what you cannot read, so that it is sent again."
		unknown = "Look the uuid up: a result for an order that you never approved moves nothing."
	)
	return []Case{
		{ID: "result-again-changed", early: true, Section: "6", after: []string{"repeats"}, Inputs: slices.Concat(
			changedRepeats("mint-failure", "a failed mint", mintFails, "mint-fails"),
			changedRepeats("mint-success", "a successful mint", mintEnds, "mint-succeeds"),
			changedRepeats("burn-success", "a successful burn", burnEnds, "burn-succeeds")),
			Fix:   "Recognize a repeated result by its uuid alone, not by tx_hash and not by the bytes of the body.",
			Title: "A result that comes again with another tx_hash or with its JSON written differently has no second effect."},
		{ID: "result-at-once", Section: "6", Fix: twice, alone: true, Inputs: eachEnding(func(t *trial, e ending) {
			t.rounds(func() {
				o := t.approve(e.order(t))
				t.crowd(func(int) answer { return t.report(o, o.result(e.status)) })
				t.closes(o, e.status, e.moved)
			})
		}, "repeats"),
			Title: fmt.Sprintf("A result that comes %d times at once has one effect.", crowd)},
		{ID: "result-same-hash", after: []string{"burn-succeeds"}, Level: Should, Section: "6", mild: true,
			Fix:   "Store the tx_hash under which an order ended, and let a unique key decide: one transaction burns tokens once. The interface does not require it.",
			Title: "A transaction that ended one burn grants nothing for another.",
			run: func(t *trial) {
				one := t.approve(t.burn())
				t.confirm(one, success)
				t.renew()
				two := t.approve(t.burn())
				then := t.now()
				body := bytes.ReplaceAll(two.result(success).bytes(), []byte(hashOf(two)), []byte(hashOf(one)))
				t.answered(t.told(two, two.result(success), t.post(t.target.ResultPath, t.signed(two.owner, body), body)))
				t.still(then)
			}},
		{ID: "result-contrary", Section: "3", Fix: first, Inputs: eachEnding(func(t *trial, e ending) {
			other := success
			if e.status == success {
				other = failure
			}
			o := t.approve(e.order(t))
			t.confirm(o, e.status)
			t.answered(t.report(o, o.result(other)))
			t.moved(e.moved)
		}),
			Title: "A contradicting result after the first one moves nothing."},
		{ID: "result-odd", Section: "6", Fix: odd, mild: true, Inputs: oddResults().ofBoth(
			func(t *trial, e edit) { t.endsOnce(t.mint(), e, failure, 0) },
			func(t *trial, e edit) { t.endsOnce(t.burn(), e, success, 1) }),
			Title: "An authentic result in a form that section 6 does not have gives back or grants once, or is answered with HTTP 500."},
		{ID: "result-again-late", after: []string{"repeats"}, Level: Must, Section: "8", last: true,
			Fix:   "Keep the state of every finished order in the database, without a limit and for longer than a day: a result can come again 12 hours later, after many others.",
			Title: "The first results of the run, which come again after all others, have no second effect.",
			run: func(t *trial) {
				if len(t.judge.ended) == 0 {
					t.skip("no order was finished before")
				}
				for _, e := range t.judge.ended {
					t.comesAgain(e.order, e.status)
				}
			}},
		{ID: "result-late", Section: "8", last: true, early: true,
			Fix:    "Let no order expire by itself: its result comes up to 12 hours after its approval, also if its UUID was valid for 5 minutes only.",
			Title:  "The result of an order has its effect however long after the approval it comes.",
			Inputs: eachEnding(func(t *trial, e ending) { t.endsLate(e) })[:3]},
		{ID: "results-at-once", after: []string{"burn-succeeds"}, Level: Must, Section: "6",
			Fix:   "Change a balance in one statement or under a lock: two results that read the same balance lose one of their changes; " + lockedOut,
			Title: "The results of several burns at once all have their effect.", alone: true,
			run: func(t *trial) {
				t.rounds(func() {
					orders := t.several(crowd, t.burn)
					answers := t.crowd(func(i int) answer {
						o := orders[i%len(orders)]
						return t.report(o, o.result(success))
					})
					for i, o := range orders {
						t.confirmedAtOnce(o, success, answers[i])
					}
					t.moved(int64(len(orders)))
				})
			}},
		{ID: "results-at-once-answered", after: []string{"repeats", "mint-fails"}, Level: Should, Section: "6",
			Fix:   "Answer HTTP 200 to a result that is in progress or done, or HTTP 500 to request another delivery.",
			Title: fmt.Sprintf("The same result %d times at once is confirmed each time, or answered with HTTP 500.", crowd),
			run: func(t *trial) {
				o := t.approve(t.mint())
				for _, a := range t.crowd(func(int) answer { return t.report(o, o.result(failure)) }) {
					if t.answered(a) && !a.succeeded() && a.status != http.StatusInternalServerError {
						t.mismatch(a, "a confirmation, or HTTP 500 for another delivery")
					}
				}
			}},
		{ID: "unknown-order", Level: Must, Section: "3", Fix: unknown,
			Title: "A result for an order that was never approved pays nothing: neither a failed mint nor a successful burn.",
			run: func(t *trial) {
				if t.has("mint") {
					mint := t.mint()
					t.answered(t.report(mint, mint.result(failure)))
					t.moved(0)
					t.renew()
				}
				if t.has("burn") {
					burn := t.burn()
					t.answered(t.report(burn, burn.result(success)))
					t.moved(0)
				}
			}},
		{ID: "result-unknown-again", after: []string{"unknown-order", "mint-fails", "refusal"}, Level: Should, Section: "6",
			Fix:   "Answer HTTP 500 to a result whose order you do not know yet: a replica or a restored database may know it at the next delivery.",
			Title: "A result for an unknown order is answered with HTTP 500.",
			run: func(t *trial) {
				o := t.mint()
				a := t.report(o, o.result(failure))
				if t.answered(a) && a.status != http.StatusInternalServerError {
					t.fail(a.String(), "HTTP 500")
				}
			}},
		{ID: "result-before-validate", after: []string{"unknown-order", "mint-succeeds"}, Level: Should, Section: "3", Fix: unknown,
			Title: "A result that comes before its validate call does no harm.",
			run: func(t *trial) {
				o := t.mint()
				t.answered(t.report(o, o.result(failure)))
				t.moved(0)
				t.approve(o)
				t.closes(o, success, -1)
			}},
		{ID: "result-rejected", Section: "3", Fix: unknown, after: []string{"unknown-order"}, Inputs: slices.Concat([]Input{
			{Name: "mint-balance", Title: "a mint for more than the player owns", Level: Must, after: []string{"balance"}, run: func(t *trial) {
				o := t.mint().bent(t.of(t.oneMore()))
				t.rejected(t.validate(o))
				t.answered(t.report(o, o.result(failure)))
				t.moved(0)
			}},
		}, rejectedOrders("mint", (*trial).mint, failure, "intent.to.0"), rejectedOrders("burn", (*trial).burn, success, "intent.from.0")),
			Title: "A result for a rejected order pays nothing: neither a failed mint nor a successful burn."},
		{ID: "result-other-owner", Section: "3", Fix: stored, Inputs: slices.Concat(
			rows[ending]{{"mint", "a failed mint", Must, mintFails}}.inputs(reportedForAnother, "mint-fails"),
			rows[ending]{{"burn", "a successful burn", Must, burnEnds}}.inputs(reportedForAnother, "burn-succeeds")),
			Title: "An order that is reported for another player gives that player nothing."},
		{ID: "result-other-intent", Section: "3", Fix: stored, Inputs: []Input{
			{Name: "more-back", Title: "a failed mint of 500 times the amount", Level: Must, after: []string{"mint-fails"}, run: func(t *trial) {
				t.endsAsApproved(t.mint(), set("intent.from.0.amount", t.times(500)), failure, 0)
			}},
			{Name: "more-granted", Title: "a burn to 500 times the amount", Level: Must, after: []string{"burn-succeeds"}, run: func(t *trial) {
				t.endsAsApproved(t.burn(), set("intent.to.0.amount", t.times(500)), success, 1)
			}},
			{Name: "negative", Title: "a failed mint of a negative amount", Level: Must, after: []string{"mint-fails"}, run: func(t *trial) {
				t.endsAsApproved(t.mint(), set("intent.from.0.amount", t.times(-1)), failure, 0)
			}},
			{Name: "mint-as-burn", Title: "a successful burn instead of a mint", Level: Must, after: []string{"mint-succeeds"}, run: func(t *trial) {
				o := t.approve(t.mint())
				t.answered(t.report(o, o.result(success).with("intent", t.burn().body.at("intent"))))
				t.answered(t.report(o, o.result(success)))
				t.moved(-1)
			}},
			{Name: "burn-as-mint", Title: "a failed mint instead of a burn", Level: Must, run: func(t *trial) {
				o := t.approve(t.burn())
				t.answered(t.report(o, o.result(failure).with("intent", t.mint().body.at("intent"))))
				t.answered(t.report(o, o.result(failure)))
				t.moved(0)
			}},
			{Name: "asset", Title: "a failed mint of another asset", Level: Must, needs: aSecondAsset, after: []string{"mint-fails"}, run: func(t *trial) {
				o := t.approve(t.mint())
				t.answered(t.report(o, o.result(failure).with("intent.from.0.id", t.second)))
				t.closes(o, failure, 0)
			}},
		},
			Title: "A result whose intent differs from the approved order moves what was approved, or nothing."},
	}
}

// rejectedOrders returns an input for each reason to reject an order, except that the
// player owns too little. The result of the order must move nothing. An order that is
// approved is for another case. The entry of the tokens is at a path.
func rejectedOrders(kind string, start func(*trial) order, status, tokens string) []Input {
	input := func(name, title string, needs need, e edit, bend headerEdit) Input {
		return Input{Name: kind + "-" + name, Title: "a " + kind + " " + title, Level: Must, needs: needs, run: func(t *trial) {
			o := start(t).bent(e)
			body := o.body.bytes()
			header := t.signed(o.owner, body)
			bend(t, header, body)
			if a := t.post(t.target.ValidatePath, header, body); t.answered(a) && a.succeeded() {
				t.asked(o, a)
				t.skip("it was not rejected, which is for another case")
			}
			t.answered(t.report(o, o.result(status)))
			t.moved(0)
		}}
	}
	same := func(o object) object { return o }
	right := func(*trial, http.Header, []byte) {}
	return []Input{
		input("digest", "with a digest that is too short", 0, set("digest", "0x12"), right),
		input("hmac", "with a wrong HMAC", 0, same, unsigned),
		input("access-token", "with an unknown access token", 0, same, func(_ *trial, header http.Header, _ []byte) {
			header[authorization] = []string{"Bearer nobody-has-this-token"}
		}),
		input("contract", "for another token contract", aToken, set(tokens+".id", foreignToken), right),
		input("rate", "at another rate", aRate, func(o object) object {
			if status == success { // a burn to too much
				return o.with("intent.to.0.amount", twice(raw(literal(o.at("intent.to.0.amount")))))
			}
			return o.with(tokens+".amount", twice(raw(literal(o.at(tokens+".amount")))))
		}, right),
	}
}

// changedRepeats returns an input for each way in which the second delivery of a result
// may differ from the first one.
func changedRepeats(prefix, title string, e ending, ability string) []Input {
	run := func(t *trial, change func(body []byte, o order) []byte) {
		o := t.approve(e.order(t))
		t.confirm(o, e.status)
		result := o.readable(o.result(e.status))
		body := change(result.bytes(), o)
		t.answered(t.told(o, result, t.post(t.target.ResultPath, t.signed(o.owner, body), body)))
		t.moved(e.moved)
	}
	return prefixed(prefix+"-", rows[func([]byte, order) []byte]{
		{"tx-hash", title + " with another tx_hash", Must, func(body []byte, o order) []byte {
			return bytes.ReplaceAll(body, []byte(hashOf(o)), []byte(randomDigest().String()))
		}},
		{"indented", title + " in pretty-printed JSON", Must, func(body []byte, _ order) []byte {
			var b bytes.Buffer
			_ = json.Indent(&b, body, "", "  ")
			return b.Bytes()
		}},
	}.inputs(run, ability))
}

// comesAgain requires that a result of an earlier trial, which was confirmed, moves nothing
// when it comes again.
func (t *trial) comesAgain(o order, status string) {
	if a := t.assets(o.owner); t.answered(a) && !a.succeeded() {
		t.skip("the session of an earlier player is not valid anymore")
	}
	t.ledger.approved(o)
	t.ledger.confirmed(o, status)
	t.ledger.called() // by an earlier case, whose effects may be late
	then := t.nowOf(o.owner)
	t.answered(t.report(o, o.result(status)))
	t.still(then)
}

func reportedForAnother(t *trial, e ending) {
	o := t.approve(e.order(t))
	stolen := o
	stolen.owner = t.otherPlayer()
	theirs := t.look(stolen.owner)
	t.answered(t.report(stolen, stolen.result(e.status))) // names the other player in header and body
	t.still(theirs)
	t.closes(o, e.status, e.moved)
}

// eachEnding returns an input for each way in which an order ends.
func eachEnding(run func(*trial, ending), after ...string) (all []Input) {
	for _, e := range []struct {
		row[ending]
		ability string
	}{
		{row[ending]{"mint-failure", "a failed mint", Must, mintFails}, "mint-fails"},
		{row[ending]{"mint-success", "a successful mint", Must, mintEnds}, "mint-succeeds"},
		{row[ending]{"burn-success", "a successful burn", Must, burnEnds}, "burn-succeeds"},
		{row[ending]{"burn-failure", "a failed burn", Must, ending{(*trial).burn, failure, 0}}, "burn-fails"},
	} {
		all = append(all, rows[ending]{e.row}.inputs(run, append(slices.Clone(after), e.ability)...)...)
	}
	return all
}

// ending is the status with which an order ends, and what it has moved by then.
type ending struct {
	order  func(*trial) order
	status string
	moved  int64
}

var (
	mintFails = ending{(*trial).mint, failure, 0}
	mintEnds  = ending{(*trial).mint, success, -1}
	burnEnds  = ending{(*trial).burn, success, 1}
)

// lateOrder is an order that the opening left open, and what its player owned before it.
type lateOrder struct {
	order
	before snapshot
	at     time.Time // of its approval
	ending
}

// leaveOpen has orders approved that end last. It leaves none open if other cases get the
// same players.
func (j *Judge) leaveOpen(ctx context.Context) {
	for _, e := range []ending{mintFails, mintEnds, burnEnds} {
		t := j.trial(ctx, Input{})
		t.begin()
		if j.pooled.Load() {
			t.skip("the players come again")
		}
		if o := e.order(t); t.either(t.validate(o)) {
			j.late.Store(o.owner.ID, lateOrder{o, t.before, time.Now(), e})
		}
		j.release(t)
	}
}

// endsLate reports an order that the opening left open.
func (t *trial) endsLate(e ending) {
	var o lateOrder
	t.judge.late.Range(func(_, late any) bool {
		if l := late.(lateOrder); l.status == e.status && l.moved == e.moved {
			o = l
		}
		return true
	})
	if o.at.IsZero() {
		t.skip("no order was left open, because the players come again (-session), or the server has crashed")
		return
	}
	t.judge.late.Delete(o.owner.ID)
	t.pause(t.target.Late - time.Since(o.at))
	t.player, t.before = o.owner, o.before
	for id := range o.assets() {
		t.asset = id
	}
	t.ledger.approved(o.order)
	t.closes(o.order, e.status, e.moved)
}

// endsAsApproved requires that a result that reports another amount moves what was
// approved, or nothing until the right result follows.
func (t *trial) endsAsApproved(o order, e edit, status string, moved int64) {
	t.approve(o)
	then := t.now()
	t.answered(t.report(o, e(o.result(status))))
	t.nothingOrOnce(then)
	t.closes(o, status, moved)
}

// nothingOrOnce requires that the player owns the same as in a snapshot, or exactly one
// order amount more.
func (t *trial) nothingOrOnce(then snapshot) {
	if t.err != nil {
		return
	}
	wrong := t.settled(then, func(now snapshot) bool {
		return len(t.off(then, now, nil)) == 0 || len(t.off(then, now, difference{t.asset: t.amounts(1)})) == 0
	})
	if wrong != nil {
		t.misplaced(then, *wrong, nil)
	}
}

// oddResults returns the cases about authentic results in a form that section 6 does not
// describe. A 4xx rejects a result permanently: it is not sent again, and the assets of a
// failed mint stay taken.
func oddResults() rows[edit] {
	return rows[edit]{
		{"no-session-id", "without session_id", Should, drop("session_id")},
		{"null-session-id", "whose session_id is null", Should, set("session_id", nil)},
		{"padded-session-id", "whose session_id has blanks around it", Should, func(o object) object {
			return o.with("session_id", " "+literalText(o.at("session_id"))+" ")
		}},
		{"plain-uuid", "whose uuid has no dashes", Should, func(o object) object {
			return o.with("uuid", strings.ReplaceAll(literalText(o.at("uuid")), "-", ""))
		}},
		{"no-intent", "without intent", Should, drop("intent")},
		{"null-intent", "whose intent is null", Should, set("intent", nil)},
		{"null-to", "whose intent.to is null", Should, set("intent.to", nil)},
		{"empty-to", "whose intent.to is empty", Should, set("intent.to", list{})},
		{"to-zero", "to an amount of 0", Should, set("intent.to.0.amount", number(0))},
		{"to-missing", "to something without an amount", Should, drop("intent.to.0.amount")},
		{"to-text", "to an amount that is a string", Should, func(o object) object {
			return o.with("intent.to.0.amount", literal(o.at("intent.to.0.amount")))
		}},
		{"to-digits", "to an amount of 2,000 digits", Should, set("intent.to.0.amount", raw("1."+strings.Repeat("0", 1999)))},
		{"long-tx-hash", "whose tx_hash has 64 KiB", Should, func(o object) object {
			return o.with("tx_hash", "0x"+strings.Repeat(strings.TrimPrefix(literalText(o.at("tx_hash")), "0x"), 1<<10))
		}},
		{"no-tx-hash", "without tx_hash", Should, drop("tx_hash")},
	}
}

// endsOnce requires that an edited result has the expected effect, or is answered with
// HTTP 500, so that it is sent again; and that the right one then leaves that effect.
func (t *trial) endsOnce(o order, e edit, status string, moved int64) {
	t.approve(o)
	a := t.report(o, e(o.result(status)))
	confirmed := a.succeeded() || a.err == nil && a.look() == t.judge.known.answers[a.kind()]
	if t.answered(a) && !confirmed && a.status != http.StatusInternalServerError {
		t.mismatch(a, "a confirmation, or HTTP 500 for another delivery")
	}
	if confirmed {
		t.moved(moved)
	}
	t.closes(o, status, moved)
}

// literalText returns a string of a message, or "".
func literalText(value any) string {
	s, _ := value.(string)
	return s
}
