package judge

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"
)

// amountCases returns the cases about quantities, which the game must check (interface 2.5,
// 4.3). Some are far above every balance, but look affordable once they are rounded or wrap
// around in 32 or 64 bits.
func amountCases() []Case {
	const (
		from  = fromAmount
		to    = toAmount
		above = "Reject amounts that are missing or below 0 on both sides of an intent, and preferably 0 too."
		exact = "Parse the text of the JSON number into an exact type, and compare that with the balance; " +
			"do not use float64, and do not truncate to 32 or 64 bits."
		bound = "Limit the digits and the exponent of a number before you compute with it."
		typed = "Accept a JSON number as an amount and nothing else."
	)
	paid := func(t *trial, e edit) {
		o := t.mint(e)
		t.rejectsOr(o, func() { t.paid(o) })
	}
	tooMuch := func(t *trial, amount string) {
		t.unsigned(t.validate(t.mint(t.of(t.beyond(amount)))))
		t.moved(0)
	}
	// Multiples of a whole order keep the rate, so that a game that checks it must see that
	// they are too much.
	wraps := func(t *trial, orders string) { tooMuch(t, show(product(rat(orders), t.amounts(1)))) }
	return []Case{
		{ID: "mint-amount", Fix: above + " " + typed,
			Title: "A mint whose amount is missing or below 0 is rejected, and one whose amount is 0 or " +
				"no JSON number is rejected or takes something.",
			Inputs: slices.Concat(rows[edit]{Must: {
				{"negative", "of a negative amount", set(from, number(-2))},
				{"minus-one", "of -1", set(from, number(-1))},
				{"minus-half", "of -0.5", set(from, raw("-0.5"))},
				{"missing", "without an amount", drop(from)},
				{"null", "whose amount is null", set(from, nil)},
				{"tokens-negative", "to a negative amount of tokens", set(to, number(-1))},
				{"netted", "with a negative entry beside a positive one of the same asset",
					func(o object) object {
						one := o.at("intent.from.0").(object)
						n := one["amount"].(json.Number)
						return o.with("intent.from",
							list{one.with("amount", scaled(n, 2)), one.with("amount", raw("-"+n.String()))})
					}},
			}, Should: {
				{"tokens-zero", "to 0 tokens", set(to, number(0))},
				{"tokens-missing", "to tokens without an amount", drop(to)},
			}}.inputs(rejectedMint), rows[edit]{Must: {
				{"zero", "of 0", set(from, number(0))},
				{"minus-zero", "of -0", set(from, raw("-0"))},
				{"zero-point", "of 0.0", set(from, raw("0.0"))},
				{"zero-exponent", "of 0e9", set(from, raw("0e9"))},
				{"text", "of a string", set(from, "2")},
				{"boolean", "of true", set(from, true)},
				{"list", "of a list", set(from, list{number(2)})},
				{"object", "of an object", set(from, object{})},
			}}.inputs(paid, "mint-succeeds"))},
		{ID: "balance", after: []string{"mint-succeeds"},
			Fix: "Reject a mint of more than the player owns. If an UPDATE checks the balance, look at " +
				"how many rows it changed.",
			Title: "A mint of more than the player owns is rejected.",
			run: func(t *trial) {
				one := raw(show(plus(t.before.of(t.asset), big.NewRat(1, 1))))
				// a game of whole tokens rejects the first
				for _, more := range []json.Number{one, t.oneMore()} {
					t.rejected(t.validate(t.mint(t.of(more))))
					t.moved(0)
				}
			}},
		{ID: "mint-amount-too-much", Fix: exact, after: []string{"balance"},
			Title: "A mint of more than anybody owns is rejected, also if the number is small in 32 " +
				"or 64 bits.",
			Inputs: slices.Concat(rows[string]{Must: {
				{"2-31", "2^31", "2147483648"},
				{"2-53", "2^53 + 1", "9007199254740993"},
				{"2-63", "2^63, which is negative in 64 bits", "9223372036854775808"},
				{"10-30", "10^30", "1" + strings.Repeat("0", 30)},
				{"1e30", "1e30", "1e30"},
			}}.inputs(tooMuch), rows[string]{Must: {
				{"2-32", "2^32 times the amount of an order, which is 0 in 32 bits", power(32, 0)},
				{"2-32-more", "2^32 + 1 times the amount of an order, which is that amount in 32 bits",
					power(32, 1)},
				{"2-64", "2^64 times the amount of an order, which is 0 in 64 bits", power(64, 0)},
				{"2-64-more", "2^64 + 1 times the amount of an order, which is that amount in 64 bits",
					power(64, 1)},
				{"2-256-more", "2^256 + 1 times the amount of an order, which is that amount in 256 bits",
					power(256, 1)},
			}}.inputs(wraps))},
		{ID: "mint-amount-bomb", Fix: bound,
			Title: "A mint of a number that is expensive to compute with is rejected.",
			Inputs: slices.Concat(rows[string]{Must: {
				{"1e400", "1e400, which is infinite as a double", "1e400"},
				{"exponent", "1e999999999", "1e999999999"},
				{"exponent-overflow", "1e18446744073709551616, whose exponent is 0 in 64 bits",
					"1e18446744073709551616"},
				{"digits", "a number of 50,000 digits", strings.Repeat("9", 50_000)},
			}}.inputs(tooMuch, "balance"), rows[edit]{Must: {
				{"tiny", "1e-999999999", set(from, raw("1e-999999999"))},
			}}.inputs(paid, "mint-succeeds"))},
		{ID: "mint-amount-all-back", after: []string{"mint-fails"}, Section: "3",
			Fix: "Give assets back to a player who owns none, too: add the row of the balance if it " +
				"does not exist, or keep it at 0.",
			Title: "A failed mint of all that the player owns gives it back, or is rejected.",
			run:   func(t *trial) { t.rejectsOrEnds(t.mint(t.of(t.all())), failure) }},
		{ID: "amount-exact", Fix: exact,
			Inputs: slices.Concat(exactly("mint-", mintEnds), exactly("back-", mintFails),
				exactly("burn-", burnEnds)),
			Title: "An order about a fraction, or about a number in another notation, takes, gives back " +
				"or grants exactly that, or is rejected."},
		{ID: "burn-amount", Fix: above + " " + typed + " " + bound,
			Title: "A burn whose amount is missing, below 0, 0, no JSON number or too large to compute " +
				"with is rejected.",
			Inputs: slices.Concat(rows[edit]{Must: {
				{"negative", "to a negative amount", set(to, number(-2))},
				{"missing", "to an asset without an amount", drop(to)},
				{"null", "to an amount of null", set(to, nil)},
				{"tokens-negative", "of a negative amount of tokens", set(from, number(-1))},
			}, Should: {
				{"zero", "to an amount of 0", set(to, number(0))},
				{"bomb", "to 1e999999999", set(to, raw("1e999999999"))},
			}}.inputs(rejectedBurn),
				mild(rows[edit]{Should: {{"text", "to a string",
					set(to, "2")}}}.inputs(rejectedBurn)...), []Input{
					must("tokens-zero", "of 0 tokens, unless it grants nothing", func(t *trial) {
						o := t.burn(set(from, number(0)))
						t.rejectsOr(o, func() {
							t.tell(o, success)
							t.moved(0)
						})
					}),
				})},
	}
}

// exactly returns an input for each quantity that a game may take or reject, but not
// round.
func exactly(prefix string, e ending) []Input {
	return prefixed(prefix, rows[string]{Must: {
		{"half", "0.5", "0.5"},
		{"one-and-half", "1.5", "1.5"},
		{"quarters", "2.75", "2.75"},
		{"more-than-one", "1.999999999999999999, which is 2 as a double", "1.999999999999999999"},
		{"tiny", "0.000000000000000001", "0.000000000000000001"},
		{"point", "2.0", "2.0"},
		{"exponent", "2e0", "2e0"},
		{"exponent-minus", "20E-1", "20E-1"},
		{"above-an-order", "a quarter more than the amount of an order", ""},
	}}.inputs(func(t *trial, amount string) {
		if amount == "" {
			amount = show(plus(t.amounts(1), big.NewRat(1, 4)))
		}
		t.rejectsOrEnds(e.order(t).bent(t.of(raw(amount))), e.status)
	}, e.ability))
}
