package support_test

import (
	"net/http"
	"slices"
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
	"github.com/token-ramp/ramp-go/ramptest"
)

// Giving back what became tokens pays twice, and a burn that is abandoned is not granted:
// a transaction that may be the order's own is refused whatever Proof misses.
func TestAbandonRefusesWhileTheTransactionOfTheOrderIsOnTheChain(t *testing.T) {
	accepted := rig.Now.Add(-14 * time.Hour)
	zero := common.Address{}
	mint := func(hundredths int64) rig.Tx {
		return rig.Tx{From: rig.Player, Payer: rig.Payer, To: rig.Vault,
			Transfers: []ramp.Transfer{rig.Moved(zero, rig.Player, hundredths)}}
	}
	burn := func(to common.Address, hundredths int64) rig.Tx {
		return rig.Tx{From: rig.Player, Payer: rig.Payer, To: rig.Vault,
			Transfers: []ramp.Transfer{rig.Moved(rig.Player, to, hundredths)}}
	}
	of := func(session string, o *ramp.Order) *ramp.Order { o.SessionID = session; return o }
	with := func(tx rig.Tx, from, to common.Address) rig.Tx { // and five tokens more
		tx.Transfers = append(tx.Transfers, rig.Moved(from, to, 500))
		return tx
	}
	byPlayer := func(tx rig.Tx) rig.Tx { tx.Payer, tx.To = zero, rig.Token; return tx }
	// another is an order that has ended by the transaction.
	another := func(user common.Address, d ramp.Direction, tokens int64, state ramp.OrderState) *ramp.Order {
		o := rig.OrderOf(d, tokens, accepted)
		o.UserAddress, o.State = user.Hex(), state
		return &o
	}
	for name, c := range map[string]struct {
		direction ramp.Direction
		tx        rig.Tx
		after     time.Duration // the validate call
		ended     *ramp.Order   // by the transaction
		change    func(*rampproof.Config, *rig.Node)
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
			rig.Tx{From: rig.Player, Payer: rig.Payer, To: rig.Hidden, Transfers: burn(rig.Hidden, 500).Transfers},
			20 * time.Minute,
			nil, nil, true},
		"a contract that passes tokens on": {ramp.Burn,
			rig.Tx{From: rig.Player, To: rig.Vault, Transfers: burn(rig.Hidden, 500).Transfers}, 20 * time.Minute, nil,
			nil, true},
		"sent by the ramp": {ramp.Burn,
			rig.Tx{From: rig.Payer, To: rig.Hidden, Transfers: burn(rig.Hidden, 500).Transfers},
			20 * time.Minute, nil, nil, true},
		"decimals unreadable": {ramp.Burn, burn(zero, 500), 20 * time.Minute, nil,
			func(_ *rampproof.Config, n *rig.Node) { n.Decimals = "" }, true},
		"it ended another's mint": {ramp.Mint, mint(500), 20 * time.Minute,
			another(rig.Friend, ramp.Mint, 5, ramp.OrderSucceeded), nil, true},
		"it ended another's burn": {ramp.Burn, burn(zero, 500), 20 * time.Minute,
			another(rig.Friend, ramp.Burn, 5, ramp.OrderSucceeded), nil, true},

		"it ended an order of another session with the wallet": {ramp.Burn, burn(zero, 500), 20 * time.Minute,
			of("session-9", another(rig.Player, ramp.Burn, 5, ramp.OrderSucceeded)), nil, true},
		"it ended an order of the session": {ramp.Burn, burn(zero, 500), 20 * time.Minute,
			another(rig.Player, ramp.Burn, 5, ramp.OrderSucceeded), nil, false},
		"it ended another's mint, and minted for the player, too": {ramp.Mint, with(mint(500), zero, rig.Friend),
			20 * time.Minute, another(rig.Friend, ramp.Mint, 5, ramp.OrderSucceeded), nil, true},
		"it ended another's burn, and burned the player's tokens, too": {ramp.Burn,
			with(burn(zero, 500), rig.Friend, zero), 20 * time.Minute,
			another(rig.Friend, ramp.Burn, 5, ramp.OrderSucceeded), nil, true},
		"it ended another's mint, and minted dust for the player": {ramp.Mint, with(mint(4), zero, rig.Friend),
			20 * time.Minute, another(rig.Friend, ramp.Mint, 5, ramp.OrderSucceeded), nil, false},

		"it ended an order of the player of another amount": {ramp.Mint, mint(500), time.Minute,
			another(rig.Player, ramp.Mint, 90, ramp.OrderSucceeded), nil, true},
		"it ended a smaller burn of the player": {ramp.Burn, burn(zero, 500), time.Minute,
			another(rig.Player, ramp.Burn, 3, ramp.OrderSucceeded), nil, true},
		"it ended an order of the player as a failure": {ramp.Mint, mint(490), time.Minute,
			another(rig.Player, ramp.Mint, 5, ramp.OrderFailed), nil, true},
		"it ended a burn of the player, and decimals are unreadable": {ramp.Burn, burn(zero, 500), time.Minute,
			another(rig.Player, ramp.Burn, 5, ramp.OrderSucceeded),
			func(_ *rampproof.Config, n *rig.Node) { n.Decimals = "" }, true},
		"a mint that the player passed on": {ramp.Mint,
			rig.Tx{From: rig.Friend, To: rig.Hidden,
				Transfers: []ramp.Transfer{rig.Moved(zero, rig.Player, 500), rig.Moved(rig.Player, rig.Friend, 500)}},
			time.Minute, nil, nil, true},
		"a mint through another account": {ramp.Mint,
			rig.Tx{From: rig.Friend, To: rig.Hidden,
				Transfers: []ramp.Transfer{rig.Moved(zero, rig.Friend, 500), rig.Moved(rig.Friend, rig.Player, 500)}},
			time.Minute, nil, nil, true},
		"burn to an unlisted contract, by unknown payers": {ramp.Burn, byPlayer(burn(rig.Hidden, 500)), time.Minute,
			nil,
			func(p *rampproof.Config, _ *rig.Node) { p.Payers, p.AnyFailure = nil, true }, true},
		"a user that is a contract": {ramp.Mint,
			rig.Tx{From: rig.Friend, To: rig.Player, Transfers: []ramp.Transfer{rig.Moved(rig.Vault, rig.Player, 500)}},
			time.Minute, nil,
			nil, true},

		"nothing happened": {direction: ramp.Mint},
		"it ended an equal order of the player": {ramp.Mint, mint(490), time.Minute,
			another(rig.Player, ramp.Mint, 5, ramp.OrderSucceeded), nil, false},
		"it ended a smaller order of the player": {ramp.Mint, mint(196), time.Minute,
			another(rig.Player, ramp.Mint, 2, ramp.OrderSucceeded), nil, false},
		"it ended a burn of the player": {ramp.Burn, burn(zero, 300), time.Minute,
			another(rig.Player, ramp.Burn, 3, ramp.OrderSucceeded), nil, false},
		"tokens for a friend": {ramp.Burn, byPlayer(burn(rig.Friend, 500)), time.Minute, nil, nil, false},
		"by a contract's creation": {ramp.Burn, rig.Tx{From: rig.Player, Transfers: burn(rig.Friend, 500).Transfers},
			time.Minute, nil, nil, false},
		"a transfer of zero beside another": {ramp.Burn,
			byPlayer(rig.Tx{Transfers: []ramp.Transfer{rig.Moved(rig.Player, rig.Friend, 500),
				rig.Moved(rig.Player, zero, 0)}}),
			time.Minute, nil, nil, false},
		"a transfer to oneself": {ramp.Burn, byPlayer(burn(rig.Player, 500)), time.Minute, nil, nil, false},
		"a transfer of zero, which costs a stranger only gas": {ramp.Mint,
			rig.Tx{From: rig.Friend, To: rig.Token,
				Transfers: []ramp.Transfer{rig.Moved(zero, rig.Player, 0), rig.Moved(rig.Player, zero, 0)}},
			time.Minute, nil, nil, false},
		"another's, an hour before the order": {ramp.Mint, mint(490), -time.Hour,
			another(rig.Player, ramp.Mint, 5, ramp.OrderSucceeded), nil, false},
		"25 hours before the order": {ramp.Mint, mint(500), -25 * time.Hour, nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			proof := &rampproof.Config{Contracts: []common.Address{rig.Vault}, Payers: []common.Address{rig.Payer}}
			orders, store, n := rig.NewOfficeOnNode(t, 48*time.Hour, proof)
			order := rig.OrderOf(c.direction, 5, accepted)
			store.Keep(t, order)
			store.Witness(t, n)
			if c.change != nil {
				c.change(proof, n)
				orders = rig.OfficeOf(t, store, n, proof)
			}
			var hash common.Hash
			if len(c.tx.Transfers) > 0 {
				hash = n.Send(accepted.Add(c.after), c.tx)
			}
			if c.ended != nil {
				store.Keep(t, rig.Ended(*c.ended, c.ended.State, hash, rig.Now))
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
			must.Get(orders.Abandon(t.Context(), order.UUID, against))(t)
		})
	}
}

