package judge

import (
	"encoding/json"
	"math/big"
	"slices"
)

// intentCases returns the cases about the content of an intent (interface 2.5).
func intentCases() []Case {
	// An order may be taken for what its method, its type or its sides say.
	as := func(e ending, all rows[edit]) []Input {
		return all.inputs(func(t *trial, change edit) {
			o := e.order(t)
			t.rejectsOrMoves(o.bent(change), success, o.effect(success))
		}, e.ability)
	}
	mixed := slices.Concat(as(mintEnds, rows[edit]{Must: {
		{"mint-disassemble", "method mint with type disassemble", set("intent.type", "disassemble")},
		{"mint-as-burn", "method burn-permit with the sides of a mint",
			edits(set("intent.method", "burn-permit"), set("intent.type", "disassemble"))},
		{"unknown-method", "an unknown method", set("intent.method", "steal")},
		{"unknown-type", "an unknown type", set("intent.type", "reassemble")},
	}}), as(burnEnds, rows[edit]{Must: {
		{"burn-assemble", "method burn-permit with type assemble", set("intent.type", "assemble")},
	}}))
	wrongSides := slices.Concat(as(mintEnds, rows[edit]{Must: {
		{"mint-from-token", "a mint from a token", set("intent.from.0.type", "ERC20")},
	}}), rows[edit]{Should: {
		{"mint-to-asset", "a mint to an asset of the game",
			edits(set("intent.to.0.id", "item_of_nobody"), set("intent.to.0.type", "asset"))},
	}}.inputs(rejectedMint), rows[edit]{Should: {
		{"burn-from-asset", "a burn from an asset of the game", set("intent.from.0.type", "asset")},
		{"burn-to-token", "a burn to a token", set("intent.to.0.type", "ERC20")},
	}}.inputs(rejectedBurn))
	short := []Input{
		must("unknown", "a second asset that the game does not have", func(t *trial) {
			t.takesBothOrNone("item_of_nobody", t.times(1))
		}, "balance"),
		must("too-much", "more of a second asset than the player owns", func(t *trial) {
			t.spendSecond()
			t.takesBothOrNone(t.second, t.multiple(t.before.of(t.second), 1))
		}, "balance").with(aListedAsset),
		must("alone", "only the second asset, of which the player owns less than of the first",
			func(t *trial) {
				t.spendSecond()
				t.rejected(t.validate(t.mintOfSecond(t.multiple(t.before.of(t.second), 1))))
				t.moved(0)
			}, "balance").with(aListedAsset),
	}
	return []Case{
		{ID: "intent-mixed", Inputs: mixed,
			Fix: "Derive mint or burn from method and type together, and reject a pair that is neither.",
			Title: "An order whose method and type are not those of one direction is rejected, or moves " +
				"what it would move in one direction."},
		{ID: "intent-sides", Inputs: wrongSides,
			Fix: "Let a mint go from assets to a token, and a burn from a token to assets; reject " +
				"the rest.",
			Title: "An order between assets or between tokens is rejected, or takes what a mint takes."},
		{ID: "intent-older-words",
			Fix: "Accept burn as well as burn-permit, and ignore case when you compare token types: the " +
				"field's description has both methods, and older messages write erc20.",
			Title: "An order with method burn or type erc20 is approved.",
			Inputs: []Input{
				should("burn", "a burn with method burn",
					func(t *trial) { t.ends(t.burn(set("intent.method", "burn")), success) },
					"burn-succeeds"),
				should("erc20", "a mint to erc20 in lower case",
					func(t *trial) { t.ends(t.mint(set("intent.to.0.type", "erc20")), success) }),
			}},
		{ID: "intent-unknown-asset", after: []string{"balance"}, early: true,
			Fix: "Treat an unknown asset as one that the player does not own, even if the language " +
				"knows its ID, as JavaScript knows constructor in every object.",
			Title:  "A mint of an asset that the game does not have is rejected.",
			Inputs: rows[edit]{Must: nobodys}.inputs(rejectedMint)},
		{ID: "intent-burn-unknown-asset",
			Fix:    "Approve a burn only when its assets can be granted later.",
			Title:  "A burn to an asset that the game does not have is rejected.",
			Inputs: rows[edit]{Should: nobodys}.inputs(rejectedBurn)},
		{ID: "intent-second-short", Inputs: short,
			Fix: "Compare each asset of an order with its own balance, reject an asset that the game " +
				"does not trade, and take all assets in one transaction, or none.",
			Title: "A mint whose second asset the player lacks is rejected and takes nothing of the first."},
		{ID: "intent-asset-twice", Inputs: []Input{
			must("mint", "in a mint that succeeds", mintEnds.listsTwice, "mint-succeeds"),
			must("mint-back", "in a mint that fails", mintFails.listsTwice, "mint-fails"),
			must("burn", "in a burn that succeeds", burnEnds.listsTwice, "burn-succeeds"),
		},
			Fix: "Add up the entries of an intent by asset before you check, take, give back or " +
				"grant them.",
			Title: "An order that lists an asset twice moves the sum, or is rejected."},
		{ID: "intent-sum-too-much", after: []string{"balance"},
			Fix: "Compare the sum of an asset's entries with the balance, not each of them, and add " +
				"them up in a type in which no sum wraps around.",
			Title: "A mint whose entries of one asset add up to more than the player owns is rejected.",
			Inputs: rows[func(*trial) json.Number]{Must: {
				{"most", "two entries of most that the player owns", (*trial).most},
				{"2-31", "two entries of 2^31 - 1, whose sum is negative in 32 bits",
					func(t *trial) json.Number { return t.multiple(rat("2147483647"), 0) }},
				{"2-62", "two entries of 2^62, whose sum is negative in 64 bits",
					func(t *trial) json.Number { return t.multiple(rat(power(62, 0)), 1) }},
				{"2-63", "two entries of 2^63 - 1, whose sum is negative in 64 bits",
					func(t *trial) json.Number { return t.multiple(rat(power(63, -1)), 0) }},
			}}.inputs(func(t *trial, of func(*trial) json.Number) {
				one := entry("asset", t.asset, of(t))
				t.rejected(t.validate(t.mint(t.of(scaled(of(t), 2)), set("intent.from", list{one, one}))))
				t.moved(0)
			})},
		{ID: "intent-two-assets", after: []string{"mint-succeeds", "mint-fails"}, needs: aSecondAsset,
			Fix:   "Take every entry of intent.from, and give every one back.",
			Title: "A mint of two assets takes both, and gives both back when it fails; or it is rejected.",
			run: func(t *trial) {
				both := func() order {
					return t.mint(t.of(t.times(2)),
						set("intent.from", two(t.asset, t.times(1), t.second, t.times(1))))
				}
				o := both()
				t.rejectsOr(o, func() {
					t.closes(o, success)
					t.renew()
					t.ends(both(), failure)
				})
			}},
	}
}

