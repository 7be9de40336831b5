package conformance_test

import (
	"strings"
)

func receiptMutants() map[string]mutant {
	const log = "receipt.logs.0."
	given := func(path string) func(message) bool { return func(m message) bool { return m.at(path) != nil } }
	result := func(when func(message) bool) func(message) bool { return all(given("tx_hash"), when) }
	without := func(path string) func(message) bool {
		return result(func(m message) bool { return m.at(path) == nil })
	}
	length := func(n int) func(message) bool {
		return result(func(m message) bool { logs, _ := m.at("receipt.logs").([]any); return logs != nil && len(logs) == n })
	}
	m := map[string]mutant{
		"receipt-status-2": confirms(is("receipt.status", "0x2")),
		"receipt-burn-status-2": edits("receipt.status", func(_ message, old any) any {
			return when(old == "0x2", "0x1", old)
		}),
	}
	for id, when := range map[string]func(message) bool{
		"type-7":          is("receipt.type", "0x7"),
		"no-fee":          without("intent.fee_rate"),
		"fee":             is("intent.actual", "0.8"),
		"block-timestamp": is(log+"blockTimestamp", "1763690000"),
		"removed":         is(log+"removed", "true"),
		"no-logs":         length(0),
		"no-topics":       func(m message) bool { topics, ok := m.at(log + "topics").([]any); return ok && len(topics) == 0 },
		"status-only":     without("receipt.type"),
		"null-contract":   without("receipt.contractAddress"),
		"null-logs":       without("receipt.logs"),
		"no-bloom":        without("receipt.logsBloom"),
		"unknown-type":    is("receipt.type", "0x7e"),
		"numbers":         is("receipt.type", "2"),
		"hex-timestamp":   is(log+"blockTimestamp", "0x6920f0d0"),
		"no-timestamp":    all(given(log+"address"), without(log+"blockTimestamp")),
		"large-gas":       func(m message) bool { return len(m.text("receipt.effectiveGasPrice")) > 18 },
		"fee-payer":       given("receipt.feePayer"),
		"number-status":   func(m message) bool { return len(m.text("receipt.status")) == 1 },
		"padded-status":   func(m message) bool { return len(m.text("receipt.status")) == 4 },
		"many-logs":       length(400),
	} {
		m["receipt-"+id], m["receipt-failed-"+id] = refuses(when), refuses(when)
	}
	for id, when := range map[string]func(message) bool{
		"no-session-id":     func(m message) bool { _, given := m["session_id"]; return m["receipt"] != nil && !given },
		"null-session-id":   without("session_id"),
		"padded-session-id": func(m message) bool { return strings.HasPrefix(m.text("session_id"), " ") },
		"plain-uuid":        func(m message) bool { return len(m.text("uuid")) == 32 },
		"no-intent":         without("intent"),
		"null-intent":       without("intent"),
		"null-to":           without("intent.to"),
		"empty-to": result(func(m message) bool {
			to, ok := m.at("intent.to").([]any)
			return ok && len(to) == 0
		}),
		"to-zero":      result(is("intent.to.0.amount", "0")),
		"to-missing":   all(given("intent.to.0"), without("intent.to.0.amount")),
		"to-text":      result(func(m message) bool { _, isText := m.at("intent.to.0.amount").(string); return isText }),
		"to-digits":    result(func(m message) bool { return len(m.text("intent.to.0.amount")) > 1000 }),
		"long-tx-hash": func(m message) bool { return len(m.text("tx_hash")) > 66 },
		"no-tx-hash":   func(m message) bool { return m["receipt"] != nil && m["tx_hash"] == nil },
	} {
		m["result-mint-"+id], m["result-burn-"+id] = refuses(when), refuses(when)
	}
	// No 0x1, so it has failed; no 0x0, so it has succeeded.
	guess := func(method, status string) mutant {
		return edits("receipt", func(m message, old any) any {
			if s := m.text("receipt.status"); s == "0x0" || s == "0x1" || m.at("tx_hash") == nil || m.text("intent.method") != method {
				return old
			}
			return map[string]any{"status": status}
		})
	}
	for _, id := range []string{"no-receipt", "null-receipt", "no-status", "null-status"} {
		m["mint-"+id], m["burn-"+id] = guess("mint", "0x0"), guess("burn-permit", "0x1")
	}
	for _, id := range []string{"empty-status", "0x-status", "true-status", "text-status"} {
		m["mint-"+id], m["burn-"+id] = guess("mint", "0x1"), guess("burn-permit", "0x1")
	}
	return m
}
