package rampbooks_test

import (
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/rig"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
)

var newToken = common.HexToAddress("0x70c4")

// sellsOf returns the orders of a game that has sold products, each at its time.
func sellsOf(t *testing.T, store *rig.Store, n *rig.Node, sold ...rampbooks.Offer) *rig.Office {
	t.Helper()
	return must.Get(rig.NewOffice(rig.Config{
		Store: store, Proof: rig.ProofOn(t, n.RPC(t), &rampproof.Config{AnyFailure: true}), Products: sold,
		Now: rig.Later, Logger: rig.Quiet,
	}))(t)
}

// The token moves to a new contract within a month.
func TestATokenThatMovedToANewContractIsCompared(t *testing.T) {
	_, store, n := rig.NewOfficeOnNode(t, 100*time.Hour, rig.Paid)
	old, moved := rig.Product, rig.Product
	moved.Token = newToken.Hex()
	store.MintOn(t, n, rig.Token, rig.HoursAgo(50), 490)
	store.MintOn(t, n, newToken, rig.HoursAgo(10), 490)
	both := sellsOf(t, store, n,
		rampbooks.Offer{Product: old, To: rig.HoursAgo(30)}, rampbooks.Offer{Product: moved, From: rig.HoursAgo(30)})
	books := must.Get(both.Reconcile(t.Context(), rig.HoursAgo(60), rig.Now))(t)
	assert.Empty(t, books.Findings)
	var tokens []common.Address
	for _, total := range books.Totals {
		tokens = append(tokens, total.Token)
		assert.Equal(t, []string{"gold", "5", "4.9", "0.1"},
			[]string{total.Product, total.Ordered.String(), total.Moved.String(), total.Fees.String()})
	}
	assert.Equal(t, []common.Address{rig.Token, newToken}, tokens)

	// Whoever forgets the old contract accuses nobody.
	waits := rig.OrderOf(ramp.Burn, 5, rig.HoursAgo(20))
	store.Keep(t, waits)
	books = must.Get(sellsOf(t, store, n, rampbooks.Always(moved)...).Reconcile(t.Context(), rig.HoursAgo(60),
		rig.Now))(t)
	require.Equal(t, []rampbooks.FindingKind{rampbooks.NotCompared, rampbooks.NotCompared}, kindsOf(books))
	for _, f := range books.Findings {
		assert.Equal(t, "no setting knows its token 0x00000000000000000000000000000000000070c3: "+
			"list what the game sold before, and when, in Config.Products", f.Detail)
	}
}

// An order is judged by what held when it was accepted, a quarter of an hour more or less.
func TestAFormerFeeIsNoExcuse(t *testing.T) {
	former, today := rig.Product, rig.Product
	former.MintFeeBps, today.MintFeeBps = 2000, 100
	change := rig.HoursAgo(30)
	sold := []rampbooks.Offer{{Product: former, To: change}, {Product: today, From: change}}
	differs := []rampbooks.FindingKind{rampbooks.Differs}
	for name, c := range map[string]struct {
		at         time.Time
		hundredths int64
		want       []rampbooks.FindingKind
	}{
		"the former fee in its time": {rig.HoursAgo(40), 400, nil},
		"today's fee in its time":    {rig.HoursAgo(20), 495, nil},
		"the former fee today":       {rig.HoursAgo(20), 400, differs},
		"today's fee in former time": {rig.HoursAgo(40), 495, differs},
		"the former fee, just after": {change.Add(14 * time.Minute), 400, nil},
		"the former fee, too late":   {change.Add(16 * time.Minute), 400, differs},
		"today's fee, just before":   {change.Add(-14 * time.Minute), 495, nil},
	} {
		_, store, n := rig.NewOfficeOnNode(t, 100*time.Hour, rig.Paid)
		store.MintOn(t, n, rig.Token, c.at, c.hundredths)
		books := must.Get(sellsOf(t, store, n, sold...).Reconcile(t.Context(), rig.HoursAgo(60), rig.Now))(t)
		assert.Equal(t, c.want, kindsOf(books), name)
	}
	// A time in which nothing was sold excuses what any other time does, and nothing else.
	for hundredths, want := range map[int64][]rampbooks.FindingKind{400: nil, 495: nil, 300: differs} {
		_, store, n := rig.NewOfficeOnNode(t, 100*time.Hour, rig.Paid)
		store.MintOn(t, n, rig.Token, rig.HoursAgo(25), hundredths)
		gap := []rampbooks.Offer{{Product: former, To: change}, {Product: today, From: rig.HoursAgo(20)}}
		books := must.Get(sellsOf(t, store, n, gap...).Reconcile(t.Context(), rig.HoursAgo(60), rig.Now))(t)
		assert.Equal(t, want, kindsOf(books))
	}
}

