package rampbooks

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/orderlist"
	"github.com/token-ramp/ramp-go/internal/trade"
)

// matcher pairs orders and events by the hash of their transaction. It does no I/O. It
// is fed in the order of time, and keeps only what has no partner yet: the same orders
// and events give the same books, however they are cut into chunks.
//
// It is fed from 13 hours before the period, because a result can come that much later
// than its transaction. A pair belongs to the period in which its second half is.
type matcher struct {
	assets   *trade.Catalog
	from, to time.Time
	counted  time.Time // where the totals begin: at from, or later if findings overlap earlier books

	events map[common.Hash][]ChainEvent // by transaction, without an order yet
	orders map[common.Hash]*trade.Order // by transaction, without events yet

	unseen []ramp.Order   // ended in the period, by a transaction without events
	noHash []ramp.Order   // ended in the period without a transaction, and need an event or an older look
	sought []ramp.Order   // failed long after they were accepted, by a transaction without events
	loose  [][]ChainEvent // by transaction, without an order by it
	extra  [][]ChainEvent // moved by the transaction of an order for somebody else

	// known are the transactions of earlier books for orders that wait still: they are judged again.
	// waiting are those of these books, by order.
	known   map[common.Hash]bool
	waiting waiting

	witnesses int             // orders whose events were listed
	forsaken  map[uint64]bool // the transactions whose events were listed, and waited for their order in vain

	consumed  map[uint64]bool // the transactions by which orders ended
	seed      maphash.Seed
	earlier   map[uuid.UUID]ChainEvent // the event of an order if the clock of the server was ahead
	shared    []ramp.Order             // ended in the period, by a transaction that had ended another
	differing []mismatch

	totals   map[totalKey]*running
	supply   map[totalKey]*runningChain
	lines    *lines // nil if nobody asks for them
	journal  *journal
	open     int
	found    map[FindingKind]int
	findings map[shelf][]Finding

	settledFindings []Finding                 // that a person has decided
	matched         map[uuid.UUID]common.Hash // orders' transactions by amount; nil if nobody asks
}

// maxFindings is how many findings of a shelf are listed, and maxEvents how many events of
// one finding.
const maxFindings, maxEvents = 1000, 100

// shelf is where findings compete for a place in the list, so that dust of one kind
// displaces nothing else.
type shelf struct {
	kind      FindingKind
	direction ramp.Direction
	token     common.Address
}

// mismatch is an order whose transaction moved something else.
type mismatch struct {
	order  *trade.Order
	events []ChainEvent
	detail string
	judged bool // in this period
}

type totalKey struct {
	product   string
	token     common.Address
	direction ramp.Direction
}

func (k totalKey) compare(other totalKey) int {
	return cmp.Or(strings.Compare(k.product, other.product), k.token.Cmp(other.token),
		cmp.Compare(other.direction, k.direction)) // mints first
}

// running is a Total that grows.
type running struct {
	Total
	ordered, moved, fees big.Int
}

// runningChain is a ChainTotal that grows.
type runningChain struct {
	ChainTotal
	units big.Int
}

func newMatcher(a *trade.Catalog, from, to time.Time) *matcher {
	m := &matcher{
		assets: a, from: from, to: to, counted: from, journal: newJournal(nil),
		events: map[common.Hash][]ChainEvent{}, orders: map[common.Hash]*trade.Order{},
		consumed: map[uint64]bool{}, forsaken: map[uint64]bool{}, seed: maphash.MakeSeed(),
		totals: map[totalKey]*running{}, supply: map[totalKey]*runningChain{},
		known: map[common.Hash]bool{}, waiting: waiting{},
		earlier: map[uuid.UUID]ChainEvent{}, found: map[FindingKind]int{}, findings: map[shelf][]Finding{},
	}
	for _, kind := range FindingKinds() {
		m.found[kind] = 0
	}
	return m
}

// begin is where the events that are read begin: those of every order that ends in the
// period, or has then waited for 13 hours, but was accepted less than that before.
func (m *matcher) begin() time.Time { return m.from.Add(-maxDelay - skew) }

// within reports whether a time is in the period, and not in the 13 hours before it.
func (m *matcher) within(t time.Time) bool { return !t.Before(m.from) && t.Before(m.to) }

