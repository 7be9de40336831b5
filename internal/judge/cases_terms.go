package judge

import (
	"maps"
	"math/big"
	"slices"
)

// foreignToken is a token contract that no game trades.
const foreignToken = "0x000000000000000000000000000000000000dead"

// termsCases returns the cases about what the game sells: the token contract that the
// target names, and the one rate at which it is traded (interface 2.5, 4.3). Without
// them, a worthless token buys assets, and assets cost nothing.
func termsCases() []Case {
	listedTwice := func(o object) object {
		return o.with("intent.to",
			list{o.at("intent.to.0"), o.at("intent.to.0")})
	}
	return []Case{
		{ID: "terms-token", early: true, needs: aToken,
			Fix:   "Compare the token of an order with the contract of your game, for mints and for burns.",
			Title: "An order for another token contract than that of -token is rejected.",
			Inputs: slices.Concat(
				rows[edit]{Must: {{"mint", "a mint to it",
					set("intent.to.0.id", foreignToken)}}}.inputs(rejectedMint),
				rows[edit]{Must: {{"burn", "a burn of it",
					set("intent.from.0.id", foreignToken)}}}.inputs(rejectedBurn))},
		{ID: "terms-rate", early: true, needs: aRate,
			Fix: "Compare what an order takes and gives with your game's rate, for mints and for burns.",
			Title: "An order at another rate than that of -amount and -tokens is rejected; this assumes " +
				"that the game has one fixed rate.",
			Inputs: slices.Concat(rows[edit]{Must: {
				{"mint-double", "a mint to twice the tokens", multiplied(toAmount, 2)},
				{"mint-outputs-twice", "a mint that lists its tokens twice", listedTwice},
				{"mint-one-token-more", "a mint to one more of the tokens", increased(toAmount, "1")},
				{"mint-tokens-2-32",
					"a mint to 2^32 more of the tokens, which is the right number in 32 bits",
					increased(toAmount, power(32, 0))},
				{"mint-tokens-2-64",
					"a mint to 2^64 more of the tokens, which is the right number in 64 bits",
					increased(toAmount, power(64, 0))},
				{"mint-tokens-2-256",
					"a mint to 2^256 more of the tokens, which is the right number in 256 bits",
					increased(toAmount, power(256, 0))},
				{"mint-tokens-smallest-unit",
					"a mint to 10^18 times the tokens, as if they were counted in their smallest unit",
					multiplied(toAmount, 1e18)},
				{"mint-half", "a mint for half the price", halfPrice},
			}}.inputs(rejectedMint), rows[edit]{Must: {
				{"burn-outputs-twice", "a burn that lists its asset twice", listedTwice},
				{"burn-double", "a burn to twice the asset", multiplied(toAmount, 2)},
				{"burn-half", "a burn of half the tokens", halfPrice},
				{"burn-one-token-less", "a burn to twice the asset, of one less than twice the tokens",
					edits(multiplied(fromAmount, 2), increased(fromAmount, "-1"), multiplied(toAmount, 2))},
				{"burn-one-more", "a burn to one more of the asset", increased(toAmount, "1")},
				{"burn-nothing-more", "a burn to an asset that the game does not have as well",
					alsoTo("item_of_nobody")},
			}}.inputs(rejectedBurn), []Input{
				must("burn-item-more", "a burn to another asset as well", func(t *trial) {
					for _, id := range slices.Sorted(maps.Keys(t.before.assets)) {
						if id != t.asset && !t.server.drifts(id) {
							rejectedBurn(t, alsoTo(id))
						}
					}
				}),
				must("mint-one-less", "a mint for one less of the asset", func(t *trial) {
					if t.Amount == 1 {
						t.skip("an order moves only one of the asset (-amount)")
					}
					rejectedMint(t, increased(fromAmount, "-1"))
				}),
			})},
	}
}

// increased adds to an amount.
func increased(path, by string) edit {
	return func(o object) object {
		return o.with(path, raw(show(plus(rat(literal(o.at(path))), rat(by)))))
	}
}

// halfPrice makes an order whose price is half of what it should be.
func halfPrice(o object) object {
	if half := product(rat(literal(o.at(fromAmount))), big.NewRat(1, 2)); half.IsInt() {
		return o.with(fromAmount, raw(show(half)))
	}
	return o.bent(multiplied(fromAmount, 2), multiplied(toAmount, 4))
}

// alsoTo adds one of another asset to a burn.
func alsoTo(id string) edit {
	return func(o object) object {
		return o.with("intent.to", list{o.at("intent.to.0"), entry("asset", id, number(1))})
	}
}
