package conformance

import (
	"encoding/json"
	"math/big"
	"slices"
)

// intentCases returns the cases about the content of an intent (interface 2.5).
func intentCases() []Case {
	const (
		pair  = "Derive mint or burn from method and type together, and reject a pair that is neither."
		sides = "Let a mint go from assets to a token, and a burn from a token to assets; reject the rest."
	)
	as := func(moved int64) func(*trial, edit) {
		return func(t *trial, e edit) { t.rejectsOrEnds(t.mint().bent(e), success, t.amounts(moved)) }
	}
	mixed := slices.Concat(rows[edit]{
		{"mint-disassemble", "method mint with type disassemble", Must, set("intent.type", "disassemble")},
		{"mint-as-burn", "method burn-permit with the sides of a mint", Must, func(o object) object {
			return o.with("intent.method", "burn-permit").with("intent.type", "disassemble")
		}},
		{"unknown-method", "an unknown method", Must, set("intent.method", "steal")},
		{"unknown-type", "an unknown type", Must, set("intent.type", "reassemble")},
	}.inputs(as(-1), "mint-succeeds"), rows[edit]{
		{"burn-assemble", "method burn-permit with type assemble", Must, set("intent.type", "assemble")},
	}.inputs(func(t *trial, e edit) { t.rejectsOrEnds(t.burn().bent(e), success, t.amounts(1)) }, "burn-succeeds"))
	wrongSides := slices.Concat(rows[edit]{
		{"mint-from-token", "a mint from a token", Must, set("intent.from.0.type", "ERC20")},
	}.inputs(as(-1), "mint-succeeds"), rows[edit]{
		{"mint-to-asset", "a mint to an asset of the game", Should, func(o object) object {
			return o.with("intent.to.0.id", "item_of_nobody").with("intent.to.0.type", "asset")
		}},
	}.inputs(func(t *trial, e edit) { t.rejects(t.mint().bent(e)) }), rows[edit]{
		{"burn-from-asset", "a burn from an asset of the game", Should, set("intent.from.0.type", "asset")},
		{"burn-to-token", "a burn to a token", Should, set("intent.to.0.type", "ERC20")},
	}.inputs(func(t *trial, e edit) { t.rejects(t.burn().bent(e)) }))
	short := []Input{
		must("unknown", "a second asset that the game does not have", func(t *trial) {
			t.takesBothOrNone("item_of_nobody", t.times(1))
		}, "balance"),
		must("too-much", "more of a second asset than the player owns", func(t *trial) {
			t.spendSecond()
			t.takesBothOrNone(t.second, t.multiple(t.before.of(t.second), 1))
		}, "balance").with(aSecondAsset),
		must("alone", "only the second asset, of which the player owns less than of the first", func(t *trial) {
			t.spendSecond()
			t.rejected(t.validate(t.mintOfSecond(t.multiple(t.before.of(t.second), 1))))
			t.moved(0)
		}, "balance").with(aSecondAsset),
	}
	return []Case{
		{ID: "intent-mixed", Section: "2.5", Fix: pair, Inputs: mixed,
			Title: "An order whose method and type are not those of one direction is rejected, or moves what it would move in one direction."},
		{ID: "intent-sides", Section: "2.5", Fix: sides, Inputs: wrongSides,
			Title: "An order between assets or between tokens is rejected, or takes what a mint takes."},
		{ID: "intent-older-words", Section: "2.5",
			Fix:   "Accept burn as well as burn-permit, and ignore case when you compare token types: the field's description has both methods, and older messages write erc20.",
			Title: "An order with method burn or type erc20 is approved.",
			Inputs: []Input{
				{Name: "burn", Title: "a burn with method burn", Level: Should, after: []string{"burn-succeeds"}, run: func(t *trial) {
					t.ends(t.burn().bent(set("intent.method", "burn")), success, 1)
				}},
				{Name: "erc20", Title: "a mint to erc20 in lower case", Level: Should, run: func(t *trial) {
					t.ends(t.mint().bent(set("intent.to.0.type", "erc20")), success, -1)
				}},
			}},
		{ID: "intent-unknown-asset", after: []string{"balance"}, early: true, Section: "2.5",
			Fix:    "Treat an unknown asset as one that the player does not own, even if the language knows its ID, as JavaScript knows constructor in every object.",
			Title:  "A mint of an asset that the game does not have is rejected.",
			Inputs: nobodys(Must, func(t *trial, e edit) { t.rejects(t.mint().bent(e)) })},
		{ID: "intent-burn-unknown-asset", Section: "2.5",
			Fix:    "Approve a burn only when its assets can be granted later.",
			Title:  "A burn to an asset that the game does not have is rejected.",
			Inputs: nobodys(Should, func(t *trial, e edit) { t.rejects(t.burn().bent(e)) })},
		{ID: "intent-second-short", Section: "2.5", Inputs: short,
			Fix:   "Compare each asset of an order with its own balance, reject an asset that the game does not trade, and take all assets in one transaction, or none.",
			Title: "A mint whose second asset the player lacks is rejected and takes nothing of the first."},
		{ID: "intent-asset-twice", Section: "2.5", Inputs: []Input{
			must("mint", "in a mint that succeeds", func(t *trial) {
				t.rejectsOrEnds(t.mint().bent(t.listedTwice("intent.from")), success, t.amounts(-3))
			}, "mint-succeeds"),
			must("mint-back", "in a mint that fails", func(t *trial) {
				t.rejectsOrEnds(t.mint().bent(t.listedTwice("intent.from")), failure, t.amounts(0))
			}, "mint-fails"),
			must("burn", "in a burn that succeeds", func(t *trial) {
				t.rejectsOrEnds(t.burn().bent(t.listedTwice("intent.to")), success, t.amounts(3))
			}, "burn-succeeds"),
		},
			Fix:   "Add up the entries of an intent by asset before you check, take, give back or grant them.",
			Title: "An order that lists an asset twice moves the sum, or is rejected."},
		{ID: "intent-sum-too-much", after: []string{"balance"}, Section: "2.5",
			Fix:   "Compare the sum of an asset's entries with the balance, not each of them, and add them up in a type in which no sum wraps around.",
			Title: "A mint whose entries of one asset add up to more than the player owns is rejected.",
			Inputs: rows[func(*trial) json.Number]{
				{"most", "two entries of most that the player owns", Must, (*trial).most},
				{"2-31", "two entries of 2^31 - 1, whose sum is negative in 32 bits", Must,
					func(t *trial) json.Number { return t.multiple(rat("2147483647"), 0) }},
				{"2-62", "two entries of 2^62, whose sum is negative in 64 bits", Must,
					func(t *trial) json.Number { return t.multiple(rat(power(62, 0)), 1) }},
				{"2-63", "two entries of 2^63 - 1, whose sum is negative in 64 bits", Must,
					func(t *trial) json.Number { return t.multiple(rat(power(63, -1)), 0) }},
			}.inputs(func(t *trial, of func(*trial) json.Number) {
				one := entry("asset", t.asset, of(t))
				t.rejected(t.validate(t.mint().bent(t.of(twice(of(t))), set("intent.from", list{one, one}))))
				t.moved(0)
			})},
		{ID: "intent-two-assets", after: []string{"mint-succeeds", "mint-fails"}, Section: "2.5", needs: aSecondAsset,
			Fix:   "Take every entry of intent.from, and give every one back.",
			Title: "A mint of two assets takes both, and gives both back when it fails; or it is rejected.",
			run: func(t *trial) {
				both := func() order {
					return t.mint().bent(t.of(t.times(2)), set("intent.from", two(t.asset, t.times(1), t.second, t.times(1))))
				}
				o, moved := both(), int64(0)
				if t.either(t.validate(o)) {
					t.confirm(o, success)
					moved = -1
				}
				t.movedSince(t.before, difference{t.asset: t.amounts(moved), t.second: t.amounts(moved)})
				if moved != 0 {
					t.renew()
					t.confirm(t.approve(both()), failure)
					t.movedSince(t.before, nil)
				}
			}},
	}
}

