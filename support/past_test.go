package support_test

import (
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
)

var newToken = common.HexToAddress("0x70c4")

// sellsOf returns the orders of a game that has sold products, each at its time.
func sellsOf(t *testing.T, store *ledger, n *node, sold ...rampbooks.Offer) *backoffice {
	t.Helper()
	return ramp.Must(newBackoffice(backofficeConfig{
		Store: store, Proof: proofOn(n.rpc(t), &rampproof.Config{AnyFailure: true}), Products: sold,
		Now: func() time.Time { return now }, Logger: quiet,
	}))
}

// at returns a time that is so many hours before now.
func hoursAgo(hours int) time.Time { return now.Add(-time.Duration(hours) * time.Hour) }

// mintOn keeps a mint of five tokens that was minted as so many hundredths of them.
func (l *ledger) mintOn(t *testing.T, n *node, token common.Address, at time.Time, hundredths int64) ramp.Order {
	t.Helper()
	order := orderOf(ramp.Mint, 5, at)
	order.Intent.To[0].ID = token.Hex()
	transfer := moved(common.Address{}, player, hundredths)
	transfer.Token = token
	hash := n.send(at.Add(time.Minute), sentTx{transfers: []ramp.Transfer{transfer}})
	order = ended(order, ramp.OrderSucceeded, hash, at.Add(2*time.Minute))
	l.keep(t, order)
	return order
}

// The token moves to a new contract within a month.
func TestATokenThatMovedToANewContractIsCompared(t *testing.T) {
	_, store, n := newOrders(t, 100*time.Hour, paid)
	old, moved := product, product
	moved.Token = newToken.Hex()
	store.mintOn(t, n, token, hoursAgo(50), 490)
	store.mintOn(t, n, newToken, hoursAgo(10), 490)
	both := sellsOf(t, store, n,
		rampbooks.Offer{Product: old, To: hoursAgo(30)}, rampbooks.Offer{Product: moved, From: hoursAgo(30)})
	books := ramp.Must(both.Reconcile(t.Context(), hoursAgo(60), now))
	assert.Empty(t, books.Findings)
	var tokens []common.Address
	for _, total := range books.Totals {
		tokens = append(tokens, total.Token)
		assert.Equal(t, []string{"gold", "5", "4.9", "0.1"},
			[]string{total.Product, total.Ordered.String(), total.Moved.String(), total.Fees.String()})
	}
	assert.Equal(t, []common.Address{token, newToken}, tokens)

	// Whoever forgets the old contract accuses nobody.
	waits := orderOf(ramp.Burn, 5, hoursAgo(20))
	store.keep(t, waits)
	books = ramp.Must(sellsOf(t, store, n, rampbooks.Always(moved)...).Reconcile(t.Context(), hoursAgo(60), now))
	require.Equal(t, []rampbooks.FindingKind{rampbooks.NotCompared, rampbooks.NotCompared}, kindsOf(books))
	for _, f := range books.Findings {
		assert.Equal(t, "no setting knows its token 0x00000000000000000000000000000000000070c3: "+
			"list what the game sold before, and when, in Config.Products", f.Detail)
	}
}

// An order is judged by what held when it was accepted, a quarter of an hour more or less.
func TestAFormerFeeIsNoExcuse(t *testing.T) {
	former, today := product, product
	former.MintFeeBps, today.MintFeeBps = 2000, 100
	change := hoursAgo(30)
	sold := []rampbooks.Offer{{Product: former, To: change}, {Product: today, From: change}}
	differs := []rampbooks.FindingKind{rampbooks.Differs}
	for name, c := range map[string]struct {
		at         time.Time
		hundredths int64
		want       []rampbooks.FindingKind
	}{
		"the former fee in its time": {hoursAgo(40), 400, nil},
		"today's fee in its time":    {hoursAgo(20), 495, nil},
		"the former fee today":       {hoursAgo(20), 400, differs},
		"today's fee in former time": {hoursAgo(40), 495, differs},
		"the former fee, just after": {change.Add(14 * time.Minute), 400, nil},
		"the former fee, too late":   {change.Add(16 * time.Minute), 400, differs},
		"today's fee, just before":   {change.Add(-14 * time.Minute), 495, nil},
	} {
		_, store, n := newOrders(t, 100*time.Hour, paid)
		store.mintOn(t, n, token, c.at, c.hundredths)
		books := ramp.Must(sellsOf(t, store, n, sold...).Reconcile(t.Context(), hoursAgo(60), now))
		assert.Equal(t, c.want, kindsOf(books), name)
	}
	// A time in which nothing was sold excuses what any other time does, and nothing else.
	for hundredths, want := range map[int64][]rampbooks.FindingKind{400: nil, 495: nil, 300: differs} {
		_, store, n := newOrders(t, 100*time.Hour, paid)
		store.mintOn(t, n, token, hoursAgo(25), hundredths)
		gap := []rampbooks.Offer{{Product: former, To: change}, {Product: today, From: hoursAgo(20)}}
		books := ramp.Must(sellsOf(t, store, n, gap...).Reconcile(t.Context(), hoursAgo(60), now))
		assert.Equal(t, want, kindsOf(books))
	}
}

