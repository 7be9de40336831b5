package judge

import (
	"context"
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
		stored = "Take owner, direction, assets and amounts from the order that you stored at validate, " +
			"not from the result."
		unknown = "Look the uuid up: a result for an order that you never approved moves nothing."
	)
	return []Case{
		{ID: "result-again-changed", early: true, after: []string{"repeats"},
			Inputs: slices.Concat(changedRepeats(mintFails), changedRepeats(mintEnds),
				changedRepeats(burnEnds)),
			Fix: "Recognize a repeated result by its uuid alone, not by tx_hash and not by the bytes of " +
				"the body.",
			Title: "A result that comes again with another tx_hash or with its JSON written differently " +
				"has no second effect."},
		{ID: "result-at-once", alone: true, Inputs: append(eachEnding(func(t *trial, e ending) {
			t.rounds(func() {
				o := e.open(t)
				t.together(crowd, func(int) answer { return t.report(o, e.status) })
				t.closes(o, e.status)
			})
		}, "repeats"),
			should("answers", "a failed mint, of which each call is confirmed or answered with HTTP 500",
				func(t *trial) {
					o := t.approve(t.mint())
					for _, a := range t.together(crowd, func(int) answer { return t.report(o, failure) }) {
						t.confirmedOrLater(a)
					}
				}, "repeats", "mint-fails")),
			Fix: "Change the order's state with a lock or a conditional update, and apply the effect " +
				"only if that succeeds; a check before the change is a race. Confirm the others, or " +
				"answer HTTP 500 to have them sent again.",
			Title: fmt.Sprintf("A result that comes %d times at once has one effect.", crowd)},
		{ID: "result-same-hash", after: []string{"burn-succeeds"}, Level: Should, mild: true,
			Fix: "Store the tx_hash under which an order ended, and let a unique key decide: one " +
				"transaction burns tokens once. The interface does not require it.",
			Title: "A transaction that ended one burn grants nothing for another.",
			run:   func(t *trial) { t.sameHash(false) }},
		{ID: "result-contrary", Section: "3", Inputs: eachEnding(func(t *trial, e ending) {
			o := e.open(t)
			t.confirm(o, e.status)
			t.tell(o, opposite(e.status))
			t.movedAs(o, e.status)
		}),
			Fix: "Keep the first outcome of an order, move nothing for another one, and let a person " +
				"investigate.",
			Title: "A contradicting result after the first one moves nothing."},
		{ID: "result-odd", mild: true, Inputs: oddResults().ofBoth((*trial).endsOnce),
			Fix: "Act on the uuid and status of an authentic result, and take what moves from the " +
				"stored order; answer HTTP 500, never 4xx, to what you cannot read, so that it is " +
				"sent again.",
			Title: "An authentic result in a form that section 6 does not have gives back or grants once, " +
				"or is answered with HTTP 500."},
		{ID: "result-again-late", after: []string{"repeats"}, Section: "8", last: true,
			Fix: "Keep the state of every finished order in the database, without a limit and for " +
				"longer than a day: a result can come again 12 hours later, after many others.",
			Title: "The first results of the run, which come again after all others, have no second effect.",
			run: func(t *trial) {
				if len(t.server.ended) == 0 {
					t.skip("no order was finished before")
				}
				for _, e := range t.server.ended {
					t.comesAgain(e.order, e.status)
				}
			}},
		{ID: "result-late", Section: "8", last: true, early: true,
			Fix: "Let no order expire by itself: its result comes up to 12 hours after its approval, " +
				"also if its UUID was valid for 5 minutes only.",
			Title:  "The result of an order has its effect however long after the approval it comes.",
			Inputs: eachEnding((*trial).endsLate)[:3]},
		{ID: "results-at-once", after: []string{"burn-succeeds"},
			Fix: "Change a balance in one statement or under a lock: two results that read the same " +
				"balance lose one of their changes; " + lockedOut,
			Title: "The results of several burns at once all have their effect.", alone: true,
			run: func(t *trial) {
				t.rounds(func() {
					orders := t.several(crowd, t.burn)
					answers := t.together(crowd, func(i int) answer {
						o := orders[i%len(orders)]
						return t.report(o, success)
					})
					for i, o := range orders {
						t.confirmedAtOnce(o, success, answers[i])
					}
					t.moved(int64(len(orders)))
				})
			}},
		{ID: "unknown-order", Section: "3", Fix: unknown,
			Title: "A result for an order that was never approved pays nothing: neither a failed mint nor " +
				"a successful burn.",
			run: func(t *trial) {
				t.payingEnds(func(e ending) {
					o := e.order(t)
					t.tell(o, e.status)
					t.moved(0)
				})
			}},
		{ID: "result-unknown-again", after: []string{"unknown-order", "mint-fails", "refusal"}, Level: Should,
			Fix: "Answer HTTP 500 to a result whose order you do not know yet: a replica or a restored " +
				"database may know it at the next delivery.",
			Title: "A result for an unknown order is answered with HTTP 500.",
			run: func(t *trial) {
				o := t.mint()
				// Any other status is for the case result-not-lost.
				if a := t.report(o, failure); t.answered(a) && a.status == http.StatusOK {
					t.fail(a.String(), "HTTP 500")
				}
			}},
		{ID: "result-before-validate", after: []string{"unknown-order", "mint-succeeds"}, Level: Should,
			Section: "3", Fix: unknown,
			Title: "A result that comes before its validate call does no harm.",
			run: func(t *trial) {
				o := t.mint()
				t.tell(o, failure)
				t.moved(0)
				t.ends(o, success)
			}},
		{ID: "result-rejected", Section: "3", Fix: unknown, after: []string{"unknown-order"},
			Inputs: slices.Concat([]Input{
				must("mint-balance", "a mint for more than the player owns", func(t *trial) {
					o := t.mint(t.of(t.oneMore()))
					t.rejected(t.validate(o))
					t.tell(o, failure)
					t.moved(0)
				}, "balance"),
			}, rejectedOrders(mintFails), rejectedOrders(burnEnds)),
			Title: "A result for a rejected order pays nothing: neither a failed mint nor a " +
				"successful burn."},
		{ID: "result-other-owner", Section: "3", Fix: stored,
			Inputs: []Input{mintFails.input(reportedForAnother), burnEnds.input(reportedForAnother)},
			Title:  "An order that is reported for another player gives that player nothing."},
		{ID: "result-other-intent", Section: "3", Fix: stored, Inputs: []Input{
			mintFails.as("more-back", "a failed mint of 500 times the amount",
				asApproved(multiplied(fromAmount, 500))),
			burnEnds.as("more-granted", "a burn to 500 times the amount",
				asApproved(multiplied(toAmount, 500))),
			mintFails.as("negative", "a failed mint of a negative amount",
				asApproved(multiplied(fromAmount, -1))),
			mintEnds.as("mint-as-burn", "a successful burn instead of a mint", asAnother((*trial).burn)),
			must("burn-as-mint", "a failed mint instead of a burn",
				func(t *trial) { asAnother((*trial).mint)(t, burnFails.open(t), failure) }),
			mintFails.as("asset", "a failed mint of another asset", func(t *trial, o order, status string) {
				t.answered(t.report(o, status, set("intent.from.0.id", t.second)))
				t.closes(o, status)
			}).with(aSecondAsset),
		},
			Title: "A result whose intent differs from the approved order moves what was approved, " +
				"or nothing."},
	}
}

