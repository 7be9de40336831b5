package judge

import (
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// receiptCases returns the cases about the forms of a receipt (interface 6). Only its status
// decides what a result moves.
func receiptCases() []Case {
	fee := func(o object) object {
		actual := rat(o.at("intent.actual").(string))
		return o.with("intent.fee_rate", number(2001)).with("intent.actual",
			show(product(actual, big.NewRat(7999, 10_000))))
	}
	described := rows[edit]{Must: {
		{"type-7", "of type 0x7, whose gas was sponsored", set("receipt.type", "0x7")},
		{"no-fee", "without fee_rate and actual", edits(drop("intent.fee_rate"), drop("intent.actual"))},
		{"fee", "with a fee_rate of 2001, which leaves a fraction of a token,", fee},
		{"no-logs", "without a log", set("receipt.logs", list{})},
		{"no-topics", "whose log has no topics", withLog("topics", list{})},
	}, Should: {
		{"removed", "whose log is marked as removed", withLog("removed", true)},
	}}
	timed := rows[edit]{Must: {{"block-timestamp", "whose log has a blockTimestamp that is not 0",
		withLog("blockTimestamp", number(1763690000))}}}
	other := rows[edit]{Should: {
		{"status-only", "with only its status", func(o object) object {
			return o.with("receipt", object{"status": o.at("receipt.status")})
		}},
		{"null-contract", "whose contractAddress is null", set("receipt.contractAddress", nil)},
		{"null-logs", "whose logs are null", set("receipt.logs", nil)},
		{"no-bloom", "without logsBloom", drop("receipt.logsBloom")},
		{"unknown-type", "of the type 0x7e", set("receipt.type", "0x7e")},
		{"numbers", "whose quantities are JSON numbers",
			edits(set("receipt.type", number(2)), set("receipt.gasUsed", number(91_834)),
				set("receipt.blockNumber", number(16)))},
		{"hex-timestamp", "whose log has a blockTimestamp in hex", withLog("blockTimestamp", "0x6920f0d0")},
		{"no-timestamp", "whose log has no blockTimestamp", func(o object) object {
			return o.with("receipt.logs", list{aLog(o).without("blockTimestamp")})
		}},
		{"large-gas", "whose gas needs more than 64 bits",
			set("receipt.effectiveGasPrice", "0x1"+strings.Repeat("0", 20))},
		{"fee-payer", "with from, to and feePayer",
			edits(set("receipt.from", someone), set("receipt.to", someone),
				set("receipt.feePayer", someone))},
		{"number-status", "whose status is a JSON number", func(o object) object {
			return o.with("receipt.status", raw(literalText(o.at("receipt.status"))[2:]))
		}},
		{"padded-status", "whose status has a leading zero",
			changed("receipt.status", func(status string) string { return "0x0" + status[2:] })},
	}}
	sizes := rows[edit]{Must: {
		{"logs", "with 12 logs (8 KiB)", manyLogs(12)},
	}, Should: {
		{"many-logs", "with 400 logs (256 KiB)", manyLogs(400)},
	}}
	missing := rows[edit]{Should: slices.Concat(leftOut("receipt", "receipt"),
		leftOut("status", "receipt.status"))}
	strange := rows[edit]{Should: {
		{"empty", "whose status is empty", set("receipt.status", "")},
		{"0x", "whose status is 0x", set("receipt.status", "0x")},
		{"text", "whose status is a word", set("receipt.status", "failed")},
	}}
	boolean := rows[edit]{Should: {{"true", "whose status is true", set("receipt.status", true)}}}
	oddly := func(t *trial, o order, status string, change edit) {
		then := t.now()
		a := t.report(o, failure, change)
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
		t.closes(o, status)
	}
	of := func(e ending, run func(*trial, order, string, edit)) []Input {
		return slices.Concat(described.of(e.name, e, run), timed.of(e.name, e, run, "result-log"))
	}
	status2 := func(t *trial, o order, status string) { t.closes(o, status, set("receipt.status", "0x2")) }
	return []Case{
		{ID: "receipt-status-2", early: true, Section: "3",
			Fix:    "Give back, and grant nothing, for every status other than 0x1.",
			Inputs: []Input{mintFails.input(status2), burnFails.input(status2)},
			Title:  "The status 0x2 is a failure, because it is not 0x1."},
		{ID: "receipt", Inputs: slices.Concat(
			of(mintFails, (*trial).endsAs), of(mintEnds, (*trial).endsAtMost), of(burnEnds, (*trial).endsAs),
			of(burnFails, (*trial).endsAtMost), []Input{
				must("mint-failure-fee-of-most",
					"of a mint of most that the player owns, with a fee_rate of 2001,", func(t *trial) {
						t.closes(t.mintOfMost(), failure, fee)
					}, "mint-fails"),
			}),
			Fix: "Read only the status of a receipt, and accept the other fields in every form of " +
				"section 6.",
			Title: "The status of a receipt alone decides whether a mint is given back and a burn " +
				"granted, whatever else section 6 allows in it."},
		{ID: "receipt-odd", mild: true, Inputs: other.ofBoth((*trial).endsAs),
			Fix: "Read the status as hex or as a number, and ignore what you do not act on, in whatever " +
				"form: nodes differ.",
			Title: "A receipt in a form that section 6 does not have gives back a failed mint and grants " +
				"a successful burn."},
		{ID: "receipt-large", mild: true, Inputs: sizes.ofBoth((*trial).endsAs),
			Fix:   "Accept bodies of up to 1 MiB: the interface does not say how large they get.",
			Title: "A receipt with many logs is confirmed and has its effect."},
		{ID: "receipt-no-status", Inputs: missing.ofBoth((*trial).endsLater),
			Fix: "Treat a missing status as no outcome: move nothing and reject the result, so that it " +
				"is sent again. The wording of section 3 also allows you to treat it as a failure, " +
				"because a missing status is not 0x1.",
			Title: "A result without a status moves nothing, and does not end the order."},
		{ID: "receipt-odd-status", Section: "3", after: []string{"burn-fails"},
			Inputs: slices.Concat(strange.ofBoth(oddly), mild(boolean.ofBoth(oddly)...)),
			Fix: "Reject a status that you cannot read, so that the result is sent again, or treat it " +
				"as a failure, as section 3 says of every status other than 0x1.",
			Title: "A result whose status cannot be read is rejected, or is a failure: it gives a mint's " +
				"assets back once, and grants nothing."},
	}
}

// someone is an address.
var someone = "0x" + strings.Repeat("1", 40)

// withLog gives the receipt exactly one log.
func withLog(field string, value any) edit {
	return func(o object) object {
		return o.with("receipt.logs", list{aLog(o).with(field, value)})
	}
}

func aLog(o object) object {
	return logOf(o.at("tx_hash"), o.at("receipt.blockHash"), someone,
		list{"0x" + strings.Repeat("2", 64)}, "0x")
}

func manyLogs(n int) edit {
	return func(o object) object {
		logs := make(list, n)
		for i := range logs {
			logs[i] = aLog(o).with("logIndex", fmt.Sprintf("0x%x", i)).with("data",
				"0x"+strings.Repeat("5a", 64))
		}
		return o.with("receipt.logs", logs)
	}
}

// endsAs requires that an edited result has the expected effect.
func (t *trial) endsAs(o order, status string, change edit) { t.closes(o, status, change) }

// endsAtMost requires that an edited result has the expected effect, or none until the
// right result follows. It is for endings that give the player nothing, which the receipt
// must not change.
func (t *trial) endsAtMost(o order, status string, change edit) {
	if a := t.report(o, status, change); t.answered(a) && !a.succeeded {
		t.confirm(o, status)
	}
	t.movedAs(o, status)
}

// endsLater requires that an edited result without an outcome is rejected and moves
// nothing, and that a second one with an outcome has the expected effect. Only giving a
// mint's assets back is not grave, because a missing status is not 0x1.
func (t *trial) endsLater(o order, status string, change edit) {
	then := t.now()
	a := t.report(o, status, change)
	if t.either(a) && !o.burns() {
		t.tell(o, status)
		t.movedAs(o, status)
	} else {
		t.still(then)
	}
	t.rejected(a)
	t.closes(o, status)
}