// Two packs trade one item for one token.
func TestTwoPacksOfOneItemAreToldApart(t *testing.T) {
	_, store, n := newOrders(t, 100*time.Hour, paid)
	small, big := product, product
	small.Name, small.Tokens, small.Materials = "small pack", ramp.NewAmount(5), items(500)
	big.Name, big.Tokens, big.Materials = "big pack", ramp.NewAmount(50), items(4000)
	store.mintOn(t, n, token, hoursAgo(30), 490)
	order := orderOf(ramp.Mint, 50, hoursAgo(20))
	order.Assets[0].Amount, order.Intent.From[0].Amount = ramp.NewAmount(4000), ramp.NewAmount(4000)
	transfers := []ramp.Transfer{moved(common.Address{}, player, 4900)}
	hash := n.send(hoursAgo(20).Add(time.Minute), sentTx{transfers: transfers})
	store.keep(t, ended(order, ramp.OrderSucceeded, hash, hoursAgo(20).Add(2*time.Minute)))
	books := ramp.Must(sellsOf(t, store, n, rampbooks.Always(small, big)...).Reconcile(t.Context(), hoursAgo(60), now))
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
		_, store, n := newOrders(t, 100*time.Hour, paid)
		var transfers []ramp.Transfer
		for _, hundredths := range c.transfers {
			transfers = append(transfers, moved(common.Address{}, player, hundredths))
		}
		order := orderOf(ramp.Mint, 5, hoursAgo(30))
		hash := n.send(hoursAgo(30).Add(time.Minute), sentTx{transfers: transfers})
		if !c.waits {
			order = ended(order, ramp.OrderSucceeded, hash, hoursAgo(30).Add(2*time.Minute))
		}
		store.keep(t, order)
		books := ramp.Must(sellsOf(t, store, n, rampbooks.Always(product)...).Reconcile(t.Context(), hoursAgo(60), now))
		require.Equal(t, c.want, kindsOf(books), name)
		if c.want == nil {
			assert.Equal(t, "4.9 0.1", books.Totals[0].Moved.String()+" "+books.Totals[0].Fees.String(), name)
		}
	}
}

// A fee of 60% is larger than what the player gets. That player is then erased.
func TestAnErasedPlayerWithALargeFee(t *testing.T) {
	_, store, n := newOrders(t, 100*time.Hour, paid)
	dear := product
	dear.MintFeeBps = 6000
	order := orderOf(ramp.Mint, 5, hoursAgo(30))
	hash := n.send(hoursAgo(30).Add(time.Minute), sentTx{transfers: []ramp.Transfer{
		moved(common.Address{}, friend, 300), moved(common.Address{}, player, 200)}})
	order = ended(order, ramp.OrderSucceeded, hash, hoursAgo(30).Add(2*time.Minute))
	orders := sellsOf(t, store, n, rampbooks.Always(dear)...)
	store.keep(t, order)
	before := ramp.Must(orders.Reconcile(t.Context(), hoursAgo(60), now))
	store.erase("session-1", now)
	assert.Equal(t, before, ramp.Must(orders.Reconcile(t.Context(), hoursAgo(60), now)))
	assert.Empty(t, before.Findings)
	assert.Equal(t, "2 3", before.Totals[0].Moved.String()+" "+before.Totals[0].Fees.String())
}

// erase makes the orders of a session anonymous, as EraseSession of a rampsql.Store does.
func (l *ledger) erase(session string, before time.Time) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, o := range l.orders {
		if o.SessionID == session && o.State != ramp.OrderAccepted && o.FinishedAt.Before(before) {
			o.SessionID, o.UserAddress = "erased-1", "erased-1"
			l.orders[id], n = o, n+1
		}
	}
	return n
}
