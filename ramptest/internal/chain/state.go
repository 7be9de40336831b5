package chain

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// State is the state of a chain in a form that can be encoded. It does not include the
// clock and the configuration.
type State struct {
	Spans        []SpanState
	Forks        []uint64
	Transactions []TransactionState // all known ones; those of a block in order
	Nonces       map[common.Address]uint64
	Done         map[common.Address]uint64
	Spent        map[common.Address]*big.Int
	Holdings     []HoldingState
}

// SpanState is a run of blocks at equal intervals.
type SpanState struct {
	First uint64
	At    time.Time
}

// TransactionState is a transaction and its position.
type TransactionState struct {
	Transaction
	Mined  bool
	Block  uint64
	Status uint64
	Gone   bool
}

// HoldingState is the change of an owner's initial token balance.
type HoldingState struct {
	Token, Owner common.Address
	Units        *big.Int
}

// Save returns the state of a chain. Later changes of the chain do not affect it.
func (c *Chain) Save() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := State{Forks: slices.Clone(c.forks), Nonces: maps.Clone(c.nonces), Done: maps.Clone(c.done), Spent: make(map[common.Address]*big.Int)}
	for _, span := range c.spans {
		s.Spans = append(s.Spans, SpanState{span.first, span.at})
	}
	write := func(t *Transaction) {
		s.Transactions = append(s.Transactions, TransactionState{*t, t.mined, t.block, t.status, t.gone})
	}
	for _, block := range slices.Sorted(maps.Keys(c.filled)) {
		for _, t := range c.filled[block] {
			write(t)
		}
	}
	for _, t := range c.known {
		if !t.mined {
			write(t)
		}
	}
	for owner, wei := range c.spent {
		s.Spent[owner] = new(big.Int).Set(wei)
	}
	for h, units := range c.holdings {
		s.Holdings = append(s.Holdings, HoldingState{h.token, h.owner, new(big.Int).Set(units)})
	}
	return s
}

// Restore sets a chain to the state that [Chain.Save] returned. The clock must not be
// earlier than it was then.
func (c *Chain) Restore(s State) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(s.Spans) == 0 {
		return fmt.Errorf("the chain %s has no blocks", c.config.Name)
	}
	c.spans, c.forks = nil, slices.Clone(s.Forks)
	for i, span := range s.Spans {
		if i > 0 && span.First <= s.Spans[i-1].First || span.At.After(c.config.Now()) {
			return fmt.Errorf("the chain %s has blocks out of order", c.config.Name)
		}
		c.spans = append(c.spans, spanOf(span))
	}
	for _, saved := range s.Transactions {
		t := saved.Transaction
		t.mined, t.status, t.gone = false, saved.Status, saved.Gone
		c.known[t.Hash] = &t
		if saved.Mined {
			c.put(&t, saved.Block)
		}
	}
	maps.Copy(c.nonces, s.Nonces)
	maps.Copy(c.done, s.Done)
	maps.Copy(c.spent, s.Spent)
	for _, h := range s.Holdings {
		c.holdings[holding{h.Token, h.Owner}] = h.Units
	}
	return nil
}

func spanOf(s SpanState) span { return span{s.First, s.At} }

// Transaction returns the transaction with a hash, or nil if there is none.
func (c *Chain) Transaction(hash common.Hash) *Transaction {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known[hash]
}
