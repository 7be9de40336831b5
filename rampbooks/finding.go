package rampbooks

import (
	"fmt"
	"math/big"
	"time"

	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/catalog"
	"github.com/token-ramp/ramp-go/internal/console"
)

// Finding is an order or an event that does not fit. Nothing has been corrected.
type Finding struct {
	Kind FindingKind `json:"kind"`
	// of the first event, or else of the first order's end, or else when it was accepted
	Time   time.Time `json:"time"`
	Detail string    `json:"detail"` // what is wrong, for a person
	// how Orders and Events belong together; empty if there is only one of them
	By     string       `json:"by,omitempty"`
	Orders []FoundOrder `json:"orders"` // often one, or none for an EventWithoutOrder
	Events []ChainEvent `json:"events"` // likewise

	// Fitting marks an order that waits and its event if they fit each other and nothing else, so that
	// FinishFitting of support.Orders can end it: the deliveries of its result are over, its transaction
	// is final and proves its end, the node listed the event of another order, and the wallet is the
	// player's.
	Fitting bool `json:"fitting,omitzero"`

	// Decided is what a person decided, which has ended the finding, or nil.
	Decided *Entry `json:"decided,omitempty"`

	size *big.Int // units of the events, or else of the first order
}

// key is unique, so that findings have one order.
func (f *Finding) key() string {
	key := f.Time.UTC().Format("2006-01-02T15:04:05.000 ")
	for _, e := range f.Events {
		key += fmt.Sprintf("%012d %06d %s ", e.Block, e.LogIndex, e.TxHash)
	}
	for _, o := range f.Orders {
		key += o.UUID.String() + " "
	}
	return key + string(f.Kind)
}

// FoundOrder is an order of a finding.
type FoundOrder struct {
	UUID        uuid.UUID         `json:"uuid"`
	State       ramp.OrderState   `json:"state"`
	Direction   ramp.Direction    `json:"direction"`
	Product     string            `json:"product"` // its name, or the address of the token
	Tokens      Amount            `json:"tokens"`  // 0 if they cannot be compared
	Assets      map[string]Amount `json:"assets"`
	SessionID   string            `json:"session_id"`
	UserAddress string            `json:"user_address"`
	TxHash      string            `json:"tx_hash,omitempty"`
	AcceptedAt  time.Time         `json:"accepted_at"`
	FinishedAt  time.Time         `json:"finished_at,omitzero"`
	Reason      string            `json:"reason,omitempty"`  // who ended it by hand, and why
	Settled     string            `json:"settled,omitempty"` // how its assets were settled without the game

	// Refusal is why its end was refused, while it waits. The store must know, as rampsql.Store does.
	Refusal *ramp.Refusal `json:"refusal,omitempty"`
}

// foundOrder returns an order for a finding.
func foundOrder(c *catalog.Catalog, o *catalog.Order) FoundOrder {
	return FoundOrder{
		o.UUID, o.State, o.Direction, o.Product(), amountOf(c, o.Token, o.Units),
		add(map[string]Amount{}, o.Assets), o.SessionID, o.UserAddress, o.TxHash,
		o.AcceptedAt, o.FinishedAt, o.Reason, o.Settled, nil}
}

// row writes the order as a row of a table.
func (o *FoundOrder) row() string {
	return console.OrderRow(&ramp.Order{UUID: o.UUID, Direction: o.Direction, Assets: listOf(o.Assets),
		State: o.State, AcceptedAt: o.AcceptedAt, FinishedAt: o.FinishedAt, TxHash: o.TxHash,
		SessionID: o.SessionID, UserAddress: o.UserAddress, Reason: o.Reason, Settled: o.Settled})
}
