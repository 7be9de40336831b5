package rampbooks

import (
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/catalog"
)

var (
	gold  = common.HexToAddress("0x70c3")
	alice = common.HexToAddress("0xa11ce")
	noon  = time.Date(2026, 11, 2, 12, 0, 0, 0, time.UTC)
)

func after(d time.Duration) time.Time { return noon.Add(d) }

func tx(n byte) common.Hash { return common.Hash{1, n} }

// sells is a game that sells gold for 100 basis points.
func sells() *catalog.Catalog {
	items := []ramp.Item{{ID: "item_gold", Amount: ramp.NewAmount(100)}}
	config := Config{Products: Always(ramp.Product{Name: "gold", Token: gold.Hex(), MintFeeBps: 100,
		Materials: items, Outputs: items})}
	a := config.catalog()
	a.Decimals[gold] = 2
	return a
}

// mintOf is an order of alice that ended in the state a minute after it was accepted.
func mintOf(n byte, tokens int64, at time.Time, state ramp.OrderState) ramp.Order {
	o := ramp.Order{UUID: uuid.UUID{n}, State: state, UserAddress: alice.Hex(), Direction: ramp.Mint, AcceptedAt: at,
		FinishedAt: at.Add(time.Minute),
		Assets:     []ramp.AssetAmount{{ID: "item_gold", Amount: ramp.NewAmount(100 * tokens)}},
		Intent: ramp.Intent{To: []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: gold.Hex(),
			Amount: ramp.NewAmount(tokens)}}}}
	if state == ramp.OrderAccepted {
		o.FinishedAt = time.Time{}
	} else if state != ramp.OrderAbandoned {
		o.TxHash = tx(n).Hex()
	}
	return o
}

// minted is an event of alice, in hundredths of a token.
func minted(n byte, units int64, at time.Time) ChainEvent {
	return ChainEvent{TxHash: tx(n), Block: uint64(at.Unix()), Time: at, Token: gold, User: alice, Direction: ramp.Mint,
		units: big.NewInt(units)}
}

func TestPiecesOfOneTransactionAreOneEvent(t *testing.T) {
	piece := minted(1, 1, noon)
	other := piece
	other.User = common.HexToAddress("0xb0b")
	next := minted(2, 5, noon)
	sum := minted(1, 3, noon)
	sum.parts = []*big.Int{piece.units, piece.units, piece.units}
	assert.Equal(t, [][]ChainEvent{{sum, other}, {next}},
		groupByTransaction([]ChainEvent{piece, piece, other, piece, next}))
}

func TestTheFeeThatIsKnownDecidesWhatFits(t *testing.T) {
	a := sells()
	o := mintOf(1, 3, noon, ramp.OrderSucceeded)
	fits := func(units int64) bool { return a.Order(o).Fits(big.NewInt(units), false) }
	assert.True(t, fits(297))
	assert.False(t, fits(296) || fits(298) || fits(300))

	four := sells()
	four.Decimals[gold] = 0
	swords := four.Order(mintOf(1, 4, noon, ramp.OrderSucceeded))
	assert.True(t, swords.Fits(big.NewInt(3), false), "four tokens without decimals less 1%, rounded")
	assert.True(t, swords.Fits(big.NewInt(4), true), "four pieces")
	assert.False(t, swords.Fits(big.NewInt(3), true), "three of four pieces")
	o.Intent.To[0].Amount, _ = ramp.AmountOfUnits(big.NewInt(5), 2) // and a fee of 0.05 of a unit
	assert.True(t, fits(4) && fits(5))
	o.Assets[0].ID = "item_gem" // no product: any fee
	assert.True(t, fits(1) && fits(5))
	assert.False(t, fits(0) || fits(6))
}

// A stolen mint must not hide behind an order that waits.
func TestWhichOrderAnEventMayBelongTo(t *testing.T) {
	type both struct {
		*ramp.Order
		event *ChainEvent
	}
	end := after(10 * time.Hour)
	for name, c := range map[string]struct {
		change      func(both)
		may, seemed bool
	}{
		"an order that waits": {func(both) {}, true, false},
		"a burn":              {func(b both) { b.event.Direction = ramp.Burn }, false, false},
		"another token":       {func(b both) { b.event.Token = alice }, false, false},
		"another player":      {func(b both) { b.event.User = gold }, false, false},
		"an erased player": {func(b both) { b.UserAddress, b.event.User = "", common.Address{} },
			false, false},
		"more than was ordered":         {func(b both) { b.event.units = big.NewInt(298) }, false, false},
		"just before, as clocks differ": {func(b both) { b.event.Time = noon.Add(-skew) }, true, false},
		"before the order":              {func(b both) { b.event.Time = noon.Add(-skew - 1) }, false, false},
		"a mint that was given back": {func(b both) {
			b.State, b.TxHash, b.FinishedAt = ramp.OrderFailed,
				tx(2).Hex(), noon
		}, true, false},
		"a result without a hash": {func(b both) { b.State, b.FinishedAt = ramp.OrderSucceeded, noon },
			true, false},
		"it ended by another transaction": {func(b both) {
			b.State, b.TxHash, b.FinishedAt = ramp.OrderSucceeded,
				tx(2).Hex(), noon
		}, false, true},
		"and before these books": {func(b both) {
			b.State, b.TxHash, b.FinishedAt = ramp.OrderSucceeded,
				tx(2).Hex(), noon.Add(-1)
		}, false, false},
		"it will end by another, afterward": {func(b both) {
			b.State, b.TxHash, b.FinishedAt = ramp.OrderSucceeded,
				tx(2).Hex(), end
		}, true, false},
	} {
		o, e := mintOf(1, 3, noon, ramp.OrderAccepted), minted(1, 297, noon)
		c.change(both{&o, &e})
		may, seemed := newMatching(sells(), noon, end).byAmount.belongs(&e, &o)
		assert.Equal(t, []bool{c.may, c.seemed}, []bool{may, seemed}, name)
	}
}