// nobodys are orders about assets that no game has.
var nobodys = []row[edit]{
	{"unknown", "that nobody owns", ofNobody},
	{"constructor", "whose ID is constructor", ofAsset("constructor")},
}

// takesBothOrNone requires that a mint of two assets, of which the player lacks the second,
// is rejected and takes nothing.
func (t *trial) takesBothOrNone(second string, amount json.Number) {
	sum := plus(t.amounts(1), rat(amount.String()))
	t.rejected(t.validate(t.mint(t.of(raw(show(sum))),
		set("intent.from", two(t.asset, t.times(1), second, amount)))))
	t.moved(0)
}

// mintOfSecond returns a mint of the second asset.
func (t *trial) mintOfSecond(amount json.Number) order {
	return t.mint(t.of(amount), set("intent.from.0.id", t.second))
}

// spendSecond leaves the player less of the second asset than of the first, but enough for
// other cases. It changes nothing if the game does not mint the second asset, or not at the
// rate of the first.
func (t *trial) spendSecond() {
	left := product(t.before.of(t.asset), big.NewRat(2, 5))
	if enough := t.amounts(reserve); left.Cmp(enough) < 0 {
		left = enough
	}
	spent := t.multiple(left.Sub(t.before.of(t.second), left), 0)
	if rat(spent.String()).Sign() <= 0 {
		return
	}
	if o := t.mintOfSecond(spent); t.offer(o) {
		t.tell(o, success)
		t.before = t.now()
	}
}

// listsTwice requires that an order of 3 amounts of the asset, in two entries, is rejected or
// ends as it must.
func (e ending) listsTwice(t *trial) {
	o := e.order(t)
	assets, _ := o.body.sides()
	t.rejectsOrEnds(o.bent(t.of(t.times(3)),
		set(assets, two(t.asset, t.times(1), t.asset, t.times(2)))), e.status)
}
