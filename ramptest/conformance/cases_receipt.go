package conformance

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// receiptCases returns the cases about the forms of a receipt (interface 6). Only its status
// decides what a result moves.
func receiptCases() []Case {
	const (
		read    = "Read only the status of a receipt, and accept the other fields in every form of section 6."
		lenient = "Read the status as hex or as a number, and ignore what you do not act on, in whatever form: nodes differ."
		absent  = "Treat a missing status as no outcome: move nothing and reject the result, so that it is sent again. The wording of section 3 also allows you to treat it as a failure, because a missing status is not 0x1."
		odd     = "Reject a status that you cannot read, so that the result is sent again, or treat it as a failure, as section 3 says of every status other than 0x1."
		large   = "Accept bodies of up to 1 MiB: the interface does not say how large they get."
	)
	fee := func(o object) object {
		actual := rat(o.at("intent.actual").(string))
		return o.with("intent.fee_rate", number(2001)).with("intent.actual", show(actual.Mul(actual, big.NewRat(7999, 10_000))))
	}
	described := rows[edit]{
		{"type-7", "of type 0x7, whose gas was sponsored", Must, set("receipt.type", "0x7")},
		{"no-fee", "without fee_rate and actual", Must, func(o object) object {
			return o.without("intent.fee_rate").without("intent.actual")
		}},
		{"fee", "with a fee_rate of 2001, which leaves a fraction of a token,", Must, fee},
		{"removed", "whose log is marked as removed", Should, withLog("removed", true)},
		{"no-logs", "without a log", Must, set("receipt.logs", list{})},
		{"no-topics", "whose log has no topics", Must, withLog("topics", list{})},
	}
	timed := rows[edit]{{"block-timestamp", "whose log has a blockTimestamp that is not 0", Must, withLog("blockTimestamp", number(1763690000))}}
	other := rows[edit]{
		{"status-only", "with only its status", Should, func(o object) object {
			return o.with("receipt", object{"status": o.at("receipt.status")})
		}},
		{"null-contract", "whose contractAddress is null", Should, set("receipt.contractAddress", nil)},
		{"null-logs", "whose logs are null", Should, set("receipt.logs", nil)},
		{"no-bloom", "without logsBloom", Should, drop("receipt.logsBloom")},
		{"unknown-type", "of the type 0x7e", Should, set("receipt.type", "0x7e")},
		{"numbers", "whose quantities are JSON numbers", Should, func(o object) object {
			return o.with("receipt.type", number(2)).with("receipt.gasUsed", number(91_834)).with("receipt.blockNumber", number(16))
		}},
		{"hex-timestamp", "whose log has a blockTimestamp in hex", Should, withLog("blockTimestamp", "0x6920f0d0")},
		{"no-timestamp", "whose log has no blockTimestamp", Should, func(o object) object {
			return o.with("receipt.logs", list{aLog(o).without("blockTimestamp")})
		}},
		{"large-gas", "whose gas needs more than 64 bits", Should, set("receipt.effectiveGasPrice", "0x1"+strings.Repeat("0", 20))},
		{"fee-payer", "with from, to and feePayer", Should, func(o object) object {
			someone := "0x" + strings.Repeat("1", 40)
			return o.with("receipt.from", someone).with("receipt.to", someone).with("receipt.feePayer", someone)
		}},
		{"number-status", "whose status is a JSON number", Should, func(o object) object {
			if o.at("receipt.status") == success {
				return o.with("receipt.status", number(1))
			}
			return o.with("receipt.status", number(0))
		}},
		{"padded-status", "whose status has a leading zero", Should, func(o object) object {
			return o.with("receipt.status", "0x0"+o.at("receipt.status").(string)[2:])
		}},
	}
	sizes := rows[edit]{
		{"logs", "with 12 logs (8 KiB)", Must, manyLogs(12)},
		{"many-logs", "with 400 logs (256 KiB)", Should, manyLogs(400)},
	}
	missing := slices.Concat(leftOut("receipt", "receipt", Should), leftOut("status", "receipt.status", Should))
	strange := rows[edit]{
		{"empty", "whose status is empty", Should, set("receipt.status", "")},
		{"0x", "whose status is 0x", Should, set("receipt.status", "0x")},
		{"text", "whose status is a word", Should, set("receipt.status", "failed")},
	}
	boolean := rows[edit]{{"true", "whose status is true", Should, set("receipt.status", true)}}
	oddly := func(t *trial, e ending, change edit) {
		o := t.approve(e.order(t))
		then := t.now()
		a := t.report(o, change(o.result(failure)))
		switch ended := t.either(a); {
		case ended && o.burns():
			t.tell(o, failure)
			t.moved(0)
			return
		case ended:
			t.moved(0)
		case o.burns():
			t.still(then)
		}
		t.closes(o, e.status, e.moved)
	}
	of := func(e ending, run func(*trial, ending, edit)) []Input {
		return slices.Concat(described.of(e.name, e, run), timed.of(e.name, e, run, "result-log"))
	}
	status2 := func(t *trial, e ending) { t.endsAs(e, set("receipt.status", "0x2")) }
	return []Case{
		{ID: "receipt-status-2", early: true, Section: "3", Fix: "Give back, and grant nothing, for every status other than 0x1.",
			Inputs: []Input{mintFails.input(status2), burnFails.input(status2)},
			Title:  "The status 0x2 is a failure, because it is not 0x1."},
		{ID: "receipt", Section: "6", Fix: read, Inputs: slices.Concat(
			of(mintFails, (*trial).endsAs), of(mintEnds, (*trial).endsAtMost), of(burnEnds, (*trial).endsAs), of(burnFails, (*trial).endsAtMost), []Input{
				must("mint-failure-fee-of-most", "of a mint of most that the player owns, with a fee_rate of 2001,", func(t *trial) {
					o := t.mintOfMost()
					t.confirmed(t.report(o, fee(o.result(failure))))
					t.moved(0)
				}, "mint-fails"),
			}),
			Title: "The status of a receipt alone decides whether a mint is given back and a burn granted, whatever else section 6 allows in it."},
		{ID: "receipt-odd", Section: "6", Fix: lenient, mild: true, Inputs: other.ofBoth((*trial).endsAs),
			Title: "A receipt in a form that section 6 does not have gives back a failed mint and grants a successful burn."},
		{ID: "receipt-large", Section: "6", Fix: large, mild: true, Inputs: sizes.ofBoth((*trial).endsAs),
			Title: "A receipt with many logs is confirmed and has its effect."},
		{ID: "receipt-no-status", Section: "6", Fix: absent, Inputs: missing.ofBoth((*trial).endsLater),
			Title: "A result without a status moves nothing, and does not end the order."},
		{ID: "receipt-odd-status", Section: "3", Fix: odd, after: []string{"burn-fails"}, Inputs: slices.Concat(strange.ofBoth(oddly), mild(boolean.ofBoth(oddly))),
			Title: "A result whose status cannot be read is rejected, or is a failure: it gives a mint's assets back once, and grants nothing."},
	}
}

