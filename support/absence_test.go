package support_test

import (
	"context"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/racedetector"
	"github.com/token-ramp/ramp-go/internal/test/rig"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/support"
)

var (
	against = support.Decision{Who: "alice", Reason: "case 18", AgainstEvidence: true}
	without = support.Decision{Who: "alice", Reason: "case 18", WithoutEvidence: true}
)

// absence is a mint of the player that has waited for 20 hours, on a node that a test breaks.
type absence struct {
	*rig.Office
	store *rig.Store
	node  *rig.Node
	order ramp.Order
}

// strangers is a mint of the stranger.
var strangers = []ramp.Transfer{rig.Moved(common.Address{}, rig.Stranger, 98)}

func newAbsence(t *testing.T) *absence {
	t.Helper()
	a := new(absence)
	a.Office, a.store, a.node = rig.NewOfficeOnNode(t, 72*time.Hour, &rampproof.Config{
		Payers: []common.Address{rig.Payer}, Contracts: []common.Address{rig.Vault}})
	a.order = rig.OrderOf(ramp.Mint, 5, rig.Now.Add(-20*time.Hour))
	a.store.Keep(t, a.order)
	return a
}

// minted sends the mint of the order, so long after it was accepted.
func (a *absence) minted(after time.Duration) common.Hash {
	return a.node.Send(a.order.AcceptedAt.Add(after),
		rig.Tx{From: rig.Player, Payer: rig.Payer, To: rig.Vault,
			Transfers: []ramp.Transfer{rig.Moved(common.Address{}, rig.Player, 490)}})
}

func (a *absence) abandon(t *testing.T, d support.Decision) error {
	t.Helper()
	_, err := a.Abandon(t.Context(), a.order.UUID, d)
	return err
}

func (a *absence) show(t *testing.T) *support.Report {
	t.Helper()
	return must.Get(a.Show(t.Context(), a.order.UUID))(t)
}

// A node answers eth_getLogs with an empty list, because what was there is pruned, not built
// or not downloaded, and has all receipts.
func TestAnEmptyListIsNoAbsence(t *testing.T) {
	for name, lists := range map[string]func(*absence) func(*rig.Tx) bool{
		"nothing": func(*absence) func(*rig.Tx) bool { return func(*rig.Tx) bool { return false } },
		"the last hour": func(a *absence) func(*rig.Tx) bool {
			return func(tx *rig.Tx) bool { return tx.Block > a.node.Head-3600 }
		},
		"all but the last hour": func(a *absence) func(*rig.Tx) bool {
			return func(tx *rig.Tx) bool { return tx.Block < a.node.Head-3600 }
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAbsence(t)
			a.store.Witness(t, a.node) // half an hour ago
			first := rig.OrderOf(ramp.Mint, 1, rig.Now.Add(-30*time.Hour))
			first.UserAddress = rig.Stranger.Hex()
			hash := a.node.Send(rig.Now.Add(-29*time.Hour), rig.Tx{Payer: rig.Payer, Transfers: strangers})
			a.store.Keep(t, rig.Ended(first, ramp.OrderSucceeded, hash, rig.Now.Add(-28*time.Hour)))
			require.Empty(t, a.show(t).Incomplete)
			own := a.minted(time.Minute)
			refuses(t, a.abandon(t, alice), own)

			a.node.Lists = lists(a)
			const want = ", and lists none of its events: its index is broken, pruned or not built yet"
			assert.Contains(t, a.show(t).Incomplete, want)
			assert.Contains(t, a.show(t).Text(), "\n          there may be others: the node shows transaction 0x")
			if name == "all but the last hour" {
				refuses(t, a.abandon(t, alice), own)
				refuses(t, a.abandon(t, without), own)
				return
			}
			assert.ErrorContains(t, a.abandon(t, alice), "use another node, or decide without evidence")
			assert.ErrorContains(t, a.abandon(t, against), "use another node, or decide without evidence")
			require.NoError(t, a.abandon(t, without))
		})
	}
}

