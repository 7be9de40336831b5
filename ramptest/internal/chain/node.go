package chain

import "time"

// Node is what is wrong with a chain, or with the node that shows it, see NodeState of package ramptest.
// Only what goes through JSON-RPC is shown by the node: all other methods of a Chain read it as it is.
type Node struct {
	Stands  bool
	Behind  uint64
	MaxLogs int
	Forgets time.Duration
}

// view is how a chain is shown.
type view struct {
	node    Node
	stopped time.Time // when the last block was made, if the chain stands still
	// the settings that have changed nothing so far
	idle map[string]bool
}

func newView() view { return view{idle: make(map[string]bool)} }

// The settings, as [Chain.Idle] names them.
const (
	Stands  = "Stands"
	Behind  = "Behind"
	MaxLogs = "MaxLogs"
	Forgets = "Forgets"
)
