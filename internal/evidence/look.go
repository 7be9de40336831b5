package evidence

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
)

// Search says which events to look for.
type Search struct {
	Direction ramp.Direction   // by which the account gained tokens, or lost some
	Tokens    []common.Address // their contracts
	Account   common.Address
	Since     time.Time

	// Witness is an order that has ended by a transaction, or nil if there is none.
	Witness *ramp.Order
}

// Moves are the events that a [Search] found.
type Moves struct {
	Logs       []ramp.Log // one for each transfer of more than nothing
	FirstBlock uint64     // of the search, not much older than Since
	LastBlock  uint64
	LastTime   time.Time // of the newest block
	Witnessed  bool      // whether the node lists what is known to have happened
}

// Look makes a search. That a node lists nothing counts only if it lists what is known to have
// happened, asked for in the same way and in the same request: the event of the witness. If it
// does not, or does not return the transaction of the witness, that is an error.
func Look(ctx context.Context, chain *ramp.RPC, s Search) (*Moves, error) {
	newest, known := new(ramp.Block), new(ramp.Receipt)
	calls := []ramp.BatchCall{Call(newest, "eth_getBlockByNumber", ramp.Latest, false)}
	if s.Witness != nil {
		calls = append(calls, Call(known, "eth_getTransactionReceipt", common.HexToHash(s.Witness.TxHash)))
	}
	calls, err := Ask(ctx, chain, calls...)
	if err == nil {
		err = calls[0].Err
	}
	if err == nil && s.Witness != nil && calls[1].Err != nil {
		err = fmt.Errorf("ramp: the node does not return transaction %s, by which order %s has ended: "+
			"use another node: %w", s.Witness.TxHash, s.Witness.UUID, calls[1].Err)
	}
	if err != nil {
		return nil, err
	}
	m := &Moves{LastTime: TimeOf(newest.Timestamp)}
	if m.LastBlock, err = newest.Number.Uint64(); err != nil {
		return nil, err
	}
	if m.FirstBlock, err = BlockBefore(ctx, chain, s.Since, newest); err != nil {
		return nil, err
	}
	w := witnessOf(s.Witness, known)
	m.Witnessed = w != nil
	filter := ramp.LogFilter{Addresses: s.Tokens, Topics: movesOf(s.Direction, s.Account)}
	ask := func(f ramp.LogFilter) ([]ramp.Log, error) { return m.ask(ctx, chain, f, w) }
	for l, err := range logsBy(ctx, filter, m.FirstBlock, m.LastBlock, ask) {
		if err != nil {
			return nil, err
		}
		if t, ok := l.Transfer(); ok && !IsDust(&t) {
			m.Logs = append(m.Logs, l)
		}
	}
	return m, nil
}

// movesOf returns the topics of transfers to the user of a mint, or from that of a burn.
func movesOf(d ramp.Direction, account common.Address) [][]common.Hash {
	is := []common.Hash{common.BytesToHash(account[:])}
	if d == ramp.Burn {
		return [][]common.Hash{{TransferTopic}, is}
	}
	return [][]common.Hash{{TransferTopic}, nil, is}
}

// witness is an event that a node must list.
type witness struct {
	order  *ramp.Order
	filter ramp.LogFilter // of its block
}

// witnessOf returns the event by which an order has ended, as its receipt shows it, or nil.
func witnessOf(order *ramp.Order, receipt *ramp.Receipt) *witness {
	if order == nil {
		return nil
	}
	block, err := receipt.BlockNumber.Uint64()
	token, user := parties(order)
	if err != nil || !slices.ContainsFunc(transfersOf(token, receipt.Logs), func(t ramp.Transfer) bool {
		return order.Direction == ramp.Mint && t.To == user || order.Direction == ramp.Burn && t.From == user
	}) {
		return nil
	}
	at := ramp.AtBlock(block)
	return &witness{order, ramp.LogFilter{FromBlock: at, ToBlock: at, Addresses: []common.Address{token},
		Topics: movesOf(order.Direction, user)}}
}

// ask asks for logs and, in the same request, for those of the witness and for the newest
// block: another node behind the same address may list less than the one before has seen.
func (m *Moves) ask(ctx context.Context, chain *ramp.RPC, f ramp.LogFilter, w *witness) ([]ramp.Log, error) {
	var logs, known []ramp.Log
	newest := new(ramp.Block)
	calls := []ramp.BatchCall{Call(&logs, "eth_getLogs", f),
		Call(newest, "eth_getBlockByNumber", ramp.Latest, false)}
	if w != nil {
		calls = append(calls, Call(&known, "eth_getLogs", w.filter))
	}
	_, err := Ask(ctx, chain, calls...)
	if err != nil {
		return nil, err
	}
	if head, err := newest.Number.Uint64(); err != nil || head < m.LastBlock {
		return nil, fmt.Errorf("ramp: the node is behind: its newest block is %d, and block %d is there",
			head, m.LastBlock)
	}
	if w != nil && !slices.ContainsFunc(known, func(l ramp.Log) bool {
		return l.TransactionHash == common.HexToHash(w.order.TxHash) && !l.Removed
	}) {
		return nil, fmt.Errorf("ramp: the node shows transaction %s of order %s in block %s, and lists none of "+
			"its events: its index is broken or not built yet, so use another node",
			w.order.TxHash, w.order.UUID, w.filter.FromBlock)
	}
	m.LastTime = slices.MinFunc([]time.Time{m.LastTime, TimeOf(newest.Timestamp)}, time.Time.Compare)
	return logs, nil
}
