package rampbooks

import (
	"fmt"
	"hash/maphash"
	"math/big"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/catalog"
	"github.com/token-ramp/ramp-go/internal/evidence"
	"github.com/token-ramp/ramp-go/internal/orderlist"
)

// transactionMatcher pairs orders and events by the hash of their transaction. It does no I/O. It
// is fed in the order of time, and keeps only what has no partner yet: the same orders
// and events give the same books, however they are cut into chunks.
//
// It is fed from 13 hours before the period, because a result can come that much later
// than its transaction. A pair belongs to the period in which its second half is.
type transactionMatcher struct {
	*period
	catalog  *catalog.Catalog
	findings *findingList
	totals   *totals

	events map[common.Hash][]ChainEvent   // by transaction, without an order yet
	orders map[common.Hash]*catalog.Order // by transaction, without events yet

	unseen       []ramp.Order   // ended in the period, by a transaction without events
	withoutHash  []ramp.Order   // ended in the period without a transaction, and may have an event
	lateFailures []ramp.Order   // failed long after they were accepted, by a transaction without events
	unclaimed    [][]ChainEvent // by transaction, without an order by it
	others       [][]ChainEvent // moved by the transaction of an order for somebody else
	shared       []ramp.Order   // ended in the period, by a transaction that had ended another
	differing    []mismatch

	witnesses int             // orders whose events were listed
	used      map[uint64]bool // the transactions by which orders ended
	listed    map[uint64]bool // the transactions whose events were listed, and waited for their order in vain
	seed      maphash.Seed    // of both
}

// mismatch is an order whose transaction moved something else.
type mismatch struct {
	order  *catalog.Order
	events []ChainEvent
	detail string
	judged bool // in this period
}

func newTransactionMatcher(
	p *period, sold *catalog.Catalog, findings *findingList, totals *totals,
) *transactionMatcher {
	return &transactionMatcher{period: p, catalog: sold, findings: findings, totals: totals,
		events: map[common.Hash][]ChainEvent{}, orders: map[common.Hash]*catalog.Order{},
		used: map[uint64]bool{}, listed: map[uint64]bool{}, seed: maphash.MakeSeed()}
}

// order feeds an order that has ended.
func (m *transactionMatcher) order(o ramp.Order) {
	t := m.catalog.Order(o)
	if m.countsOrder(&o) {
		m.totals.order(t)
	}
	if !o.FinishedAt.Before(m.to.Add(-maxLate)) {
		m.totals.newest = append(m.totals.newest, o.UUID)
	}
	if m.within(o.FinishedAt) {
		if orderlist.IsDamaged(&o) {
			m.findings.add(Differs, "", "the row is not a valid order: it was changed by hand", nil, o)
		}
	}
	if m.findings.uncompared(t) {
		if m.within(o.FinishedAt) {
			m.findings.addUncompared(t)
		}
		return
	}
	hash := common.HexToHash(o.TxHash)
	events, seen := m.events[hash]
	if id := maphash.Comparable(m.seed, hash); o.TxHash != "" {
		if m.used[id] {
			if m.within(o.FinishedAt) {
				m.shared = append(m.shared, o)
			}
			return
		}
		m.used[id] = true
	}
	switch {
	case o.TxHash == "":
		// Events ask for the order, except those before what is read.
		if m.within(o.FinishedAt) && (o.State == ramp.OrderSucceeded || m.isOld(&o)) {
			m.withoutHash = append(m.withoutHash, o)
		}
	case seen:
		delete(m.events, hash)
		m.witnesses++
		m.pair(t, events)
	default:
		m.orders[hash] = t
	}
}

// transaction feeds the events of one transaction.
func (m *transactionMatcher) transaction(events []ChainEvent) {
	for i := range events {
		if m.counts(events[i].Time) {
			m.totals.event(&events[i])
		}
	}
	hash := events[0].TxHash
	if o, seen := m.orders[hash]; seen {
		delete(m.orders, hash)
		m.witnesses++
		m.pair(o, events)
	} else {
		m.events[hash] = events
	}
}