// rejectedOrders returns an input for each reason to reject an order, except that the
// player owns too little. The result of the order must move nothing. An order that is
// approved is for another case.
func rejectedOrders(e ending) []Input {
	input := func(name, title string, send func(valid) answer, edits ...edit) Input {
		return must(e.kind()+"-"+name, "a "+e.kind()+" "+title, func(t *trial) {
			o := e.order(t).bent(edits...)
			if t.either(send(valid{atValidate, t, o, o.body})) {
				t.skip(notRejected)
			}
			t.tell(o, e.status)
			t.moved(0)
		})
	}
	validate := func(v valid) answer { return v.t.validate(v.order) }
	return []Input{
		input("digest", "with a digest that is too short", validate, set("digest", "0x12")),
		input("hmac", "with a wrong HMAC", valid.unsigned),
		input("access-token", "with an unknown access token",
			func(v valid) answer { return v.send(unknownToken) }),
		input("contract", "for another token contract", validate, func(o object) object {
			_, tokens := o.sides()
			return o.with(tokens+".0.id", foreignToken)
		}).with(aToken),
		input("rate", "at another rate", validate, multiplied(toAmount, 2)).with(aRate),
	}
}

// changedRepeats returns an input for each way in which the second delivery of a result
// may differ from the first one.
func changedRepeats(e ending) []Input {
	return rows[func(valid) answer]{Must: {
		{"tx-hash", e.title + " with another tx_hash", func(v valid) answer {
			v.order.tx = randomDigest().String()
			return v.t.report(v.order, e.status)
		}},
		{"indented", e.title + " in pretty-printed JSON", func(v valid) answer {
			return v.noted(v.t.deliver(v.call(indented(v.body.bytes(), "", "  "))))
		}},
	}}.of(e.name, e, func(t *trial, o order, status string, send func(valid) answer) {
		t.confirm(o, status)
		t.answered(send(valid{atResult, t, o, o.result(status)}))
		t.movedAs(o, status)
	})
}

// comesAgain requires that a result of an earlier trial, which was confirmed, moves nothing
// when it comes again.
func (t *trial) comesAgain(o order, status string) {
	if a := t.assets(o.owner); t.answered(a) && !a.succeeded {
		t.lacks("the session of an earlier player is not valid anymore",
			"sessions that last for the whole run")
	}
	t.ledger.approved(o)
	t.ledger.confirmed(o, status)
	t.ledger.called() // by an earlier case, whose effects may be late
	then := t.nowOf(o.owner)
	t.tell(o, status)
	t.still(then)
}

