package judge_test

// flips reads some receipts of a method as those of another status.
func flips(method, status string, when func(message) bool) func(message, any) any {
	return func(m message, old any) any {
		if m.text("intent.method") == method && given("receipt.status")(m) && when(m) {
			return status
		}
		return old
	}
}

func receiptMutants() map[string]mutant {
	const log = "receipt.logs.0."
	length := func(n int) func(message) bool {
		return inResult(func(m message) bool {
			logs, _ := m.at("receipt.logs").([]any)
			return logs != nil && len(logs) == n
		})
	}
	m := map[string]mutant{
		"receipt-status-2/mint-failure": confirms(is("receipt.status", "0x2")),
		"receipt-status-2/burn-failure": edits("receipt.status", func(_ message, old any) any {
			return when(old == "0x2", "0x1", old)
		}),
	}
	for id, when := range map[string]func(message) bool{
		"type-7":          is("receipt.type", "0x7"),
		"no-fee":          without("intent.fee_rate"),
		"fee":             is("intent.fee_rate", "2001"),
		"block-timestamp": is(log+"blockTimestamp", "1763690000"),
		"removed":         is(log+"removed", "true"),
		"no-logs":         length(0),
		"no-topics": func(m message) bool {
			topics, ok := m.at(log + "topics").([]any)
			return ok && len(topics) == 0
		},
		"status-only":   without("receipt.type"),
		"null-contract": without("receipt.contractAddress"),
		"null-logs":     without("receipt.logs"),
		"no-bloom":      without("receipt.logsBloom"),
		"unknown-type":  is("receipt.type", "0x7e"),
		"numbers":       is("receipt.type", "2"),
		"hex-timestamp": is(log+"blockTimestamp", "0x6920f0d0"),
		"no-timestamp":  all(given(log+"address"), without(log+"blockTimestamp")),
		"large-gas":     func(m message) bool { return len(m.text("receipt.effectiveGasPrice")) > 18 },
		"fee-payer":     given("receipt.feePayer"),
		"number-status": func(m message) bool { return len(m.text("receipt.status")) == 1 },
		"padded-status": func(m message) bool { return len(m.text("receipt.status")) == 4 },
		"many-logs":     length(400),
		"logs":          length(12),
	} {
		mint, burn := "receipt-odd/mint-", "receipt-odd/burn-"
		switch id {
		case "type-7", "no-fee", "fee", "block-timestamp", "removed", "no-logs", "no-topics":
			mint, burn = "receipt/mint-failure-", "receipt/burn-success-"
			m["receipt/mint-success-"+id] = edits("receipt.status", flips("mint", "0x0", when))
			m["receipt/burn-failure-"+id] = edits("receipt.status", flips("burn-permit", "0x1", when))
		case "many-logs", "logs":
			mint, burn = "receipt-large/mint-", "receipt-large/burn-"
		}
		m[mint+id], m[burn+id] = rejects(when), rejects(when)
	}
	m["receipt/mint-failure-fee-of-most"] = mutant{bug: "keeps the fee of large mints"}
	// No 0x1, so it has failed; no 0x0, so it has succeeded.
	guess := func(method, status string) mutant {
		return edits("receipt", func(m message, old any) any {
			if s := m.text("receipt.status"); s == "0x0" || s == "0x1" || m.at("tx_hash") == nil ||
				m.text("intent.method") != method {
				return old
			}
			return map[string]any{"status": status}
		})
	}
	for _, id := range []string{"no-receipt", "null-receipt", "no-status", "null-status"} {
		m["receipt-no-status/mint-"+id], m["receipt-no-status/burn-"+id] = guess("mint", "0x0"),
			guess("burn-permit", "0x1")
	}
	for _, id := range []string{"empty", "0x", "true", "text"} {
		m["receipt-odd-status/mint-"+id], m["receipt-odd-status/burn-"+id] = guess("mint", "0x1"),
			guess("burn-permit", "0x1")
	}
	return m
}