// Two packs trade one item for one token.
func TestTwoPacksOfOneItemAreToldApart(t *testing.T) {
	_, store, n := rig.NewOfficeOnNode(t, 100*time.Hour, rig.Paid)
	small, big := rig.Product, rig.Product
	small.Name, small.Tokens, small.Materials = "small pack", ramp.NewAmount(5), items(500)
	big.Name, big.Tokens, big.Materials = "big pack", ramp.NewAmount(50), items(4000)
	store.MintOn(t, n, rig.Token, rig.HoursAgo(30), 490)
	order := rig.OrderOf(ramp.Mint, 50, rig.HoursAgo(20))
	order.Assets[0].Amount, order.Intent.From[0].Amount = ramp.NewAmount(4000), ramp.NewAmount(4000)
	transfers := []ramp.Transfer{rig.Moved(common.Address{}, rig.Player, 4900)}
	hash := n.Send(rig.HoursAgo(20).Add(time.Minute), rig.Tx{Transfers: transfers})
	store.Keep(t, rig.Ended(order, ramp.OrderSucceeded, hash, rig.HoursAgo(20).Add(2*time.Minute)))
	books := must.Get(sellsOf(t, store, n, rampbooks.Always(small, big)...).Reconcile(t.Context(), rig.HoursAgo(60),
		rig.Now))(t)
	require.Empty(t, books.Findings)
	ordered := map[string]string{}
	for _, total := range books.Totals {
		ordered[total.Product] = total.Ordered.String()
	}
	assert.Equal(t, map[string]string{"small pack": "5", "big pack": "50"}, ordered)
}

func items(amount int64) []ramp.Item {
	return []ramp.Item{{ID: "item_gold", Amount: ramp.NewAmount(amount), IconURL: "https://example.com/gold.png"}}
}

// The account that receives the fees is a player, too: one transaction mints it the tokens and the fee.
func TestTheAccountOfTheFeesBuysForItself(t *testing.T) {
	for name, c := range map[string]struct {
		transfers []int64 // in hundredths
		waits     bool
		want      []rampbooks.FindingKind
	}{
		"the tokens and the fee": {[]int64{490, 10}, false, nil},
		"the fee and the tokens": {[]int64{10, 490}, false, nil},
		"whose result never came": {[]int64{490, 10}, true,
			[]rampbooks.FindingKind{rampbooks.WaitsWithEvent}},
		"more than was ordered":             {[]int64{490, 11}, false, []rampbooks.FindingKind{rampbooks.Differs}},
		"another split than the fee leaves": {[]int64{480, 20}, false, []rampbooks.FindingKind{rampbooks.Differs}},
	} {
		_, store, n := rig.NewOfficeOnNode(t, 100*time.Hour, rig.Paid)
		var transfers []ramp.Transfer
		for _, hundredths := range c.transfers {
			transfers = append(transfers, rig.Moved(common.Address{}, rig.Player, hundredths))
		}
		order := rig.OrderOf(ramp.Mint, 5, rig.HoursAgo(30))
		hash := n.Send(rig.HoursAgo(30).Add(time.Minute), rig.Tx{Transfers: transfers})
		if !c.waits {
			order = rig.Ended(order, ramp.OrderSucceeded, hash, rig.HoursAgo(30).Add(2*time.Minute))
		}
		store.Keep(t, order)
		books := must.Get(sellsOf(t, store, n, rampbooks.Always(rig.Product)...).Reconcile(t.Context(),
			rig.HoursAgo(60), rig.Now))(t)
		require.Equal(t, c.want, kindsOf(books), name)
		if c.want == nil {
			assert.Equal(t, "4.9 0.1", books.Totals[0].Moved.String()+" "+books.Totals[0].Fees.String(), name)
		}
	}
}

// A fee of 60% is larger than what the player gets. That player is then erased.
func TestAnErasedPlayerWithALargeFee(t *testing.T) {
	_, store, n := rig.NewOfficeOnNode(t, 100*time.Hour, rig.Paid)
	dear := rig.Product
	dear.MintFeeBps = 6000
	order := rig.OrderOf(ramp.Mint, 5, rig.HoursAgo(30))
	hash := n.Send(rig.HoursAgo(30).Add(time.Minute), rig.Tx{Transfers: []ramp.Transfer{
		rig.Moved(common.Address{}, rig.Friend, 300), rig.Moved(common.Address{}, rig.Player, 200)}})
	order = rig.Ended(order, ramp.OrderSucceeded, hash, rig.HoursAgo(30).Add(2*time.Minute))
	orders := sellsOf(t, store, n, rampbooks.Always(dear)...)
	store.Keep(t, order)
	before := must.Get(orders.Reconcile(t.Context(), rig.HoursAgo(60), rig.Now))(t)
	store.Erase("session-1", rig.Now)
	assert.Equal(t, before, must.Get(orders.Reconcile(t.Context(), rig.HoursAgo(60), rig.Now))(t))
	assert.Empty(t, before.Findings)
	assert.Equal(t, "2 3", before.Totals[0].Moved.String()+" "+before.Totals[0].Fees.String())
}