// sameHash requires that a burn that is reported with the tx_hash of another one, which has
// ended, grants nothing.
func (t *trial) sameHash(restarts bool) {
	one := t.approve(t.burn())
	t.confirm(one, success)
	t.renew()
	two := t.approve(t.burn())
	then := t.now()
	two.tx = hashOf(one)
	if t.tell(two, success); restarts {
		if t.reaches(then, nil) != nil {
			t.skip("it grants again without a restart, which is for the case result-same-hash")
		}
		t.restart()
		t.tell(two, success)
	}
	t.still(then)
}

func reportedForAnother(t *trial, o order, status string) {
	stolen := o
	stolen.owner = t.otherPlayer()
	theirs := t.look(stolen.owner)
	t.tell(stolen, status) // names the other player in header and body
	t.still(theirs)
	t.closes(o, status)
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
		if o := e.order(t); t.offer(o) {
			j.late.Store(o.owner.ID, lateOrder{o, t.before, time.Now(), e.name, e.status})
		}
		j.release(t)
	}
}

// endsLate reports an order that the opening left open.
func (t *trial) endsLate(e ending) {
	var o lateOrder
	t.server.late.Range(func(_, late any) bool {
		if l := late.(lateOrder); l.name == e.name {
			o = l
		}
		return true
	})
	switch {
	case !o.at.IsZero():
	case t.server.pooled.Load():
		t.lacks("no order was left open, because the players come again",
			"-login, which makes a new player each time")
		return
	default:
		t.skip("no order was left open, because the server has crashed")
		return
	}
	t.server.late.Delete(o.owner.ID)
	t.pause(t.Late - time.Since(o.at))
	t.player, t.before = o.owner, o.before
	for id := range o.assets() {
		t.asset = id
	}
	t.ledger.approved(o.order)
	t.closes(o.order, e.status)
}

// asApproved requires that a result that reports another amount moves what was approved, or
// nothing until the right result follows.
func asApproved(change edit) func(*trial, order, string) {
	return func(t *trial, o order, status string) {
		then := t.now()
		t.answered(t.report(o, status, change))
		t.nothingOrOnce(then)
		t.closes(o, status)
	}
}

// asAnother requires that a result about another kind of order changes nothing in how an
// order ends.
func asAnother(other func(*trial, ...edit) order) func(*trial, order, string) {
	return func(t *trial, o order, status string) {
		t.answered(t.report(o, status, set("intent", other(t).body.at("intent"))))
		t.tell(o, status)
		t.movedAs(o, status)
	}
}

// nothingOrOnce requires that the player owns the same as in a snapshot, or exactly one
// order amount more.
func (t *trial) nothingOrOnce(then snapshot) {
	wrong := t.settled(then, func(now snapshot) bool {
		return len(t.off(then, now, nil)) == 0 ||
			len(t.off(then, now, difference{t.asset: t.amounts(1)})) == 0
	})
	if wrong != nil {
		t.misplaced(then, *wrong, nil)
	}
}

// oddResults returns the cases about authentic results in a form that section 6 does not
// describe. A 4xx rejects a result permanently: it is not sent again, and the assets of a
// failed mint stay taken.
func oddResults() rows[edit] {
	return rows[edit]{Should: slices.Concat(leftOut("session-id", "session_id"), leftOut("intent", "intent"),
		[]row[edit]{
			{"padded-session-id", "whose session_id has blanks around it",
				changed("session_id", func(id string) string { return " " + id + " " })},
			{"plain-uuid", "whose uuid has no dashes",
				changed("uuid", func(id string) string { return strings.ReplaceAll(id, "-", "") })},
			{"null-to", "whose intent.to is null", set("intent.to", nil)},
			{"empty-to", "whose intent.to is empty", set("intent.to", list{})},
			{"to-zero", "to an amount of 0", set(toAmount, number(0))},
			{"to-missing", "to something without an amount", drop(toAmount)},
			{"to-text", "to an amount that is a string", func(o object) object {
				return o.with(toAmount, literal(o.at(toAmount)))
			}},
			{"to-digits", "to an amount of 2,000 digits", set(toAmount, raw("1."+strings.Repeat("0", 1999)))},
			{"long-tx-hash", "whose tx_hash has 64 KiB",
				changed("tx_hash",
					func(hash string) string { return "0x" + strings.Repeat(hash[2:], 1<<10) })},
			{"no-tx-hash", "without tx_hash", drop("tx_hash")},
		})}
}

// endsOnce requires that an edited result has the expected effect, or is answered with
// HTTP 500, so that it is sent again; and that the right one then leaves that effect.
func (t *trial) endsOnce(o order, status string, change edit) {
	a := t.report(o, status, change)
	if t.confirmedOrLater(a) {
		t.movedAs(o, status)
		t.tell(o, status) // the server may take it for another result
		t.movedAs(o, status)
	} else {
		t.closes(o, status)
	}
}
