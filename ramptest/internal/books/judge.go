package books

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/token-ramp/ramp-go/internal/redact"
)

// Judgment is what the books say about a window.
type Judgment struct {
	Known    bool   // whether there are both readings
	Moved    Assets // the difference between them
	Said     string // what moved, in words
	Problem  string // what is wrong; "" if nothing is
	Orders   []uuid.UUID
	Assets   []Difference // the wrong balances
	Overdraw bool         // the game approved more than the player owned; another reading cannot change that

	after Assets
	guess bool // movements of several orders may have canceled each other
	ways  []way
}

// Difference is an asset whose balance is wrong.
type Difference struct {
	ID                      string
	Before, After, Expected *big.Rat
}

// way is an order in a window, with what it may have done.
type way struct {
	order *Tally
	calls []Call // none for an order of an earlier window, which may have acted late
	steps []Step
	taken []Step // the steps that explain what moved
}

// Judge judges a window between two readings, which are nil if unknown. It changes
// nothing; [Player.End] enters the judgment. Only the last judgment of a window may
// explain a difference by late effects of other orders, because until then a missing
// effect may still come.
func (p *Player) Judge(calls []Call, before, after Assets, last bool) Judgment {
	v := Judgment{Known: before != nil && after != nil, after: after, ways: p.ways(calls)}
	free := false // nothing is required
	for _, w := range v.ways {
		v.Orders = append(v.Orders, w.order.UUID)
		free = free || w.order.Disputed
	}
	if !v.Known {
		v.Said = "not judged, because what the player owns is unknown"
		if before != nil && !free {
			v.overdraw(before)
		}
		return v
	}
	v.Moved = after.Minus(before)
	v.Said = v.verb(v.Moved, true)
	if len(v.Moved) == 0 {
		v.Said = "nothing moved"
	}
	ways, own := explain(v.ways, v.Moved)
	ok := own
	if own || last || free {
		// It may be unknown whose effect this was: that of another order may be late.
		ways, ok = explain(slices.Concat(v.ways, p.late(v.ways)), v.Moved)
		v.guess = !own && cancels(ways)
	}
	if ok {
		v.ways = ways
	}
	switch {
	case free:
	case ok:
		v.overdraw(before)
	default:
		v.problem(before, after)
	}
	return v
}

// late returns what the orders of earlier windows may do, but for those of these ways.
func (p *Player) late(except []way) (ways []way) {
	for _, o := range p.Late {
		if !slices.ContainsFunc(except, func(w way) bool { return w.order == o }) {
			ways = append(ways, way{order: o, steps: p.steps(o, nil)})
		}
	}
	return ways
}

// maxSums bounds the work for windows of many orders. Beyond it, everything is accepted.
const maxSums = 500

// explain finds the steps whose moves add up to what moved. It keeps each step that is
// part of any solution, and every step if there is none.
func explain(ways []way, moved Assets) (explained []way, ok bool) {
	type sums map[string]Assets
	explained = slices.Clone(ways)
	for i, w := range ways {
		explained[i].taken = w.steps
	}
	reach := []sums{{"": {}}} // the sums that the ways before an index can have
	for i, w := range ways {
		next := sums{}
		for _, sum := range reach[i] {
			for _, s := range w.steps {
				total := sum.Plus(s.Move)
				next[total.key()] = total
			}
		}
		if reach = append(reach, next); len(next) > maxSums {
			return explained, true
		}
	}
	if _, ok := reach[len(ways)][moved.key()]; !ok {
		return explained, false
	}
	ends := sums{"": moved} // those of them from which the ways from an index on lead to moved
	for i, w := range slices.Backward(ways) {
		starts := sums{}
		explained[i].taken = nil
		for _, s := range w.steps {
			fits := false
			for _, end := range ends {
				start := end.Minus(s.Move)
				if key := start.key(); reach[i][key] != nil {
					starts[key], fits = start, true
				}
			}
			if fits {
				explained[i].taken = append(explained[i].taken, s)
			}
		}
		ends = starts
	}
	return explained, true
}

// cancels reports whether the moves of two orders may have canceled each other.
func cancels(ways []way) bool {
	for i, w := range ways {
		for _, other := range ways[:i] {
			if opposed(w.taken, other.taken) {
				return true
			}
		}
	}
	return false
}

// opposed reports whether a step of one order cancels one of another.
func opposed(a, b []Step) bool {
	return slices.ContainsFunc(a, func(a Step) bool {
		return len(a.Move) > 0 && slices.ContainsFunc(b, func(b Step) bool { return len(a.Move.Plus(b.Move)) == 0 })
	})
}

// overdraw finds mints that were approved for more than the player owned.
func (v *Judgment) overdraw(before Assets) {
	need, have := Assets{}, before
	var approvals []way
	for _, w := range v.ways {
		approved, result := false, false
		for _, c := range w.calls {
			approved = approved || !c.Result && !c.Forged && c.Answer == Yes
			result = result || c.Result
		}
		switch {
		case result: // what it gives may cover the others
			for _, s := range w.steps {
				if sign, _ := s.Move.sign(); sign > 0 {
					have = have.Plus(s.Move)
				}
			}
		case approved && w.order.Mint && !w.order.Asked && !w.order.Delivered:
			need = need.Minus(w.order.Sum)
			approvals = append(approvals, w)
		}
	}
	for _, id := range need.ids() {
		if need[id].Cmp(have.of(id)) > 0 {
			v.Overdraw = true
			v.Problem = fmt.Sprintf("%s: approved, but costs %s %s and the player has %s", names(approvals), Grouped(need[id]), redact.Isolate(id), Grouped(have.of(id)))
			return
		}
	}
}

