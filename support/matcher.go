package support

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
)

const (
	// patience is how long after its transaction the result of an order can come: 12
	// hours of deliveries (interface 8), and one to spare.
	patience = 13 * time.Hour

	// skew is how much earlier than its order a transaction may be, because the clocks of
	// the game and the chain differ.
	skew = 15 * time.Minute
)

// matcher pairs orders and events by the hash of their transaction. It does no I/O. It
// is fed in the order of time, and keeps only what has no partner yet: the same orders
// and events give the same books, however they are cut into chunks.
//
// It is fed from 13 hours before the period, because a result can come that much later
// than its transaction. A pair belongs to the period in which its second half is.
type matcher struct {
	assets   *assets
	from, to time.Time

	events map[common.Hash][]Event // by transaction, without an order yet
	orders map[common.Hash]*traded // by transaction, without events yet

	unseen []ramp.Order // ended in the period, by a transaction without events
	noHash []ramp.Order // ended in the period without a transaction, and need an event or an older look
	sought []ramp.Order // failed long after they were accepted, by a transaction without events
	loose  []Event      // have no order by their transaction
	extra  []Event      // moved by the transaction of an order for somebody else

	totals   map[totalKey]*running
	supply   map[chainKey]*runningChain
	open     int
	findings []Finding
}

type totalKey struct {
	product   string
	token     common.Address
	direction ramp.Direction
}

type chainKey struct {
	token     common.Address
	direction ramp.Direction
}

// running is a Total that grows.
type running struct {
	Total
	taken, givenBack, granted sums
	ordered, moved            big.Int
}

type runningChain struct {
	events int
	units  big.Int
}

func newMatcher(a *assets, from, to time.Time) *matcher {
	return &matcher{assets: a, from: from, to: to, events: map[common.Hash][]Event{}, orders: map[common.Hash]*traded{},
		totals: map[totalKey]*running{}, supply: map[chainKey]*runningChain{}}
}

// within reports whether a time is in the period, and not in the 13 hours before it.
func (m *matcher) within(t time.Time) bool { return !t.Before(m.from) && t.Before(m.to) }

func (m *matcher) find(kind FindingKind, by string, orders []ramp.Order, events []Event, format string, args ...any) {
	m.findings = append(m.findings, Finding{Kind: kind, Detail: fmt.Sprintf(format, args...), By: by, Orders: orders, Events: events, assets: m.assets})
}

// order feeds an order that has ended.
func (m *matcher) order(o ramp.Order) {
	t := m.assets.traded(o)
	if m.within(o.FinishedAt) {
		m.count(t)
		if o.Direction == "" {
			m.find(Differs, "", []ramp.Order{o}, nil, "the row is not a valid order: it was changed by hand")
		}
	}
	hash := common.HexToHash(o.TxHash)
	events, seen := m.events[hash]
	switch {
	case o.TxHash == "":
		// Events ask for the order, except those before what is read.
		if m.within(o.FinishedAt) && (o.State == ramp.OrderSucceeded || m.isOld(&o)) {
			m.noHash = append(m.noHash, o)
		}
	case seen:
		delete(m.events, hash)
		m.pair(t, events)
	default:
		m.orders[hash] = t
	}
}

// isOld reports whether the event of an order may be older than the events that are read.
func (m *matcher) isOld(o *ramp.Order) bool {
	return o.AcceptedAt.Add(-skew).Before(m.from.Add(-patience))
}

// transaction feeds the events of one transaction.
func (m *matcher) transaction(events []Event) {
	for i := range events {
		if e := &events[i]; m.within(e.Time) {
			key := chainKey{e.Token, e.Direction}
			if m.supply[key] == nil {
				m.supply[key] = new(runningChain)
			}
			m.supply[key].events++
			m.supply[key].units.Add(&m.supply[key].units, e.Units)
		}
	}
	hash := events[0].TxHash
	if o, seen := m.orders[hash]; seen {
		delete(m.orders, hash)
		m.pair(o, events)
	} else {
		m.events[hash] = events
	}
}

