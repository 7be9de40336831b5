package emulator

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/google/uuid"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/delivery"
	"github.com/token-ramp/ramp-go/ramptest/internal/fault"
	"github.com/token-ramp/ramp-go/ramptest/internal/order"
	"github.com/token-ramp/ramp-go/ramptest/internal/trade"
)

// Advance moves the clock forward and runs the jobs that fall due on the way.
func (s *Orders) Advance(d time.Duration) []delivery.Delivery {
	leave, err := s.Life.Enter()
	if err != nil {
		return nil
	}
	defer leave()
	s.turn.Lock()
	defer s.turn.Unlock()
	end := s.Clock.Now().Add(d)
	var sent []delivery.Delivery
	for s.Life.Alive.Err() == nil {
		j, ok := s.jobs.Next(end)
		if !ok {
			break
		}
		s.Clock.Jump(j.Due)
		switch j.Task {
		case order.MineForeign:
			block, _ := s.Chains[j.Network].Mine(j.Tx, j.Tx.RunsCode())
			if _, mined := s.Chains[j.Network].Outcome(j.Tx); !mined { // the chain has stopped meanwhile
				s.jobs.Plan(j)
				break
			}
			mined := control.Event{
				Network: j.Network, TxHash: j.Tx.Hash, Block: block, Status: control.TxMined}
			s.recordChain(uuid.Nil, mined, "transaction %s in block %d", j.Tx.Hash, block)
		case order.MineOrder:
			s.mine(j.Order, outcomeOf(j.Order))
			if _, mined := s.Chains.Outcome(j.Order); mined {
				s.planFirst(j.Order)
			} else { // the chain has stopped meanwhile
				s.jobs.Plan(j)
			}
		case order.DeliverResult:
			if s.isDue(j.Order) {
				sent = append(sent, s.deliveries.Deliver(s.Life.Alive, j.Order)...)
			} else { // the chain stood still, or has replaced the block
				s.planFirst(j.Order)
			}
		}
		s.jobs.Finished()
		if s.changes.note(); j.Order != nil {
			s.changes.note(j.Order.UUID)
		}
		s.History.Wake()
	}
	s.Clock.Jump(end)
	if s.config.Closed {
		s.Audit.Sweep(s.Life.Alive)
	}
	if s.config.IsUnitTest {
		s.Game.AskLikeAThief(s.Life.Alive)
	}
	s.changes.note()
	return sent
}

// can reports whether a job can run if it is due. What needs another block cannot while the chain stands
// still.
func (s *Orders) can(j *order.Job) bool {
	switch j.Task {
	case order.MineForeign:
		return !s.Chains[j.Network].Stands()
	case order.MineOrder:
		return !s.Chains[j.Order.Network].Stands()
	default:
		return s.isDue(j.Order) || !s.Chains[j.Order.Network].Stands()
	}
}

// waits reports whether what is next for an order cannot be done, because its chain stands still.
func (s *Orders) waits(o *order.Order) bool {
	jobs, _ := s.jobs.Of(o)
	return len(jobs) > 0 && !s.can(&jobs[0])
}

// isDue reports whether the transaction of an order has the confirmations that its result needs.
func (s *Orders) isDue(o *order.Order) bool {
	return o.Delivery.Begun() || s.Chains[o.Network].Confirmed(o.Tx, s.config.Confirmations)
}

// outcomeOf returns the outcome that the faults of an order give its transaction.
func outcomeOf(o *order.Order) order.Outcome {
	if p := o.Partner.Load(); o.Script.Fails || p != nil && p.Script.Fails {
		return order.Failed
	}
	return order.Succeeded
}

// run runs the jobs that fall due while the clock runs.
func (s *Orders) run() {
	const long = time.Hour // the wait if no job is planned
	timer := time.NewTimer(long)
	defer timer.Stop()
	for {
		wait := long
		if due, ok := s.jobs.Due(); ok {
			wait = time.Duration(float64(due.Sub(s.Clock.Now())) / s.config.Speed)
			wait = min(long, max(wait, 0)+1) // rounded up, so that it does not wake too early
		}
		timer.Reset(wait)
		select {
		case <-s.Life.Alive.Done():
			return
		case <-s.jobs.Woken:
		case <-timer.C:
			s.Advance(0)
		}
	}
}

// ErrPending means that there is no result yet, because the transaction is not in a
// block.
var ErrPending = errors.New("ramptest: the transaction is in no block yet: call Service.Advance")

// sponsored is the type of a transaction for which the service pays.
const sponsored = 0x7

// errStands is [ErrPending] of an order whose chain makes no block.
var errStands = fmt.Errorf("%w after Service.SetNode has let the chain go on", ErrPending)

