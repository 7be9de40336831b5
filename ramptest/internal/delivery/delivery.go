// Package delivery tells the game how orders ended (interface 6): it delivers a result as often as the faults
// of its order say, learns from each answer whether the game has confirmed, and plans the retries. When a
// job is due, and which transactions are in a block, others decide.
package delivery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/ramptest/internal/fault"
	"github.com/token-ramp/ramp-go/ramptest/internal/game"
	"github.com/token-ramp/ramp-go/ramptest/internal/locks"
	"github.com/token-ramp/ramp-go/ramptest/internal/order"
	"github.com/token-ramp/ramp-go/ramptest/internal/trade"
)

// Config is what deliveries need of a service.
type Config struct {
	Game     *game.Game
	Chains   order.Chains
	Rules    *trade.Rules
	Schedule []time.Duration       // the waits before the retries (interface 8)
	Retry    func(status int) bool // whether a result is sent again after this HTTP status
	Now      func() time.Time

	// AskAgain makes one more validate call, and calls before while it is not answered.
	AskAgain func(ctx context.Context, o *order.Order, before func()) error

	Plan     func(*order.Order, time.Time)             // plans the next [Deliveries.Deliver]
	Began    func()                                    // is called when an attempt begins
	Ended    func(uuid.UUID)                           // is called when an attempt has ended
	Replaced func(o *order.Order, block control.Event) // is called when the block of an order was replaced
	Found    func(uuid.UUID) error                     // returns what the audit has found since the last call
	Hint     func(o *order.Order) (why string)         // says why the game may have answered HTTP 500
}

// Deliveries makes the deliveries of a service.
type Deliveries struct {
	config Config

	mu   locks.Mutex
	held []*order.Order // orders whose result waits for that of another order
}

// New returns the deliveries of a service.
func New(config Config) *Deliveries { return &Deliveries{config: config, mu: locks.At(locks.Held)} }

// Delivery is one attempt to tell the game how an order ended (interface 6).
type Delivery struct {
	Order   *order.Order
	Attempt int       // 1 is the first
	Time    time.Time // on the service's clock
	Status  int       // HTTP status of the answer; 0 if there was none
	Err     error     // nil if the game confirmed, with the envelope of 4.3, and the books are right
	Next    time.Time // when the service retries; zero if it does not
}

// Plan plans a delivery.
func (s *Deliveries) Plan(o *order.Order, at time.Time) {
	o.Delivery.Planned(at)
	s.config.Plan(o, at)
}

// Deliver makes a planned delivery: the first one, as the script says, or a retry.
func (s *Deliveries) Deliver(ctx context.Context, o *order.Order) []Delivery {
	wanted, first := o.Delivery.Planned(time.Time{})
	switch {
	case !wanted:
		return nil
	case !first:
		return []Delivery{s.Attempt(ctx, o, order.AsOnChain, "")}
	case o.Script.Held:
		s.Hold(o)
		return nil
	}
	sent := s.begin(ctx, o, "")
	for _, late := range s.release() {
		sent = append(sent, s.begin(ctx, late, "out of order")...)
	}
	return sent
}

// Hold holds the result of an order back until that of another one has been delivered.
func (s *Deliveries) Hold(o *order.Order) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = append(s.held, o)
}

// Holds reports whether the result of an order is held back.
func (s *Deliveries) Holds(o *order.Order) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.held, o)
}

// Reset forgets the results that are held back.
func (s *Deliveries) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = nil
}

// release returns the orders whose results were held back, without those that were
// meanwhile delivered by hand.
func (s *Deliveries) release() []*order.Order {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := slices.DeleteFunc(s.held, func(o *order.Order) bool { return o.Delivery.Begun() })
	s.held = nil
	return held
}

// begin makes the first delivery of an order, as often as the script says.
func (s *Deliveries) begin(ctx context.Context, o *order.Order, name string) []Delivery {
	o.Delivery.Note(func(d *order.Delivery) { d.Scripted = true })
	sent := make([]Delivery, max(1, o.Script.AtOnce))
	if o.Script.AtOnce > 0 {
		name = fault.AtOnce
	}
	first := func() {
		var calls sync.WaitGroup
		for i := range sent {
			calls.Go(func() { sent[i] = s.Attempt(ctx, o, order.AsOnChain, name) })
		}
		calls.Wait()
	}
	if o.Script.BeforeAnswer {
		err := s.config.AskAgain(ctx, o, first)
		sent[0].Err = errors.Join(sent[0].Err, err, s.config.Found(o.UUID))
	} else {
		first()
	}
	for range o.Script.Again {
		sent = append(sent, s.Attempt(ctx, o, order.AsOnChain, fault.Again))
	}
	if o.Script.Reorganized {
		s.config.Chains[o.Network].Reorganize(o.Tx)
		o.Delivery.Note(func(d *order.Delivery) { d.Reorganized = true })
		s.config.Replaced(o, s.config.Chains.Event(o))
		sent = append(sent, s.Attempt(ctx, o, order.AsOnChain, "after the reorganization"))
	}
	return sent
}