// Without an order that ended, nobody knows whether the node lists anything: that nothing was
// found needs a person's word.
func TestWithoutAWitnessNothingIsAbsent(t *testing.T) {
	for name, keep := range map[string]func(*testing.T, *absence){
		"no other order": func(*testing.T, *absence) {},
		"one that waits": func(t *testing.T, a *absence) {
			a.node.Send(rig.Now.Add(-10*time.Hour), rig.Tx{Payer: rig.Payer, Transfers: strangers})
			o := rig.OrderOf(ramp.Mint, 1, rig.Now.Add(-11*time.Hour))
			o.UserAddress = rig.Stranger.Hex()
			a.store.Keep(t, o)
		},
		"one that failed": func(t *testing.T, a *absence) {
			hash := a.node.Send(rig.Now.Add(-10*time.Hour), rig.Tx{Failed: true, Payer: rig.Payer})
			o := rig.OrderOf(ramp.Mint, 1, rig.Now.Add(-11*time.Hour))
			a.store.Keep(t, rig.Ended(o, ramp.OrderFailed, hash, rig.Now.Add(-9*time.Hour)))
		},
		"one of long ago": func(t *testing.T, a *absence) {
			hash := a.node.Send(rig.Now.Add(-60*time.Hour), rig.Tx{Payer: rig.Payer, Transfers: strangers})
			o := rig.OrderOf(ramp.Mint, 1, rig.Now.Add(-61*time.Hour))
			o.UserAddress = rig.Stranger.Hex()
			a.store.Keep(t, rig.Ended(o, ramp.OrderSucceeded, hash, rig.Now.Add(-59*time.Hour)))
		},
		"one whose transaction is unknown": func(t *testing.T, a *absence) {
			o := rig.OrderOf(ramp.Mint, 1, rig.Now.Add(-11*time.Hour))
			a.store.Keep(t, rig.Ended(o, ramp.OrderSucceeded, common.Hash{7}, rig.Now.Add(-9*time.Hour)))
		},
		"one of the other direction": func(t *testing.T, a *absence) {
			burn := []ramp.Transfer{rig.Moved(rig.Stranger, common.Address{}, 100)}
			hash := a.node.Send(rig.Now.Add(-10*time.Hour), rig.Tx{Payer: rig.Payer, Transfers: burn})
			o := rig.OrderOf(ramp.Burn, 1, rig.Now.Add(-11*time.Hour))
			o.UserAddress = rig.Stranger.Hex()
			a.store.Keep(t, rig.Ended(o, ramp.OrderSucceeded, hash, rig.Now.Add(-9*time.Hour)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAbsence(t)
			keep(t, a)
			const want = "nothing shows that the node lists what happened: " +
				"no other mint has ended by a transaction in these blocks"
			assert.Equal(t, want, a.show(t).Incomplete)
			assert.ErrorContains(t, a.abandon(t, alice), want)
			assert.ErrorContains(t, a.abandon(t, against), want)
			require.NoError(t, a.abandon(t, without))
		})
	}

	a := newAbsence(t) // in a store that lists nothing
	orders := must.Get(rig.NewOffice(rig.Config{
		Store: a.store.Store, Proof: rig.ProofOn(t, a.node.RPC(t), rig.Paid), Now: func() time.Time { return rig.Now },
		Logger: rig.Quiet,
	}))(t)
	_, err := orders.Abandon(t.Context(), a.order.UUID, alice)
	assert.ErrorContains(t, err, "nothing shows that the node lists what happened")
}

// The clock of the server was ahead when it accepted the order, so that its mint seems to be
// older.
func TestAMintByAClockThatWasAheadIsFound(t *testing.T) {
	for _, ahead := range []time.Duration{20 * time.Minute, 23 * time.Hour} {
		a := newAbsence(t)
		a.store.Witness(t, a.node)
		own := a.minted(-ahead)
		require.Len(t, a.show(t).Candidates, 1)
		early := alice
		early.Early = true
		err := a.abandon(t, early)
		refuses(t, err, own)
		assert.ErrorContains(t, err, "is "+ahead.String()+" older than the order: "+evidence.ClocksDiffer)

		// What an older order explains is no candidate, whether it has ended or waits.
		other := rig.OrderOf(ramp.Mint, 5, a.order.AcceptedAt.Add(-ahead-time.Minute))
		a.store.Keep(t, other)
		assert.Empty(t, a.show(t).Candidates)
		a.store.Keep(t, rig.Ended(other, ramp.OrderSucceeded, own, rig.Now))
		assert.Empty(t, a.show(t).Candidates)
		require.NoError(t, a.abandon(t, alice))
	}
}

// A node shows nothing about an order of the other network, which must be named with the node.
func TestANodeDecidesNothingOnTheOtherNetwork(t *testing.T) {
	a := newAbsence(t)
	a.store.Witness(t, a.node)
	a.order.Network = ramp.Mainnet
	a.store.Keep(t, a.order)
	for _, d := range []support.Decision{alice, against, without} {
		assert.ErrorContains(t, a.abandon(t, d), "mainnet, and not testnet")
		_, err := a.Finish(t.Context(), a.order.UUID, a.minted(time.Minute), d)
		assert.ErrorContains(t, err, "mainnet, and not testnet")
	}
	_, err := rampproof.New(rampproof.Config{Chain: a.node.RPC(t), Payers: []common.Address{rig.Payer}})
	assert.ErrorContains(t, err, "Config.Network must be mainnet or testnet")
	proof := rig.ProofOn(t, a.node.RPC(t), rig.Paid)
	_, err = rig.NewOffice(rig.Config{Store: a.store, Proof: proof, Network: ramp.Mainnet})
	assert.ErrorContains(t, err, "Config.Network must be that of Proof, the testnet")
}

// The name of a node leads to one of another chain since the first call.
func TestANodeThatChangedItsChainShowsNothing(t *testing.T) {
	a := newAbsence(t)
	a.store.Witness(t, a.node)
	require.Empty(t, a.show(t).Incomplete)
	a.node.ChainID = 7
	a.node.Lists = func(*rig.Tx) bool { return false }
	_, err := a.Show(t.Context(), a.order.UUID)
	assert.ErrorIs(t, err, ramp.ErrWrongChain)
	assert.ErrorIs(t, a.abandon(t, alice), ramp.ErrWrongChain)
	_, err = a.Reconcile(t.Context(), rig.Now.Add(-time.Hour), time.Time{})
	assert.ErrorIs(t, err, ramp.ErrWrongChain)
}

// A chain that makes no empty blocks has a newest block of two hours ago, and its node is at
// its head.
func TestAChainWithoutEmptyBlocksIsNotBehind(t *testing.T) {
	a := newAbsence(t)
	a.store.Witness(t, a.node)
	a.node.Head = a.node.BlockAt(rig.Now.Add(-2 * time.Hour))
	const behind = "the node is behind: its newest block is of 2026-11-20T10:00:00Z"
	assert.Contains(t, a.show(t).Incomplete, behind, "the order of half an hour ago ended in a block that it lacks")
	assert.ErrorContains(t, a.abandon(t, alice), behind)
	a.store.Orders = map[uuid.UUID]ramp.Order{}
	a.store.Keep(t, a.order)

	o := rig.OrderOf(ramp.Mint, 1, rig.Now.Add(-3*time.Hour))
	o.UserAddress = rig.Stranger.Hex()
	hash := a.node.Send(rig.Now.Add(-2*time.Hour), rig.Tx{Payer: rig.Payer, Transfers: strangers})
	a.store.Keep(t, rig.Ended(o, ramp.OrderSucceeded, hash, rig.Now.Add(-time.Hour)))
	own := a.minted(time.Minute)
	assert.Empty(t, a.show(t).Incomplete)
	refuses(t, a.abandon(t, alice), own)
	refuses(t, a.abandon(t, without), own)
	a.node.Sent = a.node.Sent[1:]
	require.NoError(t, a.abandon(t, alice))

	young := rig.OrderOf(ramp.Mint, 5, rig.Now.Add(-14*time.Hour))
	a.store.Keep(t, young)
	_, err := a.Abandon(t.Context(), young.UUID, alice)
	assert.ErrorContains(t, err, behind, "its transaction may be in the block that is missing")
	must.Get(a.Abandon(t.Context(), young.UUID, without))(t)
}

// A node stops after 100 events and says nothing. Anybody can send the player so many.
func TestAListThatIsCutOffHidesNoTransaction(t *testing.T) {
	a := newAbsence(t)
	a.store.Witness(t, a.node)
	for range 120 {
		a.minted(2 * time.Hour)
	}
	own := a.minted(time.Minute)
	a.node.MostLogs = 100
	report := a.show(t)
	assert.True(t, slices.ContainsFunc(report.Candidates, func(c support.Candidate) bool { return c.Hash == own }))
	assert.Len(t, report.Candidates, 121)
}

// The node lists the events of a transaction of the player, and does not return it.
func TestATransactionThatIsNotShownHidesNoOther(t *testing.T) {
	a := newAbsence(t)
	a.store.Witness(t, a.node)
	own := a.minted(time.Minute)
	unknown := a.minted(time.Hour)
	a.node.Hides = func(tx *rig.Tx) bool { return tx.Hash == unknown }
	report := a.show(t)
	require.Len(t, report.Candidates, 2)
	assert.Equal(t, own, report.Candidates[0].Hash)
	assert.Empty(t, report.Candidates[0].Unproven)
	hidden := report.Candidates[1]
	assert.Equal(t, unknown, hidden.Hash)
	assert.Equal(t, a.order.AcceptedAt.Add(time.Hour), hidden.Time)
	require.Len(t, hidden.Transfers, 1)
	assert.Equal(t, rig.Moved(common.Address{}, rig.Player, 490).Value, hidden.Transfers[0].Value)
	assert.Contains(t, hidden.Unproven, "the node lists its events, and does not return it: ")
	refuses(t, a.abandon(t, alice), own)
	a.node.Lists = func(tx *rig.Tx) bool { return tx.Hash != own }
	refuses(t, a.abandon(t, alice), unknown)
}

// Anybody can send a wallet many transfers of nearly nothing.
func TestDustHidesNoMint(t *testing.T) {
	racedetector.Skip(t)
	a := newAbsence(t)
	a.store.Witness(t, a.node)
	dust := rig.Tx{From: rig.Friend, To: rig.Token, Transfers: []ramp.Transfer{rig.Moved(rig.Friend, rig.Player, 4)}}
	dust.Block = a.node.BlockAt(a.order.AcceptedAt) + 60
	for i := range 10_001 {
		dust.Hash = common.Hash{9, byte(i >> 8), byte(i)}
		a.node.Sent = append(a.node.Sent, dust)
	}
	slices.SortStableFunc(a.node.Sent, func(x, y rig.Tx) int { return int(x.Block) - int(y.Block) })
	a.node.Calls = 0
	report := a.show(t)
	assert.Empty(t, report.Candidates)
	assert.Equal(t, 10_001, report.Dust)
	const said = "\n          not listed, because they moved less than a hundredth of its amount: 10001\n"
	assert.Contains(t, report.Text(), said)
	assert.Less(t, a.node.Calls, 100, "dust is not read")
	own := a.minted(time.Hour)
	require.Len(t, a.show(t).Candidates, 1)
	refuses(t, a.abandon(t, alice), own)
	a.node.Sent = slices.DeleteFunc(a.node.Sent, func(tx rig.Tx) bool { return tx.Hash == own })
	require.NoError(t, a.abandon(t, alice))
}

// The ramp's transaction failed, because somebody who saw it in public sent the mint first.
func TestAFailedTransactionGivesNothingBackThatWasMinted(t *testing.T) {
	a := newAbsence(t)
	a.store.Witness(t, a.node)
	failed := a.node.Send(a.order.AcceptedAt.Add(2*time.Minute),
		rig.Tx{Failed: true, From: rig.Payer, Payer: rig.Payer, To: rig.Vault})
	own := a.node.Send(a.order.AcceptedAt.Add(time.Minute),
		rig.Tx{From: rig.Player, To: rig.Vault,
			Transfers: []ramp.Transfer{rig.Moved(common.Address{}, rig.Player, 490)}})
	for _, d := range []support.Decision{alice, against, without} {
		_, err := a.Finish(t.Context(), a.order.UUID, failed, d)
		refuses(t, err, own)
	}
	a.node.Sent = slices.DeleteFunc(a.node.Sent, func(tx rig.Tx) bool { return tx.Hash == own })
	a.node.Lists = func(*rig.Tx) bool { return false }
	_, err := a.Finish(t.Context(), a.order.UUID, failed, alice)
	assert.ErrorContains(t, err, "and lists none of its events")
	a.node.Lists = nil
	step := must.Get(a.Finish(t.Context(), a.order.UUID, failed, alice))(t)
	assert.Equal(t, ramp.GiveBack, step.Effect.Kind)
}

// A person knows why proof refuses a transaction: a bundler sent it, or it settles several
// players. It must be confirmed, and nobody else's.
func TestAPersonMayFinishWhatProofRefuses(t *testing.T) {
	bundler, entry := common.HexToAddress("0xb0d1e4"), common.HexToAddress("0xe4789")
	for _, d := range []ramp.Direction{ramp.Mint, ramp.Burn} {
		a := newAbsence(t)
		a.store.Witness(t, a.node)
		order := rig.OrderOf(d, 5, rig.Now.Add(-10*time.Hour))
		a.store.Keep(t, order)
		tx := rig.Tx{From: bundler, To: entry, Transfers: []ramp.Transfer{
			// with another player's mint
			rig.Moved(rig.Player, common.Address{}, 500), rig.Moved(common.Address{}, rig.Friend, 490)}}
		if d == ramp.Mint {
			tx.Transfers = []ramp.Transfer{rig.Moved(common.Address{}, rig.Friend, 490),
				rig.Moved(rig.Friend, rig.Stranger, 490)}
		}
		hash := a.node.Send(order.AcceptedAt.Add(time.Minute), tx)
		_, err := a.Finish(t.Context(), order.UUID, hash, alice)
		require.ErrorIs(t, err, rampproof.ErrNotProven)
		_, err = a.Finish(t.Context(), order.UUID, hash, without)
		require.ErrorIs(t, err, rampproof.ErrNotProven)
		step := must.Get(a.Finish(t.Context(), order.UUID, hash, against))(t)
		assert.Equal(t, ramp.OrderSucceeded, step.Order.State)
		assert.Equal(t, "alice: case 18", step.Order.Reason)

		again := rig.OrderOf(d, 5, rig.Now.Add(-9*time.Hour))
		a.store.Keep(t, again)
		_, err = a.Finish(t.Context(), again.UUID, hash, against)
		assert.ErrorIs(t, err, ramp.ErrOrderConflict, "it has ended another order")
		soon, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err = a.Finish(soon, again.UUID, common.Hash{8}, against)
		assert.ErrorIs(t, err, ramp.ErrNotFound)
	}

	// A failure that proof refuses gives back what nothing else shows, after 13 hours.
	a := newAbsence(t)
	a.store.Witness(t, a.node)
	young := rig.OrderOf(ramp.Mint, 5, rig.Now.Add(-10*time.Hour))
	a.store.Keep(t, young)
	failed := a.node.Send(rig.Now.Add(-9*time.Hour), rig.Tx{Failed: true, From: bundler, To: entry})
	_, err := a.Finish(t.Context(), young.UUID, failed, alice)
	assert.ErrorIs(t, err, rampproof.ErrNotProven)
	_, err = a.Finish(t.Context(), young.UUID, failed, against)
	assert.ErrorContains(t, err, "its result may come until ")
	step := must.Get(a.Finish(t.Context(), a.order.UUID, failed, against))(t)
	assert.Equal(t, ramp.GiveBack, step.Effect.Kind)
}

// Amounts are read by people: in tokens, as far as their decimals are known.
func TestAReportHasAmountsInTokens(t *testing.T) {
	for decimals, want := range map[string]string{
		"": "4900000000000000000 units of ", "12": "4.9 of ", "02": "49000000000000000 of ",
	} {
		a := newAbsence(t)
		a.store.Witness(t, a.node)
		if a.node.Decimals = ""; decimals != "" {
			a.node.Decimals = "0x" + strings.Repeat("0", 62) + decimals
		}
		a.minted(time.Minute)
		moved := "\n    moved " + want + rig.Token.Hex() + " from " + common.Address{}.Hex() +
			" to " + rig.Player.Hex() + "\n"
		assert.Contains(t, a.show(t).Text(), moved)
	}
	one := []ramp.Transfer{{Token: rig.Token, TokenID: big.NewInt(7)}}
	piece := support.Report{Candidates: []support.Candidate{{Transfers: one}}}
	assert.Contains(t, piece.Text(), "\n    moved piece 7 of "+rig.Token.Hex()+" from ")
	assert.Contains(t, piece.Text(), ", to a new contract\n")

	// A burn that gave the player tokens burned nothing.
	orders, store, n := rig.NewOfficeOnNode(t, 72*time.Hour, rig.Paid)
	order := rig.OrderOf(ramp.Burn, 10, rig.Now.Add(-20*time.Hour))
	store.Keep(t, order)
	tx := rig.Tx{From: rig.Player, Payer: rig.Payer, To: rig.Vault,
		Transfers: []ramp.Transfer{rig.Moved(rig.Vault, rig.Player, 1000)}}
	hash := n.Send(rig.Now.Add(-19*time.Hour), tx)
	_, err := orders.Finish(t.Context(), order.UUID, hash, alice)
	assert.ErrorContains(t, err,
		"it burns 0 of 10 tokens of the contract "+rig.Token.Hex()+" of the user "+rig.Player.Hex()+", who gains 10")
}
