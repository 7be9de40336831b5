package support_test

import (
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/ramptest"
)

// Giving back what became tokens pays twice, and a burn that is abandoned is not granted:
// a transaction that may be the order's own is refused whatever Proof misses.
func TestAbandonRefusesWhileTheTransactionOfTheOrderIsOnTheChain(t *testing.T) {
	accepted := now.Add(-14 * time.Hour)
	zero := common.Address{}
	mint := func(hundredths int64) sentTx {
		return sentTx{from: player, payer: payer, to: vault,
			transfers: []ramp.Transfer{moved(zero, player, hundredths)}}
	}
	burn := func(to common.Address, hundredths int64) sentTx {
		return sentTx{from: player, payer: payer, to: vault, transfers: []ramp.Transfer{moved(player, to, hundredths)}}
	}
	byPlayer := func(tx sentTx) sentTx { tx.payer, tx.to = zero, token; return tx }
	// another is an order that has ended by the transaction.
	another := func(user common.Address, d ramp.Direction, tokens int64, state ramp.OrderState) *ramp.Order {
		o := orderOf(d, tokens, accepted)
		o.UserAddress, o.State = user.Hex(), state
		return &o
	}
	for name, c := range map[string]struct {
		direction ramp.Direction
		tx        sentTx
		after     time.Duration // the validate call
		ended     *ramp.Order   // by the transaction
		change    func(*rampproof.Config, *node)
		refused   bool
	}{
		"10 minutes before, by the node's clock": {ramp.Mint, mint(500), -10 * time.Minute, nil, nil, true},
		"an hour before, by a clock ahead":       {ramp.Mint, mint(500), -time.Hour, nil, nil, true},
		"mint after 20 minutes":                  {ramp.Mint, mint(500), 20 * time.Minute, nil, nil, true},
		"mint after 70 minutes":                  {ramp.Mint, mint(500), 70 * time.Minute, nil, nil, true},
		"burn after 11 hours":                    {ramp.Burn, burn(zero, 500), 11 * time.Hour, nil, nil, true},
		"mint with a fee":                        {ramp.Mint, mint(490), 20 * time.Minute, nil, nil, true},
		"burn with a fee":                        {ramp.Burn, burn(zero, 490), 20 * time.Minute, nil, nil, true},
		"an unlisted contract": {ramp.Burn,
			sentTx{from: player, payer: payer, to: hidden, transfers: burn(hidden, 500).transfers}, 20 * time.Minute,
			nil, nil, true},
		"a contract that passes tokens on": {ramp.Burn,
			sentTx{from: player, to: vault, transfers: burn(hidden, 500).transfers}, 20 * time.Minute, nil, nil, true},
		"sent by the ramp": {ramp.Burn, sentTx{from: payer, to: hidden, transfers: burn(hidden, 500).transfers},
			20 * time.Minute, nil, nil, true},
		"decimals unreadable": {ramp.Burn, burn(zero, 500), 20 * time.Minute, nil,
			func(_ *rampproof.Config, n *node) { n.decimals = "" }, true},
		"it ended another's mint": {ramp.Mint, mint(500), 20 * time.Minute,
			another(friend, ramp.Mint, 5, ramp.OrderSucceeded), nil, true},
		"it ended another's burn": {ramp.Burn, burn(zero, 500), 20 * time.Minute,
			another(friend, ramp.Burn, 5, ramp.OrderSucceeded), nil, true},

		"it ended an order of the player of another amount": {ramp.Mint, mint(500), time.Minute,
			another(player, ramp.Mint, 90, ramp.OrderSucceeded), nil, true},
		"it ended a smaller burn of the player": {ramp.Burn, burn(zero, 500), time.Minute,
			another(player, ramp.Burn, 3, ramp.OrderSucceeded), nil, true},
		"it ended an order of the player as a failure": {ramp.Mint, mint(490), time.Minute,
			another(player, ramp.Mint, 5, ramp.OrderFailed), nil, true},
		"it ended a burn of the player, and decimals are unreadable": {ramp.Burn, burn(zero, 500), time.Minute,
			another(player, ramp.Burn, 5, ramp.OrderSucceeded),
			func(_ *rampproof.Config, n *node) { n.decimals = "" }, true},
		"a mint that the player passed on": {ramp.Mint,
			sentTx{from: friend, to: hidden,
				transfers: []ramp.Transfer{moved(zero, player, 500), moved(player, friend, 500)}},
			time.Minute, nil, nil, true},
		"a mint through another account": {ramp.Mint,
			sentTx{from: friend, to: hidden,
				transfers: []ramp.Transfer{moved(zero, friend, 500), moved(friend, player, 500)}},
			time.Minute, nil, nil, true},
		"burn to an unlisted contract, by unknown payers": {ramp.Burn, byPlayer(burn(hidden, 500)), time.Minute, nil,
			func(p *rampproof.Config, _ *node) { p.Payers, p.AnyFailure = nil, true }, true},
		"a user that is a contract": {ramp.Mint,
			sentTx{from: friend, to: player, transfers: []ramp.Transfer{moved(vault, player, 500)}}, time.Minute, nil,
			nil, true},

		"nothing happened": {direction: ramp.Mint},
		"it ended an equal order of the player": {ramp.Mint, mint(490), time.Minute,
			another(player, ramp.Mint, 5, ramp.OrderSucceeded), nil, false},
		"it ended a smaller order of the player": {ramp.Mint, mint(196), time.Minute,
			another(player, ramp.Mint, 2, ramp.OrderSucceeded), nil, false},
		"it ended a burn of the player": {ramp.Burn, burn(zero, 300), time.Minute,
			another(player, ramp.Burn, 3, ramp.OrderSucceeded), nil, false},
		"tokens for a friend": {ramp.Burn, byPlayer(burn(friend, 500)), time.Minute, nil, nil, false},
		"by a contract's creation": {ramp.Burn, sentTx{from: player, transfers: burn(friend, 500).transfers},
			time.Minute, nil, nil, false},
		"a transfer of zero beside another": {ramp.Burn,
			byPlayer(sentTx{transfers: []ramp.Transfer{moved(player, friend, 500), moved(player, zero, 0)}}),
			time.Minute, nil, nil, false},
		"a transfer to oneself": {ramp.Burn, byPlayer(burn(player, 500)), time.Minute, nil, nil, false},
		"a transfer of zero, which costs a stranger only gas": {ramp.Mint,
			sentTx{from: friend, to: token, transfers: []ramp.Transfer{moved(zero, player, 0), moved(player, zero, 0)}},
			time.Minute, nil, nil, false},
		"another's, an hour before the order": {ramp.Mint, mint(490), -time.Hour,
			another(player, ramp.Mint, 5, ramp.OrderSucceeded), nil, false},
		"25 hours before the order": {ramp.Mint, mint(500), -25 * time.Hour, nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			proof := &rampproof.Config{Contracts: []common.Address{vault}, Payers: []common.Address{payer}}
			orders, store, n := newOrders(t, 48*time.Hour, proof)
			order := orderOf(c.direction, 5, accepted)
			store.keep(t, order)
			store.witness(t, n)
			if c.change != nil {
				c.change(proof, n)
				orders = ordersOf(t, store, n, proof)
			}
			var hash common.Hash
			if len(c.tx.transfers) > 0 {
				hash = n.send(accepted.Add(c.after), c.tx)
			}
			if c.ended != nil {
				store.keep(t, ended(*c.ended, c.ended.State, hash, now))
			}
			step, err := orders.Abandon(t.Context(), order.UUID, alice)
			if !c.refused {
				require.NoError(t, err)
				assert.Equal(t, ramp.OrderAbandoned, step.Order.State)
				return
			}
			refuses(t, err, hash)
			blind := alice
			blind.WithoutEvidence = true
			_, err = orders.Abandon(t.Context(), order.UUID, blind)
			refuses(t, err, hash)
			against := alice
			against.AgainstEvidence = true
			ramp.Must(orders.Abandon(t.Context(), order.UUID, against))
		})
	}
}

