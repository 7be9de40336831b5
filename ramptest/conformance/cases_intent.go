package conformance

import "math/big"

// intentCases returns the cases about the content of an intent (interface 2.5).
func intentCases() []Case {
	const (
		pair  = "Derive mint or burn from method and type together, and refuse a pair that is neither."
		sides = "Let a mint go from assets to a token, and a burn from a token to assets; refuse the rest."
	)
	other := func(t *trial) order { return t.mint().bent(set("intent.to.0.id", "item_of_nobody")) }
	cases := []Case{
		{ID: "intent-mint-disassemble", Level: Must, Section: "2.5", Fix: pair,
			Title: "Method mint with type disassemble is declined, or takes what a mint takes.",
			run:   declinesOrMoves(mint, -1, set("intent.type", "disassemble"))},
		{ID: "intent-burn-assemble", Level: Must, Section: "2.5", Fix: pair,
			Title: "Method burn-permit with type assemble is declined, or grants what a burn grants.",
			run:   declinesOrMoves(burn, 1, set("intent.type", "assemble"))},
		{ID: "intent-mint-as-burn", Level: Must, Section: "2.5", Fix: pair,
			Title: "Method burn-permit with the sides of a mint is declined, or takes what a mint takes.",
			run:   declinesOrMoves(mint, -1, set("intent.method", "burn-permit"), set("intent.type", "disassemble"))},
		{ID: "intent-unknown-method", Level: Must, Section: "2.5", Fix: pair,
			Title: "An unknown method is declined, or takes what a mint takes.",
			run:   declinesOrMoves(mint, -1, set("intent.method", "steal"))},
		{ID: "intent-unknown-type", Level: Must, Section: "2.5", Fix: pair,
			Title: "An unknown type is declined, or takes what a mint takes.",
			run:   declinesOrMoves(mint, -1, set("intent.type", "reassemble"))},
		{ID: "intent-mint-from-token", Level: Must, Section: "2.5", Fix: sides,
			Title: "A mint from a token is declined, or takes what a mint takes.",
			run:   declinesOrMoves(mint, -1, set("intent.from.0.type", "ERC20"))},
		{ID: "intent-mint-to-asset", Level: Should, Section: "2.5", Fix: sides,
			Title: "A mint to an asset of the game is declined.",
			run:   declines(other, set("intent.to.0.type", "asset"))},
		{ID: "intent-burn-from-asset", Level: Should, Section: "2.5", Fix: sides,
			Title: "A burn from an asset of the game is declined.",
			run:   declines(burn, set("intent.from.0.type", "asset"))},
		{ID: "intent-burn-to-token", Level: Should, Section: "2.5", Fix: sides,
			Title: "A burn to a token is declined.",
			run:   declines(burn, set("intent.to.0.type", "ERC20"))},
		{ID: "intent-method-burn", Level: Should, Section: "2.5",
			Fix:   "Accept burn as well as burn-permit: the field's description has both.",
			Title: "Method burn is a burn.",
			run:   takes(burn, success, 1, set("intent.method", "burn"))},
		{ID: "intent-small-erc20", Level: Should, Section: "2.5",
			Fix:   "Ignore case when you compare token types: older messages write erc20.",
			Title: "A mint to erc20 in lower case is approved.",
			run:   takes(mint, success, -1, set("intent.to.0.type", "erc20"))},
		{ID: "intent-unknown-asset", Level: Must, Section: "2.5",
			Fix:   "Treat an unknown asset as one that the player does not own.",
			Title: "A mint of an asset that the game does not have is declined.",
			run:   declines(mint, set("intent.from.0.id", "item_of_nobody"))},
		{ID: "intent-burn-unknown-asset", Level: Should, Section: "2.5",
			Fix:   "Approve a burn only when its assets can be granted later.",
			Title: "A burn to an asset that the game does not have is declined.",
			run:   declines(burn, set("intent.to.0.id", "item_of_nobody"))},
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
				o := t.mint().bent(t.of(t.times(3)), set("intent.from", list{
					entry("asset", t.asset, t.times(1)), entry("asset", t.asset, t.times(2))}))
				if t.either(t.validate(o)) {
					t.confirm(o, success)
					t.moved(-3)
					return
				}
				t.moved(0)
			}},
		{ID: "intent-asset-twice-back", Level: Must, Section: "3",
			Fix:   "Give back the sum of what was taken, by asset.",
			Title: "A failed mint that listed an asset twice gives all of it back.",
			run: func(t *trial) {
				o := t.mint().bent(t.of(t.times(3)), set("intent.from", list{
					entry("asset", t.asset, t.times(1)), entry("asset", t.asset, t.times(2))}))
				if t.either(t.validate(o)) {
					t.confirm(o, failure)
				}
				t.moved(0)
			}},
		{ID: "intent-burn-asset-twice", Level: Must, Section: "2.5",
			Fix:   "Add up the entries of an intent by asset before you grant them.",
			Title: "A burn that lists an asset twice grants the sum, or is declined.",
			run: func(t *trial) {
				o := t.burn().bent(t.of(t.times(3)), set("intent.to", list{
					entry("asset", t.asset, t.times(1)), entry("asset", t.asset, t.times(2))}))
				if t.either(t.validate(o)) {
					t.confirm(o, success)
					t.moved(3)
					return
				}
				t.moved(0)
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
				by := big.NewRat(moved*t.target.Amount, 1)
				t.movedSince(t.before, difference{t.asset: by, t.second: by})
			}},
	}
	return cases
}
