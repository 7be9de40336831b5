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

// Amount is an exact amount. In JSON it is a string, because many readers round numbers.
type Amount struct{ ramp.Amount }

// MarshalJSON writes the amount as a string.
func (a Amount) MarshalJSON() ([]byte, error) { return []byte(`"` + a.String() + `"`), nil }

// UnmarshalJSON reads what MarshalJSON wrote.
func (a *Amount) UnmarshalJSON(b []byte) (err error) {
	a.Amount, err = ramp.ParseAmount(strings.Trim(string(b), `"`))
	return err
}

// assets are the tokens of a game, and the products that orders trade them for.
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

// newAssets returns the tokens and products of a game, without decimals.
func newAssets(c *Config) *assets {
	a := &assets{tokens: slices.Clone(c.Tokens), decimals: map[common.Address]int{}, offers: map[string]*offer{}}
	add := func(product *ramp.Product, d ramp.Direction, items []ramp.Item) {
		var ids []string
		for _, item := range items {
			ids = append(ids, item.ID)
			if item.IsNonFungible {
				a.decimals[common.HexToAddress(product.Token)] = 0
			}
		}
		key := offerKey(common.HexToAddress(product.Token), d, ids)
		if a.offers[key] == nil {
			a.offers[key] = &offer{name: product.Name}
		}
		if fees := &a.offers[key].fees; !slices.Contains(*fees, product.MintFeeBps) {
			*fees = append(*fees, product.MintFeeBps)
		}
	}
	for i := range c.Products {
		product := &c.Products[i]
		a.tokens = append(a.tokens, common.HexToAddress(product.Token))
		add(product, ramp.Mint, product.Materials)
		add(product, ramp.Burn, product.Outputs)
	}
	slices.SortFunc(a.tokens, common.Address.Cmp)
	a.tokens = slices.Compact(a.tokens)
	return a
}

func offerKey(token common.Address, d ramp.Direction, ids []string) string {
	slices.Sort(ids)
	return string(token[:]) + string(d) + strings.Join(ids, "\x00")
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
	token common.Address
	user  common.Address
	units *big.Int // nil if the order cannot be compared
	offer *offer   // nil if it is for no product
}

// isUser reports whether an account may be the user of the order. Only a player who was
// erased, as EraseSession of a rampsql.Store does, may be anybody.
func (t *traded) isUser(account common.Address) bool {
	return t.user == account && common.IsHexAddress(t.UserAddress) || strings.HasPrefix(t.UserAddress, "erased-")
}

// product returns the name of the product, or else the token.
func (t *traded) product() string {
	if t.offer != nil {
		return t.offer.name
	}
	return t.token.Hex()
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
	ids := make([]string, len(o.Assets))
	for i := range o.Assets {
		ids[i] = o.Assets[i].ID
	}
	t.offer = a.offers[offerKey(t.token, o.Direction, ids)]
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

// fits reports whether an event can be that of the order by its amount. A mint is net of
// the fee: of one of the product's fees, or of any if the product is not known.
func (t *traded) fits(moved *big.Int) bool {
	if t.units == nil || t.Direction == ramp.Burn {
		return t.units != nil && t.units.Cmp(moved) == 0
	}
	if moved.Sign() <= 0 || moved.Cmp(t.units) > 0 {
		return false
	}
	return t.offer == nil || slices.ContainsFunc(t.offer.fees, func(bps int) bool {
		const all = 10_000
		net := new(big.Int).Mul(t.units, big.NewInt(int64(all-bps)))
		net.Sub(net, new(big.Int).Mul(moved, big.NewInt(all)))
		return net.CmpAbs(big.NewInt(all)) < 0 // less than one unit, which is rounded either way
	})
}

// fee says which fees a mint may have, for a finding.
func (t *traded) fee() string {
	if t.Direction == ramp.Mint && t.offer != nil {
		return fmt.Sprintf("; the fee of %s is %v basis points", t.offer.name, t.offer.fees)
	}
	return ""
}

// add adds amounts of game assets to sums.
func add(sums map[string]Amount, list []ramp.AssetAmount) map[string]Amount {
	for _, a := range list {
		sum, _ := sums[a.ID].Add(a.Amount) // an amount of more than 100 digits is in no game
		sums[a.ID] = Amount{sum}
	}
	return sums
}
