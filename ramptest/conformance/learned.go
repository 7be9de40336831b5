package conformance

import "sync/atomic"

// learned is what the opening learned about the server, through which the cases are
// judged. Only [Judge.Ready] changes it, because it tries what does so.
type learned struct {
	opening map[string]Verdict // the verdicts of the abilities, by case ID
	known   known              // the faults that they found
	ended   []lateOrder        // the orders that they ended, whose results come again at the end
	logs    atomic.Int32       // the form of logs that the server reads; see logForms
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
func (l *learned) learn(c Case, f *finding, amount int64) (root string, more bool) {
	switch root = c.ID; {
	case f.confusing != "":
		more = !l.known.confusing[f.confusing]
		l.known.confusing[f.confusing] = true
	case c.ID == "result-log": // the others are judged with logs in another form
	case f.off == nil:
		root, more = l.known.answer(c, f)
	default:
		root, more = l.known.balance(c, f, amount)
	}
	// What happens to other assets only is expected from then on, and hides nothing.
	if _, main := f.off[f.asset]; (main || f.off == nil) && l.known.broken[c.ID] == "" {
		l.known.broken[c.ID] = root
	}
	return root, more
}
