package support

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
)

// assets are the tokens of a period, and the products that orders trade them for.
type assets struct {
	tokens   []common.Address // sorted
	decimals map[common.Address]int
	offers   map[string]*offer // by their token, direction and items
}

// offer is a product in one direction, under each of its prices.
type offer struct {
	name string
	fees []int // in basis points
}

// newAssets returns the tokens and products of a period, without decimals.
func newAssets(p *Period) *assets {
	a := &assets{tokens: slices.Clone(p.Tokens), decimals: map[common.Address]int{}, offers: map[string]*offer{}}
	add := func(product *ramp.Product, d ramp.Direction, items []ramp.Item) {
		var ids []string
		for _, item := range items {
			ids = append(ids, item.ID)
			if item.IsNonFungible {
				a.decimals[common.HexToAddress(product.Intent.Token)] = 0
			}
		}
		key := offerKey(common.HexToAddress(product.Intent.Token), d, ids)
		if a.offers[key] == nil {
			a.offers[key] = &offer{name: product.Name}
		}
		if fees := &a.offers[key].fees; !slices.Contains(*fees, product.Intent.MintFeeBps) {
			*fees = append(*fees, product.Intent.MintFeeBps)
		}
	}
	for i := range p.Products {
		product := &p.Products[i]
		a.tokens = append(a.tokens, common.HexToAddress(product.Intent.Token))
		add(product, ramp.Mint, product.Intent.Materials)
		add(product, ramp.Burn, product.Intent.Outputs)
	}
	slices.SortFunc(a.tokens, common.Address.Cmp)
	a.tokens = slices.Compact(a.tokens)
	return a
}

func offerKey(token common.Address, d ramp.Direction, ids []string) string {
	slices.Sort(ids)
	return string(token[:]) + d.String() + strings.Join(ids, "\x00")
}

// offer returns the product of an order, or nil.
func (a *assets) offer(o *ramp.Order, token common.Address) *offer {
	ids := make([]string, len(o.Assets), max(1, len(o.Assets)))
	for i := range o.Assets {
		ids[i] = o.Assets[i].ID
	}
	return a.offers[offerKey(token, o.Direction, ids)]
}

// product returns the name of the product of an order, or else its token.
func (a *assets) product(o *ramp.Order) string {
	traded := a.ordered(o)
	if found := a.offer(o, traded.token); found != nil {
		return found.name
	}
	return traded.token.Hex()
}

// amount returns units of a token as an amount.
func (a *assets) amount(token common.Address, units *big.Int) ramp.Amount {
	if units == nil {
		return ramp.Amount{}
	}
	amount, _ := ramp.AmountOfUnits(units, a.decimals[token]) // 256 bits have few enough digits
	return amount
}

// ordered is what an order trades on the chain.
type ordered struct {
	token common.Address
	user  common.Address // zero if the player was erased
	units *big.Int       // nil if the order cannot be compared
}

func (o ordered) amount(a *assets) ramp.Amount { return a.amount(o.token, o.units) }

// ordered returns what an order trades on the chain: some amount of one token.
func (a *assets) ordered(o *ramp.Order) ordered {
	side := o.Intent.To
	if o.Direction == ramp.Burn {
		side = o.Intent.From
	}
	var traded ordered
	if common.IsHexAddress(o.UserAddress) {
		traded.user = common.HexToAddress(o.UserAddress)
	}
	if len(side) == 0 || !common.IsHexAddress(side[0].ID) {
		return traded
	}
	traded.token = common.HexToAddress(side[0].ID)
	decimals, known := a.decimals[traded.token]
	if !known {
		return traded
	}
	sum := new(big.Int)
	for i := range side {
		if i > 0 && !strings.EqualFold(side[i].ID, side[0].ID) {
			return traded
		}
		units, err := unitsOf(side[i].Amount, decimals)
		if err != nil {
			return traded
		}
		sum.Add(sum, units)
	}
	traded.units = sum
	return traded
}

// unitsOf is [ramp.Amount.Units], which is slow for the whole numbers that most orders
// have.
func unitsOf(amount ramp.Amount, decimals int) (*big.Int, error) {
	n, err := amount.Int64()
	if err != nil {
		return amount.Units(decimals)
	}
	units := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)
	return units.Mul(units, big.NewInt(n)), nil
}

// fits reports whether an event can be that of an order by its amount. A mint is net of
// the fee: of one of the product's fees, or of any if the product is not known.
func (a *assets) fits(o *ramp.Order, traded ordered, moved *big.Int) bool {
	if traded.units == nil || o.Direction == ramp.Burn {
		return traded.units != nil && traded.units.Cmp(moved) == 0
	}
	if moved.Sign() <= 0 || moved.Cmp(traded.units) > 0 {
		return false
	}
	found := a.offer(o, traded.token)
	return found == nil || slices.ContainsFunc(found.fees, func(bps int) bool {
		const all = 10_000
		net := new(big.Int).Mul(traded.units, big.NewInt(int64(all-bps)))
		net.Sub(net, new(big.Int).Mul(moved, big.NewInt(all)))
		return net.CmpAbs(big.NewInt(all)) < 0 // less than one unit, which is rounded either way
	})
}

// feeOf says which fees a mint may have, for a finding.
func (a *assets) feeOf(o *ramp.Order, traded ordered) string {
	if found := a.offer(o, traded.token); o.Direction == ramp.Mint && found != nil {
		return fmt.Sprintf("; the fee of %s is %v basis points", found.name, found.fees)
	}
	return ""
}

// sum adds amounts up.
type sum struct {
	whole int64
	rest  ramp.Amount // what does not fit whole
}

func (s *sum) add(a ramp.Amount) {
	n, err := a.Int64()
	if next := s.whole + n; err == nil && (next >= s.whole) == (n >= 0) {
		s.whole = next
		return
	}
	s.rest, _ = s.rest.Add(a) // an amount of more than 100 digits is in no game
}

func (s *sum) amount() ramp.Amount {
	total, _ := s.rest.Add(ramp.NewAmount(s.whole))
	return total
}

// sums adds up amounts of game assets.
type sums map[string]*sum

func (s sums) add(list []ramp.AssetAmount) {
	for _, a := range list {
		if s[a.ID] == nil {
			s[a.ID] = new(sum)
		}
		s[a.ID].add(a.Amount)
	}
}

func (s sums) amounts() (list []ramp.AssetAmount) {
	for id, n := range s {
		list = append(list, ramp.AssetAmount{ID: id, Amount: n.amount()})
	}
	slices.SortFunc(list, func(a, b ramp.AssetAmount) int { return strings.Compare(a.ID, b.ID) })
	return list
}
