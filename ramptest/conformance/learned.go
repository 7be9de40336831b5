package conformance

import (
	"slices"
	"sync"
)

// learned is what the opening learned about the server, through which the cases are
// judged. It is safe for concurrent use.
type learned struct {
	mu      sync.Mutex
	opening map[string]Verdict // the verdicts of the abilities, by case ID
	known   known              // the faults that they found
	ended   []endedOrder       // the orders that they ended
}

// waits returns the first of some abilities that is broken, or "".
func (l *learned) waits(abilities []string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range abilities {
		if root := l.known.broken[id]; root != "" {
			return root
		}
	}
	return ""
}

// opened returns the verdict of a case that the opening has tried, and whether there is
// one.
func (l *learned) opened(c Case) (Verdict, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v, ok := l.opening[c.ID]
	return v, ok
}

func (l *learned) knownFaults() []fault {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.known.faults)
}

// remember keeps ended orders for the case that repeats their results at the end.
func (l *learned) remember(ended []endedOrder) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = ended
}

func (l *learned) remembered() []endedOrder {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.ended)
}

// knownAnswer returns how the server answers an event, if not with a confirmation.
func (l *learned) knownAnswer(kind eventKind) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known.answers[kind]
}

// knownConfirmation returns how the server answers all results, if not with a
// confirmation.
func (l *learned) knownConfirmation() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known.confirmation
}

// confusing reports whether the rejections of an endpoint are known to look like successes.
func (l *learned) confusing(path string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known.confusing[path]
}

func (l *learned) logForm() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known.logs
}

// readsLogsIn remembers the form of logs that the server reads.
func (l *learned) readsLogsIn(form int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known.logs = form
}

// learn remembers how an ability fails. It returns the ability at the root, which is an
// earlier one if that fails in the same way, and whether something new was learned.
func (l *learned) learn(c Case, f *finding, amount int64) (root string, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	root = c.ID
	if _, main := f.off[f.asset]; main || f.off == nil {
		defer func() { // what happens to other assets only is expected from then on, and hides nothing
			if l.known.broken[c.ID] == "" {
				l.known.broken[c.ID] = root
			}
		}()
	}
	if f.confusing != "" {
		more = !l.known.confusing[f.confusing]
		l.known.confusing[f.confusing] = true
		return root, more
	}
	if c.ID == "result-log" { // the others are judged with logs in another form
		return root, false
	}
	if f.off == nil {
		return l.known.answer(c, f)
	}
	return l.known.balance(c, f, amount)
}
