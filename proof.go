package ramp

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
)

// ErrNotProven means that a transaction does not prove what an order needs to end as
// the transaction did. It may belong to another order, or to nobody. A person must
// decide.
var ErrNotProven = errors.New("the transaction does not prove the outcome of the order")

// Proof says what a transaction must show before it ends an order. The interface does
// not say how an order and its transaction are linked, so this is a setting. Set it as
// [HandlerConfig].Proof, and for the tools of package support.
//
// A successful burn needs a transfer of the order's token, from the order's user to
// the zero address or to one of Contracts, of at least the order's amount. A successful
// mint moves no game assets, so any transfer of the token to the user proves it: its
// amount is net of fees. A failure needs a transaction that one of Payers sent or paid
// for, and that went to one of Contracts, if there are any.
//
// docs/security.md lists what an attacker can do with and without each setting. No
// transaction proves that a signature will not be used later.
type Proof struct {
	// Contracts are the contracts of the ramp: where burned tokens may go, besides the
	// zero address, and where a failed transaction must have gone.
	Contracts []common.Address

	// Payers are the accounts with which the ramp sends transactions or pays for them.
	// Required, unless AnyFailure is set.
	Payers []common.Address

	// AnyFailure accepts every failed transaction, for those who do not know the
	// accounts of the ramp. Anybody with the HMAC key can then have a mint given back
	// by somebody else's failed transaction. Off by default.
	AnyFailure bool

	// Decimals are the decimals of each token contract, 0 to 255. Required for each
	// ERC-20 token that can be burned. An NFT has none.
	Decimals map[common.Address]int
}

// Evidence is what a transaction shows about an order.
type Evidence struct {
	Succeeded bool            // whether the transaction succeeded
	From      common.Address  // who sent it
	FeePayer  common.Address  // who paid for it, if somebody else did
	To        *common.Address // where it went; nil if it created a contract

	// Received is what the order's user received of the order's token, and Burned is
	// what went from the user to the zero address or the ramp's contracts. Both are net
	// of what went the other way, in the token's smallest units, or in pieces for an
	// NFT. They are nil if the transaction failed.
	Received, Burned *big.Int
}

// check adds what is wrong with p to wrong. path names p in errors.
func (p *Proof) check(wrong *problems, path string) {
	if len(p.Payers) == 0 && !p.AnyFailure {
		wrong.add(path+".Payers", "is required, unless AnyFailure is set: every failed mint would wait for a person")
	}
	for token, decimals := range p.Decimals {
		if decimals < 0 || decimals > 255 {
			wrong.add(path+".Decimals", "must be 0 to 255 for %s", token)
		}
	}
}

// Check returns what a transaction shows about an order, and an error unless that
// proves that the order has ended as the transaction did. The error then wraps
// [ErrNotProven] and says what is missing. The transaction and the receipt must be
// those of one hash, as [RPC.Confirm] returns them. Check is pure.
func (p Proof) Check(order *Order, transaction *Transaction, receipt *Receipt) (Evidence, error) {
	e := Evidence{Succeeded: receipt.Succeeded(), From: transaction.From, FeePayer: transaction.FeePayer, To: transaction.To}
	missing := func(format string, args ...any) (Evidence, error) {
		return e, fmt.Errorf("ramp: order %s: %w: %s", order.UUID, ErrNotProven, fmt.Sprintf(format, args...))
	}
	switch {
	case !receipt.Status.Present():
		return missing("the receipt has no status")
	case !e.Succeeded && p.AnyFailure:
		return e, nil
	case !e.Succeeded && !slices.Contains(p.Payers, e.From) && (e.FeePayer == common.Address{} || !slices.Contains(p.Payers, e.FeePayer)):
		return missing("neither its sender %s nor its fee payer %s is an account of the ramp", e.From, e.FeePayer)
	case !e.Succeeded && len(p.Contracts) > 0 && (e.To == nil || !slices.Contains(p.Contracts, *e.To)):
		return missing("it went to no contract of the ramp")
	case !e.Succeeded:
		return e, nil
	}

	tokens := order.chainSide().assets
	if len(tokens) != 1 || !common.IsHexAddress(tokens[0].ID) || !common.IsHexAddress(order.UserAddress) {
		return missing("the order must have exactly one token contract, and a user address")
	}
	token, user := common.HexToAddress(tokens[0].ID), common.HexToAddress(order.UserAddress)
	e.Received, e.Burned = p.transferred(receipt, token, user)
	if order.Direction == Mint {
		if e.Received.Sign() <= 0 {
			return missing("it transfers no token %s to the user %s", token, user)
		}
		return e, nil
	}
	amount, err := p.units(token, tokens[0])
	switch {
	case err != nil:
		return missing("%v", err)
	case e.Burned.Cmp(amount) < 0:
		return missing("it burns %s units of the token %s of the user %s, and the order is about %s", e.Burned, token, user, amount)
	default:
		return e, nil
	}
}

// transferred returns what a user received and burned of a token.
func (p Proof) transferred(receipt *Receipt, token, user common.Address) (received, burned *big.Int) {
	received, burned = new(big.Int), new(big.Int)
	for _, t := range receipt.Transfers() {
		if t.Token != token || t.From == t.To {
			continue
		}
		units := t.Value
		if t.TokenID != nil { // one piece, whatever its ID
			units = big.NewInt(1)
		}
		switch user {
		case t.To:
			received.Add(received, units)
			if p.burns(t.From) {
				burned.Sub(burned, units)
			}
		case t.From:
			received.Sub(received, units)
			if p.burns(t.To) {
				burned.Add(burned, units)
			}
		}
	}
	return received, burned
}

// burns reports whether tokens that are sent to an address are burned.
func (p Proof) burns(to common.Address) bool {
	return to == common.Address{} || slices.Contains(p.Contracts, to)
}

// units returns the amount of an order's token in its smallest units.
func (p Proof) units(token common.Address, of IntentAsset) (*big.Int, error) {
	decimals, known := p.Decimals[token]
	if strings.EqualFold(string(of.Type), string(TypeNFT)) {
		decimals, known = 0, true
	}
	if !known {
		return nil, fmt.Errorf("Proof.Decimals has no entry for the token %s", token)
	}
	return of.Amount.Units(decimals)
}