// What Abandon costs a node, on a chain of a year with a block a second: 60 calls for the search, and 16 for
// the hours in which the chain made a block, one for each of them among these.
func TestAbandonAsksTheNodeLittle(t *testing.T) {
	for name, c := range map[string]struct {
		age, widest time.Duration // of the order; the node's limit, in blocks of a second
		most        int           // calls: beside each query are the chain ID and the newest block
	}{
		"a day":                             {24 * time.Hour, 0, 60 + 16},
		"three weeks":                       {21 * 24 * time.Hour, 0, 60 + 16},
		"a day, 2,000 blocks a query":       {24 * time.Hour, 2000 * time.Second, 500},
		"three weeks, 2,000 blocks a query": {21 * 24 * time.Hour, 2000 * time.Second, 2 * 21 * 86},
	} {
		t.Run(name, func(t *testing.T) {
			orders, store, n := rig.NewOfficeOnNode(t, 365*24*time.Hour, rig.Paid)
			n.Widest, n.Oldest = uint64(c.widest/time.Second), n.BlockAt(rig.Now.Add(-3*c.age-48*time.Hour))
			idle, minted := rig.OrderOf(ramp.Mint, 5, rig.Now.Add(-c.age)),
				rig.OrderOf(ramp.Mint, 5, rig.Now.Add(-c.age))
			minted.UserAddress = rig.Friend.Hex()
			store.Keep(t, idle, minted)
			store.Witness(t, n)
			hash := n.Send(rig.Now.Add(-time.Hour),
				rig.Tx{From: rig.Friend, Payer: rig.Payer, To: rig.Vault,
					Transfers: []ramp.Transfer{rig.Moved(common.Address{}, rig.Friend, 490)}})

			_, err := orders.Abandon(t.Context(), minted.UUID, alice)
			refuses(t, err, hash)
			assert.LessOrEqual(t, n.Calls, c.most)
			n.Calls = 0
			must.Get(orders.Abandon(t.Context(), idle.UUID, alice))(t)
			assert.LessOrEqual(t, n.Calls, c.most)
		})
	}
}

