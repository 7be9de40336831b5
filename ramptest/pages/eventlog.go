package pages

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/google/uuid"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/frontend"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// eventLog is what happened to an order, oldest first. Its events have no headers and no bodies.
type eventLog []control.Event

func (s *site) history(id uuid.UUID) eventLog {
	events, _ := s.service.Calls(frontend.CallsQuery{UUID: id, Brief: true})
	slices.Reverse(events)
	return events
}

// culprit returns the call that broke an order first, or nil if none is known. If the game lost assets,
// that is the first call after which the books found something wrong. Otherwise it is the first call with
// a wrong answer, among those of the kind that had the last one.
func (s eventLog) culprit(o *control.OrderReport) *control.Event {
	if !o.Attention {
		return nil
	}
	first := func(match func(e *control.Event) bool) *control.Event {
		for i := range s {
			if e := &s[i]; e.Request != nil && match(e) {
				return e
			}
		}
		return nil
	}
	if o.Loss {
		if e := first(func(e *control.Event) bool { return e.Loss != "" }); e != nil {
			return e
		}
	}
	var last control.Kind // of those with a wrong answer
	for i := range s {
		if e := &s[i]; e.Request != nil && e.Tone == verdict.Bad {
			last = e.Kind
		}
	}
	return first(func(e *control.Event) bool { return e.Kind == last && e.Tone == verdict.Bad })
}

// begins reports whether a history has its beginning. The record drops the oldest events.
func (s eventLog) begins() bool {
	return len(s) > 0 && (s[0].Kind == control.KindInitialize || s[0].Kind == control.KindValidate)
}

// nameOfCall returns the name of a call, such as "result #1".
func nameOfCall(e *control.Event) string {
	if e.Attempt > 0 {
		return string(e.Kind) + " #" + strconv.Itoa(e.Attempt)
	}
	return string(e.Kind)
}

// hrefOf returns the address of an event of an order.
func hrefOf(e *control.Event) string { return fmt.Sprintf("/orders/%s/events/%d", e.UUID, e.Number) }

// isAgain reports whether two calls are the same, with the same answer and the same effect.
func isAgain(a, b *control.Event) bool {
	return a.Request != nil && b.Request != nil && a.Kind == b.Kind && a.UUID == b.UUID &&
		a.Tone == b.Tone && a.Outcome == b.Outcome && a.Sentence() == b.Sentence() && a.Loss == b.Loss &&
		claimOf(a) == claimOf(b) && statusOf(a) == statusOf(b)
}

// again stands for calls that are the same as the one before them, or by turns as the two before them.
type again struct {
	Count int
	Alike string // such as "the same answer"
	Said  string // when the last of them was
	Href  string // the address of the list of them
}

// repetition returns how many of n calls come again by turns, one or two, and how many calls after them are
// only that, which are at least twice as many; 1 and 0 if there are fewer. same compares two calls.
func repetition(n int, same func(i, j int) bool) (turn, more int) {
	for turn = 1; turn <= 2; turn++ {
		for more = 0; turn+more < n && same(more, turn+more); more++ {
		}
		if more >= 2*turn {
			return turn, more
		}
	}
	return 1, 0
}

// newAgain stands for calls that come again by turns.
func newAgain(turn, more int, said, href string) *again {
	alike := map[int]string{1: "the same answer", 2: "the same two answers by turns"}[turn]
	return &again{more, alike, said, href}
}

// blame names the call that broke an order first.
type blame struct {
	Said string // such as "Assets first went wrong with result #1"
	Mark string // the same beside the call
	At   string
	Href string
	Call int // its number
}

// blame names the culprit of a history; it returns nil if there is none.
func (s *site) blame(told eventLog, culprit *control.Event) *blame {
	if culprit == nil {
		return nil
	}
	b := &blame{At: s.stamp(culprit.Time), Href: hrefOf(culprit), Call: culprit.Number}
	name := nameOfCall(culprit)
	switch begins := told.begins(); {
	case culprit.Loss != "" && begins:
		b.Said, b.Mark = "Assets first went wrong with "+name, "Assets first went wrong here."
	case culprit.Loss != "":
		b.Said, b.Mark = "Assets went wrong with "+name, "Assets went wrong here."
	case begins:
		b.Said, b.Mark = "First wrong answer: "+name, "First wrong answer to "+articled(culprit.Kind)+"."
	default:
		b.Said, b.Mark = "A wrong answer: "+name, "A wrong answer."
	}
	return b
}

// wrongAgain says of a call after the culprit of its order that the books found something wrong after
// it, too: the same, which is no other loss, or more.
func wrongAgain(e, culprit *control.Event) string {
	if culprit != nil && e.Loss == culprit.Loss {
		return fmt.Sprintf("still wrong, as since call %d", culprit.Number)
	}
	return "wrong here, too"
}

// articled names a call of a kind.
func articled(kind control.Kind) string {
	return map[control.Kind]string{control.KindResult: "a result", control.KindValidate: "a validate call",
		control.KindInitialize: "an initialize call", control.KindAssets: "an assets call"}[kind]
}
