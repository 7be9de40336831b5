package ramptest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	ramp "github.com/token-ramp/ramp-go"
)

// Schedule is how long the service waits before each repetition of a result
// that was not confirmed: 2 times 5, 7 times 15 and 10 times 60 minutes. The
// interface (8) says that there are up to 20 repetitions in 12 hours, and lists
// these 19; add one of 5 minutes for both.
func Schedule() []time.Duration {
	return slices.Concat(
		slices.Repeat([]time.Duration{5 * time.Minute}, 2),
		slices.Repeat([]time.Duration{15 * time.Minute}, 7),
		slices.Repeat([]time.Duration{60 * time.Minute}, 10),
	)
}

// State says how far an order is, as the service sees it.
type State string

// The states of an order. The interface has no names for them (3).
const (
	Pending    State = "pending"    // its transaction is in no block
	Delivering State = "delivering" // the studio has not confirmed the result
	Confirmed  State = "confirmed"  // the studio answered HTTP 200 (interface 6), even with success false
	Refused    State = "refused"    // the studio answered what is neither confirmed nor repeated
	GivenUp    State = "given up"   // the schedule is over
)

// over says whether no delivery is due any more.
func (s State) over() bool { return s == Confirmed || s == Refused || s == GivenUp }

// Delivery is one attempt to tell the studio how an order ended (interface 6).
type Delivery struct {
	Order   *Order
	Attempt int       // 1 is the first
	Time    time.Time // on the service's clock
	Status  int       // HTTP status of the answer; 0 if there was none
	Err     error     // nil if the studio confirmed, with the envelope of 4.3
	Next    time.Time // of the repetition; zero if there is none
}

// ErrPending says that there is no result yet: the transaction is in no block.
var ErrPending = errors.New("ramptest: the transaction is in no block yet")

// State says how far an order is.
func (s *Service) State(o *Order) State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return o.state
}

// Deliver tells the studio now, once, how the order's transaction ended
// (interface 6). A transaction that is in no block yet gets into one, with that
// outcome; where the chain cannot have it so, as with a burn of more than there
// is, the studio hears what the chain says. A transaction that was in a block
// before stays as it is: with another outcome, the studio hears what the chain
// contradicts.
//
// Call it again for a redelivery, or from several goroutines at once. nil says
// that the studio confirmed with HTTP 200 and the envelope of 4.3; else the
// schedule goes on with the next repetition.
//
// An [Order] that was made by hand, with a Session, a UUID and the Intent of a
// Request, is delivered too, of a transaction that no chain knows, and once only.
func (s *Service) Deliver(ctx context.Context, o *Order, outcome Outcome) error {
	leave, err := s.enterWith(o)
	if err != nil {
		return err
	}
	defer leave()
	if o.tx != nil && s.execute(o, outcome) {
		outcome, _ = s.outcome(o)
	}
	return s.attempt(ctx, o, outcome, "by hand").Err
}

// Resend tells the studio now, once more, how the order's transaction ended on
// the chain (interface 6). The error is [ErrPending] if it has not ended.
func (s *Service) Resend(ctx context.Context, o *Order) error {
	leave, err := s.enterWith(o)
	if err != nil {
		return err
	}
	defer leave()
	outcome, ok := s.outcome(o)
	if !ok {
		return ErrPending
	}
	return s.attempt(ctx, o, outcome, "by hand").Err
}

// enterWith lets a call about an order in, unless nothing can be told of it.
func (s *Service) enterWith(o *Order) (leave func(), err error) {
	s.mu.Lock()
	foreign := o.tx != nil && s.orders[o.UUID] != o
	s.mu.Unlock()
	switch {
	case foreign:
		return nil, errors.New("ramptest: the order is of another service")
	case len(o.Request.Intent.From) == 0 || len(o.Request.Intent.To) == 0:
		return nil, errors.New("ramptest: the order has no intent")
	default:
		return s.enter()
	}
}

// outcome is what the chain knows.
func (s *Service) outcome(o *Order) (outcome Outcome, ok bool) {
	if o.tx == nil {
		return 0, false
	}
	c := s.chains[o.Network]
	c.mu.Lock()
	defer c.mu.Unlock()
	if o.tx.status == 1 {
		return Succeeded, o.tx.mined
	}
	return Failed, o.tx.mined
}

// execute puts a transaction into a block. mined is false if it was in one
// before.
func (s *Service) execute(o *Order, outcome Outcome) (mined bool) {
	block, mined := s.chains[o.Network].mine(o.tx, outcome == Failed)
	if !mined {
		return false
	}
	outcome, _ = s.outcome(o) // a burn of more than there is fails, whatever it was told
	s.mu.Lock()
	if o.state == Pending {
		o.state = Delivering
	}
	s.mu.Unlock()
	s.onChain(o, fmt.Sprintf("transaction %s in block %d", outcome, block))
	return true
}

// settle is due with the block of an order: the transaction gets into it, and
// the first delivery is planned.
func (s *Service) settle(o *Order) []Delivery {
	s.execute(o, o.script.outcome)
	s.mu.Lock()
	begun := o.attempts > 0
	s.mu.Unlock()
	if o.script.never || begun { // by hand
		return nil
	}
	s.repeat(o, s.chains[o.Network].confirmedAt(o.tx, s.config.Confirmations).Add(o.script.late))
	return nil
}

// repeat plans a delivery.
func (s *Service) repeat(o *Order, at time.Time) {
	s.mu.Lock()
	o.next = at
	s.mu.Unlock()
	s.plan(at, func(ctx context.Context) []Delivery { return s.deliver(ctx, o) })
}

