package pages

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/frontend"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// line is an order or a call in a list: one line, and a sentence below it where there is
// trouble.
type line struct {
	ID, Href  string
	At, Title string
	Token     string // the contract, in short, of an order in a list with several
	Short     string // the beginning of the UUID
	Facts     string // what an order moved, or how a call was answered
	Number    int    // of a call
	Name      string // the player, or the session of a call
	Verdict   verdictView
	Explained bool   // whether the sentence is shown
	Passed    bool   // it is a call that the game must reject, and has rejected
	Since     string // the call with which assets of an order first went wrong; "" if that is not known
	First     bool   // it is that call
	Lost      bool   // it is an order that shows a loss
	Still     int    // of a later call after which the same was wrong: the number of the first; 0 otherwise
	Full      bool   // whether all of the sentence is shown, however long it is
	Again     *again // the calls after it that only repeat; nil if there are too few
}

// maxLines is how many lines a page of a list has, and maxFolded how many calls that they may stand for.
const maxLines, maxFolded = 50, 1_000

// lines returns entries as a list shows them.
func (s *site) lines(entries []frontend.Entry) (lines []line) {
	tokens, culprits := make(map[string]bool), map[uuid.UUID]*control.Event{}
	if slices.ContainsFunc(entries, func(e frontend.Entry) bool { return e.Order != nil && e.Order.Loss }) {
		culprits = s.culprits()
	}
	for len(entries) > 0 {
		turn, more := repetition(len(entries), func(i, j int) bool {
			a, b := entries[i].Call, entries[j].Call
			return a != nil && b != nil && isAgain(a, b)
		})
		for i := range entries[:turn] {
			l := s.line(&entries[i])
			if o := entries[i].Order; o != nil {
				if c := culprits[o.UUID]; c != nil && s.isFirst(c) {
					l.Since = fmt.Sprintf("%s, call %d", nameOfCall(c), c.Number)
				}
				tokens[l.Token] = true
			}
			lines = append(lines, l)
		}
		if more > 0 {
			lines[len(lines)-1].Again = s.again(turn, more, entries[turn+more-1].Call,
				allCalls(entries[turn].Call))
		}
		entries = entries[turn+more:]
	}
	for i := range lines {
		if len(tokens) < 2 { // it would say nothing
			lines[i].Token = ""
		}
	}
	return lines
}

// again stands for calls of a list that come again by turns, the oldest of which is last.
func (s *site) again(turn, more int, last *control.Event, href string) *again {
	return newAgain(turn, more, "since "+titleOf(last)+" at "+s.stamp(last.Time), href)
}

// allCalls returns the address of the list of all calls that begins with a call.
func allCalls(first *control.Event) string {
	return fmt.Sprintf("/calls?each=1&before=%d", first.Number+1)
}

// culprits returns the first call in the record after which the books found something wrong, of each order
// that has one.
func (s *site) culprits() map[uuid.UUID]*control.Event {
	all := make(map[uuid.UUID]*control.Event)
	events, _ := s.service.Calls(frontend.CallsQuery{Pick: frontend.Lost, Brief: true}) // newest first
	for i := range events {
		all[events[i].UUID] = &events[i]
	}
	return all
}

// isFirst reports whether a culprit is known to be the first one. The record drops the oldest events.
func (s *site) isFirst(culprit *control.Event) bool { return s.history(culprit.UUID).begins() }

// line returns an entry as a list shows it.
func (s *site) line(e *frontend.Entry) line {
	if e.Order == nil {
		l := s.callLine(e.Call)
		l.Name = cmp.Or(s.service.Name(l.Name), l.Name)
		if order := readOrder(e.Call).Title; order != "" {
			if l.Title = order; !e.Call.IsPolicy() { // otherwise the facts say it
				l.Title += ", not approved"
			}
		}
		return l
	}
	o := e.Order
	return line{ID: "order-" + o.UUID.String(), Href: "/orders/" + o.UUID.String(), At: s.stamp(o.Placed),
		Title: titleOfOrder(o), Token: shortAddress(o.Token), Short: shortUUID(o.UUID),
		Lost: o.Loss, Facts: movedBy(o), Name: nameOf(o), Verdict: s.verdictView(o.Verdict),
		Explained: o.Tone != verdict.Good || o.TxStatus != string(control.TxSucceeded)}
}

// leadOf splits what is said of a call. The lead says that the game has rejected an order, which it may, and
// with which errorCode; it is "" if the game has not. The rest says why.
func leadOf(e *control.Event, said string) (lead, rest string) {
	lead = verdict.Rejection(e.Outcome)
	if rest, found := strings.CutPrefix(said, lead); found && e.IsPolicy() {
		return lead, strings.TrimSpace(rest)
	}
	return "", said
}

// whyInShort says why the game did not approve an order.
func (s *site) whyInShort(e *control.Event) (lead, why string) {
	lead, why = leadOf(e, strings.Replace(e.Sentence(), " "+verdict.NoTransaction, "", 1))
	if lead != "" && why != "" {
		return lead, why
	}
	cause, _, more := strings.Cut(s.cause(e), ". ")
	if more {
		cause += "."
	}
	return lead, strings.TrimSpace(why + " " + cause)
}

// callLine returns a call as a list shows it.
func (s *site) callLine(e *control.Event) line {
	v := e.Verdict()
	l := line{ID: fmt.Sprintf("call-%d", e.Number), Href: fmt.Sprintf("/calls/%d", e.Number),
		At: s.stamp(e.Time), Title: titleOf(e), Short: shortUUID(e.UUID),
		Facts: "no answer", Number: e.Number, Name: e.Session, Verdict: s.verdictView(v), Explained: v.Loss ||
			v.Tone != verdict.Good && e.Outcome != "success" || e.Fault != ""}
	if e.Kind == control.KindValidate && e.IsWrong() && e.Loss == "" {
		l.Verdict.Lead, l.Verdict.Short = s.whyInShort(e)
		l.Full = true
	}
	passed := passedWith(e)
	l.Passed = passed != ""
	switch status := statusOf(e); {
	case e.IsPolicy(): // HTTP 200 would look like a success
		l.Facts = "not approved"
	case l.Passed:
		l.Facts = passed
	case e.Kind == control.KindInitialize && e.Failed && status != "": // the answer is not the game's
		l.Facts = "refused with HTTP " + status
	case status != "":
		l.Facts = "HTTP " + status
		if e.Took > 0 {
			l.Facts += " · " + took(time.Duration(e.Took))
		}
	}
	l.Facts = told(e, l.Facts)
	return l
}