// settle gives up on partners that can no longer come, once everything before now was
// fed. The zero time means that nothing more is fed.
func (m *matcher) settle(now time.Time) {
	var events []Event
	for hash, found := range m.events {
		if now.IsZero() || found[0].Time.Before(now.Add(-patience)) {
			events = append(events, found...)
			delete(m.events, hash)
		}
	}
	slices.SortFunc(events, inChainOrder)
	m.loose = append(m.loose, events...)
	var orders []ramp.Order
	for hash, o := range m.orders {
		if now.IsZero() || o.FinishedAt.Before(now.Add(-patience)) {
			delete(m.orders, hash)
			if m.within(o.FinishedAt) && o.Direction != "" {
				orders = append(orders, o.Order)
			}
		}
	}
	slices.SortFunc(orders, func(a, b ramp.Order) int {
		return cmp.Or(a.FinishedAt.Compare(b.FinishedAt), strings.Compare(a.UUID.String(), b.UUID.String()))
	})
	m.unseen = append(m.unseen, orders...)
}

func inChainOrder(a, b Event) int {
	return cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.LogIndex, b.LogIndex))
}

// count adds an order that ended in the period to the totals.
func (m *matcher) count(o *traded) {
	if o.Direction == "" {
		return
	}
	t := m.total(o)
	switch o.State {
	case ramp.OrderSucceeded:
		t.Succeeded++
		if o.units != nil {
			t.ordered.Add(&t.ordered, o.units)
		}
	case ramp.OrderFailed:
		t.Failed++
	case ramp.OrderAbandoned:
		t.Abandoned++
	}
	switch {
	case o.Direction == ramp.Mint:
		t.taken.add(o.Assets)
		if o.State != ramp.OrderSucceeded {
			t.givenBack.add(o.Assets)
		}
	case o.State == ramp.OrderSucceeded:
		t.granted.add(o.Assets)
	}
}

func (m *matcher) total(o *traded) *running {
	key := totalKey{o.product(), o.token, o.Direction}
	if m.totals[key] == nil {
		m.totals[key] = &running{Total: Total{Product: key.product, Direction: o.Direction}, taken: sums{}, givenBack: sums{}, granted: sums{}}
	}
	return m.totals[key]
}

// moved adds what the event of an order moved to the totals.
func (m *matcher) moved(o *traded, units *big.Int) {
	if m.within(o.FinishedAt) {
		t := m.total(o)
		t.moved.Add(&t.moved, units)
	}
}

// pair judges an order and the events of its transaction.
func (m *matcher) pair(o *traded, events []Event) {
	if o.Direction == "" {
		return // it is a finding already
	}
	judged := m.within(o.FinishedAt) || m.within(events[0].Time)
	own := -1 // the largest, for an erased player: the others are fees
	for i, e := range events {
		if e.Token == o.token && e.Direction == o.Direction && (e.User == o.user || o.user == common.Address{}) &&
			(own < 0 || e.Units.Cmp(events[own].Units) > 0) {
			own = i
		}
	}
	switch {
	case o.State != ramp.OrderSucceeded && own < 0:
		m.extra = append(m.extra, events...)
		return
	case o.State != ramp.OrderSucceeded:
		if judged {
			m.find(EndedOtherwise, ByTransaction, []ramp.Order{o.Order}, events, "%s", otherwise(&o.Order))
		}
		return
	case own < 0:
		if judged {
			m.find(Differs, ByTransaction, []ramp.Order{o.Order}, events, "%s", difference(o, events))
		}
		return
	default:
		m.moved(o, events[own].Units)
		if !o.fits(events[own].Units) {
			if judged {
				m.find(Differs, ByTransaction, []ramp.Order{o.Order}, events, "the order is about %s tokens, and the event moved %s%s",
					m.assets.amount(o.token, o.units), m.assets.amount(o.token, events[own].Units), o.fee())
			}
			return
		}
	}
	minted := new(big.Int).Set(events[own].Units)
	for i, e := range events {
		if i == own {
			continue
		}
		if o.Direction == ramp.Mint && e.Direction == ramp.Mint && e.Token == o.token {
			if minted.Add(minted, e.Units); minted.Cmp(o.units) <= 0 {
				continue // the fee: no more is minted than was ordered
			}
		}
		m.extra = append(m.extra, e)
	}
}

