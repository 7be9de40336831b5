package judge

import (
	"cmp"
	"maps"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
)

// learned is what the opening learned about the server, through which the cases are
// judged. Only [Judge.Ready] changes it, because it tries what does so.
type learned struct {
	known known        // the faults that the abilities have
	ended []lateOrder  // the orders that they ended, whose results come again at the end
	logs  atomic.Int32 // the form of logs that the server reads; see logForms
}

// waits returns the first of some abilities that is broken, or "".
func (l *learned) waits(abilities ...string) string {
	for _, id := range abilities {
		if root := l.known.broken[id]; root != "" {
			return root
		}
	}
	return ""
}

// learn remembers how an ability fails. It returns the ability at the root, which is an
// earlier one if that fails in the same way, and whether something new was learned.
func (l *learned) learn(id string, f *finding, amount int64) (root string, more bool) {
	switch root = id; {
	case f.confusing != "":
		more = !l.known.confusing[f.confusing]
		l.known.confusing[f.confusing] = true
	case id == "result-log": // the others are judged with logs in another form
	case f.off == nil:
		root, more = l.known.answer(id, f)
	default:
		root, more = l.known.balance(id, f, amount)
	}
	// What happens to other assets only is expected from then on, and hides nothing.
	if _, main := f.off[f.asset]; (main || f.off == nil) && l.known.broken[id] == "" {
		l.known.broken[id] = root
	}
	return root, more
}

// known is what the opening found out about a server. Through these faults the other
// cases are judged: each is told once, and expected from then on.
type known struct {
	broken       map[string]string    // the abilities that do not work, with their root causes
	faults       []fault              // wrong balances
	answers      map[eventKind]string // the looks of answers to results that should be confirmations
	confirmation string               // the look of all of them, if it is the same
	confusing    map[string]bool      // the endpoints whose rejections look like successes, by path
	// the abilities whose orders are not approved, by what was asked and answered
	rejects map[string]string
}

func unknown() known {
	return known{broken: make(map[string]string), answers: make(map[eventKind]string),
		confusing: make(map[string]bool),
		rejects:   make(map[string]string)}
}

// answer remembers a wrong answer.
func (k *known) answer(id string, f *finding) (root string, more bool) {
	root = id
	text, isResult := strings.CutPrefix(f.step, "result: ")
	kind := eventKind(text)
	switch {
	case !isResult && f.step != "":
		root = cmp.Or(k.rejects[f.step+f.look], root)
		k.rejects[f.step+f.look] = root
		return root, false
	case !isResult, f.look == "", k.answers[kind] == f.look:
		return root, false
	}
	for earlier, look := range k.answers { // it may answer other results in the same wrong way
		if by := k.broken[abilityOf[earlier]]; look == f.look && by != "" && f.status != http.StatusOK {
			root = by
		}
	}
	kinds := []eventKind{kind}
	if id == "result-answer" { // all results are confirmed in the same wrong way
		kinds = slices.Collect(maps.Keys(abilityOf))
		k.confirmation = f.look
	}
	for _, kind := range kinds {
		k.answers[kind] = f.look
		if abilityOf[kind] != "" {
			k.answers[kind+" again"] = f.look
		}
	}
	return root, true
}

// balance remembers a wrong balance, without the effect of the faults that are already
// known.
func (k *known) balance(id string, f *finding, amount int64) (root string, more bool) {
	rest := make(difference)
	rest.addAll(f.off)
	for asset, by := range f.predicted {
		rest.add(asset, new(big.Rat).Neg(by))
	}
	if len(rest) == 0 || f.kind == "" {
		return id, false
	}
	found := fault{ability: id, kind: f.kind, perUnit: new(big.Rat), perEvent: make(difference)}
	for asset, by := range rest {
		if asset == f.asset {
			found.perUnit.Quo(by, big.NewRat(amount, 1))
		} else {
			found.perEvent[asset] = by
		}
	}
	for _, earlier := range k.faults {
		if earlier.kind == found.kind {
			return id, false // it does not fail in the same way each time
		}
		if earlier.like(found) {
			found.ability = earlier.ability
		}
	}
	k.faults = append(k.faults, found)
	return found.ability, true
}
