package pages

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/google/uuid"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/desk"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// story is what happened to an order, oldest first. Its events have no headers and no bodies.
type story []control.Event

func (s *site) story(id uuid.UUID) story {
	events, _ := s.desk.Calls(desk.CallsQuery{UUID: id, Brief: true})
	slices.Reverse(events)
	return events
}

// culprit returns the call that broke an order first, or nil if none is known. If the game lost assets,
// that is the first call after which the books found something wrong. Otherwise it is the first of the
// calls that the game answered as wrongly as the last one.
func (s story) culprit(o *control.Order) *control.Event {
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
	wrong := func(e *control.Event) bool { return e.Tone == verdict.Bad || o.Loss && e.IsWrong() }
	var last *control.Event
	for i := range s {
		if e := &s[i]; e.Request != nil && wrong(e) {
			last = e
		}
	}
	if last == nil {
		return nil
	}
	return first(func(e *control.Event) bool { return e.Kind == last.Kind && wrong(e) })
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
		statusOf(a) == statusOf(b)
}

// again stands for calls that are the same as the one before them.
type again struct {
	Count int
	Said  string // when the last of them was
	Href  string // the address of the list of them
}

// blame names the call that broke an order first.
type blame struct {
	Said string // such as "Assets first went wrong with result #1"
	At   string
	Href string
	Call int // its number
}

// blame returns nil if no call is known.
func (s *site) blame(o *control.Order, culprit *control.Event) *blame {
	if culprit == nil {
		return nil
	}
	said := "The first wrong answer was that to "
	if culprit.Loss != "" {
		said = "Assets first went wrong with "
	}
	return &blame{said + nameOfCall(culprit), s.stamp(culprit.Time), hrefOf(culprit), culprit.Number}
}
