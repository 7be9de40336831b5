package chain

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// State is the state of a chain, or a part of it, in a form that can be encoded. It does
// not include the clock and the configuration.
type State struct {
	Spans        []SpanState // oldest first
	Forks        []uint64    // all of them; nil if they have not changed
	Transactions []TransactionState
	Forgotten    []common.Hash // transactions that are no longer known
	Accounts     []AccountState
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
	Index  int // in the block
	Status uint64
	Gone   bool
}

// AccountState is the state of an account.
type AccountState struct {
	Owner    common.Address
	Nonce    uint64                      // of the next transaction
	Done     uint64                      // how many transactions are in blocks
	Spent    *big.Int                    `json:",omitempty"` // wei
	Holdings map[common.Address]*big.Int `json:",omitempty"` // changes of the initial balances, by token
}

// changes notes what has changed since [Chain.Changes] was called.
type changes struct {
	spans, forks int // how many have been returned
	transactions map[common.Hash]bool
	accounts     map[common.Address]bool
}

// touch notes a change of a transaction, if any is tracked. The caller must hold the lock.
func (c *Chain) touch(t *Transaction) {
	if c.config.Tracked {
		c.changed.transactions[t.Hash] = true
	}
}

func (c *Chain) touchAccount(owner common.Address) {
	if c.config.Tracked {
		c.changed.accounts[owner] = true
	}
}

func newChanges() changes {
	return changes{transactions: make(map[common.Hash]bool), accounts: make(map[common.Address]bool)}
}

// Changes returns the part of the state that has changed since the last call. It
// requires [Config.Tracked].
func (c *Chain) Changes() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	var s State
	for _, span := range c.spans[c.changed.spans:] {
		s.Spans = append(s.Spans, SpanState{span.first, span.at})
	}
	if len(c.forks) > c.changed.forks {
		s.Forks = slices.Clone(c.forks)
	}
	for hash := range c.changed.transactions {
		if t := c.known[hash]; t == nil {
			s.Forgotten = append(s.Forgotten, hash)
		} else {
			index := slices.Index(c.filled[t.block], t)
			s.Transactions = append(s.Transactions, TransactionState{*t, t.mined, t.block, index, t.status, t.gone})
		}
	}
	for owner := range c.changed.accounts {
		a := AccountState{Owner: owner, Nonce: c.nonces[owner], Done: c.done[owner], Holdings: make(map[common.Address]*big.Int)}
		if wei := c.spent[owner]; wei != nil {
			a.Spent = new(big.Int).Set(wei)
		}
		for token, units := range c.holdings[owner] {
			a.Holdings[token] = new(big.Int).Set(units)
		}
		s.Accounts = append(s.Accounts, a)
	}
	c.changed = newChanges()
	c.changed.spans, c.changed.forks = len(c.spans), len(c.forks)
	return s
}

// Restore sets a new chain to a state, which has all changes of another chain. The clock
// must not be earlier than it was then.
func (c *Chain) Restore(s State) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(s.Spans) == 0 {
		return fmt.Errorf("the chain %s has no blocks", c.config.Name)
	}
	c.spans, c.forks = nil, s.Forks
	for i, span := range s.Spans {
		if i > 0 && span.First <= s.Spans[i-1].First || span.At.After(c.config.Now()) {
			return fmt.Errorf("the chain %s has blocks out of order", c.config.Name)
		}
		c.spans = append(c.spans, spanOf(span))
	}
	slices.SortFunc(s.Transactions, func(a, b TransactionState) int {
		return cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.Index, b.Index))
	})
	for _, saved := range s.Transactions {
		t := saved.Transaction
		t.mined, t.status, t.gone = false, saved.Status, saved.Gone
		c.known[t.Hash] = &t
		if saved.Mined {
			c.put(&t, saved.Block)
		}
	}
	for _, a := range s.Accounts {
		c.nonces[a.Owner], c.done[a.Owner] = a.Nonce, a.Done
		if a.Spent != nil {
			c.spent[a.Owner] = a.Spent
		}
		c.holdings[a.Owner] = maps.Clone(a.Holdings)
	}
	c.changed = newChanges()
	c.changed.spans, c.changed.forks = len(c.spans), len(c.forks)
	return nil
}

func spanOf(s SpanState) span { return span{s.First, s.At} }

// Transaction returns the transaction with a hash, or nil if there is none.
func (c *Chain) Transaction(hash common.Hash) *Transaction {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known[hash]
}