// deliver is due when a result is: the first one, as the script has it, or a
// repetition.
func (s *Service) deliver(ctx context.Context, o *Order) []Delivery {
	s.mu.Lock()
	o.next = time.Time{}
	over, first := o.state.over(), o.attempts == 0
	s.mu.Unlock()
	switch {
	case over:
		return nil
	case !first:
		outcome, _ := s.outcome(o)
		return []Delivery{s.attempt(ctx, o, outcome, "")}
	case o.script.held:
		s.mu.Lock()
		s.held = append(s.held, o)
		s.mu.Unlock()
		return nil
	}
	sent := s.begin(ctx, o, "")
	for _, late := range s.release() {
		sent = append(sent, s.begin(ctx, late, "out of order")...)
	}
	return sent
}

// release lets go of the orders whose results were kept back, but for those that
// somebody has delivered by hand.
func (s *Service) release() []*Order {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := slices.DeleteFunc(s.held, func(o *Order) bool { return o.attempts > 0 })
	s.held = nil
	return held
}

// begin makes the first delivery of an order, as often as the script has it.
func (s *Service) begin(ctx context.Context, o *Order, fault string) []Delivery {
	outcome, _ := s.outcome(o)
	sent := make([]Delivery, max(1, o.script.atOnce))
	if o.script.atOnce > 0 {
		fault = "at once"
	}
	var calls sync.WaitGroup
	for i := range sent {
		calls.Go(func() { sent[i] = s.attempt(ctx, o, outcome, fault) })
	}
	calls.Wait()
	for range o.script.again {
		sent = append(sent, s.attempt(ctx, o, outcome, "again"))
	}
	if o.script.reorganised {
		s.chains[o.Network].reorganise(o.tx)
		s.onChain(o, "block of the transaction replaced")
		sent = append(sent, s.attempt(ctx, o, outcome, "after the reorganisation"))
	}
	return sent
}

// attempt delivers once, and plans the repetition if there must be one.
func (s *Service) attempt(ctx context.Context, o *Order, outcome Outcome, fault string) Delivery {
	s.mu.Lock()
	o.attempts++
	d := Delivery{Order: o, Attempt: o.attempts, Time: s.Now()}
	w := o.script.result
	lost := o.attempts <= w.lost
	s.mu.Unlock()

	body, err := s.resultBody(o, outcome)
	if err != nil {
		d.Err = err
		return d
	}
	if w.unknown {
		body = withUnknownFields(body)
	}
	var forged error
	if d.Attempt == 1 {
		forged = s.forge(ctx, w.forged, func() call { return s.post(KindResult, o, 1, body) })
	}
	c := s.post(KindResult, o, d.Attempt, body)
	c.fault, c.lost = fault, lost
	if d.Attempt == 1 {
		c.slow = w.slow
	}
	a, err := s.exchange(ctx, c, checkResult)
	d.Err = errors.Join(forged, err)
	if a != nil && !errors.Is(err, ErrLostAnswer) {
		d.Status = a.status
	}
	d.Next = s.conclude(o, d.Status)
	return d
}

// conclude says what an answer means for the order (interface 6): HTTP 200
// confirms, no answer and the statuses of Config.Retry call for a repetition.
// It returns when that is.
func (s *Service) conclude(o *Order, status int) time.Time {
	s.mu.Lock()
	switch {
	case o.state == Confirmed || status == http.StatusOK:
		o.state = Confirmed
	case status != 0 && !s.config.Retry(status):
		o.state = Refused
	case o.tx == nil, !o.next.IsZero(): // made by hand, or planned already
	case o.retries >= len(s.config.Schedule):
		o.state = GivenUp
	default:
		o.state = Delivering
		at := s.Now().Add(s.config.Schedule[o.retries])
		o.retries++
		o.next = at
		s.mu.Unlock()
		s.repeat(o, at)
		return at
	}
	defer s.mu.Unlock()
	if o.state.over() {
		return time.Time{}
	}
	return o.next
}

// resultBody is the body of a result (interface 6): for the same outcome, on the
// same branch of the chain, always the same bytes.
func (s *Service) resultBody(o *Order, outcome Outcome) ([]byte, error) {
	intent := o.Request.Intent
	if !o.script.withoutFee {
		actual, err := afterFee(intent.To[0].Amount, o.fee)
		if err != nil {
			return nil, err
		}
		intent.FeeRate, intent.Actual = json.Number(o.fee.String()), actual.String()
	}
	receipt, err := s.receipt(o, outcome)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(ramp.Result{
		SessionID: o.Session.ID,
		UUID:      o.UUID,
		TxHash:    receipt.TransactionHash.Hex(),
		Receipt:   receipt,
		Intent:    intent,
	})
	if err != nil {
		return nil, fmt.Errorf("ramptest: %w", err)
	}
	return body, nil
}

// receipt is that of an order's transaction with an outcome, which need not be
// the one that the chain knows. An order that was made by hand, and not by this
// service, has a transaction that no chain knows.
func (s *Service) receipt(o *Order, outcome Outcome) (ramp.Receipt, error) {
	c := s.chains[s.config.Networks[0]]
	tx := transaction{gasUsed: gasOfOrder, kind: 2,
		hash: crypto.Keccak256Hash([]byte("transaction"), o.UUID[:], o.Request.Digest[:])}
	if o.tx != nil {
		c = s.chains[o.Network]
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if o.tx != nil {
		tx = *o.tx
	} else {
		var err error
		if tx.moves, err = moves(c, o, o.token(), common.HexToAddress(o.Request.UserAddress)); err != nil {
			return ramp.Receipt{}, err
		}
	}
	tx.status = 1
	if outcome == Failed {
		tx.status = 0
	}
	return c.receipt(&tx), nil
}