// What Abandon costs a node, on a chain of a year with a block a second.
func TestAbandonAsksTheNodeLittle(t *testing.T) {
	for name, c := range map[string]struct {
		age, widest time.Duration // of the order; the node's limit, in blocks of a second
		most        int           // calls: beside each query are the chain ID and the newest block
	}{
		"a day":                             {24 * time.Hour, 0, 60},
		"three weeks":                       {21 * 24 * time.Hour, 0, 60},
		"a day, 2,000 blocks a query":       {24 * time.Hour, 2000 * time.Second, 500},
		"three weeks, 2,000 blocks a query": {21 * 24 * time.Hour, 2000 * time.Second, 2 * 21 * 86},
	} {
		t.Run(name, func(t *testing.T) {
			orders, store, n := newOrders(t, 365*24*time.Hour, paid)
			n.widest, n.oldest = uint64(c.widest/time.Second), n.blockAt(now.Add(-3*c.age-48*time.Hour))
			idle, minted := orderOf(ramp.Mint, 5, now.Add(-c.age)), orderOf(ramp.Mint, 5, now.Add(-c.age))
			minted.UserAddress = friend.Hex()
			store.keep(t, idle, minted)
			store.witness(t, n)
			hash := n.send(now.Add(-time.Hour),
				sentTx{from: friend, payer: payer, to: vault,
					transfers: []ramp.Transfer{moved(common.Address{}, friend, 490)}})

			_, err := orders.Abandon(t.Context(), minted.UUID, alice)
			refuses(t, err, hash)
			assert.LessOrEqual(t, n.calls, c.most)
			n.calls = 0
			ramp.Must(orders.Abandon(t.Context(), idle.UUID, alice))
			assert.LessOrEqual(t, n.calls, c.most)
		})
	}
}

