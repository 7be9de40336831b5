package conformance_test

func intentMutants() map[string]mutant {
	const from, to = "intent.from.0.type", "intent.to.0.type"
	method := func(method, kind string) func(message) bool {
		return all(is("intent.method", method), is("intent.type", kind))
	}
	aMint, aBurn := method("mint", "assemble"), method("burn-permit", "disassemble")
	return map[string]mutant{
		"intent-mint-disassemble":   approves(method("mint", "disassemble")),
		"intent-burn-assemble":      approves(method("burn-permit", "assemble")),
		"intent-mint-as-burn":       approves(all(aBurn, is(from, "asset"))),
		"intent-unknown-method":     approves(is("intent.method", "steal")),
		"intent-unknown-type":       approves(is("intent.type", "reassemble")),
		"intent-mint-from-token":    approves(all(aMint, is(from, "ERC20"))),
		"intent-mint-to-asset":      edits(to, func(m message, old any) any { return when(aMint(m), "ERC20", old) }),
		"intent-burn-from-asset":    edits(from, func(m message, old any) any { return when(aBurn(m), "ERC20", old) }),
		"intent-burn-to-token":      edits(to, func(m message, old any) any { return when(aBurn(m), "asset", old) }),
		"intent-method-burn":        refuses(is("intent.method", "burn")),
		"intent-small-erc20":        refuses(is(to, "erc20")),
		"intent-unknown-asset":      approves(is("intent.from.0.id", "item_of_nobody")),
		"intent-burn-unknown-asset": approves(is("intent.to.0.id", "item_of_nobody")),
		"intent-second-short":       {bug: "takes one asset after the other"},
		"intent-asset-twice":        {bug: "takes the last entry"},
		"intent-asset-twice-back":   {bug: "gives back the last entry"},
		"intent-burn-asset-twice":   {bug: "grants the last entry"},
		"intent-sum-too-much":       {bug: "takes more than there is"},
		"intent-two-assets":         {bug: "takes the last entry"},
	}
}

func when(condition bool, yes, no any) any {
	if condition {
		return yes
	}
	return no
}
