package ramp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Terms are the products that a game offers. If an order is for none of them, a [Handler]
// rejects it before it asks the game: otherwise players could burn worthless tokens.
type Terms struct {
	config TermsConfig
	offers atomic.Pointer[[]offer] // the current ones first

	mu sync.Mutex // of Replace
}

// requireMade rejects terms that NewTerms has not made, such as new(Terms).
func (p *problems) requireMade(t *Terms, path string) {
	if t != nil && t.offers.Load() == nil {
		p.add(path, "must be made by NewTerms")
	}
}

// offer is a product that is offered, or was until a short time ago.
type offer struct {
	Product
	until      time.Time // when its grace ends; zero for a current one
	mint, burn time.Time // when orders of the direction begin to count
}

// begins returns when the offer begins to count for orders of a direction.
func (o *offer) begins(d Direction) *time.Time {
	if d == Burn {
		return &o.burn
	}
	return &o.mint
}

// TermsConfig configures [Terms].
type TermsConfig struct {
	// ProjectID is from the console. A [Handler] rejects validate calls for other projects with HTTP
	// 400, and a result for an order of another project gets HTTP 500 ([ErrOrderForeign]). Required,
	// unless Any is set: an empty ProjectID then accepts every project.
	ProjectID string

	// Former are the IDs of projects that the game had before. What was accepted for them ends: a result is
	// taken, and a repeat of an accepted validate call is signed. A new order for one of them is declined
	// with [CodeInvalidMessage]. Keep the former HMAC key with [HMACKey.WithPrevious], and list them in
	// Projects of rampsql.Config, too.
	Former []string

	// Network is [Mainnet] or [Testnet]. No call names its network, so it is stored with each order,
	// and a call for an order of the other network gets HTTP 500 ([ErrOrderForeign]). So give each
	// network its own terms, handler and paths. Required, unless Any is set: an empty Network then
	// stores none.
	Network Network

	// Products may share a token, if no order could match two of them, and if no burn pays more of an
	// asset than a mint of the same token costs: see AllowArbitrage. Required unless Any is set.
	Products []Product

	// AllowArbitrage accepts prices with which a player gains by repeating a mint and a burn of the same
	// token. Set it only if something else limits both, such as [HandlerConfig].Policy. By default, a
	// burn must not pay more of any asset than a mint of the same product costs, after the mint's fee.
	// If they are of different products, it may pay more of one asset and less of another. What cannot
	// be compared, such as these, or prices for AnyTokens, is logged by [Handler.Check]. Cycles over
	// several tokens are not looked for.
	AllowArbitrage bool

	// PerOrder says that Materials and Outputs are the price of a whole order, and not of one token.
	// The interface does not say which (2.2, 2.5): compare a validate call with its initialize call.
	// Unless Any is set, each product must then set Tokens or AnyTokens.
	PerOrder bool

	// Any accepts every well-formed order: [HandlerConfig].Policy or the Apply of a store must then
	// check token and price. Products are then for [Client.Initialize] only.
	Any bool

	// Decimals says, for an asset ID, how many digits after the point the game stores, by default
	// none. An order of a fraction of a unit, or of more than an int64 holds, is rejected. With
	// Any, nothing of this is checked: do it in Policy or Apply.
	Decimals map[string]int
}

// UnmarshalJSON reads a price list with the names of the fields, such as MintFeeBps, or with those of
// the interface, such as mint_fee_bps. Any other name is an error, as is one that occurs twice: a fee or
// a price that is not read would be 0.
func (c *TermsConfig) UnmarshalJSON(b []byte) error {
	type plain TermsConfig
	return unmarshalNamed(b, (*plain)(c))
}

// UnmarshalJSON reads a product as [TermsConfig.UnmarshalJSON] does.
func (p *Product) UnmarshalJSON(b []byte) error {
	type plain Product
	return unmarshalNamed(b, (*plain)(p))
}

