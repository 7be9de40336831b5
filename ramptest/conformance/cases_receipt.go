package conformance

import (
	"fmt"
	"math/big"
	"strings"
)

// receiptCases returns the cases about the forms of a receipt (interface 6). Only its status
// decides what a result moves.
func receiptCases() []Case {
	const (
		read    = "Read only the status of a receipt, and accept the other fields in every form of section 6."
		lenient = "Accept quantities as hex, as a number or missing, and ignore what you do not act on: nodes differ."
		absent  = "Treat a missing status as no outcome: move nothing and refuse the result, so that it is sent again. The wording of section 3 also allows you to treat it as a failure, because a missing status is not 0x1."
		odd     = "Refuse a status that you cannot read, so that the result is sent again, or treat it as a failure, as section 3 says of every status other than 0x1."
	)
	var cases []Case
	for _, c := range []struct {
		id, title string
		level     Level
		fix       string
		bend      func(object) object
	}{
		{"type-7", "of type 0x7, whose gas was sponsored", Must, read, with("receipt.type", "0x7")},
		{"no-fee", "without fee_rate and actual", Must, read, func(o object) object {
			return o.without("intent.fee_rate").without("intent.actual")
		}},
		{"fee", "with a fee_rate of 2000, which leaves 80%,", Must, read, func(o object) object {
			actual := rat(o.at("intent.actual").(string))
			return o.with("intent.fee_rate", number(2000)).with("intent.actual", show(actual.Mul(actual, big.NewRat(4, 5))))
		}},
		{"block-timestamp", "whose log has a blockTimestamp that is not 0", Must, read, withLog("blockTimestamp", number(1763690000))},
		{"removed", "whose log is marked as removed", Should, read, withLog("removed", true)},
		{"no-logs", "without a log", Must, read, with("receipt.logs", list{})},
		{"no-topics", "whose log has no topics", Must, read, withLog("topics", list{})},
		{"status-only", "with only its status", Should, lenient, func(o object) object {
			return o.with("receipt", object{"status": o.at("receipt.status")})
		}},
		{"null-contract", "whose contractAddress is null", Should, lenient, with("receipt.contractAddress", nil)},
		{"null-logs", "whose logs are null", Should, lenient, with("receipt.logs", nil)},
		{"no-bloom", "without logsBloom", Should, lenient, func(o object) object { return o.without("receipt.logsBloom") }},
		{"unknown-type", "of the type 0x7e", Should, lenient, with("receipt.type", "0x7e")},
		{"numbers", "whose quantities are JSON numbers", Should, lenient, func(o object) object {
			return o.with("receipt.type", number(2)).with("receipt.gasUsed", number(91_834)).with("receipt.blockNumber", number(16))
		}},
		{"hex-timestamp", "whose log has a blockTimestamp in hex", Should, lenient, withLog("blockTimestamp", "0x6920f0d0")},
		{"no-timestamp", "whose log has no blockTimestamp", Should, lenient, func(o object) object {
			return o.with("receipt.logs", list{aLog(o).without("blockTimestamp")})
		}},
		{"large-gas", "whose gas needs more than 64 bits", Should, lenient, with("receipt.effectiveGasPrice", "0x1"+strings.Repeat("0", 20))},
		{"fee-payer", "with from, to and feePayer", Should, lenient, func(o object) object {
			someone := "0x" + strings.Repeat("1", 40)
			return o.with("receipt.from", someone).with("receipt.to", someone).with("receipt.feePayer", someone)
		}},
		{"number-status", "whose status is a JSON number", Should, lenient, func(o object) object {
			if o.at("receipt.status") == success {
				return o.with("receipt.status", number(1))
			}
			return o.with("receipt.status", number(0))
		}},
		{"padded-status", "whose status has a leading zero", Should, lenient, func(o object) object {
			return o.with("receipt.status", "0x0"+o.at("receipt.status").(string)[2:])
		}},
		{"many-logs", "with 400 logs (256 KiB)", Should, "Accept bodies of up to 1 MiB: the interface does not say how large they get.", manyLogs},
	} {
		cases = append(cases,
			Case{ID: "receipt-failed-" + c.id, Level: c.level, Section: "6", Fix: c.fix,
				Title: "The failed receipt of a mint " + c.title + " gives the assets back.",
				run:   reports(mint, failure, 0, c.bend)},
			Case{ID: "receipt-" + c.id, Level: c.level, Section: "6", Fix: c.fix,
				Title: "The successful receipt of a burn " + c.title + " grants the assets.",
				run:   reports(burn, success, 1, c.bend)})
	}
	cases = append(cases,
		Case{ID: "receipt-status-2", Level: Must, Section: "3", Fix: "Give back for every status other than 0x1.",
			Title: "A mint whose receipt has status 0x2 gives its assets back, because it is not 0x1.",
			run:   reports(mint, failure, 0, with("receipt.status", "0x2"))},
		Case{ID: "receipt-burn-status-2", Level: Must, Section: "3", Fix: "Grant for the status 0x1 only.",
			Title: "A burn whose receipt has status 0x2 grants nothing, because it is not 0x1.",
			run:   reports(burn, failure, 0, with("receipt.status", "0x2"))})
	for _, c := range []struct {
		id, title string
		bend      func(object) object
	}{
		{"no-receipt", "without a receipt", func(o object) object { return o.without("receipt") }},
		{"null-receipt", "whose receipt is null", with("receipt", nil)},
		{"no-status", "without a status", func(o object) object { return o.without("receipt.status") }},
		{"null-status", "whose status is null", with("receipt.status", nil)},
	} {
		cases = append(cases,
			Case{ID: "mint-" + c.id, Level: Should, Section: "6", Fix: absent,
				Title: "A mint's result " + c.title + " gives nothing back, and does not end the order.",
				run:   unread(mint, failure, 0, c.bend)},
			Case{ID: "burn-" + c.id, Level: Should, Section: "6", Fix: absent,
				Title: "A burn's result " + c.title + " grants nothing, and does not end the order.",
				run:   unread(burn, success, 1, c.bend)})
	}
	for _, c := range []struct {
		id, title string
		bend      func(object) object
	}{
		{"empty-status", "whose status is empty", with("receipt.status", "")},
		{"0x-status", "whose status is 0x", with("receipt.status", "0x")},
		{"true-status", "whose status is true", with("receipt.status", true)},
		{"text-status", "whose status is a word", with("receipt.status", "failed")},
	} {
		cases = append(cases,
			Case{ID: "mint-" + c.id, Level: Should, Section: "3", Fix: odd,
				Title: "A mint's result " + c.title + " is refused, or gives the assets back once.",
				run: func(t *trial) {
					o := t.approve(t.mint())
					if a := t.report(o, c.bend(o.result(failure))); t.answered(a) && a.succeeded() {
						t.moved(0)
					}
					t.confirm(o, failure)
					t.moved(0)
				}},
			Case{ID: "burn-" + c.id, Level: Should, Section: "3", Fix: odd,
				Title: "A burn's result " + c.title + " is refused, or ends the order as failed; it grants nothing.",
				run: func(t *trial) {
					o := t.approve(t.burn())
					then := t.now()
					a := t.report(o, c.bend(o.result(failure)))
					if t.answered(a) && a.succeeded() {
						t.answered(t.report(o, o.result(failure)))
						t.moved(0)
						return
					}
					t.still(then)
					t.confirm(o, success)
					t.moved(1)
				}})
	}
	return cases
}

func with(path string, value any) func(object) object {
	return func(o object) object { return o.with(path, value) }
}

// withLog gives the receipt exactly one log.
func withLog(field string, value any) func(object) object {
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

func manyLogs(o object) object {
	logs := make(list, 400)
	for i := range logs {
		logs[i] = aLog(o).with("logIndex", fmt.Sprintf("0x%x", i)).with("data", "0x"+strings.Repeat("5a", 64))
	}
	return o.with("receipt.logs", logs)
}

// reports tells the story of an order whose result has another form but the usual effect.
func reports(start func(*trial) order, status string, moved int64, bend func(object) object) func(*trial) {
	return func(t *trial) {
		o := t.approve(start(t))
		t.confirmed(t.report(o, bend(o.result(status))))
		t.moved(moved)
	}
}

// unread tells the story of an order whose first result has no outcome, and whose second
// result has one.
func unread(start func(*trial) order, status string, moved int64, bend func(object) object) func(*trial) {
	return func(t *trial) {
		o := t.approve(start(t))
		then := t.now()
		t.refused(t.report(o, bend(o.result(status))))
		t.still(then)
		t.confirm(o, status)
		t.moved(moved)
	}
}
