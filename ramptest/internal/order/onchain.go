package order

import (
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/crypto"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/chain"
	"github.com/token-ramp/ramp-go/ramptest/internal/trade"
)

// Chains are the chains of a service.
type Chains map[ramp.Network]*chain.Chain

// Outcome returns the outcome of an order on its chain; ok reports whether there is one.
func (c Chains) Outcome(o *Order) (outcome Outcome, ok bool) {
	if o.Tx == nil {
		return 0, false
	}
	succeeded, mined := c[o.Network].Outcome(o.Tx)
	if succeeded {
		return Succeeded, mined
	}
	return Failed, mined
}

// Event returns an event with what the chain knows about an order's transaction.
func (c Chains) Event(o *Order) control.Event {
	outcome, mined := c.Outcome(o)
	if !mined {
		return control.Event{Network: o.Network, TxHash: o.TxHash, Status: control.TxSubmitted}
	}
	receipt := c[o.Network].Receipt(o.Tx, outcome == Succeeded)
	return ReceiptEvent(o.Network, &receipt, outcome)
}

// Receipt returns the receipt of an order's transaction with an outcome, which may
// differ from the one on the chain. For an order that was made by hand, it makes up
// a transaction that is not on the chain.
func (c Chains) Receipt(o *Order, outcome Outcome, rules *trade.Rules) ramp.Receipt {
	if o.Tx != nil {
		return c[o.Network].Receipt(o.Tx, outcome == Succeeded)
	}
	tx := chain.Transaction{GasUsed: chain.GasOfCall, Kind: 2,
		Moves: rules.Moves(&o.Request.Intent, o.Fee, o.Address(), o.BurnsLess()),
		Hash:  crypto.Keccak256Hash([]byte("transaction"), o.UUID[:], o.Request.Digest[:])}
	return c[slices.Min(slices.Collect(maps.Keys(c)))].Receipt(&tx, outcome == Succeeded)
}

// ReceiptEvent returns an event with what a receipt says about a transaction.
func ReceiptEvent(network ramp.Network, r *ramp.Receipt, outcome Outcome) control.Event {
	e := control.Event{Network: network, TxHash: r.TransactionHash, Status: control.TxFailed}
	if outcome == Succeeded {
		e.Status = control.TxSucceeded
	}
	e.Block, _ = r.BlockNumber.Uint64()
	return e
}