// otherwise describes an order that failed or was abandoned although its event exists.
func otherwise(o *ramp.Order) string {
	if o.Direction == ramp.Mint {
		return "the mint was given back, and its tokens were minted: paid twice"
	}
	return "the burn was not granted, but its tokens were burned"
}

// difference describes the events of a transaction that moved nothing for its order.
func difference(o *traded, events []Event) string {
	has := func(same func(e Event) bool) bool { return slices.ContainsFunc(events, same) }
	switch {
	case !has(func(e Event) bool { return e.Token == o.token }):
		return fmt.Sprintf("the transaction moved another token than %s", o.token)
	case !has(func(e Event) bool { return e.Token == o.token && e.Direction == o.Direction }):
		return fmt.Sprintf("the order is a %s, and the transaction did the opposite", o.Direction)
	default:
		return fmt.Sprintf("the transaction moved nothing for the user %s", o.user)
	}
}

// candidate is an event without an order by its transaction, and the orders that it may
// belong to by user, token, direction, amount and time.
type candidate struct {
	Event
	orders []ramp.Order

	// late reports whether a fitting order ended in the period by another transaction.
	// Until then the event may have been its own, so no earlier period has judged it.
	late bool
}

// belongs reports whether an event may belong to an order, and whether it seemed to
// before the order ended by another transaction.
func (m *matcher) belongs(e *Event, o *ramp.Order) (may, seemed bool) {
	t := m.assets.traded(*o)
	if o.Direction != e.Direction || t.token != e.Token || t.user != e.User || o.AcceptedAt.After(e.Time.Add(skew)) || !t.fits(e.Units) {
		return false, false
	}
	if o.State == ramp.OrderSucceeded && o.TxHash != "" && o.FinishedAt.Before(m.to) {
		return false, m.within(o.FinishedAt)
	}
	return true, false
}

// resolve judges the events that have no order by their transaction, together with the
// orders that wait. It matches an event and an order only if neither has another partner.
func (m *matcher) resolve(events []candidate, waiting []ramp.Order) {
	slices.SortStableFunc(events, func(a, b candidate) int { return inChainOrder(a.Event, b.Event) })
	for rest := events; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].TxHash == rest[0].TxHash {
			n++
		}
		m.unordered(rest[:n])
		rest = rest[n:]
	}
	orders := map[uuid.UUID]ramp.Order{}
	partners := map[uuid.UUID][]int{}
	for i, e := range events {
		for _, o := range e.orders {
			orders[o.UUID] = o
			partners[o.UUID] = append(partners[o.UUID], i)
		}
	}
	reached := make([]bool, len(events))
	for i := range events {
		if reached[i] || len(events[i].orders) == 0 {
			continue
		}
		var group []Event
		late := false
		members := map[uuid.UUID]bool{}
		for rest := []int{i}; len(rest) > 0; { // everything that is connected
			n := rest[0]
			if rest = rest[1:]; reached[n] {
				continue
			}
			reached[n] = true
			group = append(group, events[n].Event)
			late = late || events[n].late
			for _, o := range events[n].orders {
				if !members[o.UUID] {
					members[o.UUID] = true
					rest = append(rest, partners[o.UUID]...)
				}
			}
		}
		slices.SortFunc(group, inChainOrder)
		list := make([]ramp.Order, 0, len(members))
		for id := range members {
			list = append(list, orders[id])
		}
		slices.SortFunc(list, func(a, b ramp.Order) int {
			return cmp.Or(a.AcceptedAt.Compare(b.AcceptedAt), strings.Compare(a.UUID.String(), b.UUID.String()))
		})
		m.group(group, list, late)
	}
	for i := range waiting {
		if o := &waiting[i]; partners[o.UUID] == nil {
			m.find(WaitsWithoutEvent, "", []ramp.Order{*o}, nil, "no event of its user fits: nothing happened on the chain")
		}
	}
	for i := range m.noHash {
		if o := &m.noHash[i]; partners[o.UUID] == nil && o.State == ramp.OrderSucceeded {
			m.find(OrderWithoutEvent, "", []ramp.Order{*o}, nil, "its result had no transaction hash, and no event of its user fits")
		}
	}
}

