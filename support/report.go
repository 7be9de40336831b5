package support

import (
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence"
)

// Report is an order, and the transactions that may be its own.
type Report struct {
	Order   ramp.Order    `json:"order"`             // as it is stored
	Refusal *ramp.Refusal `json:"refusal,omitempty"` // why its end was refused, while it waits

	// Candidates are the transactions in the blocks from FirstBlock to LastBlock that moved the order's
	// token to the user of a mint, or from that of a burn, best first. The blocks begin a day before the
	// order was accepted, because the clocks of the server and the chain may differ, and end with the node's
	// newest one, which is of LastTime. A transaction that is more than 15 minutes older than the order
	// is a candidate only if no other order explains it. If the store is no [rampbooks.OrderLister], which
	// knows the others, the blocks begin 15 minutes before the order. A transaction that failed moved
	// nothing, and is no candidate.
	Candidates []Candidate `json:"candidates"`

	// Dust counts the transactions that are left out, because they moved less than a hundredth of the
	// order's amount: anybody can send many.
	Dust int `json:"dust,omitzero"`

	FirstBlock uint64    `json:"first_block,omitzero"`
	LastBlock  uint64    `json:"last_block,omitzero"`
	LastTime   time.Time `json:"last_time,omitzero"`

	// Incomplete is why the candidates may not be all, or empty: the node is behind, it does not
	// list an event that it has in a receipt, or nothing shows that it lists what happened. Finding
	// none proves something only if the same search found those of other orders that ended.
	Incomplete string `json:"incomplete,omitempty"`

	// ChainHours is in how many of the hours since the order was accepted the chain has made a block, up to
	// 13. While a chain stands still, the order's transaction may wait with it, so [Orders.Abandon] needs 13.
	// It is also counted for a mint that has succeeded by a transaction that the chain does not have. It is
	// nil if nobody counted: the order has ended otherwise or is younger, something else speaks against an
	// abandon, or [Config].NoEmptyBlocks is set.
	ChainHours *int `json:"chain_hours,omitempty"`

	// OneDatabase reports whether the store has no [ramp.Claims]: a transaction that has ended no order of
	// this database may have ended one of another that sells the same token.
	OneDatabase bool `json:"one_database,omitzero"`

	// Decimals are those of the order's tokens, as far as they are known, for the amounts in Text.
	Decimals map[common.Address]int `json:"decimals,omitempty"`

	// Unread is why the chain was not read, or empty. The candidates are then unknown.
	Unread string `json:"unread,omitempty"`

	Advice Advice `json:"advice"` // of [Advise]
}

// stoodStill returns why the order's transaction may have waited with the chain, or "".
func (r *Report) stoodStill() string {
	if r.ChainHours == nil || *r.ChainHours >= evidence.MaxDelayHours {
		return ""
	}
	return fmt.Sprintf("the chain has made blocks in only %d of the hours since the order was accepted, "+
		"and its transaction may have waited with the chain: %d are needed",
		*r.ChainHours, evidence.MaxDelayHours)
}

// Candidate is a transaction that may be the order's own.
type Candidate struct {
	Hash     common.Hash   `json:"hash"`     // of the transaction
	Block    uint64        `json:"block"`    // number of its block
	Time     time.Time     `json:"time"`     // of its block
	Evidence ramp.Evidence `json:"evidence"` // who sent and paid it, where it went, and what it moved

	// Transfers are the transfers of the order's token in the transaction, of anybody.
	Transfers []ramp.Transfer `json:"transfers"`

	// Hidden is why the node does not return the transaction, although it lists its events, or empty.
	// Nothing is known then but Hash, Block, Time and the transfers of the order's user.
	Hidden string `json:"hidden,omitempty"`

	// Unproven is what the transaction lacks for Proof, or empty if it proves the end of the order.
	Unproven string `json:"unproven,omitempty"`

	// OtherAmount reports whether it moved another amount than the order is about, less the fee
	// of a mint, as far as that is known.
	OtherAmount bool `json:"other_amount,omitzero"`

	// AlsoProves are the user's other orders whose end it proves, too, if the store is a
	// [rampbooks.OrderLister]: those that wait, and those that have failed or were abandoned, whose signature
	// may have been sent once more.
	AlsoProves []uuid.UUID `json:"also_proves,omitempty"`

	// EndedOther is another order that has ended by the transaction, if the store is a
	// [rampbooks.OrderLister]. If Claimed is set, it has claimed the transaction, and it waits, or is in
	// another database; see [ramp.Claims].
	EndedOther *uuid.UUID `json:"ended_other,omitempty"`
	Claimed    bool       `json:"claimed,omitzero"`

	// Batch reports whether EndedOther is set, and the transaction moved enough for all orders that have
	// ended by it and for this one, too: it settles several orders. AlsoProves are then those that could
	// have ended by it instead of this one.
	Batch bool `json:"batch,omitzero"`

	// OtherDeleted reports whether it may have ended an order that was deleted since: it is more than a week
	// old, and the store has no order that had succeeded before. An order that waits keeps those of its
	// wallet from being deleted, unless it was lost meanwhile, and restored.
	OtherDeleted bool `json:"other_deleted,omitzero"`

	// Equal reports whether EndedOther is an order for the same, of the same session and wallet, that was
	// accepted at least 13 hours ago: it does not matter which of the two the transaction belongs to.
	Equal bool `json:"equal,omitzero"`

	ended []*ramp.Order // the orders that have ended by it

	// Objection is why [Orders.Abandon] refuses because of the transaction, or empty if it
	// does not.
	Objection string `json:"objection,omitempty"`
}

// Advice is what to do next with an order, and what its player may be told.
type Advice struct {
	Next NextStep `json:"next"`

	// Tx is the transaction that Next is about: one to finish the order with, one to ask the
	// service or another node about, or one that has ended another order. It is nil if there is
	// none.
	Tx *common.Hash `json:"tx,omitempty"`

	Do   string `json:"do"`   // for whoever decides, in a sentence or two
	Tell string `json:"tell"` // for the player. It promises nothing that is not certain
}

// NextStep is what to do next with an order.
type NextStep string

// The steps that may be next.
const (
	NextNothing       NextStep = "nothing"        // the order has ended
	NextWait          NextStep = "wait"           // its result can still come
	NextCorrect       NextStep = "correct"        // its end is refused: correct the cause
	NextFinish        NextStep = "finish"         // with Tx
	NextBatch         NextStep = "batch"          // finish it with Tx and Batch: Tx settles several orders
	NextAbandon       NextStep = "abandon"        // after the service has said that no result will come
	NextAskService    NextStep = "ask_service"    // which transaction is the order's
	NextAskNode       NextStep = "ask_node"       // another one, because this one does not know all
	NextOtherOrder    NextStep = "other_order"    // Tx has ended another order: look at that one
	NextCompareClocks NextStep = "compare_clocks" // of the server and the chain: Tx is older than the order
)
