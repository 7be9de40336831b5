package conformance

import (
	"math/big"
	"slices"
	"strings"
)

// amountCases returns the cases about quantities, which the game must check (interface 2.5,
// 4.3). Some are far above every balance, but look affordable once they are rounded or wrap
// around in 32 or 64 bits.
func amountCases() []Case {
	const (
		from  = "intent.from.0.amount"
		to    = "intent.to.0.amount"
		above = "Refuse amounts that are missing or below 0 on both sides of an intent, and preferably 0 too."
		exact = "Parse the text of the JSON number into an exact type, and compare that with the balance; do not use float64, and do not truncate to 32 or 64 bits."
		bound = "Limit the digits and the exponent of a number before you compute with it."
		typed = "Accept a JSON number as an amount and nothing else."
	)
	declined := func(fix string) want[edit] {
		return want[edit]{"mint-amount-%s", "A mint %s is declined.", "2.5", fix,
			func(t *trial, e edit) { t.declines(t.mint().bent(e)) }}
	}
	paid := func(fix string) want[edit] {
		return want[edit]{"mint-amount-%s", "A mint %s is declined, or takes something.", "2.5", fix,
			func(t *trial, e edit) { t.declinesOrTakes(t.mint().bent(e)) }}
	}
	burnDeclined := func(fix string) want[edit] {
		return want[edit]{"burn-amount-%s", "A burn %s is declined.", "2.5", fix,
			func(t *trial, e edit) { t.declines(t.burn().bent(e)) }}
	}
	tooMuch := func(fix string) want[string] {
		return want[string]{"mint-amount-%s", "A mint of %s is declined.", "2.5", fix, func(t *trial, amount string) {
			t.refused(t.validate(t.mint().bent(t.of(t.beyond(amount)))))
			t.moved(0)
		}}
	}
	return slices.Concat(
		rows[edit]{
			{"negative", "of a negative amount", Must, set(from, number(-2))},
			{"minus-one", "of -1", Must, set(from, number(-1))},
			{"minus-half", "of -0.5", Must, set(from, raw("-0.5"))},
			{"missing", "without an amount", Must, drop(from)},
			{"null", "whose amount is null", Must, set(from, nil)},
			{"tokens-negative", "to a negative amount of tokens", Must, set(to, number(-1))},
			{"tokens-zero", "to 0 tokens", Should, set(to, number(0))},
			{"tokens-missing", "to tokens without an amount", Should, drop(to)},
		}.cases(declined(above)),
		rows[edit]{
			{"zero", "of 0", Must, set(from, number(0))},
			{"minus-zero", "of -0", Must, set(from, raw("-0"))},
			{"zero-point", "of 0.0", Must, set(from, raw("0.0"))},
			{"zero-exponent", "of 0e9", Must, set(from, raw("0e9"))},
		}.cases(paid(above)),
		rows[edit]{
			{"text", "whose amount is a string", Must, set(from, "2")},
			{"boolean", "whose amount is true", Must, set(from, true)},
			{"list", "whose amount is a list", Must, set(from, list{number(2)})},
			{"object", "whose amount is an object", Must, set(from, object{})},
		}.cases(paid(typed)),
		rows[edit]{{"tiny-bomb", "of 1e-999999999", Must, set(from, raw("1e-999999999"))}}.cases(paid(bound)),
		rows[edit]{
			{"negative", "to a negative amount", Must, set(to, number(-2))},
			{"zero", "to an amount of 0", Should, set(to, number(0))},
			{"missing", "to an asset without an amount", Must, drop(to)},
			{"null", "to an amount of null", Must, set(to, nil)},
		}.cases(burnDeclined(above)),
		rows[edit]{{"text", "to an amount that is a string", Should, set(to, "2")}}.cases(burnDeclined(typed)),
		rows[edit]{{"tokens-negative", "of a negative amount of tokens", Must, set(from, number(-1))}}.cases(burnDeclined(above)),
		rows[edit]{{"bomb", "to 1e999999999", Should, set(to, raw("1e999999999"))}}.cases(burnDeclined(bound)),
		// Quantities above every balance.
		rows[string]{
			{"2-31", "2^31", Must, "2147483648"},
			{"2-32", "2^32, which is 0 in 32 bits,", Must, "4294967296"},
			{"2-32-more", "2^32 + 2, which is 2 in 32 bits,", Must, "4294967298"},
			{"2-53", "2^53 + 1", Must, "9007199254740993"},
			{"2-63", "2^63, which is negative in 64 bits,", Must, "9223372036854775808"},
			{"2-64", "2^64, which is 0 in 64 bits,", Must, "18446744073709551616"},
			{"2-64-more", "2^64 + 2, which is 2 in 64 bits,", Must, "18446744073709551618"},
			{"10-30", "10^30", Must, "1" + strings.Repeat("0", 30)},
			{"1e30", "1e30", Must, "1e30"},
			{"2-256-more", "2^256 + 2, which is 2 in 256 bits,", Must,
				"115792089237316195423570985008687907853269984665640564039457584007913129639938"},
		}.cases(tooMuch(exact)),
		rows[string]{
			{"1e400", "1e400, which is infinite as a float64,", Must, "1e400"},
			{"bomb", "1e999999999", Must, "1e999999999"},
			{"exponent-overflow", "1e18446744073709551616, whose exponent is 0 in 64 bits,", Must, "1e18446744073709551616"},
			{"digits", "a number of 50,000 digits", Must, strings.Repeat("9", 50_000)},
		}.cases(tooMuch(bound)),
		// Quantities that a game may take or refuse, but not round.
		rows[string]{
			{"half", "0.5", Must, "0.5"},
			{"more-than-one", "1.999999999999999999", Must, "1.999999999999999999"},
			{"tiny", "0.000000000000000001", Must, "0.000000000000000001"},
			{"point", "2.0", Must, "2.0"},
			{"exponent", "2e0", Must, "2e0"},
			{"exponent-minus", "20E-1", Must, "20E-1"},
		}.cases(
			want[string]{"mint-amount-%s", "A mint of %s takes exactly that, or is declined.", "2.5", exact, func(t *trial, amount string) {
				t.declinesOrEnds(t.mint().bent(t.of(raw(amount))), success, new(big.Rat).Neg(rat(amount)))
			}},
			want[string]{"mint-amount-%s-back", "A failed mint of %s gives exactly that back.", "3", exact, func(t *trial, amount string) {
				t.declinesOrEnds(t.mint().bent(t.of(raw(amount))), failure, new(big.Rat))
			}},
			want[string]{"burn-amount-%s", "A burn to %s grants exactly that, or is declined.", "2.5", exact, func(t *trial, amount string) {
				t.declinesOrEnds(t.burn().bent(t.of(raw(amount))), success, rat(amount))
			}}),
		[]Case{
			{ID: "mint-amount-one-more", Level: Must, Section: "2.5",
				Fix:   "Decline a mint of more than the player owns.",
				Title: "A mint of a little more than the player owns is declined.",
				run: func(t *trial) {
					t.refused(t.validate(t.mint().bent(t.of(t.oneMore()))))
					t.moved(0)
				}},
			{ID: "mint-amount-netted", Level: Must, Section: "2.5", Fix: above,
				Title: "A negative entry beside a positive one of the same asset is declined.",
				run: func(t *trial) {
					t.refused(t.validate(t.mint().bent(set("intent.from", list{
						entry("asset", t.asset, t.times(2)), entry("asset", t.asset, t.times(-1))}))))
					t.moved(0)
				}},
			{ID: "burn-amount-tokens-zero", Level: Must, Section: "2.5", Fix: above,
				Title: "A burn of 0 tokens is declined, or grants nothing.",
				run:   func(t *trial) { t.declinesOrMoves(t.burn().bent(set(from, number(0))), 0) }},
		})
}

func rat(text string) *big.Rat {
	r, _ := new(big.Rat).SetString(text)
	return r
}
