// To make it yours: replace the products and their prices.

package main

import (
	"context"
	"errors"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampbooks"
)

// terms are what this game sells.
func (s *settings) terms() (*ramp.Terms, error) {
	return ramp.NewTerms(ramp.TermsConfig{ProjectID: s.project, Former: s.formerProjects,
		Network: s.network, Products: s.products(), Any: s.anyRate})
}

// projects are those whose orders are this game's. A command that only reads needs none.
func (s *settings) projects() []string {
	if s.project == "" {
		return nil
	}
	return append([]string{s.project}, s.formerProjects...)
}

// products are what this game sells, each for one token. A player chooses only a product,
// by its name, and the number of tokens: a player who could choose the token would burn a
// worthless one.
func (s *settings) products() []ramp.Product {
	if s.token == (common.Address{}) {
		return nil
	}
	product := func(name string, token common.Address, feeBps int, items ...ramp.Item) ramp.Product {
		return ramp.Product{Name: name, Token: token.Hex(), MintFeeBps: feeBps, Materials: items,
			Outputs: items}
	}
	item := func(id string, amount int64) ramp.Item {
		return ramp.Item{ID: id, Amount: ramp.NewAmount(amount),
			IconURL: "https://example.com/icons/" + id + ".png", IsNonFungible: id == itemSword}
	}
	list := []ramp.Product{
		product("gold", s.token, 100, item(itemGold, 100), item(itemGem, 1)),
		product("gems", s.token, 100, item(itemGem, 10)),
	}
	if s.swordToken != (common.Address{}) {
		list = append(list, product("sword", s.swordToken, 0, item(itemSword, 1)))
	}
	return list
}

// policy rejects an order for a token that is not sold. Only -any-rate needs it, because
// otherwise the terms do.
func (s *settings) policy(_ context.Context, _ ramp.Session, r *ramp.ValidateRequest) error {
	for _, asset := range slices.Concat(r.Intent.From, r.Intent.To) {
		if token := common.HexToAddress(asset.ID); asset.Type != ramp.TypeAsset && token != s.token &&
			token != s.swordToken {
			return &ramp.Rejection{Code: ramp.CodeInvalidMessage,
				Err: errors.New("the order is not for a token of this game: see -token")}
		}
	}
	return nil
}

// sold returns what is sold, each product since the last of the former ones with its name ended, and what
// was sold before.
func (s *settings) sold() []rampbooks.Offer {
	sold := rampbooks.Always(s.products()...)
	for i := range sold {
		for _, former := range s.former {
			if former.Product.Name == sold[i].Product.Name && former.To.After(sold[i].From) {
				sold[i].From = former.To
			}
		}
	}
	return append(sold, s.former...)
}
