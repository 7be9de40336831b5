package rampbooks

import (
	"cmp"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/catalog"
	"github.com/token-ramp/ramp-go/internal/orderlist"
)

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

// totals adds up the orders and the events of a period.
type totals struct {
	*period
	catalog *catalog.Catalog
	orders  map[totalKey]*running
	chain   map[totalKey]*runningChain
	lines   *lines      // nil if nobody asks for them
	newest  []uuid.UUID // the orders that ended in the last hour
}

func newTotals(p *period, sold *catalog.Catalog) *totals {
	return &totals{period: p, catalog: sold, orders: map[totalKey]*running{},
		chain: map[totalKey]*runningChain{}, newest: []uuid.UUID{}}
}

// order adds an order that ended in the period, or is late.
func (s *totals) order(o *catalog.Order) {
	if orderlist.IsDamaged(&o.Order) {
		return
	}
	t := s.total(o)
	late := s.isLate(&o.Order)
	s.lines.order(o, late)
	if late {
		t.Late++
	}
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
	if o.Direction == ramp.Mint && o.AcceptedAt.Before(s.counted) {
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
func (t *running) unlessSettled(o *catalog.Order, moved map[string]Amount) map[string]Amount {
	if o.Settled != "" {
		return t.Settled
	}
	return moved
}

// event adds an event of the blocks of the period.
func (s *totals) event(e *ChainEvent) {
	s.lines.event(e)
	key := totalKey{"", e.Token, e.Direction}
	if s.chain[key] == nil {
		s.chain[key] = &runningChain{ChainTotal: ChainTotal{Token: e.Token, Direction: e.Direction}}
	}
	s.chain[key].Events++
	s.chain[key].units.Add(&s.chain[key].units, e.units)
}

// moved adds what an order that succeeded moved by its event. The rest of a mint is the fee
// if the event fits the order, and nobody knows what it is otherwise.
func (s *totals) moved(o *catalog.Order, e *ChainEvent, by string) {
	if !s.countsOrder(&o.Order) {
		return
	}
	t := s.total(o)
	share, fee := shareOf(o, e), new(big.Int)
	if share == nil {
		share = e.units
	} else if o.Direction == ramp.Mint {
		fee.Sub(o.Units, share)
	}
	t.moved.Add(&t.moved, share)
	t.fees.Add(&t.fees, fee)
	s.lines.moved(o, e, share, fee, by)
}

// inFlight adds a mint that was accepted before the end of the period and had not ended then.
func (s *totals) inFlight(o *ramp.Order) {
	if o.Direction != ramp.Mint || !o.AcceptedAt.Before(s.to) || orderlist.IsDamaged(o) {
		return
	}
	t := s.total(s.catalog.Order(*o))
	add(t.InFlight, o.Assets)
	if o.AcceptedAt.Before(s.counted) {
		add(t.InFlightBefore, o.Assets)
	}
}

func (s *totals) total(o *catalog.Order) *running {
	key := totalKey{o.Product(), o.Token, o.Direction}
	if s.orders[key] == nil {
		s.orders[key] = &running{Total: Total{
			Product: key.product, Token: key.token, Direction: o.Direction,
			Taken: map[string]Amount{}, GivenBack: map[string]Amount{}, Granted: map[string]Amount{},
			Settled: map[string]Amount{}, InFlightBefore: map[string]Amount{}, InFlight: map[string]Amount{}}}
	}
	return s.orders[key]
}

// report adds the totals to the books.
func (s *totals) report(b *Reconciliation) {
	b.newest = s.newest
	for _, key := range slices.SortedFunc(maps.Keys(s.orders), totalKey.compare) {
		t := s.orders[key]
		t.Decimals = s.catalog.Decimals[key.token]
		rest := new(big.Int).Sub(&t.ordered, &t.moved)
		t.Ordered = amountOf(s.catalog, key.token, &t.ordered)
		t.Moved = amountOf(s.catalog, key.token, &t.moved)
		t.Fees = amountOf(s.catalog, key.token, &t.fees)
		t.Unmatched = amountOf(s.catalog, key.token, rest.Sub(rest, &t.fees))
		b.Totals = append(b.Totals, t.Total)
	}
	for _, key := range slices.SortedFunc(maps.Keys(s.chain), totalKey.compare) {
		c := s.chain[key]
		c.Tokens, c.Decimals = amountOf(s.catalog, key.token, &c.units), s.catalog.Decimals[key.token]
		b.Chain = append(b.Chain, c.ChainTotal)
	}
}
