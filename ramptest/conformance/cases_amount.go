package conformance

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
		from  = "intent.from.0.amount"
		to    = "intent.to.0.amount"
		above = "Reject amounts that are missing or below 0 on both sides of an intent, and preferably 0 too."
		exact = "Parse the text of the JSON number into an exact type, and compare that with the balance; do not use float64, and do not truncate to 32 or 64 bits."
		bound = "Limit the digits and the exponent of a number before you compute with it."
		typed = "Accept a JSON number as an amount and nothing else."
	)
	rejected := func(t *trial, e edit) { t.rejects(t.mint().bent(e)) }
	rejectedBurn := func(t *trial, e edit) { t.rejects(t.burn().bent(e)) }
	paid := func(t *trial, e edit) {
		o := t.mint().bent(e)
		t.rejectsOr(o, func() { t.paid(o) })
	}
	tooMuch := func(t *trial, amount string) {
		t.rejected(t.validate(t.mint().bent(t.of(t.beyond(amount)))))
		t.moved(0)
	}
	// Multiples of a whole order keep the rate, so that a game that checks it must see that
	// they are too much.
	wraps := func(t *trial, orders string) { tooMuch(t, show(new(big.Rat).Mul(rat(orders), t.amounts(1)))) }
	return []Case{
		{ID: "mint-amount", Section: "2.5", Fix: above + " " + typed,
			Title: "A mint whose amount is missing or below 0 is rejected, and one whose amount is 0 or no JSON number is rejected or takes something.",
			Inputs: slices.Concat(rows[edit]{
				{"negative", "of a negative amount", Must, set(from, number(-2))},
				{"minus-one", "of -1", Must, set(from, number(-1))},
				{"minus-half", "of -0.5", Must, set(from, raw("-0.5"))},
				{"missing", "without an amount", Must, drop(from)},
				{"null", "whose amount is null", Must, set(from, nil)},
				{"tokens-negative", "to a negative amount of tokens", Must, set(to, number(-1))},
				{"tokens-zero", "to 0 tokens", Should, set(to, number(0))},
				{"tokens-missing", "to tokens without an amount", Should, drop(to)},
				{"netted", "with a negative entry beside a positive one of the same asset", Must, func(o object) object {
					one := o.at("intent.from.0").(object)
					n := one["amount"].(json.Number)
					return o.with("intent.from", list{one.with("amount", twice(n)), one.with("amount", raw("-"+n.String()))})
				}},
			}.inputs(rejected), rows[edit]{
				{"zero", "of 0", Must, set(from, number(0))},
				{"minus-zero", "of -0", Must, set(from, raw("-0"))},
				{"zero-point", "of 0.0", Must, set(from, raw("0.0"))},
				{"zero-exponent", "of 0e9", Must, set(from, raw("0e9"))},
				{"text", "of a string", Must, set(from, "2")},
				{"boolean", "of true", Must, set(from, true)},
				{"list", "of a list", Must, set(from, list{number(2)})},
				{"object", "of an object", Must, set(from, object{})},
			}.inputs(paid, "mint-succeeds"))},
		{ID: "balance", after: []string{"mint-succeeds"}, Section: "2.5",
			Fix:   "Reject a mint of more than the player owns. If an UPDATE checks the balance, look at how many rows it changed.",
			Title: "A mint of more than the player owns is rejected.",
			run: func(t *trial) {
				one := raw(show(new(big.Rat).Add(t.before.of(t.asset), big.NewRat(1, 1))))
				for _, more := range []json.Number{one, t.oneMore()} { // a game of whole tokens rejects the first
					t.rejected(t.validate(t.mint().bent(t.of(more))))
					t.moved(0)
				}
			}},
		{ID: "mint-amount-too-much", Section: "2.5", Fix: exact, after: []string{"balance"},
			Title: "A mint of more than anybody owns is rejected, also if the number is small in 32 or 64 bits.",
			Inputs: slices.Concat(rows[string]{
				{"2-31", "2^31", Must, "2147483648"},
				{"2-53", "2^53 + 1", Must, "9007199254740993"},
				{"2-63", "2^63, which is negative in 64 bits", Must, "9223372036854775808"},
				{"10-30", "10^30", Must, "1" + strings.Repeat("0", 30)},
				{"1e30", "1e30", Must, "1e30"},
			}.inputs(tooMuch), rows[string]{
				{"2-32", "2^32 times the amount of an order, which is 0 in 32 bits", Must, power(32, 0)},
				{"2-32-more", "2^32 + 1 times the amount of an order, which is that amount in 32 bits", Must, power(32, 1)},
				{"2-64", "2^64 times the amount of an order, which is 0 in 64 bits", Must, power(64, 0)},
				{"2-64-more", "2^64 + 1 times the amount of an order, which is that amount in 64 bits", Must, power(64, 1)},
				{"2-256-more", "2^256 + 1 times the amount of an order, which is that amount in 256 bits", Must, power(256, 1)},
			}.inputs(wraps))},
		{ID: "mint-amount-bomb", Section: "2.5", Fix: bound,
			Title: "A mint of a number that is expensive to compute with is rejected.",
			Inputs: slices.Concat(rows[string]{
				{"1e400", "1e400, which is infinite as a double", Must, "1e400"},
				{"exponent", "1e999999999", Must, "1e999999999"},
				{"exponent-overflow", "1e18446744073709551616, whose exponent is 0 in 64 bits", Must, "1e18446744073709551616"},
				{"digits", "a number of 50,000 digits", Must, strings.Repeat("9", 50_000)},
			}.inputs(tooMuch, "balance"), rows[edit]{
				{"tiny", "1e-999999999", Must, set(from, raw("1e-999999999"))},
			}.inputs(paid, "mint-succeeds"))},
		{ID: "mint-amount-all-back", after: []string{"mint-fails"}, Section: "3",
			Fix:   "Give assets back to a player who owns none, too: add the row of the balance if it does not exist, or keep it at 0.",
			Title: "A failed mint of all that the player owns gives it back, or is rejected.",
			run: func(t *trial) {
				t.rejectsOrEnds(t.mint().bent(t.of(t.all())), failure, new(big.Rat))
			}},
		{ID: "amount-exact", Section: "2.5", Fix: exact, Inputs: slices.Concat(
			exactly("mint-", "mint-succeeds", func(t *trial, amount string) {
				t.rejectsOrEnds(t.mint().bent(t.of(raw(amount))), success, new(big.Rat).Neg(rat(amount)))
			}),
			exactly("back-", "mint-fails", func(t *trial, amount string) {
				t.rejectsOrEnds(t.mint().bent(t.of(raw(amount))), failure, new(big.Rat))
			}),
			exactly("burn-", "burn-succeeds", func(t *trial, amount string) {
				t.rejectsOrEnds(t.burn().bent(t.of(raw(amount))), success, rat(amount))
			})),
			Title: "An order about a fraction, or about a number in another notation, takes, gives back or grants exactly that, or is rejected."},
		{ID: "burn-amount", Section: "2.5", Fix: above + " " + typed + " " + bound,
			Title: "A burn whose amount is missing, below 0, 0, no JSON number or too large to compute with is rejected.",
			Inputs: slices.Concat(rows[edit]{
				{"negative", "to a negative amount", Must, set(to, number(-2))},
				{"zero", "to an amount of 0", Should, set(to, number(0))},
				{"missing", "to an asset without an amount", Must, drop(to)},
				{"null", "to an amount of null", Must, set(to, nil)},
				{"tokens-negative", "of a negative amount of tokens", Must, set(from, number(-1))},
				{"bomb", "to 1e999999999", Should, set(to, raw("1e999999999"))},
			}.inputs(rejectedBurn), mild(rows[edit]{{"text", "to a string", Should, set(to, "2")}}.inputs(rejectedBurn)), []Input{
				must("tokens-zero", "of 0 tokens, unless it grants nothing", func(t *trial) {
					o := t.burn().bent(set(from, number(0)))
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
func exactly(prefix, ability string, run func(t *trial, amount string)) []Input {
	return prefixed(prefix, rows[string]{
		{"half", "0.5", Must, "0.5"},
		{"one-and-half", "1.5", Must, "1.5"},
		{"quarters", "2.75", Must, "2.75"},
		{"more-than-one", "1.999999999999999999, which is 2 as a double", Must, "1.999999999999999999"},
		{"tiny", "0.000000000000000001", Must, "0.000000000000000001"},
		{"point", "2.0", Must, "2.0"},
		{"exponent", "2e0", Must, "2e0"},
		{"exponent-minus", "20E-1", Must, "20E-1"},
		{"above-an-order", "a quarter more than the amount of an order", Must, ""},
	}.inputs(func(t *trial, amount string) {
		if amount == "" {
			amount = show(new(big.Rat).Add(t.amounts(1), big.NewRat(1, 4)))
		}
		run(t, amount)
	}, ability))
}

// power returns 2 to the power of bits, and more.
func power(bits uint, more int64) string {
	n := new(big.Int).Lsh(big.NewInt(1), bits)
	return n.Add(n, big.NewInt(more)).String()
}

func rat(text string) *big.Rat {
	r, _ := new(big.Rat).SetString(text)
	return r
}