// nobodys returns an input for each asset that no game has.
func nobodys(level Level, run func(*trial, edit)) []Input {
	return rows[edit]{
		{"unknown", "that nobody owns", level, ofNobody},
		{"constructor", "whose ID is constructor", level, ofAsset("constructor")},
	}.inputs(run)
}

// takesBothOrNone requires that a mint of two assets, of which the player lacks the second,
// is rejected and takes nothing.
func (t *trial) takesBothOrNone(second string, amount json.Number) {
	sum := new(big.Rat).Add(t.amounts(1), rat(amount.String()))
	t.rejected(t.validate(t.mint().bent(t.of(raw(show(sum))), set("intent.from", two(t.asset, t.times(1), second, amount)))))
	t.moved(0)
}

// mintOfSecond returns a mint of the second asset.
func (t *trial) mintOfSecond(amount json.Number) order {
	return t.mint().bent(t.of(amount), set("intent.from.0.id", t.second))
}

// spendSecond leaves the player less of the second asset than of the first, but enough for
// other cases. It changes nothing if the game does not mint the second asset, or not at the
// rate of the first.
func (t *trial) spendSecond() {
	left := new(big.Rat).Mul(t.before.of(t.asset), big.NewRat(2, 5))
	if enough := t.amounts(20); left.Cmp(enough) < 0 {
		left = enough
	}
	spent := t.multiple(left.Sub(t.before.of(t.second), left), 0)
	if rat(spent.String()).Sign() <= 0 {
		return
	}
	if o := t.mintOfSecond(spent); t.either(t.validate(o)) {
		t.tell(o, success)
		t.before = t.now()
	}
}

// listedTwice returns an edit to an order of 3 amounts of the asset, in two entries.
func (t *trial) listedTwice(side string) edit {
	of, entries := t.of(t.times(3)), two(t.asset, t.times(1), t.asset, t.times(2))
	return func(o object) object { return of(o).with(side, entries) }
}
