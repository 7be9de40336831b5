package judge_test

import (
	"encoding/json"
	"math/big"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/token-ramp/ramp-go/internal/judge"
)

// counts is a server that trades at a rate of 2, and makes another number of the amounts at
// some paths before it looks at anything.
func counts(convert func(string) string, paths ...string) mutant {
	return mutant{terms: true, wrap: func(s *studio, next http.Handler) http.Handler {
		next = rate().wrap(s, next)
		for _, path := range paths {
			next = edits(path, func(m message, old any) any {
				if amountText(m, path) == "" || m.at("tx_hash") != nil {
					return old
				}
				return json.Number(convert(amountText(m, path)))
			}).wrap(s, next)
		}
		return next
	}}
}

// priced is a server that approves, instead of a right order, what costs a mint or a burn
// so many assets for so many tokens.
func priced(kind string, price func(tokens *big.Rat) *big.Rat) mutant {
	return mutant{terms: true, wrap: func(s *studio, next http.Handler) http.Handler {
		return reads(func(body []byte) []byte {
			m := parse(body)
			assets, tokens := "intent.from.0", "intent.to.0"
			if kind == "disassemble" {
				assets, tokens = tokens, assets
			}
			paid, count := amountText(m, assets+".amount"), amountText(m, tokens+".amount")
			if m.text("intent.type") != kind || paid == "" || count == "" || m.at("tx_hash") != nil {
				return body
			}
			n, asked := new(big.Rat), new(big.Rat)
			if _, ok := n.SetString(count); !ok {
				return body
			}
			if _, ok := asked.SetString(paid); ok && price(n).Cmp(asked) == 0 {
				m.at(tokens).(map[string]any)["amount"] = json.Number(asked.Quo(asked, big.NewRat(2, 1)).FloatString(0))
				return jsonOf(m)
			}
			return body
		}).wrap(s, rate().wrap(s, next))
	}}
}

// Each of these faults of a game that checks its rate is found by one input only.
func TestARateIsCheckedExactly(t *testing.T) {
	t.Parallel()
	const from, to = "intent.from.0.amount", "intent.to.0.amount"
	sum := func(n *big.Rat, more int64) *big.Rat { return new(big.Rat).Add(n, big.NewRat(more, 1)) }
	at2 := func(n *big.Rat) *big.Rat { return new(big.Rat).Add(n, n) }
	unit := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(18), nil))
	for id, m := range map[string]mutant{
		"terms-rate/mint-tokens-2-32":  counts(cut(32, true), to),
		"terms-rate/mint-tokens-2-64":  counts(cut(64, false), to),
		"terms-rate/mint-tokens-2-256": counts(cut(256, false), to),
		"terms-rate/mint-tokens-smallest-unit": priced("assemble",
			func(n *big.Rat) *big.Rat { return at2(new(big.Rat).Quo(n, unit)) }),
		"terms-rate/mint-one-token-more":  priced("assemble", func(n *big.Rat) *big.Rat { return at2(sum(n, -1)) }),
		"terms-rate/burn-one-token-less":  priced("disassemble", func(n *big.Rat) *big.Rat { return at2(sum(n, 1)) }),
		"mint-amount-too-much/2-32-more":  counts(cut(32, true), from, to),
		"mint-amount-too-much/2-64-more":  counts(cut(64, true), from, to),
		"mint-amount-too-much/2-256-more": counts(cut(256, false), from, to),
	} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			inVirtualTime(t, m, func(t *testing.T, s *studio) {
				// A whole order is more than 2 of an asset, so that only a multiple of it wraps to one.
				s.target.Amount, s.target.Tokens = 400, 200
				family, name, _ := strings.Cut(id, "/")
				v := s.unopened(t).Try(t.Context(), caseOf(t, family))
				for _, in := range v.Inputs {
					switch {
					case in.Input.Name == name:
						assert.Equal(t, judge.Failed, in.Outcome, in.Input.Name)
					case family == "terms-rate" &&
						!(strings.Contains(id, "-2-") &&
							strings.Contains(in.Input.Name, "-2-")): // 2^64 is a multiple of 2^32
						assert.Equal(t, judge.Passed, in.Outcome, "%s: %s", in.Input.Name, in.Saw)
					}
				}
			})
		})
	}
}
