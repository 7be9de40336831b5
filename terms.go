package ramp

import (
	"math/big"
	"strings"
)

// CheckTerms returns an error unless an order follows the terms of i: it must trade
// i.Token and nothing else, and for each token it must take exactly i.Materials if
// it is a mint, or grant exactly i.Outputs if it is a burn. The player then chooses
// only the number of tokens. Call it before an order is approved, in
// [Game.Validate] or where a [Store] applies the step of an accepted order.
// Otherwise a player could choose the token, and burn a worthless one for your
// assets.
//
// The amounts are those before the fee of a mint, which the service deducts from
// the tokens. A fraction of a token is worth that fraction of the items. If the
// amount of an item is a whole number, the amount of the asset must be one too, and
// must fit an int64, so that a signed burn can always be granted. A direction
// without items is not offered. The interface does not say whether the items of an
// initialize call are the price of one token or of the whole order (2.2, 2.5).
// CheckTerms takes them as the price of one.
//
// The error is a [*Rejection] with the code INVALID_MESSAGE. It wraps an
// [*InvalidError] that names what differs.
func (i InitializeIntent) CheckTerms(order Intent) error {
	if err := i.price(order); err != nil {
		return &Rejection{Code: "INVALID_MESSAGE", Err: err}
	}
	return nil
}

// price compares the assets of an order with what its tokens are worth.
func (i InitializeIntent) price(intent Intent) error {
	order := Order{Intent: intent}
	if err := order.derive(); err != nil {
		return err
	}
	game, chain := intent.sides(order.Direction)
	items := i.Materials
	if order.Direction == Burn {
		items = i.Outputs
	}
	tokens := chain.assets
	if len(tokens) != 1 || i.Token == "" || !strings.EqualFold(tokens[0].ID, i.Token) || // the case of an address is a checksum
		!strings.EqualFold(string(tokens[0].Type), string(TypeERC20)) { // older messages write erc20
		return invalid(chain.path, "must be exactly the token of the terms")
	}
	price := make(map[string]*big.Rat, len(items))
	for _, item := range items {
		if price[item.ID] == nil {
			price[item.ID] = new(big.Rat)
		}
		price[item.ID].Add(price[item.ID], item.Amount.Rat())
	}
	if len(price) == 0 {
		return invalid("intent", "has a direction for which the terms have no items")
	}
	count := tokens[0].Amount.Rat()
	for _, asset := range order.Assets {
		each := price[asset.ID]
		if each == nil || len(order.Assets) != len(price) {
			return invalid(game.path, "must have exactly the items of the terms")
		}
		if asset.Amount.Rat().Cmp(new(big.Rat).Mul(each, count)) != 0 {
			return invalid(game.path, "must have %s of %q for each token", each.RatString(), asset.ID)
		}
		if _, err := asset.Amount.Int64(); err != nil && each.IsInt() {
			return invalid(game.path, "must have whole numbers of %q that fit an int64", asset.ID)
		}
	}
	return nil
}
