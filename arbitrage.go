package ramp

import (
	"fmt"
	"math/big"
	"strings"
)

// arbitrage says what a player gains by a mint of one product and a burn of another, for as many tokens
// as they like, or "". Of one product, no asset may be gained. Of two, one asset may be exchanged for
// another: whether that is a gain, the prices do not tell, nor if a number of tokens is open.
// comparable is then false.
func (c *TermsConfig) arbitrage(mint, burn *Product) (gain string, comparable bool) {
	minted, known := c.tokensOf(mint)
	burned, alsoKnown := c.tokensOf(burn)
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

// tokensOf returns the number of tokens that a price of a product is for, and whether it is known.
func (c *TermsConfig) tokensOf(p *Product) (*big.Rat, bool) {
	if !c.PerOrder {
		return big.NewRat(1, 1), true
	}
	return p.Tokens.Rat(), p.Tokens.Sign() > 0
}

// arbitrageWarnings returns what an operator should know about prices that count at the same time.
func (t *Terms) arbitrageWarnings() (all []string) {
	products := t.Products()
	for i := range products {
		for j := range products {
			mint, burn := &products[i], &products[j]
			switch gain, comparable := t.config.arbitrage(mint, burn); {
			case gain != "":
				all = append(all, gain+": TermsConfig.AllowArbitrage allows that players repeat this")
			case !comparable:
				all = append(all, fmt.Sprintf("the price of a mint of %q cannot be compared with that of a "+
					"burn of %q: check that nobody gains by repeating both", mint.Name, burn.Name))
			}
		}
	}
	return all
}
