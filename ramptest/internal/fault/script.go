// Package fault is what faults do to an order. A [Fault] has a name, what it changes in the [Script] of an
// order, and what shows that it had an effect. The faults themselves are in package ramptest.
package fault

import (
	"fmt"
	"slices"
	"time"

	ramp "github.com/token-ramp/ramp-go"
)

// Fault is a scripted deviation for one order.
type Fault struct {
	Name  string
	Apply func(*Script)
	Acted func(*Effects) bool // whether it had an effect
	Must  bool                // a test has chosen it, and shows nothing if it has no effect
}

// Script is the combined effect of all faults of an order.
type Script struct {
	Fails    bool   // the transaction fails
	Kind     uint64 // of the transaction
	Pending  bool
	WithNext bool // one transaction is for this order and the next one
	Late     time.Duration
	Never    bool
	Held     bool
	Stranger bool // somebody else mints the same
	Less     bool // burns one unit less
	AtOnce   int  // how many first deliveries are made at the same time
	Again    int  // how many more follow, one after the other
	// the first deliveries are made while one more validate call is not answered
	BeforeAnswer bool
	Reorganized  bool
	Stale        bool // every delivery has the body of the first
	WithoutFee   bool
	WithoutLogs  bool // the receipt of the result has none
	Expired      bool
	Calls        int       // further validate calls at the same time
	Repeats      []Repeat  // further validate calls, one after the other
	OffTerms     []OffTerm // orders that come first and that the game does not offer
	Validate     Call
	Result       Call
	Names        []string // of the faults

	must []Fault // those that must have an effect, each once
	err  error   // the first invalid fault
}

// Call is the script of the calls of one kind.
type Call struct {
	Forged  []Forgery // forged calls that come before the genuine one
	Lost    int       // how many answers are lost
	Fails   int       // how many calls meet a store that fails
	Slow    time.Duration
	Unknown bool // whether the call has unknown fields
}

// Forge adds a forged call.
func (c *Call) Forge(f Forgery) { c.Forged = append(c.Forged, f) }

// Repeat is a further validate call under the same UUID.
type Repeat struct {
	Name   string                            // as the history names it
	Change func(*ramp.ValidateRequest) error // after which the game must reject it; nil if it is the same
}

// OffTerm turns an intent into one that the game does not offer.
type OffTerm func(intent *ramp.Intent) error

// NewScript combines faults.
func NewScript(faults []Fault) (Script, error) {
	s := Script{Kind: 2}
	for _, f := range faults {
		if f.Apply != nil {
			f.Apply(&s)
			s.Names = append(s.Names, f.Name)
			known := func(other Fault) bool { return other.Name == f.Name }
			if f.Must && !slices.ContainsFunc(s.must, known) {
				s.must = append(s.must, f)
			}
		}
	}
	return s, s.err
}

// Invalid records an invalid fault, unless there is one already.
func (s *Script) Invalid(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("ramptest: "+format, args...)
	}
}

// Effects is what has happened to an order, as far as it shows the effect of a fault.
type Effects struct {
	Script      *Script
	Mined       bool // its transaction is in a block
	Attempts    int  // deliveries of its result
	Planned     bool // its result is sent again
	Scripted    bool // the first deliveries were made as the faults say, not by hand
	Reorganized bool // the block of the transaction was replaced
	Failed      bool // the game's store has failed
	Together    bool // its transaction is that of another order, too
	LeftOut     bool // a result did not have the logs of its transaction
}

// Told reports whether the result was delivered.
func (e *Effects) Told() bool { return e.Attempts > 0 }

// Without returns the names of the faults that had no effect, of those that must.
func (s *Script) Without(e Effects) (names []string) {
	e.Script = s
	for _, f := range s.must {
		if !f.Acted(&e) {
			names = append(names, f.Name)
		}
	}
	return names
}
