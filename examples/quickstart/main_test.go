package main

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

// main exits with status 1 if a balance is wrong, which fails the test.
func TestQuickstart(*testing.T) { main() }

func TestTheGameApprovesItsOwnTermsOnly(t *testing.T) {
	const foreign = "0x000000000000000000000000000000000000bad1"
	gold := func(n int64) ramp.IntentAsset {
		return ramp.IntentAsset{Type: ramp.TypeAsset, ID: "item_gold", Amount: ramp.NewAmount(n)}
	}
	gem := func(n int64) ramp.IntentAsset {
		return ramp.IntentAsset{Type: ramp.TypeAsset, ID: "item_gem", Amount: ramp.NewAmount(n)}
	}
	tokens := func(contract, amount string) []ramp.IntentAsset {
		n, err := ramp.ParseAmount(amount)
		if err != nil {
			t.Fatal(err)
		}
		return []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: contract, Amount: n}}
	}
	mint := func(to []ramp.IntentAsset, from ...ramp.IntentAsset) ramp.Intent {
		return ramp.Intent{Method: ramp.MethodMint, Type: ramp.Assemble, From: from, To: to}
	}
	burn := func(from []ramp.IntentAsset, to ...ramp.IntentAsset) ramp.Intent {
		return ramp.Intent{Method: ramp.MethodBurnPermit, Type: ramp.Disassemble, From: from, To: to}
	}
	for name, c := range map[string]struct {
		intent  ramp.Intent
		approve bool
	}{
		"a mint":                           {mint(tokens(terms.Token, "1"), gold(100), gem(1)), true},
		"a mint of three":                  {mint(tokens(terms.Token, "3"), gem(3), gold(300)), true},
		"a burn":                           {burn(tokens(terms.Token, "2"), gold(100)), true},
		"a burn of a worthless token":      {burn(tokens(foreign, "2"), gold(100)), false},
		"a mint of another token":          {mint(tokens(foreign, "1"), gold(100), gem(1)), false},
		"a burn of next to nothing":        {burn(tokens(terms.Token, "1e-18"), gold(300)), false},
		"a burn that gives one more":       {burn(tokens(terms.Token, "2"), gold(101)), false},
		"a burn that gives gems as well":   {burn(tokens(terms.Token, "2"), gold(100), gem(1)), false},
		"a burn of two kinds":              {burn(append(tokens(terms.Token, "1"), tokens(foreign, "1")...), gold(50)), false},
		"a mint that takes one less":       {mint(tokens(terms.Token, "1"), gold(99), gem(1)), false},
		"a mint that takes no gem":         {mint(tokens(terms.Token, "1"), gold(100)), false},
		"a mint that takes gold twice":     {mint(tokens(terms.Token, "1"), gold(100), gold(100)), false},
		"a mint of one and a half":         {mint(tokens(terms.Token, "1.5"), gold(150), gem(1)), false},
		"a burn of more than can be moved": {burn(tokens(terms.Token, "9e18"), gold(450)), false},
	} {
		before := map[string]int64{"item_gold": 1000, "item_gem": 5}
		studio := &Studio{balances: maps.Clone(before)}
		step, err := ramp.Accept(ramp.Session{ID: "s"}, &ramp.ValidateRequest{UUID: uuid.New(), Intent: c.intent}, time.Now())(nil)
		if err == nil {
			err = studio.Apply(t.Context(), step)
		}
		var refused *ramp.Rejection
		switch {
		case c.approve && err != nil:
			t.Errorf("%s: %v", name, err)
		case !c.approve && (!errors.As(err, &refused) || !maps.Equal(studio.balances, before)):
			t.Errorf("%s: %v, with %v", name, err, studio.balances)
		}
	}
}
