package rig

import (
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
)

// The accounts on a node.
var (
	Player = common.HexToAddress("0xa11ce")
	Friend = common.HexToAddress("0xb0b")
	Vault  = common.HexToAddress("0xc0") // a contract of the ramp
	Payer  = common.HexToAddress("0xfee")
	Hidden = common.HexToAddress("0xc1") // a contract of the ramp that Proof does not list
)

// Stranger is a player of whom tests have only orders that are right.
var Stranger = common.HexToAddress("0x57a6e4")

// Token is the contract of the token that the studio sells.
var Token = common.HexToAddress("0x70c3")

// OrderOf is an order of the player that was accepted at a time.
func OrderOf(d ramp.Direction, tokens int64, at time.Time) ramp.Order {
	o := ramp.Order{UUID: uuid.New(), State: ramp.OrderAccepted, SessionID: "session-1",
		UserAddress: Player.Hex(),
		Direction:   d, AcceptedAt: at.UTC()}
	items := []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: "item_gold", Amount: ramp.NewAmount(100 * tokens)}}
	tokensSide := []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: Token.Hex(), Amount: ramp.NewAmount(tokens)}}
	o.Assets = []ramp.AssetAmount{{ID: "item_gold", Amount: ramp.NewAmount(100 * tokens)}}
	o.Intent = ramp.Intent{Method: ramp.MethodMint, Type: ramp.Assemble, From: items, To: tokensSide}
	if d == ramp.Burn {
		o.Intent = ramp.Intent{Method: ramp.MethodBurnPermit, Type: ramp.Disassemble, From: tokensSide,
			To: items}
	}
	return o
}

// Ended returns an order as it is after a transaction ended it.
func Ended(o ramp.Order, state ramp.OrderState, hash common.Hash, at time.Time) ramp.Order {
	o.State, o.TxHash, o.FinishedAt = state, hash.Hex(), at.UTC()
	return o
}

// Moved are hundredths of a token.
func Moved(from, to common.Address, hundredths int64) ramp.Transfer {
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(16), nil)
	return ramp.Transfer{Token: Token, From: from, To: to, Value: unit.Mul(unit, big.NewInt(hundredths))}
}

// Now is when the chain of each node ends.
var Now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// Later is the clock of a server after Now, when the books of that time can be made.
func Later() time.Time { return Now.Add(2 * time.Minute) }

// HoursAgo returns a time that is so many hours before now.
func HoursAgo(hours int) time.Time { return Now.Add(-time.Duration(hours) * time.Hour) }
