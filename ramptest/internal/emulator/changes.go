package emulator

import (
	"github.com/google/uuid"
	"github.com/token-ramp/ramp-go/ramptest/internal/locks"
)

// changes are what must be written to the state file. nil keeps nothing, because there is no
// file.
type changes struct {
	woken chan struct{} // receives when something has changed

	mu  locks.Mutex
	ids map[uuid.UUID]bool
}

func newChanges() *changes {
	return &changes{woken: make(chan struct{}, 1), mu: locks.At(locks.Changes), ids: make(map[uuid.UUID]bool)}
}

// note records that something has changed, and about which UUIDs, if it belongs to any.
func (c *changes) note(ids ...uuid.UUID) {
	if c == nil {
		return
	}
	c.mu.Lock()
	for _, id := range ids {
		c.ids[id] = true
	}
	c.mu.Unlock()
	select {
	case c.woken <- struct{}{}:
	default: // already woken
	}
}

// take returns the UUIDs, and forgets them.
func (c *changes) take() map[uuid.UUID]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids := c.ids
	c.ids = make(map[uuid.UUID]bool)
	return ids
}
