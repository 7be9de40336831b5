package rampbooks

import (
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/token-ramp/ramp-go/internal/trade"
)

// matching pairs the orders and the events of a period, and adds them up. It does no I/O.
type matching struct {
	*period
	catalog       *trade.Catalog
	findings      *findingList
	totals        *totals
	byTransaction *transactionMatcher
	byAmount      *amountMatcher
}

func newMatching(catalog *trade.Catalog, from, to time.Time) *matching {
	p := &period{from: from, to: to, counted: from, known: map[common.Hash]bool{}}
	findings, totals := newFindingList(catalog), newTotals(p, catalog)
	return &matching{period: p, catalog: catalog, findings: findings, totals: totals,
		byTransaction: newTransactionMatcher(p, catalog, findings, totals),
		byAmount:      newAmountMatcher(p, catalog, findings, totals)}
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
