package rampbooks

import (
	"math/big"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/catalog"
	"github.com/token-ramp/ramp-go/internal/console"
)

// Amount is an exact amount. In JSON it is a string, because many readers round numbers.
type Amount struct{ ramp.Amount }

// MarshalJSON writes the amount as a string.
func (a Amount) MarshalJSON() ([]byte, error) { return []byte(`"` + a.String() + `"`), nil }

// UnmarshalJSON reads what MarshalJSON wrote.
func (a *Amount) UnmarshalJSON(b []byte) (err error) {
	a.Amount, err = ramp.ParseAmount(strings.Trim(string(b), `"`))
	return err
}

// negated returns the amount with the other sign.
func (a Amount) negated() Amount {
	text, below := strings.CutPrefix(a.String(), "-")
	if !below && a.Sign() != 0 {
		text = "-" + text
	}
	negated, _ := ramp.ParseAmount(text) // it is one
	return Amount{negated}
}

// add adds amounts of game assets to sums.
func add(sums map[string]Amount, list []ramp.AssetAmount) map[string]Amount {
	for _, a := range list {
		sum, _ := sums[a.ID].Add(a.Amount) // an amount of more than 100 digits is in no game
		sums[a.ID] = Amount{sum}
	}
	return sums
}

// listOf returns sums as a list of assets.
func listOf(sums map[string]Amount) (list []ramp.AssetAmount) {
	for id, amount := range sums {
		list = append(list, ramp.AssetAmount{ID: id, Amount: amount.Amount})
	}
	return list
}

// movedText writes amounts of assets for a person, sorted, such as "-500 item_gold".
func movedText(amounts map[string]Amount) string { return console.Assets(listOf(amounts)) }

// amountOf returns units of a token as an amount.
func amountOf(c *catalog.Catalog, token common.Address, units *big.Int) Amount {
	return Amount{c.Amount(token, units)}
}
