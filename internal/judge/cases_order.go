package judge

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
)

// orderCases returns the cases about whole orders and repeated validate calls (interface 1,
// 2.5, 3).
func orderCases() []Case {
	return []Case{
		{ID: "result-log", Section: "6",
			Fix: "Read the blockTimestamp of a log as a JSON number, such as 0, or read only the status " +
				"of a receipt: the receipt types of some Ethereum libraries accept only hex text.",
			Title: "A result is confirmed though the blockTimestamp of its log is a number.",
			run:   func(t *trial) { t.readsLogs() }},
		{ID: "result-answer", Section: "4.3",
			Fix: "Confirm a result with HTTP 200, success true, errorCode null and data null; answer " +
				"HTTP 500 only to have it sent again.",
			Title: "A result is confirmed with HTTP 200, success true, errorCode null and data null.",
			run:   func(t *trial) { t.sameAnswers() }},
		{ID: "mint-succeeds", Section: "1",
			Fix:   "Take intent.from of a mint, and keep it when the transaction succeeded.",
			Title: "A mint that succeeds takes its assets.", run: func(t *trial) {
				o := t.approve(t.mint())
				t.reaches(t.before, o.effect(success)) // measures how late it is
				t.closes(o, success)
			}},
		{ID: "mint-fails", Section: "3", Fix: "Give back what a mint took when receipt.status is not 0x1.",
			Title: "A mint that fails gives its assets back.",
			run:   func(t *trial) { t.ends(t.mint(), failure) }},
		{ID: "burn-succeeds", Section: "1", Fix: "Grant intent.to of a burn when its transaction succeeded.",
			Title: "A burn that succeeds grants its assets.",
			run:   func(t *trial) { t.ends(t.burn(), success) }},
		{ID: "burn-fails", Section: "3", Fix: "Grant nothing for a burn that failed.",
			Title: "A burn that fails grants nothing.", run: func(t *trial) { t.ends(t.burn(), failure) }},
		{ID: "burn-spent-early", after: []string{"balance"}, Section: "3",
			Fix: "Grant the assets of a burn at its successful result: a player who can spend them " +
				"earlier need not burn anything.",
			Title: "What a burn will grant cannot be spent before its result.",
			run: func(t *trial) {
				b := t.approve(t.burn())
				if t.offer(t.mint(t.of(t.oneMore()))) {
					t.gives("an approved mint of more than the player owned before the burn", "a rejection")
				}
				t.closes(b, failure)
			}},
		{ID: "mint-several", after: []string{"mint-succeeds", "mint-fails"}, Section: "1",
			Fix: "Record each order under its uuid and take its assets in one transaction; the uuid " +
				"alone tells orders apart.",
			Title: "Of several open mints of one player, those that succeed take their assets, and the " +
				"one that fails gives them back.",
			Inputs: rows[func(*trial) []order]{Must: {
				{"sizes", "of different amounts", (*trial).severalSizes},
				{"equal", "of the same amount", func(t *trial) []order { return t.several(3, t.mint) }},
				{"uuids", "whose UUIDs differ in their last digit", (*trial).alike},
			}}.inputs(func(t *trial, approved func(*trial) []order) {
				orders := approved(t)
				failed := (len(orders) - 1) / 2 // neither the first nor the last of three
				for i, o := range orders {
					if i == failed {
						t.confirm(o, failure)
					}
				}
				left := make(difference)
				for i, o := range slices.Backward(orders) {
					if i != failed {
						t.confirm(o, success)
						left.addAll(o.effect(success))
					}
				}
				t.movedSince(t.before, left)
			})},
		{ID: "mint-spent-twice", after: []string{"balance"}, Section: "3",
			Fix: "Take the assets of a mint when you approve it, or hold them, so that no other order " +
				"can spend them.",
			Title: "What an open mint will take cannot be spent by another mint.",
			run: func(t *trial) {
				one := t.mintOfMost()
				if t.offer(t.mint(t.of(t.most()))) {
					t.gives("two approved mints, each of most that the player owns",
						"a rejection of the second")
				}
				t.closes(one, failure)
			}},
		{ID: "repeats", Section: "6",
			Fix: "Record the order under its uuid in the transaction that takes or grants assets: a " +
				"known uuid takes nothing again, and a finished one gives back or grants nothing again, " +
				"and is confirmed.",
			Title: "What comes again changes nothing, and the result of a finished order is confirmed " +
				"each time.",
			Inputs: append([]Input{
				must("each", "a validate call, the result of a failed mint, the result of a successful burn",
					func(t *trial) {
						var ended []lateOrder
						t.payingEnds(func(e ending) {
							o := e.open(t)
							if !o.burns() {
								taken := t.now()
								t.offer(o)
								t.still(taken)
							}
							t.confirm(o, e.status)
							t.confirmedAgain(o, e.status)
							ended = append(ended, lateOrder{order: o, status: e.status})
						})
						if t.err == nil {
							t.server.ended = ended
						}
					}),
				must("validate", "the validate call of a mint that then succeeds", func(t *trial) {
					o := t.approve(t.mint())
					t.offer(o)
					t.closes(o, success)
				}, "repeats", "mint-succeeds"),
			}, eachEnding(func(t *trial, e ending) {
				o := e.open(t)
				for range 21 { // as often as the service delivers it (interface 8)
					t.confirm(o, e.status)
				}
				t.movedAs(o, e.status)
			}, "repeats")...)},
		{ID: "validate-twice-approved", Level: Should,
			Fix:   "Approve and sign the same order again: the first answer may have been lost.",
			Title: "The same validate call is approved again.",
			run: func(t *trial) {
				o := t.approve(t.mint())
				t.ends(o, failure)
			}},
		{ID: "validate-twice-balance", after: []string{"balance"}, Level: Should,
			Fix: "Answer a repeated validate call from the stored order before any policy looks at " +
				"balances: " +
				"the player has paid, and the first answer may have been lost.",
			Title: "The same validate call for most of what the player owned is approved again.",
			run: func(t *trial) {
				o := t.mintOfMost()
				t.approve(o) // what is left would not pay for it once more
				t.closes(o, failure)
			}},
		{ID: "validate-at-once", after: []string{"repeats", "mint-succeeds"},
			Fix: "Let a unique key on the uuid decide which of two calls came first; a check before the " +
				"insert is a race.",
			Title: fmt.Sprintf("The same validate call %d times at once takes once.", crowd),
			alone: true, run: func(t *trial) {
				t.rounds(func() {
					o := t.mint()
					approved := false
					for _, a := range t.together(crowd, func(int) answer { return t.validate(o) }) {
						approved = a.err == nil && t.either(a) || approved
					}
					if !approved {
						t.approve(o) // concurrent calls may all have failed
					}
					t.closes(o, success)
				})
			}},
		{ID: "mints-at-once", alone: true,
			Fix: "Check and change a balance in one statement or under a lock: two orders that read the " +
				"same balance lose one of their changes, or spend it twice.",
			Title: fmt.Sprintf(
				"Of %d different mints at once, each that is approved takes its assets, and no more are "+
					"approved than the player can pay for.", crowd),
			Inputs: []Input{
				must("small", "of the amount of an order", func(t *trial) {
					t.mintsAtOnce(crowd, mintEnds, func() json.Number { return t.times(1) })
				}, "mint-succeeds"),
				must("short", "of most that the player owns",
					func(t *trial) { t.mintsAtOnce(1, mintFails, t.most) }, "balance"),
			}},
		{ID: "validate-other",
			Fix: "Store what was approved under a uuid, and reject a validate call that differs from it.",
			Title: "A second validate call under the uuid of an approved mint that differs from the first " +
				"one is rejected, and signed only if it is paid for.",
			Inputs: slices.Concat([]Input{
				must("more", "for more", func(t *trial) { t.secondDigest(t.of(t.times(3))) },
					"mint-succeeds"),
				must("second-mint", "with another digest, which is a second mint",
					func(t *trial) { t.secondDigest() }, "mint-succeeds"),
				must("tokens", "for more tokens", func(t *trial) { t.secondDigest(multiplied(toAmount, 5)) },
					"mint-succeeds"),
				must("direction", "for a burn", func(t *trial) {
					if t.Unique {
						t.skip("a burn of a unique item begins with a mint of it")
					}
					t.secondDigest(set("intent", t.burn().body.at("intent")))
				}, "mint-succeeds"),
				must("other-player", "of another player, with another digest", func(t *trial) {
					o := t.approve(t.mint())
					then, other := t.now(), t.otherPlayer()
					theirs := t.look(other)
					stolen := o.bent(signedOver(other, randomDigest()))
					stolen.owner = other
					if a := t.validate(stolen); t.either(a) && t.commitsTo(stolen, a) {
						t.tell(stolen, success)
						t.committed(theirs, stolen.effect(success))
					} else {
						t.still(theirs)
					}
					t.still(then)
					if t.server.waits("mint-fails") == "" {
						t.closes(o, failure)
					}
				}, "mint-succeeds"),
				should("amount", "in its amount", func(t *trial) {
					o := t.approve(t.mint())
					again := t.validate(o.bent(t.of(t.times(2))))
					t.closes(o, failure) // more than was taken may come back
					t.rejected(again)
				}, "mint-fails"),
			}, rows[func(*trial, order) order]{Should: {
				{"digest", "in its digest", func(t *trial, o order) order { return o.bent(t.otherDigest()) }},
				{"owner", "in its player",
					func(t *trial, o order) order { o.owner = t.otherPlayer(); return o }},
			}}.inputs(func(t *trial, change func(*trial, order) order) {
				o := t.approve(t.mint())
				then := t.now()
				t.rejected(t.validate(change(t, o)))
				t.still(then)
				t.closes(o, failure)
			}))},
		{ID: "validate-after-end",
			Inputs: []Input{
				should("failure",
					"the same call, of a mint that failed: its signature was for assets that were given back",
					func(t *trial) {
						o := t.approve(t.mint())
						t.confirm(o, failure)
						t.rejected(t.validate(o))
						t.moved(0)
					}, "mint-fails"),
				must("success", "the same call, of a mint that succeeded", func(t *trial) {
					o := t.approve(t.mint())
					t.confirm(o, success)
					t.offer(o)
					t.moved(-1)
				}, "repeats", "mint-succeeds"),
				mintFails.as("failure-digest", "another digest, of a mint that failed", secondOf,
					"mint-succeeds"),
				mintEnds.as("success-digest", "another digest, of a mint that succeeded", secondOf),
			},
			Fix: "Reject a validate call under the uuid of a finished order: its assets were given " +
				"back, or already paid for tokens.",
			Title: "A validate call under the uuid of a finished order takes nothing again, and signs " +
				"nothing that is not paid for."},
		{ID: "mint-again", after: []string{"mint-fails", "balance"}, Level: Should, Section: "3",
			Fix: "Let the player spend what a failed mint gave back: release its hold, its lock and its " +
				"place among the open orders.",
			Title: "What a failed mint gave back can be minted again.", run: mintsAgain},
		{ID: "validate-rejected-then-right", after: []string{"balance", "mint-succeeds"}, Level: Should,
			Fix: "Leave no trace of a rejected order: the player may ask again for less.",
			Title: "An order that was rejected for its amount is approved when it is requested with a " +
				"valid one.",
			run: func(t *trial) {
				o := t.mint()
				t.rejected(t.validate(o.bent(t.of(t.beyond("2147483648")))))
				t.ends(o, success)
			}},
	}
}