// A node that lies behind has not seen what happened since its newest block, and one that does
// not answer has not said that nothing did.
func TestAbandonRefusesOnANodeThatLiesBehind(t *testing.T) {
	orders, store, n := rig.NewOfficeOnNode(t, 48*time.Hour, rig.Paid)
	n.Begin = n.Begin.Add(-2 * time.Hour)
	order := rig.OrderOf(ramp.Mint, 5, rig.Now.Add(-14*time.Hour))
	store.Keep(t, order)
	_, err := orders.Abandon(t.Context(), order.UUID, alice)
	assert.ErrorContains(t, err, "the node is behind: its newest block is of 2026-11-20T10:00:00Z")
	n.Head += 7100
	n.Behind = 14 * 3600 // of one behind the same address
	_, err = orders.Abandon(t.Context(), order.UUID, alice)
	assert.ErrorIs(t, err, ramp.ErrNotFound)
	n.Behind = 0
	n.Send(rig.Now.Add(-13*time.Hour),
		rig.Tx{From: rig.Player, Payer: rig.Payer, To: rig.Vault,
			Transfers: []ramp.Transfer{rig.Moved(common.Address{}, rig.Player, 490)}})
	for _, n.Down = range []string{"eth_getLogs", "eth_getTransactionReceipt"} {
		_, err = orders.Abandon(t.Context(), order.UUID, alice)
		assert.ErrorContains(t, err, "read the chain: ")
	}
	n.Down = ""
	store.Witness(t, n)
	store.Calls = 0
	must.Get(orders.Show(t.Context(), order.UUID))(t)
	for calls := store.Calls; calls > 0; calls-- { // orders that ended, those of the user, and that of the transaction
		store.Calls, store.Failing = 0, calls
		_, err = orders.Show(t.Context(), order.UUID)
		assert.ErrorContains(t, err, "the database is down")
	}
	n.Down, store.Failing = "eth_getLogs", 0
	_, err = orders.Reconcile(t.Context(), rig.Now.Add(-time.Hour), time.Time{})
	assert.ErrorContains(t, err, "ramp: reconcile: ramp: batch: HTTP 503")
	n.Down = ""
	n.Sent = slices.DeleteFunc(n.Sent, func(tx rig.Tx) bool { return tx.From == rig.Player })
	must.Get(orders.Abandon(t.Context(), order.UUID, alice))(t)
}

// byHost are nodes with addresses of their own.
type byHost map[string]*rig.Node

