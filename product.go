package ramp

import (
	"fmt"
	"math/big"
	"strings"
)

// Product is a token and the items that it is exchanged for (interface 2.2).
type Product struct {
	Name       string // required: identifies the product in this program, and is not sent
	Token      string // required: the contract address, 0x and 40 hex digits
	MintFeeBps int    // fee of a mint in basis points: 100 is 1%
	Materials  []Item // what a mint takes for a token, or with PerOrder for an order; empty: no mints
	Outputs    []Item // what a burn grants, in the same way; empty: no burns

	// Tokens is the number of tokens of an order. With [TermsConfig].PerOrder it is required,
	// unless AnyTokens or [TermsConfig].Any is set. Without PerOrder it must be 0.
	Tokens Amount

	// AnyTokens, with PerOrder, accepts any number of tokens. Set it only if you cannot know the
	// number, and check it in [HandlerConfig].Policy: otherwise one price buys as many tokens as
	// the player asks for, and a burn of any fraction of a token earns the whole grant.
	AnyTokens bool
}

// check adds what is wrong to p. Each path begins with at.
func (p *Product) check(wrong *problems, at string) {
	checkOffer(wrong, at+"Token", p.Token, at+"MintFeeBps", p.MintFeeBps)
	checkItems(wrong, at+"Materials", p.Materials)
	checkItems(wrong, at+"Outputs", p.Outputs)
	if len(p.Materials)+len(p.Outputs) == 0 {
		wrong.add(at+"Materials", "and Outputs are empty: the product can be neither minted nor burned")
	}
}

// price returns what the product costs or is worth, sorted by ID, and whether any of it
// is non-fungible.
func (p *Product) price(d Direction) (items []AssetAmount, unique bool) {
	list := p.Materials
	if d == Burn {
		list = p.Outputs
	}
	for _, item := range list {
		items = append(items, AssetAmount{ID: item.ID, Amount: item.Amount})
		unique = unique || item.IsNonFungible
	}
	return byID(items), unique
}

// arbitrage says what a player gains by a mint of one product and a burn of another, for as many tokens
// as they like, or "". Of one product, no asset may be gained. Of two, one asset may be exchanged for
// another: whether that is a gain, the prices do not tell, nor if a number of tokens is open.
// comparable is then false.
func arbitrage(mint, burn *Product, perOrder bool) (gain string, comparable bool) {
	minted, known := mint.pricedTokens(perOrder)
	burned, alsoKnown := burn.pricedTokens(perOrder)
	switch {
	case !strings.EqualFold(mint.Token, burn.Token), len(mint.Materials) == 0, len(burn.Outputs) == 0:
		return "", true
	case !known || !alsoKnown:
		return "", false
	}
	minted.Mul(minted, big.NewRat(10_000-int64(mint.MintFeeBps), 10_000)) // the fee is subtracted
	// Both prices, for minted times burned tokens.
	costs, pays := scaled(mint.Materials, burned), scaled(burn.Outputs, minted)
	loses := false
	for id, cost := range costs {
		loses = loses || pays[id] == nil || pays[id].Cmp(cost) < 0
	}
	for _, item := range burn.Outputs {
		if cost := costs[item.ID]; pays[item.ID].Sign() > 0 && (cost == nil || pays[item.ID].Cmp(cost) > 0) {
			if loses && mint.Name != burn.Name {
				return "", false
			}
			return fmt.Sprintf("a burn of %q pays more %s than a mint of %q costs",
				burn.Name, shown(item.ID), mint.Name), true
		}
	}
	return "", true
}

// scaled returns how much of each asset a price is, times a factor.
func scaled(price []Item, times *big.Rat) map[string]*big.Rat {
	amounts := map[string]*big.Rat{}
	for _, item := range price {
		amounts[item.ID] = new(big.Rat).Mul(item.Amount.Rat(), times)
	}
	return amounts
}

// pricedTokens returns the number of tokens that the price is for, and whether it is known.
func (p *Product) pricedTokens(perOrder bool) (*big.Rat, bool) {
	if !perOrder {
		return big.NewRat(1, 1), true
	}
	return p.Tokens.Rat(), p.Tokens.Sign() > 0
}
