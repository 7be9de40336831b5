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

	"github.com/ethereum/go-ethereum/common"
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

	// What is known of the transaction: of a result, and of what happens on a chain.
	Network ramp.Network `json:"network,omitempty"`
	TxHash  common.Hash  `json:"tx_hash,omitzero"`
	Block   uint64       `json:"block,omitzero"`   // 0 if it is in none
	Status  TxStatus     `json:"status,omitempty"` // of the transaction
}

// TxStatus says how far a transaction is.
type TxStatus string

// The statuses of a transaction. One of an order ends as succeeded or failed, any
// other as mined.
const (
	TxSubmitted TxStatus = "submitted" // it is in no block
	TxSucceeded TxStatus = "succeeded" // receipt.status 0x1
	TxFailed    TxStatus = "failed"    // receipt.status 0x0
	TxMined     TxStatus = "mined"
	TxReplaced  TxStatus = "replaced" // another block has it now
)

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

// chain adds what happened on a chain, to an order if it is about one. tx has what
// is known of the transaction.
func (r *record) chain(at time.Time, id uuid.UUID, tx Event, what string) {
	tx.Time, tx.Kind, tx.UUID, tx.Outcome = at, KindChain, id, fmt.Sprintf("%s %s", tx.Network, what)
	r.add(tx)
}

// since returns the events after a number, oldest first, and what is closed with
// the next one.
func (r *record) since(number int) ([]Event, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	after := func(events []Event) []Event {
		at, _ := slices.BinarySearchFunc(events, number+1, func(e Event, n int) int { return e.Number - n })
		return events[at:]
	}
	news := slices.Concat(after(r.events), after(r.calls))
	slices.SortFunc(news, func(a, b Event) int { return a.Number - b.Number })
	return news, r.changed()
}

// newest is the number of the last event.
func (r *record) newest() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.number
}

// next is what is closed with the next event, or by wake.
func (r *record) next() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed()
}

// changed is what is closed with the next event, or by wake. The caller holds the
// lock.
func (r *record) changed() <-chan struct{} {
	if r.change == nil {
		r.change = make(chan struct{})
	}
	return r.change
}

// wake tells those who wait that an order has gone on, which is more than its last
// event: what an answer means for it is known a little later.
func (r *record) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.signal()
}

func (r *record) signal() {
	if r.change != nil {
		close(r.change)
		r.change = nil
	}
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
	r.signal()
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

// of returns the last events of an order before the one with a number, oldest
// first and at most so many, without routine ones. more reports whether there are
// earlier ones.
func (r *record) of(id uuid.UUID, before, most int) (list []Event, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, events := range [][]Event{r.events, r.calls} {
		found := 0
		for _, e := range slices.Backward(events) {
			if e.UUID != id || e.Number >= before || e.Routine() {
				continue
			}
			list = append(list, e)
			if found++; found > most { // one more, to know that there is
				break
			}
		}
	}
	slices.SortFunc(list, func(a, b Event) int { return a.Number - b.Number })
	if more = len(list) > most; more {
		list = list[len(list)-most:]
	}
	return list, more
}

// event returns the event with a number.
func (r *record) event(number int) (Event, bool) {
	return r.last(func(e *Event) bool { return e.Number == number })
}

// last returns the last event that matches.
func (r *record) last(match func(*Event) bool) (last Event, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, events := range [][]Event{r.events, r.calls} {
		for i := range slices.Backward(events) {
			if match(&events[i]) {
				if events[i].Number > last.Number {
					last, ok = events[i], true
				}
				break
			}
		}
	}
	return last, ok
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
