package record

import (
	"math/big"
	"strings"
	"time"

	ramp "github.com/token-ramp/ramp-go"
)

// history is what has passed so far.
type history struct {
	calls  []*call
	orders []*order // in the order of their first calls
	now    time.Time
	keys   bool // whether readings of the HMAC key are known
}

// order is the calls about one UUID.
type order struct {
	initialize *call // nil if it did not pass here
	validates  []*call
	results    []*call
}

func newHistory(calls []*call, now time.Time, keys bool) *history {
	h := &history{calls: calls, now: now, keys: keys}
	byID := map[string]*order{}
	for _, c := range calls {
		id := strings.ToLower(strings.ReplaceAll(c.uuid, "-", ""))
		if id == "" {
			continue
		}
		o := byID[id]
		if o == nil {
			o = &order{}
			byID[id] = o
			h.orders = append(h.orders, o)
		}
		switch c.kind {
		case initialize:
			o.initialize = c
		case validate:
			o.validates = append(o.validates, c)
		case result:
			o.results = append(o.results, c)
		}
	}
	return h
}

// of returns the calls of a kind.
func (h *history) of(k kind) (calls []*call) {
	for _, c := range h.calls {
		if c.kind == k {
			calls = append(calls, c)
		}
	}
	return calls
}

// intent returns the first intent of an order that could be read.
func (o *order) intent() *ramp.Intent {
	for _, c := range o.validates {
		if c.validate != nil {
			return &c.validate.Intent
		}
	}
	return nil
}

// session returns the first validate call of an order, whose headers its results should have.
func (o *order) first() *call {
	if len(o.validates) == 0 {
		return nil
	}
	return o.validates[0]
}

// succeeded reports whether a result said that the transaction succeeded.
func (o *order) succeeded() bool {
	for _, c := range o.results {
		if c.result != nil && c.result.Succeeded() {
			return true
		}
	}
	return false
}

// price is how an order's amounts follow from its initialize call.
type price struct {
	perToken, perOrder bool // which readings fit
	gross, net         bool
}

// price compares what a validate call moves with what the game had offered. ok is false if
// either is unknown.
func (o *order) price() (p price, ok bool) {
	i := o.intent()
	if i == nil || o.initialize == nil || o.initialize.offer == nil {
		return p, false
	}
	direction, err := i.Direction()
	if err != nil || len(i.From) == 0 || len(i.To) == 0 {
		return p, false
	}
	offer := o.initialize.offer
	items, assets, tokens, fee := offer.Materials, i.From, i.To[0].Amount.Rat(), offer.Fee.Rat()
	if direction == ramp.Burn {
		items, assets, tokens, fee = offer.Outputs, i.To, i.From[0].Amount.Rat(), new(big.Rat)
	}
	number, ok := ratio(items, assets)
	if !ok {
		return p, true
	}
	net := new(big.Rat).Mul(number, new(big.Rat).Sub(big.NewRat(1, 1), fee.Quo(fee, big.NewRat(10_000, 1))))
	off := new(big.Rat).Sub(net, tokens)
	p.perOrder = number.Cmp(big.NewRat(1, 1)) == 0
	p.gross = number.Cmp(tokens) == 0
	// How the service rounds is unknown: less than a whole token is missing.
	p.net = !p.gross && off.Sign() >= 0 && off.Cmp(big.NewRat(1, 1)) < 0 && number.Cmp(tokens) > 0
	p.perToken = p.gross || p.net
	return p, true
}

// ratio returns by which number items must be multiplied to become assets.
func ratio(items []ramp.Item, assets []ramp.IntentAsset) (number *big.Rat, ok bool) {
	sums := map[string]*big.Rat{}
	for _, a := range assets {
		if sums[a.ID] == nil {
			sums[a.ID] = new(big.Rat)
		}
		sums[a.ID].Add(sums[a.ID], a.Amount.Rat())
	}
	if len(items) == 0 || len(items) != len(sums) {
		return nil, false
	}
	for _, item := range items {
		sum := sums[item.ID]
		if sum == nil || item.Amount.Sign() <= 0 {
			return nil, false
		}
		n := new(big.Rat).Quo(sum, item.Amount.Rat())
		if number != nil && number.Cmp(n) != 0 {
			return nil, false
		}
		number = n
	}
	return number, true
}