// mintsAgain has most of what the player owns minted again after that failed. A game may
// have the player wait between two orders.
func mintsAgain(t *trial) {
	t.closes(t.mintOfMost(), failure)
	again := func() (order, answer) {
		o := t.mint(t.of(t.most()))
		return o, t.validate(o)
	}
	o, a := again()
	if a.err == nil && !a.succeeded && !waiting.MatchString(a.code()) {
		t.pause(t.Settle)
		if o, a = again(); !waiting.MatchString(a.code()) {
			t.approved(a)
		}
	}
	if a.err == nil && a.succeeded {
		t.confirm(o, failure)
	}
	t.moved(0)
}

// mintOfMost has a mint approved of most that the player owns.
func (t *trial) mintOfMost() order {
	o := t.mint(t.of(t.most()))
	if !t.offer(o) {
		t.skip("the game rejects a mint of most that the player owns")
	}
	return o
}

// waiting matches the errorCodes of a game that has players wait between orders.
var waiting = regexp.MustCompile("(?i)cool|wait|later|soon|often|frequen|limit|rate|too_?many|throttl")

// alike returns two approved mints whose UUIDs begin alike.
func (t *trial) alike() []order {
	one, two := t.approve(t.mint()), t.mint()
	if t.given.uuid {
		t.skip("the server chooses the UUIDs (-uuid)")
	}
	two = two.bent(set("uuid", otherEnd(one.uuid())))
	if a := t.validate(two); !t.either(a) {
		if !waiting.MatchString(a.code()) && t.offer(t.mint()) {
			t.mismatch(a, "an approval, as for a mint under any other UUID")
		}
		t.skip("the server rejects a second order while one is open")
	}
	return []order{one, two}
}

