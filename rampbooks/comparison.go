package rampbooks

import (
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/catalog"
)

// span is the time that books are about.
type span struct {
	from, to time.Time
	overlap  time.Duration       // how much earlier the findings begin
	lines    bool                // whether the lines are asked for
	waiting  waitingTransactions // what earlier books have found for orders that wait
	before   map[uuid.UUID]bool  // the orders that ended in their last hour; nil if not known
}

// matching pairs the orders and the events of a period, and adds them up. It does no I/O.
type matching struct {
	*period
	catalog       *catalog.Catalog
	findings      *findingList
	totals        *totals
	byTransaction *transactionMatcher
	byAmount      *amountMatcher
}

func newMatching(sold *catalog.Catalog, from, to time.Time) *matching {
	p := &period{from: from, to: to, counted: from, known: map[common.Hash]bool{}}
	findings, totals := newFindingList(sold), newTotals(p, sold)
	return &matching{period: p, catalog: sold, findings: findings, totals: totals,
		byTransaction: newTransactionMatcher(p, sold, findings, totals),
		byAmount:      newAmountMatcher(p, sold, findings, totals)}
}

// report adds to the books what was found.
func (m *matching) report(b *Reconciliation) {
	m.totals.report(b)
	m.findings.report(b)
	b.Witnesses = m.byTransaction.witnesses
	for _, e := range m.findings.journal.decisions {
		if m.counts(e.At) {
			b.Decisions = append(b.Decisions, DecisionRow{Entry: e})
		}
	}
}

// comparison is one run of [Reconciler.Reconcile]: it reads what a matching pairs.
type comparison struct {
	*Reconciler
	*matching
	reader  *chainReader
	earlier waitingTransactions // what earlier books have found
	older   [][]ChainEvent      // of it, the events that are older than those that are read

	unlisted  []ramp.Order       // whose events are in a receipt, and were not listed when it was read
	displaced map[uuid.UUID]bool // orders whose transaction has ended another

	user   common.Address // whose orders are in orders
	orders []ramp.Order

	first uint64 // block
	last  uint64 // block that is judged
	final *ramp.Block
}

func newComparison(r *Reconciler, s span) *comparison {
	m := newMatching(r.config.catalog(), s.from.Add(-s.overlap), s.to)
	m.counted, m.before = s.from, s.before
	if s.lines {
		m.totals.lines = newLines(m.catalog)
	}
	return &comparison{Reconciler: r, matching: m, earlier: s.waiting,
		reader: newChainReader(r.prover, m.catalog, s.from)}
}

// about says what the books of these orders are about.
func (r *Reconciler) about() About {
	about := About{Network: r.config.Network, Projects: r.config.Projects,
		Tokens: r.config.catalog().Tokens}
	if r.chain != nil {
		about.ChainID = r.chain.RequiredChainID()
	}
	return about
}
