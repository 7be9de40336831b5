package chain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/common"
)

// State is the state of a chain, or a part of it, in a form that can be encoded. It does
// not include the clock and the configuration.
type State struct {
	Spans        []Span   // oldest first
	Forks        []uint64 // all of them; nil if they have not changed
	Transactions []Transaction
	Forgotten    []common.Hash // transactions that are no longer known
	Accounts     []Account
}

// Changes returns the part of the state that has changed since the last call. It
// requires [Config.Tracked].
func (c *Chain) Changes() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := State{Spans: slices.Clone(c.spans[c.changed.spans:])}
	if len(c.forks) > c.changed.forks {
		s.Forks = slices.Clone(c.forks)
	}
	for hash := range c.changed.transactions {
		if t := c.known[hash]; t == nil {
			s.Forgotten = append(s.Forgotten, hash)
		} else {
			s.Transactions = append(s.Transactions, *t)
		}
	}
	for owner := range c.changed.accounts {
		a := *c.accounts[owner]
		a.Holdings = maps.Clone(a.Holdings)
		s.Accounts = append(s.Accounts, a)
	}
	c.changed = newChanges(len(c.spans), len(c.forks))
	return s
}

// Restore sets a new chain to a state, which has all changes of another chain. The clock
// must not be earlier than it was then.
func (c *Chain) Restore(s State) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, span := range s.Spans {
		if i > 0 && span.First <= s.Spans[i-1].First || span.At.After(c.Now()) {
			return fmt.Errorf("the chain %s has blocks out of order", c.Name)
		}
	}
	c.spans, c.forks = s.Spans, s.Forks
	slices.SortFunc(s.Transactions, func(a, b Transaction) int {
		return cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.Index, b.Index))
	})
	for _, t := range s.Transactions {
		c.known[t.Hash] = &t
		if t.Mined {
			c.put(&t, t.Block)
		}
	}
	for _, a := range s.Accounts {
		c.accounts[a.Owner] = &a
	}
	c.changed = newChanges(len(c.spans), len(c.forks))
	return nil
}

// Transaction returns the transaction with a hash, or nil if there is none.
func (c *Chain) Transaction(hash common.Hash) *Transaction {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known[hash]
}
