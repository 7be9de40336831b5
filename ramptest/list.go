package ramptest

import (
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/verdict"
)

// issue issues a UUID for terms.
func (s *orders) issue(terms ramp.InitializeIntent) uuid.UUID {
	id, expires := uuid.New(), s.clock.Now().Add(ramp.UUIDValidity)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.enter(id, &issued{Terms: terms, Expires: expires})
	s.changes.note(id)
	s.forget()
	return id
}

// issueLike issues another UUID for the terms of a UUID.
func (s *orders) issueLike(id uuid.UUID) (uuid.UUID, error) {
	s.mu.Lock()
	known := s.issued[id]
	s.mu.Unlock()
	if known == nil {
		return uuid.Nil, ErrUnknownUUID
	}
	return s.issue(known.Terms), nil
}

// forget drops the oldest finished orders above [Desk.KeepOrders], those with a loss last, and
// the UUIDs that expired long ago. It works in batches, because it scans them all. The caller
// must hold the lock.
func (s *orders) forget() {
	keep := s.config.Desk.KeepOrders
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
		s.queue = slices.DeleteFunc(s.queue, func(o *Order) bool {
			if finished <= keep || !s.isFinished(o) || !all && s.verdict(o).Attention {
				return false
			}
			finished--
			delete(s.placed, o.UUID)
			delete(s.issued, o.UUID)
			s.changes.note(o.UUID)
			s.audit.Forget(o.UUID)
			s.chains[o.Network].Forget(o.tx)
			return true
		})
	}
	old := s.clock.Now().Add(-24 * time.Hour)
	maps.DeleteFunc(s.issued, func(id uuid.UUID, known *issued) bool {
		unused := s.placed[id] == nil && known.Expires.Before(old) && s.refusedAs(id) == nil
		if unused {
			s.changes.note(id)
		}
		return unused
	})
}

// isFinished reports whether an order has ended and nothing more is planned for it.
func (s *orders) isFinished(o *Order) bool {
	return o.delivery.now().State.over() && s.progress(o).done
}

// all returns the orders, newest first. They include those that the game did not approve,
// but for which it moved something.
func (s *orders) all() []*Order {
	s.mu.Lock()
	list, lost := slices.Clone(s.queue), slices.Clone(s.lost)
	s.mu.Unlock()
	lost = slices.DeleteFunc(lost, func(o *Order) bool { return !s.verdict(o).Attention })
	if len(lost) > 0 {
		list = append(list, lost...)
		slices.SortStableFunc(list, func(a, b *Order) int { return a.placed.Compare(b.placed) })
	}
	slices.Reverse(list)
	return list
}

// maxLost bounds the orders that were not approved. Those that lost nothing go first.
const maxLost = 1_000

// refused keeps an order that the game did not approve, because it may have moved something.
// An answer that was lost on purpose, or that nobody waited for, is not the game's failure.
func (s *orders) refused(o *Order, err error) {
	answer, asked := s.history.Last(func(e *control.Event) bool {
		return e.UUID == o.UUID && e.Kind == control.KindValidate && e.IsWrong()
	})
	if errors.Is(err, ErrLostAnswer) || errors.Is(err, errCanceled) || !asked || !o.reached.Load() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.placed[o.UUID] != nil { // what moved, that order moved
		return
	}
	r, _ := s.game.readings.of(o.Session)
	o.refused, o.noSession, o.placed = answer.Said, r.rejection() > 0, s.clock.Now()
	s.approvedAfterAll(o.UUID)
	s.lost = append(s.lost, o)
	s.changes.note(o.UUID)
	if len(s.lost) > maxLost {
		oldest := max(0, slices.IndexFunc(s.lost, func(o *Order) bool { return !s.verdict(o).Attention }))
		s.changes.note(s.lost[oldest].UUID)
		s.lost = slices.Delete(s.lost, oldest, oldest+1)
	}
}

// approvedAfterAll forgets that an order was refused. The caller must hold the lock.
func (s *orders) approvedAfterAll(id uuid.UUID) {
	s.lost = slices.DeleteFunc(s.lost, func(o *Order) bool { return o.UUID == id })
}

// refusedAs returns the order of a UUID that was not approved, or nil. The caller must hold
// the lock.
func (s *orders) refusedAs(id uuid.UUID) *Order {
	for _, o := range s.lost {
		if o.UUID == id {
			return o
		}
	}
	return nil
}

// shown is find, for an order that was not approved, too.
func (s *orders) shown(id uuid.UUID) *Order {
	if o := s.find(id); o != nil {
		return o
	}
	all := s.all()
	if i := slices.IndexFunc(all, func(o *Order) bool { return o.refused != "" && o.UUID == id }); i >= 0 {
		return all[i]
	}
	return nil
}

// calls returns the calls that led to none of the orders, newest first.
func (s *orders) calls(orders []*Order) []control.Event {
	known := make(map[uuid.UUID]bool)
	for _, o := range orders {
		known[o.UUID] = true
	}
	return s.history.NewestFirst(math.MaxInt, math.MaxInt, func(e *control.Event) bool {
		pending := e.Kind == control.KindValidate && e.Tone == verdict.Wait
		begins := e.Kind == control.KindInitialize || e.Kind == control.KindValidate
		return !known[e.UUID] && (pending || e.IsWrong() && begins)
	})
}

// attention returns the orders that need attention, and the calls that led to none and do, newest
// first. Together they are the one number that pages, the control API, commands and tests show.
func (s *orders) attention() (needy []*Order, calls []control.Event) {
	all := s.all()
	for _, o := range all {
		if s.verdict(o).Attention {
			needy = append(needy, o)
		}
	}
	calls = slices.DeleteFunc(s.calls(all), func(e control.Event) bool { return !e.Verdict().Attention })
	return needy, calls
}