// unmarshalNamed reads an object into the struct behind into. A field and a name belong together if
// they differ in case and underscores only.
func unmarshalNamed(b []byte, into any) error {
	joined := func(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }
	decoder, target := json.NewDecoder(bytes.NewReader(b)), reflect.ValueOf(into).Elem()
	decoder.DisallowUnknownFields() // of items
	if open, err := decoder.Token(); err != nil || open != json.Delim('{') {
		return cmp.Or(err, errors.New("ramp: must be an object"))
	}
	seen := map[string]bool{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return err
		}
		name := joined(fmt.Sprint(token))
		field := target.FieldByNameFunc(func(f string) bool { return joined(f) == name })
		switch {
		case !field.IsValid():
			return fmt.Errorf("ramp: %q is no field of the price list", token)
		case seen[name]:
			return fmt.Errorf("ramp: %q occurs twice in the price list", token)
		}
		seen[name] = true
		if err := decoder.Decode(field.Addr().Interface()); err != nil {
			return fmt.Errorf("ramp: %q of the price list: %w", token, err)
		}
	}
	_, err := decoder.Token()
	return err
}

// projects returns those whose orders are the game's, or nil for every project.
func (c *TermsConfig) projects() []string {
	if c.ProjectID == "" {
		return nil
	}
	return append([]string{c.ProjectID}, c.Former...)
}

// NewTerms returns terms.
func NewTerms(c TermsConfig) (*Terms, error) {
	var p problems
	if c.ProjectID != "" || !c.Any {
		p.requireTyped(c.ProjectID, "TermsConfig.ProjectID")
	}
	if c.ProjectID == "" && len(c.Former) > 0 && c.Any {
		p.add("TermsConfig.ProjectID", "is required with Former")
	}
	for i, former := range c.Former {
		path := fmt.Sprintf("TermsConfig.Former[%d]", i)
		p.requireTyped(former, path)
		if former == c.ProjectID && former != "" {
			p.add(path, "must be another project than ProjectID")
		}
	}
	if c.Network != "" || !c.Any {
		checkNetwork(&p, "TermsConfig.Network", c.Network)
	}
	p.require(len(c.Products) > 0 || c.Any, "TermsConfig.Products")
	if c.Any && len(c.Decimals) > 0 {
		p.add("TermsConfig.Decimals", "must be empty with Any, which checks no amounts: check them in Policy")
	}
	for _, id := range slices.Sorted(maps.Keys(c.Decimals)) {
		if c.Decimals[id] < 0 || c.Decimals[id] > 77 {
			p.add("TermsConfig.Decimals", "must be 0 to 77 for %s", shown(id))
		}
	}
	products := c.Products
	c.Products, c.Decimals, c.Former = nil, maps.Clone(c.Decimals), slices.Clone(c.Former)
	t := &Terms{config: c}
	p.addAll(t.Replace(products, 0))
	if err := p.err(); err != nil {
		return nil, err
	}
	return t, nil
}

// Replace replaces the products while the program runs. Call it in every process that answers the
// service, and choose a grace that is longer than this takes. Until the grace has passed, by default
// [UUIDValidity], orders for the former products are accepted, too, because the service does not say
// which price a player saw. With a grace of -1, only the new products count, at once.
//
// During the grace, no price pays for another one: if a burn pays more at one price than a mint
// costs at another, neither of the two counts. So each direction has the price that is worse for the
// player, also at a server whose products are not replaced yet, and [Client.Initialize] sends these
// prices. A page that shows the better one is declined, and nothing is taken. This does not apply with
// AllowArbitrage.
//
// Without products, no order is accepted once the grace has passed, unless Any is set. What was
// accepted before goes on: its validate call may be repeated, and its result is taken. After an error,
// an [*InvalidError], nothing has changed.
func (t *Terms) Replace(products []Product, grace time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var p problems
	offers := t.newOffers(&p, products)
	if err := p.err(); err != nil {
		return err
	}
	for _, former := range t.valid() {
		same := func(p Product) bool { return reflect.DeepEqual(p, former.Product) }
		if grace < 0 || slices.ContainsFunc(products, same) {
			continue // it ends, or goes on
		}
		if former.until.IsZero() {
			former.until = time.Now().Add(cmp.Or(grace, UUIDValidity))
		}
		former.mint, former.burn = time.Time{}, time.Time{}
		offers = append(offers, former)
	}
	t.separate(offers)
	t.offers.Store(&offers)
	return nil
}

