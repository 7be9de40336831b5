package rampbooks

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/catalog"
	"github.com/token-ramp/ramp-go/internal/orderlist"
)

// maxFindings is how many findings of a bucket are listed, and maxEvents how many events of
// one finding.
const maxFindings, maxEvents = 1000, 100

// bucket is where findings compete for a place in the list, so that dust of one kind
// displaces nothing else.
type bucket struct {
	kind      FindingKind
	direction ramp.Direction
	token     common.Address
}

// findingList collects what does not fit.
type findingList struct {
	catalog *catalog.Catalog
	journal *journal
	counts  map[FindingKind]int
	lists   map[bucket][]Finding
	decided []Finding           // that a person has ended
	waiting waitingTransactions // that these books have found
	open    int                 // what is not judged yet

	elsewhere int // transactions that orders of other databases have claimed
}

func newFindingList(sold *catalog.Catalog) *findingList {
	l := &findingList{catalog: sold, journal: newJournal(nil), counts: map[FindingKind]int{},
		lists: map[bucket][]Finding{}, waiting: waitingTransactions{}}
	for _, kind := range FindingKinds() {
		l.counts[kind] = 0
	}
	return l
}

// add adds a finding, unless a person has decided it.
func (l *findingList) add(kind FindingKind, by, detail string, events []ChainEvent, orders ...ramp.Order) {
	f := Finding{Kind: kind, Detail: detail, By: by, Orders: []FoundOrder{},
		Events: append([]ChainEvent{}, events...)}
	on := bucket{kind: kind}
	for i, o := range orders {
		t := l.catalog.Order(o)
		if f.Orders = append(f.Orders, foundOrder(l.catalog, t)); i == 0 {
			on.direction, on.token, f.size, f.Time = t.Direction, t.Token, t.Units,
				cmp.Or(t.FinishedAt, t.AcceptedAt)
		}
		for _, e := range events {
			if o.State == ramp.OrderAccepted {
				l.noteWaiting(o.UUID, e.TxHash)
			}
		}
	}
	for i, e := range events {
		if f.Events[i].Tokens = amountOf(l.catalog, e.Token, e.units); i == 0 {
			on.direction, on.token, f.size, f.Time = e.Direction, e.Token, new(big.Int), e.Time
		}
		f.size.Add(f.size, e.units)
	}
	if len(events) > maxEvents {
		slices.SortStableFunc(f.Events, func(x, y ChainEvent) int { return y.units.Cmp(x.units) })
		f.Events, f.Detail = slices.Clone(f.Events[:maxEvents]),
			fmt.Sprintf("%s; events: %d, of which the largest are listed", f.Detail, len(events))
	}
	if by := l.decisionOn(&f); by != nil {
		f.Decided = by
		l.decided = append(l.decided, f)
		return
	}
	l.counts[kind]++
	if l.lists[on] = append(l.lists[on], f); len(l.lists[on]) >= 2*maxFindings {
		l.lists[on] = largest(l.lists[on])
	}
}

// noteWaiting remembers a transaction that may be that of an order which waits.
func (l *findingList) noteWaiting(order uuid.UUID, transaction common.Hash) {
	if !slices.Contains(l.waiting[order], transaction) {
		l.waiting[order] = append(l.waiting[order], transaction)
	}
}

// uncompared reports whether no setting knows the token of an order, so that its events are not read.
func (l *findingList) uncompared(t *catalog.Order) bool {
	return !orderlist.IsDamaged(&t.Order) && !l.catalog.Knows(t.Token)
}

func (l *findingList) addUncompared(t *catalog.Order) {
	l.add(NotCompared, "", "no setting knows its token "+t.Token.Hex()+
		": list what the game sold before, and when, in Config.Products", nil, t.Order)
}

// largest returns the findings that are about most.
func largest(findings []Finding) []Finding {
	size := func(f *Finding) *big.Int { return cmp.Or(f.size, new(big.Int)) }
	slices.SortFunc(findings, func(x, y Finding) int {
		if c := size(&y).Cmp(size(&x)); c != 0 {
			return c // keys are texts, and slow
		}
		return strings.Compare(x.key(), y.key())
	})
	return findings[:min(len(findings), maxFindings)]
}

// report adds the findings to the books.
func (l *findingList) report(b *Reconciliation) {
	b.Elsewhere = l.elsewhere
	b.Open, b.Counts, b.Findings, b.waiting = l.open, l.counts, []Finding{}, l.waiting
	for _, findings := range l.lists {
		b.Findings = append(b.Findings, largest(findings)...)
	}
	once := func(found []Finding) []Finding { // what both sides have found
		slices.SortFunc(found, func(x, y Finding) int { return strings.Compare(x.key(), y.key()) })
		return slices.CompactFunc(found, func(x, y Finding) bool {
			same := x.key() == y.key()
			if same && x.Decided == nil {
				b.Counts[x.Kind]--
			}
			return same
		})
	}
	b.Findings, b.Decided = once(b.Findings), once(append([]Finding{}, l.decided...))
}

// decisionOn returns the decision that has ended a finding, or nil.
func (l *findingList) decisionOn(f *Finding) *Entry {
	for _, o := range f.Orders {
		if e := l.journal.active[subject{kind: f.Kind, order: o.UUID}]; e != nil {
			return e
		}
	}
	for _, e := range f.Events {
		if e := l.journal.active[subject{kind: f.Kind, txHash: e.TxHash}]; e != nil {
			return e
		}
	}
	return nil
}

// endedOtherwise describes an order that failed or was abandoned although its event exists.
func endedOtherwise(o *ramp.Order) string {
	if o.Direction == ramp.Mint {
		return "the mint was given back, and its tokens were minted: paid twice"
	}
	return "the burn was not granted, but its tokens were burned"
}