// secondDigest requires that after an approved mint, another order under its uuid is not
// signed or is paid for. Only a new signature counts: repeating the first answer commits
// to nothing new. Two orders may share a uuid if each has its effect.
func (t *trial) secondDigest(edits ...edit) {
	o := t.approve(t.mint())
	other := o.bent(edits...).bent(t.otherDigest())
	if a := t.validate(other); !t.either(a) || !t.commitsTo(other, a) {
		t.closes(o, failure)
		return
	}
	t.tell(o, success)
	t.tell(other, success)
	both := o.effect(success)
	both.addAll(other.effect(success))
	t.committed(t.before, both)
}

// secondOf requests another digest under the uuid of a finished mint.
func secondOf(t *trial, o order, status string) {
	t.confirm(o, status)
	other, moved := o.bent(t.otherDigest()), o.effect(status)
	if a := t.validate(other); t.either(a) && t.commitsTo(other, a) {
		t.tell(other, success)
		moved.addAll(other.effect(success))
	}
	t.committed(t.before, moved)
}

// mintsAtOnce requires that of mints at the same time no more than most are approved, and
// that each of those ends with its effect.
func (t *trial) mintsAtOnce(most int, e ending, amount func() json.Number) {
	t.rounds(func() {
		orders := make([]order, crowd)
		for i := range orders {
			orders[i] = e.order(t).bent(t.of(amount()))
		}
		approved, moved := t.atOnce(orders), make(difference)
		for _, o := range approved {
			t.confirm(o, e.status)
			moved.addAll(o.effect(e.status))
		}
		if len(approved) > most {
			t.fail(fmt.Sprintf("%d approvals", len(approved)), "at most one")
		}
		t.movedSince(t.before, moved)
	})
}