// End mines the transaction of an order with an outcome, and reports whether it was
// pending. The result follows as usual.
func (s *Orders) End(o *order.Order, outcome order.Outcome) (pending bool, err error) {
	if _, mined := s.Chains.Outcome(o); !mined && s.Chains[o.Network].Stands() {
		return true, errStands
	}
	mined := s.mine(o, outcome)
	if mined && o.Script.Pending { // otherwise a job is planned for the next block
		s.planFirst(o)
	}
	return mined, nil
}

// planFirst plans the first delivery of a result.
func (s *Orders) planFirst(o *order.Order) {
	if o.Script.Never || o.Delivery.Begun() { // begun by hand
		return
	}
	s.deliveries.Plan(o, s.Chains[o.Network].ConfirmedAt(o.Tx, s.config.Confirmations).Add(o.Script.Late))
}

// mine puts the transaction of an order into a block. It reports whether it did;
// false means that the transaction was already in a block, or that the chain stands still.
func (s *Orders) mine(o *order.Order, outcome order.Outcome) bool {
	if o.Tx == nil { // the game did not approve it
		return false
	}
	s.mu.Lock() // no other order joins the transaction meanwhile
	defer s.mu.Unlock()
	block, mined := s.Chains[o.Network].Mine(o.Tx, outcome == order.Failed)
	if !mined {
		return false
	}
	outcome, _ = s.Chains.Outcome(o) // a burn of more than the wallet holds fails regardless
	noted := func(o *order.Order) {
		o.Delivery.Mined()
		s.recordChain(o.UUID, s.Chains.Event(o), "transaction %s in block %d", outcome, block)
		s.changes.note(o.UUID)
	}
	if p := o.Partner.Load(); p != nil {
		noted(p)
		if jobs, _ := s.jobs.Of(p); len(jobs) == 0 { // otherwise one is planned for the next block
			s.planFirst(p)
		}
	}
	noted(o)
	return true
}

// hint says, in parentheses, which setting of a game that asks the chain may be why it answers the
// result of an order with HTTP 500.
func (s *Orders) hint(o *order.Order) string {
	asked, chain := s.History.Last(func(e *control.Event) bool { return e.Kind == control.KindRPC })
	_, looked := s.History.Asked(o.TxHash.Hex())
	outcome, mined := s.Chains.Outcome(o)
	switch {
	case !chain || !mined:
		return ""
	case path.Base(asked.Request.Path) != string(o.Network):
		return fmt.Sprintf(" (the transaction is on %s, but the game asked %s: "+
			"its ramp.Terms and its ramp.RPC must be for one network)", o.Network, asked.Request.Path)
	case looked && outcome == order.Failed && o.Tx.Kind != sponsored && s.proves():
		return fmt.Sprintf(" (the player paid for this failed transaction of type %#x: "+
			"the game's rampproof.Proof accepts only those of the ramp, "+
			"as TransactionType(7) makes them, unless it sets AnyFailure)", o.Tx.Kind)
	}
	return ""
}

// proves reports whether the game has a rampproof.Proof: it has asked a token for its decimals, which
// nothing else needs.
func (s *Orders) proves() bool {
	const decimals = "0x313ce567" // the selector
	_, asked := s.History.Asked(decimals)
	return asked
}

// ByHand delivers a result now and once, if the order allows it: with an outcome, for which
// it first mines a pending transaction, or with that on the chain.
func (s *Orders) ByHand(ctx context.Context, o *order.Order, stated order.Outcome) error {
	s.mu.Lock()
	foreign := o.Tx != nil && s.placed[o.UUID] != o
	s.mu.Unlock()
	switch {
	case foreign:
		return errors.New("ramptest: the order belongs to another service")
	case o.Trade() == nil:
		return fmt.Errorf("ramptest: the order has no intent of a %s", trade.Names())
	}
	leave, err := s.Life.Enter()
	if err != nil {
		return err
	}
	defer leave()
	s.noteByHand(o)
	switch _, mined := s.Chains.Outcome(o); {
	case o.Tx != nil && !mined && s.Chains[o.Network].Stands():
		return errStands
	case stated == order.AsOnChain && !mined:
		return ErrPending
	case o.Tx != nil && stated != order.AsOnChain && s.mine(o, stated):
		stated = order.AsOnChain // which may be another
	}
	defer s.History.Wake()
	defer s.changes.note(o.UUID)
	sent := s.deliveries.Attempt(ctx, o, stated, fault.ByHand)
	if s.config.IsUnitTest {
		s.Game.AskLikeAThief(s.Life.Alive)
	}
	return sent.Err
}
