package rampbooks

import (
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/catalog"
	"github.com/token-ramp/ramp-go/internal/evidence"
)

// candidate is an event without an order by its transaction, and the orders that it may
// belong to by user, token, direction, amount and time.
type candidate struct {
	ChainEvent
	orders []ramp.Order

	// ahead are orders that it would belong to if they had been accepted earlier, as if the clock of the
	// server was ahead, or that of the chain behind.
	ahead []ramp.Order

	// late reports whether a fitting order ended in the period by another transaction.
	// Until then the event may have been its own, so no earlier period has judged it.
	late bool
}

// amountMatcher pairs orders and events by user, token, direction, amount and time, where their
// transaction does not say that they belong together. It does no I/O.
type amountMatcher struct {
	*period
	catalog  *catalog.Catalog
	findings *findingList
	totals   *totals

	candidates []candidate
	tooEarly   map[uuid.UUID]ChainEvent  // the event of an order if the clocks differed by hours
	undone     map[uuid.UUID]undone      // orders whose transaction is
	taken      map[uuid.UUID]ramp.Order  // the order that has ended by an event which fits one that waits
	elsewhere  map[uuid.UUID]claim       // of an event that fits an order which waits
	matched    map[uuid.UUID]common.Hash // orders' transactions; nil if nobody asks
}

// claim is that of an order of another database.
type claim struct {
	transaction common.Hash
	order       uuid.UUID
}

func newAmountMatcher(
	p *period, sold *catalog.Catalog, findings *findingList, totals *totals,
) *amountMatcher {
	return &amountMatcher{period: p, catalog: sold, findings: findings, totals: totals,
		tooEarly: map[uuid.UUID]ChainEvent{}, taken: map[uuid.UUID]ramp.Order{},
		undone: map[uuid.UUID]undone{}, elsewhere: map[uuid.UUID]claim{}}
}

// belongs reports whether an event may belong to an order, and whether it seemed to
// before the order ended by another transaction.
func (m *amountMatcher) belongs(e *ChainEvent, o *ramp.Order) (may, seemed bool) {
	t := m.catalog.Order(*o)
	if o.Direction != e.Direction || t.Token != e.Token || t.User != e.User ||
		!common.IsHexAddress(o.UserAddress) || o.AcceptedAt.After(e.Time.Add(skew)) || shareOf(t, e) == nil {
		return false, false
	}
	if m.hasEnded(o) {
		return false, m.within(o.FinishedAt)
	}
	return true, false
}

// hasEnded reports whether an order has succeeded by a transaction of its own.
func (m *amountMatcher) hasEnded(o *ramp.Order) bool {
	_, undone := m.undone[o.UUID]
	return o.State == ramp.OrderSucceeded && o.TxHash != "" && !undone && o.FinishedAt.Before(m.to)
}

// undone is an order that succeeded by a transaction that is not on the chain, or that failed.
type undone struct {
	order ramp.Order
	why   string
}

// addUndone lets the events that fit an order belong to it: one may have come in the place of its
// transaction.
func (m *amountMatcher) addUndone(o *ramp.Order, why string) {
	if o.State == ramp.OrderSucceeded {
		m.undone[o.UUID] = undone{*o, why}
	}
}

// mayFit reports whether an event may belong to an order, also if the clock of the server
// was ahead by hours.
func (m *amountMatcher) mayFit(e *ChainEvent, o *ramp.Order) bool {
	later := *e
	later.Time = e.Time.Add(maxAhead)
	may, _ := m.belongs(&later, o)
	return may
}

// add judges the events of a transaction that fit no order, and keeps the others as candidates. beside are
// those that are judged with their order.
func (m *amountMatcher) add(events []candidate, beside ...candidate) {
	m.unordered(slices.Concat(events, beside))
	m.candidates = append(m.candidates,
		slices.DeleteFunc(events, func(c candidate) bool { return len(c.orders) == 0 })...)
}