// unordered reports the events of a transaction to which no order belongs, except for
// those that can be the fee of an order to which another one of them may belong.
func (m *matcher) unordered(events []candidate) {
	var orphans []Event
	relevant := false
	for _, e := range events {
		if len(e.orders) > 0 || slices.ContainsFunc(events, func(main candidate) bool { return m.isFee(&e.Event, &main) }) {
			continue
		}
		orphans = append(orphans, e.Event)
		relevant = relevant || m.within(e.Time) || e.late
	}
	if relevant {
		m.find(EventWithoutOrder, "", nil, orphans, "nobody ordered this %s", orphans[0].Direction)
	}
}

// isFee reports whether an event can be the fee of an order that minted another event of
// its transaction: together, no more is minted than was ordered.
func (m *matcher) isFee(e *Event, main *candidate) bool {
	both := new(big.Int).Add(e.Units, main.Units)
	return e.Direction == ramp.Mint && main.Direction == ramp.Mint && e.Token == main.Token && slices.ContainsFunc(main.orders, func(o ramp.Order) bool {
		t := m.assets.traded(o)
		return t.units != nil && both.Cmp(t.units) <= 0
	})
}

// group judges events and orders that may belong together.
func (m *matcher) group(events []Event, orders []ramp.Order, late bool) {
	relevant := late || slices.ContainsFunc(events, func(e Event) bool { return m.within(e.Time) }) ||
		slices.ContainsFunc(orders, func(o ramp.Order) bool { return m.within(o.FinishedAt) || m.waitsTooLong(&o) })
	open := slices.ContainsFunc(orders, func(o ramp.Order) bool { // it ends after the period
		return o.State == ramp.OrderAccepted && !m.waitsTooLong(&o) || !o.FinishedAt.Before(m.to)
	})
	switch o := &orders[0]; {
	case !relevant:
	case open && len(events) <= len(orders): // the results will tell
		m.open += len(events)
	case len(events) > 1 || len(orders) > 1:
		m.find(Ambiguous, ByAmount, orders, events, "events: %d, orders that they fit: %d", len(events), len(orders))
	case o.State == ramp.OrderAccepted:
		m.find(WaitsWithEvent, ByAmount, orders, events, "its result never came: finish it with the transaction")
	case o.State == ramp.OrderSucceeded:
		m.moved(m.assets.traded(*o), events[0].Units)
	default:
		m.find(EndedOtherwise, ByAmount, orders, events, "%s", otherwise(o))
	}
}

// waitsTooLong reports whether the result of a waiting order will not come.
func (m *matcher) waitsTooLong(o *ramp.Order) bool {
	return o.State == ramp.OrderAccepted && o.AcceptedAt.Before(m.to.Add(-patience))
}

// report adds what was found to the books.
func (m *matcher) report(b *Books) {
	for _, key := range slices.SortedFunc(maps.Keys(m.totals), func(x, y totalKey) int {
		return cmp.Or(strings.Compare(x.product, y.product), x.token.Cmp(y.token), cmp.Compare(y.direction, x.direction)) // mints first
	}) {
		t := m.totals[key]
		total := t.Total
		total.Taken, total.GivenBack, total.Granted = t.taken.amounts(), t.givenBack.amounts(), t.granted.amounts()
		total.Ordered, total.Moved = m.assets.amount(key.token, &t.ordered), m.assets.amount(key.token, &t.moved)
		if total.Direction == ramp.Mint {
			total.Fees = m.assets.amount(key.token, new(big.Int).Sub(&t.ordered, &t.moved))
		}
		b.Totals = append(b.Totals, total)
	}
	for _, key := range slices.SortedFunc(maps.Keys(m.supply), func(x, y chainKey) int {
		return cmp.Or(x.token.Cmp(y.token), cmp.Compare(y.direction, x.direction)) // mints first
	}) {
		c := m.supply[key]
		b.Chain = append(b.Chain, ChainTotal{key.token, key.direction, c.events, m.assets.amount(key.token, &c.units)})
	}
	b.Open, b.Findings = m.open, m.findings
	slices.SortFunc(b.Findings, func(x, y Finding) int { return strings.Compare(x.key(), y.key()) })
	b.Findings = slices.CompactFunc(b.Findings, func(x, y Finding) bool { return x.key() == y.key() }) // found from both sides
}
