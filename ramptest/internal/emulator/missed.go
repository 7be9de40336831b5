package emulator

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/token-ramp/ramp-go/ramptest/internal/audit"
	"github.com/token-ramp/ramp-go/ramptest/internal/fault"
	"github.com/token-ramp/ramp-go/ramptest/internal/order"
)

// missed lists the faults of approved orders that had no effect in a unit test, one order a line,
// with what would let them have it.
func (s *Orders) missed() string {
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

// incomplete says how to accept that the service has not seen everything.
const incomplete = " (if that is meant, set Incomplete of ramptest.Config, or -incomplete of ramp emulate)"

// unseen are orders of which the service has not seen everything.
type unseen struct {
	unasked []*order.Order  // the game was not asked about their end, and no fault keeps the result away
	unread  []audit.Subject // the game did not say what the player owns, and the verdict does not say so
	byHand  []*order.Order  // made by hand, without closed books, which see what moves for them
}

// unseen returns the orders of which the service has not seen everything, unless that is meant.
func (s *Orders) unseen() (u unseen) {
	if s.config.Incomplete {
		return u
	}
	for _, o := range slices.Backward(s.All()) {
		now := o.Delivery.Now()
		_, mined := s.Chains.Outcome(o)
		failing := now.Lost && now.Status != 0 // the store has, on purpose
		switch {
		case o.Tx == nil, now.State.Over(), s.Verdict(o).Attention, len(s.without(o)) > 0:
		case !mined && o.Script.Pending, now.Attempts == 0 && o.Script.Never:
		case now.Attempts == 0, now.Contrary, failing:
			u.unasked = append(u.unasked, o)
		}
	}
	u.unread = slices.DeleteFunc(s.Audit.Unread(), func(o audit.Subject) bool {
		known := s.Shown(o.UUID)
		return known != nil && s.Verdict(known).Attention
	})
	if !s.config.Closed && s.config.Mode != Off {
		s.mu.Lock()
		u.byHand = slices.Clone(s.byHand)
		s.mu.Unlock()
	}
	return u
}

// lines lists the orders, one a line.
func (u unseen) lines(s *Orders) string {
	var lines []string
	add := func(name, problem string) {
		lines = append(lines, fmt.Sprintf("ramptest: %s: %s%s", name, problem, incomplete))
	}
	for _, o := range u.unasked {
		add(s.named(o), "the game was not asked about its end, because "+s.whyMissed(o))
	}
	for _, o := range u.unread {
		read, _ := s.Game.Read(o.Session)
		add(s.nameOf(o.Session, o.Mint, o.UUID), strings.TrimSpace("it is unknown what the game moved, "+
			"because it did not say what the player owns: call service.Assets with a session that it "+
			"accepts. "+read.Problem()))
	}
	for _, o := range u.byHand {
		add(s.named(o), "it was made by hand, so nobody has looked at what its result moved: set "+
			"Config.Closed, which sees what moves for no order")
	}
	return strings.Join(lines, "\n")
}

// ids returns the UUIDs of the orders.
func (u unseen) ids() (ids []uuid.UUID) {
	for _, o := range slices.Concat(u.unasked, u.byHand) {
		ids = append(ids, o.UUID)
	}
	for _, o := range u.unread {
		ids = append(ids, o.UUID)
	}
	return ids
}

// without returns the faults of an order that had no effect, of those that must. Without a unit test, they
// may still have one.
func (s *Orders) without(o *order.Order) (names []string) {
	if !s.config.IsUnitTest {
		return nil
	}
	_, mined := s.Chains.Outcome(o)
	o.Delivery.Note(func(d *order.Delivery) {
		names = o.Script.Without(fault.Effects{Mined: mined, Attempts: d.Attempts, Planned: !d.Next.IsZero(),
			Scripted: d.Scripted, Reorganized: d.Reorganized, Failed: d.Failed, LeftOut: d.LeftOut,
			Together: o.Partner.Load() != nil})
	})
	return names
}

// whyMissed says why a fault of an order had no effect, and what would let it have one.
func (s *Orders) whyMissed(o *order.Order) string {
	outcome, mined := s.Chains.Outcome(o)
	now := o.Delivery.Now()
	told, wait := now.Attempts > 0, now.Next.Sub(s.Clock.Now())
	scripted, failed := false, false
	o.Delivery.Note(func(d *order.Delivery) { scripted, failed = d.Scripted, d.Failed })
	switch {
	case !mined && o.Script.Pending:
		return "its transaction stays pending until service.Deliver ends it"
	case !told && s.waits(o):
		return fmt.Sprintf("its chain stands still: call service.SetNode(%q, ramptest.NodeState{}), and "+
			"then service.Advance", string(o.Network))
	case !mined && o.Waits():
		return "no other order of its network was approved after it: place one, and call service.Advance"
	case !mined:
		return "its transaction is in no block: call service.Advance(time.Minute)"
	case told && o.Script.WithoutLogs && outcome == order.Failed:
		return "its transaction failed, and has no logs"
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
