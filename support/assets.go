package support

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence"
)

// assets are the tokens of a game, and the products that orders trade them for.
type assets struct {
	tokens   []common.Address // sorted
	decimals map[common.Address]int
	offers   map[string][]*Sold // by their token, direction and items
}

// newAssets returns the tokens and products of a game, without decimals.
func newAssets(c *Config) *assets {
	a := &assets{tokens: slices.Clone(c.Tokens),
		decimals: map[common.Address]int{}, offers: map[string][]*Sold{}}
	add := func(sold *Sold, d ramp.Direction, items []ramp.Item) {
		token := common.HexToAddress(sold.Product.Token)
		var ids []string
		for _, item := range items {
			ids = append(ids, item.ID)
			if item.IsNonFungible {
				a.decimals[token] = 0
			}
		}
		key := offerKey(token, d, ids)
		a.offers[key] = append(a.offers[key], sold)
	}
	for i := range c.Products {
		sold := &c.Products[i]
		a.tokens = append(a.tokens, common.HexToAddress(sold.Product.Token))
		add(sold, ramp.Mint, sold.Product.Materials)
		add(sold, ramp.Burn, sold.Product.Outputs)
	}
	slices.SortFunc(a.tokens, common.Address.Cmp)
	a.tokens = slices.Compact(a.tokens)
	return a
}

// knows reports whether a setting names a token, so that its events are read.
func (a *assets) knows(token common.Address) bool {
	_, known := slices.BinarySearchFunc(a.tokens, token, common.Address.Cmp)
	return known
}

func offerKey(token common.Address, d ramp.Direction, ids []string) string {
	slices.Sort(ids)
	return string(token[:]) + string(d) + strings.Join(ids, "\x00")
}

// offersFor returns the products that an order may be for: those of its token and items that held when
// it was accepted, or all of them if none did, and of these those that cost as much, if some do.
func (a *assets) offersFor(o *ramp.Order, token common.Address, tokens ramp.Amount) []*Sold {
	ids := make([]string, len(o.Assets))
	for i := range o.Assets {
		ids[i] = o.Assets[i].ID
	}
	offers := a.offers[offerKey(token, o.Direction, ids)]
	if len(offers) <= 1 {
		return offers
	}
	if held := filter(offers, func(s *Sold) bool { return s.held(o.AcceptedAt) }); len(held) > 0 {
		offers = held
	}
	if cost := filter(offers, func(s *Sold) bool { return s.costs(o, tokens) }); len(cost) > 0 {
		offers = cost
	}
	return offers
}

func filter(offers []*Sold, want func(*Sold) bool) (wanted []*Sold) {
	for _, s := range offers {
		if want(s) {
			wanted = append(wanted, s)
		}
	}
	return wanted
}

// amount returns units of a token as an amount.
func (a *assets) amount(token common.Address, units *big.Int) Amount {
	if units == nil {
		return Amount{}
	}
	amount, _ := ramp.AmountOfUnits(units, a.decimals[token]) // 256 bits have few enough digits
	return Amount{amount}
}

// traded is an order, and what it trades on the chain.
type traded struct {
	ramp.Order
	token  common.Address
	user   common.Address
	units  *big.Int // nil if the order cannot be compared
	offers []*Sold  // that it may be for; none if it is for no product
}

// isUser reports whether an account may be the user of the order. Only a player who was
// erased, as EraseSession of a rampsql.Store does, may be anybody.
func (t *traded) isUser(account common.Address) bool {
	return t.user == account && common.IsHexAddress(t.UserAddress) ||
		strings.HasPrefix(t.UserAddress, "erased-")
}

// product returns the name of the product, or else the token.
func (t *traded) product() string {
	if len(t.offers) == 0 || slices.ContainsFunc(t.offers, func(s *Sold) bool {
		return s.Product.Name != t.offers[0].Product.Name
	}) {
		return t.token.Hex()
	}
	return t.offers[0].Product.Name
}

