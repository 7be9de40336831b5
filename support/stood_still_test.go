package support_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/rig"
	"github.com/token-ramp/ramp-go/support"
)

// While a chain stands still, the order's transaction waits with it, and comes when the chain goes on. So the
// hours of the chain count, not those of the clock: what was given back before would be paid twice.
func TestAbandonWaitsUntilTheChainHasHadItsHours(t *testing.T) {
	const minute, hour = time.Minute, time.Hour
	for name, c := range map[string]struct {
		still, goesOn time.Duration // after the order
		now           time.Duration // after the order
		hours         int           // that count; 13 lets the order be abandoned
	}{
		"it ended 10 minutes ago":         {minute, 14 * hour, 14*hour + 10*minute, 1},
		"it ended 70 minutes ago":         {minute, 14 * hour, 15*hour + 10*minute, 2},
		"it ended 5 hours ago":            {minute, 14 * hour, 19 * hour, 6},
		"it ended 11 hours ago":           {minute, 14 * hour, 25 * hour, 12},
		"it ended 12 hours ago":           {minute, 14 * hour, 26 * hour, 13},
		"it began half an hour before":    {-30 * minute, 13*hour + 30*minute, 14 * hour, 1},
		"it lasted from hour 8 to 11":     {8*hour - minute, 11 * hour, 14 * hour, 11},
		"it lasted from 8:30 to 9:20":     {8*hour + 30*minute, 9*hour + 20*minute, 14 * hour, 13},
		"it began after an order of days": {48 * hour, 62 * hour, 63 * hour, 13},
	} {
		t.Run(name, func(t *testing.T) {
			for _, d := range []ramp.Direction{ramp.Mint, ramp.Burn} {
				orders, store, n := rig.NewOfficeOnNode(t, 365*24*hour, rig.Paid)
				accepted := rig.Now.Add(-c.now)
				n.StandStill(accepted.Add(c.still), accepted.Add(c.goesOn))
				order := rig.OrderOf(d, 5, accepted)
				store.Keep(t, order)
				witnessIn(t, store, n, d, rig.Now.Add(-5*minute))

				report := must.Get(orders.Show(t.Context(), order.UUID))(t)
				require.Empty(t, report.Incomplete)
				require.NotNil(t, report.ChainHours)
				assert.Equal(t, c.hours, *report.ChainHours)
				step, err := orders.Abandon(t.Context(), order.UUID, alice)
				if c.hours == 13 {
					require.NoError(t, err)
					assert.Equal(t, support.NextAbandon, report.Advice.Next)
					assert.Equal(t, ramp.OrderAbandoned, step.Order.State)
					continue
				}
				require.ErrorContains(t, err, "the chain has made blocks in only ")
				assert.Equal(t, support.NextWait, report.Advice.Next)
				assert.Contains(t, report.Advice.Do, "may have waited with the chain: 13 are needed")
			}
		})
	}
}

// witnessIn keeps an order of the stranger that has ended by a transaction at a time.
func witnessIn(t *testing.T, store *rig.Store, n *rig.Node, d ramp.Direction, at time.Time) {
	t.Helper()
	transfer := rig.Moved(common.Address{}, rig.Stranger, 98)
	if d == ramp.Burn {
		transfer = rig.Moved(rig.Stranger, common.Address{}, 100)
	}
	o := rig.OrderOf(d, 1, at.Add(-time.Minute))
	o.UserAddress, o.SessionID = rig.Stranger.Hex(), "session-2"
	hash := n.Send(at, rig.Tx{From: rig.Stranger, Payer: rig.Payer, To: rig.Vault,
		Transfers: []ramp.Transfer{transfer}})
	store.Keep(t, rig.Ended(o, ramp.OrderSucceeded, hash, at.Add(time.Minute)))
}

