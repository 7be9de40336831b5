package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"

	ramp "github.com/token-ramp/ramp-go"
)

// terms are what this game sells: gold and gems for one token, and swords for another.
// They come from flags. A player chooses only a product and the number of tokens: a
// player who could choose the token would burn a worthless one.
type terms struct {
	network ramp.Network
	tokens  []string // contract addresses
	recipe  recipe
	anyRate bool        // approve every rate; only /exchange uses recipe
	sold    *ramp.Terms // names the products for /exchange

	products []ramp.Product
}

// sold are the flags that say what is sold.
type sold struct{ token, network, swordToken, recipe, project string }

func (s *sold) add(flags *flag.FlagSet) {
	flags.StringVar(&s.project, "project", "", "`ID` of the project in the console; empty accepts any")
	flags.StringVar(&s.token, "token", "", "contract `address` of the token; required unless the service is emulated")
	flags.StringVar(&s.network, "network", "", "`network` of the token, mainnet or testnet; required unless the service is emulated")
	flags.StringVar(&s.swordToken, "sword-token", "", "contract `address` of the token of swords; without it, swords are not sold unless\n"+
		"the service is emulated")
	flags.StringVar(&s.recipe, "recipe", defaultRecipe, "the `items` that one token is worth; an order must be for a whole number of tokens.\n"+
		"\"any\" approves every rate, for the judge and for load tests")
}

func (s *sold) terms() (terms, error) {
	return newTerms(s.token, s.network, s.recipe, s.swordToken, s.project)
}

// The products. The names are what a client may send to /exchange.
const (
	gold  = "gold"
	sword = "sword"
)

// recipe lists the items that one token is worth.
type recipe []ramp.AssetAmount

const (
	defaultRecipe = "item_gold=100,item_gem=1"
	anyRecipe     = "any"
)

var contractAddress = regexp.MustCompile(`^0x[0-9a-fA-F]{40}$`)

// newTerms reads the flags -token, -network, -recipe, -sword-token and -project. Swords
// are sold only if their token is set.
func newTerms(token, network, text, swordToken, project string) (terms, error) {
	t := terms{tokens: []string{token}, network: ramp.Network(network), anyRate: text == anyRecipe}
	const why = ", because RAMP_HMAC_KEY is set"
	switch {
	case token == "" && network == "":
		return terms{}, errors.New("-token and -network are required" + why)
	case token == "":
		return terms{}, errors.New("-token is required" + why)
	case network == "":
		return terms{}, errors.New("-network is required" + why)
	case !contractAddress.MatchString(token):
		return terms{}, errors.New("-token must be a contract address: 0x and 40 hex digits")
	case swordToken != "" && !contractAddress.MatchString(swordToken):
		return terms{}, errors.New("-sword-token must be a contract address: 0x and 40 hex digits")
	case t.network != ramp.Mainnet && t.network != ramp.Testnet:
		return terms{}, fmt.Errorf("-network must be %s or %s", ramp.Mainnet, ramp.Testnet)
	}
	if t.anyRate {
		text = defaultRecipe
	}
	var err error
	if t.recipe, err = parseRecipe(text); err != nil {
		return terms{}, err
	}
	offer := func(name, token string, feeBps int, items ...ramp.Item) ramp.Product {
		return ramp.Product{Name: name, Intent: ramp.InitializeIntent{Network: t.network, ProjectID: cmp.Or(project, "gameserver"),
			Token: token, MintFeeBps: feeBps, Materials: items, Outputs: items}}
	}
	var items []ramp.Item
	for _, one := range t.recipe {
		items = append(items, ramp.Item{ID: one.ID, Amount: one.Amount, IconURL: icon(one.ID)})
	}
	products := []ramp.Product{offer(gold, token, 100, items...)}
	if swordToken != "" {
		t.tokens = append(t.tokens, swordToken)
		products = append(products, offer(sword, swordToken, 0,
			ramp.Item{ID: itemSword, Amount: ramp.NewAmount(1), IconURL: icon(itemSword), IsNonFungible: true}))
	}
	t.products = products
	t.sold, err = ramp.NewTerms(ramp.TermsConfig{Products: products})
	return t, err
}

func icon(item string) string {
	return "https://example.com/icons/" + strings.TrimPrefix(item, "item_") + ".png"
}

// accepted returns what the handler accepts.
func (t terms) accepted() *ramp.Terms {
	if t.anyRate {
		return ramp.AnyTerms
	}
	return t.sold
}

// policy rejects an order for a token that is not sold, at whatever rate. Only
// -recipe any needs it, because otherwise the terms do.
func (t terms) policy(_ context.Context, _ ramp.Session, r *ramp.ValidateRequest) error {
	for _, asset := range slices.Concat(r.Intent.From, r.Intent.To) {
		if asset.Type != ramp.TypeAsset && !slices.ContainsFunc(t.tokens, func(token string) bool { return strings.EqualFold(token, asset.ID) }) {
			return &ramp.Rejection{Code: ramp.CodeTerms, Err: errors.New("the order is not for a token of this game: see -token")}
		}
	}
	return nil
}

// parseRecipe reads ID=AMOUNT,ID=AMOUNT,….
func parseRecipe(text string) (recipe, error) {
	var r recipe
	for part := range strings.SplitSeq(text, ",") {
		id, amount, _ := strings.Cut(part, "=")
		n, err := ramp.ParseAmount(amount)
		if err != nil || id == "" {
			return nil, fmt.Errorf("-recipe must be %s, or a list such as %s", anyRecipe, defaultRecipe)
		}
		_, fraction := n.Int()
		switch {
		case amountOf(r, id).Sign() != 0:
			return nil, fmt.Errorf("-recipe names %q twice", id)
		case !exists(id):
			return nil, fmt.Errorf("-recipe: this game has no item %q", id)
		case fraction != nil || n.Sign() <= 0:
			return nil, fmt.Errorf("-recipe: the amount of %q must be a whole number above 0", id)
		case n.Cmp(ramp.NewAmount(maxAmount)) > 0:
			return nil, fmt.Errorf("-recipe: the amount of %q must be at most %s", id, ramp.NewAmount(maxAmount))
		}
		r = append(r, ramp.AssetAmount{ID: id, Amount: n})
	}
	return r, nil
}

// String formats r for a person: 100 item_gold and 1 item_gem.
func (r recipe) String() string {
	var parts []string
	for _, a := range r {
		parts = append(parts, a.Amount.String()+" "+a.ID)
	}
	return strings.Join(parts, " and ")
}

// amountOf returns the amount of an item in a list, or 0 if it is not there.
func amountOf(list []ramp.AssetAmount, id string) ramp.Amount {
	if i := slices.IndexFunc(list, func(a ramp.AssetAmount) bool { return a.ID == id }); i >= 0 {
		return list[i].Amount
	}
	return ramp.Amount{}
}
