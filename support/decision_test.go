package support_test

import (
	"context"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/support"
)

var alice = support.Decision{Who: "alice", Reason: "case 18"}

// decisions plays each row of the table by which a person decides.
var decisions = map[string]func(t *testing.T){
	`one "proves that the order has ended so"`: func(t *testing.T) {
		for name, c := range map[string]struct {
			burn   bool
			faults []ramptest.Fault
			state  ramp.OrderState
			effect ramp.EffectKind
		}{
			"mint that succeeded": {false, nil, ramp.OrderSucceeded, ramp.Nothing},
			"mint that failed":    {false, []ramptest.Fault{ramptest.TransactionFails()}, ramp.OrderFailed, ramp.GiveBack},
			"burn that succeeded": {true, nil, ramp.OrderSucceeded, ramp.Grant},
			"burn that failed":    {true, []ramptest.Fault{ramptest.TransactionFails()}, ramp.OrderFailed, ramp.Nothing},
		} {
			t.Run(name, func(t *testing.T) {
				d := newStudio(t)
				place := d.service.Mint
				if c.burn {
					place = d.service.Burn
				}
				order := d.place(t, place, append(c.faults, ramptest.ResultNever())...)
				report, err := d.Show(t.Context(), order.UUID)
				require.NoError(t, err)
				require.Len(t, report.Candidates, 1)
				require.NoError(t, report.Candidates[0].Unproven)
				tx := report.Candidates[0].Hash
				_, err = d.Abandon(t.Context(), order.UUID, alice)
				var candidate *support.CandidateError
				assert.ErrorAs(t, err, &candidate)
				d.log.Reset()

				step, err := d.Finish(t.Context(), order.UUID, tx, alice)
				require.NoError(t, err)
				assert.Equal(t, c.state, step.Order.State)
				assert.Equal(t, c.effect, step.Effect.Kind)
				assert.Equal(t, tx.Hex(), step.Order.TxHash)
				record := d.record(t)
				assert.Equal(t, []any{"WARN", "ramp: order finished", order.UUID.String(), "alice", "case 18", string(step.Order.Direction), tx.Hex(), step.Effect.String(), true},
					[]any{record["level"], record["msg"], record["uuid"], record["who"], record["reason"], record["direction"], record["tx_hash"], record["effect"], record["new"]})

				after := d.gold
				step, err = d.Finish(t.Context(), order.UUID, tx, alice)
				require.NoError(t, err)
				assert.False(t, step.New)
				require.NoError(t, d.service.Resend(t.Context(), order), "the result, after all")
				assert.Equal(t, after, d.gold)
			})
		}
	},
	`one "proves", but it failed, the player did not send it, and its input lacks the validator's signature`: func(t *testing.T) {
		d := newStudio(t)
		order := d.place(t, d.service.Mint, ramptest.StaysPending())
		d.session = "session-2"
		other := d.place(t, d.service.Mint, ramptest.TransactionFails(), ramptest.ResultNever())
		report, err := d.Show(t.Context(), order.UUID)
		require.NoError(t, err)
		require.Len(t, report.Candidates, 1)
		c := report.Candidates[0]
		assert.Equal(t, other.TxHash, c.Hash)
		assert.NoError(t, c.Unproven)
		assert.False(t, c.Signed)
		assert.NotEqual(t, report.Order.UserAddress, c.Evidence.From.Hex())
		step, err := d.Finish(t.Context(), order.UUID, other.TxHash, alice)
		require.NoError(t, err)
		assert.Equal(t, ramp.GiveBack, step.Effect.Kind)
	},
	"one has ended another order": func(t *testing.T) {
		d := newStudio(t)
		other := d.place(t, d.service.Mint)
		order := d.place(t, d.service.Mint, ramptest.StaysPending())
		store := &indexed{d.store, other}
		orders, err := support.New(support.Config{Store: store, Chain: d.chain, Proof: &d.proof, Now: d.service.Now})
		require.NoError(t, err)
		report, err := orders.Show(t.Context(), order.UUID)
		require.NoError(t, err)
		require.Len(t, report.Candidates, 1)
		assert.Equal(t, &other.UUID, report.Candidates[0].EndedOther)
		_, err = orders.Finish(t.Context(), order.UUID, other.TxHash, alice)
		assert.ErrorContains(t, err, "tx_hash has ended order "+other.UUID.String())
		assert.EqualValues(t, 800, d.gold)
	},
	`one "does not prove", but its input has the validator's signature`: func(t *testing.T) {
		for _, trick := range []ramptest.Trick{ramptest.FailedCall, ramptest.FailedCreation, ramptest.SignedTransfer} {
			t.Run(string(trick), func(t *testing.T) {
				d := newStudio(t)
				order, tx := d.trick(t, d.service.Mint, trick, true)
				_, err := d.Abandon(t.Context(), order.UUID, alice)
				var candidate *support.CandidateError
				require.ErrorAs(t, err, &candidate)
				assert.Equal(t, tx, candidate.Candidate.Hash)
				assert.EqualValues(t, 900, d.gold)
			})
		}
		for _, trick := range []ramptest.Trick{ramptest.FailedCall, ramptest.FailedCreation, ramptest.SignedTransfer, ramptest.FriendsTransfer} {
			t.Run("burn, "+string(trick), func(t *testing.T) {
				d := newStudio(t)
				d.trick(t, d.service.Burn, trick, true)
			})
		}
	},
	`one "does not prove"`: func(t *testing.T) {
		for _, trick := range []ramptest.Trick{ramptest.SelfTransfer, ramptest.Approval} {
			t.Run("mint, "+string(trick), func(t *testing.T) {
				d := newStudio(t)
				d.trick(t, d.service.Mint, trick, false)
			})
			t.Run("burn, "+string(trick), func(t *testing.T) {
				d := newStudio(t)
				d.trick(t, d.service.Burn, trick, false)
			})
		}
	},
	"there is none": func(t *testing.T) {
		d := newStudio(t)
		order := d.place(t, d.service.Mint, ramptest.StaysPending())
		report, err := d.Show(t.Context(), order.UUID)
		require.NoError(t, err)
		assert.Empty(t, report.Candidates)
		assert.EqualValues(t, 900, d.gold)
		step, err := d.Abandon(t.Context(), order.UUID, alice)
		require.NoError(t, err)
		assert.Equal(t, ramp.OrderAbandoned, step.Order.State)
		assert.EqualValues(t, 1000, d.gold)

		_ = d.service.Deliver(t.Context(), order, ramptest.Succeeded)
		assert.EqualValues(t, 1000, d.gold)
		require.Len(t, d.conflicts, 1)
		assert.Equal(t, order.UUID, d.conflicts[0].Order.UUID)
	},
	"the chain cannot be read": func(t *testing.T) {
		d := newStudio(t)
		order := d.place(t, d.service.Mint, ramptest.ResultNever())
		for name, do := range map[string]func() error{
			"show":    func() error { _, err := d.Show(t.Context(), order.UUID); return err },
			"finish":  func() error { _, err := d.Finish(t.Context(), order.UUID, order.TxHash, alice); return err },
			"abandon": func() error { _, err := d.Abandon(t.Context(), order.UUID, alice); return err },
		} {
			d.service.FailRPC(-32601)
			assert.ErrorIs(t, do(), ramp.RPCMethodNotFound, name)
		}
		d.service.FailRPC(-32601)
		report, _ := d.Show(t.Context(), order.UUID)
		require.NotNil(t, report)
		assert.Equal(t, ramp.OrderAccepted, report.Order.State)
		assert.EqualValues(t, 900, d.gold)
	},
}

