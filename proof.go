package ramp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
)

// Proof says what a transaction must show before it ends an order, because the interface
// does not say how the two are linked. docs/security.md lists what an attacker can do
// with and without each setting.
//
// A successful burn needs at least the order's amount of its token, which the order's
// user loses, and which stays at the zero address or at one of Contracts. What anybody
// else gains of the token in the same transaction does not count, so a ramp that settles
// several players in one needs a person for each burn. Any transfer of the token to the
// user proves a successful mint. A failure needs a transaction that one of Payers sent or
// paid for, and that went to one of Contracts, if there are any. An account of the ramp
// or the token contract as the user proves nothing, and no transaction proves that a
// signature will not be used later.
type Proof struct {
	// Contracts are those of the ramp: where burned tokens may go, besides the zero address, and where
	// a failed transaction must have gone. Whoever can take tokens out of one can burn them twice.
	Contracts []common.Address

	// Payers are the accounts that send or pay transactions of the ramp. Required without AnyFailure.
	Payers []common.Address

	// AnyFailure accepts every failed transaction, if you do not know Payers. Anybody with the HMAC
	// key can then have a mint given back by somebody else's. Off by default.
	AnyFailure bool

	// Decimals are those of each ERC-20 token that can be burned; see [RPC.TokenDecimals]. Of a token
	// without an entry, only the pieces of an NFT count. One that is too low pays for too few.
	Decimals map[common.Address]int
}

// check adds what is wrong with p to wrong.
func (p *Proof) check(wrong *problems) {
	if len(p.Payers) == 0 && !p.AnyFailure {
		wrong.add("HandlerConfig.Proof.Payers",
			"is required, unless AnyFailure is set: every failed mint would wait for a person")
	}
	for token, decimals := range p.Decimals {
		if decimals < 0 || decimals > 255 {
			wrong.add("HandlerConfig.Proof.Decimals", "must be 0 to 255 for %s", token)
		}
	}
}

// checkDecimals compares Decimals with the token contracts. That of an NFT may have none.
func (p *Proof) checkDecimals(ctx context.Context, chain *RPC) error {
	var found []error
	for _, token := range slices.SortedFunc(maps.Keys(p.Decimals), common.Address.Cmp) {
		actual, err := chain.TokenDecimals(ctx, token)
		switch {
		case err != nil && p.Decimals[token] > 0:
			found = append(found, fmt.Errorf("ramp: check the decimals of token %s: %w", token, err))
		case err == nil && actual != p.Decimals[token]:
			found = append(found, fmt.Errorf("ramp: Proof.Decimals is %d for token %s, but its contract says %d", p.Decimals[token], token, actual))
		}
	}
	return errors.Join(found...)
}

// Check returns what a transaction shows about an order, and an error that wraps
// [ErrNotProven] unless it proves that the order has ended as the transaction did.
// Both must come from [RPC.Confirm].
func (p Proof) Check(order *Order, transaction *Transaction, receipt *Receipt) (Evidence, error) {
	e, others := p.shown(order, transaction, receipt)
	missing := func(format string, args ...any) (Evidence, error) {
		return e, fmt.Errorf("ramp: order %s: %w: %s", order.UUID, ErrNotProven, fmt.Sprintf(format, args...))
	}
	token, user := order.parties()
	doubtful := !e.Succeeded && !p.AnyFailure
	switch {
	case !receipt.Status.Present():
		return missing("the receipt has no status")
	case user == token || p.burns(user) || slices.Contains(p.Payers, user):
		return missing("the order must have one token contract, and a user that is not the token, the ramp or the zero address")
	case doubtful && !slices.Contains(p.Payers, e.From) && (e.FeePayer == common.Address{} || !slices.Contains(p.Payers, e.FeePayer)):
		return missing("neither its sender %s nor its fee payer %s is one of Proof.Payers", e.From, e.FeePayer)
	case doubtful && len(p.Contracts) > 0 && (e.To == nil || !slices.Contains(p.Contracts, *e.To)):
		return missing("it went to none of Proof.Contracts")
	case e.Succeeded && order.Direction == Mint && e.Units.Sign() <= 0:
		return missing("it transfers no token %s to the user %s", token, user)
	case !e.Succeeded || order.Direction == Mint:
		return e, nil
	}
	decimals, counted := p.Decimals[token]
	amount, err := order.chainSide().assets[0].Amount.Units(decimals)
	burned, unit := e.Units, "units"
	if pieces := big.NewInt(int64(len(e.TokenIDs))); !counted && pieces.Cmp(burned) <= 0 {
		burned, unit = pieces, "pieces (Proof.Decimals has no entry)"
	}
	switch {
	case err != nil:
		return missing("%v", err)
	case burned.Cmp(amount) >= 0:
		return e, nil
	case len(others) > 0:
		return missing("it burns %s of %s %s of the token %s of the user %s: tokens were passed on to %s", burned, amount, unit, token, user, others[0])
	default:
		return missing("it burns %s of %s %s of the token %s of the user %s", burned, amount, unit, token, user)
	}
}

// shown returns what a transaction shows about an order, and who else gained tokens.
func (p Proof) shown(order *Order, transaction *Transaction, receipt *Receipt) (e Evidence, others []common.Address) {
	e = Evidence{Succeeded: receipt.Succeeded(), From: transaction.From, FeePayer: transaction.FeePayer, To: transaction.To}
	token, user := order.parties()
	if !e.Succeeded || user == token {
		return e, nil
	}
	transfers := slices.DeleteFunc(receipt.Transfers(), func(t Transfer) bool { return t.Token != token })
	gained, holder := map[common.Address]*big.Int{user: {}}, map[string]common.Address{}
	for _, t := range transfers {
		units := cmp.Or(t.Value, common.Big1) // a piece is one, whatever its ID
		gained[t.From] = new(big.Int).Sub(cmp.Or(gained[t.From], common.Big0), units)
		gained[t.To] = new(big.Int).Add(cmp.Or(gained[t.To], common.Big0), units)
		holder[t.TokenID.String()] = t.To // in the end, of each piece; units have no ID
	}
	for _, t := range transfers {
		last, first := holder[t.TokenID.String()]
		delete(holder, t.TokenID.String())
		minted, burned := last == user && p.burns(t.From), t.From == user && p.burns(last)
		if first && t.TokenID != nil && (order.Direction == Mint && minted || order.Direction == Burn && burned) {
			e.TokenIDs = append(e.TokenIDs, t.TokenID)
		}
	}
	e.Units = gained[user]
	if order.Direction == Burn {
		e.Units.Neg(e.Units)
		for other, units := range gained {
			if units.Sign() > 0 && other != user && !p.burns(other) {
				e.Units.Sub(e.Units, units)
				others = append(others, other)
			}
		}
	}
	return e, others
}

// parties returns the token contract and the user of an order. Both are zero if it has
// not exactly one token.
func (o *Order) parties() (token, user common.Address) {
	if tokens := o.chainSide().assets; len(tokens) == 1 {
		token, user = common.HexToAddress(tokens[0].ID), common.HexToAddress(o.UserAddress)
	}
	return token, user
}

// burns reports whether tokens that are sent to an address are burned.
func (p Proof) burns(to common.Address) bool {
	return to == common.Address{} || slices.Contains(p.Contracts, to)
}
