package ramptest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/control"
)

// advance moves the clock forward and runs the jobs that fall due on the way.
func (s *orders) advance(d time.Duration) []Delivery {
	leave, err := s.life.Enter()
	if err != nil {
		return nil
	}
	defer leave()
	s.turn.Lock()
	defer s.turn.Unlock()
	end := s.clock.Now().Add(d)
	var sent []Delivery
	for s.life.Alive.Err() == nil {
		j, ok := s.agenda.next(end)
		if !ok {
			break
		}
		s.clock.Jump(j.due)
		switch j.task {
		case mineForeign:
			block, _ := s.chains[j.network].Mine(j.tx, j.tx.RunsCode())
			mined := control.Event{
				Network: j.network, TxHash: j.tx.Hash, Block: block, Status: control.TxMined}
			s.recordChain(uuid.Nil, mined, "transaction %s in block %d", j.tx.Hash, block)
		case mineOrder:
			s.mine(j.order, j.order.script.outcome)
			s.planFirst(j.order)
		case deliverResult:
			sent = append(sent, s.deliver(s.life.Alive, j.order)...)
		}
		s.agenda.finished()
		if s.changes.note(); j.order != nil {
			s.changes.note(j.order.UUID)
		}
		s.history.Wake()
	}
	s.clock.Jump(end)
	if s.config.Closed {
		s.audit.Sweep(s.life.Alive)
	}
	s.changes.note()
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
			wait = time.Duration(float64(due.Sub(s.clock.Now())) / s.config.Desk.Speed)
			wait = min(long, max(wait, 0)+1) // rounded up, so that it does not wake too early
		}
		timer.Reset(wait)
		select {
		case <-s.life.Alive.Done():
			return
		case <-s.agenda.woken:
		case <-timer.C:
			s.advance(0)
		}
	}
}

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
	o.delivery.note(func(d *delivery) { d.scripted = true })
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
		o.delivery.note(func(d *delivery) { d.reorganized = true })
		replaced := s.onChain(o)
		replaced.Status = control.TxReplaced
		s.recordChain(o.UUID, replaced, "block of the transaction replaced")
		sent = append(sent, s.attempt(ctx, o, asOnChain, "after the reorganization"))
	}
	return sent
}

// attempt delivers once, and plans the retry if one is due.
func (s *orders) attempt(ctx context.Context, o *Order, stated Outcome, fault string) Delivery {
	d := Delivery{Order: o, Attempt: o.delivery.begin(fault), Time: s.clock.Now()}
	s.history.Wake() // a list shows that it is being sent
	var a *answer
	c, err := s.result(o, stated)
	if err == nil {
		if o.script.stale {
			c.body = o.delivery.first(c.body)
		}
		script := o.script.result
		failing := script.fails
		if d.Attempt > 1 { // the other faults are for the first attempt
			script = callScript{lost: script.lost, unknown: script.unknown}
		}
		c.attempt, c.fault = d.Attempt, fault
		c.lost = d.Attempt > failing && d.Attempt <= failing+script.lost
		now := o.delivery.now()
		c.again, c.retried = now.State == Confirmed, now.retries(s.config) && o.tx != nil
		a, err = s.game.play(ctx, c, script, checkResult)
	}
	lost := errors.Is(err, ErrLostAnswer)
	if a != nil && a.status == http.StatusInternalServerError && !errors.Is(err, ErrStoreFailed) {
		err = fmt.Errorf("%w%s", err, s.hint(o))
	}
	if a != nil && !lost {
		d.Status = a.status
	}
	d.Err = errors.Join(err, s.take(o.UUID))
	defer s.changes.note(o.UUID)
	contrary := c.stated != c.onChain && o.tx != nil
	lost = lost || errors.Is(err, ErrStoreFailed)
	var plan bool
	heard := reply{d.Status, wrongOf(err), lost, contrary, fault, o.tx == nil}
	d.Next, plan = o.delivery.conclude(heard, s.config, s.clock.Now())
	if plan {
		s.plan(o, d.Next)
	}
	return d
}

// hint says, in parentheses, which setting of a game that asks the chain may be why it answers the
// result of an order with HTTP 500.
func (s *orders) hint(o *Order) string {
	asked, chain := s.history.Last(func(e *control.Event) bool { return e.Kind == control.KindRPC })
	_, looked := s.history.Asked(o.TxHash.Hex())
	outcome, mined := s.outcome(o)
	switch {
	case !chain || !mined:
		return ""
	case path.Base(asked.Request.Path) != string(o.Network):
		return fmt.Sprintf(" (the transaction is on %s, but the game asked %s: "+
			"its ramp.Terms and its ramp.RPC must be for one network)", o.Network, asked.Request.Path)
	case looked && outcome == Failed && o.tx.Kind != sponsored && s.proves():
		return fmt.Sprintf(" (the player paid for this failed transaction of type %#x: "+
			"the game's rampproof.Proof accepts only those of the ramp, "+
			"as TransactionType(7) makes them, unless it sets AnyFailure)", o.tx.Kind)
	}
	return ""
}

// proves reports whether the game has a rampproof.Proof: it has asked a token for its decimals, which
// nothing else needs.
func (s *orders) proves() bool {
	const decimals = "0x313ce567" // the selector
	_, asked := s.history.Asked(decimals)
	return asked
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
	leave, err := s.life.Enter()
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
	defer s.history.Wake()
	defer s.changes.note(o.UUID)
	return s.attempt(ctx, o, stated, byHand).Err
}

// result returns the call that tells the game an outcome (interface 6). Its body
// is always the same bytes for the same outcome on the same branch of the chain.
func (s *orders) result(o *Order, stated Outcome) (call, error) {
	intent := o.Request.Intent
	if !o.script.withoutFee {
		intent.FeeRate, intent.Actual = json.Number(o.fee.String()),
			afterFee(intent.To[0].Amount, o.fee).String()
		if o.trade().mint {
			_, net := s.config.amounts(o)
			intent.Actual = net.String()
		}
	}
	onChain, _ := s.outcome(o)
	if stated == asOnChain {
		stated = onChain
	}
	receipt := s.receipt(o, stated)
	body, err := json.Marshal(ramp.Result{
		SessionID: o.Session.ID,
		UUID:      o.UUID,
		TxHash:    receipt.TransactionHash.Hex(),
		Receipt:   receipt,
		Intent:    intent,
	})
	if err != nil { // of an order that was made by hand
		return call{}, fmt.Errorf("ramptest: %w", err)
	}
	tx := receiptEvent(o.Network, &receipt, stated)
	return call{kind: control.KindResult, order: o, body: body, tx: tx, stated: stated, onChain: onChain}, nil
}