// separate keeps prices apart that pay for each other, of which at least one is a former one. A former
// price never counts again, and a current one begins when all servers have given up the former.
func (t *Terms) separate(offers []offer) {
	if t.config.AllowArbitrage {
		return
	}
	delay := func(own, other *offer, d Direction) {
		begins := own.begins(d)
		if until := cmp.Or(own.until, other.until); until.After(*begins) {
			*begins = until
		}
	}
	for i := range offers {
		for j := range offers {
			mint, burn := &offers[i], &offers[j]
			if gain, _ := arbitrage(&mint.Product, &burn.Product, t.config.PerOrder); gain != "" {
				delay(mint, burn, Mint)
				delay(burn, mint, Burn)
			}
		}
	}
}

// Network returns [TermsConfig].Network.
func (t *Terms) Network() Network { return t.config.Network }

// Products returns the current products. Do not change what they refer to.
func (t *Terms) Products() (products []Product) {
	for _, o := range t.valid() {
		if o.until.IsZero() {
			products = append(products, o.Product)
		}
	}
	return products
}

// newOffers returns copies of products, and adds what is wrong to p.
func (t *Terms) newOffers(p *problems, products []Product) (offers []offer) {
	for n, product := range products {
		at := fmt.Sprintf("TermsConfig.Products[%d].", n)
		product.Materials, product.Outputs = slices.Clone(product.Materials), slices.Clone(product.Outputs)
		p.require(product.Name != "", at+"Name")
		product.check(p, at)
		t.checkTokens(p, at, &product)
		for _, other := range offers {
			if other.Name == product.Name {
				p.add(at+"Name", "is also the name of another product")
			}
			if t.overlap(&product, &other.Product, Mint) || t.overlap(&product, &other.Product, Burn) {
				p.add(at+"Token", "and items are also those of %q", other.Name)
			}
		}
		offers = append(offers, offer{Product: product})
	}
	if p.err() == nil && !t.config.AllowArbitrage {
		t.checkArbitrage(p, offers)
	}
	return offers
}

// checkArbitrage adds what players gain with well-formed offers to p.
func (t *Terms) checkArbitrage(p *problems, offers []offer) {
	for i := range offers {
		for j := range offers {
			if gain, _ := arbitrage(&offers[j].Product, &offers[i].Product, t.config.PerOrder); gain != "" {
				p.add(fmt.Sprintf("TermsConfig.Products[%d].Outputs", i),
					"let players gain without end: %s (see TermsConfig.AllowArbitrage)", gain)
			}
		}
	}
}

