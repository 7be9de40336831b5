package conformance

import "slices"

// intentCases returns the cases about the content of an intent (interface 2.5).
func intentCases() []Case {
	const (
		pair  = "Derive mint or burn from method and type together, and refuse a pair that is neither."
		sides = "Let a mint go from assets to a token, and a burn from a token to assets; refuse the rest."
	)
	orTakes := func(fix string) want[edit] {
		return want[edit]{"intent-%s", "%s is declined, or takes what a mint takes.", "2.5", fix,
			func(t *trial, e edit) { t.declinesOrMoves(t.mint().bent(e), -1) }}
	}
	burnDeclined := want[edit]{"intent-burn-%s", "A burn %s is declined.", "2.5", sides,
		func(t *trial, e edit) { t.declines(t.burn().bent(e)) }}
	return slices.Concat(
		rows[edit]{{"mint-disassemble", "Method mint with type disassemble", Must, set("intent.type", "disassemble")}}.cases(orTakes(pair)),
		[]Case{{ID: "intent-burn-assemble", Level: Must, Section: "2.5", Fix: pair,
			Title: "Method burn-permit with type assemble is declined, or grants what a burn grants.",
			run:   func(t *trial) { t.declinesOrMoves(t.burn().bent(set("intent.type", "assemble")), 1) }}},
		rows[edit]{
			{"mint-as-burn", "Method burn-permit with the sides of a mint", Must, func(o object) object {
				return o.with("intent.method", "burn-permit").with("intent.type", "disassemble")
			}},
			{"unknown-method", "An unknown method", Must, set("intent.method", "steal")},
			{"unknown-type", "An unknown type", Must, set("intent.type", "reassemble")},
		}.cases(orTakes(pair)),
		rows[edit]{{"mint-from-token", "A mint from a token", Must, set("intent.from.0.type", "ERC20")}}.cases(orTakes(sides)),
		[]Case{{ID: "intent-mint-to-asset", Level: Should, Section: "2.5", Fix: sides,
			Title: "A mint to an asset of the game is declined.",
			run: func(t *trial) {
				t.declines(t.mint().bent(set("intent.to.0.id", "item_of_nobody"), set("intent.to.0.type", "asset")))
			}}},
		rows[edit]{
			{"from-asset", "from an asset of the game", Should, set("intent.from.0.type", "asset")},
			{"to-token", "to a token", Should, set("intent.to.0.type", "ERC20")},
		}.cases(burnDeclined),
		[]Case{
			{ID: "intent-method-burn", Level: Should, Section: "2.5",
				Fix:   "Accept burn as well as burn-permit: the field's description has both.",
				Title: "Method burn is a burn.",
				run:   func(t *trial) { t.ends(t.burn().bent(set("intent.method", "burn")), success, 1) }},
			{ID: "intent-small-erc20", Level: Should, Section: "2.5",
				Fix:   "Ignore case when you compare token types: older messages write erc20.",
				Title: "A mint to erc20 in lower case is approved.",
				run:   func(t *trial) { t.ends(t.mint().bent(set("intent.to.0.type", "erc20")), success, -1) }},
			{ID: "intent-unknown-asset", Level: Must, Section: "2.5",
				Fix:   "Treat an unknown asset as one that the player does not own.",
				Title: "A mint of an asset that the game does not have is declined.",
				run:   func(t *trial) { t.declines(t.mint().bent(set("intent.from.0.id", "item_of_nobody"))) }},
			{ID: "intent-burn-unknown-asset", Level: Should, Section: "2.5",
				Fix:   "Approve a burn only when its assets can be granted later.",
				Title: "A burn to an asset that the game does not have is declined.",
				run:   func(t *trial) { t.declines(t.burn().bent(set("intent.to.0.id", "item_of_nobody"))) }},
			{ID: "intent-second-short", Level: Must, Section: "2.5",
				Fix:   "Take all assets of an order in one transaction, or none.",
				Title: "A mint whose second asset the player lacks takes nothing of the first.",
				run: func(t *trial) {
					t.refused(t.validate(t.mint().bent(t.of(t.times(2)), set("intent.from", list{
						entry("asset", t.asset, t.times(1)), entry("asset", "item_of_nobody", t.times(1))}))))
					t.moved(0)
				}},
			{ID: "intent-asset-twice", Level: Must, Section: "2.5",
				Fix:   "Add up the entries of an intent by asset before you check and take them.",
				Title: "A mint that lists an asset twice takes the sum, or is declined.",
				run: func(t *trial) {
					t.declinesOrEnds(t.mint().bent(t.listedTwice("intent.from")), success, t.amounts(-3))
				}},
			{ID: "intent-asset-twice-back", Level: Must, Section: "3",
				Fix:   "Give back the sum of what was taken, by asset.",
				Title: "A failed mint that listed an asset twice gives all of it back.",
				run: func(t *trial) {
					t.declinesOrEnds(t.mint().bent(t.listedTwice("intent.from")), failure, t.amounts(0))
				}},
			{ID: "intent-burn-asset-twice", Level: Must, Section: "2.5",
				Fix:   "Add up the entries of an intent by asset before you grant them.",
				Title: "A burn that lists an asset twice grants the sum, or is declined.",
				run: func(t *trial) {
					t.declinesOrEnds(t.burn().bent(t.listedTwice("intent.to")), success, t.amounts(3))
				}},
			{ID: "intent-sum-too-much", Level: Must, Section: "2.5",
				Fix:   "Compare the sum of an asset's entries with the balance, not each of them.",
				Title: "A mint whose entries of one asset add up to more than the player owns is declined.",
				run: func(t *trial) {
					t.refused(t.validate(t.mint().bent(t.of(twice(t.most())), set("intent.from", list{
						entry("asset", t.asset, t.most()), entry("asset", t.asset, t.most())}))))
					t.moved(0)
				}},
			{ID: "intent-two-assets", Level: Must, Section: "2.5", needs: aSecondAsset,
				Fix:   "Take every entry of intent.from, and give every one back.",
				Title: "A mint of two assets takes both, and gives both back when it fails; or it is declined.",
				run: func(t *trial) {
					both := func() order {
						return t.mint().bent(t.of(t.times(2)), set("intent.from", list{
							entry("asset", t.asset, t.times(1)), entry("asset", t.second, t.times(1))}))
					}
					o, moved := both(), int64(0)
					if t.either(t.validate(o)) {
						t.confirm(o, success)
						moved = -1
						again := t.approve(both())
						t.confirm(again, failure)
					}
					t.movedSince(t.before, difference{t.asset: t.amounts(moved), t.second: t.amounts(moved)})
				}},
		})
}

// listedTwice returns an edit to an order of 3 amounts of the asset, in two entries.
func (t *trial) listedTwice(side string) edit {
	of, entries := t.of(t.times(3)), list{entry("asset", t.asset, t.times(1)), entry("asset", t.asset, t.times(2))}
	return func(o object) object { return of(o).with(side, entries) }
}