// traded returns what an order trades on the chain: some amount of one token.
func (a *assets) traded(o ramp.Order) *traded {
	side := evidence.TokensOf(&o)
	t := &traded{Order: o}
	if common.IsHexAddress(o.UserAddress) {
		t.user = common.HexToAddress(o.UserAddress)
	}
	if len(side) == 0 || !common.IsHexAddress(side[0].ID) {
		return t
	}
	t.token = common.HexToAddress(side[0].ID)
	t.offers = a.offersFor(&o, t.token, side[0].Amount)
	decimals, known := a.decimals[t.token]
	sum := new(big.Int)
	for i := range side {
		units, err := side[i].Amount.Units(decimals)
		if !known || err != nil || !strings.EqualFold(side[i].ID, side[0].ID) {
			return t
		}
		sum.Add(sum, units)
	}
	t.units = sum
	return t
}

// fits reports whether so much can be what the order moved. A mint is net of
// the fee: of one of the product's fees, or of any if the product is not known.
func (t *traded) fits(moved *big.Int) bool {
	if t.units == nil || t.Direction == ramp.Burn {
		return t.units != nil && t.units.Cmp(moved) == 0
	}
	if moved.Sign() <= 0 || moved.Cmp(t.units) > 0 {
		return false
	}
	return len(t.offers) == 0 || slices.ContainsFunc(t.offers, func(s *Sold) bool {
		const all = 10_000
		net := new(big.Int).Mul(t.units, big.NewInt(int64(all-s.Product.MintFeeBps)))
		net.Sub(net, new(big.Int).Mul(moved, big.NewInt(all)))
		return net.CmpAbs(big.NewInt(all)) < 0 // less than one unit, which is rounded either way
	})
}

// share returns how much of an event the order moved, or nil if the event does not fit. The account that
// receives the fees may buy, too: the order is then one of the event's transfers, and the fee another.
func (t *traded) share(e *ChainEvent) *big.Int {
	if t.fits(e.units) {
		return e.units
	}
	if t.Direction == ramp.Mint && t.units != nil && e.units.Cmp(t.units) <= 0 {
		if at := slices.IndexFunc(e.parts, t.fits); at >= 0 {
			return e.parts[at]
		}
	}
	return nil
}

// own returns which of the events of its transaction is the order's own, or -1, and how much of it is its
// share, or nil if it does not fit. Of an erased player any may be, so one that fits comes before one that
// does not, and a larger one before a smaller one, which may be the fee.
func (t *traded) own(events []ChainEvent) (own int, share *big.Int) {
	own = -1
	for i := range events {
		e := &events[i]
		if e.Token != t.token || e.Direction != t.Direction || !t.isUser(e.User) {
			continue
		}
		part := t.share(e)
		alike := (part == nil) == (share == nil)
		if own < 0 || !alike && part != nil || alike && e.units.Cmp(events[own].units) > 0 {
			own, share = i, part
		}
	}
	return own, share
}

// fee says which fees a mint may have, for a finding.
func (t *traded) fee() string {
	if t.Direction != ramp.Mint || len(t.offers) == 0 {
		return ""
	}
	var fees []int
	for _, s := range t.offers {
		if !slices.Contains(fees, s.Product.MintFeeBps) {
			fees = append(fees, s.Product.MintFeeBps)
		}
	}
	return fmt.Sprintf("; the fee of %s is %v basis points", t.product(), fees)
}

// add adds amounts of game assets to sums.
func add(sums map[string]Amount, list []ramp.AssetAmount) map[string]Amount {
	for _, a := range list {
		sum, _ := sums[a.ID].Add(a.Amount) // an amount of more than 100 digits is in no game
		sums[a.ID] = Amount{sum}
	}
	return sums
}

// found returns an order for a finding.
func (a *assets) found(t *traded) FoundOrder {
	return FoundOrder{
		t.UUID, t.State, t.Direction, t.product(), a.amount(t.token, t.units),
		add(map[string]Amount{}, t.Assets), t.SessionID, t.UserAddress, t.TxHash,
		t.AcceptedAt, t.FinishedAt, t.Reason, t.Settled, nil}
}
