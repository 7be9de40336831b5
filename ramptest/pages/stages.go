package pages

import (
	"slices"
	"strings"

	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// stage is a place on the way of an order, which leads from the initialize call to the result.
type stage struct {
	Name string
	Said string // what was seen there
	Tone verdict.Tone
	Href string // the address of the call; "" if there is none
	Lost bool   // assets first went wrong there
}

// stagesOf returns the four stages of an order, each with the last thing that was seen there. It marks
// the one where assets first went wrong.
func stagesOf(o *control.OrderReport, told eventLog, culprit *control.Event) []stage {
	stages := []stage{{Name: "Initialize"}, {Name: "Validate"}, {Name: "Chain"}, {Name: "Result"}}
	place := map[control.Kind]*stage{control.KindInitialize: &stages[0], control.KindValidate: &stages[1],
		control.KindChain: &stages[2], control.KindResult: &stages[3]}
	unseen := "not seen"
	if !told.begins() {
		unseen = "not in the record"
	} else if o.State == verdict.Waiting {
		unseen = "not yet"
	}
	for i := range stages {
		stages[i].Said = unseen
	}
	for i := range told {
		e := &told[i]
		p := place[e.Kind]
		if p == nil || p.Lost || passedWith(e) != "" { // a check is no step of the order
			continue
		}
		p.Said, p.Tone = stageSaid(e), e.Tone
		if e.Kind == control.KindChain {
			p.Tone = map[control.TxStatus]verdict.Tone{control.TxSubmitted: verdict.Wait,
				control.TxSucceeded: verdict.Good}[e.Status]
			if e.Status == control.TxFailed && slices.Contains(o.Faults, "transaction-fails") {
				p.Said += ", as you chose"
			}
		}
		if p.Href = ""; e.Request != nil {
			p.Href = hrefOf(e)
		}
		switch {
		case !o.Loss || e.Loss == "":
		case culprit != nil && e.Number == culprit.Number:
			p.Said, p.Tone, p.Lost = "assets went wrong here", verdict.Bad, true
		default:
			p.Said, p.Tone = wrongAgain(e, culprit), verdict.Bad
		}
	}
	return stages
}

// stageSaid says in a few words what was seen of an event.
func stageSaid(e *control.Event) string {
	switch {
	case e.Kind == control.KindChain:
		return string(e.Status)
	case e.Answer == nil:
		return told(e, "no answer")
	case e.IsPolicy():
		return "rejected"
	case e.Kind == control.KindValidate && e.Outcome == "success": // HTTP 200 may be a rejection
		return "approved"
	default:
		return told(e, "HTTP "+statusOf(e))
	}
}

// told puts before an answer what a result tells the game.
func told(e *control.Event, answer string) string {
	return strings.TrimPrefix(claimOf(e)+" · "+answer, " · ")
}
