package ramptest

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/redact"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// Event is one thing that happened; see [control.Event]. Kind, Message and TxStatus are
// types of its fields.
type (
	Event    = control.Event
	Kind     = control.Kind
	Message  = control.Message
	TxStatus = control.TxStatus
)

// The kinds of an event, and the statuses of a transaction.
const (
	KindInitialize = control.KindInitialize
	KindAssets     = control.KindAssets
	KindValidate   = control.KindValidate
	KindResult     = control.KindResult
	KindRPC        = control.KindRPC
	KindChain      = control.KindChain
	KindBooks      = control.KindBooks

	TxSubmitted = control.TxSubmitted
	TxSucceeded = control.TxSucceeded
	TxFailed    = control.TxFailed
	TxMined     = control.TxMined
	TxReplaced  = control.TxReplaced
)

// The limits of the record. A service may run for weeks while a client polls its
// chain every second. Those calls must not crowd out other events.
const (
	maxRecordedEvents = 10_000   // of a service in memory, about 1,600 orders
	maxKeptEvents     = 100_000  // of one with a state file
	maxRecordedCalls  = 1_000    // requests to a chain, and balance readings of the books
	maxRecordedBody   = 64 << 10 // bytes of a body
)

// shelf keeps the events of a service in a file.
type shelf interface {
	put(key string, values ...any)
	rest(key string, value any) error
}

type record struct {
	mu      sync.Mutex
	begun   time.Time
	number  int
	events  []Event // oldest first
	minor   int     // how many of them are minor
	onEvent func(Event)
	file    shelf         // keeps the events too; may be nil
	change  chan struct{} // closed by the next event; nil if nobody waits for it
	turns   atomic.Int64  // counts the events and the calls of wake
}

// isMinor reports whether an event is a request to a chain or a balance reading of the books.
// Fewer of these are kept, and none in the state file.
func isMinor(e *Event) bool { return e.Kind == KindRPC || e.IsReading() }

// since returns up to limit events after a number that match, oldest first, whether there
// are more, and a channel that the next event closes.
func (r *record) since(number, limit int, match func(*Event) bool) (list []Event, more bool, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, _ := slices.BinarySearchFunc(r.events, number+1, func(e Event, n int) int { return e.Number - n })
	for i := at; i < len(r.events) && !more; i++ {
		if match(&r.events[i]) {
			if more = len(list) == limit; !more {
				list = append(list, r.events[i])
			}
		}
	}
	return r.wholes(list), more, r.changed()
}

