package ramptest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"sync"
	"time"
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
	Delivering State = "delivering" // the game has not confirmed the result
	Confirmed  State = "confirmed"  // the game answered HTTP 200 (interface 6), even with success false
	Rejected   State = "rejected"   // the game answered with another status, and the service does not retry it
	GivenUp    State = "given up"   // the schedule has ended without a confirmation
)

// over reports whether the schedule of deliveries has ended.
func (s State) over() bool { return s == Confirmed || s == Rejected || s == GivenUp }

// Delivery is one attempt to tell the game how an order ended (interface 6).
type Delivery struct {
	Order   *Order
	Attempt int       // 1 is the first
	Time    time.Time // on the service's clock
	Status  int       // HTTP status of the answer; 0 if there was none
	Err     error     // nil if the game confirmed, with the envelope of 4.3, and the books are right
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
var ErrPending = errors.New("ramptest: the transaction is in no block yet: call Service.Advance")

// sponsored is the type of a transaction for which the service pays.
const sponsored = 0x7

// standing is the progress of an order's result: its state and its schedule.
type standing struct {
	State    State
	Attempts int       // deliveries so far
	Retries  int       `json:",omitzero"` // how many of them are retries of the schedule
	Next     time.Time `json:",omitzero"` // when the next delivery is planned; zero if none is
	Status   int       `json:",omitzero"` // HTTP status of the last answer; 0 if there was none
	Lost     bool      `json:",omitzero"` // the last answer was lost by a fault
	Contrary bool      `json:",omitzero"` // the last result contradicted the chain, and was not confirmed

	sending int // deliveries in progress
}

// delivery guards the progress of an order's result.
type delivery struct {
	mu sync.Mutex
	standing
	body []byte // of the first delivery
}

// first returns the body of the first delivery.
func (d *delivery) first(body []byte) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.body == nil {
		d.body = body
	}
	return d.body
}

func (d *delivery) now() standing {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.standing
}

func (d *delivery) begun() bool { return d.now().Attempts > 0 }

// mined records that the transaction is in a block.
func (d *delivery) mined() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.State == Pending {
		d.State = Delivering
	}
}

// planned sets when the next delivery is due; the zero time cancels it. It reports
// whether a delivery is still wanted and whether it would be the first.
func (d *delivery) planned(at time.Time) (wanted, first bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Next = at
	return !d.State.over(), d.Attempts == 0
}

// begin counts one more attempt.
func (d *delivery) begin() (attempt int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Attempts++
	d.sending++
	return d.Attempts
}

// conclude applies the status of an answer to the order (interface 6): HTTP 200
// confirms; no answer and the statuses of Config.Retry are retried, and so is a result that
// contradicts the chain, which the game may reject. It returns when the next delivery is
// due, and whether the caller must plan it.
func (d *delivery) conclude(status int, lost, contrary bool, config *Config, now time.Time, byHand bool) (next time.Time, plan bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sending--
	if contrary = contrary && status != http.StatusOK; !contrary || d.State != Confirmed {
		d.Status, d.Lost, d.Contrary = status, lost, contrary
	}
	switch {
	case d.State == Confirmed || status == http.StatusOK:
		d.State = Confirmed
	case status != 0 && !config.Retry(status) && !contrary:
		d.State = Rejected
	case byHand, !d.Next.IsZero(): // never retried, or already planned
	case d.Retries >= len(config.Schedule):
		d.State = GivenUp
	default:
		d.State = Delivering
		d.Next = now.Add(config.Schedule[d.Retries])
		d.Retries++
		return d.Next, true
	}
	if d.State.over() {
		return time.Time{}, false
	}
	return d.Next, false
}

// end mines the transaction of an order with an outcome, and reports whether it was
// pending. The result follows as usual.
func (s *orders) end(o *Order, outcome Outcome) bool {
	mined := s.mine(o, outcome)
	if mined && o.script.pending { // otherwise a job is planned for the next block
		s.planFirst(o)
	}
	return mined
}

// planFirst plans the first delivery of a result.
func (s *orders) planFirst(o *Order) {
	if o.script.never || o.delivery.begun() { // begun by hand
		return
	}
	s.plan(o, s.chains[o.Network].ConfirmedAt(o.tx, s.config.Confirmations).Add(o.script.late))
}

// mine puts the transaction of an order into a block. It reports whether it did;
// false means that the transaction was already in a block.
func (s *orders) mine(o *Order, outcome Outcome) bool {
	if o.tx == nil { // the game did not approve it
		return false
	}
	block, mined := s.chains[o.Network].Mine(o.tx, outcome == Failed)
	if !mined {
		return false
	}
	o.delivery.mined()
	outcome, _ = s.outcome(o) // a burn of more than the wallet holds fails regardless
	s.recordChain(o.UUID, s.onChain(o), "transaction %s in block %d", outcome, block)
	return true
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
		return []Delivery{s.attempt(ctx, o, asOnChain, "")}
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
	held := slices.DeleteFunc(s.held, func(o *Order) bool { return o.delivery.begun() })
	s.held = nil
	return held
}

