// Package history has what happened to an emulated service, one event after the other, without its Secrets.
package history

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/locks"
	"github.com/token-ramp/ramp-go/ramptest/internal/statefile"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// The limits of a history. A service may run for weeks while a client polls its
// chain every second. Those calls must not crowd out other events.
const (
	maxRecordedEvents = 10_000 // of a service in memory, about 1,600 orders
	maxRecordedCalls  = 1_000  // requests to a chain, and balance readings of the books
)

// archive keeps the events of a history, except for minor ones.
type archive interface {
	room() int           // how many it keeps
	put(e control.Event) // keeps a new event, or one that has changed
	drop(e *control.Event)

	// pack returns what stays in memory of an event that is not among the newest, and whole
	// returns that event as it was.
	pack(e control.Event) control.Event
	whole(e control.Event) control.Event
}

// inMemory is the archive of a service without a state file: the history has everything.
type inMemory struct{}

func (inMemory) room() int                           { return maxRecordedEvents }
func (inMemory) put(control.Event)                   {}
func (inMemory) drop(*control.Event)                 {}
func (inMemory) pack(e control.Event) control.Event  { return e }
func (inMemory) whole(e control.Event) control.Event { return e }

// History is what has happened.
type History struct {
	onEvent func(control.Event)
	archive archive
	Turns   atomic.Int64 // counts the events and the calls of wake

	mu     locks.Mutex
	begun  time.Time
	number int
	events []control.Event                // oldest first
	minor  int                            // how many of them are minor
	good   map[control.Kind]control.Event // the last of each kind that succeeded, also if it was dropped
	change chan struct{}                  // closed by the next event; nil if nobody waits for it
}

// New returns a history that begins now. onEvent is called with each event, one at a time. Without a
// file, the history keeps its newest events in memory.
func New(now time.Time, file *statefile.File, onEvent func(control.Event)) *History {
	h := &History{mu: locks.At(locks.Record), begun: now, onEvent: onEvent, archive: inMemory{}}
	if file != nil {
		h.archive = onFile{file}
	}
	return h
}

// Whole returns an event as it was, with its headers and bodies.
func (r *History) Whole(e control.Event) control.Event { return r.archive.whole(e) }

// isMinor reports whether an event is a request to a chain or a balance reading of the books.
// Fewer of these are kept, and none in the archive.
func isMinor(e *control.Event) bool { return e.Kind == control.KindRPC || e.IsReading() }

// Since returns up to limit events after a number that match, oldest first, whether there
// are more, and a channel that the next event closes.
func (r *History) Since(number, limit int, match func(*control.Event) bool) (list []control.Event, more bool,
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
	return r.Wholes(list), more, r.changed()
}

// Resume begins with the events of an earlier history.
func (r *History) Resume(events []control.Event, number int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.events, r.number = events, number; len(events) > 0 {
		r.begun = events[0].Time
	}
	for _, e := range events {
		r.noteGood(e)
	}
}

// Reset forgets the events. Their numbers continue, so that a stream does too.
func (r *History) Reset(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun, r.events, r.minor, r.good = now, nil, 0, nil
	r.signal()
}

// Newest returns the number of the last event.
func (r *History) Newest() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.number
}

// Next returns a channel that is closed by the next event or by wake.
func (r *History) Next() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed()
}

// changed is like next. The caller must hold the lock.
func (r *History) changed() <-chan struct{} {
	if r.change == nil {
		r.change = make(chan struct{})
	}
	return r.change
}

// Wake notifies waiters that an order has changed without an event. The state of an
// order changes shortly after the event of an answer.
func (r *History) Wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.signal()
}

func (r *History) signal() {
	r.Turns.Add(1)
	if r.change != nil {
		close(r.change)
		r.change = nil
	}
}

// Exchange records an exchange without the secrets and the credentials in its headers.
func (r *History) Exchange(e control.Event, known Secrets) {
	r.Add(RedactEvent(e, known))
}

// Add records an event, which holds no secret.
func (r *History) Add(e control.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.number++
	e.Number = r.number
	minor, count, limit := isMinor(&e), r.minor, maxRecordedCalls
	if !minor {
		count, limit = len(r.events)-r.minor, r.archive.room()
		r.archive.put(e)
	}
	if count == limit {
		r.drop(minor, limit/10)
	}
	r.noteGood(e)
	if r.events = append(r.events, e); minor {
		r.minor++
	}
	if old := len(r.events) - keptWhole; old >= 0 && !isMinor(&r.events[old]) {
		r.events[old] = r.archive.pack(r.events[old])
	}
	r.signal()
	if r.onEvent != nil {
		r.onEvent(e)
	}
}

// noteGood keeps an event of a call that succeeded, and of which nothing was expected but that.
func (r *History) noteGood(e control.Event) {
	if e.Request == nil || e.Tone != verdict.Good || e.Fault != "" && e.Outcome != "success" {
		return
	}
	if r.good == nil {
		r.good = make(map[control.Kind]control.Event)
	}
	r.good[e.Kind] = r.archive.pack(e)
}

// LastGood returns the last event of a kind that noteGood has kept.
func (r *History) LastGood(kind control.Kind) (e control.Event, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok = r.good[kind]
	return e, ok
}

// Lose marks the last call about an order as the one after which the books found a problem.
func (r *History) Lose(id uuid.UUID, problem string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range slices.Backward(r.events) {
		e := &r.events[i]
		if e.UUID == id && (e.Kind == control.KindValidate || e.Kind == control.KindResult) {
			e.Loss = problem
			r.archive.put(r.archive.whole(*e))
			return
		}
	}
}

// keptWhole is how many of the newest events stay in memory as they are.
const keptWhole = 1_000

// Wholes replaces events by those that were packed.
func (r *History) Wholes(events []control.Event) []control.Event {
	for i := range events {
		events[i] = r.archive.whole(events[i])
	}
	return events
}

// drop removes the oldest n events that are minor, or that are not.
func (r *History) drop(minor bool, n int) {
	if minor {
		r.minor -= n
	}
	r.events = slices.DeleteFunc(r.events, func(e control.Event) bool {
		if n == 0 || isMinor(&e) != minor {
			return false
		}
		if n--; !minor {
			r.archive.drop(&e)
		}
		return true
	})
}

// All returns the events, oldest first.
func (r *History) All() []control.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Wholes(slices.Clone(r.events))
}

// NewestFirst returns up to limit events that match, newest first, before the event with a
// number.
func (r *History) NewestFirst(before, limit int, match func(*control.Event) bool) (list []control.Event) {
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

// Last returns the last event that matches.
func (r *History) Last(match func(*control.Event) bool) (last control.Event, ok bool) {
	list := r.NewestFirst(math.MaxInt, 1, match)
	if len(list) == 0 {
		return last, false
	}
	return r.archive.whole(list[0]), true
}

// Asked returns the last request to a chain whose body has a text.
func (r *History) Asked(text string) (last control.Event, ok bool) {
	return r.Last(func(e *control.Event) bool {
		return e.Kind == control.KindRPC && strings.Contains(r.archive.whole(*e).Request.Body, text)
	})
}

// Timeline formats what happened so far, of the events that match. It leaves out routine events, and counts
// the others.
func (r *History) Timeline(match func(*control.Event) bool) (text string, others int) {
	const indent = "              "
	var b strings.Builder
	fmt.Fprintf(&b, "what happened since %s:\n", r.begun.UTC().Format("2006-01-02 15:04:05 MST"))
	for _, e := range r.All() {
		if e.Routine() {
			continue
		}
		if !match(&e) {
			others++
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
	return strings.TrimRight(b.String(), "\n"), others
}
