package emulator

import (
	"net/http"
	"strconv"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/chain"
	"github.com/token-ramp/ramp-go/ramptest/internal/failures"
)

// The codes of Service.FailRPC that end a request without a whole answer.
const (
	RPCNoAnswer = 1000 // the caller waits until it gives up
	RPCCutOff   = 1001 // the caller gets half of the answer
)

// node answers requests to the chains (interface 4.4).
type Node struct {
	shared
	chains  map[ramp.Network]*chain.Chain
	Failing failures.List[int] // codes
}

// ServeHTTP answers a request to a chain, or a batch of them.
func (s *Node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	event, body, err := s.called(control.KindRPC, w, r)
	event.Outcome = "success"
	status := s.Guard.Rejection(r)
	scripted := 0
	if status == 0 {
		var ok bool
		if scripted, ok = s.Failing.Take(); ok {
			event.Fault = strconv.Itoa(scripted)
		}
	}
	breaks := scripted == RPCNoAnswer || scripted == RPCCutOff
	if breaks {
		event.Fault = map[int]string{RPCNoAnswer: string(NoAnswer), RPCCutOff: string(CutOff)}[scripted]
	}
	c := s.chains[ramp.Network(r.PathValue("network"))]
	switch {
	case status != 0:
	case scripted == RPCNoAnswer:
		event.Outcome = event.Fault
		s.breakOff(w, r, event, nil)
	case scripted >= 100 && !breaks:
		status = scripted
	case c == nil:
		status = http.StatusNotFound
	case s.config.AuthorizeRPC != nil && !s.config.AuthorizeRPC(r):
		status = http.StatusUnauthorized
	case err != nil:
		status = http.StatusRequestEntityTooLarge
	}
	var text []byte
	if status != 0 {
		event.Outcome, event.Failed = http.StatusText(status), event.Fault == ""
	} else {
		var failure string
		status = http.StatusOK
		if breaks {
			scripted = 0
		}
		if text, failure = c.Answer(body, scripted); failure != "" {
			event.Outcome = failure // not order.Failed: the caller may expect it
		}
	}
	w.Header().Set("Content-Type", "application/json")
	if breaks {
		event.Outcome = event.Fault
		s.breakOff(w, r, event, text)
	}
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	s.respond(w, r, event, status, text)
}
