package ramp_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ramp "github.com/token-ramp/ramp-go"
)

func TestAnOrderIsOnTheTermsOrDeclined(t *testing.T) {
	const token, other = "0x00000000000000000000000000000000000070C3", "0x0000000000000000000000000000000000000bad"
	asset := func(id, n string) ramp.IntentAsset {
		return ramp.IntentAsset{Type: ramp.TypeAsset, ID: id, Amount: amount(t, n)}
	}
	tokens := func(contract, n string) ramp.IntentAsset {
		return ramp.IntentAsset{Type: ramp.TypeERC20, ID: contract, Amount: amount(t, n)}
	}
	side := func(entries ...ramp.IntentAsset) []ramp.IntentAsset { return entries }
	mint := func(from, to []ramp.IntentAsset) ramp.Intent {
		return ramp.Intent{Method: ramp.MethodMint, Type: ramp.Assemble, From: from, To: to}
	}
	burn := func(from, to []ramp.IntentAsset) ramp.Intent {
		return ramp.Intent{Method: ramp.MethodBurnPermit, Type: ramp.Disassemble, From: from, To: to}
	}
	item := func(id string, amount int64) ramp.Item { return ramp.Item{ID: id, Amount: ramp.NewAmount(amount)} }
	terms := ramp.InitializeIntent{Token: token, Materials: []ramp.Item{item("gold", 100), item("gem", 1)}, Outputs: []ramp.Item{item("gold", 50)}}
	mintsOnly, twice, halves := terms, terms, terms
	halves.Outputs = []ramp.Item{{ID: "gold", Amount: amount(t, "0.5")}}
	mintsOnly.Outputs = []ramp.Item{}
	twice.Materials = []ramp.Item{item("gold", 60), item("gem", 1), item("gold", 40)}

	for _, test := range []struct {
		name  string
		terms ramp.InitializeIntent
		order ramp.Intent
		wrong string // empty: on the terms
	}{
		{"a mint of one", terms, mint(side(asset("gold", "100"), asset("gem", "1")), side(tokens(token, "1"))), ""},
		{"a mint of three, in another order and case", terms, mint(side(asset("gem", "3.0"), asset("gold", "3e2")), side(tokens("0x00000000000000000000000000000000000070c3", "3"))), ""},
		{"a mint that splits an item", terms, mint(side(asset("gold", "30"), asset("gem", "1"), asset("gold", "70")), side(tokens(token, "1"))), ""},
		{"an older name of the token type", terms, burn(side(ramp.IntentAsset{Type: "erc20", ID: token, Amount: ramp.NewAmount(1)}), side(asset("gold", "50"))), ""},
		{"terms that split an item", twice, mint(side(asset("gold", "100"), asset("gem", "1")), side(tokens(token, "1"))), ""},
		{"a fraction of a token", terms, burn(side(tokens(token, "0.5")), side(asset("gold", "25"))), ""},
		{"terms with a fraction", halves, burn(side(tokens(token, "3")), side(asset("gold", "1.5"))), ""},
		{"a burn of two", terms, burn(side(tokens(token, "2")), side(asset("gold", "100"))), ""},
		{"more digits than a float has", terms, burn(side(tokens(token, "90071992547409931")), side(asset("gold", "4503599627370496550"))), ""},

		{"a worthless token", terms, burn(side(tokens(other, "2")), side(asset("gold", "100"))), "intent.from must be exactly the token of the terms"},
		{"a worthless token beside ours", terms, burn(side(tokens(token, "1"), tokens(other, "1")), side(asset("gold", "100"))), "intent.from must be exactly the token of the terms"},
		{"an NFT of our contract", terms, burn(side(ramp.IntentAsset{Type: "NFT", ID: token, Amount: ramp.NewAmount(1)}), side(asset("gold", "50"))), "intent.from must be exactly the token of the terms"},
		{"our token twice", terms, mint(side(asset("gold", "200"), asset("gem", "2")), side(tokens(token, "1"), tokens(token, "1"))), "intent.to must be exactly the token of the terms"},
		{"terms without a token", ramp.InitializeIntent{Outputs: terms.Outputs}, burn(side(tokens(token, "1")), side(asset("gold", "50"))), "intent.from must be exactly the token of the terms"},
		{"too cheap", terms, mint(side(asset("gold", "99"), asset("gem", "1")), side(tokens(token, "1"))), `intent.from must have 100 of "gold" for each token`},
		{"too dear for the player", terms, mint(side(asset("gold", "100"), asset("gem", "2")), side(tokens(token, "1"))), `intent.from must have 1 of "gem" for each token`},
		{"more tokens than paid", terms, mint(side(asset("gold", "100"), asset("gem", "1")), side(tokens(token, "2"))), `intent.from must have 100 of "gold" for each token`},
		{"off by the last digit", terms, burn(side(tokens(token, "90071992547409931")), side(asset("gold", "4503599627370496551"))), `intent.to must have 50 of "gold" for each token`},
		{"a fraction of an item that has none", terms, burn(side(tokens(token, "0.01")), side(asset("gold", "0.5"))), `intent.to must have whole numbers of "gold" that fit an int64`},
		{"more than an int64 holds", terms, burn(side(tokens(token, "1e18")), side(asset("gold", "50e18"))), `intent.to must have whole numbers of "gold" that fit an int64`},
		{"an item missing", terms, mint(side(asset("gold", "100")), side(tokens(token, "1"))), "intent.from must have exactly the items of the terms"},
		{"an item too many", terms, burn(side(tokens(token, "1")), side(asset("gold", "50"), asset("gem", "1"))), "intent.to must have exactly the items of the terms"},
		{"another item", terms, burn(side(tokens(token, "1")), side(asset("gem", "50"))), "intent.to must have exactly the items of the terms"},
		{"the case of an item", terms, burn(side(tokens(token, "1")), side(asset("GOLD", "50"))), "intent.to must have exactly the items of the terms"},
		{"a direction that is not offered", mintsOnly, burn(side(tokens(token, "1")), side(asset("gold", "50"))), "intent has a direction for which the terms have no items"},
		{"a mint called a burn", terms, ramp.Intent{Method: ramp.MethodMint, Type: ramp.Disassemble, From: side(tokens(token, "1")), To: side(asset("gold", "50"))}, "intent"},
		{"an amount below 0", terms, burn(side(tokens(token, "-1")), side(asset("gold", "-50"))), "intent.from[0].amount"},
		{"nothing", terms, ramp.Intent{}, "intent.method is required"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.terms.CheckTerms(test.order)
			if test.wrong == "" {
				require.NoError(t, err)
				return
			}
			var refusal *ramp.Rejection
			require.ErrorAs(t, err, &refusal)
			assert.Equal(t, ramp.Code("INVALID_MESSAGE"), refusal.Code)
			var wrong *ramp.InvalidError
			require.True(t, errors.As(err, &wrong), "the cause says what differs")
			assert.Contains(t, err.Error(), test.wrong)
		})
	}
}
