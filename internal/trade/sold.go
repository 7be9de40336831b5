package trade

import (
	"math/big"
	"slices"
	"time"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence"
)

// Sold is that of package rampbooks, which documents it. Both have the same fields, so that one can be
// converted into the other.
type Sold struct {
	Product  ramp.Product
	From, To time.Time
}

// held reports whether an order that was accepted at a time may be for it.
func (s *Sold) held(at time.Time) bool {
	begun := s.From.IsZero() || !at.Before(s.From.Add(-evidence.Skew))
	return begun && (s.To.IsZero() || !at.After(s.To.Add(evidence.Skew)))
}

// costs reports whether the items and the tokens of an order are those of the product, as the price of
// each token or as that of an order.
func (s *Sold) costs(o *ramp.Order, tokens ramp.Amount) bool {
	items, each := s.Product.Materials, s.Product.Tokens.Sign() == 0
	if o.Direction == ramp.Burn {
		items = s.Product.Outputs
	}
	is := func(times *big.Rat) bool {
		return !slices.ContainsFunc(o.Assets, func(asset ramp.AssetAmount) bool {
			at := slices.IndexFunc(items, func(item ramp.Item) bool { return item.ID == asset.ID })
			return at < 0 || asset.Amount.Rat().Cmp(new(big.Rat).Mul(items[at].Amount.Rat(), times)) != 0
		})
	}
	if !each {
		return s.Product.Tokens.Cmp(tokens) == 0 && is(big.NewRat(1, 1))
	}
	return is(tokens.Rat()) || is(big.NewRat(1, 1))
}
