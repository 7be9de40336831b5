package pages

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/frontend"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// timelineView is a part of an order's timeline. It has no bodies, because they are
// large and few are read.
type timelineView struct {
	UUID    uuid.UUID
	Steps   []step
	Earlier string // the address of the part before it; "" if there is none
}

// step is an event as a timeline shows it, with what the books found after it.
type step struct {
	*control.Event
	end                     int // the number of its last event
	At, What, Status, Cause string
	Lead                    string // of a rejected order: the sentence before What; see leadOf
	Claim                   string // what a result said about its transaction
	Books                   string
	Lost                    bool   // the books found something wrong
	Mark                    string // what distinguishes a call that went wrong; "" if nothing does
	Full                    bool   // whether a phone shows all that it says, too
	Whole                   bool   // whether the event has a page with more details
	Again                   *again // the steps after it that only repeat; nil if there are too few
}

// maxWhat is the maximum length of a line's description in bytes.
const maxWhat = 240

// maxSteps is the maximum number of steps in a part of a timeline.
const maxSteps = 50

// piece selects a part of a timeline.
type piece struct {
	after, before int  // the numbers of the events around it; 0 for no bound
	each          bool // whether steps that are the same are shown one by one
}

// of returns the address of a piece of the timeline of an order.
func (p piece) of(id uuid.UUID) string {
	q := url.Values{"before": {strconv.Itoa(p.before)}}
	if p.each {
		q.Set("after", strconv.Itoa(p.after))
		q.Set("each", "1")
	}
	return "/orders/" + id.String() + "/events?" + q.Encode()
}

// timeline returns the last steps of a piece of a history.
func (s *site) timeline(id uuid.UUID, told eventLog, culprit *control.Event, p piece) timelineView {
	v, steps := timelineView{UUID: id}, told.steps(p)
	for len(steps) > 0 {
		turn, more := 1, 0
		if !p.each {
			turn, more = repetition(len(steps), func(i, j int) bool { return steps[j].repeats(&steps[i]) })
		}
		if more > 0 {
			last := steps[turn+more-1]
			said := "until " + nameOfCall(last.Event) + " at " + s.stamp(last.Time)
			rest := piece{steps[turn].Number - 1, last.end + 1, true}
			steps[turn-1].Again = newAgain(turn, more, said, rest.of(id))
		}
		v.Steps, steps = append(v.Steps, steps[:turn]...), steps[turn+more:]
	}
	if n := len(v.Steps) - maxSteps; n > 0 {
		v.Steps = v.Steps[n:]
		v.Earlier = piece{p.after, v.Steps[0].Number, p.each}.of(id)
	}
	for i, blamed := 0, s.blame(told, culprit); i < len(v.Steps); i++ {
		s.describe(&v.Steps[i], blamed, culprit)
	}
	return v
}

// steps returns the steps of a piece of a history.
func (told eventLog) steps(p piece) (steps []step) {
	for i := range told {
		e := &told[i]
		if e.Number <= p.after || p.before != 0 && e.Number >= p.before {
			continue
		}
		lost := e.Kind == control.KindBooks && e.Failed
		n := len(steps) - 1
		if n >= 0 && e.Kind == control.KindBooks && steps[n].Request != nil && steps[n].Books == "" {
			steps[n].end, steps[n].Books, steps[n].Lost = e.Number, e.Sentence(), lost
			continue
		}
		steps = append(steps, step{Event: e, end: e.Number, Lost: lost})
	}
	return steps
}

// repeats reports whether a step is the same as another one.
func (s *step) repeats(other *step) bool {
	return s.Books == other.Books && isAgain(s.Event, other.Event)
}

