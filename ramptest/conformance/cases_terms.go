package conformance

import (
	"maps"
	"math/big"
	"slices"
	"strings"
)

// foreignToken is a token contract that no game trades.
const foreignToken = "0x000000000000000000000000000000000000dead"

// termsCases returns the cases about what the game sells: the token contract that the
// target names, and the one rate at which it is traded (interface 2.5, 4.3). Without
// them, a worthless token buys assets, and assets cost nothing.
func termsCases() []Case {
	const (
		contract = "Compare the token of an order with the contract of your game, for mints and for burns."
		price    = "Compare what an order takes and gives with your game's rate, for mints and for burns."
		asset    = "intent.from.0.amount"
		token    = "intent.to.0.amount"
	)
	mint := func(t *trial, e edit) { t.rejects(t.mint().bent(e)) }
	burn := func(t *trial, e edit) { t.rejects(t.burn().bent(e)) }
	// half makes an order whose price is half of what it should be.
	half := func(o order, price string, whole int64, goods string, other int64) order {
		if whole%2 == 0 {
			return o.bent(set(price, number(whole/2)))
		}
		return o.bent(set(goods, number(4*other)), set(price, number(2*whole)))
	}
	listedTwice := func(o object) object { return o.with("intent.to", list{o.at("intent.to.0"), o.at("intent.to.0")}) }
	// more asks for more tokens than the mint is worth.
	more := func(t *trial, by string) edit {
		return set(token, raw(show(new(big.Rat).Add(rat(by), big.NewRat(t.Tokens, 1)))))
	}
	return []Case{
		{ID: "terms-token", early: true, Section: "2.5", Fix: contract, needs: aToken,
			Title: "An order for another token contract than that of -token is rejected.",
			Inputs: []Input{
				must("mint", "a mint to it", func(t *trial) { mint(t, set("intent.to.0.id", foreignToken)) }),
				must("burn", "a burn of it", func(t *trial) { burn(t, set("intent.from.0.id", foreignToken)) }),
			}},
		{ID: "terms-rate", early: true, Section: "2.5", Fix: price, needs: aRate,
			Title: "An order at another rate than that of -amount and -tokens is rejected; this assumes that the game has one fixed rate.",
			Inputs: []Input{
				must("mint-double", "a mint to twice the tokens", func(t *trial) { mint(t, set(token, number(2*t.Tokens))) }),
				must("mint-outputs-twice", "a mint that lists its tokens twice", func(t *trial) { mint(t, listedTwice) }),
				must("burn-outputs-twice", "a burn that lists its asset twice", func(t *trial) { burn(t, listedTwice) }),
				must("mint-one-token-more", "a mint to one more of the tokens", func(t *trial) { mint(t, set(token, number(t.Tokens+1))) }),
				must("mint-tokens-2-32", "a mint to 2^32 more of the tokens, which is the right number in 32 bits", func(t *trial) { mint(t, more(t, power(32, 0))) }),
				must("mint-tokens-2-64", "a mint to 2^64 more of the tokens, which is the right number in 64 bits", func(t *trial) { mint(t, more(t, power(64, 0))) }),
				must("mint-tokens-2-256", "a mint to 2^256 more of the tokens, which is the right number in 256 bits", func(t *trial) { mint(t, more(t, power(256, 0))) }),
				must("mint-tokens-smallest-unit", "a mint to 10^18 times the tokens, as if they were counted in their smallest unit", func(t *trial) {
					mint(t, set(token, raw(number(t.Tokens).String()+strings.Repeat("0", 18))))
				}),
				must("mint-half", "a mint for half the price", func(t *trial) {
					t.rejects(half(t.mint(), asset, t.Amount, token, t.Tokens))
				}),
				must("burn-double", "a burn to twice the asset", func(t *trial) { burn(t, set(token, t.times(2))) }),
				must("burn-half", "a burn of half the tokens", func(t *trial) {
					t.rejects(half(t.burn(), asset, t.BurnTokens, token, t.Amount))
				}),
				must("burn-one-token-less", "a burn to twice the asset, of one less than twice the tokens", func(t *trial) {
					t.rejects(t.burn().bent(set(asset, number(2*t.BurnTokens-1)), set(token, t.times(2))))
				}),
				must("burn-one-more", "a burn to one more of the asset", func(t *trial) { burn(t, set(token, number(t.Amount+1))) }),
				must("burn-item-more", "a burn to another asset as well", func(t *trial) {
					for _, id := range slices.Sorted(maps.Keys(t.before.assets)) {
						if id != t.asset && !t.judge.drifts(id) {
							burn(t, set("intent.to", two(t.asset, t.times(1), id, number(1))))
						}
					}
				}),
				must("burn-nothing-more", "a burn to an asset that the game does not have as well", func(t *trial) {
					burn(t, set("intent.to", two(t.asset, t.times(1), "item_of_nobody", number(1))))
				}),
				must("mint-one-less", "a mint for one less of the asset", func(t *trial) {
					if t.Amount == 1 {
						t.skip("an order moves only one of the asset (-amount)")
					}
					mint(t, set(asset, number(t.Amount-1)))
				}),
			}},
	}
}
