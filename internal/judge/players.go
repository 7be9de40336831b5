package judge

import (
	"sync"
	"sync/atomic"
)

// players are the players of all cases, by session ID. It is safe for concurrent use.
type players struct {
	met    sync.Map    // all of them
	users  sync.Map    // who uses a player now
	late   sync.Map    // the [lateOrder] that the opening left open
	pooled atomic.Bool // Player returned a player again
	shared atomic.Bool // Player returned a player that another case was using: one case at a time
}

// take reserves a player for a user, which is a trial. It reports false if another one has
// the player.
func (p *players) take(session string, user any) bool {
	if other, taken := p.users.LoadOrStore(session, user); taken && other != user {
		p.shared.Store(true)
		return false
	}
	return true
}

// release releases all players of a user.
func (p *players) release(user any) {
	p.users.Range(func(session, other any) bool {
		if other == user {
			p.users.Delete(session)
		}
		return true
	})
}

// meets records a player and reports whether an earlier case had the same.
func (p *players) meets(session string) (again bool) {
	if _, again = p.met.LoadOrStore(session, true); again {
		p.pooled.Store(true)
	}
	return again
}
