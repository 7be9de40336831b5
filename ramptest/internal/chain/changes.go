package chain

import "github.com/ethereum/go-ethereum/common"

// changes notes what has changed since [Chain.Changes] was called.
type changes struct {
	spans, forks int // how many have been returned
	transactions map[common.Hash]bool
	accounts     map[common.Address]bool
}

func newChanges(spans, forks int) changes {
	return changes{spans: spans, forks: forks, transactions: make(map[common.Hash]bool),
		accounts: make(map[common.Address]bool)}
}
