package ramptest

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/redact"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/desk"
	"github.com/token-ramp/ramp-go/ramptest/internal/locks"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// The limits of the record. A service may run for weeks while a client polls its
// chain every second. Those calls must not crowd out other events.
const (
	maxRecordedEvents = 10_000 // of a service in memory, about 1,600 orders
	maxRecordedCalls  = 1_000  // requests to a chain, and balance readings of the books
)

// shelf keeps the events of a record, except for minor ones.
type shelf interface {
	room() int           // how many it keeps
	put(e control.Event) // keeps a new event, or one that has changed
	drop(e *control.Event)

	// pack returns what stays in memory of an event that is not among the newest, and whole
	// returns that event as it was.
	pack(e control.Event) control.Event
	whole(e control.Event) control.Event
}

// inMemory is the shelf of a service without a state file: the record has everything.
type inMemory struct{}

func (inMemory) room() int                           { return maxRecordedEvents }
func (inMemory) put(control.Event)                   {}
func (inMemory) drop(*control.Event)                 {}
func (inMemory) pack(e control.Event) control.Event  { return e }
func (inMemory) whole(e control.Event) control.Event { return e }

// record is what has happened.
type record struct {
	onEvent func(control.Event)
	shelf   shelf
	turns   atomic.Int64 // counts the events and the calls of wake

	mu     locks.Mutex
	begun  time.Time
	number int
	events []control.Event                // oldest first
	minor  int                            // how many of them are minor
	good   map[control.Kind]control.Event // the last of each kind that succeeded, also if it was dropped
	change chan struct{}                  // closed by the next event; nil if nobody waits for it
}

// isMinor reports whether an event is a request to a chain or a balance reading of the books.
// Fewer of these are kept, and none on the shelf.
func isMinor(e *control.Event) bool { return e.Kind == control.KindRPC || e.IsReading() }

// since returns up to limit events after a number that match, oldest first, whether there
// are more, and a channel that the next event closes.
func (r *record) since(number, limit int, match func(*control.Event) bool) (list []control.Event, more bool,
	changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, _ := slices.BinarySearchFunc(r.events, number+1,
		func(e control.Event, n int) int { return e.Number - n })
	for i := at; i < len(r.events) && !more; i++ {
		if match(&r.events[i]) {
			if more = len(list) == limit; !more {
				list = append(list, r.events[i])
			}
		}
	}
	return r.wholes(list), more, r.changed()
}

// resume begins with the events of an earlier record.
func (r *record) resume(events []control.Event, number int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.events, r.number = events, number; len(events) > 0 {
		r.begun = events[0].Time
	}
	for _, e := range events {
		r.noteGood(e)
	}
}

// reset forgets the events. Their numbers continue, so that a stream does too.
func (r *record) reset(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun, r.events, r.minor, r.good = now, nil, 0, nil
	r.signal()
}

// newest returns the number of the last event.
func (r *record) newest() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.number
}

// next returns a channel that is closed by the next event or by wake.
func (r *record) next() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed()
}

// changed is like next. The caller must hold the lock.
func (r *record) changed() <-chan struct{} {
	if r.change == nil {
		r.change = make(chan struct{})
	}
	return r.change
}

// wake notifies waiters that an order has changed without an event. The state of an
// order changes shortly after the event of an answer.
func (r *record) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.signal()
}

func (r *record) signal() {
	r.turns.Add(1)
	if r.change != nil {
		close(r.change)
		r.change = nil
	}
}

// exchange records an exchange without the secrets and the credentials in its headers.
func (r *record) exchange(e control.Event, known secrets) {
	r.add(redactEvent(e, known))
}

// redactEvent returns an event without secrets and without the credentials in its headers.
func redactEvent(e control.Event, known secrets) control.Event {
	e.Request, e.Answer = redactMessage(e.Request, known), redactMessage(e.Answer, known)
	e.Outcome, e.Said, e.Session = known.text(e.Outcome), known.text(e.Said), known.text(e.Session)
	return e
}

// add records an event, which holds no secret.
func (r *record) add(e control.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.number++
	e.Number = r.number
	minor, count, limit := isMinor(&e), r.minor, maxRecordedCalls
	if !minor {
		count, limit = len(r.events)-r.minor, r.shelf.room()
		r.shelf.put(e)
	}
	if count == limit {
		r.drop(minor, limit/10)
	}
	r.noteGood(e)
	if r.events = append(r.events, e); minor {
		r.minor++
	}
	if old := len(r.events) - keptWhole; old >= 0 && !isMinor(&r.events[old]) {
		r.events[old] = r.shelf.pack(r.events[old])
	}
	r.signal()
	if r.onEvent != nil {
		r.onEvent(e)
	}
}

// noteGood keeps an event of a call that succeeded, and of which nothing was expected but that.
func (r *record) noteGood(e control.Event) {
	if e.Request == nil || e.Tone != verdict.Good || e.Fault != "" && e.Outcome != "success" {
		return
	}
	if r.good == nil {
		r.good = make(map[control.Kind]control.Event)
	}
	r.good[e.Kind] = r.shelf.pack(e)
}

