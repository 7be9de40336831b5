package rampbooks

import (
	"cmp"
	"math/big"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/catalog"
)

// ChainEvent is what a transaction minted of a token for an account, or burned of it.
type ChainEvent struct {
	TxHash    common.Hash    `json:"tx_hash"`
	Block     uint64         `json:"block"`
	LogIndex  uint64         `json:"log_index"` // of its first log
	Time      time.Time      `json:"time"`      // of the block
	Token     common.Address `json:"token"`
	User      common.Address `json:"user"`
	Direction ramp.Direction `json:"direction"`
	Tokens    Amount         `json:"tokens"` // set in findings

	units  *big.Int   // in the token's smallest units, or in pieces
	parts  []*big.Int // the units of each of its transfers, if there were several
	pieces bool       // of a non-fungible token
}

func inChainOrder(a, b ChainEvent) int {
	return cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.LogIndex, b.LogIndex))
}

// groupByTransaction cuts events, of which those of one transaction are neighbors. It adds up
// those that have the same token, user and direction, such as the pieces of a non-fungible
// token.
func groupByTransaction(events []ChainEvent) (transactions [][]ChainEvent) {
	for _, e := range events {
		last := len(transactions) - 1
		if last < 0 || transactions[last][0].TxHash != e.TxHash {
			transactions = append(transactions, []ChainEvent{e})
			continue
		}
		n := slices.IndexFunc(transactions[last], func(s ChainEvent) bool {
			return s.Token == e.Token && s.User == e.User && s.Direction == e.Direction
		})
		if n < 0 {
			transactions[last] = append(transactions[last], e)
			continue
		}
		sum := &transactions[last][n]
		if sum.parts == nil {
			sum.parts = []*big.Int{sum.units}
		}
		sum.units, sum.parts = new(big.Int).Add(sum.units, e.units), append(sum.parts, e.units)
	}
	return transactions
}

// shareOf returns how much of an event an order moved, or nil if the event does not fit. The account that
// receives the fees may buy, too: the order is then one of the event's transfers, and the fee another.
func shareOf(o *catalog.Order, e *ChainEvent) *big.Int {
	if o.Fits(e.units, e.pieces) {
		return e.units
	}
	if o.Direction == ramp.Mint && o.Units != nil && e.units.Cmp(o.Units) <= 0 {
		fits := func(part *big.Int) bool { return o.Fits(part, e.pieces) }
		if at := slices.IndexFunc(e.parts, fits); at >= 0 {
			return e.parts[at]
		}
	}
	return nil
}

// splitFor splits an event of one transfer into the shares of those of the orders that it is about, if each
// has its own. A fee of all of them is in proportion.
func (e *ChainEvent) splitFor(orders []*catalog.Order) {
	var of []*catalog.Order
	sum := new(big.Int)
	for _, o := range orders {
		if o.Units != nil && o.Token == e.Token && o.Direction == e.Direction && o.IsUser(e.User) {
			of = append(of, o)
			sum.Add(sum, o.Units)
		}
	}
	if e.parts != nil || len(of) < 2 {
		return
	}
	rest, parts := new(big.Int).Set(e.units), make([]*big.Int, len(of))
	for i, o := range of {
		parts[i] = new(big.Int).Mul(e.units, o.Units)
		if parts[i].Quo(parts[i], sum); i == len(of)-1 {
			parts[i].Set(rest)
		}
		if rest.Sub(rest, parts[i]); !o.Fits(parts[i], e.pieces) {
			return
		}
	}
	e.parts = parts
}

// splitBatch returns the transfer that is an order's own, and the other events of its transaction, if the
// order's user has moved more in it than the order is about: it may have settled several orders of this user.
func splitBatch(o *catalog.Order, events []ChainEvent) (own *ChainEvent, rest []ChainEvent, ok bool) {
	fits := func(e *ChainEvent) int {
		return slices.IndexFunc(e.parts, func(part *big.Int) bool { return o.Fits(part, e.pieces) })
	}
	at := slices.IndexFunc(events, func(e ChainEvent) bool {
		return e.Token == o.Token && e.Direction == o.Direction && o.IsUser(e.User) && o.Units != nil &&
			e.units.Cmp(o.Units) > 0 && fits(&e) >= 0
	})
	if at < 0 {
		return nil, nil, false
	}
	rest = slices.Delete(slices.Clone(events), at, at+1)
	first := fits(&events[at])
	for i, part := range events[at].parts {
		e := events[at]
		if e.units, e.parts = part, nil; i == first {
			own = &e
		} else {
			rest = append(rest, e)
		}
	}
	return own, rest, true
}

// takeOf returns what a transaction has moved for an order, or nil, and what else it has moved.
func takeOf(o *catalog.Order, events []ChainEvent) (taken *ChainEvent, rest []ChainEvent) {
	if taken, rest, ok := splitBatch(o, events); ok {
		return taken, rest
	}
	own, share := ownOf(o, events)
	if share == nil {
		return nil, events
	}
	return &events[own], slices.Delete(slices.Clone(events), own, own+1)
}

// ownOf returns which of the events of its transaction is an order's own, or -1, and how much of it is its
// share, or nil if it does not fit. Of an erased player any may be, so one that fits comes before one that
// does not, and a larger one before a smaller one, which may be the fee.
func ownOf(o *catalog.Order, events []ChainEvent) (own int, share *big.Int) {
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
