// Package evidence decides what the chain shows about an order. It is what package
// rampproof, with which a handler confirms results, and package support share.
package evidence

import (
	"errors"
	"log/slog"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
)

// ErrNotProven is that of package rampproof.
var ErrNotProven = errors.New("the transaction does not prove the outcome of the order")

// Config is that of package rampproof, which documents and checks it. Both have the same
// fields, so that one can be converted into the other.
type Config struct {
	Chain         *ramp.RPC
	Network       ramp.Network
	Confirmations uint64
	Payers        []common.Address
	Contracts     []common.Address
	AnyFailure    bool
	MintFeeBps    map[common.Address]int
	Decimals      map[common.Address]int
	Logger        *slog.Logger
}

// outside reports whether tokens of an address are not in the hands of players, such as those
// that are burned or not issued yet.
func (c *Config) outside(a common.Address) bool {
	return a == common.Address{} || slices.Contains(c.Contracts, a)
}

// TokensOf returns the tokens of an order.
func TokensOf(order *ramp.Order) []ramp.IntentAsset {
	if order.Direction == ramp.Burn {
		return order.Intent.From
	}
	return order.Intent.To
}

// ContractsOf returns the token contracts of an order.
func ContractsOf(order *ramp.Order) (contracts []common.Address) {
	for _, token := range TokensOf(order) {
		if common.IsHexAddress(token.ID) {
			contracts = append(contracts, common.HexToAddress(token.ID))
		}
	}
	slices.SortFunc(contracts, common.Address.Cmp)
	return slices.Compact(contracts)
}

// parties returns the token contract and the user of an order. Both are zero if it has
// not exactly one token.
func parties(order *ramp.Order) (token, user common.Address) {
	if tokens := TokensOf(order); len(tokens) == 1 {
		token, user = common.HexToAddress(tokens[0].ID), common.HexToAddress(order.UserAddress)
	}
	return token, user
}
