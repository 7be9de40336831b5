package conformance

import (
	"math/big"
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
	var cases []Case
	// Invalid quantities.
	for _, c := range []struct {
		id, title string
		level     Level
		fix       string
		edit      edit
	}{
		{"negative", "of a negative amount", Must, above, set(from, number(-2))},
		{"minus-one", "of -1", Must, above, set(from, number(-1))},
		{"minus-half", "of -0.5", Must, above, set(from, raw("-0.5"))},
		{"missing", "without an amount", Must, above, drop(from)},
		{"null", "whose amount is null", Must, above, set(from, nil)},
		{"tokens-negative", "to a negative amount of tokens", Must, above, set(to, number(-1))},
		{"tokens-zero", "to 0 tokens", Should, above, set(to, number(0))},
		{"tokens-missing", "to tokens without an amount", Should, above, drop(to)},
	} {
		cases = append(cases, Case{ID: "mint-amount-" + c.id, Level: c.level, Section: "2.5", Fix: c.fix,
			Title: "A mint " + c.title + " is declined.", run: declines(mint, c.edit)})
	}
	// Quantities that must not be approved for nothing.
	for _, c := range []struct {
		id, title, fix string
		edit           edit
	}{
		{"zero", "of 0", above, set(from, number(0))},
		{"minus-zero", "of -0", above, set(from, raw("-0"))},
		{"zero-point", "of 0.0", above, set(from, raw("0.0"))},
		{"zero-exponent", "of 0e9", above, set(from, raw("0e9"))},
		{"text", "whose amount is a string", typed, set(from, "2")},
		{"boolean", "whose amount is true", typed, set(from, true)},
		{"list", "whose amount is a list", typed, set(from, list{number(2)})},
		{"object", "whose amount is an object", typed, set(from, object{})},
		{"tiny-bomb", "of 1e-999999999", bound, set(from, raw("1e-999999999"))},
	} {
		cases = append(cases, Case{ID: "mint-amount-" + c.id, Level: Must, Section: "2.5", Fix: c.fix,
			Title: "A mint " + c.title + " is declined, or takes something.", run: declinesOrTakes(c.edit)})
	}
	for _, c := range []struct {
		id, title string
		level     Level
		fix       string
		edit      edit
	}{
		{"negative", "to a negative amount", Must, above, set(to, number(-2))},
		{"zero", "to an amount of 0", Should, above, set(to, number(0))},
		{"missing", "to an asset without an amount", Must, above, drop(to)},
		{"null", "to an amount of null", Must, above, set(to, nil)},
		{"text", "to an amount that is a string", Should, typed, set(to, "2")},
		{"tokens-negative", "of a negative amount of tokens", Must, above, set(from, number(-1))},
		{"bomb", "to 1e999999999", Should, bound, set(to, raw("1e999999999"))},
	} {
		cases = append(cases, Case{ID: "burn-amount-" + c.id, Level: c.level, Section: "2.5", Fix: c.fix,
			Title: "A burn " + c.title + " is declined.", run: declines(burn, c.edit)})
	}
	// Quantities above every balance.
	for _, c := range []struct{ id, title, amount, fix string }{
		{"2-31", "2^31", "2147483648", exact},
		{"2-32", "2^32, which is 0 in 32 bits,", "4294967296", exact},
		{"2-32-more", "2^32 + 2, which is 2 in 32 bits,", "4294967298", exact},
		{"2-53", "2^53 + 1", "9007199254740993", exact},
		{"2-63", "2^63, which is negative in 64 bits,", "9223372036854775808", exact},
		{"2-64", "2^64, which is 0 in 64 bits,", "18446744073709551616", exact},
		{"2-64-more", "2^64 + 2, which is 2 in 64 bits,", "18446744073709551618", exact},
		{"10-30", "10^30", "1" + strings.Repeat("0", 30), exact},
		{"1e30", "1e30", "1e30", exact},
		{"2-256-more", "2^256 + 2, which is 2 in 256 bits,",
			"115792089237316195423570985008687907853269984665640564039457584007913129639938", exact},
		{"1e400", "1e400, which is infinite as a float64,", "1e400", bound},
		{"bomb", "1e999999999", "1e999999999", bound},
		{"exponent-overflow", "1e18446744073709551616, whose exponent is 0 in 64 bits,", "1e18446744073709551616", bound},
		{"digits", "a number of 50,000 digits", strings.Repeat("9", 50_000), bound},
	} {
		cases = append(cases, Case{ID: "mint-amount-" + c.id, Level: Must, Section: "2.5", Fix: c.fix,
			Title: "A mint of " + c.title + " is declined.",
			run: func(t *trial) {
				t.refused(t.validate(t.mint().bent(t.of(t.beyond(c.amount)))))
				t.moved(0)
			}})
	}
	// Quantities that a game may take or refuse, but not round.
	for _, c := range []struct {
		id, title, amount string
		moved             *big.Rat
	}{
		{"half", "0.5", "0.5", big.NewRat(1, 2)},
		{"more-than-one", "1.999999999999999999", "1.999999999999999999", rat("1.999999999999999999")},
		{"tiny", "0.000000000000000001", "0.000000000000000001", rat("0.000000000000000001")},
		{"point", "2.0", "2.0", big.NewRat(2, 1)},
		{"exponent", "2e0", "2e0", big.NewRat(2, 1)},
		{"exponent-minus", "20E-1", "20E-1", big.NewRat(2, 1)},
	} {
		cases = append(cases,
			Case{ID: "mint-amount-" + c.id, Level: Must, Section: "2.5", Fix: exact,
				Title: "A mint of " + c.title + " takes exactly that, or is declined.",
				run: func(t *trial) {
					o := t.mint().bent(t.of(raw(c.amount)))
					if t.either(t.validate(o)) {
						t.confirm(o, success)
						t.movedBy(new(big.Rat).Neg(c.moved))
						return
					}
					t.moved(0)
				}},
			Case{ID: "mint-amount-" + c.id + "-back", Level: Must, Section: "3", Fix: exact,
				Title: "A failed mint of " + c.title + " gives exactly that back.",
				run: func(t *trial) {
					o := t.mint().bent(t.of(raw(c.amount)))
					if t.either(t.validate(o)) {
						t.confirm(o, failure)
					}
					t.moved(0)
				}},
			Case{ID: "burn-amount-" + c.id, Level: Must, Section: "2.5", Fix: exact,
				Title: "A burn to " + c.title + " grants exactly that, or is declined.",
				run: func(t *trial) {
					o := t.burn().bent(t.of(raw(c.amount)))
					if t.either(t.validate(o)) {
						t.confirm(o, success)
						t.movedBy(c.moved)
						return
					}
					t.moved(0)
				}})
	}
	return append(cases,
		Case{ID: "mint-amount-one-more", Level: Must, Section: "2.5",
			Fix:   "Decline a mint of more than the player owns.",
			Title: "A mint of a little more than the player owns is declined.",
			run: func(t *trial) {
				t.refused(t.validate(t.mint().bent(t.of(t.oneMore()))))
				t.moved(0)
			}},
		Case{ID: "mint-amount-netted", Level: Must, Section: "2.5", Fix: above,
			Title: "A negative entry beside a positive one of the same asset is declined.",
			run: func(t *trial) {
				t.refused(t.validate(t.mint().bent(set("intent.from", list{
					entry("asset", t.asset, t.times(2)), entry("asset", t.asset, t.times(-1))}))))
				t.moved(0)
			}},
		Case{ID: "burn-amount-tokens-zero", Level: Must, Section: "2.5", Fix: above,
			Title: "A burn of 0 tokens is declined, or grants nothing.",
			run:   declinesOrMoves(burn, 0, set(from, number(0)))},
	)
}

func rat(text string) *big.Rat {
	r, _ := new(big.Rat).SetString(text)
	return r
}
