// Package catalog has the tokens and products of a game: what an order trades on the chain, in units of its
// token, and what its event may have moved. Packages support and rampbooks share it.
package catalog

import (
	"math/big"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
)

// Catalog has the tokens of a game, and the products that orders trade them for.
type Catalog struct {
	Tokens   []common.Address // sorted
	Decimals map[common.Address]int

	offers map[string][]*Offer // by their token, direction and items
}

// New returns the tokens and products of a game, without the decimals that a contract says.
func New(tokens []common.Address, products []Offer) *Catalog {
	c := &Catalog{Tokens: slices.Clone(tokens),
		Decimals: map[common.Address]int{}, offers: map[string][]*Offer{}}
	add := func(offer *Offer, d ramp.Direction, items []ramp.Item) {
		token := common.HexToAddress(offer.Product.Token)
		var ids []string
		for _, item := range items {
			ids = append(ids, item.ID)
			if item.IsNonFungible {
				c.Decimals[token] = 0
			}
		}
		key := offerKey(token, d, ids)
		c.offers[key] = append(c.offers[key], offer)
	}
	for i := range products {
		offer := &products[i]
		c.Tokens = append(c.Tokens, common.HexToAddress(offer.Product.Token))
		add(offer, ramp.Mint, offer.Product.Materials)
		add(offer, ramp.Burn, offer.Product.Outputs)
	}
	slices.SortFunc(c.Tokens, common.Address.Cmp)
	c.Tokens = slices.Compact(c.Tokens)
	return c
}

// Knows reports whether a setting names a token, so that its events are read.
func (c *Catalog) Knows(token common.Address) bool {
	_, known := slices.BinarySearchFunc(c.Tokens, token, common.Address.Cmp)
	return known
}

func offerKey(token common.Address, d ramp.Direction, ids []string) string {
	slices.Sort(ids)
	return string(token[:]) + string(d) + strings.Join(ids, "\x00")
}

// offersFor returns the products that an order may be for: those of its token and items that held when
// it was accepted, or all of them if none did, and of these those that cost as much, if some do.
func (c *Catalog) offersFor(o *ramp.Order, token common.Address, tokens ramp.Amount) []*Offer {
	ids := make([]string, len(o.Assets))
	for i := range o.Assets {
		ids[i] = o.Assets[i].ID
	}
	offers := c.offers[offerKey(token, o.Direction, ids)]
	if len(offers) <= 1 {
		return offers
	}
	if valid := filter(offers, func(s *Offer) bool { return s.validAt(o.AcceptedAt) }); len(valid) > 0 {
		offers = valid
	}
	if cost := filter(offers, func(s *Offer) bool { return s.costs(o, tokens) }); len(cost) > 0 {
		offers = cost
	}
	return offers
}

func filter(offers []*Offer, want func(*Offer) bool) (wanted []*Offer) {
	for _, s := range offers {
		if want(s) {
			wanted = append(wanted, s)
		}
	}
	return wanted
}

// Amount returns units of a token as an amount, or 0 for nil.
func (c *Catalog) Amount(token common.Address, units *big.Int) ramp.Amount {
	if units == nil {
		return ramp.Amount{}
	}
	amount, _ := ramp.AmountOfUnits(units, c.Decimals[token]) // 256 bits have few enough digits
	return amount
}
