// Package tally judges which assets a game moves: each order must move its assets once,
// or not at all. It has only plain values. It makes no calls, has no clock, and is not
// safe for concurrent use.
//
// The unit of judgment is a window: one or more validate and result calls for a
// player's orders, between two readings of the player's assets. Movements outside
// windows are ignored, unless they are an effect that came after its window was closed.
package tally

import (
	"math/big"
	"net/http"
	"slices"

	"github.com/google/uuid"
)

// Tally is what the books know about an order.
type Tally struct {
	UUID uuid.UUID `json:",omitzero"`
	Mint bool      `json:",omitzero"` // false for a burn
	// what the game must move in total if the transaction succeeds: minus the materials, or plus the
	// outputs
	Sum Assets `json:",omitzero"`

	// the transaction burns less than the order is about, so it pays for nothing
	Less   bool     `json:",omitzero"`
	Before Assets   `json:",omitzero"` // what the player owned before the order; nil if unknown
	Held   *big.Rat `json:"-"`         // the tokens in the player's wallet then; nil if unknown
	// the most that the game is known to have taken for a mint, or granted for a burn
	Took      Assets `json:",omitzero"`
	Vague     bool   `json:",omitzero"` // it may have been more
	Asked     bool   `json:",omitzero"` // a validate call was made
	Approved  bool   `json:",omitzero"` // the game may have approved it
	Signed    bool   `json:",omitzero"` // it has
	Delivered bool   `json:",omitzero"` // a result was delivered
	First     bool   `json:",omitzero"` // the outcome that the first result stated
	// the outcome that stands: the first that the game confirmed, or else First
	Succeeded bool `json:",omitzero"`
	// the results stated two outcomes, or one that is not that of the chain: nothing is required
	Disputed bool    `json:",omitzero"`
	Failure  Results `json:",omitzero"` // the results that stated a failure
	Success  Results `json:",omitzero"` // those that stated a success
	// the game did not say what the player owned before and after some call
	Unread bool `json:",omitzero"`
	Mixed  bool `json:",omitzero"` // what moved could not be told apart from other movements
	// the player's Outside when the last window was closed; nil if unknown
	Outside Assets `json:",omitzero"`
	Position
}

// Position is what an order may have moved, and what may still come, because the game may
// act after it has answered.
type Position struct {
	// what the game may have moved so far; more than one if that is ambiguous
	Totals []Assets `json:",omitzero"`
	Guess  bool     `json:",omitzero"` // Totals rests on a guess, because nothing moved that would prove it
	Late   []Step   `json:",omitzero"` // effects of closed windows that may still come
	Came   bool     `json:",omitzero"` // they may have come, which was not seen
}

// Results are the results that stated one outcome.
type Results struct {
	Made      bool `json:",omitzero"` // there was one
	Confirmed bool `json:",omitzero"` // the game answered HTTP 200 to one
	Status    int  `json:",omitzero"` // the last answer; 0 if there was none
}

// Step is one possibility for what an order does in a window.
type Step struct {
	Move  Assets // what moves
	Total Assets // what has moved in total afterwards
	Doubt bool   // it begins with a total that nothing proves
}

// NewTally returns what is known of an order for which nothing has moved.
func NewTally(id uuid.UUID, mint bool, sum Assets) *Tally {
	return &Tally{UUID: id, Mint: mint, Sum: sum, Position: Position{Totals: []Assets{{}}}}
}

// Deliver records the outcome that a delivery states and the outcome on the chain. It reports whether
// they differ, or whether an earlier delivery stated the other outcome and this one is not what the game
// has confirmed and what stands: nothing is required of the game then.
func (o *Tally) Deliver(succeeded, onChain bool) (opposite bool) {
	if !o.Delivered {
		o.Delivered, o.First, o.Succeeded = true, succeeded, succeeded
	}
	o.of(succeeded).Made = true
	again := o.Succeeded == succeeded && o.of(succeeded).Confirmed // it stands, whatever was said since
	opposite = succeeded != onChain || o.of(!succeeded).Made && !again
	o.Disputed = o.Disputed || opposite
	return opposite
}

// Fits reports whether a result states what the chain says, and the game has confirmed nothing else. It may
// confirm such a result whatever other results said.
func (o *Tally) Fits(succeeded, onChain bool) bool {
	return succeeded == onChain && !o.of(!succeeded).Confirmed
}

// Answered records the HTTP status with which the game answered a delivery; 0 is no answer.
func (o *Tally) Answered(succeeded bool, status int) {
	r := o.of(succeeded)
	r.Status, r.Confirmed = status, r.Confirmed || status == http.StatusOK
	if r.Confirmed && !o.of(!succeeded).Confirmed {
		o.Succeeded = succeeded
	}
}

func (o *Tally) of(succeeded bool) *Results {
	if succeeded {
		return &o.Success
	}
	return &o.Failure
}

