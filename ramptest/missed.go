package ramptest

import (
	"fmt"
	"slices"
	"strings"
)

// missed lists the faults of approved orders that had no effect in a unit test, one order a line,
// with what would let them have it.
func (s *orders) missed() string {
	if !s.config.isUnitTest() {
		return ""
	}
	var lines []string
	for _, o := range slices.Backward(s.all()) {
		if s.verdict(o).Attention { // what is wrong with it explains that
			continue
		}
		if names := s.without(o); o.tx != nil && len(names) > 0 {
			lines = append(lines, fmt.Sprintf("ramptest: %s %s: %s had no effect, because %s "+
				"(if the test means that, wrap the fault in ramptest.Perhaps)",
				o.trade().direction, shortUUID(o.UUID), strings.Join(names, ", "), s.whyMissed(o)))
		}
	}
	return strings.Join(lines, "\n")
}

// without returns the faults of an order that had no effect, of those that must.
func (s *orders) without(o *Order) (names []string) {
	_, mined := s.outcome(o)
	o.delivery.note(func(d *delivery) {
		for _, name := range o.script.must {
			if !d.had(name, mined, &o.script) {
				names = append(names, name)
			}
		}
	})
	return names
}

// had reports whether a fault of an order had an effect. The caller must hold the lock.
func (d *delivery) had(fault string, mined bool, script *script) bool {
	told := d.Attempts > 0
	name, on, _ := strings.Cut(fault, "=")
	switch name {
	case "transaction-fails", "transaction-type", "burns-less", "minted-by-stranger":
		return mined && (told || script.never)
	case "result-never":
		return mined
	case "stays-pending":
		return true
	case "reorganized", "reorganized-unnoticed":
		return d.reorganized
	case "result-twice", "result-at-once", "result-after-next":
		return d.scripted
	case "result-late", "without-fee":
		return told
	case "store-fails": // and what the game does with the next
		return d.failed && (d.Attempts > 1 || d.Next.IsZero())
	case "lost-answer":
		return on == string(OnValidate) || d.Attempts > script.result.fails+script.result.lost
	default:
		return !strings.HasPrefix(on, string(OnResult)) || told
	}
}

// whyMissed says why a fault of an order had no effect, and what would let it have one.
func (s *orders) whyMissed(o *Order) string {
	_, mined := s.outcome(o)
	now := o.delivery.now()
	told, wait := now.Attempts > 0, now.Next.Sub(s.clock.Now())
	scripted, failed := false, false
	o.delivery.note(func(d *delivery) { scripted, failed = d.scripted, d.failed })
	switch {
	case !mined && o.script.pending:
		return "its transaction stays pending until service.Deliver ends it"
	case !mined:
		return "its transaction is in no block: call service.Advance(time.Minute)"
	case told && !scripted:
		return "its result was delivered by hand, and service.Advance delivers it as the faults say"
	case told && o.script.result.fails > 0 && !failed:
		return "its result reached no ramp.Handler with the context of its request"
	case !told && o.script.held:
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
