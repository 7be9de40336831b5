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
		lenient = "Accept quantities as hex, as a number or missing, and ignore what you do not act on: nodes differ."
		absent  = "Treat a missing status as no outcome: move nothing and reject the result, so that it is sent again. The wording of section 3 also allows you to treat it as a failure, because a missing status is not 0x1."
		odd     = "Reject a status that you cannot read, so that the result is sent again, or treat it as a failure, as section 3 says of every status other than 0x1."
		large   = "Accept bodies of up to 1 MiB: the interface does not say how large they get."
	)
	failed := func(t *trial, e edit) { t.endsAs(t.mint(), e, failure, 0) }
	granted := func(t *trial, e edit) { t.endsAs(t.burn(), e, success, 1) }
	// taken and nothing require that a mint is not given back and that a burn grants nothing,
	// which the receipt must not change.
	taken := func(t *trial, e edit) { t.endsAtMost(t.mint(), e, success, -1) }
	nothing := func(t *trial, e edit) { t.endsAtMost(t.burn(), e, failure, 0) }
	described := rows[edit]{
		{"type-7", "of type 0x7, whose gas was sponsored", Must, set("receipt.type", "0x7")},
		{"no-fee", "without fee_rate and actual", Must, func(o object) object {
			return o.without("intent.fee_rate").without("intent.actual")
		}},
		{"fee", "with a fee_rate of 2001, which leaves a fraction of a token,", Must, func(o object) object {
			actual := rat(o.at("intent.actual").(string))
			return o.with("intent.fee_rate", number(2001)).with("intent.actual", show(actual.Mul(actual, big.NewRat(7999, 10_000))))
		}},
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
	missing := rows[edit]{
		{"no-receipt", "without a receipt", Should, drop("receipt")},
		{"null-receipt", "whose receipt is null", Should, set("receipt", nil)},
		{"no-status", "without a status", Should, drop("receipt.status")},
		{"null-status", "whose status is null", Should, set("receipt.status", nil)},
	}
	strange := rows[edit]{
		{"empty", "whose status is empty", Should, set("receipt.status", "")},
		{"0x", "whose status is 0x", Should, set("receipt.status", "0x")},
		{"text", "whose status is a word", Should, set("receipt.status", "failed")},
	}
	boolean := rows[edit]{{"true", "whose status is true", Should, set("receipt.status", true)}}
	oddMint := func(t *trial, e edit) {
		o := t.approve(t.mint())
		if a := t.report(o, e(o.result(failure))); t.answered(a) && a.succeeded() {
			t.moved(0)
		}
		t.closes(o, failure, 0)
	}
	oddBurn := func(t *trial, e edit) {
		o := t.approve(t.burn())
		then := t.now()
		a := t.report(o, e(o.result(failure)))
		if t.answered(a) && a.succeeded() {
			t.answered(t.report(o, o.result(failure)))
			t.moved(0)
			return
		}
		t.still(then)
		t.closes(o, success, 1)
	}
	both := func(prefix string, run func(*trial, edit), ability string) []Input {
		return prefixed(prefix, slices.Concat(described.inputs(run, ability), timed.inputs(run, ability, "result-log")))
	}
	return []Case{
		{ID: "receipt-status-2", early: true, Section: "3", Fix: "Give back, and grant nothing, for every status other than 0x1.", Inputs: []Input{
			{Name: "mint", Title: "of a mint", Level: Must, after: []string{"mint-fails"},
				run: func(t *trial) { t.endsAs(t.mint(), set("receipt.status", "0x2"), failure, 0) }},
			{Name: "burn", Title: "of a burn", Level: Must, after: []string{"burn-fails"},
				run: func(t *trial) { t.endsAs(t.burn(), set("receipt.status", "0x2"), failure, 0) }},
		},
			Title: "The status 0x2 is a failure, because it is not 0x1."},
		{ID: "receipt", Section: "6", Fix: read, Inputs: slices.Concat(
			both("mint-failure-", failed, "mint-fails"), both("mint-success-", taken, "mint-succeeds"),
			both("burn-success-", granted, "burn-succeeds"), both("burn-failure-", nothing, "burn-fails")),
			Title: "The status of a receipt alone decides whether a mint is given back and a burn granted, whatever else section 6 allows in it."},
		{ID: "receipt-odd", Section: "6", Fix: lenient, mild: true, Inputs: other.ofBoth(failed, granted),
			Title: "A receipt in a form that section 6 does not have gives back a failed mint and grants a successful burn."},
		{ID: "receipt-large", Section: "6", Fix: large, mild: true, Inputs: sizes.ofBoth(failed, granted),
			Title: "A receipt with many logs is confirmed and has its effect."},
		{ID: "receipt-no-status", Section: "6", Fix: absent, Inputs: missing.ofBoth(
			func(t *trial, e edit) { t.endsLater(t.mint(), e, failure, 0) },
			func(t *trial, e edit) { t.endsLater(t.burn(), e, success, 1) }),
			Title: "A result without a status moves nothing, and does not end the order."},
		{ID: "receipt-odd-status", Section: "3", Fix: odd, after: []string{"burn-fails"}, Inputs: slices.Concat(
			strange.ofBoth(oddMint, oddBurn), mild(boolean.ofBoth(oddMint, oddBurn))),
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
	return object{
		"address": "0x" + strings.Repeat("1", 40), "topics": list{"0x" + strings.Repeat("2", 64)}, "data": "0x",
		"blockNumber": "0x10", "transactionHash": o.at("tx_hash"), "transactionIndex": "0x0",
		"blockHash": o.at("receipt.blockHash"), "blockTimestamp": number(0), "logIndex": "0x0", "removed": false,
	}
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
func (t *trial) endsAs(o order, e edit, status string, moved int64) {
	t.approve(o)
	t.confirmed(t.report(o, e(o.result(status))))
	t.moved(moved)
}

// endsAtMost requires that an edited result has the expected effect, or none until the
// right result follows.
func (t *trial) endsAtMost(o order, e edit, status string, moved int64) {
	t.approve(o)
	if a := t.report(o, e(o.result(status))); t.answered(a) && !a.succeeded() {
		t.confirm(o, status)
	}
	t.moved(moved)
}

// endsLater requires that an edited result without an outcome is rejected and moves
// nothing, and that a second one with an outcome has the expected effect. Only giving a
// mint's assets back is not grave, because a missing status is not 0x1.
func (t *trial) endsLater(o order, e edit, status string, moved int64) {
	t.approve(o)
	then := t.now()
	a := t.report(o, e(o.result(status)))
	if t.answered(a) && a.succeeded() && !o.burns() {
		t.answered(t.report(o, o.result(status)))
		t.moved(moved)
	} else {
		t.still(then)
	}
	t.rejected(a)
	t.closes(o, status, moved)
}