func (b byHost) RoundTrip(r *http.Request) (*http.Response, error) { return b[r.URL.Host].RoundTrip(r) }

// A fallback that lies behind leaves out the logs that it has not seen.
func TestTheLogsOfAFallbackThatLiesBehindAreNotTaken(t *testing.T) {
	_, store, n := rig.NewOfficeOnNode(t, 24*time.Hour, rig.Paid)
	order := rig.OrderOf(ramp.Mint, 5, rig.Now.Add(-14*time.Hour))
	store.Keep(t, order)
	behind := *n
	behind.Head -= 10 * 3600
	n.Down = "eth_getLogs"
	n.Send(rig.Now.Add(-9*time.Hour),
		rig.Tx{From: rig.Player, Payer: rig.Payer, To: rig.Vault,
			Transfers: []ramp.Transfer{rig.Moved(common.Address{}, rig.Player, 490)}})
	both := &http.Client{Transport: byHost{"first": n, "second": &behind}}
	reads := func() *rig.Office { // the first node again
		chain := must.Get(ramp.NewRPC(ramp.RPCConfig{URL: "https://first", ChainID: 1112, Retries: -1,
			FallbackURL: "https://second", HTTPClient: both, Logger: rig.Quiet}))(t)
		return must.Get(rig.NewOffice(rig.Config{Store: store, Proof: rig.ProofOn(t, chain, rig.Paid),
			Products: rampbooks.Always(rig.Product), Now: func() time.Time { return rig.Now }, Logger: rig.Quiet}))(t)
	}
	const want = "the node is behind: its newest block is of 2026-11-20T02:00:00Z"
	_, err := reads().Abandon(t.Context(), order.UUID, alice)
	assert.ErrorContains(t, err, want)
	_, err = reads().Reconcile(t.Context(), rig.Now.Add(-3*time.Hour), time.Time{})
	assert.ErrorContains(t, err, want)
}

// Without a user or a contract, nobody can look for the transaction of an order.
func TestAbandonRefusesAnOrderThatNoTransactionCanBeFoundFor(t *testing.T) {
	for _, change := range []func(*ramp.Order){func(o *ramp.Order) { o.UserAddress = "alice" },
		func(o *ramp.Order) { o.Intent.To[0].ID = "token-1" }} {
		orders, store, _ := rig.NewOfficeOnNode(t, 24*time.Hour, rig.Paid)
		order := rig.OrderOf(ramp.Mint, 5, rig.Now.Add(-14*time.Hour))
		change(&order)
		store.Keep(t, order)
		_, err := orders.Abandon(t.Context(), order.UUID, alice)
		assert.ErrorContains(t, err, "has no user address or no token contract")
	}
}

// Until 13 hours have passed, the transaction of an order may be pending: giving back what
// then becomes tokens pays twice. Without a node, nobody knows whether it is on the chain.
func TestAbandonRefusesWhileTheResultMayCome(t *testing.T) {
	d := newStudio(t)
	d.Witness(t)
	order := d.Place(t, d.Service.Mint, ramptest.StaysPending())
	blind := must.Get(rig.NewOffice(rig.Config{Store: d.Store, Now: d.Service.Now, Logger: rig.Quiet}))(t)
	decide := func(o *rig.Office, flags ...string) error {
		_, err := rig.RunCommand(t, o, "abandon",
			append(flags, "-who", "alice", "-reason", "case 18", order.UUID.String())...)
		return err
	}
	d.Service.Advance(13*time.Hour - 2*time.Minute)
	assert.ErrorContains(t, decide(d.Office), "wait, or abandon it early")
	assert.ErrorContains(t, decide(d.Office, "-against-evidence", "-without-evidence"), "wait, or abandon it early",
		"a chain that is ignored makes no order older")
	assert.ErrorContains(t, decide(blind, "-early"), "no node is configured")
	assert.EqualValues(t, 900, d.Gold)
	require.NoError(t, d.Service.Deliver(t.Context(), order, ramptest.Succeeded), "the transaction is mined after all")
	assert.Error(t, decide(d.Office, "-early", "-against-evidence", "-without-evidence"))
	assert.EqualValues(t, 900, d.Gold)

	for _, flags := range [][]string{{"-early"}, {"-early", "-against-evidence", "-without-evidence"}, nil} {
		order = d.Place(t, d.Service.Mint, ramptest.StaysPending())
		if flags == nil {
			d.Service.Advance(13 * time.Hour)
		}
		before := d.Gold
		require.NoError(t, decide(d.Office, flags...))
		assert.EqualValues(t, 100, d.Gold-before)
	}
}
