package pages

import (
	"fmt"
	"time"

	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/desk"
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
	Name      string // the player, or the session of a call
	Verdict   verdictView
	Explained bool // whether the sentence is shown
}

// maxLines is how many lines a page of a list has.
const maxLines = 50

// lines returns entries as a list shows them.
func (s *site) lines(entries []desk.Entry) (lines []line) {
	tokens := make(map[string]bool)
	for i := range entries {
		lines = append(lines, s.line(&entries[i]))
		if token := lines[i].Token; token != "" {
			tokens[token] = true
		}
	}
	for i := range lines {
		if len(tokens) < 2 { // it would say nothing
			lines[i].Token = ""
		}
	}
	return lines
}

// line returns an entry as a list shows it.
func (s *site) line(e *desk.Entry) line {
	if e.Order == nil {
		l := s.callLine(e.Call)
		if order := readOrder(e.Call).Title; order != "" {
			l.Title = order + ", not approved"
			if e.Call.IsPolicy() {
				l.Title = order + ", rejected"
			}
		}
		return l
	}
	o := e.Order
	return line{ID: "order-" + o.UUID.String(), Href: "/orders/" + o.UUID.String(), At: s.stamp(o.Placed),
		Title: titleOfOrder(o), Token: shortAddress(o.Token), Short: shortUUID(o.UUID),
		Facts: movedBy(o), Name: nameOf(o), Verdict: s.verdictView(o.Verdict),
		Explained: o.Tone != verdict.Good || o.TxStatus != string(control.TxSucceeded)}
}

// callLine returns a call as a list shows it.
func (s *site) callLine(e *control.Event) line {
	v := e.Verdict()
	l := line{ID: fmt.Sprintf("call-%d", e.Number), Href: fmt.Sprintf("/calls/%d", e.Number),
		At: s.stamp(e.Time), Title: titleOf(e), Short: shortUUID(e.UUID),
		Facts: "no answer", Name: e.Session, Verdict: s.verdictView(v), Explained: v.Loss ||
			v.Tone != verdict.Good && e.Outcome != "success" || e.Fault != ""}
	if status := statusOf(e); status != "" {
		l.Facts = "HTTP " + status
		if e.Took > 0 {
			l.Facts += " · " + took(time.Duration(e.Took))
		}
	}
	return l
}