// On a chain that makes no empty blocks, an hour without a block says nothing.
func TestAChainWithoutEmptyBlocksCountsTheHoursOfTheClock(t *testing.T) {
	_, store, n := rig.NewOfficeOnNode(t, 365*24*time.Hour, rig.Paid)
	accepted := rig.Now.Add(-14 * time.Hour)
	n.StandStill(accepted.Add(time.Minute), rig.Now.Add(-10*time.Minute))
	order := rig.OrderOf(ramp.Mint, 5, accepted)
	store.Keep(t, order)
	witnessIn(t, store, n, ramp.Mint, rig.Now.Add(-5*time.Minute))
	orders := must.Get(support.New(support.Config{Store: store, Proof: rig.ProofOn(t, n.RPC(t), rig.Paid),
		NoEmptyBlocks: true, Now: func() time.Time { return rig.Now }, Logger: rig.Quiet}))(t)
	report := must.Get(orders.Show(t.Context(), order.UUID))(t)
	assert.Nil(t, report.ChainHours)
	assert.False(t, strings.Contains(report.Text(), "made a block"))
	assert.Equal(t, support.NextAbandon, report.Advice.Next)
	must.Get(orders.Abandon(t.Context(), order.UUID, alice))(t)
}

// Hours are counted last: an order that cannot be abandoned anyway costs no calls for them.
func TestHoursAreCountedOnlyIfNothingElseSpeaksAgainstAnAbandon(t *testing.T) {
	orders, store, n := rig.NewOfficeOnNode(t, 365*24*time.Hour, rig.Paid)
	old := rig.Now.Add(-14 * time.Hour)
	young, alone := rig.OrderOf(ramp.Mint, 5, old.Add(2*time.Hour)), rig.OrderOf(ramp.Mint, 5, old)
	minted := rig.OrderOf(ramp.Mint, 5, old)
	minted.UserAddress = rig.Friend.Hex()
	store.Keep(t, alone)
	assert.Nil(t, must.Get(orders.Show(t.Context(), alone.UUID))(t).ChainHours, "no witness")
	store.Witness(t, n)
	store.Keep(t, young, minted)
	n.Send(rig.Now.Add(-time.Hour), rig.Tx{From: rig.Friend, Payer: rig.Payer, To: rig.Vault,
		Transfers: []ramp.Transfer{rig.Moved(common.Address{}, rig.Friend, 490)}})
	assert.Nil(t, must.Get(orders.Show(t.Context(), young.UUID))(t).ChainHours, "too young")
	assert.Nil(t, must.Get(orders.Show(t.Context(), minted.UUID))(t).ChainHours, "a transaction may be its own")
	assert.NotNil(t, must.Get(orders.Show(t.Context(), alone.UUID))(t).ChainHours)
}

// After a reorganization, the player of a mint is owed the assets only after all that an abandon demands.
func TestHoursAreCountedForAMintWhoseTransactionIsUndone(t *testing.T) {
	orders, store, n := rig.NewOfficeOnNode(t, 365*24*time.Hour, rig.Paid)
	at := rig.Now.Add(-14 * time.Hour)
	gone := rig.Ended(rig.OrderOf(ramp.Mint, 5, at), ramp.OrderSucceeded, common.HexToHash("0xbad"),
		at.Add(time.Minute))
	store.Keep(t, gone)
	store.Witness(t, n)
	report := must.Get(orders.Show(t.Context(), gone.UUID))(t)
	require.NotNil(t, report.ChainHours)
	assert.Equal(t, 13, *report.ChainHours)
	assert.Empty(t, report.Candidates)

	n.Send(at.Add(time.Hour), rig.Tx{From: rig.Player, Payer: rig.Payer, To: rig.Vault,
		Transfers: []ramp.Transfer{rig.Moved(common.Address{}, rig.Player, 490)}})
	report = must.Get(orders.Show(t.Context(), gone.UUID))(t)
	assert.Nil(t, report.ChainHours, "another one came in its place")
	assert.Len(t, report.Candidates, 1)
}