// reset forgets the events. Their numbers continue, so that a stream does too.
func (r *record) reset(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun, r.events, r.minor = now, nil, 0
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
func (r *record) exchange(e Event, secrets *redact.Redactor) {
	e.Request, e.Answer = redactMessage(e.Request, secrets), redactMessage(e.Answer, secrets)
	e.Outcome, e.Said, e.Session = secrets.Text(e.Outcome), secrets.Text(e.Said), secrets.Text(e.Session)
	r.add(e)
}

// add records an event, which holds no secret.
func (r *record) add(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.number++
	e.Number = r.number
	minor, count, limit := isMinor(&e), r.minor, maxRecordedCalls
	if !minor {
		count, limit = len(r.events)-r.minor, maxRecordedEvents
		if r.file != nil {
			r.write(e)
			limit = maxKeptEvents
		}
	}
	if count == limit {
		r.drop(minor, limit/10)
	}
	if r.events = append(r.events, e); minor {
		r.minor++
	}
	if old := len(r.events) - keptBodies; r.file != nil && old >= 0 && !isMinor(&r.events[old]) {
		r.events[old] = bodiless(r.events[old])
	}
	r.signal()
	if r.onEvent != nil {
		r.onEvent(e)
	}
}

// lose marks the last call about an order as the one after which the books found a problem.
func (r *record) lose(id uuid.UUID, problem string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range slices.Backward(r.events) {
		e := &r.events[i]
		if e.UUID == id && (e.Kind == KindValidate || e.Kind == KindResult) {
			if e.Loss = problem; r.file != nil {
				r.write(r.whole(*e))
			}
			return
		}
	}
}

// savedMessages is both sides of an exchange, whose bodies are in the state file only. It
// ends the line of an event.
type savedMessages struct {
	Request, Answer *Message
}

// keptBodies is how many events keep their headers and bodies in memory if there is a
// state file.
const keptBodies = 1_000

func keyOfEvent(e *Event) string { return fmt.Sprintf("event/%d", e.Number) }

// write writes an event to the file.
func (r *record) write(e Event) {
	line := []any{bodiless(e)}
	if e.Request != nil || e.Answer != nil {
		line = append(line, savedMessages{e.Request, e.Answer})
	}
	r.file.put(keyOfEvent(&e), line...)
}

// bodiless returns an event without headers and bodies.
func bodiless(e Event) Event {
	for _, side := range []**Message{&e.Request, &e.Answer} {
		if m := *side; m != nil {
			*side = &Message{Method: m.Method, Path: m.Path, Status: m.Status}
		}
	}
	return e
}

// wholes replaces events by what whole returns.
func (r *record) wholes(events []Event) []Event {
	if r.file != nil {
		for i := range events {
			events[i] = r.whole(events[i])
		}
	}
	return events
}

// whole returns an event with its headers and bodies.
func (r *record) whole(e Event) Event {
	if r.file == nil || e.Request == nil || e.Request.Header != nil || e.Request.Body != "" {
		return e
	}
	var saved savedMessages
	if r.file.rest(keyOfEvent(&e), &saved) == nil { // otherwise it is shown without them
		e.Request, e.Answer = saved.Request, saved.Answer
	}
	return e
}

// isCredential reports whether a header holds a credential, which is not recorded.
func isCredential(name string) bool {
	switch http.CanonicalHeaderKey(name) {
	case ramp.HeaderAuthorization, ramp.HeaderHMAC, "Authorization", "Cookie", "Set-Cookie", "Proxy-Authorization":
		return true
	default:
		return false
	}
}

// secretsOf returns a redactor for the credentials in a request to the service.
func secretsOf(header http.Header) *redact.Redactor {
	var secrets []string
	for name, values := range header {
		if isCredential(name) {
			for _, value := range values {
				secrets = append(secrets, redact.Header(value)...)
			}
		}
	}
	return redact.New(secrets...)
}

// redactHeader returns a copy of the headers without credentials.
func redactHeader(header http.Header, secrets *redact.Redactor) http.Header {
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
				clean[name][i] = secrets.Text(value)
			}
		}
	}
	return clean
}

// redactMessage returns a copy of a message without credentials, and with a body of
// at most maxRecordedBody bytes. A message of nil has none.
func redactMessage(m *Message, secrets *redact.Redactor) *Message {
	if m == nil {
		return nil
	}
	clean := *m
	clean.Header = redactHeader(m.Header, secrets)
	clean.Body = strings.ToValidUTF8(secrets.Text(m.Body), "�")
	if len(clean.Body) > maxRecordedBody {
		clean.Body = strings.ToValidUTF8(clean.Body[:maxRecordedBody], "") + "…"
	}
	return &clean
}

// drop removes the oldest n events that are minor, or that are not.
func (r *record) drop(minor bool, n int) {
	if minor {
		r.minor -= n
	}
	r.events = slices.DeleteFunc(r.events, func(e Event) bool {
		if n == 0 || isMinor(&e) != minor {
			return false
		}
		if n--; !minor && r.file != nil {
			r.file.put(keyOfEvent(&e))
		}
		return true
	})
}

// all returns the events, oldest first.
func (r *record) all() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wholes(slices.Clone(r.events))
}

// newestFirst returns up to limit events that match, newest first, before the event with a
// number.
func (r *record) newestFirst(before, limit int, match func(*Event) bool) (list []Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.events) - 1; i >= 0 && len(list) < limit; i-- {
		if e := &r.events[i]; e.Number < before && match(e) {
			list = append(list, *e)
		}
	}
	return list
}

// last returns the last event that matches.
func (r *record) last(match func(*Event) bool) (last Event, ok bool) {
	list := r.newestFirst(math.MaxInt, 1, match)
	if len(list) == 0 {
		return last, false
	}
	return r.whole(list[0]), true
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