// arbitrageWarnings returns what an operator should know about prices that count at the same time.
func (t *Terms) arbitrageWarnings() (all []string) {
	products := t.Products()
	for i := range products {
		for j := range products {
			mint, burn := &products[i], &products[j]
			switch gain, comparable := arbitrage(mint, burn, t.config.PerOrder); {
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

// checkTokens adds what is wrong with the number of tokens of a product. A price of a whole
// order that does not name it would sell any number of tokens.
func (t *Terms) checkTokens(p *problems, at string, product *Product) {
	switch sign := product.Tokens.Sign(); {
	case sign < 0:
		p.add(at+"Tokens", "must not be negative")
	case !t.config.PerOrder:
		if sign > 0 || product.AnyTokens {
			p.add(at+"Tokens", "and AnyTokens are only for PerOrder: each token has the price")
		}
	case sign > 0 && product.AnyTokens:
		p.add(at+"AnyTokens", "must be false if Tokens is set")
	case sign == 0 && !product.AnyTokens && !t.config.Any:
		p.add(at+"Tokens", "is required with PerOrder, unless AnyTokens is set: it would be any number")
	}
}

// overlap reports whether an order could be for either of two products.
func (t *Terms) overlap(a, b *Product, d Direction) bool {
	each, _ := a.price(d)
	others, _ := b.price(d)
	return each != nil && strings.EqualFold(a.Token, b.Token) &&
		slices.EqualFunc(each, others, func(x, y AssetAmount) bool {
			return x.ID == y.ID && (!t.config.PerOrder || x.Amount.Cmp(y.Amount) == 0)
		}) && (a.Tokens.Sign() == 0 || b.Tokens.Sign() == 0 || a.Tokens.Cmp(b.Tokens) == 0)
}

// valid returns the offers that count now, the current ones first.
func (t *Terms) valid() []offer {
	if t == nil || t.offers.Load() == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(*t.offers.Load()), func(o offer) bool {
		return !o.until.IsZero() && !time.Now().Before(o.until)
	})
}

// intent returns the intent of a current product. While its price changes, each direction has the price
// that counts now, which may be the former one.
func (t *Terms) intent(name string) (InitializeIntent, error) {
	offers := t.valid()
	at := slices.IndexFunc(offers, func(o offer) bool { return o.Name == name && o.until.IsZero() })
	if at < 0 {
		return InitializeIntent{}, invalid("product", "must be the name of a product in ClientConfig.Terms")
	}
	token, now := offers[at].Token, time.Now()
	priced := func(d Direction) Product {
		for _, o := range offers { // the current ones first
			if o.Name == name && strings.EqualFold(o.Token, token) && !now.Before(*o.begins(d)) {
				return o.Product
			}
		}
		return Product{}
	}
	mint, burn := priced(Mint), priced(Burn)
	return InitializeIntent{Network: t.config.Network, ProjectID: t.config.ProjectID, Token: token,
		MintFeeBps: mint.MintFeeBps, Materials: mint.Materials, Outputs: burn.Outputs}, nil
}

// Match checks that a validate call is for the project of the terms and for one of their products,
// and sets r.Product and r.Tokens. For another project, the error is an [*InvalidError], but for one of
// [TermsConfig].Former it is a [*Rejection], because the call may repeat an order of that time.
//
// The order must fulfill all of these:
//
//   - It trades the token of the product.
//   - It moves exactly the items of the product: their amounts times the number of tokens. For a mint,
//     this is the number before the fee. With PerOrder, it moves the amounts themselves.
//   - The game can store these amounts in its units ([TermsConfig].Decimals).
//   - The type of the token is ERC20. If an item is non-fungible, the type of the token may also be
//     NFT, and the number of tokens must be whole.
//
// Otherwise the error is a [*Rejection] with [CodeInvalidMessage] that wraps an [*InvalidError]. Terms
// with Any accept every order, and set neither field.
func (t *Terms) Match(r *ValidateRequest) error {
	if t.config.ProjectID != "" && r.ProjectID != t.config.ProjectID {
		err := invalid("project_id", "must be %s, as in TermsConfig.ProjectID, not %s",
			shown(t.config.ProjectID), shown(r.ProjectID))
		if slices.Contains(t.config.Former, r.ProjectID) {
			return &Rejection{Code: CodeInvalidMessage, Err: err}
		}
		return err
	}
	if t.config.Any {
		return nil
	}
	o, reason := r.Intent.trade() // if it fails, there is nothing to match
	for _, offer := range t.valid() {
		// The case of an address is a checksum.
		if len(o.chain.assets) == 1 && strings.EqualFold(o.chain.assets[0].ID, offer.Token) {
			differs := t.compare(&o, &offer.Product)
			if begins := *offer.begins(o.direction); differs == nil && time.Now().Before(begins) {
				differs = invalid(o.game.path, "is a price of product %q that does not count before %s, "+
					"because another price pays for it (Terms.Replace)",
					offer.Name, begins.UTC().Format(time.RFC3339))
			}
			if differs == nil {
				r.Product, r.Tokens = offer.Name, o.chain.assets[0].Amount
				return nil
			}
			reason = cmp.Or(reason, differs) // the current product comes first
		}
	}
	if reason == nil {
		var tokens []string
		for _, offer := range t.valid() {
			tokens = append(tokens, offer.Token)
		}
		var came []AssetAmount
		for _, token := range o.chain.assets {
			came = append(came, AssetAmount{ID: token.ID, Amount: token.Amount})
		}
		reason = invalid(o.chain.path, "must be exactly one token, that of a product (%s), not %s",
			joined(slices.Compact(tokens)), shownAssets(came))
	}
	return &Rejection{Code: CodeInvalidMessage, Err: reason}
}

// compare returns why an order with the token of a product is not for the product.
func (t *Terms) compare(o *trade, product *Product) error {
	token := o.chain.assets[0]
	items, unique := product.price(o.direction)
	times, each, tokens := token.Amount.Rat(), "each token", fmt.Sprintf(" for %v of the token", token.Amount)
	if t.config.PerOrder {
		times, each, tokens = big.NewRat(1, 1), "an order", ""
	}
	switch {
	case items == nil:
		return invalid("intent", "is a %s, but product %q has no items for one", o.direction, product.Name)
	case !strings.EqualFold(string(token.Type), string(TypeERC20)) && // older messages have erc20
		!(unique && strings.EqualFold(string(token.Type), string(TypeNFT))):
		return invalid(o.chain.path+"[0].type", "must be ERC20, or NFT for a non-fungible item, not %s",
			shown(string(token.Type)))
	case unique && !token.Amount.Rat().IsInt():
		return invalid(o.chain.path+"[0].amount",
			"must be a whole number, because an item is non-fungible, not %v",
			token.Amount)
	case product.Tokens.Sign() > 0 && product.Tokens.Cmp(token.Amount) != 0:
		return invalid(o.chain.path+"[0].amount", "must be %v, as for product %q, not %v%s",
			product.Tokens, product.Name, token.Amount, t.netOfFee(o, product))
	case !slices.EqualFunc(items, byID(o.assets), func(a, b AssetAmount) bool {
		return a.ID == b.ID && b.Amount.Rat().Cmp(new(big.Rat).Mul(a.Amount.Rat(), times)) == 0
	}):
		return invalid(o.game.path, "must be %s for %s, as for product %q, not %s%s%s",
			shownAssets(items), each, product.Name, shownAssets(byID(o.assets)), tokens,
			t.netOfFee(o, product))
	case slices.ContainsFunc(o.assets, func(a AssetAmount) bool {
		units, err := a.Amount.Units(t.config.Decimals[a.ID])
		return err != nil || !units.IsInt64()
	}):
		return invalid(o.game.path, "must be whole units (TermsConfig.Decimals) that fit an int64, not %s",
			shownAssets(byID(o.assets)))
	}
	return nil
}

// netOfFee says, for a mint that does not match, that it would match if its number of tokens were the
// one after the fee. The interface leaves open which of the two it is (2.5).
func (t *Terms) netOfFee(o *trade, product *Product) string {
	fee := big.NewRat(10_000-int64(product.MintFeeBps), 10_000)
	if o.direction != Mint || fee.Sign() == 0 || product.MintFeeBps == 0 {
		return ""
	}
	net := o.chain.assets[0].Amount.Rat()
	gross, times := new(big.Rat).Quo(net, fee), big.NewRat(1, 1)
	if !t.config.PerOrder {
		times = gross
	}
	items, _ := product.price(Mint)
	moved := byID(o.assets)
	if len(items) != len(moved) || product.Tokens.Sign() > 0 && !near(gross, product.Tokens.Rat()) {
		return ""
	}
	for i, item := range items {
		price := new(big.Rat).Mul(item.Amount.Rat(), times)
		if item.ID != moved[i].ID || !near(moved[i].Amount.Rat(), price) {
			return ""
		}
	}
	wayOut := "TermsConfig.Any"
	if t.config.PerOrder {
		wayOut = "Product.AnyTokens"
	}
	return fmt.Sprintf("; it would match if the fee of %d basis points were already subtracted from %v:"+
		" if the service does that, set %s, and check the numbers in HandlerConfig.Policy",
		product.MintFeeBps, o.chain.assets[0].Amount, wayOut)
}

// near reports whether two numbers differ by what the service may have rounded.
func near(a, b *big.Rat) bool {
	difference := new(big.Rat).Sub(a, b)
	return difference.Abs(difference).Cmp(new(big.Rat).Mul(b, big.NewRat(1, 1_000_000))) <= 0
}

// shownAssets returns a list as a person reads it: "100 gold, 1 gem".
func shownAssets(list []AssetAmount) string {
	var texts []string
	for _, asset := range list {
		texts = append(texts, asset.Amount.String()+" "+shown(asset.ID))
	}
	return joined(texts)
}
