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
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/chain"
)

// Schedule returns how long the service waits before each retry of a result that
// was not confirmed: 2 times 5, 7 times 15 and 10 times 60 minutes. The interface
// (8) lists these 19 retries, although it says that there are up to 20 in 12 hours.
// One more of 5 minutes would satisfy both.
func Schedule() []time.Duration {
	return slices.Concat(
		slices.Repeat([]time.Duration{5 * time.Minute}, 2),
		slices.Repeat([]time.Duration{15 * time.Minute}, 7),
		slices.Repeat([]time.Duration{60 * time.Minute}, 10),
	)
}

// State is the state of an order as the service sees it.
type State string

// The states of an order. The interface has no names for them (3).
const (
	Pending    State = "pending"    // its transaction is not in a block
	Delivering State = "delivering" // the studio has not confirmed the result
	Confirmed  State = "confirmed"  // the studio answered HTTP 200 (interface 6), even with success false
	Refused    State = "refused"    // the studio answered with another status, and the service does not retry it
	GivenUp    State = "given up"   // the schedule has ended without a confirmation
)

// over reports whether the schedule of deliveries has ended.
func (s State) over() bool { return s == Confirmed || s == Refused || s == GivenUp }

// Delivery is one attempt to tell the studio how an order ended (interface 6).
type Delivery struct {
	Order   *Order
	Attempt int       // 1 is the first
	Time    time.Time // on the service's clock
	Status  int       // HTTP status of the answer; 0 if there was none
	Err     error     // nil if the studio confirmed, with the envelope of 4.3, and the books are right
	Next    time.Time // when the service retries; zero if it does not
}

// String returns a one-line description of the delivery.
func (d Delivery) String() string {
	answer := "no answer"
	if d.Status != 0 {
		answer = fmt.Sprintf("HTTP %d", d.Status)
	}
	said := fmt.Sprintf("result #%d of %s at %s: %s", d.Attempt, d.Order, d.Time.Format("15:04:05"), answer)
	if !d.Next.IsZero() {
		said += ", next at " + d.Next.Format("15:04:05")
	}
	if d.Err != nil {
		said += ": " + d.Err.Error()
	}
	return said
}

// ErrPending means that there is no result yet, because the transaction is not in a
// block.
var ErrPending = errors.New("ramptest: the transaction is in no block yet")

// delivery is the progress of an order's result: its state and its schedule.
type delivery struct {
	mu       sync.Mutex
	state    State
	attempts int       // deliveries so far
	retries  int       // how many of them are retries of the schedule
	next     time.Time // when the next delivery is planned; zero if none is
	flying   int       // deliveries in progress
	status   int       // HTTP status of the last answer; 0 if there was none
}

// standing is a snapshot of a delivery.
type standing struct {
	state                              State
	attempts, retries, sending, status int
	next                               time.Time
}

func (d *delivery) standing() standing {
	d.mu.Lock()
	defer d.mu.Unlock()
	return standing{d.state, d.attempts, d.retries, d.flying, d.status, d.next}
}

func (d *delivery) now() State {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state
}

// schedule returns when the next delivery is planned, and whether any has begun.
func (d *delivery) schedule() (next time.Time, begun bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.next, d.attempts > 0
}

// mined records that the transaction is in a block.
func (d *delivery) mined() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state == Pending {
		d.state = Delivering
	}
}

// planned sets when the next delivery is due; the zero time cancels it. It reports
// whether a delivery is still wanted and whether it would be the first.
func (d *delivery) planned(at time.Time) (wanted, first bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next = at
	return !d.state.over(), d.attempts == 0
}

// begin counts one more attempt.
func (d *delivery) begin() (attempt int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.attempts++
	d.flying++
	return d.attempts
}

// conclude applies the status of an answer to the order (interface 6): HTTP 200
// confirms; no answer and the statuses of Config.Retry are retried. It returns when
// the next delivery is due, and whether the caller must plan it.
func (d *delivery) conclude(status int, config *Config, now time.Time, byHand bool) (next time.Time, plan bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.flying--
	d.status = status
	switch {
	case d.state == Confirmed || status == http.StatusOK:
		d.state = Confirmed
	case status != 0 && !config.Retry(status):
		d.state = Refused
	case byHand, !d.next.IsZero(): // never retried, or already planned
	case d.retries >= len(config.Schedule):
		d.state = GivenUp
	default:
		d.state = Delivering
		d.next = now.Add(config.Schedule[d.retries])
		d.retries++
		return d.next, true
	}
	if d.state.over() {
		return time.Time{}, false
	}
	return d.next, false
}

