package emulator

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"

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
	wake    func()             // is called when a chain may go on
	unknown sync.Map           // networks that the service does not have, and for which Set was called
	Failing failures.List[int] // codes
}

// Set sets what is wrong with a chain, or with the node that shows it, until it is set again.
func (s *Node) Set(network ramp.Network, n chain.Node) {
	c := s.chains[network]
	if c == nil {
		s.unknown.Store(network, true)
		return
	}
	c.SetNode(n)
	s.wake()
	s.changes.note()
}

// idle says which settings of [Node.Set] had no effect, one a line.
func (s *Node) idle() (lines []string) {
	const call = "ramptest: service.SetNode(%q) had no effect, because %s%s"
	for network := range s.unknown.Range {
		lines = append(lines, fmt.Sprintf(call, network, "the service has no such network", incomplete))
	}
	for _, network := range slices.Sorted(maps.Keys(s.chains)) {
		for _, setting := range s.chains[network].Idle() {
			why := map[string]string{
				chain.Stands:  "the chain missed no block: call service.Advance",
				chain.Behind:  "nobody asked the node about a newer block",
				chain.MaxLogs: "the node listed no more logs than that",
				chain.Forgets: "nobody asked the node about an older block",
			}[setting]
			lines = append(lines, fmt.Sprintf(call, network, setting+": "+why, incomplete))
		}
	}
	return lines
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