// Due returns what must have moved in total after the result.
func (o *Tally) Due() Assets {
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
	Order  *Tally
	Result bool // false for a validate call
	Forged bool
	Answer Answer

	was Position // that of the order before, if the window could not be read
}

// Player is what the books know about a player.
type Player struct {
	Last    Assets // the last reading; nil if there is none
	Outside Assets // what has moved for no order, in total
	Late    []*Tally
	Pending []Call // since Last, in windows that could not be read

	// Closed says that nothing but orders moves the player's assets. A game that watches the chain, or
	// an operator, may then be seen to end an order before its result comes.
	Closed  bool
	Early   []*Tally // of closed books: the approved orders without a result
	Guessed bool     // what moved may have been taken for another order's, so the right one may still come
}

// maxLate is how many of a player's other orders may explain a movement in a window.
// Late effects come soon, so older orders need not be kept.
const maxLate = 16

// maxPending is how many calls are judged again.
const maxPending = 64

// missed takes it for possible that what is late has come.
func (p *Player) missed() {
	for _, o := range p.Late {
		o.Came = true
	}
}

// Adopt takes over what may still come of the orders of another player, who is this one.
func (p *Player) Adopt(other *Player) {
	if other == p {
		return
	}
	other.missed()
	for _, o := range other.Late {
		p.await(o)
	}
	p.Early, p.Guessed = append(p.Early, other.Early...), p.Guessed || other.Guessed
	other.Late, other.Pending, other.Early = nil, nil, nil
}

// await notes an order whose effects may still come.
func (p *Player) await(o *Tally) {
	if len(o.Late) > 0 && !slices.Contains(p.Late, o) {
		p.Late = append(p.Late, o)
	}
}

// starts returns the totals with which an order may begin a window. A late effect may
// have come since the last window, or may come during this one and is then a movement
// of this one.
func (p *Player) starts(o *Tally) (starts []Step) {
	for _, total := range o.Totals {
		starts = append(starts, Step{Move: Assets{}, Total: total, Doubt: o.Guess || len(o.Totals) > 1})
		// A game that watches the chain, or an operator, may end an order before its
		// result comes. A player may also have earned just as much. If more has moved, the end of the
		// order may be in it.
		rest := o.Due().Minus(total)
		if !o.Delivered || o.Outside == nil || len(rest) == 0 {
			continue
		}
		if moved := p.Outside.Minus(o.Outside); moved.Holds(rest) {
			starts = append(starts, Step{Move: Assets{}, Total: o.Due(), Doubt: !moved.Covers(rest)})
		}
	}
	for _, late := range o.Late {
		starts = append(starts, late)
		if o.Came {
			starts = append(starts, Step{Move: Assets{}, Total: late.Total, Doubt: true})
		}
	}
	return starts
}

// steps returns what an order may do in a window with these calls.
func (p *Player) steps(o *Tally, calls []Call) []Step {
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
			ends[0] = o.Due()
		case validate && o.Mint && (open || !o.Delivered && len(start.Total) == 0):
			ends = append(ends, o.Sum)
		}
		if open {
			ends = append(ends, o.Due())
		}
		for _, end := range ends {
			step := Step{Move: start.Move.Plus(end.Minus(start.Total)), Total: end, Doubt: start.Doubt}
			if !slices.ContainsFunc(all,
				func(s Step) bool { return s.Move.Equal(step.Move) && s.Total.Equal(step.Total) }) {
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

func isStill(s Step) bool { return len(s.Move) == 0 }

// came enters which effects of earlier windows explain a movement, and reports whether they
// may be any.
func (o *Tally) came(taken []Step, guess bool) bool {
	moves := slices.ContainsFunc(taken, func(s Step) bool { return !isStill(s) })
	switch {
	case moves && len(o.Late) == 0: // the game may have ended it early
		o.settle(taken, guess)
	case !slices.ContainsFunc(taken, isStill):
		o.settle(taken, guess)
		o.Late, o.Came = nil, false
	case moves:
		o.Came = true
	default:
		return false
	}
	return true
}

// settle enters what an order may have done in a window. Nothing moved proves nothing, and
// neither do movements that may have canceled each other. A movement proves.
func (o *Tally) settle(steps []Step, guess bool) {
	var before []Assets
	o.Totals, o.Guess = nil, guess
	for _, s := range steps {
		before, o.Totals = append(before, s.Total.Minus(s.Move)), append(o.Totals, s.Total)
		o.Guess = o.Guess || s.Doubt && isStill(s)
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
func (o *Tally) take(total Assets) {
	for id, n := range total {
		if more := new(big.Rat).Sub(n, o.Took.Of(id)); o.Mint == (n.Sign() < 0) && more.Sign() == n.Sign() {
			o.Took = o.Took.Plus(Assets{id: more})
		}
	}
}