// unordered reports the events of a transaction to which no order belongs, except for
// those that can be the fees of orders to which others of them may belong. Each token
// and direction is a finding, so that none hides behind another.
func (m *amountMatcher) unordered(events []candidate) {
	orphans, ahead := map[totalKey][]ChainEvent{}, map[totalKey][]ramp.Order{}
	relevant := false
	for _, e := range m.orphans(events) {
		key := totalKey{"", e.Token, e.Direction}
		orphans[key], ahead[key] = append(orphans[key], e.ChainEvent), append(ahead[key], e.ahead...)
		for _, o := range e.ahead {
			m.tooEarly[o.UUID] = e.ChainEvent
		}
		relevant = relevant || m.judges(&e.ChainEvent) || e.late
	}
	for key, events := range orphans {
		if relevant {
			detail := "nobody ordered this " + string(key.direction) + ", or its order was deleted"
			if len(ahead[key]) > 0 {
				detail += ", unless " + evidence.ClocksDiffer + ": the orders were accepted later"
			}
			m.findings.add(EventWithoutOrder, "", detail, events, ahead[key]...)
		}
	}
}

// orphans returns the events of a transaction to which no order belongs, and which cannot be the fees of
// orders that minted others of them: together, no more is minted than was ordered.
func (m *amountMatcher) orphans(events []candidate) (orphans []candidate) {
	fees := map[common.Address]*big.Int{} // at most, by token
	for _, e := range events {
		fee := new(big.Int)
		for _, o := range e.orders {
			if t := m.catalog.Order(o); e.Direction == ramp.Mint && t.Units != nil {
				if most := new(big.Int).Sub(t.Units, e.units); most.Cmp(fee) > 0 {
					fee = most
				}
			}
		}
		if sum := fees[e.Token]; sum != nil {
			fee.Add(fee, sum)
		}
		fees[e.Token] = fee
	}
	for _, e := range events {
		left := fees[e.Token]
		switch {
		case len(e.orders) > 0:
		case e.Direction == ramp.Mint && e.units.Cmp(left) <= 0:
			left.Sub(left, e.units)
		default:
			orphans = append(orphans, e)
		}
	}
	return orphans
}

// resolve judges the candidates, together with the orders that wait and those without a
// transaction. It matches an event and an order only if neither has another
// partner. Orders that have lost their transaction to another are in its finding.
func (m *amountMatcher) resolve(waiting, withoutHash []ramp.Order, lost map[uuid.UUID]bool) {
	slices.SortStableFunc(m.candidates,
		func(a, b candidate) int { return inChainOrder(a.ChainEvent, b.ChainEvent) })
	partners := map[uuid.UUID][]int{} // of each order, which candidates it fits
	for i, e := range m.candidates {
		for _, o := range e.orders {
			partners[o.UUID] = append(partners[o.UUID], i)
		}
	}
	m.resolveGroups(partners)
	for _, o := range waiting {
		if t := m.catalog.Order(o); m.findings.uncompared(t) {
			m.findings.addUncompared(t)
		} else if partners[o.UUID] == nil && !lost[o.UUID] {
			orders := []ramp.Order{o}
			if other, taken := m.taken[o.UUID]; taken {
				orders = append(orders, other)
			}
			m.findings.add(WaitsWithoutEvent, "", m.whyWithoutEvent(&o), nil, orders...)
		}
	}
	for id, u := range m.undone {
		if partners[id] == nil {
			m.findings.add(TransactionUndone, "", u.why, nil, u.order)
		}
	}
	for _, o := range withoutHash {
		if partners[o.UUID] == nil && o.State == ramp.OrderSucceeded {
			why := "its result had no transaction hash, and no event of its user fits"
			if m.isOld(&o) {
				why += ", or the node has pruned events of that age; ask another node first"
			}
			m.findings.add(OrderWithoutEvent, "", why, nil, o)
		}
	}
}

