// Package books judges which assets a game moves: each order must move its assets once,
// or not at all. It has only plain values. It makes no calls, has no clock, and is not
// safe for concurrent use.
//
// The unit of judgment is a window: one or more validate and result calls for a
// player's orders, between two readings of the player's assets. Movements outside
// windows are ignored, unless they are an effect that came after its window was closed.
package books

import (
	"maps"
	"math/big"
	"net/http"
	"slices"

	"github.com/google/uuid"
)

// Order is what the books know about an order.
type Order struct {
	UUID uuid.UUID `json:",omitzero"`
	Mint bool      `json:",omitzero"` // false for a burn
	Sum  Assets    `json:",omitzero"` // what the game must move in total if the transaction succeeds: minus the materials, or plus the outputs

	Less      bool     `json:",omitzero"` // the transaction burns less than the order is about, so it pays for nothing
	Before    Assets   `json:",omitzero"` // what the player owned before the order; nil if unknown
	Held      *big.Rat `json:"-"`         // the tokens in the player's wallet then; nil if unknown
	Totals    []Assets `json:",omitzero"` // what the game may have moved so far; more than one if that is ambiguous
	Took      Assets   `json:",omitzero"` // the most that the game is known to have taken for a mint, or granted for a burn
	Vague     bool     `json:",omitzero"` // it may have been more
	Asked     bool     `json:",omitzero"` // a validate call was made
	Approved  bool     `json:",omitzero"` // the game may have approved it
	Delivered bool     `json:",omitzero"` // a result was delivered
	First     bool     `json:",omitzero"` // the outcome that the first result stated
	Succeeded bool     `json:",omitzero"` // the outcome that stands: the first that the game confirmed, or else First
	Disputed  bool     `json:",omitzero"` // the results stated two outcomes, or one that is not that of the chain: nothing is required
	Failure   Results  `json:",omitzero"` // the results that stated a failure
	Success   Results  `json:",omitzero"` // those that stated a success
	Lost      bool     `json:",omitzero"` // the books lost track: nothing is required
	Unread    bool     `json:",omitzero"` // the game did not say what the player owned before and after some call
	Mixed     bool     `json:",omitzero"` // what moved could not be told apart from other movements
	Guess     bool     `json:",omitzero"` // Totals rests on a guess, because nothing moved that would prove it

	// Effects of closed windows that may still come, because the game may act after
	// it has answered.
	Late  []Step `json:",omitzero"`
	Peers Peers  `json:",omitzero"` // other orders of the player that may be late at the same time

	Outside Assets `json:",omitzero"` // the player's Outside when the last window was closed
	Epoch   int    `json:",omitzero"`
}

// Results are the results that stated one outcome.
type Results struct {
	Made      bool `json:",omitzero"` // there was one
	Confirmed bool `json:",omitzero"` // the game answered HTTP 200 to one
	Status    int  `json:",omitzero"` // the last answer; 0 if there was none
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
	Doubt bool   // it begins with a total that nothing proves
}

// NewOrder returns an order for which nothing has moved.
func NewOrder(id uuid.UUID, mint bool, sum Assets) *Order {
	return &Order{UUID: id, Mint: mint, Sum: sum, Totals: []Assets{{}}}
}

// Deliver records the outcome that a delivery states and the outcome on the chain. It
// reports whether they differ, or whether an earlier delivery differs: nothing is
// required of the game then.
func (o *Order) Deliver(succeeded, onChain bool) (opposite bool) {
	if !o.Delivered {
		o.Delivered, o.First, o.Succeeded = true, succeeded, succeeded
	}
	o.of(succeeded).Made = true
	opposite = succeeded != onChain || o.of(!succeeded).Made
	o.Disputed = o.Disputed || opposite
	return opposite
}

// Answered records the HTTP status with which the game answered a delivery; 0 is no answer.
func (o *Order) Answered(succeeded bool, status int) {
	r := o.of(succeeded)
	r.Status = status
	if status != http.StatusOK {
		return
	}
	r.Confirmed = true
	if !o.of(!succeeded).Confirmed {
		o.Succeeded = succeeded
	}
}

func (o *Order) of(succeeded bool) *Results {
	if succeeded {
		return &o.Success
	}
	return &o.Failure
}

// isFree reports whether nothing is required of the game for the order.
func (o *Order) isFree() bool { return o.Disputed || o.Lost }

// Due returns what must have moved in total after the result.
func (o *Order) Due() Assets {
	if o.Succeeded && !o.Less {
		return o.Sum
	}
	return Assets{}
}

// Answer is what the answer to a call means.
type Answer int