// begin makes the first delivery of an order, as often as the script says.
func (s *orders) begin(ctx context.Context, o *Order, fault string) []Delivery {
	sent := make([]Delivery, max(1, o.script.atOnce))
	if o.script.atOnce > 0 {
		fault = "at once"
	}
	var calls sync.WaitGroup
	for i := range sent {
		calls.Go(func() { sent[i] = s.attempt(ctx, o, asOnChain, fault) })
	}
	calls.Wait()
	for range o.script.again {
		sent = append(sent, s.attempt(ctx, o, asOnChain, "again"))
	}
	if o.script.reorganized {
		s.chains[o.Network].Reorganize(o.tx)
		replaced := s.onChain(o)
		replaced.Status = TxReplaced
		s.recordChain(o.UUID, replaced, "block of the transaction replaced")
		sent = append(sent, s.attempt(ctx, o, asOnChain, "after the reorganization"))
	}
	return sent
}

// attempt delivers once, and plans the retry if one is due.
func (s *orders) attempt(ctx context.Context, o *Order, stated Outcome, fault string) Delivery {
	d := Delivery{Order: o, Attempt: o.delivery.begin(), Time: s.clock.now()}
	s.record.wake() // a list shows that it is being sent
	var a *answer
	c, err := s.result(o, stated)
	if err == nil {
		if o.script.stale {
			c.body = o.delivery.first(c.body)
		}
		script := o.script.result
		if d.Attempt > 1 { // the other faults are for the first attempt
			script = callScript{lost: script.lost, unknown: script.unknown}
		}
		c.attempt, c.fault, c.lost = d.Attempt, fault, d.Attempt <= script.lost
		a, err = s.game.play(ctx, c, script, checkResult)
	}
	lost := errors.Is(err, ErrLostAnswer)
	if a != nil && a.status == http.StatusInternalServerError {
		err = fmt.Errorf("%w%s", err, s.hint(o))
	}
	if a != nil && !lost {
		d.Status = a.status
	}
	d.Err = errors.Join(err, s.audit.take(o.UUID))
	var plan bool
	defer s.keeper.touch(o.UUID)
	if d.Next, plan = o.delivery.conclude(d.Status, lost, c.stated != c.onChain && o.tx != nil, s.config, s.clock.now(), o.tx == nil); plan {
		s.plan(o, d.Next)
	}
	return d
}

// hint says, in parentheses, which setting of a game that asks the chain may be why it answers the
// result of an order with HTTP 500.
func (s *orders) hint(o *Order) string {
	asked, chain := s.record.last(func(e *Event) bool { return e.Kind == KindRPC })
	outcome, mined := s.outcome(o)
	switch {
	case !chain || !mined:
		return ""
	case path.Base(asked.Request.Path) != string(o.Network):
		return fmt.Sprintf(" (the transaction is on %s, but the game asked %s: its ramp.Terms and its ramp.RPC must be for one network)",
			o.Network, asked.Request.Path)
	case outcome == Failed && o.tx.Kind != sponsored:
		return fmt.Sprintf(" (the player paid for this failed transaction of type %#x: a game with ramp.Proof accepts only those of the ramp, "+
			"as TransactionType(7) makes them)", o.tx.Kind)
	}
	return ""
}

// byHand delivers a result now and once, if the order allows it: with an outcome, for which
// it first mines a pending transaction, or with that on the chain.
func (s *orders) byHand(ctx context.Context, o *Order, stated Outcome) error {
	s.mu.Lock()
	foreign := o.tx != nil && s.placed[o.UUID] != o
	s.mu.Unlock()
	switch {
	case foreign:
		return errors.New("ramptest: the order belongs to another service")
	case o.trade() == nil:
		return fmt.Errorf("ramptest: the order has no intent of a %s", tradeNames())
	}
	leave, err := s.life.enter()
	if err != nil {
		return err
	}
	defer leave()
	switch _, mined := s.outcome(o); {
	case stated == asOnChain && !mined:
		return ErrPending
	case o.tx != nil && stated != asOnChain && s.mine(o, stated):
		stated = asOnChain // which may be another
	}
	defer s.record.wake()
	defer s.keeper.touch(o.UUID)
	return s.attempt(ctx, o, stated, "by hand").Err
}

// progress is the progress of an order.
type progress struct {
	standing
	done bool      // nothing more is planned
	next time.Time // when the next step is planned; zero if it is in progress
}

func (s *orders) progress(o *Order) progress {
	jobs, busy := s.agenda.of(o) // read before the delivery, which may plan a job when it ends
	p := progress{standing: o.delivery.now()}
	switch {
	case p.sending > 0:
	case p.State.over():
		p.done = !busy // which may send the result again
	case len(jobs) == 0:
		p.next = p.Next // the answer has arrived, but the retry is not on the agenda yet
		p.done = p.next.IsZero()
	case !busy:
		p.next = jobs[0].due
	}
	return p
}
