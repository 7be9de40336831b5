package judge

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
)

// layers records the answers of what stands before the game's handler, such as a circuit
// breaker, a limit of the framework or a proxy: HTTP 429, 502, 503 or 504 without the
// envelope.
type layers struct {
	mu     sync.Mutex
	calls  int    // how many it answered
	status int    // of the first one
	first  string // what that asked for
	asked  int    // results that the handler had answered with HTTP 500 by then
}

// errLayer means that a case proves nothing, because something before the handler answered.
var errLayer = errors.New("something before the game's handler answered")

// isLayer reports whether something before the handler gave an answer.
func isLayer(a answer) bool {
	return a.err == nil && a.success() == "" &&
		(a.status == http.StatusTooManyRequests || isUnavailable(a.status))
}

// answered records an answer, and reports whether it hides that of the handler.
func (l *layers) answered(c call, a answer) (hides bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case isLayer(a):
		if l.calls++; l.calls == 1 {
			l.first, l.status = c.method+" "+c.path, a.status
		}
		return a.status != http.StatusTooManyRequests // which is repeated
	case a.status == http.StatusInternalServerError && l.calls == 0:
		l.asked++
	}
	return false
}

// finding describes the answers, or returns nil if there are none.
func (l *layers) finding() *finding {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls == 0 {
		return nil
	}
	f := &finding{want: "an answer of the handler, with the envelope", saw: fmt.Sprintf(
		"something before the handler answered HTTP %d to %d calls, first to %s; the service never "+
			"delivers such a result again", l.status, l.calls, l.first)}
	if l.asked > 0 && l.status != http.StatusTooManyRequests {
		f.note = fmt.Sprintf(
			"before the first of them, the handler had answered %d calls with HTTP 500, which is right "+
				"for a result that it cannot take yet: "+
				"if it is a circuit breaker, it must not count those", l.asked)
	}
	return f
}
