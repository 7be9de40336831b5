package pages

import (
	"fmt"

	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/desk"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// stop is a place on the way of an order, which leads from the initialize call to the result.
type stop struct {
	Name string
	Said string // what was seen there
	Tone verdict.Tone
	Href string // the address of the call; "" if there is none
	Lost bool   // assets went wrong there
}

// way returns the four places of an order, and marks the one after whose call the books found that assets
// went wrong.
func (s *site) way(o *control.Order) []stop {
	events, _ := s.desk.Calls(desk.CallsQuery{UUID: o.UUID, Limit: 1_000}) // newest first
	stops := []stop{{Name: "Initialize"}, {Name: "Validate"}, {Name: "Chain"}, {Name: "Result"}}
	unseen := "not seen"
	if o.State == verdict.Waiting {
		unseen = "not yet"
	}
	for i, kind := range []control.Kind{control.KindInitialize, control.KindValidate, control.KindChain,
		control.KindResult} {
		stops[i].Said = unseen
		seen := false
		for _, e := range events {
			wrong := o.Loss && e.Loss != ""
			if e.Kind != kind || seen && !wrong {
				continue
			}
			seen = true
			stops[i].Said, stops[i].Tone, stops[i].Href = stopSaid(&e), e.Tone, ""
			if kind == control.KindChain {
				stops[i].Tone = map[control.TxStatus]verdict.Tone{control.TxSubmitted: verdict.Wait,
					control.TxSucceeded: verdict.Good}[e.Status]
			}
			if e.Request != nil {
				stops[i].Href = fmt.Sprintf("/orders/%s/events/%d", o.UUID, e.Number)
			}
			if wrong {
				stops[i].Said, stops[i].Tone, stops[i].Lost = "assets went wrong here", verdict.Bad, true
			}
		}
	}
	return stops
}

// stopSaid says in a few words what was seen of an event.
func stopSaid(e *control.Event) string {
	switch {
	case e.Kind == control.KindChain:
		return string(e.Status)
	case e.Answer == nil:
		return "no answer"
	case e.IsPolicy():
		return "refused"
	default:
		return fmt.Sprintf("HTTP %d", e.Answer.Status)
	}
}
