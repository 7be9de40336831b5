// Package books judges which assets a game moves: each order must move its assets once,
// or not at all. It has only plain values. It makes no calls, has no clock, and is not
// safe for concurrent use.
//
// The unit of judgment is a window: one or more validate and result calls for a
// player's orders, between two readings of the player's assets. Movements outside
// windows are ignored, unless they are an effect that came after its window was closed.
package books

import (
	"slices"

	"github.com/google/uuid"
)

// Order is what the books know about an order.
type Order struct {
	UUID uuid.UUID
	Mint bool   // false for a burn
	Sum  Assets // what the game must move in total if the transaction succeeds: minus the materials, or plus the outputs

	Before    Assets   // what the player owned before the order; nil if unknown
	Totals    []Assets // what the game may have moved so far; more than one if that is ambiguous
	Asked     bool     // a validate call was made
	Told      bool     // a result was delivered
	Succeeded bool     // the outcome that the result stated
	Disputed  bool     // the results stated two outcomes, or the books lost track: nothing is required

	// Effects of closed windows that may still come, because the game may act after
	// it has answered.
	Late  []Step
	Peers Peers // other orders of the player that may be late at the same time

	Outside Assets // the player's Outside when the last window was closed
	Epoch   int
}

// Peers are the other orders that may have caused a movement between windows.
type Peers int

// The kinds of peers.
const (
	NoPeers      Peers = iota
	SamePeers          // a movement may be theirs
	OpposedPeers       // a movement may be theirs, and theirs may cancel that of the order
)

// Step is one possibility for what an order does in a window.
type Step struct {
	Move  Assets // what moves
	Total Assets // what has moved in total afterwards
}

// NewOrder returns an order for which nothing has moved.
func NewOrder(id uuid.UUID, mint bool, sum Assets) *Order {
	return &Order{UUID: id, Mint: mint, Sum: sum, Totals: []Assets{{}}}
}

// Tell records the outcome that a delivery states and the outcome on the chain. If they
// differ, or if two deliveries do, nothing is required of the game.
func (o *Order) Tell(succeeded, onChain bool) {
	if succeeded != onChain || o.Told && o.Succeeded != succeeded {
		o.Disputed = true
	}
	o.Told, o.Succeeded = true, succeeded
}

// Due returns what must have moved in total after the result.
func (o *Order) Due() Assets {
	if o.Succeeded {
		return o.Sum
	}
	return Assets{}
}

// Answer is what the answer to a call means.
type Answer int

// The answers to a call.
const (
	No   Answer = iota // a declined validate call or a forged call: nothing may move
	Yes                // an approved validate call or a result that is not retried: what is due must move
	Open               // no answer, or one after which the call is retried: what is due may move
)

// Call is a call of a window.
type Call struct {
	Order  *Order
	Result bool // false for a validate call
	Forged bool
	Answer Answer
}

// Player is what the books know about a player.
type Player struct {
	Last    Assets // the last reading; nil if there is none
	Outside Assets // what has moved between windows, in total
	Epoch   int    // counts the times that Outside was lost
	Late    []*Order
}

// maxLate is how many of a player's other orders may explain a movement in a window.
// Late effects come soon, so older orders need not be kept.
const maxLate = 16

// Begin opens a window. before is nil if unknown.
func (p *Player) Begin(before Assets) {
	if p.Last == nil || before == nil {
		p.Outside, p.Epoch = Assets{}, p.Epoch+1
		return
	}
	p.Outside = p.Outside.Plus(before.Minus(p.Last))
}

// starts returns the totals with which an order may begin a window. A late effect may
// have come since the last window, or may come during this one and is then a movement
// of this one.
func (p *Player) starts(o *Order) []Step {
	starts := make([]Step, 0, 2)
	for _, total := range o.Totals {
		starts = append(starts, Step{Move: Assets{}, Total: total})
	}
	gap, known := p.Outside.Minus(o.Outside), o.Epoch == p.Epoch
	for _, total := range o.Totals {
		// A game that watches the chain, or an operator, may end an order before its
		// result comes. A player may also have earned just as much.
		if rest := o.Due().Minus(total); o.Told && known && len(rest) > 0 && gap.only(rest).Equal(rest) {
			starts = append(starts, Step{Move: Assets{}, Total: o.Due()})
		}
	}
	for _, late := range o.Late {
		g := gap.only(late.Move)
		if known && o.Peers == NoPeers && g.Equal(late.Move) { // it has come, and cannot come again
			return []Step{{Move: Assets{}, Total: late.Total}}
		}
		starts = append(starts, late)
		if !known || len(g) > 0 || o.Peers == OpposedPeers { // whether it has come is unknown
			starts = append(starts, Step{Move: Assets{}, Total: late.Total})
		}
	}
	return starts
}

