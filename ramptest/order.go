package ramptest

import (
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/order"
)

// PlacedOrder is a mint or a burn that the game has approved.
type PlacedOrder struct {
	UUID     uuid.UUID
	Session  ramp.Session
	Network  ramp.Network
	Request  ramp.ValidateRequest // the validate request that the game received
	Approval ramp.Approval        // the game's answer
	TxHash   common.Hash          // the transaction on the chain, see [Service.RPCURL]

	mu    sync.Mutex
	order *order.Order // as the service keeps it; nil until an order that was made by hand is used
}

// String returns a one-line description with the beginning of the UUID.
func (o *PlacedOrder) String() string { return o.kept().String() }

// kept returns the order as the service keeps it. One that the caller has changed is made by hand.
func (o *PlacedOrder) kept() *order.Order {
	o.mu.Lock()
	defer o.mu.Unlock()
	if k := o.order; k == nil || k.Session.ID != o.Session.ID || !k.Session.Token.Equal(o.Session.Token) ||
		!reflect.DeepEqual(k.Request, o.Request) {
		return o.byHand()
	}
	return o.order
}

// byHand returns the order as one that was made by hand. The caller must hold the lock.
func (o *PlacedOrder) byHand() *order.Order {
	made := &order.Order{UUID: o.UUID, Session: o.Session, Network: o.Network, Request: o.Request,
		Approval: o.Approval, TxHash: o.TxHash}
	if o.order == nil {
		o.order = made
	}
	return made
}

// Outcome is the outcome of an order's transaction.
type Outcome int

// The outcomes of a transaction (interface 3).
const (
	Succeeded Outcome = iota // receipt.status 0x1
	Failed                   // receipt.status 0x0
)

// String returns the outcome in a word.
func (o Outcome) String() string { return order.Outcome(o).String() }

// State is the state of an order as the service sees it.
type State string

// The states of an order. The interface has no names for them (3).
const (
	Pending    State = State(order.Pending)    // its transaction is not in a block
	Delivering State = State(order.Delivering) // the game has not confirmed the result
	// the game answered HTTP 200 (interface 6), even with success false
	Confirmed State = State(order.Confirmed)
	// the game answered with another status, and the service does not retry it
	Rejected State = State(order.Rejected)
	GivenUp  State = State(order.GivenUp) // the schedule has ended without a confirmation
)

// Delivery is one attempt to tell the game how an order ended (interface 6).
type Delivery struct {
	Order   *PlacedOrder
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