// advance moves the clock forward and runs the jobs that fall due on the way.
func (s *orders) advance(d time.Duration) []Delivery {
	leave, err := s.life.enter()
	if err != nil {
		return nil
	}
	defer leave()
	s.turn.Lock()
	defer s.turn.Unlock()
	end := s.clock.now().Add(d)
	var sent []Delivery
	for s.life.alive.Err() == nil {
		j, ok := s.agenda.next(end)
		if !ok {
			break
		}
		s.clock.jump(j.due)
		switch j.task {
		case mineForeign:
			block, _ := s.chains[j.network].Mine(j.tx, false)
			s.record.chain(s.clock.now(), uuid.Nil, Event{Network: j.network, TxHash: j.tx.Hash, Block: block, Status: TxMined},
				fmt.Sprintf("transaction %s in block %d", j.tx.Hash, block))
		case mineOrder:
			s.settle(j.order)
		case deliverResult:
			sent = append(sent, s.deliver(s.life.alive, j.order)...)
		}
		s.agenda.finished()
		s.record.wake()
	}
	s.clock.jump(end)
	return sent
}

// run runs the jobs that fall due while the clock runs.
func (s *orders) run() {
	const long = time.Hour // the wait if no job is planned
	timer := time.NewTimer(long)
	defer timer.Stop()
	for {
		wait := long
		if due, ok := s.agenda.due(); ok {
			wait = time.Duration(float64(due.Sub(s.clock.now())) / s.config.Speed)
			wait = min(long, max(wait, 0)+1) // rounded up, so that it does not wake too early
		}
		timer.Reset(wait)
		select {
		case <-s.life.alive.Done():
			return
		case <-s.agenda.woken:
		case <-timer.C:
			s.advance(0)
		}
	}
}

// submitted records a transaction that a client has sent to a chain, and plans to
// mine it.
func (s *orders) submitted(network ramp.Network, tx *chain.Transaction) {
	s.record.chain(s.clock.now(), uuid.Nil, Event{Network: network, TxHash: tx.Hash, Status: TxSubmitted},
		fmt.Sprintf("transaction %s submitted", tx.Hash))
	s.agenda.plan(job{due: s.chains[network].NextBlock(), task: mineForeign, network: network, tx: tx})
}

// settle mines the transaction of an order when its block is due, and plans the
// first delivery.
func (s *orders) settle(o *Order) {
	s.mine(o, o.script.outcome)
	if _, begun := o.delivery.schedule(); o.script.never || begun { // begun by hand
		return
	}
	s.plan(o, s.chains[o.Network].ConfirmedAt(o.tx, s.config.Confirmations).Add(o.script.late))
}

// mine puts the transaction of an order into a block. It reports whether it did;
// false means that the transaction was already in a block.
func (s *orders) mine(o *Order, outcome Outcome) bool {
	block, mined := s.chains[o.Network].Mine(o.tx, outcome == Failed)
	if !mined {
		return false
	}
	o.delivery.mined()
	outcome, _ = s.outcome(o) // a burn of more than the wallet holds fails regardless
	s.record.chain(s.clock.now(), o.UUID, s.onChain(o), fmt.Sprintf("transaction %s in block %d", outcome, block))
	return true
}

// outcome returns the outcome on the chain; ok reports whether there is one.
func (s *orders) outcome(o *Order) (outcome Outcome, ok bool) {
	if o.tx == nil {
		return 0, false
	}
	succeeded, mined := s.chains[o.Network].Outcome(o.tx)
	if succeeded {
		return Succeeded, mined
	}
	return Failed, mined
}

// onChain returns an event with what the chain knows about an order's transaction.
func (s *orders) onChain(o *Order) Event {
	e := Event{Network: o.Network, TxHash: o.TxHash, Status: TxSubmitted}
	outcome, mined := s.outcome(o)
	if !mined {
		return e
	}
	e.Status = TxFailed
	if outcome == Succeeded {
		e.Status = TxSucceeded
	}
	receipt := s.chains[o.Network].Receipt(o.tx, outcome == Succeeded)
	e.Block, _ = receipt.BlockNumber.Uint64()
	return e
}

// plan plans a delivery.
func (s *orders) plan(o *Order, at time.Time) {
	o.delivery.planned(at)
	s.agenda.plan(job{due: at, task: deliverResult, order: o})
}

