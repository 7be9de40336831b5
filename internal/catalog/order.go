package catalog

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence"
)

// Order is an order, and what it trades on the chain.
type Order struct {
	ramp.Order
	Token common.Address
	User  common.Address
	Units *big.Int // nil if the order cannot be compared

	offers []*Offer // that it may be for; none if it is for no product
}

// Order returns what an order trades on the chain: some amount of one token.
func (c *Catalog) Order(o ramp.Order) *Order {
	side := evidence.TokensOf(&o)
	t := &Order{Order: o}
	if common.IsHexAddress(o.UserAddress) {
		t.User = common.HexToAddress(o.UserAddress)
	}
	if len(side) == 0 || !common.IsHexAddress(side[0].ID) {
		return t
	}
	t.Token = common.HexToAddress(side[0].ID)
	t.offers = c.offersFor(&o, t.Token, side[0].Amount)
	decimals, known := c.Decimals[t.Token]
	sum := new(big.Int)
	for i := range side {
		units, err := side[i].Amount.Units(decimals)
		if !known || err != nil || !strings.EqualFold(side[i].ID, side[0].ID) {
			return t
		}
		sum.Add(sum, units)
	}
	t.Units = sum
	return t
}

// IsUser reports whether an account may be the user of the order. Only a player who was
// erased, as EraseSession of a rampsql.Store does, may be anybody.
func (t *Order) IsUser(account common.Address) bool {
	return t.User == account && common.IsHexAddress(t.UserAddress) ||
		strings.HasPrefix(t.UserAddress, "erased-")
}

// Product returns the name of the product, or else the token.
func (t *Order) Product() string {
	if len(t.offers) == 0 || slices.ContainsFunc(t.offers, func(s *Offer) bool {
		return s.Product.Name != t.offers[0].Product.Name
	}) {
		return t.Token.Hex()
	}
	return t.offers[0].Product.Name
}

// Fits reports whether so many units or pieces can be what the order moved. A mint is net of the fee: of one
// of the product's fees, or of any if the product is not known. Pieces are whole, and have no fee.
func (t *Order) Fits(moved *big.Int, pieces bool) bool {
	if t.Units == nil || t.Direction == ramp.Burn || pieces {
		return t.Units != nil && t.Units.Cmp(moved) == 0
	}
	if moved.Sign() <= 0 || moved.Cmp(t.Units) > 0 {
		return false
	}
	return len(t.offers) == 0 || slices.ContainsFunc(t.offers, func(s *Offer) bool {
		const all = 10_000
		net := new(big.Int).Mul(t.Units, big.NewInt(int64(all-s.Product.MintFeeBps)))
		net.Sub(net, new(big.Int).Mul(moved, big.NewInt(all)))
		return net.CmpAbs(big.NewInt(all)) < 0 // less than one unit, which is rounded either way
	})
}

// Fees says which fees a mint may have, as the end of a sentence, or returns "".
func (t *Order) Fees() string {
	if t.Direction != ramp.Mint || len(t.offers) == 0 {
		return ""
	}
	var fees []int
	for _, s := range t.offers {
		if !slices.Contains(fees, s.Product.MintFeeBps) {
			fees = append(fees, s.Product.MintFeeBps)
		}
	}
	return fmt.Sprintf("; the fee of %s is %v basis points", t.Product(), fees)
}