// lastGood returns the last event of a kind that noteGood has kept.
func (r *record) lastGood(kind control.Kind) (e control.Event, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok = r.good[kind]
	return e, ok
}

// lose marks the last call about an order as the one after which the books found a problem.
func (r *record) lose(id uuid.UUID, problem string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range slices.Backward(r.events) {
		e := &r.events[i]
		if e.UUID == id && (e.Kind == control.KindValidate || e.Kind == control.KindResult) {
			e.Loss = problem
			r.shelf.put(r.shelf.whole(*e))
			return
		}
	}
}

// keptWhole is how many of the newest events stay in memory as they are.
const keptWhole = 1_000

// wholes replaces events by those that were packed.
func (r *record) wholes(events []control.Event) []control.Event {
	for i := range events {
		events[i] = r.shelf.whole(events[i])
	}
	return events
}

// isCredential reports whether a header holds a credential, which is not recorded.
func isCredential(name string) bool {
	switch http.CanonicalHeaderKey(name) {
	case ramp.HeaderAuthorization, ramp.HeaderHMAC, "Authorization", "Cookie", "Set-Cookie",
		"Proxy-Authorization":
		return true
	default:
		return false
	}
}

// credentials returns those in the headers of a request to the service.
func credentials(header http.Header) (list []string) {
	for name, values := range header {
		if isCredential(name) {
			for _, value := range values {
				list = append(list, redact.Header(value)...)
			}
		}
	}
	return list
}

// redactHeader returns a copy of the headers without credentials.
func redactHeader(header http.Header, known secrets) http.Header {
	clean := make(http.Header, len(header))
	for name, values := range header {
		switch {
		case http.CanonicalHeaderKey(name) == ramp.HeaderAuthorization:
			clean[name] = []string{"Bearer " + redact.Mark}
		case isCredential(name):
			clean[name] = []string{redact.Mark}
		default:
			clean[name] = make([]string, len(values))
			for i, value := range values {
				clean[name][i] = known.text(value)
			}
		}
	}
	return clean
}

// redactMessage returns a copy of a message without credentials, and with a body of
// at most [desk.MaxBody] bytes. A message of nil has none.
func redactMessage(m *control.Message, known secrets) *control.Message {
	if m == nil {
		return nil
	}
	clean := *m
	clean.Header = redactHeader(m.Header, known)
	clean.Body = strings.ToValidUTF8(known.text(m.Body), "�")
	if len(clean.Body) > desk.MaxBody {
		clean.Body = strings.ToValidUTF8(clean.Body[:desk.MaxBody], "") + "…"
	}
	return &clean
}

// drop removes the oldest n events that are minor, or that are not.
func (r *record) drop(minor bool, n int) {
	if minor {
		r.minor -= n
	}
	r.events = slices.DeleteFunc(r.events, func(e control.Event) bool {
		if n == 0 || isMinor(&e) != minor {
			return false
		}
		if n--; !minor {
			r.shelf.drop(&e)
		}
		return true
	})
}

// all returns the events, oldest first.
func (r *record) all() []control.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wholes(slices.Clone(r.events))
}

// newestFirst returns up to limit events that match, newest first, before the event with a
// number.
func (r *record) newestFirst(before, limit int, match func(*control.Event) bool) (list []control.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, _ := slices.BinarySearchFunc(r.events, before,
		func(e control.Event, n int) int { return e.Number - n })
	for i := at - 1; i >= 0 && len(list) < limit; i-- {
		if e := &r.events[i]; match(e) {
			list = append(list, *e)
		}
	}
	return list
}

// last returns the last event that matches.
func (r *record) last(match func(*control.Event) bool) (last control.Event, ok bool) {
	list := r.newestFirst(math.MaxInt, 1, match)
	if len(list) == 0 {
		return last, false
	}
	return r.shelf.whole(list[0]), true
}

// asked returns the last request to a chain whose body has a text.
func (r *record) asked(text string) (last control.Event, ok bool) {
	return r.last(func(e *control.Event) bool {
		return e.Kind == control.KindRPC && strings.Contains(r.shelf.whole(*e).Request.Body, text)
	})
}

// timeline formats what happened so far.
func (r *record) timeline() string {
	const indent = "              "
	var b strings.Builder
	fmt.Fprintf(&b, "what happened since %s:\n", r.begun.UTC().Format("2006-01-02 15:04:05 MST"))
	for _, e := range r.all() {
		if e.Routine() {
			continue
		}
		line := strings.ReplaceAll(e.String(), "\n", "\n"+indent) // an outcome may hold a stack trace
		fmt.Fprintf(&b, "%12s  %s\n", "+"+e.Time.Sub(r.begun).Round(time.Millisecond).String(), line)
		if (e.Failed || e.IsWrong() || e.Tone == verdict.Wait) && e.Request != nil {
			fmt.Fprintf(&b, "%sasked:    %s\n", indent, e.Request.Short())
			if e.Answer != nil {
				fmt.Fprintf(&b, "%sanswered: %s\n", indent, e.Answer.Short())
			}
		}
	}
	return strings.TrimRight(b.String(), "\n")
}
