package emulator

import (
	"fmt"
	"slices"
	"strings"

	"github.com/token-ramp/ramp-go/ramptest/internal/fault"
	"github.com/token-ramp/ramp-go/ramptest/internal/order"
)

// missed lists the faults of approved orders that had no effect in a unit test, one order a line,
// with what would let them have it.
func (s *Orders) missed() string {
	if !s.config.IsUnitTest {
		return ""
	}
	var lines []string
	for _, o := range slices.Backward(s.All()) {
		if s.Verdict(o).Attention { // what is wrong with it explains that
			continue
		}
		if names := s.without(o); o.Tx != nil && len(names) > 0 {
			lines = append(lines, fmt.Sprintf("ramptest: %s: %s had no effect, because %s "+
				"(if the test means that, wrap the fault in ramptest.Perhaps)",
				s.named(o), strings.Join(names, ", "), s.whyMissed(o)))
		}
	}
	return strings.Join(lines, "\n")
}

// without returns the faults of an order that had no effect, of those that must.
func (s *Orders) without(o *order.Order) (names []string) {
	_, mined := s.Chains.Outcome(o)
	o.Delivery.Note(func(d *order.Delivery) {
		names = o.Script.Without(fault.Effects{Mined: mined, Attempts: d.Attempts, Planned: !d.Next.IsZero(),
			Scripted: d.Scripted, Reorganized: d.Reorganized, Failed: d.Failed})
	})
	return names
}

// whyMissed says why a fault of an order had no effect, and what would let it have one.
func (s *Orders) whyMissed(o *order.Order) string {
	_, mined := s.Chains.Outcome(o)
	now := o.Delivery.Now()
	told, wait := now.Attempts > 0, now.Next.Sub(s.Clock.Now())
	scripted, failed := false, false
	o.Delivery.Note(func(d *order.Delivery) { scripted, failed = d.Scripted, d.Failed })
	switch {
	case !mined && o.Script.Pending:
		return "its transaction stays pending until service.Deliver ends it"
	case !mined:
		return "its transaction is in no block: call service.Advance(time.Minute)"
	case told && !scripted:
		return "its result was delivered by hand, and service.Advance delivers it as the faults say"
	case told && o.Script.Result.Fails > 0 && !failed:
		return "its result reached no ramp.Handler with the context of its request"
	case !told && o.Script.Held:
		return "no other order had a result after this one: place one, and call service.Advance"
	case now.Next.IsZero() && !told:
		return "its result is never sent"
	case !told:
		return fmt.Sprintf("its result is sent in %s: call service.Advance with more than that", wait)
	case now.Next.IsZero():
		return "its result is not sent again"
	default:
		return fmt.Sprintf("its result is sent again in %s: call service.Advance with more than that", wait)
	}
}
