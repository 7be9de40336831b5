package ramp

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Product is a token and the items of the game that it is exchanged for.
type Product struct {
	// Name identifies the product in this program: for [InitializeRequest].Product,
	// in [Step].Product and in the log. It is not sent. Required.
	Name string

	// Intent has the token, and what one token costs and is worth: a mint takes the
	// Materials for each token, and a burn grants the Outputs. Without Materials
	// there are no mints, and without Outputs no burns. The interface does not say
	// whether the items of an initialize call are the price of one token or of the
	// whole order (2.2, 2.5). Here they are the price of one. Required.
	Intent InitializeIntent
}

// Terms are the products that a game offers. A [Handler] rejects every order that is
// for none of them before it authenticates, signs or stores anything. Otherwise a
// player could choose the token, and burn a worthless one for your assets. Make Terms
// with [NewTerms], or use [AnyTerms]. Terms are safe for concurrent use.
type Terms struct {
	decimals map[string]int
	offers   atomic.Pointer[[]offer] // the current ones first

	mu     sync.Mutex
	proofs []*Proof // of the handlers with these terms
}

// offer is a product that is offered, or was until a short time ago.
type offer struct {
	Product
	until time.Time // when it expires; zero for a current one
}

// AnyTerms accepts every well-formed order, for a game that decides alone:
// [HandlerConfig].Policy, the Apply of a store or [Game.Validate] must then check the
// token and the price.
var AnyTerms = new(Terms)

// TermsConfig configures [Terms]. Products is required.
type TermsConfig struct {
	// Products are what the game offers. Two of them may have the same token, unless
	// they also have the same items in one direction, because an order could then be
	// for either. Required.
	Products []Product

	// Decimals says, for an asset ID, how many digits after the point the game
	// stores. An order that moves a fraction of the smallest unit, or more units than
	// an int64 holds, is rejected, because the game could not grant it after the
	// tokens are burned. By default every asset is stored in whole units.
	Decimals map[string]int
}

// NewTerms returns terms. The error is an [*InvalidError] that lists every missing or
// wrong field of c.
func NewTerms(c TermsConfig) (*Terms, error) {
	t := &Terms{decimals: maps.Clone(c.Decimals)}
	if err := t.Replace(c.Products, 0); err != nil {
		return nil, err
	}
	return t, nil
}

// Replace replaces the products while the program runs. Call it in every process that
// answers the service. The service does not say which price a player saw, so orders for
// the former products are accepted until grace has passed: by default [UUIDValidity],
// because a player cannot use an older UUID. -1 ends them at once. After an error, an
// [*InvalidError], nothing has changed. It is also an error if no burn of a product could
// end, because [Proof].Decimals of a handler lacks its token.
func (t *Terms) Replace(products []Product, grace time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var p problems
	offers := newOffers(&p, products)
	for _, proof := range t.proofs {
		proof.check(&p, offers)
	}
	if err := p.err(); err != nil {
		return err
	}
	for _, former := range t.valid() {
		if former.until.IsZero() {
			former.until = time.Now().Add(cmp.Or(grace, UUIDValidity))
		}
		offers = append(offers, former)
	}
	t.offers.Store(&offers)
	return nil
}

// newOffers returns copies of products, and adds what is wrong to p.
func newOffers(p *problems, products []Product) (offers []offer) {
	p.require(len(products) > 0, "TermsConfig.Products")
	for n, product := range products {
		at := fmt.Sprintf("TermsConfig.Products[%d].", n)
		intent := &product.Intent
		intent.Materials, intent.Outputs = slices.Clone(intent.Materials), slices.Clone(intent.Outputs)
		intent.check(p, at+"Intent.")
		p.require(product.Name != "", at+"Name")
		for _, other := range offers {
			if other.Name == product.Name {
				p.add(at+"Name", "is also the name of another product")
			}
			if intent.overlaps(&other.Intent, Mint) || intent.overlaps(&other.Intent, Burn) {
				p.add(at+"Intent", "has the same token and the same items as %q", other.Name)
			}
		}
		offers = append(offers, offer{Product: product})
	}
	return offers
}

