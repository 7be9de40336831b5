// Package order is an order as an emulated service keeps it: what a player asked for, what the game answered,
// how far its transaction and its result are, and what is due next.
package order

import (
	"encoding/hex"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/audit"
	"github.com/token-ramp/ramp-go/ramptest/internal/chain"
	"github.com/token-ramp/ramp-go/ramptest/internal/fault"
	"github.com/token-ramp/ramp-go/ramptest/internal/tally"
	"github.com/token-ramp/ramp-go/ramptest/internal/text"
	"github.com/token-ramp/ramp-go/ramptest/internal/trade"
)

// Order is a mint or a burn that the game has approved.
type Order struct {
	UUID     uuid.UUID
	Session  ramp.Session
	Network  ramp.Network
	Request  ramp.ValidateRequest // the validate request that the game received
	Approval ramp.Approval        // the game's answer
	TxHash   common.Hash          // the transaction on the chain, see Service.RPCURL of package ramptest

	Wallet   *ramp.Signer // of an order that is being placed
	Composed bool         // false for an order that was made by hand
	Number   int          // counts the orders
	Fee      ramp.Amount  // basis points
	Script   fault.Script
	Tx       *chain.Transaction // nil if the service has not placed the order
	// the other order that has the same transaction, or nil
	Partner    atomic.Pointer[Order]
	Placed     time.Time // when it was submitted to the chain
	HeldBefore *big.Rat  // the wallet's tokens before the first validate call
	// how the game did not approve it, so that it has no transaction; "" if it did
	Refused   string
	NoSession bool // the game then rejected the session when it was asked for the assets

	Reached  atomic.Bool // some call about it was sent to the game
	Delivery Delivery
}

// Entered returns what the books must know about an order.
func (o *Order) Entered() audit.Subject {
	t, sign := o.Trade(), int64(1)
	if t.Mint {
		sign = -1
	}
	e := audit.Subject{UUID: o.UUID, Session: o.Session, Mint: t.Mint, Sum: tally.Assets{},
		Less: o.BurnsLess(),
		Held: o.HeldBefore}
	if t.Mint {
		e.Fee = new(big.Rat).Quo(o.Fee.Rat(), big.NewRat(10_000, 1))
	}
	assets, _ := t.Sides(&o.Request.Intent)
	for _, asset := range *assets {
		if asset.Type == ramp.TypeAsset {
			e.Sum.Add(asset.ID, new(big.Rat).Mul(asset.Amount.Rat(), big.NewRat(sign, 1)))
		}
	}
	return e
}

// Join lets two orders have the transaction of the first.
func Join(first, second *Order) {
	second.Tx = first.Tx
	first.Partner.Store(second)
	second.Partner.Store(first)
}

// Waits reports whether the transaction waits for the next order.
func (o *Order) Waits() bool { return o.Script.WithNext && o.Partner.Load() == nil }

// String returns a one-line description with the beginning of the UUID.
func (o *Order) String() string {
	t := o.Trade()
	if t == nil {
		return "an order without an intent"
	}
	return fmt.Sprintf("%s %s of %s (%s)", t.Direction, text.Short(o.UUID),
		trade.Tokens(o.Token().Amount.Rat()),
		o.Delivery.Now().State)
}

// Address returns the address of the player's wallet.
func (o *Order) Address() common.Address { return common.HexToAddress(o.Request.UserAddress) }

// Same reports whether two orders are the same request of the same player. It
// ignores the user signature, because signing is not always deterministic.
func (o *Order) Same(other *Order) bool {
	a, b := o.Request, other.Request
	a.UserSig, b.UserSig = "", ""
	return o.Session.ID == other.Session.ID && reflect.DeepEqual(a, b)
}

// Trade returns the trade of an order that is composed, placed or checked.
func (o *Order) Trade() *trade.Trade { return trade.Of(&o.Request.Intent) }

// BurnsLess reports whether the transaction of a burn burns less than the order is about.
func (o *Order) BurnsLess() bool { return o.Script.Less && !o.Trade().Mint }

// Token returns the token of the order.
func (o *Order) Token() trade.Token { return trade.TokenOf(&o.Request.Intent) }

// Input returns the input of the order's transaction: a call with the digest and both
// signatures. The interface does not say what it holds.
func (o *Order) Input() []byte {
	user, err := hex.DecodeString(strings.TrimPrefix(o.Approval.UserSig, "0x"))
	if err != nil { // the game returned something else, which the record says
		user = nil
	}
	selector := chain.Selector(string(o.Request.Intent.Method) + "(bytes32,bytes,bytes)")
	return chain.Arguments(selector[:], o.Request.Digest[:], user, o.Approval.ValidatorSig[:])
}