// deliver makes a planned delivery: the first one, as the script says, or a retry.
func (s *orders) deliver(ctx context.Context, o *Order) []Delivery {
	wanted, first := o.delivery.planned(time.Time{})
	switch {
	case !wanted:
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

// release returns the orders whose results were held back, without those that were
// meanwhile delivered by hand.
func (s *orders) release() []*Order {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := slices.DeleteFunc(s.held, func(o *Order) bool {
		_, begun := o.delivery.schedule()
		return begun
	})
	s.held = nil
	return held
}

// begin makes the first delivery of an order, as often as the script says.
func (s *orders) begin(ctx context.Context, o *Order, fault string) []Delivery {
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
	if o.script.reorganized {
		s.chains[o.Network].Reorganize(o.tx)
		replaced := s.onChain(o)
		replaced.Status = TxReplaced
		s.record.chain(s.clock.now(), o.UUID, replaced, "block of the transaction replaced")
		sent = append(sent, s.attempt(ctx, o, outcome, "after the reorganization"))
	}
	return sent
}

// attempt delivers once, and plans the retry if one is due.
func (s *orders) attempt(ctx context.Context, o *Order, outcome Outcome, fault string) Delivery {
	d := Delivery{Order: o, Attempt: o.delivery.begin(), Time: s.clock.now()}
	w := o.script.result
	body, err := s.resultBody(o, outcome)
	if err != nil {
		d.Err = err
		o.delivery.conclude(0, s.config, d.Time, true)
		return d
	}
	if w.unknown {
		body = withUnknownFields(body)
	}
	c := s.studio.call(KindResult, o, d.Attempt, body)
	c.told = outcome
	if o.tx != nil {
		c.tx = s.onChain(o)
		c.tx.Status = TxFailed
		if outcome == Succeeded {
			c.tx.Status = TxSucceeded
		}
	}
	c.onChain, _ = s.outcome(o)
	var forged error
	if d.Attempt == 1 {
		forged = s.studio.forged(ctx, c, w.forged)
		c.slow = w.slow
	}
	c.fault, c.lost = fault, d.Attempt <= w.lost
	a, err := s.studio.exchange(ctx, c, checkResult)
	d.Err = errors.Join(forged, err, s.studio.audit.take(o.UUID))
	if a != nil && !errors.Is(err, ErrLostAnswer) {
		d.Status = a.status
	}
	var plan bool
	if d.Next, plan = o.delivery.conclude(d.Status, s.config, s.clock.now(), o.tx == nil); plan {
		s.plan(o, d.Next)
	}
	return d
}

// byHand delivers the result of outcome now and once, if the order allows it.
func (s *orders) byHand(ctx context.Context, o *Order, outcome func() (Outcome, error)) error {
	s.mu.Lock()
	foreign := o.tx != nil && s.placed[o.UUID] != o
	s.mu.Unlock()
	switch {
	case foreign:
		return errors.New("ramptest: the order belongs to another service")
	case len(o.Request.Intent.From) == 0 || len(o.Request.Intent.To) == 0:
		return errors.New("ramptest: the order has no intent")
	}
	leave, err := s.life.enter()
	if err != nil {
		return err
	}
	defer leave()
	told, err := outcome()
	if err != nil {
		return err
	}
	defer s.record.wake()
	return s.attempt(ctx, o, told, "by hand").Err
}

// tell delivers an outcome. It first mines a pending transaction.
func (s *orders) tell(ctx context.Context, o *Order, outcome Outcome) error {
	return s.byHand(ctx, o, func() (Outcome, error) {
		if o.tx != nil && s.mine(o, outcome) {
			outcome, _ = s.outcome(o)
		}
		return outcome, nil
	})
}

// resend delivers the outcome on the chain.
func (s *orders) resend(ctx context.Context, o *Order) error {
	return s.byHand(ctx, o, func() (Outcome, error) {
		outcome, ok := s.outcome(o)
		if !ok {
			return 0, ErrPending
		}
		return outcome, nil
	})
}

// resultBody returns the body of a result (interface 6). It is always the same
// bytes for the same outcome on the same branch of the chain.
func (s *orders) resultBody(o *Order, outcome Outcome) ([]byte, error) {
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

// receipt returns the receipt of an order's transaction with an outcome, which may
// differ from the one on the chain. For an order that was made by hand, it makes up
// a transaction that is not on the chain.
func (s *orders) receipt(o *Order, outcome Outcome) (ramp.Receipt, error) {
	if o.tx != nil {
		return s.chains[o.Network].Receipt(o.tx, outcome == Succeeded), nil
	}
	moves, err := s.config.moves(o, common.HexToAddress(o.Request.UserAddress))
	if err != nil {
		return ramp.Receipt{}, err
	}
	tx := chain.Transaction{GasUsed: chain.GasOfCall, Kind: 2, Moves: moves,
		Hash: crypto.Keccak256Hash([]byte("transaction"), o.UUID[:], o.Request.Digest[:])}
	return s.chains[s.config.Networks[0]].Receipt(&tx, outcome == Succeeded), nil
}
