package judge

import (
	"slices"

	ramp "github.com/token-ramp/ramp-go"
)

// ending is a way in which an order ends.
type ending struct {
	name, title string
	of          func(*trial, ramp.Session) order
	status      string
	ability     string // without which it proves nothing
}

var (
	mintFails = ending{"mint-failure", "a failed mint", (*trial).mintOf, failure, "mint-fails"}
	mintEnds  = ending{"mint-success", "a successful mint", (*trial).mintOf, success, "mint-succeeds"}
	burnEnds  = ending{"burn-success", "a successful burn", (*trial).burnOf, success, "burn-succeeds"}
	burnFails = ending{"burn-failure", "a failed burn", (*trial).burnOf, failure, "burn-fails"}
)

// kind returns mint or burn.
func (e ending) kind() string { return e.name[:4] }

// order returns an order of the case's player.
func (e ending) order(t *trial) order { return e.of(t, t.player) }

// open returns an order of the case's player that is approved and has yet to end.
func (e ending) open(t *trial) order { return t.approve(e.order(t)) }

// payingEnds runs something for each ending that gives the player something, of those that the
// game has.
func (t *trial) payingEnds(run func(ending)) {
	for i, e := range []ending{mintFails, burnEnds} {
		if i > 0 {
			t.renew()
		}
		if t.has(e.kind()) {
			run(e)
		}
	}
}

// as returns an input about an open order and the status with which it ends.
func (e ending) as(name, title string, run func(*trial, order, string), after ...string) Input {
	return must(name, title, func(t *trial) { run(t, e.open(t), e.status) }, append(after, e.ability)...)
}

func (e ending) input(run func(*trial, order, string)) Input { return e.as(e.name, e.title, run) }

// eachEnding returns an input for each way in which an order ends.
func eachEnding(run func(*trial, ending), after ...string) []Input {
	var all []Input
	for _, e := range []ending{mintFails, mintEnds, burnEnds, burnFails} {
		needs := append(slices.Clone(after), e.ability)
		all = append(all, must(e.name, e.title, func(t *trial) { run(t, e) }, needs...))
	}
	return all
}
