package ramptest

import (
	"encoding/hex"
	"encoding/json"
	"errors"
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
	"github.com/token-ramp/ramp-go/ramptest/internal/books"
	"github.com/token-ramp/ramp-go/ramptest/internal/chain"
)

// Order is a mint or a burn that the game has approved.
type Order struct {
	UUID     uuid.UUID
	Session  ramp.Session
	Network  ramp.Network
	Request  ramp.ValidateRequest // the validate request that the game received
	Approval ramp.Approval        // the game's answer
	TxHash   common.Hash          // the transaction on the chain, see [Service.RPCURL]

	wallet     *ramp.Signer // of an order that is being placed
	composed   bool         // false for an order that was made by hand
	number     int          // counts the orders
	fee        ramp.Amount  // basis points
	script     script
	tx         *chain.Transaction // nil if the service has not placed the order
	placed     time.Time          // when it was submitted to the chain
	heldBefore *big.Rat           // the wallet's tokens before the first validate call
	// how the game did not approve it, so that it has no transaction; "" if it did
	refused   string
	noSession bool // the game then rejected the session when it was asked for the assets

	reached  atomic.Bool // some call about it was sent to the game
	delivery delivery
}

// entered returns what the books must know about an order.
func (o *Order) entered() audit.Order {
	t, sign := o.trade(), int64(1)
	if t.mint {
		sign = -1
	}
	e := audit.Order{UUID: o.UUID, Session: o.Session, Mint: t.mint, Sum: books.Assets{}, Less: o.burnsLess(),
		Held: o.heldBefore}
	if t.mint {
		e.Fee = new(big.Rat).Quo(o.fee.Rat(), big.NewRat(10_000, 1))
	}
	assets, _ := t.sides(&o.Request.Intent)
	for _, asset := range *assets {
		if asset.Type == ramp.TypeAsset {
			e.Sum.Add(asset.ID, new(big.Rat).Mul(asset.Amount.Rat(), big.NewRat(sign, 1)))
		}
	}
	return e
}

// String returns a one-line description with the beginning of the UUID.
func (o *Order) String() string {
	t := o.trade()
	if t == nil {
		return "an order without an intent"
	}
	return fmt.Sprintf("%s %s of %s (%s)", t.direction, shortUUID(o.UUID), tokens(o.token().Amount.Rat()),
		o.delivery.now().State)
}

// address returns the address of the player's wallet.
func (o *Order) address() common.Address { return common.HexToAddress(o.Request.UserAddress) }

// same reports whether two orders are the same request of the same player. It
// ignores the user signature, because signing is not always deterministic.
func (o *Order) same(other *Order) bool {
	a, b := o.Request, other.Request
	a.UserSig, b.UserSig = "", ""
	return o.Session.ID == other.Session.ID && reflect.DeepEqual(a, b)
}

// trade returns the trade of an order that is composed, placed or checked.
func (o *Order) trade() *trade { return tradeIn(&o.Request.Intent) }

// This file has what an order says: what the player asks for and signs, which
// tokens its transaction moves, and the body of its result.

var errNoItems = errors.New("ramptest: the terms have nothing")

// intent returns what the player asks for (interface 2.5).
func (c *Config) intent(t *trade, asked ramp.InitializeIntent, tokens ramp.Amount) (ramp.Intent, error) {
	intent := ramp.Intent{Method: ramp.MethodMint, Type: t.kind, TargetCandidate: json.RawMessage("{}")}
	if !t.mint {
		intent.Method = c.BurnMethod
	}
	items := t.items(&asked)
	assets, token := t.sides(&intent)
	stated := tokens
	if t.mint && c.NetAmounts {
		stated = afterFee(tokens, ramp.NewAmount(int64(asked.MintFeeBps)))
	}
	*token = []ramp.IntentAsset{{Type: c.tokenType(items), ID: asked.Token, Amount: stated}}
	if len(items) == 0 {
		return ramp.Intent{},
			fmt.Errorf("%w for a %s: a mint needs materials, a burn needs outputs", errNoItems, t.direction)
	}
	*assets = make([]ramp.IntentAsset, len(items))
	for i, item := range items {
		amount := item.Amount
		if !c.PerOrder {
			var err error
			if amount, err = ramp.ParseAmount(books.Decimal(new(big.Rat).Mul(amount.Rat(),
				tokens.Rat()))); err != nil {
				return ramp.Intent{}, fmt.Errorf("ramptest: %w", err)
			}
		}
		(*assets)[i] = ramp.IntentAsset{Type: ramp.TypeAsset, ID: item.ID, Amount: amount}
	}
	return intent, nil
}

// amounts returns the number of tokens of an order before its fee, and after it. The order states
// one of them.
func (c *Config) amounts(o *Order) (gross, net ramp.Amount) {
	stated := o.token().Amount
	rest := new(big.Rat).Sub(big.NewRat(10_000, 1), o.fee.Rat())
	if !o.trade().mint || !c.NetAmounts || rest.Sign() == 0 {
		return stated, afterFee(stated, o.fee)
	}
	units := new(big.Rat).SetInt(chain.Units(stated, c.Decimals))
	units.Mul(units, big.NewRat(10_000, 1)).Quo(units, rest)
	whole := new(big.Int).Quo(units.Num(), units.Denom())
	return ramp.Must(ramp.AmountOfUnits(whole, c.Decimals)), stated
}

// afterFee subtracts a fee in basis points from an amount.
func afterFee(amount, fee ramp.Amount) ramp.Amount {
	rest := new(big.Rat).Sub(big.NewRat(10_000, 1), fee.Rat())
	return amountOf(rest.Mul(rest, amount.Rat()).Quo(rest, big.NewRat(10_000, 1)))
}

// orderToken is the token of an order.
type orderToken ramp.IntentAsset

func (t orderToken) contract() common.Address { return common.HexToAddress(t.ID) }

func (o *Order) token() orderToken {
	_, tokens := o.trade().sides(&o.Request.Intent)
	return orderToken((*tokens)[0])
}

// burnsLess reports whether the transaction of a burn burns less than the order is about.
func (o *Order) burnsLess() bool { return o.script.less && !o.trade().mint }

// moves returns the token transfers of an order: mints, burns and fees.
func (c *Config) moves(o *Order, player common.Address) []chain.Move {
	contract := o.token().contract()
	before, after := c.amounts(o)
	amount, net := chain.Units(before, c.Decimals), chain.Units(after, c.Decimals)
	if !o.trade().mint {
		if o.burnsLess() {
			amount.Sub(amount, big.NewInt(1))
		}
		return []chain.Move{{Token: contract, From: player, Amount: amount}}
	}
	made := []chain.Move{{Token: contract, To: player, Amount: net}}
	if fee := new(big.Int).Sub(amount, net); fee.Sign() > 0 {
		made = append(made, chain.Move{Token: contract, To: serviceAccount(), Amount: fee})
	}
	return made
}

// input returns the input of an order's transaction: a call with the digest and both
// signatures. The interface does not say what it holds.
func input(o *Order) []byte {
	user, err := hex.DecodeString(strings.TrimPrefix(o.Approval.UserSig, "0x"))
	if err != nil { // the game returned something else, which the record says
		user = nil
	}
	selector := chain.Selector(string(o.Request.Intent.Method) + "(bytes32,bytes,bytes)")
	return chain.Arguments(selector[:], o.Request.Digest[:], user, o.Approval.ValidatorSig[:])
}