// steps returns what an order may do in a window with these calls.
func (p *Player) steps(o *Order, calls []Call) []Step {
	var result, open, validate bool
	for _, c := range calls {
		switch {
		case c.Forged:
		case c.Result && c.Answer == Yes:
			result = true
		case c.Result && c.Answer == Open:
			open = true
		case !c.Result && c.Answer != No:
			validate = true
		}
	}
	var all []Step
	for _, start := range p.starts(o) {
		ends := []Assets{start.Total}
		switch {
		case result:
			ends = []Assets{o.Due()}
		case open:
			ends = []Assets{start.Total, o.Due()}
		case validate && o.Mint && !o.Told && len(start.Total) == 0:
			ends = []Assets{start.Total, o.Sum}
		}
		for _, end := range ends {
			step := Step{Move: start.Move.Plus(end.Minus(start.Total)), Total: end}
			if !slices.ContainsFunc(all, func(s Step) bool { return s.Move.Equal(step.Move) && s.Total.Equal(step.Total) }) {
				all = append(all, step)
			}
		}
	}
	return all
}

func distinct(all []Assets) []Assets {
	var out []Assets
	for _, a := range all {
		if !slices.ContainsFunc(out, a.Equal) {
			out = append(out, a)
		}
	}
	return out
}

// End enters the verdict of a window and closes it.
func (p *Player) End(v Verdict) {
	p.Last = v.after
	for _, w := range v.ways {
		p.enter(v, w)
	}
	p.Late = slices.DeleteFunc(p.Late, func(o *Order) bool { return len(o.Late) == 0 })
	if excess := len(p.Late) - maxLate; excess > 0 {
		p.Late = slices.Delete(p.Late, 0, excess)
	}
}

func (p *Player) enter(v Verdict, w way) {
	o := w.order
	if w.calls != nil {
		o.Outside, o.Epoch = p.Outside, p.Epoch
	}
	for _, c := range w.calls {
		o.Asked = o.Asked || !c.Result && !c.Forged
	}
	taken := w.taken
	switch {
	case v.free || !v.Known:
		o.Totals, o.Late = totals(w.steps), nil
		return
	case taken == nil && len(v.ways) > 1: // a problem, but of which order is unknown
		o.Disputed, o.Late = true, nil
		return
	case taken == nil: // a problem, which must be reported only once
		start := w.steps[0].Total.Minus(w.steps[0].Move)
		taken = []Step{{Move: v.Moved, Total: start.Plus(v.Moved)}}
	}
	o.Totals = totals(taken)
	still := slices.ContainsFunc(taken, func(s Step) bool { return len(s.Move) == 0 })
	if w.calls == nil {
		if !still {
			o.Late = nil
		}
		return
	}
	o.Late = nil
	for _, s := range w.steps {
		if still && len(s.Move) > 0 {
			o.Late = append(o.Late, s)
		}
	}
	if o.Late == nil {
		return
	}
	o.Peers = NoPeers
	for _, other := range p.Late {
		if other == o || len(other.Late) == 0 {
			continue
		}
		peers := SamePeers
		if a, one := o.Late[0].Move.sign(); !one || slices.ContainsFunc(slices.Concat(o.Late, other.Late), func(s Step) bool {
			b, one := s.Move.sign()
			return !one || a != b
		}) {
			peers = OpposedPeers
		}
		o.Peers, other.Peers = max(o.Peers, peers), max(other.Peers, peers)
	}
	if !slices.Contains(p.Late, o) {
		p.Late = append(p.Late, o)
	}
}

func totals(all []Step) []Assets {
	var out []Assets
	for _, s := range all {
		out = append(out, s.Total)
	}
	return distinct(out)
}