// withLog gives the receipt exactly one log.
func withLog(field string, value any) edit {
	return func(o object) object {
		return o.with("receipt.logs", list{aLog(o).with(field, value)})
	}
}

func aLog(o object) object {
	return logOf(o.at("tx_hash"), o.at("receipt.blockHash"), "0x"+strings.Repeat("1", 40), list{"0x" + strings.Repeat("2", 64)}, "0x")
}

func manyLogs(n int) edit {
	return func(o object) object {
		logs := make(list, n)
		for i := range logs {
			logs[i] = aLog(o).with("logIndex", fmt.Sprintf("0x%x", i)).with("data", "0x"+strings.Repeat("5a", 64))
		}
		return o.with("receipt.logs", logs)
	}
}

// endsAs requires that an order is approved and that an edited result has the expected
// effect.
func (t *trial) endsAs(e ending, change edit) {
	o := t.approve(e.order(t))
	t.confirmed(t.report(o, change(o.result(e.status))))
	t.moved(e.moved)
}

// endsAtMost requires that an edited result has the expected effect, or none until the
// right result follows. It is for endings that give the player nothing, which the receipt
// must not change.
func (t *trial) endsAtMost(e ending, change edit) {
	o := t.approve(e.order(t))
	if a := t.report(o, change(o.result(e.status))); t.answered(a) && !a.succeeded {
		t.confirm(o, e.status)
	}
	t.moved(e.moved)
}

// endsLater requires that an edited result without an outcome is rejected and moves
// nothing, and that a second one with an outcome has the expected effect. Only giving a
// mint's assets back is not grave, because a missing status is not 0x1.
func (t *trial) endsLater(e ending, change edit) {
	o := t.approve(e.order(t))
	then := t.now()
	a := t.report(o, change(o.result(e.status)))
	if t.either(a) && !o.burns() {
		t.tell(o, e.status)
		t.moved(e.moved)
	} else {
		t.still(then)
	}
	t.rejected(a)
	t.closes(o, e.status, e.moved)
}
