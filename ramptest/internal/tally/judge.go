package tally

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/token-ramp/ramp-go/internal/redact"
)

// Judgment is what the books say about a window.
type Judgment struct {
	Moved    Assets // the difference between the readings; nil if one is missing
	Said     string // what moved, in words
	Problem  string // what is wrong; "" if nothing is
	Orders   []uuid.UUID
	Assets   []Difference // the wrong balances
	Overdraw bool         // the game approved more than the player owned; another reading cannot change that

	after      Assets
	guess      bool // movements of several orders may have canceled each other
	candidates []candidate
}

// IsExplainedBy reports whether what moved is that of the window's orders and of others, which moved as
// much as they are about.
func (v *Judgment) IsExplainedBy(others []*Tally) bool {
	candidates := slices.Clone(v.candidates)
	for _, o := range others {
		steps := []Step{{Move: Assets{}}, {Move: o.Sum}, {Move: Assets{}.Minus(o.Sum)}}
		candidates = append(candidates, candidate{order: o, steps: steps})
	}
	_, ok := explain(candidates, v.Moved)
	return ok
}

// Difference is an asset whose balance is wrong.
type Difference struct {
	ID                      string
	Before, After, Expected *big.Rat
}

// candidate is an order in a window, with what it may have done.
type candidate struct {
	order *Tally
	calls []Call // none for an order of an earlier window, which may have acted late
	steps []Step
	taken []Step // the steps that explain what moved
}

// hidesTaking reports whether a validate call and a result of a mint lie between the same readings, and
// nothing is known to have moved: the game may have taken the assets and given them back, or neither.
func (w candidate) hidesTaking() bool {
	validate, result := false, false
	for _, c := range w.calls {
		if !c.Forged && c.Answer != No {
			validate, result = validate || !c.Result, result || c.Result
		}
	}
	return w.order.Mint && len(w.order.Sum) > 0 && len(w.order.Took) == 0 && validate && result &&
		slices.ContainsFunc(w.taken, func(s Step) bool { return isStill(s) && len(s.Total) == 0 })
}

