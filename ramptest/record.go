package ramptest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

// Kind says what an [Event] is about.
type Kind string

// The kinds of an event.
const (
	KindInitialize Kind = "initialize" // the studio asked for a UUID (interface 4.1)
	KindAssets     Kind = "assets"     // the service asked what a player owns (4.3)
	KindValidate   Kind = "validate"   // the service asked for an approval (4.3)
	KindResult     Kind = "result"     // the service delivered a result (4.3)
	KindRPC        Kind = "rpc"        // somebody asked the chain (4.4)
	KindChain      Kind = "chain"      // something happened on the chain
	KindBooks      Kind = "books"      // what moved during a call, and what is wrong with it
)

// Event is one thing that happened: an exchange of a request and an answer, or
// something on the chain. It holds no token, no HMAC and no key.
type Event struct {
	Number  int           `json:"number"`        // 1 is the first
	Time    time.Time     `json:"time"`          // when it began, on the service's clock
	Took    time.Duration `json:"took,omitzero"` // in nanoseconds, on the service's clock
	Kind    Kind          `json:"kind"`
	UUID    uuid.UUID     `json:"uuid,omitzero"`     // the order, if it is about one
	Attempt int           `json:"attempt,omitzero"`  // of a result: 1 is the first
	Fault   string        `json:"fault,omitempty"`   // what was scripted about it
	Request *Message      `json:"request,omitempty"` // nil on the chain
	Answer  *Message      `json:"answer,omitempty"`  // nil if there was none
	Outcome string        `json:"outcome"`           // "success", an errorCode, or what happened
	Failed  bool          `json:"failed,omitempty"`  // whether it is not as it should be
}

// Message is one side of an exchange. Credentials in it are redacted.
type Message struct {
	Method string      `json:"method,omitempty"` // of a request
	Path   string      `json:"path,omitempty"`   // of a request, without its query
	Status int         `json:"status,omitempty"` // of an answer: the HTTP status
	Header http.Header `json:"header,omitempty"`
	Body   string      `json:"body,omitempty"`
}

// How far back the record goes. A service on a desk may run for weeks, with
// somebody who asks its chain every second: that must not crowd out the rest.
const (
	mostEvents = 10_000
	mostCalls  = 1_000    // of a chain, and readings of the books
	mostBody   = 64 << 10 // bytes of a body
)

type record struct {
	mu     sync.Mutex
	begun  time.Time
	number int
	events []Event // but for those of calls
	calls  []Event
	heard  func(Event)
	change chan struct{} // closed with the next event; nil if nobody waits for it
}

// asked puts a request to the service into an event, without its credentials.
func (e *Event) asked(r *http.Request, body []byte) {
	secrets := secretsOf(r.Header)
	e.Request = &Message{Method: r.Method, Path: r.URL.Path, Header: redactHeader(r.Header, secrets), Body: redactBody(body, secrets)}
}

// chain adds what happened on a chain, to an order if it is about one.
func (r *record) chain(at time.Time, id uuid.UUID, network ramp.Network, what string) {
	r.add(Event{Time: at, Kind: KindChain, UUID: id, Outcome: fmt.Sprintf("%s %s", network, what)})
}

// wait returns the number of the last event of an order, and what is closed with
// the next event of any.
func (r *record) wait(id uuid.UUID) (int, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.change == nil {
		r.change = make(chan struct{})
	}
	for _, e := range slices.Backward(r.events) {
		if e.UUID == id {
			return e.Number, r.change
		}
	}
	return 0, r.change
}

// add takes an event in.
func (r *record) add(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.number++
	e.Number = r.number
	for _, m := range []*Message{e.Request, e.Answer} {
		if m != nil && len(m.Body) > mostBody {
			m.Body = strings.ToValidUTF8(m.Body[:mostBody], "") + "…"
		}
	}
	if e.Kind == KindRPC || e.isReading() {
		r.calls = keep(r.calls, e, mostCalls)
	} else {
		r.events = keep(r.events, e, mostEvents)
	}
	if r.change != nil {
		close(r.change)
		r.change = nil
	}
	if r.heard != nil {
		r.heard(e)
	}
}

// keep adds an event, and drops the oldest ones where there would be too many.
func keep(events []Event, e Event, most int) []Event {
	if len(events) == most {
		events = slices.Delete(events, 0, most/10)
	}
	return append(events, e)
}

// all returns the events, oldest first.
func (r *record) all() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Concat(r.events, r.calls)
	slices.SortFunc(all, func(a, b Event) int { return a.Number - b.Number })
	return all
}

// timeline prints what happened so far.
func (r *record) timeline() string {
	const indent = "              "
	var b strings.Builder
	fmt.Fprintf(&b, "what happened since %s:\n", r.begun.UTC().Format("2006-01-02 15:04:05 MST"))
	for _, e := range r.all() {
		if e.Routine() {
			continue
		}
		line := strings.ReplaceAll(e.String(), "\n", "\n"+indent) // of a stack
		fmt.Fprintf(&b, "%12s  %s\n", "+"+e.Time.Sub(r.begun).Round(time.Millisecond).String(), line)
		if e.Failed && e.Request != nil {
			fmt.Fprintf(&b, "%sasked:    %s\n", indent, shorten(e.Request.Body))
			if e.Answer != nil {
				fmt.Fprintf(&b, "%sanswered: %s\n", indent, shorten(e.Answer.Body))
			}
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// isReading reports whether the event is one of the assets calls of the books.
func (e *Event) isReading() bool { return e.Kind == KindAssets && e.UUID != uuid.Nil }

// Routine reports whether the event is one that says nothing new: a request to a
// chain that was answered, or the books' reading of what a player owns, which an
// event of [KindBooks] sums up.
func (e Event) Routine() bool {
	return e.Outcome == "success" && (e.Kind == KindRPC || e.isReading())
}

// String is the event on one line, without its time.
func (e Event) String() string {
	return fmt.Sprintf("%-10s  %-8s  %-3s  %-3s  %s", e.Kind, shortUUID(e.UUID), ordinal(e.Attempt), httpStatus(e), e.describe())
}

// describe is the outcome, and what was scripted about it.
func (e *Event) describe() string {
	if e.Fault == "" {
		return e.Outcome
	}
	return e.Outcome + " (" + e.Fault + ")"
}

func shortUUID(id uuid.UUID) string {
	if id == uuid.Nil {
		return ""
	}
	return id.String()[:8]
}

func ordinal(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("#%d", n)
}

func httpStatus(e Event) string {
	if e.Answer == nil || e.Answer.Status == 0 {
		return ""
	}
	return fmt.Sprint(e.Answer.Status)
}

func shorten(body string) string {
	const most = 600
	long := regexp.MustCompile("0x([0-9a-fA-F]{8})[0-9a-fA-F]{192,}") // as a logsBloom
	body = long.ReplaceAllString(strings.Join(strings.Fields(body), " "), "0x$1…")
	if len(body) <= most {
		return body
	}
	return strings.ToValidUTF8(body[:most], "") + "…"
}

// outcome is what an answer of the studio says of itself.
func outcome(a *answer) string {
	var said struct {
		Success   bool `json:"success"`
		ErrorCode any  `json:"errorCode"`
	}
	switch body, err := a.exact(); {
	case err != nil, json.Unmarshal(body, &said) != nil:
		return "not the envelope of 7.2"
	case said.Success:
		return "success"
	default:
		return fmt.Sprint(said.ErrorCode)
	}
}
