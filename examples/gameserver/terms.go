package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	ramp "github.com/token-ramp/ramp-go"
)

// terms are what this game trades: one token, on one network, at one rate. They come
// from flags. A player chooses only the number of tokens: a player who could choose
// the token would burn a worthless one.
type terms struct {
	network ramp.Network
	token   string // contract address
	recipe  recipe
	anyRate bool // approve every rate; only /exchange uses recipe
}

// recipe lists the items that one token is worth.
type recipe []ramp.AssetAmount

const (
	defaultRecipe = "item_gold=100,item_gem=1"
	anyRecipe     = "any"
)

var contractAddress = regexp.MustCompile(`^0x[0-9a-fA-F]{40}$`)

// newTerms reads the flags -token, -network and -recipe.
func newTerms(token, network, text string) (terms, error) {
	t := terms{token: token, network: ramp.Network(network), anyRate: text == anyRecipe}
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
	case t.network != ramp.Mainnet && t.network != ramp.Testnet:
		return terms{}, fmt.Errorf("-network must be %s or %s", ramp.Mainnet, ramp.Testnet)
	}
	if t.anyRate {
		text = defaultRecipe
	}
	var err error
	t.recipe, err = parseRecipe(text)
	return t, err
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

// offer returns the intent of an initialize call.
func (t terms) offer(project string) ramp.InitializeIntent {
	items := make([]ramp.Item, len(t.recipe))
	for i, one := range t.recipe {
		icon := "https://example.com/icons/" + strings.TrimPrefix(one.ID, "item_") + ".png"
		items[i] = ramp.Item{ID: one.ID, Amount: one.Amount, IconURL: icon}
	}
	return ramp.InitializeIntent{Network: t.network, ProjectID: project, Token: t.token, MintFeeBps: 100, Materials: items, Outputs: items}
}

// check declines an order that does not match the terms. It does not rely on the
// initialize call, because only the approved order decides what moves.
func (t terms) check(o ramp.Order) error {
	if !t.anyRate {
		return t.offer("").CheckTerms(o.Intent)
	}
	tokens := o.Intent.To
	if o.Direction == ramp.Burn {
		tokens = o.Intent.From
	}
	if len(tokens) != 1 || !strings.EqualFold(string(tokens[0].Type), string(ramp.TypeERC20)) ||
		!strings.EqualFold(tokens[0].ID, t.token) { // the case of an address is only a checksum
		return &ramp.Rejection{Code: "INVALID_MESSAGE", Err: errors.New("the order is not for the token of this game: see -token")}
	}
	return nil
}

// amountOf returns the amount of an item in a list, or 0 if it is not there.
func amountOf(list []ramp.AssetAmount, id string) ramp.Amount {
	if i := slices.IndexFunc(list, func(a ramp.AssetAmount) bool { return a.ID == id }); i >= 0 {
		return list[i].Amount
	}
	return ramp.Amount{}
}