// Nor may it look like the fee of another.
func TestWhatMayBeTheFeeOfAMint(t *testing.T) {
	for name, c := range map[string]struct {
		change func(fee *ChainEvent, main *candidate)
		want   bool
	}{
		"the rest of what was ordered": {func(*ChainEvent, *candidate) {}, true},
		"more than was ordered":        {func(fee *ChainEvent, _ *candidate) { fee.units = big.NewInt(4) }, false},
		"another token":                {func(fee *ChainEvent, _ *candidate) { fee.Token = alice }, false},
		"a burn":                       {func(fee *ChainEvent, _ *candidate) { fee.Direction = ramp.Burn }, false},
		"beside a burn":                {func(_ *ChainEvent, main *candidate) { main.Direction = ramp.Burn }, false},
		"of no order":                  {func(_ *ChainEvent, main *candidate) { main.orders = nil }, false},
	} {
		fee, main := minted(1, 3, noon),
			candidate{minted(1, 297, noon), []ramp.Order{mintOf(1, 3, noon, ramp.OrderAccepted)}, nil, false}
		fee.User = gold
		c.change(&fee, &main)
		orphans := newMatching(sells(), noon, after(time.Hour)).byAmount.orphans([]candidate{{ChainEvent: fee}, main})
		assert.Equal(t, c.want, !slices.ContainsFunc(orphans, func(e candidate) bool { return e.User == gold }), name)
	}
	// Nor may two be the fees of one.
	fee, other := minted(1, 3, noon), minted(1, 2, noon)
	main := candidate{ChainEvent: minted(1, 297, noon), orders: []ramp.Order{mintOf(1, 3, noon, ramp.OrderAccepted)}}
	orphans := newMatching(sells(), noon, after(time.Hour)).byAmount.orphans(
		[]candidate{main, {ChainEvent: other}, {ChainEvent: fee}})
	assert.Equal(t, []candidate{{ChainEvent: fee}}, orphans)
}

// A reversal takes back its decision, and nothing that is known otherwise.
func TestWhatAReversalTakesBack(t *testing.T) {
	order := uuid.UUID{1}
	kept := func(n byte) Entry { return Entry{ID: uuid.UUID{2}, Order: order, TxHash: tx(n)} }
	decision := Entry{ID: uuid.UUID{3}, Finding: Ambiguous, Order: order, TxHash: tx(1)}
	reversal := decision
	reversal.ID, reversal.Reverses = uuid.UUID{4}, decision.ID
	again := decision
	again.ID = uuid.UUID{5}
	for name, c := range map[string]struct {
		entries []Entry
		want    common.Hash
	}{
		"a decision":                       {[]Entry{decision}, tx(1)},
		"nothing else":                     {[]Entry{decision, reversal}, common.Hash{}},
		"what was known before":            {[]Entry{kept(2), decision, reversal}, tx(2)},
		"the order ended in a batch since": {[]Entry{decision, kept(2), reversal}, tx(2)},
		"it was decided again":             {[]Entry{decision, reversal, again}, tx(1)},
	} {
		j := newJournal(c.entries)
		assert.Equal(t, c.want, j.transactionOf[order], name)
		for n := range byte(3) {
			assert.Equal(t, tx(n) == c.want, len(j.ordersOf[tx(n)]) == 1, name)
		}
		assert.Equal(t, c.want == tx(1), j.active[decision.subject()] != nil, name)
	}
}

// The same orders and events give the same findings, wherever the chunks end.
func TestTheBooksDoNotDependOnTheChunks(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	type fed struct {
		at   time.Time
		into func(*transactionMatcher)
	}
	var feed []fed
	for n := range 200 {
		at := noon.Add(time.Duration(n) * 17 * time.Minute)
		o := mintOf(byte(n), 2, at, ramp.OrderSucceeded)
		e := minted(byte(n), 198+int64(n%40/39), at.Add(time.Second)) // one in forty is wrong
		o.FinishedAt = at.Add(time.Duration(random.Int64N(int64(12 * time.Hour))))
		if n%30 != 7 {
			feed = append(feed, fed{o.FinishedAt, func(m *transactionMatcher) { m.order(o) }})
		}
		if n%30 != 9 {
			feed = append(feed, fed{e.Time, func(m *transactionMatcher) { m.transaction([]ChainEvent{e}) }})
		}
	}
	slices.SortStableFunc(feed, func(a, b fed) int { return a.at.Compare(b.at) })
	read := func(often float64) (m *transactionMatcher, b Reconciliation) {
		all := newMatching(sells(), noon, after(90*time.Hour))
		m = all.byTransaction
		most := 0
		for _, f := range feed {
			if f.into(m); random.Float64() < often {
				m.settle(f.at)
				most = max(most, len(m.events)+len(m.orders))
			}
		}
		assert.Less(t, most, 70, "only what has no partner yet is kept")
		m.settle(time.Time{})
		all.report(&b)
		return m, b
	}
	want, books := read(0)
	assert.Equal(t, []int{3, 7, 7}, []int{len(want.differing), len(want.unclaimed), len(want.unseen)})
	for range 50 {
		got, again := read(random.Float64())
		assert.Equal(t, books, again)
		assert.Equal(t, want.unclaimed, got.unclaimed)
		assert.ElementsMatch(t, want.unseen, got.unseen)
		assert.ElementsMatch(t, want.differing, got.differing)
	}
}
