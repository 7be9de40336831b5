package history

import (
	"fmt"
	"slices"

	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/statefile"
)

// onFile is the archive of a service with a state file. The line of an event begins with the event,
// and ends with what is packed away.
type onFile struct{ file *statefile.File }

// packed is both sides of an exchange, whose headers and bodies are in the file only.
type packed struct {
	Request, Answer *control.Message
}

func keyOfEvent(e *control.Event) string { return fmt.Sprintf("event/%d", e.Number) }

func (s onFile) room() int { return 100_000 }

func (s onFile) put(e control.Event) {
	line := []any{s.pack(e)}
	if e.Request != nil || e.Answer != nil {
		line = append(line, packed{e.Request, e.Answer})
	}
	s.file.Put(keyOfEvent(&e), line...)
}

func (s onFile) drop(e *control.Event) { s.file.Put(keyOfEvent(e)) }

// pack returns an event without headers and bodies.
func (s onFile) pack(e control.Event) control.Event {
	for _, side := range []**control.Message{&e.Request, &e.Answer} {
		if m := *side; m != nil {
			*side = &control.Message{Method: m.Method, Path: m.Path, Status: m.Status}
		}
	}
	return e
}

func (s onFile) whole(e control.Event) control.Event {
	if e.Request == nil || e.Request.Header != nil || e.Request.Body != "" {
		return e
	}
	var saved packed
	if s.file.Rest(keyOfEvent(&e), &saved) == nil { // otherwise it is shown without them
		e.Request, e.Answer = saved.Request, saved.Answer
	}
	return e
}

// Saved returns the events in a file, packed and oldest first, and the number of the last
// one that was recorded.
func Saved(file *statefile.File) (events []control.Event, number int, err error) {
	if err = statefile.All(file, "event/", &events); err != nil {
		return nil, 0, err
	}
	slices.SortFunc(events, func(a, b control.Event) int { return a.Number - b.Number })
	if n := len(events); n > 0 {
		number = events[n-1].Number
	}
	var c statefile.Clock
	err = statefile.One(file, "clock", &c)
	return events, max(number, c.Events), err
}