// Attempt delivers once, and plans the retry if one is due. The fault is the name of the one because of which
// the attempt is made, or [fault.ByHand], or "".
func (s *Deliveries) Attempt(ctx context.Context, o *order.Order, stated order.Outcome,
	name string) Delivery {
	d := Delivery{Order: o, Attempt: o.Delivery.Begin(name), Time: s.config.Now()}
	s.config.Began()
	var a *game.Answer
	c, err := s.result(o, stated)
	if err == nil {
		if o.Script.Stale {
			c.Body = o.Delivery.First(c.Body)
		}
		script := o.Script.Result
		failing := script.Fails
		if d.Attempt > 1 { // the other faults are for the first attempt
			script = fault.Call{Lost: script.Lost, Unknown: script.Unknown}
		}
		c.Attempt, c.Fault = d.Attempt, name
		c.Lost = d.Attempt > failing && d.Attempt <= failing+script.Lost
		now := o.Delivery.Now()
		c.Again, c.Retried = now.State == order.Confirmed, now.MayRetry(s.config.Schedule) && o.Tx != nil
		a, err = s.config.Game.Play(ctx, c, script, game.CheckResult)
	}
	lost := errors.Is(err, game.ErrLostAnswer)
	if a != nil && a.Status == http.StatusInternalServerError && !errors.Is(err, game.ErrStoreFailed) {
		err = fmt.Errorf("%w%s", err, s.config.Hint(o))
	}
	if a != nil && !lost {
		d.Status = a.Status
	}
	d.Err = errors.Join(err, s.config.Found(o.UUID))
	defer s.config.Ended(o.UUID)
	contrary := c.Stated != c.OnChain && o.Tx != nil
	lost = lost || errors.Is(err, game.ErrStoreFailed)
	var plan bool
	heard := order.Reply{Status: d.Status, Wrong: game.WrongOf(err), Lost: lost, Contrary: contrary,
		Fault: name,
		Once:  o.Tx == nil}
	d.Next, plan = o.Delivery.Conclude(heard, s.config.Schedule, s.config.Retry, s.config.Now())
	if plan {
		s.Plan(o, d.Next)
	}
	return d
}

// result returns the call that tells the game an outcome (interface 6). Its body
// is always the same bytes for the same outcome on the same branch of the chain.
func (s *Deliveries) result(o *order.Order, stated order.Outcome) (game.Call, error) {
	intent := o.Request.Intent
	if !o.Script.WithoutFee {
		intent.FeeRate, intent.Actual = json.Number(o.Fee.String()),
			trade.AfterFee(intent.To[0].Amount, o.Fee).String()
		if o.Trade().Mint {
			_, net := s.config.Rules.Amounts(&o.Request.Intent, o.Fee)
			intent.Actual = net.String()
		}
	}
	onChain, _ := s.config.Chains.Outcome(o)
	if stated == order.AsOnChain {
		stated = onChain
	}
	receipt := s.config.Chains.Receipt(o, stated, s.config.Rules)
	if o.Script.WithoutLogs && len(receipt.Logs) > 0 {
		receipt.Logs, receipt.LogsBloom = nil, make([]byte, len(receipt.LogsBloom)) // as of one that failed
		o.Delivery.Note(func(d *order.Delivery) { d.LeftOut = true })
	}
	body, err := json.Marshal(ramp.Result{
		SessionID: o.Session.ID,
		UUID:      o.UUID,
		TxHash:    receipt.TransactionHash.Hex(),
		Receipt:   receipt,
		Intent:    intent,
	})
	if err != nil { // of an order that was made by hand
		return game.Call{}, fmt.Errorf("ramptest: %w", err)
	}
	tx := order.ReceiptEvent(o.Network, &receipt, stated)
	return game.Call{Kind: control.KindResult, Order: o, Body: body, Tx: tx, Stated: stated,
		OnChain: onChain}, nil
}
