package rampbooks

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
)

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

// belongsElsewhere reports whether an order has another transaction, as the journal says.
func (j *journal) belongsElsewhere(order uuid.UUID, transaction common.Hash) bool {
	hash, kept := j.kept[order]
	return kept && hash != transaction
}

// journal is what the entries of a [Journal] say together.
type journal struct {
	decisions []Entry                   // and reversals
	standing  map[subject]*Entry        // decisions that are not reversed
	kept      map[uuid.UUID]common.Hash // the transactions of orders, and
	keptFor   map[common.Hash]uuid.UUID // the orders of transactions
}

func newJournal(entries []Entry) *journal {
	j := &journal{
		standing: map[subject]*Entry{},
		kept:     map[uuid.UUID]common.Hash{}, keptFor: map[common.Hash]uuid.UUID{},
	}
	for i := range entries {
		switch e := &entries[i]; {
		case e.Reverses != uuid.Nil:
			j.decisions = append(j.decisions, *e)
			delete(j.standing, e.subject())
			if e.pairs() {
				delete(j.kept, e.Order)
				delete(j.keptFor, e.TxHash)
			}
		case e.Finding != "":
			j.decisions = append(j.decisions, *e)
			j.standing[e.subject()] = e
			if e.pairs() {
				j.kept[e.Order], j.keptFor[e.TxHash] = e.TxHash, e.Order
			}
		default:
			j.kept[e.Order], j.keptFor[e.TxHash] = e.TxHash, e.Order
		}
	}
	return j
}

// decided returns the decision that has ended a finding, or nil.
func (j *journal) decided(f *Finding) *Entry {
	for _, o := range f.Orders {
		if e := j.standing[subject{kind: f.Kind, order: o.UUID}]; e != nil {
			return e
		}
	}
	for _, e := range f.Events {
		if e := j.standing[subject{kind: f.Kind, txHash: e.TxHash}]; e != nil {
			return e
		}
	}
	return nil
}