// overlaps reports whether an order could be for either of two products.
func (i *InitializeIntent) overlaps(other *InitializeIntent, d Direction) bool {
	each, _ := i.price(d)
	others, _ := other.price(d)
	return each != nil && strings.EqualFold(i.Token, other.Token) &&
		slices.EqualFunc(each, others, func(a, b AssetAmount) bool { return a.ID == b.ID })
}

// price returns what one token costs or is worth, sorted by ID, and whether any of it
// is non-fungible.
func (i *InitializeIntent) price(d Direction) (each []AssetAmount, unique bool) {
	items := i.Materials
	if d == Burn {
		items = i.Outputs
	}
	for _, item := range items {
		each = append(each, AssetAmount{ID: item.ID, Amount: item.Amount})
		unique = unique || item.IsNonFungible
	}
	return byID(each), unique
}

// valid returns the offers that count now, the current ones first.
func (t *Terms) valid() []offer {
	if t == nil || t.offers.Load() == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(*t.offers.Load()), func(o offer) bool { return !o.until.IsZero() && !time.Now().Before(o.until) })
}

// intent returns the intent of a current product.
func (t *Terms) intent(name string) (InitializeIntent, error) {
	for _, o := range t.valid() {
		if o.Name == name && o.until.IsZero() {
			return o.Intent, nil
		}
	}
	return InitializeIntent{}, invalid("product", "must be the name of a product in ClientConfig.Terms")
}

// Match returns the name of the product that an order is for, and the number of
// tokens. The order must trade the token of the product and nothing else. It must
// move exactly the items of the product, in their exact amounts for each token and in
// units that the game can store ([TermsConfig].Decimals). The type of the token must
// be ERC20, or NFT if an item is non-fungible; the number of tokens must then be
// whole. The amounts are those before the fee of a mint, which the service deducts
// from the tokens.
//
// The error is a [*Rejection] with [CodeTerms]. It wraps an [*InvalidError] that says
// what differs. For [AnyTerms], all results are zero.
func (t *Terms) Match(order Intent) (product string, quantity Amount, err error) {
	if t == AnyTerms {
		return "", Amount{}, nil
	}
	o, reason := order.trade() // if it fails, there is nothing to match
	for _, offer := range t.valid() {
		if len(o.chain.assets) == 1 && strings.EqualFold(o.chain.assets[0].ID, offer.Intent.Token) { // the case of an address is a checksum
			differs := t.compare(&o, &offer.Product)
			if differs == nil {
				return offer.Name, o.chain.assets[0].Amount, nil
			}
			reason = cmp.Or(reason, differs) // the current product comes first
		}
	}
	return "", Amount{}, &Rejection{Code: CodeTerms, Err: cmp.Or(reason, invalid(o.chain.path, "must be exactly one token, that of a product"))}
}

// compare returns why an order with the token of a product is not for the product.
func (t *Terms) compare(o *trade, product *Product) error {
	token := o.chain.assets[0]
	count := token.Amount.Rat()
	each, unique := product.Intent.price(o.direction)
	switch {
	case each == nil:
		return invalid("intent", "is a %s, but product %q has no items for one", o.direction, product.Name)
	case !strings.EqualFold(string(token.Type), string(TypeERC20)) && // older messages have erc20
		!(unique && strings.EqualFold(string(token.Type), string(TypeNFT))):
		return invalid(o.chain.path+"[0].type", "must be ERC20, or NFT for a non-fungible item")
	case unique && !count.IsInt():
		return invalid(o.chain.path+"[0].amount", "must be a whole number, because an item is non-fungible")
	case !slices.EqualFunc(each, byID(o.assets), func(a, b AssetAmount) bool {
		return a.ID == b.ID && b.Amount.Rat().Cmp(new(big.Rat).Mul(a.Amount.Rat(), count)) == 0
	}):
		return invalid(o.game.path, "must be %v for each token, as for product %q", each, product.Name)
	case slices.ContainsFunc(o.assets, func(a AssetAmount) bool {
		units, err := a.Amount.Units(t.decimals[a.ID])
		return err != nil || !units.IsInt64()
	}):
		return invalid(o.game.path, "must be whole units (TermsConfig.Decimals) that fit an int64")
	}
	return nil
}
