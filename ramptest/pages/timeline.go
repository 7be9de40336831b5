package pages

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/desk"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// timelineView is a part of an order's timeline. It has no bodies, because they are
// large and few are read.
type timelineView struct {
	UUID    uuid.UUID
	Events  []eventLine
	Earlier int // the number of the event before which there are more; 0 if there are none
}

// eventLine is an event as a timeline shows it.
type eventLine struct {
	control.Event
	At, What, Status, Cause string
	Whole                   bool // whether the event has a page with more details
}

// maxWhat is the maximum length of a line's description in bytes.
const maxWhat = 240

// maxEvents is the maximum number of events in a part of a timeline.
const maxEvents = 50

// timeline returns the part of an order's timeline that ends before an event.
func (s *site) timeline(id uuid.UUID, before int) timelineView {
	v := timelineView{UUID: id}
	events, more := s.desk.Calls(desk.CallsQuery{UUID: id, Before: before, Limit: maxEvents})
	if more {
		v.Earlier = events[len(events)-1].Number
	}
	for _, e := range slices.Backward(events) {
		line := eventLine{Event: e, At: s.stamp(e.Time), What: e.Sentence(), Whole: e.Request != nil}
		if e.Kind == control.KindBooks && e.Failed {
			line.Tone = verdict.Bad
		}
		if e.Tone == verdict.Good {
			line.Status = statusOf(&e)
		}
		if len(line.What) > maxWhat {
			line.What, line.Whole = strings.ToValidUTF8(line.What[:maxWhat], "")+"…", true
		}
		if e.Request != nil && e.IsWrong() {
			line.Cause = s.cause(&e)
		}
		v.Events = append(v.Events, line)
	}
	return v
}

// event returns the event with a number.
func (s *site) event(text string) (control.Event, bool) {
	n := number(text)
	if n <= 0 {
		return control.Event{}, false
	}
	return s.last(desk.CallsQuery{Number: n})
}

// culprit returns the address of the first call about an order after which the books found
// something wrong, else of the last call that the game did not answer as it should, or "" if
// there is none.
func (s *site) culprit(id uuid.UUID) string {
	events, _ := s.desk.Calls(desk.CallsQuery{UUID: id, Pick: desk.Wrong, Limit: 1_000})
	if len(events) == 0 {
		return ""
	}
	culprit := events[0]
	for _, e := range slices.Backward(events) {
		if e.Loss != "" {
			culprit = e
			break
		}
	}
	return fmt.Sprintf("/orders/%s/events/%d", id, culprit.Number)
}

// earlierView is a page with an earlier part of a timeline.
type earlierView struct {
	frame
	Timeline timelineView
}

// earlierPage shows the part of a timeline before an event.
func (s *visit) earlierPage() {
	id, err := uuid.Parse(s.r.PathValue("uuid"))
	if err != nil || id == uuid.Nil { // the events of no order, about all players
		s.noOrder()
		return
	}
	before := number(s.r.URL.Query().Get("before"))
	s.show(http.StatusOK, "earlier.html",
		&earlierView{frame{Title: "Earlier · " + shortUUID(id)}, s.timeline(id, before)})
}

// eventView is a page with one exchange.
type eventView struct {
	frame
	Order           string // the address of its order; "" if there is none
	OfUUID          string // without one, the address of the calls under its UUID; "" without a UUID
	About           aboutOrder
	Verdict         verdictView
	Event           control.Event
	At              string
	Operator        bool
	Asked, Answered string
	Curl            curlView
	Cause           string
}

// eventPage shows one exchange, with its bodies.
func (s *visit) eventPage() {
	id, err := uuid.Parse(s.r.PathValue("uuid"))
	e, ok := s.event(s.r.PathValue("number"))
	if err != nil || !ok || e.UUID != id || id == uuid.Nil {
		s.failure(http.StatusNotFound, "There is no such exchange. The record keeps the last 10,000.",
			link{"/orders/" + id.String(), "To the order"}, link{"/", "All orders"})
		return
	}
	s.eventView(&e)
}

// eventView shows one event.
func (s *visit) eventView(e *control.Event) {
	v := &eventView{frame: frame{Title: strings.TrimSpace(titleOf(e) + " · " + shortUUID(e.UUID))}, Event: *e,
		At: s.stamp(e.Time), Verdict: s.verdictView(e.Verdict()),
		About: readOrder(e), Operator: s.guard.Operates(s.r)}
	if o := s.orderOf(e.UUID.String()); o != nil {
		v.Order = "/orders/" + e.UUID.String()
		if o.Loss && o.TxHash == (common.Hash{}) &&
			s.culprit(o.UUID) == fmt.Sprintf("%s/events/%d", v.Order, e.Number) {
			v.Verdict = s.verdictView(o.Verdict)
		}
	}
	if v.Order == "" && e.UUID != uuid.Nil {
		v.OfUUID = "/calls?" + url.Values{"q": {e.UUID.String()}}.Encode()
	}
	if e.Request != nil {
		v.Asked, v.Curl = pretty(e.Request), s.curl(e)
	}
	if e.Answer != nil {
		v.Answered = pretty(e.Answer)
	}
	if e.Request != nil && e.IsWrong() {
		v.Cause = s.cause(e)
	}
	s.show(http.StatusOK, "event.html", v)
}
