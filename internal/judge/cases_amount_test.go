package judge_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	ramp "github.com/token-ramp/ramp-go"
)

// amountText are the digits of an amount as they came.
func amountText(m message, path string) string { n, _ := m.at(path).(json.Number); return n.String() }

// computes is a server whose numbers are of another type: what it makes of an
// amount counts, and when that is nothing, or less, it takes nothing.
func computes(convert func(text string) string) mutant {
	return mutant{wrap: func(s *studio, next http.Handler) http.Handler {
		passes := next
		for _, path := range []string{"intent.from.0.amount", "intent.to.0.amount"} {
			asset := strings.TrimSuffix(path, "amount") + "type"
			passes = edits(path, func(m message, old any) any {
				if m.at(asset) == "asset" {
					return json.Number(convert(fmt.Sprint(old)))
				}
				return old
			}).wrap(s, passes)
		}
		return approves(func(m message) bool {
			path := "intent.from.0.amount"
			if m.at("intent.type") == "disassemble" {
				path = "intent.to.0.amount"
			}
			return strings.Trim(convert(amountText(m, path)), "0.") == "" || convert(amountText(m, path))[0] == '-'
		}).wrap(s, passes)
	}}
}

// cut is a number as a fixed count of bits holds it.
func cut(bits uint, signed bool) func(string) string {
	return func(text string) string {
		n, ok := new(big.Int).SetString(text, 10)
		if !ok {
			return "0"
		}
		size := new(big.Int).Lsh(big.NewInt(1), bits)
		n.Mod(n, size)
		if signed && n.Bit(int(bits)-1) == 1 {
			n.Sub(n, size)
		}
		return n.String()
	}
}

// prefix is what a lenient parser makes of a number: the digits at its front.
func prefix(text string) string {
	return cmp.Or(regexp.MustCompile(`^[0-9]+`).FindString(text), "0")
}

// rounded is a number up to the next whole one.
func rounded(text string) string {
	amount, err := ramp.ParseAmount(text)
	if err != nil {
		return "0"
	}
	r := amount.Rat()
	q, rest := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q.String()
}

// digitsOnly is a number without everything else.
func digitsOnly(text string) string {
	return regexp.MustCompile(`[^0-9]`).ReplaceAllString(text, "")
}

// loose is a server whose parser turns anything into a number.
func loose(path string) mutant {
	return edits(path, func(_ message, old any) any {
		if _, ok := old.(json.Number); ok || old == nil {
			return old
		}
		return json.Number("2")
	})
}

func amountMutants() map[string]mutant {
	const from, to = "intent.from.0.amount", "intent.to.0.amount"
	sign := func(path string, sign int) func(message) bool {
		return func(m message) bool {
			amount, err := ramp.ParseAmount(amountText(m, path))
			return err == nil && amount.Sign() == sign
		}
	}
	missing := func(path string) func(message) bool { return func(m message) bool { return m.at(path) == nil } }
	infinite := func(path string) func(message) bool {
		return func(m message) bool {
			_, err := ramp.ParseAmount(amountText(m, path))
			return amountText(m, path) != "" && err != nil
		}
	}
	m := map[string]mutant{
		"mint-amount/tokens-negative": approves(sign(to, -1)),
		"mint-amount/tokens-zero":     approves(sign(to, 0)),
		"mint-amount/tokens-missing":  approves(missing(to)),
		"burn-amount/negative":        approves(sign(to, -1)),
		"burn-amount/zero":            approves(sign(to, 0)),
		"burn-amount/missing":         approves(missing(to)),
		"burn-amount/null":            approves(missing(to)),
		"burn-amount/text":            loose(to),
		"burn-amount/tokens-negative": approves(sign(from, -1)),
		"burn-amount/tokens-zero": edits(from,
			func(m message, old any) any { return when(sign(from, 0)(m), json.Number("1"), old) }),
		"burn-amount/bomb": approves(infinite(to)),

		"mint-amount-too-much/2-31":      computes(cut(32, true)),
		"mint-amount-too-much/2-32":      computes(cut(32, false)),
		"mint-amount-too-much/2-32-more": computes(cut(32, false)),
		"mint-amount-too-much/2-53": approves(func(m message) bool { // what is no safe integer is not compared
			amount, err := ramp.ParseAmount(amountText(m, from))
			return err == nil && amount.Cmp(ramp.NewAmount(1<<53)) > 0
		}),
		"mint-amount-too-much/2-63":      computes(cut(64, true)),
		"mint-amount-too-much/2-64":      computes(cut(64, false)),
		"mint-amount-too-much/2-64-more": computes(cut(64, false)),
		"mint-amount-too-much/10-30": computes(func(text string) string { // what does not fit counts as nothing
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return "0"
			}
			return strconv.FormatInt(n, 10)
		}),
		"mint-amount-too-much/1e30":          computes(prefix),
		"mint-amount-too-much/2-256-more":    computes(cut(256, false)),
		"mint-amount-bomb/1e400":             computes(prefix),
		"mint-amount-bomb/exponent":          computes(prefix),
		"mint-amount-bomb/exponent-overflow": computes(prefix),
		"mint-amount-bomb/digits":            approves(infinite(from)),

		"mint-amount-all-back": {bug: "gives nothing back to who has nothing"},
		"balance":              {bug: "takes one more than there is"},
		"mint-amount/netted": approves(func(m message) bool {
			return strings.HasPrefix(amountText(m, "intent.from.1.amount"), "-")
		}),
		"mint-amount-bomb/tiny": approves(infinite(from)),
	}
	for _, id := range []string{"negative", "minus-one", "minus-half"} {
		m["mint-amount/"+id] = approves(sign(from, -1))
	}
	for _, id := range []string{"zero", "minus-zero", "zero-point", "zero-exponent"} {
		m["mint-amount/"+id] = approves(sign(from, 0))
	}
	for _, id := range []string{"missing", "null"} {
		m["mint-amount/"+id] = approves(missing(from))
	}
	for _, id := range []string{"text", "boolean", "list", "object"} {
		m["mint-amount/"+id] = approves(func(m message) bool {
			_, isNumber := m.at(from).(json.Number)
			return !isNumber && m.at(from) != nil
		})
	}
	for _, id := range []string{"half", "above-an-order", "one-and-half", "quarters", "more-than-one", "tiny"} {
		fraction := computes(rounded)
		if id == "more-than-one" {
			fraction = computes(prefix) // rounded up, it is what a double makes of it
		}
		m["amount-exact/mint-"+id], m["amount-exact/burn-"+id] = fraction, fraction
		m["amount-exact/back-"+id] = mutant{bug: "gives back whole numbers"}
	}
	// That a tiny amount is kept cannot be told from how a double rounds.
	m["amount-exact/back-tiny"] = mutant{bug: "gives back rounded up"}
	for _, id := range []string{"point", "exponent", "exponent-minus"} {
		m["amount-exact/mint-"+id] = computes(digitsOnly)
		m["amount-exact/burn-"+id] = computes(digitsOnly)
		// What is not written as digits alone counts as nothing when it comes back.
		m["amount-exact/back-"+id] = confirms(func(m message) bool {
			return strings.Trim(amountText(m, from), "0123456789") != ""
		})
	}
	return m
}
