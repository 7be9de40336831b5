package conformance

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// players are the players of all cases. It is safe for concurrent use.
type players struct {
	mu     sync.Mutex
	met    map[string]bool      // by session ID
	users  map[string]*trial    // the trial that uses a player now, by session ID
	late   map[string]lateOrder // the orders that the opening left open, by session ID
	pooled atomic.Bool          // Player returned a player again
	shared atomic.Bool          // Player returned a player that another case was using: one case at a time
}

// take reserves a player for a trial. It reports false if another trial has the player.
func (p *players) take(t *trial, session string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if user := p.users[session]; user != nil && user != t {
		p.shared.Store(true)
		return false
	}
	p.users[session] = t
	return true
}

// release releases all players of a trial.
func (p *players) release(t *trial) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.users, func(_ string, user *trial) bool { return user == t })
}

// meets records a player and reports whether an earlier case had the same.
func (p *players) meets(session string) (again bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	again = p.met[session]
	p.met[session] = true
	if again {
		p.pooled.Store(true)
	}
	return again
}

// closeLate returns the order that was left open of a player, who is not left alone.
func (p *players) closeLate(session string) (open []order) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if late, ok := p.late[session]; ok {
		open = append(open, late.order)
		delete(p.late, session)
	}
	return open
}

func (p *players) keepOpen(late lateOrder) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.late[late.owner.ID] = late
}

func (p *players) leftOpen() []lateOrder {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.late))
}
