package emulator

import (
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/game"
	"github.com/token-ramp/ramp-go/ramptest/internal/order"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// Issue issues a UUID for terms.
func (s *Orders) Issue(terms ramp.InitializeIntent) uuid.UUID {
	id, expires := s.config.UUID(), s.Clock.Now().Add(ramp.UUIDValidity)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enter(id, &issued{Terms: terms, Expires: expires})
	s.changes.note(id)
	s.forget()
	return id
}

// IssueLike issues another UUID for the terms of a UUID.
func (s *Orders) IssueLike(id uuid.UUID) (uuid.UUID, error) {
	s.mu.Lock()
	known := s.issued[id]
	s.mu.Unlock()
	if known == nil {
		return uuid.Nil, ErrUnknownUUID
	}
	return s.Issue(known.Terms), nil
}

// forget drops the oldest finished orders above Standalone.KeepOrders, those with a loss last, and
// the UUIDs that expired long ago. It works in batches, because it scans them all. The caller
// must hold the lock.
func (s *Orders) forget() {
	keep := s.config.KeepOrders
	slack := keep/10 + 1
	if keep == 0 || len(s.queue) < keep+slack && len(s.issued) < 10*keep+slack {
		return
	}
	finished := 0
	for _, o := range s.queue {
		if s.isFinished(o) {
			finished++
		}
	}
	for _, all := range []bool{false, true} { // those that need attention last
		s.queue = slices.DeleteFunc(s.queue, func(o *order.Order) bool {
			if finished <= keep || !s.isFinished(o) || !all && s.Verdict(o).Attention {
				return false
			}
			finished--
			delete(s.placed, o.UUID)
			delete(s.issued, o.UUID)
			s.changes.note(o.UUID)
			s.Audit.Forget(o.UUID)
			if p := o.Partner.Load(); p == nil || s.placed[p.UUID] == nil {
				s.Chains[o.Network].Forget(o.Tx)
			}
			return true
		})
	}
	old := s.Clock.Now().Add(-24 * time.Hour)
	maps.DeleteFunc(s.issued, func(id uuid.UUID, known *issued) bool {
		unused := s.placed[id] == nil && known.Expires.Before(old) && s.refusedAs(id) == nil
		if unused {
			s.changes.note(id)
		}
		return unused
	})
}

// isFinished reports whether an order has ended and nothing more is planned for it.
func (s *Orders) isFinished(o *order.Order) bool {
	return o.Delivery.Now().State.Over() && s.Progress(o).Done
}

// All returns the orders, newest first. They include those that the game did not approve,
// but for which it moved something.
func (s *Orders) All() []*order.Order {
	s.mu.Lock()
	list, lost := slices.Clone(s.queue), slices.Clone(s.lost)
	s.mu.Unlock()
	lost = slices.DeleteFunc(lost, func(o *order.Order) bool { return !s.Verdict(o).Attention })
	if len(lost) > 0 {
		list = append(list, lost...)
		slices.SortStableFunc(list, func(a, b *order.Order) int { return a.Placed.Compare(b.Placed) })
	}
	slices.Reverse(list)
	return list
}

// maxLost bounds the orders that were not approved. Those that lost nothing go first.
const maxLost = 1_000

// refused keeps an order that the game did not approve, because it may have moved something.
// An answer that was lost on purpose, or that nobody waited for, is not the game's failure.
func (s *Orders) refused(o *order.Order, err error) {
	answer, asked := s.History.Last(func(e *control.Event) bool {
		return e.UUID == o.UUID && e.Kind == control.KindValidate && e.IsWrong()
	})
	if errors.Is(err, game.ErrLostAnswer) || errors.Is(err, game.ErrCanceled) || !asked || !o.Reached.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.placed[o.UUID] != nil { // what moved, that order moved
		return
	}
	r, _ := s.Game.Read(o.Session)
	o.Refused, o.NoSession, o.Placed = answer.Said, r.Rejection() > 0, s.Clock.Now()
	s.approvedAfterAll(o.UUID)
	s.lost = append(s.lost, o)
	s.changes.note(o.UUID)
	if len(s.lost) > maxLost {
		oldest := max(0, slices.IndexFunc(s.lost,
			func(o *order.Order) bool { return !s.Verdict(o).Attention }))
		s.changes.note(s.lost[oldest].UUID)
		s.lost = slices.Delete(s.lost, oldest, oldest+1)
	}
}

// approvedAfterAll forgets that an order was refused. The caller must hold the lock.
func (s *Orders) approvedAfterAll(id uuid.UUID) {
	s.lost = slices.DeleteFunc(s.lost, func(o *order.Order) bool { return o.UUID == id })
}

// refusedAs returns the order of a UUID that was not approved, or nil. The caller must hold
// the lock.
func (s *Orders) refusedAs(id uuid.UUID) *order.Order {
	for _, o := range s.lost {
		if o.UUID == id {
			return o
		}
	}
	return nil
}

// Shown is find, for an order that was not approved, too.
func (s *Orders) Shown(id uuid.UUID) *order.Order {
	if o := s.Find(id); o != nil {
		return o
	}
	all := s.All()
	if i := slices.IndexFunc(all, func(o *order.Order) bool {
		return o.Refused != "" &&
			o.UUID == id
	}); i >= 0 {
		return all[i]
	}
	return nil
}

// Calls returns the calls that led to none of the orders, newest first.
func (s *Orders) Calls(orders []*order.Order) []control.Event {
	known := make(map[uuid.UUID]bool)
	for _, o := range orders {
		known[o.UUID] = true
	}
	return s.History.NewestFirst(math.MaxInt, math.MaxInt, func(e *control.Event) bool {
		pending := e.Kind == control.KindValidate && e.Tone == verdict.Wait
		begins := e.Kind == control.KindInitialize || e.Kind == control.KindValidate
		return !known[e.UUID] && (pending || e.IsWrong() && begins)
	})
}

// Attention returns the orders that need attention, and the calls that led to none and do, newest
// first. Together they are the one number that pages, the control API, commands and tests show.
func (s *Orders) Attention() (needy []*order.Order, calls []control.Event) {
	all := s.All()
	for _, o := range all {
		if s.Verdict(o).Attention {
			needy = append(needy, o)
		}
	}
	calls = slices.DeleteFunc(s.Calls(all), func(e control.Event) bool { return !e.Verdict().Attention })
	return needy, calls
}
