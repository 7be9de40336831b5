package rampbooks

import (
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/trade"
)

// shareOf returns how much of an event an order moved, or nil if the event does not fit. The account that
// receives the fees may buy, too: the order is then one of the event's transfers, and the fee another.
func shareOf(o *trade.Order, e *ChainEvent) *big.Int {
	if o.Fits(e.units) {
		return e.units
	}
	if o.Direction == ramp.Mint && o.Units != nil && e.units.Cmp(o.Units) <= 0 {
		if at := slices.IndexFunc(e.parts, o.Fits); at >= 0 {
			return e.parts[at]
		}
	}
	return nil
}

// ownOf returns which of the events of its transaction is an order's own, or -1, and how much of it is its
// share, or nil if it does not fit. Of an erased player any may be, so one that fits comes before one that
// does not, and a larger one before a smaller one, which may be the fee.
func ownOf(o *trade.Order, events []ChainEvent) (own int, share *big.Int) {
	own = -1
	for i := range events {
		e := &events[i]
		if e.Token != o.Token || e.Direction != o.Direction || !o.IsUser(e.User) {
			continue
		}
		part := shareOf(o, e)
		alike := (part == nil) == (share == nil)
		if own < 0 || !alike && part != nil || alike && e.units.Cmp(events[own].units) > 0 {
			own, share = i, part
		}
	}
	return own, share
}

// amountOf returns units of a token as an amount.
func amountOf(c *trade.Catalog, token common.Address, units *big.Int) Amount {
	return Amount{c.Amount(token, units)}
}

// foundOrder returns an order for a finding.
func foundOrder(c *trade.Catalog, o *trade.Order) FoundOrder {
	return FoundOrder{
		o.UUID, o.State, o.Direction, o.Product(), amountOf(c, o.Token, o.Units),
		add(map[string]Amount{}, o.Assets), o.SessionID, o.UserAddress, o.TxHash,
		o.AcceptedAt, o.FinishedAt, o.Reason, o.Settled, nil}
}