// A node that lies behind has not seen what happened since its newest block, and one that does
// not answer has not said that nothing did.
func TestAbandonRefusesOnANodeThatLiesBehind(t *testing.T) {
	orders, store, n := newOrders(t, 48*time.Hour, paid)
	n.begin = n.begin.Add(-2 * time.Hour)
	order := orderOf(ramp.Mint, 5, now.Add(-14*time.Hour))
	store.keep(t, order)
	_, err := orders.Abandon(t.Context(), order.UUID, alice)
	assert.ErrorContains(t, err, "the node is behind: its newest block is of 2026-11-20T10:00:00Z")
	n.head += 7100
	n.behind = 14 * 3600 // of one behind the same address
	_, err = orders.Abandon(t.Context(), order.UUID, alice)
	assert.ErrorIs(t, err, ramp.ErrNotFound)
	n.behind = 0
	n.send(now.Add(-13*time.Hour),
		sentTx{from: player, payer: payer, to: vault, transfers: []ramp.Transfer{moved(common.Address{}, player, 490)}})
	for _, n.down = range []string{"eth_getLogs", "eth_getTransactionReceipt"} {
		_, err = orders.Abandon(t.Context(), order.UUID, alice)
		assert.ErrorContains(t, err, "read the chain: ")
	}
	n.down = ""
	store.witness(t, n)
	store.calls = 0
	ramp.Must(orders.Show(t.Context(), order.UUID))
	for calls := store.calls; calls > 0; calls-- { // orders that ended, those of the user, and that of the transaction
		store.calls, store.failing = 0, calls
		_, err = orders.Show(t.Context(), order.UUID)
		assert.ErrorContains(t, err, "the database is down")
	}
	n.down, store.failing = "eth_getLogs", 0
	_, err = orders.Reconcile(t.Context(), now.Add(-time.Hour), time.Time{})
	assert.ErrorContains(t, err, "ramp: reconcile: ramp: eth_getLogs: ")
	n.down = ""
	n.sent = slices.DeleteFunc(n.sent, func(tx sentTx) bool { return tx.from == player })
	ramp.Must(orders.Abandon(t.Context(), order.UUID, alice))
}