// The answers to a call.
const (
	No   Answer = iota // a rejected validate call or a forged call: nothing may move
	Yes                // an approved validate call or a result that is not retried: what is due must move
	Open               // no answer, or one after which the call is retried: what is due may move
)

// Call is a call of a window.
type Call struct {
	Order  *Order
	Result bool // false for a validate call
	Forged bool
	Answer Answer

	Opposite bool // it states another outcome than the chain, or than an earlier result
}

// Player is what the books know about a player.
type Player struct {
	Last    Assets // the last reading; nil if there is none
	Outside Assets // what has moved between windows, in total
	Epoch   int    // counts the times that Outside was lost
	Late    []*Order
	Pending []Call              // since Last, in windows that could not be read
	prior   map[*Order][]Assets // the Totals of their orders before them
}

// maxLate is how many of a player's other orders may explain a movement in a window.
// Late effects come soon, so older orders need not be kept.
const maxLate = 16

// maxPending is how many calls are judged again.
const maxPending = 64

// Look enters a reading while no call is in progress; nil if it failed. It judges the calls
// again whose windows could not be read: a match proves, and a mismatch proves nothing. It
// reports the orders about which something has become known.
func (p *Player) Look(owns Assets) (changed []*Order) {
	if owns == nil {
		return nil
	}
	switch moved := owns.Minus(p.Last); {
	case p.Last == nil:
		p.Outside, p.Epoch = Assets{}, p.Epoch+1
	case p.Pending != nil:
		changed = p.again(moved)
	default:
		ways, _ := explain(p.late(nil), moved) // those whose effects have come since, if no others have
		guess := cancels(ways)
		for _, w := range ways {
			if len(w.taken) == 1 && len(w.taken[0].Move) > 0 {
				w.order.enter(w.taken, guess)
				w.order.Late, changed, moved = w.order.missing(), append(changed, w.order), moved.Minus(w.taken[0].Move)
			}
		}
		p.Outside = p.Outside.Plus(moved)
	}
	p.Last, p.Pending, p.prior = owns, nil, nil
	return changed
}

// again judges the pending calls, between which and now this has moved.
func (p *Player) again(moved Assets) (changed []*Order) {
	for o, totals := range p.prior {
		o.Totals = totals
	}
	ways := p.ways(p.Pending)
	p.Outside, p.Epoch = Assets{}, p.Epoch+1
	explained, ok := explain(ways, moved)
	guess := cancels(explained)
	for i, w := range ways {
		o := w.order
		changed = append(changed, o)
		if !ok || slices.ContainsFunc(w.calls, func(c Call) bool { return c.Opposite }) {
			o.settle(w.steps)
			o.Mixed = true
			continue
		}
		o.enter(explained[i].taken, guess)
		o.Unread = len(o.Totals) > 1
		p.await(o, w.steps, explained[i].taken)
	}
	return changed
}

// ways returns what the orders of calls may do.
func (p *Player) ways(calls []Call) (ways []way) {
	for _, c := range calls {
		at := slices.IndexFunc(ways, func(w way) bool { return w.order == c.Order })
		if at < 0 {
			at = len(ways)
			ways = append(ways, way{order: c.Order})
		}
		ways[at].calls = append(ways[at].calls, c)
	}
	for i, w := range ways {
		ways[i].steps = p.steps(w.order, w.calls)
	}
	return ways
}

// Drop forgets an order that belongs to another player.
func (p *Player) Drop(o *Order) {
	p.Late = slices.DeleteFunc(p.Late, func(late *Order) bool { return late == o })
	p.Pending = slices.DeleteFunc(p.Pending, func(c Call) bool { return c.Order == o })
	delete(p.prior, o)
	o.Epoch = -1
}