// settle gives up on partners that can no longer come, once everything before now was
// fed. The zero time means that nothing more is fed.
func (m *transactionMatcher) settle(now time.Time) {
	settled := len(m.unclaimed)
	for hash, found := range m.events {
		if now.IsZero() || found[0].Time.Before(now.Add(-maxDelay)) {
			m.unclaimed = append(m.unclaimed, found)
			m.listed[maphash.Comparable(m.seed, hash)] = true
			delete(m.events, hash)
		}
	}
	slices.SortFunc(m.unclaimed[settled:], func(a, b []ChainEvent) int { return inChainOrder(a[0], b[0]) })
	for hash, o := range m.orders {
		if now.IsZero() || o.FinishedAt.Before(now.Add(-maxDelay)) {
			delete(m.orders, hash)
			if m.within(o.FinishedAt) && !orderlist.IsDamaged(&o.Order) {
				m.unseen = append(m.unseen, o.Order)
			}
		}
	}
}

// wasUsed reports whether an order has ended by a transaction.
func (m *transactionMatcher) wasUsed(hash common.Hash) bool {
	return m.used[maphash.Comparable(m.seed, hash)]
}

// wasListed reports whether the events of a transaction were listed, and waited for their order in vain.
func (m *transactionMatcher) wasListed(hash common.Hash) bool {
	return m.listed[maphash.Comparable(m.seed, hash)]
}

// pair judges an order and the events of its transaction.
func (m *transactionMatcher) pair(o *catalog.Order, events []ChainEvent) {
	if orderlist.IsDamaged(&o.Order) {
		return // it is a finding already
	}
	judged := m.within(o.FinishedAt) || m.judges(&events[0])
	own, share := ownOf(o, events)
	succeeded := o.State == ramp.OrderSucceeded
	if split, _, ok := splitBatch(o, events); succeeded && ok {
		m.totals.moved(o, split, ByTransaction)
	} else if succeeded && own >= 0 {
		m.totals.moved(o, &events[own], ByTransaction)
	}
	switch {
	case !succeeded && own < 0:
		m.others = append(m.others, events)
		return
	case !succeeded:
		if judged {
			m.findings.add(EndedOtherwise, ByTransaction, endedOtherwise(&o.Order), events, o.Order)
		}
		return
	}
	var detail string
	switch {
	case own < 0:
		detail = difference(o, events)
	case share == nil:
		detail = fmt.Sprintf("the order is about %s tokens, and the event moved %s%s",
			amountOf(m.catalog, o.Token, o.Units), amountOf(m.catalog, o.Token, events[own].units), o.Fees())
	case events[own].Time.Before(o.AcceptedAt.Add(-skew)):
		detail = fmt.Sprintf(
			"the transaction is %s older than the order, unless %s",
			o.AcceptedAt.Sub(events[own].Time).Round(time.Minute), evidence.ClocksDiffer)
	}
	if detail != "" {
		m.differs(mismatch{o, events, detail, judged})
		return
	}
	minted := new(big.Int).Set(events[own].units)
	extra := slices.DeleteFunc(slices.Delete(slices.Clone(events), own, own+1), func(e ChainEvent) bool {
		return o.Direction == ramp.Mint && e.Direction == ramp.Mint && e.Token == o.Token &&
			minted.Add(minted, e.units).Cmp(o.Units) <= 0 // the fee: no more is minted than was ordered
	})
	if len(extra) > 0 {
		m.others = append(m.others, extra)
	}
}

// differs keeps a mismatch until it is known whose the events are. Whoever makes more than
// are listed learns it of the first ones.
func (m *transactionMatcher) differs(d mismatch) {
	if len(m.differing) < maxFindings {
		m.differing = append(m.differing, d)
	} else if d.judged {
		m.findings.add(Differs, ByTransaction, d.detail, d.events, d.order.Order)
	}
}

// difference describes the events of a transaction that moved nothing for its order.
func difference(o *catalog.Order, events []ChainEvent) string {
	about := func(d ramp.Direction) bool {
		return slices.ContainsFunc(events,
			func(e ChainEvent) bool { return e.Token == o.Token && e.Direction == d })
	}
	if !about(o.Direction) && (about(ramp.Mint) || about(ramp.Burn)) {
		return fmt.Sprintf("the order is a %s, and the transaction did the opposite", o.Direction)
	}
	return fmt.Sprintf("the transaction moved no token %s for the user of the order", o.Token)
}