// trick plays a trick about an order whose own transaction is in no block, and asserts
// that it is shown as no proof and finishes nothing.
func (d *studio) trick(t *testing.T, place placer, trick ramptest.Trick, signed bool) (*ramptest.Order, common.Hash) {
	t.Helper()
	order := d.place(t, place, ramptest.StaysPending())
	gold := d.gold
	tx, err := d.service.Cheat(t.Context(), order, trick)
	require.NoError(t, err)
	report, err := d.Show(t.Context(), order.UUID)
	require.NoError(t, err)
	require.Len(t, report.Candidates, 1)
	c := report.Candidates[0]
	assert.Equal(t, tx, c.Hash)
	assert.Equal(t, signed, c.Signed)
	assert.ErrorIs(t, c.Unproven, ramp.ErrNotProven)
	_, err = d.Finish(t.Context(), order.UUID, tx, alice)
	assert.ErrorIs(t, err, ramp.ErrNotProven)
	assert.Equal(t, gold, d.gold)
	return order, tx
}

// indexed is a store that knows which transaction ended an order, as a SQLStore does.
type indexed struct {
	ramp.Store
	ended *ramptest.Order
}

func (s *indexed) OrderByTransaction(_ context.Context, hash common.Hash) (ramp.Order, error) {
	if hash == s.ended.TxHash {
		return ramp.Order{UUID: s.ended.UUID}, nil
	}
	return ramp.Order{}, ramp.ErrOrderUnknown
}

// docs/operations.md has the table. Each row is played, and nothing that is not there.
func TestEachRowOfTheTableOfDecisions(t *testing.T) {
	guide, err := os.ReadFile("../docs/operations.md")
	require.NoError(t, err)
	table := regexp.MustCompile(`(?m)^\| the candidates \|.*\n\|[-|]+\|\n((?:\|.*\n)+)`).FindSubmatch(guide)
	require.NotNil(t, table)
	var rows []string
	for _, row := range regexp.MustCompile(`(?m)^\| (.*?) \|`).FindAllSubmatch(table[1], -1) {
		rows = append(rows, string(row[1]))
		if play := decisions[string(row[1])]; assert.NotNil(t, play, "%s", row[1]) {
			t.Run(string(row[1]), play)
		}
	}
	assert.Len(t, rows, len(decisions))
}

// A friend's transfer to the player proves a mint, because a mint that succeeded moves
// nothing: whoever cheats so only loses the way back.
func TestAFriendsTransferEndsAMintAsASuccess(t *testing.T) {
	d := newStudio(t)
	order := d.place(t, d.service.Mint, ramptest.StaysPending())
	tx, err := d.service.Cheat(t.Context(), order, ramptest.FriendsTransfer)
	require.NoError(t, err)
	step, err := d.Finish(t.Context(), order.UUID, tx, alice)
	require.NoError(t, err)
	assert.Equal(t, ramp.Nothing, step.Effect.Kind)
	assert.EqualValues(t, 900, d.gold)
}

// The defaults of the search are those of the guide.
func TestTheSearchBeginsAndEndsWhereTheGuideSays(t *testing.T) {
	d := newStudio(t, func(c *support.Config) { c.Before, c.After = 0, 0 })
	d.service.Advance(time.Hour)
	order := d.mint(t, ramptest.ResultNever())
	report, err := d.Show(t.Context(), order)
	require.NoError(t, err)
	assert.EqualValues(t, (15*time.Minute + time.Hour).Seconds(), report.LastBlock-report.FirstBlock)
}
