package rampbooks

import (
	"context"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
)

// Entry is what the books know besides the orders and the chain. It is one of three:
//
//   - A decision of a person about a Finding, which it ends. It is about Order or, if the finding has none,
//     about TxHash. If the Finding is [Ambiguous] and both are set, it says that they belong together.
//   - The reversal of a decision, which Reverses names. The finding is then as it was.
//   - That Order and TxHash belong together, which the order does not say: [Reconciler.KeepMatches] keeps
//     it of a player who is erased, and [Reconciler.KeepBatch] of a transaction that has ended several
//     orders. Finding is empty.
//
// Entries are neither changed nor deleted.
type Entry struct {
	ID      uuid.UUID   `json:"id"`
	At      time.Time   `json:"at"`
	Who     string      `json:"who"`
	Reason  string      `json:"reason"`
	Finding FindingKind `json:"finding,omitempty"`
	Order   uuid.UUID   `json:"order,omitzero"`
	TxHash  common.Hash `json:"tx_hash,omitzero"`

	// Moved is what the person moved, by asset: above 0 if a player got it, below 0 if it was taken from one.
	// The store does not move it.
	Moved map[string]Amount `json:"moved,omitempty"`

	Reverses uuid.UUID `json:"reverses,omitzero"`
}

// subject is what a decision is about.
type subject struct {
	kind   FindingKind
	order  uuid.UUID
	txHash common.Hash
}

func (e *Entry) subject() subject {
	if e.Order != uuid.Nil {
		return subject{kind: e.Finding, order: e.Order}
	}
	return subject{kind: e.Finding, txHash: e.TxHash}
}

// pairs reports whether a decision says which transaction is that of an order.
func (e *Entry) pairs() bool {
	return e.Finding == Ambiguous && e.Order != uuid.Nil && e.TxHash != common.Hash{}
}

// Journal stores entries, for [Config]. It is safe for concurrent use. examples/gameserver has one in a
// table.
type Journal interface {
	// Add stores an entry, durably, before it returns. It fails if there is one with its ID.
	Add(ctx context.Context, e Entry) error

	// Entries returns the entries since a time, oldest first, or all of them if it is zero.
	Entries(ctx context.Context, since time.Time) ([]Entry, error)
}

// journal is what the entries of a [Journal] say together.
type journal struct {
	decisions     []Entry                     // and reversals
	active        map[subject]*Entry          // the decisions that are not reversed
	transactionOf map[uuid.UUID]common.Hash   // the transactions that belong to orders, and
	ordersOf      map[common.Hash][]uuid.UUID // the orders that belong to transactions
}

func newJournal(entries []Entry) *journal {
	j := &journal{
		active:        map[subject]*Entry{},
		transactionOf: map[uuid.UUID]common.Hash{}, ordersOf: map[common.Hash][]uuid.UUID{},
	}
	reversed := map[uuid.UUID]bool{}
	for i := range entries {
		if e := &entries[i]; e.Reverses != uuid.Nil {
			reversed[e.Reverses] = true
		}
	}
	for i := range entries {
		e := &entries[i]
		if e.Finding != "" || e.Reverses != uuid.Nil {
			j.decisions = append(j.decisions, *e)
		}
		if e.Reverses != uuid.Nil || reversed[e.ID] { // what else is known stays
			continue
		}
		if e.Finding != "" {
			j.active[e.subject()] = e
		}
		if e.Finding == "" || e.pairs() {
			j.join(e.Order, e.TxHash)
		}
	}
	return j
}

// join says that an order belongs to a transaction, and to no other.
func (j *journal) join(order uuid.UUID, transaction common.Hash) {
	former := j.transactionOf[order]
	j.ordersOf[former] = slices.DeleteFunc(j.ordersOf[former], func(id uuid.UUID) bool { return id == order })
	j.transactionOf[order] = transaction
	j.ordersOf[transaction] = append(j.ordersOf[transaction], order)
}

// belongsElsewhere reports whether an order has another transaction, as the journal says.
func (j *journal) belongsElsewhere(order uuid.UUID, transaction common.Hash) bool {
	hash, known := j.transactionOf[order]
	return known && hash != transaction
}

// DecisionRow is a decision, or its reversal, as a row of the books, with what its order is about.
type DecisionRow struct {
	Entry
	Product   string         `json:"product,omitempty"`
	Token     common.Address `json:"token,omitzero"`
	Direction ramp.Direction `json:"direction,omitempty"`
}