// judges reports whether what an event is about belongs into these books.
func (m *matcher) judges(e *ChainEvent) bool { return m.within(e.Time) || m.known[e.TxHash] }

// waits remembers a transaction that may be that of an order which waits.
func (m *matcher) waits(order uuid.UUID, transaction common.Hash) {
	if !slices.Contains(m.waiting[order], transaction) {
		m.waiting[order] = append(m.waiting[order], transaction)
	}
}

// counts reports whether the totals have what happened at a time.
func (m *matcher) counts(t time.Time) bool { return !t.Before(m.counted) && t.Before(m.to) }

func (m *matcher) find(kind FindingKind, by, detail string, events []ChainEvent, orders ...ramp.Order) {
	f := Finding{Kind: kind, Detail: detail, By: by, Orders: []FoundOrder{},
		Events: append([]ChainEvent{}, events...)}
	on := shelf{kind: kind}
	for i, o := range orders {
		t := m.assets.Order(o)
		if f.Orders = append(f.Orders, foundOrder(m.assets, t)); i == 0 {
			on.direction, on.token, f.size, f.Time = t.Direction, t.Token, t.Units,
				cmp.Or(t.FinishedAt, t.AcceptedAt)
		}
		for _, e := range events {
			if o.State == ramp.OrderAccepted {
				m.waits(o.UUID, e.TxHash)
			}
		}
	}
	for i, e := range events {
		if f.Events[i].Tokens = amountOf(m.assets, e.Token, e.units); i == 0 {
			on.direction, on.token, f.size, f.Time = e.Direction, e.Token, new(big.Int), e.Time
		}
		f.size.Add(f.size, e.units)
	}
	if len(events) > maxEvents {
		slices.SortStableFunc(f.Events, func(x, y ChainEvent) int { return y.units.Cmp(x.units) })
		f.Events, f.Detail = slices.Clone(f.Events[:maxEvents]),
			fmt.Sprintf("%s; events: %d, of which the largest are listed", f.Detail, len(events))
	}
	if by := m.journal.decided(&f); by != nil {
		f.Decided = by
		m.settledFindings = append(m.settledFindings, f)
		return
	}
	m.found[kind]++
	if m.findings[on] = append(m.findings[on], f); len(m.findings[on]) >= 2*maxFindings {
		m.findings[on] = largest(m.findings[on])
	}
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

// order feeds an order that has ended.
func (m *matcher) order(o ramp.Order) {
	t := m.assets.Order(o)
	if m.counts(o.FinishedAt) {
		m.count(t)
	}
	if m.within(o.FinishedAt) {
		if orderlist.IsDamaged(&o) {
			m.find(Differs, "", "the row is not a valid order: it was changed by hand", nil, o)
		}
	}
	if m.uncompared(t) {
		if m.within(o.FinishedAt) {
			m.findUncompared(t)
		}
		return
	}
	hash := common.HexToHash(o.TxHash)
	events, seen := m.events[hash]
	if id := maphash.Comparable(m.seed, hash); o.TxHash != "" {
		if m.consumed[id] {
			if m.within(o.FinishedAt) {
				m.shared = append(m.shared, o)
			}
			return
		}
		m.consumed[id] = true
	}
	switch {
	case o.TxHash == "":
		// Events ask for the order, except those before what is read.
		if m.within(o.FinishedAt) && (o.State == ramp.OrderSucceeded || m.isOld(&o)) {
			m.noHash = append(m.noHash, o)
		}
	case seen:
		delete(m.events, hash)
		m.witnesses++
		m.pair(t, events)
	default:
		m.orders[hash] = t
	}
}

// uncompared reports whether no setting knows the token of an order, so that its events are not read.
func (m *matcher) uncompared(t *trade.Order) bool {
	return !orderlist.IsDamaged(&t.Order) && !m.assets.Knows(t.Token)
}

func (m *matcher) findUncompared(t *trade.Order) {
	m.find(NotCompared, "", "no setting knows its token "+t.Token.Hex()+
		": list what the game sold before, and when, in Config.Products", nil, t.Order)
}

// isOld reports whether the event of an order may be older than the events that are read.
func (m *matcher) isOld(o *ramp.Order) bool { return o.AcceptedAt.Add(-skew).Before(m.begin()) }

// transaction feeds the events of one transaction.
func (m *matcher) transaction(events []ChainEvent) {
	for i := range events {
		if e := &events[i]; m.counts(e.Time) {
			m.lines.event(e)
			key := totalKey{"", e.Token, e.Direction}
			if m.supply[key] == nil {
				m.supply[key] = &runningChain{ChainTotal: ChainTotal{Token: e.Token, Direction: e.Direction}}
			}
			m.supply[key].Events++
			m.supply[key].units.Add(&m.supply[key].units, e.units)
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
func (m *matcher) settle(now time.Time) {
	settled := len(m.loose)
	for hash, found := range m.events {
		if now.IsZero() || found[0].Time.Before(now.Add(-maxDelay)) {
			m.loose = append(m.loose, found)
			m.forsaken[maphash.Comparable(m.seed, hash)] = true
			delete(m.events, hash)
		}
	}
	slices.SortFunc(m.loose[settled:], func(a, b []ChainEvent) int { return inChainOrder(a[0], b[0]) })
	for hash, o := range m.orders {
		if now.IsZero() || o.FinishedAt.Before(now.Add(-maxDelay)) {
			delete(m.orders, hash)
			if m.within(o.FinishedAt) && !orderlist.IsDamaged(&o.Order) {
				m.unseen = append(m.unseen, o.Order)
			}
		}
	}
}

// count adds an order that ended in the period to the totals.
func (m *matcher) count(o *trade.Order) {
	if orderlist.IsDamaged(&o.Order) {
		return
	}
	t := m.total(o)
	m.lines.order(o)
	switch o.State {
	case ramp.OrderSucceeded:
		t.Succeeded++
		if o.Units != nil {
			t.ordered.Add(&t.ordered, o.Units)
		}
	case ramp.OrderFailed:
		t.Failed++
	case ramp.OrderAbandoned:
		t.Abandoned++
	}
	if o.Direction == ramp.Mint && o.AcceptedAt.Before(m.counted) {
		add(t.InFlightBefore, o.Assets)
	}
	switch {
	case o.Direction == ramp.Mint:
		add(t.Taken, o.Assets)
		if o.State != ramp.OrderSucceeded {
			add(t.unlessSettled(o, t.GivenBack), o.Assets)
		}
	case o.State == ramp.OrderSucceeded:
		add(t.unlessSettled(o, t.Granted), o.Assets)
	}
}

// unlessSettled returns the sums of what the end of an order moved: those given, unless a person
// settled its assets in another way.
func (t *running) unlessSettled(o *trade.Order, moved map[string]Amount) map[string]Amount {
	if o.Settled != "" {
		return t.Settled
	}
	return moved
}

func (m *matcher) total(o *trade.Order) *running {
	key := totalKey{o.Product(), o.Token, o.Direction}
	if m.totals[key] == nil {
		m.totals[key] = &running{Total: Total{
			Product: key.product, Token: key.token, Direction: o.Direction,
			Taken: map[string]Amount{}, GivenBack: map[string]Amount{}, Granted: map[string]Amount{},
			Settled: map[string]Amount{}, InFlightBefore: map[string]Amount{}, InFlight: map[string]Amount{}}}
	}
	return m.totals[key]
}

// inFlight adds a mint that was accepted before the end of the period and had not ended then.
func (m *matcher) inFlight(o *ramp.Order) {
	if o.Direction != ramp.Mint || !o.AcceptedAt.Before(m.to) || orderlist.IsDamaged(o) {
		return
	}
	t := m.total(m.assets.Order(*o))
	add(t.InFlight, o.Assets)
	if o.AcceptedAt.Before(m.counted) {
		add(t.InFlightBefore, o.Assets)
	}
}

// moved adds what an order that succeeded moved by its event to the totals. The rest of a mint is the fee
// if the event fits the order, and nobody knows what it is otherwise.
func (m *matcher) moved(o *trade.Order, e *ChainEvent, by string) {
	if !m.counts(o.FinishedAt) {
		return
	}
	t := m.total(o)
	share, fee := shareOf(o, e), new(big.Int)
	if share == nil {
		share = e.units
	} else if o.Direction == ramp.Mint {
		fee.Sub(o.Units, share)
	}
	t.moved.Add(&t.moved, share)
	t.fees.Add(&t.fees, fee)
	m.lines.moved(o, e, share, fee, by)
}

// pair judges an order and the events of its transaction.
func (m *matcher) pair(o *trade.Order, events []ChainEvent) {
	if orderlist.IsDamaged(&o.Order) {
		return // it is a finding already
	}
	judged := m.within(o.FinishedAt) || m.judges(&events[0])
	own, share := ownOf(o, events)
	succeeded := o.State == ramp.OrderSucceeded
	if succeeded && own >= 0 {
		m.moved(o, &events[own], ByTransaction)
	}
	switch {
	case !succeeded && own < 0:
		m.extra = append(m.extra, events)
		return
	case !succeeded:
		if judged {
			m.find(EndedOtherwise, ByTransaction, otherwise(&o.Order), events, o.Order)
		}
		return
	}
	var detail string
	switch {
	case own < 0:
		detail = difference(o, events)
	case share == nil:
		detail = fmt.Sprintf("the order is about %s tokens, and the event moved %s%s",
			amountOf(m.assets, o.Token, o.Units), amountOf(m.assets, o.Token, events[own].units), o.Fees())
	case events[own].Time.Before(o.AcceptedAt.Add(-skew)):
		detail = fmt.Sprintf(
			"the transaction is %s older than the order, or the clock of the server was ahead",
			o.AcceptedAt.Sub(events[own].Time).Round(time.Minute))
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
		m.extra = append(m.extra, extra)
	}
}

// differs keeps a mismatch until it is known whose the events are. Whoever makes more than
// are listed learns it of the first ones.
func (m *matcher) differs(d mismatch) {
	if len(m.differing) < maxFindings {
		m.differing = append(m.differing, d)
	} else if d.judged {
		m.find(Differs, ByTransaction, d.detail, d.events, d.order.Order)
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
func difference(o *trade.Order, events []ChainEvent) string {
	about := func(d ramp.Direction) bool {
		return slices.ContainsFunc(events,
			func(e ChainEvent) bool { return e.Token == o.Token && e.Direction == d })
	}
	if !about(o.Direction) && (about(ramp.Mint) || about(ramp.Burn)) {
		return fmt.Sprintf("the order is a %s, and the transaction did the opposite", o.Direction)
	}
	return fmt.Sprintf("the transaction moved no token %s for the user of the order", o.Token)
}

// candidate is an event without an order by its transaction, and the orders that it may
// belong to by user, token, direction, amount and time.
type candidate struct {
	ChainEvent
	orders []ramp.Order

	// ahead are orders that it would belong to if they had been accepted earlier, as if the clock of the
	// server was ahead.
	ahead []ramp.Order

	// late reports whether a fitting order ended in the period by another transaction.
	// Until then the event may have been its own, so no earlier period has judged it.
	late bool
}

// belongs reports whether an event may belong to an order, and whether it seemed to
// before the order ended by another transaction.
func (m *matcher) belongs(e *ChainEvent, o *ramp.Order) (may, seemed bool) {
	t := m.assets.Order(*o)
	if o.Direction != e.Direction || t.Token != e.Token || t.User != e.User ||
		!common.IsHexAddress(o.UserAddress) || o.AcceptedAt.After(e.Time.Add(skew)) || shareOf(t, e) == nil {
		return false, false
	}
	if o.State == ramp.OrderSucceeded && o.TxHash != "" && o.FinishedAt.Before(m.to) {
		return false, m.within(o.FinishedAt)
	}
	return true, false
}

// mayFit reports whether an event may belong to an order, also if the clock of the server
// was ahead by hours.
func (m *matcher) mayFit(e *ChainEvent, o *ramp.Order) bool {
	later := *e
	later.Time = e.Time.Add(maxAhead)
	may, _ := m.belongs(&later, o)
	return may
}

// resolve judges the events that have no order by their transaction but fit some, together
// with the orders that wait. It matches an event and an order only if neither has another
// partner. Orders that have lost their transaction to another are in its finding.
func (m *matcher) resolve(events []candidate, waiting []ramp.Order, lost map[uuid.UUID]bool) {
	slices.SortStableFunc(events,
		func(a, b candidate) int { return inChainOrder(a.ChainEvent, b.ChainEvent) })
	partners := map[uuid.UUID][]int{}
	for i, e := range events {
		for _, o := range e.orders {
			partners[o.UUID] = append(partners[o.UUID], i)
		}
	}
	reached := make([]bool, len(events))
	for i := range events {
		var group []ChainEvent
		var orders []ramp.Order
		late, certain, members := false, false, map[uuid.UUID]bool{}
		for rest := []int{i}; len(rest) > 0; { // everything that is connected
			n := rest[0]
			if rest = rest[1:]; reached[n] {
				continue
			}
			reached[n] = true
			group, late = append(group, events[n].ChainEvent), late || events[n].late
			certain = certain || !slices.ContainsFunc(events[n].orders, m.isOpen)
			for _, o := range events[n].orders {
				if !members[o.UUID] {
					members[o.UUID], orders = true, append(orders, o)
					rest = append(rest, partners[o.UUID]...)
				}
			}
		}
		slices.SortFunc(group, inChainOrder)
		if len(group) > 0 {
			m.group(group, orders, late, certain)
		}
	}
	for _, o := range waiting {
		if t := m.assets.Order(o); m.uncompared(t) {
			m.findUncompared(t)
		} else if partners[o.UUID] == nil && !lost[o.UUID] {
			detail := "no event of its user fits: nothing happened on the chain"
			if e, found := m.earlier[o.UUID]; found {
				age := o.AcceptedAt.Sub(e.Time).Round(time.Minute)
				detail = fmt.Sprintf("no event of its user fits, unless the clock of the server was ahead: "+
					"transaction %s is %s older than the order", e.TxHash, age)
			}
			m.find(WaitsWithoutEvent, "", detail, nil, o)
		}
	}
	for _, o := range m.noHash {
		if partners[o.UUID] == nil && o.State == ramp.OrderSucceeded {
			m.find(OrderWithoutEvent, "",
				"its result had no transaction hash, and no event of its user fits", nil, o)
		}
	}
}

// unordered reports the events of a transaction to which no order belongs, except for
// those that can be the fee of an order to which another one of them may belong. Each token
// and direction is a finding, so that none hides behind another.
func (m *matcher) unordered(events []candidate) {
	orphans, ahead := map[totalKey][]ChainEvent{}, map[totalKey][]ramp.Order{}
	relevant := false
	for _, e := range events {
		if len(e.orders) > 0 ||
			slices.ContainsFunc(events, func(main candidate) bool { return m.isFee(&e.ChainEvent, &main) }) {
			continue
		}
		key := totalKey{"", e.Token, e.Direction}
		orphans[key], ahead[key] = append(orphans[key], e.ChainEvent), append(ahead[key], e.ahead...)
		for _, o := range e.ahead {
			m.earlier[o.UUID] = e.ChainEvent
		}
		relevant = relevant || m.judges(&e.ChainEvent) || e.late
	}
	for key, events := range orphans {
		if relevant {
			detail := "nobody ordered this " + string(key.direction) + ", or its order was deleted"
			if len(ahead[key]) > 0 {
				detail += ", unless the clock of the server was ahead: the orders were accepted later"
			}
			m.find(EventWithoutOrder, "", detail, events, ahead[key]...)
		}
	}
}

// isFee reports whether an event can be the fee of an order that minted another event of
// its transaction: together, no more is minted than was ordered.
func (m *matcher) isFee(e *ChainEvent, main *candidate) bool {
	both := new(big.Int).Add(e.units, main.units)
	return e.Direction == ramp.Mint && main.Direction == ramp.Mint && e.Token == main.Token &&
		slices.ContainsFunc(main.orders, func(o ramp.Order) bool {
			t := m.assets.Order(o)
			return t.Units != nil && both.Cmp(t.Units) <= 0
		})
}

// group judges events and orders that may belong together. certain reports whether one of the
// events fits no order whose result may still come.
func (m *matcher) group(events []ChainEvent, orders []ramp.Order, late, certain bool) {
	relevant := late || slices.ContainsFunc(events, func(e ChainEvent) bool { return m.judges(&e) }) ||
		slices.ContainsFunc(orders,
			func(o ramp.Order) bool { return m.within(o.FinishedAt) || m.waitedNow(&o) })
	certain = certain ||
		slices.ContainsFunc(orders,
			func(o ramp.Order) bool { return o.State == ramp.OrderSucceeded && !m.isOpen(o) })
	if m.matched != nil && len(events) == 1 && len(orders) == 1 {
		m.matched[orders[0].UUID] = events[0].TxHash
	}
	switch o := &orders[0]; {
	case !relevant:
	case !certain && len(events) <= len(orders): // the results will tell
		m.open += len(events)
	case len(events) > 1 || len(orders) > 1:
		m.find(Ambiguous, ByAmount,
			fmt.Sprintf("events: %d, orders that they fit: %d", len(events), len(orders)), events, orders...)
	case o.State == ramp.OrderAccepted:
		m.find(WaitsWithEvent, ByAmount,
			"its result never came, or was refused: finish it with the transaction", events, orders...)
	case o.State == ramp.OrderSucceeded:
		m.moved(m.assets.Order(*o), &events[0], ByAmount)
	default:
		m.find(EndedOtherwise, ByAmount, otherwise(o), events, orders...)
	}
}

// isOpen reports whether the result of an order may come after the period.
func (m *matcher) isOpen(o ramp.Order) bool {
	return o.State == ramp.OrderAccepted && !m.waitsTooLong(&o) || !o.FinishedAt.Before(m.to)
}

// waitsTooLong reports whether the result of a waiting order will not come.
func (m *matcher) waitsTooLong(o *ramp.Order) bool {
	return o.State == ramp.OrderAccepted && o.AcceptedAt.Before(m.to.Add(-maxDelay))
}

// waitedNow reports whether it became so in the period.
func (m *matcher) waitedNow(o *ramp.Order) bool {
	return m.waitsTooLong(o) && !o.AcceptedAt.Before(m.from.Add(-maxDelay))
}

// report adds what was found to the books.
func (m *matcher) report(b *Reconciliation) {
	for _, key := range slices.SortedFunc(maps.Keys(m.totals), totalKey.compare) {
		t := m.totals[key]
		t.Decimals = m.assets.Decimals[key.token]
		rest := new(big.Int).Sub(&t.ordered, &t.moved)
		t.Ordered = amountOf(m.assets, key.token, &t.ordered)
		t.Moved = amountOf(m.assets, key.token, &t.moved)
		t.Fees = amountOf(m.assets, key.token, &t.fees)
		t.Unmatched = amountOf(m.assets, key.token, rest.Sub(rest, &t.fees))
		b.Totals = append(b.Totals, t.Total)
	}
	for _, key := range slices.SortedFunc(maps.Keys(m.supply), totalKey.compare) {
		c := m.supply[key]
		c.Tokens, c.Decimals = amountOf(m.assets, key.token, &c.units), m.assets.Decimals[key.token]
		b.Chain = append(b.Chain, c.ChainTotal)
	}
	b.Open, b.Witnesses, b.Counts, b.Findings = m.open, m.witnesses, m.found, []Finding{}
	for _, findings := range m.findings {
		b.Findings = append(b.Findings, largest(findings)...)
	}
	twice := func(found []Finding) []Finding { // from both sides
		slices.SortFunc(found, func(x, y Finding) int { return strings.Compare(x.key(), y.key()) })
		return slices.CompactFunc(found, func(x, y Finding) bool {
			same := x.key() == y.key()
			if same && x.Decided == nil {
				b.Counts[x.Kind]--
			}
			return same
		})
	}
	b.Findings, b.Decided = twice(b.Findings), twice(m.settledFindings)
	b.Decisions = m.decisions()
}

// decisions returns what was decided in the period, with what the orders are about.
func (m *matcher) decisions() (made []DecisionRow) {
	for _, e := range m.journal.decisions {
		if m.counts(e.At) {
			made = append(made, DecisionRow{Entry: e})
		}
	}
	return made
}