// resolveGroups judges candidates and orders together if they are connected: an event and the orders that
// it fits, the other events that these fit, and so on.
func (m *amountMatcher) resolveGroups(partners map[uuid.UUID][]int) {
	reached := make([]bool, len(m.candidates))
	for i := range m.candidates {
		var events []ChainEvent
		var orders []ramp.Order
		late, certain, members := false, false, map[uuid.UUID]bool{}
		for rest := []int{i}; len(rest) > 0; {
			n := rest[0]
			if rest = rest[1:]; reached[n] {
				continue
			}
			reached[n] = true
			c := &m.candidates[n]
			events, late = append(events, c.ChainEvent), late || c.late
			certain = certain || !slices.ContainsFunc(c.orders, m.isOpen)
			for _, o := range c.orders {
				if !members[o.UUID] {
					members[o.UUID], orders = true, append(orders, o)
					rest = append(rest, partners[o.UUID]...)
				}
			}
		}
		slices.SortFunc(events, inChainOrder)
		if len(events) > 0 {
			m.group(events, orders, late, certain)
		}
	}
}

// whyWithoutEvent describes an order that waits and has no event.
func (m *amountMatcher) whyWithoutEvent(o *ramp.Order) string {
	if other, taken := m.taken[o.UUID]; taken {
		whose := "its session"
		if other.SessionID != o.SessionID {
			whose = "another session"
		}
		return fmt.Sprintf("no event of its user fits but that of transaction %s, which has ended "+
			"order %s of %s", other.TxHash, other.UUID, whose)
	}
	if c, claimed := m.elsewhere[o.UUID]; claimed {
		return fmt.Sprintf("no event of its user fits but that of transaction %s, which order %s of another "+
			"database has claimed", c.transaction, c.order)
	}
	e, found := m.tooEarly[o.UUID]
	if !found {
		return "no event of its user fits: nothing happened on the chain"
	}
	age := o.AcceptedAt.Sub(e.Time).Round(time.Minute)
	return fmt.Sprintf("no event of its user fits, unless %s: transaction %s is %s older than the order",
		evidence.ClocksDiffer, e.TxHash, age)
}

// group judges events and orders that may belong together. certain reports whether one of the
// events fits no order whose result may still come.
func (m *amountMatcher) group(events []ChainEvent, orders []ramp.Order, late, certain bool) {
	relevant := late || slices.ContainsFunc(events, func(e ChainEvent) bool { return m.judges(&e) }) ||
		slices.ContainsFunc(orders,
			func(o ramp.Order) bool { return m.within(o.FinishedAt) || m.waitedNow(&o) })
	certain = certain ||
		slices.ContainsFunc(orders,
			func(o ramp.Order) bool { return o.State == ramp.OrderSucceeded && !m.isOpen(o) })
	if m.matched != nil && len(events) == 1 && len(orders) == 1 {
		m.matched[orders[0].UUID] = events[0].TxHash
	}
	at := slices.IndexFunc(orders, func(o ramp.Order) bool { _, undone := m.undone[o.UUID]; return undone })
	switch o := &orders[0]; {
	case !relevant:
	case at >= 0:
		if len(events) == 1 && len(orders) == 1 {
			m.totals.moved(m.catalog.Order(*o), &events[0], ByAmount)
		}
		orders[0], orders[at] = orders[at], orders[0]
		m.findings.add(TransactionUndone, ByAmount, m.undone[orders[0].UUID].why+
			"; what came in its place may be in these events", events, orders...)
	case !certain && len(events) <= len(orders): // the results will tell
		m.findings.open += len(events)
	case len(events) > 1 || len(orders) > 1:
		m.findings.add(Ambiguous, ByAmount,
			fmt.Sprintf("events: %d, orders that they fit: %d", len(events), len(orders)), events, orders...)
	case o.State == ramp.OrderAccepted:
		m.findings.add(WaitsWithEvent, ByAmount,
			"its result never came, or was refused: finish it with the transaction", events, orders...)
	case o.State == ramp.OrderSucceeded:
		m.totals.moved(m.catalog.Order(*o), &events[0], ByAmount)
	default:
		m.findings.add(EndedOtherwise, ByAmount, endedOtherwise(o), events, orders...)
	}
}
