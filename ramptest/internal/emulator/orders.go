package emulator

import (
	"errors"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/delivery"
	"github.com/token-ramp/ramp-go/ramptest/internal/game"
	"github.com/token-ramp/ramp-go/ramptest/internal/locks"
	"github.com/token-ramp/ramp-go/ramptest/internal/order"
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
	// another rate or with an item more than it offers. See ValidateOtherToken,
	// ValidateOtherRate and ValidateExtraItem.
	ErrOffTerms = errors.New(
		"ramptest: the game approved an order that it does not offer: set HandlerConfig.Terms")

	// ErrPlaced means that faults were given for an order that is already on the
	// chain.
	ErrPlaced = errors.New("ramptest: the order is already placed, so faults cannot be added")
)

// orders holds the UUIDs that a service has issued, the orders that it has placed,
// and the jobs that are due. This file takes an order to the chain; package
// delivery takes it from there to its end.
type Orders struct {
	shared
	Game       *game.Game
	Chains     order.Chains
	deliveries *delivery.Deliveries
	jobs       *order.Jobs

	turn locks.Mutex // held while jobs that are due are run

	mu     locks.Mutex
	issued map[uuid.UUID]*issued
	placed map[uuid.UUID]*order.Order
	queue  []*order.Order // the placed orders, oldest first
	count  int            // how many were placed
	byHand []*order.Order // whose results were delivered and that were made by hand, each UUID once
	// orders that were not approved, or failed, oldest first; lists show those with a loss
	lost []*order.Order
}

// issued is an issued UUID with the terms of its initialize call.
type issued struct {
	Expires time.Time
	Opened  bool `json:",omitzero"` // the exchange page was opened
	Lost    int  `json:",omitzero"` // validate answers that were lost, see LostAnswer
	Terms   ramp.InitializeIntent
}

// reset forgets all UUIDs, orders, jobs and chains.
func (s *Orders) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.issued)
	clear(s.placed)
	s.queue, s.lost, s.byHand, s.count = nil, nil, nil, 0
	s.deliveries.Reset()
	s.jobs.Reset()
	for _, c := range s.Chains {
		c.Reset()
	}
}

// enter adds an issued UUID. The caller must hold the lock.
func (s *Orders) enter(id uuid.UUID, known *issued) {
	s.issued[id] = known
	terms := &known.Terms
	if c := s.Chains[terms.Network]; c != nil && s.config.Rules.IsNonFungible(terms) {
		c.SetNonFungible(common.HexToAddress(terms.Token))
	}
}

// Terms returns the terms of a UUID and when they expire.
func (s *Orders) Terms(id uuid.UUID, expired bool) (terms ramp.InitializeIntent, until time.Time, err error) {
	now := s.Clock.Now()
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

// Opens records that the exchange page of a UUID is opened, and reports whether it
// is for the first time.
func (s *Orders) Opens(id uuid.UUID) bool {
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

// Latest returns the terms of the last initialize call that brought a UUID, if there was one.
func (s *Orders) Latest() (terms ramp.InitializeIntent, ok bool) {
	call, _ := s.History.Last(func(e *control.Event) bool {
		return e.Kind == control.KindInitialize && e.UUID != uuid.Nil
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.issued[call.UUID]; known != nil {
		return known.Terms, true
	}
	return terms, false
}

// noteByHand notes an order whose result is delivered, if it was made by hand.
func (s *Orders) noteByHand(o *order.Order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	isKnown := func(known *order.Order) bool { return known.UUID == o.UUID }
	if !o.Composed && !slices.ContainsFunc(s.byHand, isKnown) {
		s.byHand = append(s.byHand, o)
	}
}

// Find returns the order that was placed under a UUID, or nil.
func (s *Orders) Find(id uuid.UUID) *order.Order {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.placed[id]
}

// loses reports whether the next validate answer under a UUID is lost, and counts
// it. At most limit are.
func (s *Orders) loses(id uuid.UUID, limit int) bool {
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