// Judge judges a window between two readings, which are nil if unknown. It changes
// nothing; [Player.End] enters the judgment. Only the last judgment of a window may
// explain a difference by late effects of other orders, because until then a missing
// effect may still come.
func (p *Player) Judge(calls []Call, before, after Assets, last bool) Judgment {
	v := Judgment{after: after, candidates: p.candidates(calls)}
	free := false // nothing is required
	for _, w := range v.candidates {
		v.Orders = append(v.Orders, w.order.UUID)
		free = free || w.order.Disputed
	}
	if before == nil || after == nil {
		v.Said = "not judged, because what the player owns is unknown"
		if before != nil && !free {
			v.overdraw(before)
		}
		return v
	}
	v.Moved = after.Minus(before)
	if _, v.Said = v.verbs(v.Moved); len(v.Moved) == 0 {
		v.Said = "nothing moved"
	}
	candidates, own := explain(v.candidates, v.Moved)
	ok := own
	if own || last || free {
		// It may be unknown whose effect this was: that of another order may be late.
		late := p.late(v.candidates)
		if own {
			late = slices.DeleteFunc(late, v.triedAgain)
		}
		candidates, ok = explain(slices.Concat(v.candidates, late), v.Moved)
		v.guess = !own && cancels(candidates)
	}
	if ok {
		v.candidates = candidates
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

// triedAgain reports whether an order that the game did not approve, because its call failed, is as one
// that it approved in this window: the player has tried again. If the first one takes its assets after
// all, and the other does not, the player has lost nothing; if both do, the second movement shows it.
func (v *Judgment) triedAgain(late candidate) bool {
	return !late.order.Signed && !late.order.Delivered && slices.ContainsFunc(v.candidates,
		func(w candidate) bool {
			return w.order.Mint == late.order.Mint && w.order.Sum.Equal(late.order.Sum) &&
				slices.ContainsFunc(w.calls, func(c Call) bool {
					return !c.Result && !c.Forged && c.Answer == Yes
				})
		})
}

// late returns what the orders of earlier windows may do, but for those of these candidates.
func (p *Player) late(except []candidate) (candidates []candidate) {
	for _, o := range p.Late {
		if !slices.ContainsFunc(except, func(w candidate) bool { return w.order == o }) {
			candidates = append(candidates, candidate{order: o, steps: p.steps(o, nil)})
		}
	}
	return candidates
}

// early returns how a game may end orders of closed books before their results come: it gives back
// what a mint took, or grants a burn.
func (p *Player) early(except []candidate) (candidates []candidate) {
	for _, o := range p.Early {
		if o.Disputed || slices.ContainsFunc(except, func(w candidate) bool { return w.order == o }) {
			continue
		}
		end := Assets{}
		if !o.Mint {
			end = o.Sum
		}
		w := candidate{order: o}
		for _, total := range o.Totals {
			w.steps = append(w.steps, Step{Move: Assets{}, Total: total})
			if move := end.Minus(total); len(move) > 0 {
				w.steps = append(w.steps, Step{Move: move, Total: end})
			}
		}
		candidates = append(candidates, w)
	}
	return candidates
}

// maxRests bounds the work for windows of many orders. Beyond it, everything is accepted.
const maxRests = 4_000

// explain finds the steps whose moves add up to what moved. It keeps each step that is
// part of any solution, and every step if there is none.
func explain(candidates []candidate, moved Assets) (explained []candidate, ok bool) {
	type rest struct {
		from  int
		moved string
	}
	fits := map[rest]bool{} // whether what is left of it can be explained from a candidate on
	parts := map[[2]int]bool{}
	var fit func(from int, moved Assets) bool
	fit = func(from int, moved Assets) (ok bool) {
		if from == len(candidates) || len(fits) > maxRests {
			return len(moved) == 0 || len(fits) > maxRests
		}
		left := rest{from, moved.key()}
		if known, isKnown := fits[left]; isKnown {
			return known
		}
		for i, s := range candidates[from].steps {
			if fit(from+1, moved.Minus(s.Move)) {
				ok, parts[[2]int{from, i}] = true, true
			}
		}
		fits[left] = ok
		return ok
	}
	ok = fit(0, moved)
	for i, w := range candidates {
		w.taken = nil
		for j, s := range w.steps {
			if parts[[2]int{i, j}] || !ok || len(fits) > maxRests {
				w.taken = append(w.taken, s)
			}
		}
		explained = append(explained, w)
	}
	return explained, ok
}

// cancels reports whether the moves of two orders may have canceled each other.
func cancels(candidates []candidate) bool {
	canceled := map[string]bool{} // by a step of an earlier order
	for _, w := range candidates {
		if slices.ContainsFunc(w.taken, func(s Step) bool { return !isStill(s) && canceled[s.Move.key()] }) {
			return true
		}
		for _, s := range w.taken {
			canceled[Assets{}.Minus(s.Move).key()] = true
		}
	}
	return false
}

// overdraw finds mints that were approved for more than the player owned.
func (v *Judgment) overdraw(before Assets) {
	need, have := Assets{}, before
	var approvals []candidate
	for _, w := range v.candidates {
		approved, result := false, false
		for _, c := range w.calls {
			approved = approved || !c.Result && !c.Forged && c.Answer == Yes
			result = result || c.Result
		}
		switch {
		case result: // what it gives may cover the others
			for _, s := range w.steps {
				if s.Move.sign() > 0 {
					have = have.Plus(s.Move)
				}
			}
		case approved && w.order.Mint && !w.order.Asked && !w.order.Delivered:
			need = need.Minus(w.order.Sum)
			approvals = append(approvals, w)
		}
	}
	for _, id := range need.IDs() {
		if need[id].Cmp(have.Of(id)) > 0 {
			v.Overdraw = true
			v.Problem = fmt.Sprintf("%s: approved, but costs %s %s and the player has %s", names(approvals),
				Grouped(need[id]), redact.Isolate(id), Grouped(have.Of(id)))
			return
		}
	}
}

// problem describes the difference from the closest expected step.
func (v *Judgment) problem(before, after Assets) {
	expected := Assets{}
	for _, w := range v.candidates {
		expected = expected.Plus(w.steps[len(w.steps)-1].Move)
	}
	end := Assets{} // what may move instead of nothing
	if len(v.candidates) == 1 {
		o, step := v.candidates[0].order, v.candidates[0].closest(v.Moved)
		switch expected = step.Move; {
		case !isStill(step):
		case o.Delivered:
			end = o.Due().Minus(step.Total)
		default:
			end = v.candidates[0].steps[len(v.candidates[0].steps)-1].Move
		}
	}
	var balances []string
	wrong := v.Moved.Minus(expected)
	unlisted := v.unlisted(wrong, before, after)
	v.blame(wrong)
	for _, id := range wrong.IDs() {
		d := Difference{ID: id, Before: before.Of(id), After: after.Of(id),
			Expected: before.Plus(expected).Of(id)}
		v.Assets = append(v.Assets, d)
		text := fmt.Sprintf("%s before the call, %s after it, %s expected", Grouped(d.Before),
			Grouped(d.After), Grouped(d.Expected))
		if len(wrong) > 1 || len(expected) != 1 || expected[id] == nil {
			text = redact.Isolate(id) + ": " + text
		}
		if unlisted == "" &&
			!slices.ContainsFunc(v.candidates, func(w candidate) bool { return w.order.Sum[id] != nil }) {
			text += " (it is no part of the order)"
		}
		balances = append(balances, text)
	}
	must, _ := v.verbs(expected)
	if len(end) > 0 {
		does, _ := v.verbs(end)
		must += " or " + does
	}
	v.Problem = fmt.Sprintf("%s: the game must %s: %s%s", v.story(), must,
		strings.Join(balances, "; "), unlisted)
}

// closest returns the step of an order that is named as the right one: that which differs from what
// moved in the fewest assets, and of several one that is proven, and one that ends the order as due.
func (w candidate) closest(moved Assets) Step {
	rank := func(s Step) (wrong, doubtful, unfinished int) {
		if s.Doubt {
			doubtful = 1
		}
		if w.order.Delivered && !s.Total.Equal(w.order.Due()) {
			unfinished = 1
		}
		return len(moved.Minus(s.Move)), doubtful, unfinished
	}
	latest := slices.Clone(w.steps)
	slices.Reverse(latest)
	return slices.MinFunc(latest, func(s, t Step) int {
		sWrong, sDoubtful, sUnfinished := rank(s)
		tWrong, tDoubtful, tUnfinished := rank(t)
		return cmp.Or(sWrong-tWrong, sDoubtful-tDoubtful, sUnfinished-tUnfinished)
	})
}

// blame names the orders of several that explain a difference, if only they do: each has
// moved its assets once too often, or not at all. The others have moved what they must.
func (v *Judgment) blame(wrong Assets) {
	suspects := slices.Clone(v.candidates)
	for i, w := range v.candidates {
		suspects[i].steps = []Step{{Move: Assets{}}, {Move: w.order.Sum},
			{Move: w.order.Sum.Plus(w.order.Sum)}, {Move: Assets{}.Minus(w.order.Sum)}}
	}
	suspects, ok := explain(suspects, wrong)
	if !ok || len(v.candidates) == 1 ||
		slices.ContainsFunc(suspects, func(w candidate) bool { return len(w.taken) > 1 }) {
		return
	}
	v.Orders = nil
	for i, w := range v.candidates {
		step, extra := w.steps[len(w.steps)-1], suspects[i].taken[0].Move
		v.candidates[i].taken = []Step{{Move: step.Move.Plus(extra), Total: step.Total.Plus(extra)}}
		if len(extra) > 0 {
			v.Orders = append(v.Orders, w.order.UUID)
		}
	}
}

// unlisted names the assets of the orders that the game does not list, if another
// asset moved: their IDs may be wrong.
func (v *Judgment) unlisted(wrong, before, after Assets) string {
	missing, others := Assets{}, wrong
	for _, w := range v.candidates {
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
	return fmt.Sprintf(" (the order is about %s, which the player's assets do not have)",
		strings.Join(missing.IDs(), ", "))
}

// story describes what happened to the orders of a window.
func (v *Judgment) story() string {
	name := names(v.candidates)
	if len(v.candidates) > 1 {
		return name + " at the same time"
	}
	w := v.candidates[0]
	last := w.calls[len(w.calls)-1]
	for _, c := range w.calls { // a result is later than a validate call, whose answer may come after it
		if c.Answer == Yes && !c.Forged && (c.Result || !last.Result || last.Answer != Yes) {
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

func names(candidates []candidate) string {
	var list []string
	for _, w := range candidates {
		verb := "burn"
		if w.order.Mint {
			verb = "mint"
		}
		list = append(list, verb+" "+w.order.UUID.String()[:8])
	}
	if len(list) > 3 {
		list = append(list[:3], fmt.Sprintf("%d more", len(candidates)-3))
	}
	return strings.Join(list, " and ")
}

// verbs describes a movement as something that the game does, and that it did.
func (v *Judgment) verbs(move Assets) (does, did string) {
	mint := v.candidates[0].order.Mint
	mixed := slices.ContainsFunc(v.candidates, func(w candidate) bool { return w.order.Mint != mint })
	amounts := strings.Join(move.Amounts(), ", ")
	switch sign := move.sign(); {
	case sign == 0 || mixed:
		return "move " + move.String(), "moved " + move.String()
	case sign < 0:
		return "take " + amounts, "took " + amounts
	case mint && v.candidates[0].order.Took.Holds(Assets{}.Minus(move)):
		return "give back " + amounts, "gave back " + amounts
	case mint:
		return "give " + amounts, "gave " + amounts
	default:
		return "grant " + amounts, "granted " + amounts
	}
}

// End enters the judgment of a window and closes it. It reports the orders about which
// something has become known.
func (p *Player) End(v Judgment) (changed []*Tally) {
	if v.Moved != nil {
		p.Last = v.after
	}
	if v.Problem != "" { // late effects of other orders may be in what moved
		p.missed()
	}
	for _, w := range v.candidates {
		o := w.order
		changed = append(changed, o)
		for i, c := range w.calls {
			if w.calls[i].was = o.Position; !c.Result && !c.Forged {
				o.Asked, o.Approved = true, o.Approved || c.Answer != No
				o.Signed = o.Signed || c.Answer == Yes
			}
		}
		switch {
		case w.calls == nil:
			o.came(w.taken, v.guess)
			continue
		case v.Moved == nil:
			o.Unread, w.taken = true, w.steps
			p.Pending = append(p.Pending, w.calls...)
		case w.taken != nil:
			o.Mixed = o.Mixed || w.hidesTaking()
		case len(v.candidates) > 1: // what each of them moved is unknown
			o.Mixed, w.taken = true, w.steps
		default: // what moved is known, and a problem must be reported only once
			isDoubtful := func(s Step) bool { return s.Doubt }
			steps := slices.DeleteFunc(slices.Clone(w.steps), isDoubtful)
			if len(steps) == 0 {
				steps = w.steps
			}
			for _, s := range steps {
				w.taken = append(w.taken, Step{Move: v.Moved, Total: s.Total.Minus(s.Move).Plus(v.Moved)})
			}
		}
		p.enter(w, v.guess)
	}
	if len(p.Pending) > maxPending {
		p.Last, p.Pending = nil, nil
	}
	if v.Moved == nil {
		known, _ := p.Look(v.after)
		changed = append(changed, known...)
	}
	for _, w := range v.candidates {
		o := w.order
		p.Guessed = p.Guessed || v.guess || o.Guess || o.Mixed || o.Came || len(o.Totals) > 1
		if p.Closed && o.Approved && !slices.Contains(p.Early, o) {
			p.Early = append(p.Early, o)
		}
	}
	p.Early = slices.DeleteFunc(p.Early, func(o *Tally) bool { return o.Delivered || o.Disputed })
	p.Late = slices.DeleteFunc(p.Late, func(o *Tally) bool { return len(o.Late) == 0 || o.Disputed })
	for ; len(p.Late) > maxLate; p.Late = p.Late[1:] {
		p.Late[0].Came = true
	}
	return changed
}

// Look enters a reading while no call is in progress; nil if it failed. What has moved since
// the last one may be late effects, and those of calls whose windows could not be read: a
// match proves, and a mismatch proves nothing. It reports the orders about which something
// has become known, and what moved for no order.
func (p *Player) Look(owns Assets) (changed []*Tally, strange Assets) {
	switch {
	case owns == nil:
		return nil, nil
	case p.Last == nil:
		p.missed()
		p.Last, p.Pending, p.Outside = owns, nil, p.Outside.Plus(nil)
		return p.Late, nil
	}
	for _, c := range slices.Backward(p.Pending) {
		c.Order.Position = c.was
	}
	pending := p.candidates(p.Pending)
	candidates := slices.Concat(pending, p.late(pending))
	moved, theirs := owns.Minus(p.Last), Assets{}
	p.Last = owns
	early := p.early(candidates)
	for _, w := range slices.Concat(candidates, early) {
		maps.Copy(theirs, w.order.Sum)
	}
	if pending == nil { // what moves of other assets is nobody's
		strange = moved.Minus(moved.only(theirs))
		moved = moved.only(theirs)
	}
	explained, ok := explain(candidates, moved)
	if !ok && len(early) > 0 {
		if sooner, is := explain(slices.Concat(candidates, early), moved); is {
			explained, ok = sooner, true
		}
	}
	if !ok {
		strange = strange.Plus(moved)
	}
	p.Outside = p.Outside.Plus(strange)
	p.Guessed = p.Guessed || pending != nil
	p.Pending = nil
	guess := cancels(explained)
	for _, w := range explained {
		o := w.order
		if w.calls == nil {
			if again := o.endsAgain(w.taken); !p.Closed {
				p.Outside = p.Outside.Plus(again)
			}
			if o.came(w.taken, guess) {
				changed = append(changed, o)
			}
			continue
		}
		changed = append(changed, o)
		o.Mixed = o.Mixed || !ok || w.hidesTaking()
		p.enter(w, guess)
		o.Unread = len(o.Totals) > 1
	}
	return changed, strange
}

// endsAgain returns what moved as the late end of an order that may have ended before: it may as well be
// the early end of another order.
func (o *Tally) endsAgain(taken []Step) Assets {
	if !o.Delivered || !slices.ContainsFunc(o.Totals, o.Due().Equal) || len(taken) != 1 {
		return nil
	}
	return taken[0].Move
}

// Income enters a reading after movements that belong to no order; nil if it failed.
func (p *Player) Income(owns Assets) {
	if owns != nil && p.Last != nil {
		p.Outside = p.Outside.Plus(owns.Minus(p.Last))
	}
	p.Last = owns
}

// enter enters what an order may have done in its window, and what its calls may still do: what
// they could have, if it is possible that nothing has moved, and what they can from where the
// order stands.
func (p *Player) enter(w candidate, guess bool) {
	o := w.order
	o.settle(w.taken, guess)
	o.Late, o.Came, o.Outside = nil, false, p.Outside
	if slices.ContainsFunc(w.taken, isStill) {
		o.Late = slices.DeleteFunc(slices.Clone(w.steps), isStill)
	}
	o.Late = slices.DeleteFunc(p.steps(o, w.calls), isStill)
	p.await(o)
}

// candidates returns what the orders of calls may do.
func (p *Player) candidates(calls []Call) (candidates []candidate) {
	for _, c := range calls {
		at := slices.IndexFunc(candidates, func(w candidate) bool { return w.order == c.Order })
		if at < 0 {
			at = len(candidates)
			candidates = append(candidates, candidate{order: c.Order})
		}
		candidates[at].calls = append(candidates[at].calls, c)
	}
	for i, w := range candidates {
		candidates[i].steps = p.steps(w.order, w.calls)
	}
	return candidates
}
