package catalog

import (
	"math/big"
	"slices"
	"time"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence"
)

// Offer is that of package rampbooks, which documents it. Both have the same fields, so that one can be
// converted into the other.
type Offer struct {
	Product  ramp.Product
	From, To time.Time
}

// validAt reports whether an order that was accepted at a time may be for it.
func (o *Offer) validAt(at time.Time) bool {
	begun := o.From.IsZero() || !at.Before(o.From.Add(-evidence.Skew))
	return begun && (o.To.IsZero() || !at.After(o.To.Add(evidence.Skew)))
}

// costs reports whether the items and the tokens of an order are those of the product, as the price of
// each token or as that of an order.
func (o *Offer) costs(order *ramp.Order, tokens ramp.Amount) bool {
	items, each := o.Product.Materials, o.Product.Tokens.Sign() == 0
	if order.Direction == ramp.Burn {
		items = o.Product.Outputs
	}
	is := func(times *big.Rat) bool {
		return !slices.ContainsFunc(order.Assets, func(asset ramp.AssetAmount) bool {
			at := slices.IndexFunc(items, func(item ramp.Item) bool { return item.ID == asset.ID })
			return at < 0 || asset.Amount.Rat().Cmp(new(big.Rat).Mul(items[at].Amount.Rat(), times)) != 0
		})
	}
	if !each {
		return o.Product.Tokens.Cmp(tokens) == 0 && is(big.NewRat(1, 1))
	}
	return is(tokens.Rat()) || is(big.NewRat(1, 1))
}
