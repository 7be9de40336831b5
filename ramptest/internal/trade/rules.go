package trade

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/chain"
	"github.com/token-ramp/ramp-go/ramptest/internal/tally"
)

// Rules are how a service counts what orders are about.
type Rules struct {
	PerOrder, NetAmounts bool
	BurnMethod           ramp.Method
	TokenType            ramp.AssetType // empty for that of the items
	Decimals             int
}

// ErrNoItems means that the terms of an order have nothing to give or to take.
var ErrNoItems = errors.New("ramptest: the terms have nothing")

// Intent returns what the player asks for (interface 2.5).
func (r *Rules) Intent(t *Trade, asked ramp.InitializeIntent, tokens ramp.Amount) (ramp.Intent, error) {
	intent := ramp.Intent{Method: ramp.MethodMint, Type: t.Type, TargetCandidate: json.RawMessage("{}")}
	if !t.Mint {
		intent.Method = r.BurnMethod
	}
	items := t.Items(&asked)
	assets, token := t.Sides(&intent)
	stated := tokens
	if t.Mint && r.NetAmounts {
		stated = AfterFee(tokens, ramp.NewAmount(int64(asked.MintFeeBps)))
	}
	*token = []ramp.IntentAsset{{Type: r.tokenType(items), ID: asked.Token, Amount: stated}}
	if len(items) == 0 {
		return ramp.Intent{},
			fmt.Errorf("%w for a %s: a mint needs materials, a burn needs outputs", ErrNoItems, t.Direction)
	}
	*assets = make([]ramp.IntentAsset, len(items))
	for i, item := range items {
		amount := item.Amount
		if !r.PerOrder {
			var err error
			if amount, err = ramp.ParseAmount(tally.Decimal(new(big.Rat).Mul(amount.Rat(),
				tokens.Rat()))); err != nil {
				return ramp.Intent{}, fmt.Errorf("ramptest: %w", err)
			}
		}
		(*assets)[i] = ramp.IntentAsset{Type: ramp.TypeAsset, ID: item.ID, Amount: amount}
	}
	return intent, nil
}

// Amounts returns the number of tokens of an order before its fee, and after it. Its intent states
// one of them.
func (r *Rules) Amounts(intent *ramp.Intent, fee ramp.Amount) (gross, net ramp.Amount) {
	stated := TokenOf(intent).Amount
	rest := new(big.Rat).Sub(big.NewRat(10_000, 1), fee.Rat())
	if !Of(intent).Mint || !r.NetAmounts || rest.Sign() == 0 {
		return stated, AfterFee(stated, fee)
	}
	units := new(big.Rat).SetInt(chain.Units(stated, r.Decimals))
	units.Mul(units, big.NewRat(10_000, 1)).Quo(units, rest)
	whole := new(big.Int).Quo(units.Num(), units.Denom())
	return ramp.Must(ramp.AmountOfUnits(whole, r.Decimals)), stated
}

// AfterFee subtracts a fee in basis points from an amount.
func AfterFee(amount, fee ramp.Amount) ramp.Amount {
	rest := new(big.Rat).Sub(big.NewRat(10_000, 1), fee.Rat())
	return AmountOf(rest.Mul(rest, amount.Rat()).Quo(rest, big.NewRat(10_000, 1)))
}

// Token is the token of an order.
type Token ramp.IntentAsset

// TokenOf returns the token of an intent.
func TokenOf(intent *ramp.Intent) Token {
	_, tokens := Of(intent).Sides(intent)
	return Token((*tokens)[0])
}

// Contract returns the address of the contract.
func (t Token) Contract() common.Address { return common.HexToAddress(t.ID) }

// Moves returns the token transfers of an order: mints, burns and fees. A burn may burn one unit less.
func (r *Rules) Moves(intent *ramp.Intent, fee ramp.Amount, player common.Address, less bool) []chain.Move {
	contract := TokenOf(intent).Contract()
	before, after := r.Amounts(intent, fee)
	amount, net := chain.Units(before, r.Decimals), chain.Units(after, r.Decimals)
	if !Of(intent).Mint {
		if less {
			amount.Sub(amount, big.NewInt(1))
		}
		return []chain.Move{{Token: contract, From: player, Amount: amount}}
	}
	made := []chain.Move{{Token: contract, To: player, Amount: net}}
	if kept := new(big.Int).Sub(amount, net); kept.Sign() > 0 {
		made = append(made, chain.Move{Token: contract, To: ServiceAccount(), Amount: kept})
	}
	return made
}

// tokenType returns the type of the token that is traded for items.
func (r *Rules) tokenType(items []ramp.Item) ramp.AssetType {
	switch {
	case r.TokenType != "":
		return r.TokenType
	case slices.ContainsFunc(items, func(item ramp.Item) bool { return item.IsNonFungible }):
		return ramp.TypeNFT
	default:
		return ramp.TypeERC20
	}
}

// IsNonFungible reports whether the tokens of terms are non-fungible.
func (r *Rules) IsNonFungible(terms *ramp.InitializeIntent) bool {
	return slices.ContainsFunc(All,
		func(t *Trade) bool { return r.tokenType(t.Items(terms)) == ramp.TypeNFT })
}

// AmountOf converts an exact decimal to an amount. A sum may have more digits than
// an amount can hold; the result is then zero.
func AmountOf(n *big.Rat) ramp.Amount {
	amount, _ := ramp.ParseAmount(tally.Decimal(n))
	return amount
}

// Tokens returns a number of tokens in words.
func Tokens(n *big.Rat) string {
	if text := tally.Grouped(n); text != "1" {
		return text + " tokens"
	}
	return "1 token"
}