// starts returns the totals with which an order may begin a window. A late effect may
// have come since the last window, or may come during this one and is then a movement
// of this one.
func (p *Player) starts(o *Order) []Step {
	starts := make([]Step, 0, 2)
	for _, total := range o.Totals {
		starts = append(starts, Step{Move: Assets{}, Total: total, Doubt: o.Guess || len(o.Totals) > 1})
	}
	gap, known := p.Outside.Minus(o.Outside), o.Epoch == p.Epoch
	for _, total := range o.Totals {
		// A game that watches the chain, or an operator, may end an order before its
		// result comes. A player may also have earned just as much.
		if rest := o.Due().Minus(total); o.Delivered && known && len(rest) > 0 && gap.Covers(rest) {
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
			starts = append(starts, Step{Move: Assets{}, Total: late.Total, Doubt: true})
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
		case open && validate && o.Mint:
			ends = []Assets{start.Total, o.Sum, o.Due()}
		case open:
			ends = []Assets{start.Total, o.Due()}
		case validate && o.Mint && !o.Delivered && len(start.Total) == 0:
			ends = []Assets{start.Total, o.Sum}
		}
		for _, end := range ends {
			step := Step{Move: start.Move.Plus(end.Minus(start.Total)), Total: end, Doubt: start.Doubt}
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
	if v.Known {
		p.Last = v.after
	}
	if v.Problem != "" { // late effects of other orders may be in what moved
		for _, o := range p.Late {
			o.Epoch = -1
		}
	}
	for _, w := range v.ways {
		p.enter(v, w)
	}
	if !v.Known {
		for _, w := range v.ways {
			p.Pending = append(p.Pending, w.calls...)
		}
		if len(p.Pending) > maxPending {
			p.Last, p.Pending, p.prior = nil, nil, nil
		}
		p.Look(v.after)
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
		if !c.Result && !c.Forged {
			o.Asked, o.Approved = true, o.Approved || c.Answer != No
		}
	}
	taken := w.taken
	switch {
	case !v.Known:
		if o.Unread = true; p.prior == nil {
			p.prior = make(map[*Order][]Assets)
		}
		if p.prior[o] == nil {
			p.prior[o] = o.Totals
		}
		o.settle(w.steps)
		p.await(o, w.steps, w.steps)
		return
	case v.free && len(v.ways) > 1:
		o.Mixed = true
		taken = w.steps
	case v.free: // nothing is required, but what moved is known
		taken = nil
		for _, s := range w.steps {
			taken = append(taken, Step{Move: v.Moved, Total: s.Total.Minus(s.Move).Plus(v.Moved)})
		}
	case taken == nil && len(v.ways) > 1: // a problem, but of which order is unknown
		o.Lost, o.Late = true, nil
		return
	case taken == nil: // a problem, which must be reported only once
		start := w.steps[0].Total.Minus(w.steps[0].Move)
		taken = []Step{{Move: v.Moved, Total: start.Plus(v.Moved)}}
	}
	o.enter(taken, v.guess)
	if v.free {
		o.Late = nil
		return
	}
	if w.calls == nil {
		if !slices.ContainsFunc(taken, isStill) {
			o.Late = o.missing()
		}
		return
	}
	p.await(o, w.steps, taken)
}

func isStill(s Step) bool { return len(s.Move) == 0 }

// await remembers which of the steps of a closed window may still come: those that move
// something, if it is possible that nothing has moved.
func (p *Player) await(o *Order, steps, taken []Step) {
	o.Late, o.Outside, o.Epoch = nil, p.Outside, p.Epoch
	if slices.ContainsFunc(taken, isStill) {
		o.Late = slices.DeleteFunc(slices.Clone(steps), isStill)
	}
	if len(o.Late) == 0 {
		return
	}
	o.Peers = NoPeers
	for _, other := range p.Late {
		if other == o || len(other.Late) == 0 {
			continue
		}
		peers := SamePeers
		if opposed(o.Late, other.Late) {
			peers = OpposedPeers
		}
		o.Peers, other.Peers = max(o.Peers, peers), max(other.Peers, peers)
	}
	if !slices.Contains(p.Late, o) {
		p.Late = append(p.Late, o)
	}
}

// enter is settle, and remembers what is a guess: nothing moved proves nothing, and neither
// do movements that may have canceled each other. A movement proves.
func (o *Order) enter(steps []Step, guess bool) {
	o.settle(steps)
	o.Guess = guess || slices.ContainsFunc(steps, func(s Step) bool { return s.Doubt && len(s.Move) == 0 })
}

// missing returns the step that is due after a result and has not come; nil if none is.
func (o *Order) missing() []Step {
	rest := o.Due().Minus(o.Totals[0])
	if !o.Delivered || len(o.Totals) > 1 || len(rest) == 0 {
		return nil
	}
	return []Step{{Move: rest, Total: o.Due()}}
}

// settle enters what an order may have done in a window.
func (o *Order) settle(steps []Step) {
	var before []Assets
	o.Totals = nil
	for _, s := range steps {
		before, o.Totals = append(before, s.Total.Minus(s.Move)), append(o.Totals, s.Total)
	}
	o.Totals = distinct(o.Totals)
	for _, all := range [][]Assets{distinct(before), o.Totals} {
		if len(all) > 1 {
			o.Vague = true
		} else {
			o.take(all[0])
		}
	}
}

// take enters what the game has moved into Took.
func (o *Order) take(total Assets) {
	took := maps.Clone(o.Took)
	for id, n := range total {
		if o.Mint == (n.Sign() < 0) && abs(n).Cmp(abs(took.of(id))) > 0 {
			if took == nil {
				took = Assets{}
			}
			took[id] = n
		}
	}
	o.Took = took
}
