package ramptest

import (
	"errors"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/chain"
	"github.com/token-ramp/ramp-go/ramptest/internal/locks"
)

var (
	// ErrUnknownUUID means that the service has not issued the UUID.
	ErrUnknownUUID = errors.New("ramptest: the service knows no such UUID")

	// ErrExpiredUUID means that the UUID is older than [ramp.UUIDValidity]. The
	// interface does not say what the service does in that case (3); see
	// [Config.AcceptExpired].
	ErrExpiredUUID = errors.New("ramptest: the UUID has expired")

	// ErrTwoOrders means that the game approved two different orders under one
	// UUID, such as orders of two players or of two amounts. A UUID identifies one
	// request (interface 2.5).
	ErrTwoOrders = errors.New("ramptest: the game approved two orders under one UUID")

	// ErrOffTerms means that the game approved an order for another token, at
	// another rate or with an item more than it offers. See [ValidateOtherToken],
	// [ValidateOtherRate] and [ValidateExtraItem].
	ErrOffTerms = errors.New(
		"ramptest: the game approved an order that it does not offer: set HandlerConfig.Terms")

	// ErrPlaced means that faults were given for an order that is already on the
	// chain.
	ErrPlaced = errors.New("ramptest: the order is already placed, so faults cannot be added")
)

// orders holds the UUIDs that a service has issued, the orders that it has placed,
// and the jobs that are due. This file takes an order to the chain; deliver.go
// takes it from there to its end.
type orders struct {
	shared
	game   *game
	chains map[ramp.Network]*chain.Chain
	agenda *agenda

	turn locks.Mutex // held while jobs that are due are run

	mu     locks.Mutex
	issued map[uuid.UUID]*issued
	placed map[uuid.UUID]*Order
	queue  []*Order // the placed orders, oldest first
	count  int      // how many were placed
	held   []*Order // orders whose result waits for that of another order
	lost   []*Order // orders that were not approved, or failed, oldest first; lists show those with a loss
}

// issued is an issued UUID with the terms of its initialize call.
type issued struct {
	Expires time.Time
	Opened  bool `json:",omitzero"` // the exchange page was opened
	Lost    int  `json:",omitzero"` // validate answers that were lost, see [LostAnswer]
	Terms   ramp.InitializeIntent
}

// reset forgets all UUIDs, orders, jobs and chains.
func (s *orders) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.issued)
	clear(s.placed)
	s.queue, s.held, s.lost, s.count = nil, nil, nil, 0
	s.agenda.reset()
	for _, c := range s.chains {
		c.Reset()
	}
}

// enter adds an issued UUID. The caller must hold the lock.
func (s *orders) enter(id uuid.UUID, known *issued) {
	s.issued[id] = known
	terms := &known.Terms
	if c := s.chains[terms.Network]; c != nil && s.config.isSingle(terms) {
		c.SetNonFungible(common.HexToAddress(terms.Token))
	}
}

// isSingle reports whether the tokens of terms are non-fungible.
func (c *Config) isSingle(terms *ramp.InitializeIntent) bool {
	return slices.ContainsFunc(trades,
		func(t *trade) bool { return c.tokenType(t.items(terms)) == ramp.TypeNFT })
}

// terms returns the terms of a UUID and when they expire.
func (s *orders) terms(id uuid.UUID, expired bool) (terms ramp.InitializeIntent, until time.Time, err error) {
	now := s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	known, ok := s.issued[id]
	switch {
	case !ok:
		return terms, until, ErrUnknownUUID
	case (expired || !now.Before(known.Expires)) && !s.config.AcceptExpired:
		return terms, until, ErrExpiredUUID
	default:
		return known.Terms, known.Expires, nil
	}
}

// opens records that the exchange page of a UUID is opened, and reports whether it
// is for the first time.
func (s *orders) opens(id uuid.UUID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.issued[id]
	first := known != nil && !known.Opened
	if first {
		known.Opened = true
		s.changes.note(id)
	}
	return first
}

// latest returns the terms of the last initialize call that brought a UUID, if there was one.
func (s *orders) latest() (terms ramp.InitializeIntent, ok bool) {
	call, _ := s.history.Last(func(e *control.Event) bool {
		return e.Kind == control.KindInitialize && e.UUID != uuid.Nil
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.issued[call.UUID]; known != nil {
		return known.Terms, true
	}
	return terms, false
}

// find returns the order that was placed under a UUID, or nil.
func (s *orders) find(id uuid.UUID) *Order {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.placed[id]
}

// loses reports whether the next validate answer under a UUID is lost, and counts
// it. At most limit are.
func (s *orders) loses(id uuid.UUID, limit int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.issued[id]
	if known.Lost >= limit {
		return false
	}
	known.Lost++
	s.changes.note(id)
	return true
}