// sameAnswers requires the confirmation of a failed mint and of a successful burn. If only
// one of them is not confirmed, or each in its own way, the case about that outcome says
// so.
func (t *trial) sameAnswers() {
	first := t.approve(t.plain())
	a := t.report(first, failure)
	t.renew()
	burn := t.burn
	if !t.has("burn") {
		burn = t.mint
	}
	second := burn()
	if approved := t.validate(second); t.err != nil || approved.err != nil || !approved.succeeded {
		return
	}
	b := t.report(second, success)
	if t.answered(a) && t.answered(b) && a.look() == b.look() {
		t.confirmed(a)
	}
	if t.err == nil && a.look() == t.server.known.confirmation {
		t.renew()
		o := t.approve(t.plain())
		if forged := t.post(t.ResultPath, o.result(failure)); forged.look() == a.look() {
			// only what moves shows the difference
			t.confuses(forged, "another answer than that to an authentic result")
		}
	}
}

// readsLogs requires that a result with a log is confirmed if the same one with logs in
// another form is. Other reasons not to confirm it are for other cases.
func (t *trial) readsLogs() {
	o := t.plain()
	if approved := t.validate(o); t.err != nil || !approved.succeeded {
		return
	}
	a := t.report(o, success)
	if a.err != nil || a.succeeded {
		return
	}
	for form := 1; form < len(logForms); form++ {
		other := o
		other.logs = form
		if !t.report(other, success).succeeded {
			continue
		}
		if again := t.report(o, success); again.look() == a.look() {
			t.server.logs.Store(int32(form))
			t.mismatch(a, "a confirmation, which the same result with "+logForms[form].name+" got")
		}
		return
	}
}

// confirmedAgain repeats a result, which must be confirmed and move nothing. The effect of
// the first one is for others to judge; but it must not look like an effect of the second.
func (t *trial) confirmedAgain(o order, status string) {
	t.reaches(t.before, o.effect(status))
	then := t.nowOf(o.owner)
	t.confirm(o, status)
	t.still(then)
}

// committed requires that everything that was signed was paid for.
func (t *trial) committed(then snapshot, want difference) {
	wrong := t.reaches(then, want)
	if wrong == nil {
		return
	}
	t.misplaced(then, *wrong, want)
	if f, ok := t.err.(*finding); ok {
		f.saw, f.want = "a signature over a second digest, and "+f.saw, "no such signature, or "+f.want
	}
}
