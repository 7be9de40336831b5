package chain

import (
	"maps"
	"slices"
)

// SetNode sets what is wrong from now on. A chain that has missed a block and goes on makes one at once.
func (c *Chain) SetNode(n Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noteStand()
	next := c.height() + 1
	switch {
	case n.Stands && !c.node.Stands:
		c.stopped = c.Now()
	case !n.Stands && c.node.Stands && !c.Now().Before(c.time(next)):
		c.spans = append(c.spans, Span{next, c.Now()})
	}
	c.node = n
	for name, set := range map[string]bool{
		Stands: n.Stands, Behind: n.Behind > 0, MaxLogs: n.MaxLogs > 0, Forgets: n.Forgets > 0,
	} {
		if set {
			c.idle[name] = true
		}
	}
}

// Stands reports whether the chain makes no blocks.
func (c *Chain) Stands() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.node.Stands
}

// Idle returns the settings of [Chain.SetNode] that have changed nothing.
func (c *Chain) Idle() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noteStand()
	return slices.Sorted(maps.Keys(c.idle))
}

// noteStand notes whether a chain that stands still has missed a block.
func (c *Chain) noteStand() {
	if c.node.Stands && !c.Now().Before(c.time(c.height()+1)) {
		delete(c.idle, Stands)
	}
}

// newest returns the newest block that the node shows.
func (c *Chain) newest() uint64 {
	height := c.height()
	return height - min(c.node.Behind, height)
}

// head is newest for a caller who learns from it how old the node is.
func (c *Chain) head() uint64 {
	if c.node.Behind > 0 {
		delete(c.idle, Behind)
	}
	return c.newest()
}

// shows reports whether the node shows what is in a block.
func (c *Chain) shows(block uint64) bool {
	switch old := c.Now().Add(-c.node.Forgets); {
	case block > c.newest():
		delete(c.idle, Behind)
	case c.node.Forgets > 0 && c.time(block).Before(old):
		delete(c.idle, Forgets)
	default:
		return true
	}
	return false
}