// A fallback that lies behind leaves out the logs that it has not seen.
func TestTheLogsOfAFallbackThatLiesBehindAreNotTaken(t *testing.T) {
	_, store, n := newOrders(t, 24*time.Hour, paid)
	order := orderOf(ramp.Mint, 5, now.Add(-14*time.Hour))
	store.keep(t, order)
	behind := *n
	behind.head -= 10 * 3600
	n.down = "eth_getLogs"
	n.send(now.Add(-9*time.Hour),
		sentTx{from: player, payer: payer, to: vault, transfers: []ramp.Transfer{moved(common.Address{}, player, 490)}})
	first, second := httptest.NewServer(n), httptest.NewServer(&behind)
	defer first.Close()
	defer second.Close()
	reads := func() *backoffice { // the first node again
		chain := ramp.Must(ramp.NewRPC(ramp.RPCConfig{URL: first.URL, ChainID: 1112, Retries: -1,
			FallbackURL: second.URL, Logger: quiet}))
		return ramp.Must(newBackoffice(backofficeConfig{Store: store, Proof: proofOn(chain, paid),
			Products: rampbooks.Always(product), Now: func() time.Time { return now }, Logger: quiet}))
	}
	const want = "the node is behind: its newest block is of 2026-11-20T02:00:00Z"
	_, err := reads().Abandon(t.Context(), order.UUID, alice)
	assert.ErrorContains(t, err, want)
	_, err = reads().Reconcile(t.Context(), now.Add(-3*time.Hour), time.Time{})
	assert.ErrorContains(t, err, want)
}

// Without a user or a contract, nobody can look for the transaction of an order.
func TestAbandonRefusesAnOrderThatNoTransactionCanBeFoundFor(t *testing.T) {
	for _, change := range []func(*ramp.Order){func(o *ramp.Order) { o.UserAddress = "alice" },
		func(o *ramp.Order) { o.Intent.To[0].ID = "token-1" }} {
		orders, store, _ := newOrders(t, 24*time.Hour, paid)
		order := orderOf(ramp.Mint, 5, now.Add(-14*time.Hour))
		change(&order)
		store.keep(t, order)
		_, err := orders.Abandon(t.Context(), order.UUID, alice)
		assert.ErrorContains(t, err, "has no user address or no token contract")
	}
}

// Until 13 hours have passed, the transaction of an order may be pending: giving back what
// then becomes tokens pays twice. Without a node, nobody knows whether it is on the chain.
func TestAbandonRefusesWhileTheResultMayCome(t *testing.T) {
	d := newStudio(t)
	d.witness(t)
	order := d.place(t, d.service.Mint, ramptest.StaysPending())
	blind := ramp.Must(newBackoffice(backofficeConfig{Store: d.store, Now: d.service.Now, Logger: quiet}))
	decide := func(o *backoffice, flags ...string) error {
		_, err := command(t, o, "abandon", append(flags, "-who", "alice", "-reason", "case 18", order.UUID.String())...)
		return err
	}
	d.service.Advance(13*time.Hour - 2*time.Minute)
	assert.ErrorContains(t, decide(d.backoffice), "wait, or abandon it early")
	assert.ErrorContains(t, decide(d.backoffice, "-against-evidence", "-without-evidence"), "wait, or abandon it early",
		"a chain that is ignored makes no order older")
	assert.ErrorContains(t, decide(blind, "-early"), "no node is configured")
	assert.EqualValues(t, 900, d.gold)
	require.NoError(t, d.service.Deliver(t.Context(), order, ramptest.Succeeded), "the transaction is mined after all")
	assert.Error(t, decide(d.backoffice, "-early", "-against-evidence", "-without-evidence"))
	assert.EqualValues(t, 900, d.gold)

	for _, flags := range [][]string{{"-early"}, {"-early", "-against-evidence", "-without-evidence"}, nil} {
		order = d.place(t, d.service.Mint, ramptest.StaysPending())
		if flags == nil {
			d.service.Advance(13 * time.Hour)
		}
		before := d.gold
		require.NoError(t, decide(d.backoffice, flags...))
		assert.EqualValues(t, 100, d.gold-before)
	}
}