// problem describes the difference from the closest expected step.
func (v *Judgment) problem(before, after Assets) {
	expected := v.ways[0].closest(v.Moved)
	if len(v.ways) > 1 {
		expected = Assets{}
		for _, w := range v.ways {
			expected = expected.Plus(w.steps[len(w.steps)-1].Move)
		}
	}
	var balances []string
	wrong := v.Moved.Minus(expected)
	unlisted := v.unlisted(wrong, before, after)
	v.blame(wrong)
	for _, id := range wrong.ids() {
		d := Difference{ID: id, Before: before.of(id), After: after.of(id), Expected: before.Plus(expected).of(id)}
		v.Assets = append(v.Assets, d)
		text := fmt.Sprintf("%s before the call, %s after it, %s expected", Grouped(d.Before), Grouped(d.After), Grouped(d.Expected))
		if len(wrong) > 1 || len(expected) != 1 || expected[id] == nil {
			text = redact.Isolate(id) + ": " + text
		}
		if unlisted == "" && !slices.ContainsFunc(v.ways, func(w way) bool { return w.order.Sum[id] != nil }) {
			text += " (it is no part of the order)"
		}
		balances = append(balances, text)
	}
	v.Problem = fmt.Sprintf("%s: the game must %s: %s%s", v.story(), v.verb(expected, false), strings.Join(balances, "; "), unlisted)
}

// blame names the orders of several that explain a difference, if only they do: each has
// moved its assets once too often, or not at all. The others have moved what they must.
func (v *Judgment) blame(wrong Assets) {
	suspects := slices.Clone(v.ways)
	for i, w := range v.ways {
		suspects[i].steps = []Step{{Move: Assets{}}, {Move: w.order.Sum}, {Move: w.order.Sum.Plus(w.order.Sum)}, {Move: Assets{}.Minus(w.order.Sum)}}
	}
	suspects, ok := explain(suspects, wrong)
	if !ok || len(v.ways) == 1 || slices.ContainsFunc(suspects, func(w way) bool { return len(w.taken) > 1 }) {
		return
	}
	v.Orders = nil
	for i, w := range v.ways {
		step, extra := w.steps[len(w.steps)-1], suspects[i].taken[0].Move
		v.ways[i].taken = []Step{{Move: step.Move.Plus(extra), Total: step.Total.Plus(extra)}}
		if len(extra) > 0 {
			v.Orders = append(v.Orders, w.order.UUID)
		}
	}
}

// unlisted names the assets of the orders that the game does not list, if another
// asset moved: their IDs may be wrong.
func (v *Judgment) unlisted(wrong, before, after Assets) string {
	missing, others := Assets{}, wrong
	for _, w := range v.ways {
		others = others.Minus(others.only(w.order.Sum))
		for id, amount := range w.order.Sum {
			if before[id] == nil && after[id] == nil {
				missing[redact.Isolate(id)] = amount
			}
		}
	}
	if len(missing) == 0 || len(others) == 0 {
		return ""
	}
	return fmt.Sprintf(" (the order is about %s, which the player's assets do not have)", strings.Join(missing.ids(), ", "))
}

// closest returns the move that differs in the fewest assets, and the last of equals.
func (w *way) closest(moved Assets) Assets {
	best := w.steps[0].Move
	for _, s := range w.steps {
		if len(moved.Minus(s.Move)) <= len(moved.Minus(best)) {
			best = s.Move
		}
	}
	return best
}

// story describes what happened to the orders of a window.
func (v *Judgment) story() string {
	name := names(v.ways)
	if len(v.ways) > 1 {
		return name + " at the same time"
	}
	w := v.ways[0]
	last := w.calls[len(w.calls)-1]
	for _, c := range w.calls {
		if c.Answer == Yes && !c.Forged {
			last = c
		}
	}
	switch {
	case last.Forged && last.Result:
		return name + " got a forged result"
	case last.Forged:
		return name + " got a forged validate"
	case last.Result && w.order.Succeeded && w.order.Less:
		return name + " burned less on chain than it is about"
	case last.Result && w.order.Succeeded:
		return name + " succeeded on chain"
	case last.Result:
		return name + " failed on chain"
	case last.Answer == Yes && (w.order.Asked || len(w.calls) > 1):
		return name + " was approved more than once"
	case last.Answer == Yes:
		return name + " was approved"
	case last.Answer == No:
		return name + " was rejected"
	default:
		return name + " got no answer to validate"
	}
}

func names(ways []way) string {
	var list []string
	for _, w := range ways {
		verb := "burn"
		if w.order.Mint {
			verb = "mint"
		}
		list = append(list, verb+" "+w.order.UUID.String()[:8])
	}
	if len(list) > 3 {
		list = append(list[:3], fmt.Sprintf("%d more", len(ways)-3))
	}
	return strings.Join(list, " and ")
}

// verb describes a movement as something that the game does or did.
func (v *Judgment) verb(move Assets, past bool) string {
	mint := v.ways[0].order.Mint
	mixed := slices.ContainsFunc(v.ways, func(w way) bool { return w.order.Mint != mint })
	sign, one := move.sign()
	plain := sign == 0 || !one || mixed
	now, was := "move", "moved"
	switch {
	case plain:
	case sign < 0:
		now, was = "take", "took"
	case mint:
		now, was = "give back", "gave back"
	default:
		now, was = "grant", "granted"
	}
	if past {
		now = was
	}
	if plain {
		return now + " " + move.String()
	}
	return now + " " + strings.Join(move.Amounts(), ", ")
}