// describe fills in what a step says.
func (s *site) describe(v *step, blamed *blame, culprit *control.Event) {
	e := v.Event
	v.At, v.Claim, v.Whole = s.stamp(e.Time), claimOf(e), e.Request != nil
	v.Lead, v.What = leadOf(e, e.Sentence())
	first := blamed != nil && e.Number == blamed.Call
	v.Full = first || e.Kind == control.KindValidate && e.IsWrong()
	if v.Lost && !v.Whole {
		e.Tone = verdict.Bad
	}
	if e.Tone == verdict.Good {
		v.Status = cmp.Or(passedWith(e), statusOf(e))
	}
	for _, text := range []*string{&v.What, &v.Books} {
		if len(*text) > maxWhat && !v.Full {
			*text, v.Whole = strings.ToValidUTF8((*text)[:maxWhat], "")+"…", true
		}
	}
	switch {
	case first:
		v.Mark = blamed.Mark
	case e.Loss != "":
		said := wrongAgain(e, culprit)
		v.Mark = strings.ToUpper(said[:1]) + said[1:] + "."
	}
	if e.Request != nil && e.IsWrong() {
		if whole, ok := s.event(e.Number); ok {
			v.Cause = s.cause(&whole)
		}
	}
}

// event returns the event with a number.
func (s *site) event(number int) (control.Event, bool) {
	if number <= 0 {
		return control.Event{}, false
	}
	return s.last(frontend.CallsQuery{Number: number})
}

// earlierView is a page with an earlier part of a timeline.
type earlierView struct {
	frame
	Timeline timelineView
	Each     bool // whether it has steps that are the same
}

// earlierPage shows a part of a timeline.
func (s *visit) earlierPage() {
	id, err := uuid.Parse(s.r.PathValue("uuid"))
	if err != nil || id == uuid.Nil { // the events of no order, about all players
		s.noOrder()
		return
	}
	q, told := s.r.URL.Query(), s.history(id)
	var culprit *control.Event
	if o := s.orderOf(id.String()); o != nil {
		culprit = told.culprit(o)
	}
	p := piece{number(q.Get("after")), number(q.Get("before")), q.Has("each")}
	s.show(http.StatusOK, "earlier.html", &earlierView{frame{Title: "Earlier · " + shortUUID(id)},
		s.timeline(id, told, culprit, p), p.each})
}

// eventView is a page with one exchange.
type eventView struct {
	frame
	Order           string // the address of its order; "" if there is none
	OfUUID          string // without one, the address of the calls under its UUID; "" without a UUID
	About           aboutOrder
	Verdict         verdictView
	Books           string // what the books found after it, unless the verdict says it
	Event           control.Event
	At              string
	Operator        bool
	Asked, Answered content
	Curl            curlView
	Cause           string
	Claim           string // what a result said about its transaction
}

// eventPage shows one exchange, with its bodies.
func (s *visit) eventPage() {
	id, err := uuid.Parse(s.r.PathValue("uuid"))
	e, ok := s.event(number(s.r.PathValue("number")))
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
		About: readOrder(e), Claim: claimOf(e), Operator: s.guard.Operates(s.r)}
	if o := s.orderOf(e.UUID.String()); o != nil {
		v.Order = "/orders/" + e.UUID.String()
		told := s.history(e.UUID)
		if culprit := told.culprit(o); o.Loss && o.TxHash == (common.Hash{}) && culprit != nil &&
			culprit.Number == e.Number {
			v.Verdict = s.verdictView(o.Verdict)
		}
		if steps := told.steps(piece{after: e.Number - 1}); len(steps) > 0 && steps[0].Number == e.Number &&
			e.Loss == "" {
			v.Books = steps[0].Books
		}
	}
	if v.Order == "" && e.UUID != uuid.Nil {
		v.OfUUID = "/calls?" + url.Values{"q": {e.UUID.String()}}.Encode()
	}
	if e.Request != nil {
		v.Asked, v.Curl = contentOf(e.Request), s.curl(e)
	}
	if e.Answer != nil {
		v.Answered = contentOf(e.Answer)
	}
	if e.Request != nil && e.IsWrong() {
		v.Cause = s.cause(e)
	}
	s.show(http.StatusOK, "event.html", v)
}
