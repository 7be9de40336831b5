package support_test

import (
	"context"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/rig"
	"github.com/token-ramp/ramp-go/internal/test/thief"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/support"
)

var alice = support.Decision{Who: "alice", Reason: "case 18"}

// decisions plays each row of the table by which a person decides.
var decisions = map[string]func(t *testing.T){
	`one "proves that the order has ended so"`: func(t *testing.T) {
		for _, effect := range []ramp.EffectKind{ramp.Nothing, ramp.Grant} { // of a mint, and of a burn
			t.Run(effect.String(), func(t *testing.T) {
				d := newStudio(t)
				place := d.Service.Mint
				if effect == ramp.Grant {
					place = d.Service.Burn
				}
				order := d.Place(t, place, ramptest.ResultNever())
				found := d.Candidate(t, order)
				require.Empty(t, found.Unproven)
				tx := found.Hash
				_, err := d.Abandon(t.Context(), order.UUID, alice)
				refuses(t, err, tx)
				d.Log.Reset()

				step := must.Get(d.Finish(t.Context(), order.UUID, tx, alice))(t)
				assert.Equal(t, ramp.OrderSucceeded, step.Order.State)
				assert.Equal(t, effect, step.Effect.Kind)
				assert.Equal(t, tx.Hex(), step.Order.TxHash)
				assert.Equal(t, "alice: case 18", must.Get(d.Show(t.Context(), order.UUID))(t).Order.Reason)
				record := d.Record(t)
				assert.Equal(t,
					[]any{"WARN", "ramp: order finished", order.UUID.String(), "alice", "case 18",
						string(step.Order.Direction), tx.Hex(), step.Effect.String(), true},
					[]any{record["level"], record["msg"], record["uuid"], record["who"], record["reason"],
						record["direction"], record["tx_hash"], record["effect"], record["new"]})

				after := d.Gold
				step = must.Get(d.Finish(t.Context(), order.UUID, tx, alice))(t)
				assert.False(t, step.New)
				require.NoError(t, d.Service.Resend(t.Context(), order), "the result, after all")
				assert.Equal(t, after, d.Gold)
			})
		}
	},
	"several prove it, or one proves it with another amount": func(t *testing.T) { // several orders of a player hang
		for _, direction := range []ramp.Direction{ramp.Mint, ramp.Burn} {
			orders, store, n := rig.NewOfficeOnNode(t, 100*24*time.Hour, &rampproof.Config{AnyFailure: true})
			from, to, net := common.Address{}, rig.Player, int64(98) // percent
			if direction == ramp.Burn {
				from, to, net = to, from, 100
			}
			var hanging []ramp.Order
			var sent []common.Hash
			for i, tokens := range []int64{7, 1, 5} {
				at := rig.Now.Add(time.Duration(i-180) * time.Minute)
				hanging = append(hanging, rig.OrderOf(direction, tokens, at))
				sent = append(sent,
					n.Send(at.Add(time.Second), rig.Tx{Transfers: []ramp.Transfer{rig.Moved(from, to, net*tokens)}}))
			}
			store.Keep(t, hanging...)
			report := must.Get(orders.Show(t.Context(), hanging[2].UUID))(t)
			require.Len(t, report.Candidates, 3)
			assert.Equal(t, sent[2], report.Candidates[0].Hash)
			assert.Equal(t, []bool{false, true},
				[]bool{report.Candidates[0].OtherAmount, report.Candidates[1].OtherAmount})
			assert.Contains(t, report.Candidates[0].AlsoProves, hanging[1].UUID)
			assert.Contains(t, report.Text(), "another amount than the order is about")
			assert.Contains(t, report.Text(), "it would also prove the end of order "+hanging[1].UUID.String())
			_, err := orders.Finish(t.Context(), hanging[2].UUID, sent[0], alice)
			require.ErrorContains(t, err, ", too, which waits: ask the service whose it is")
			store.Keep(t, rig.Ended(hanging[1], ramp.OrderSucceeded, sent[1], rig.Now))
			report = must.Get(orders.Show(t.Context(), hanging[2].UUID))(t)
			assert.NotContains(t, report.Candidates[0].AlsoProves, hanging[1].UUID, "it has ended")
			for _, c := range report.Candidates {
				if c.Hash == sent[0] { // of more than the order is about
					assert.Empty(t, c.Unproven, "finishing accepts it, too, against the evidence")
				}
			}
			must.Get(orders.Finish(t.Context(), hanging[2].UUID, sent[0], against))(t)
		}
	},
	"one has ended another order, and moved enough for both": func(t *testing.T) {
		b := newBatch(t, ramp.Burn, []int64{5, 3}, burns(500, 300))
		id := b.orders[1].UUID
		_, err := b.Finish(t.Context(), id, b.hash, alice)
		require.ErrorContains(t, err, "tx_hash has ended order "+b.orders[0].UUID.String())
		_, err = b.Abandon(t.Context(), id, alice)
		refuses(t, err, b.hash)
		must.Get(b.Finish(t.Context(), id, b.hash, inBatch))(t)
	},
	"one has ended another order": func(t *testing.T) {
		d := newStudio(t)
		d.Witness(t)
		other := d.Place(t, d.Service.Mint)
		order := d.Place(t, d.Service.Mint, ramptest.StaysPending())
		assert.Equal(t, &other.UUID, d.Candidate(t, order).EndedOther)
		_, err := d.Finish(t.Context(), order.UUID, other.TxHash, alice)
		assert.ErrorContains(t, err, "tx_hash has ended order "+other.UUID.String())
		assert.EqualValues(t, 800, d.Gold)
		d.Service.Advance(13 * time.Hour)
		_, err = d.Abandon(t.Context(), order.UUID, alice)
		require.NoError(t, err, "it is the other's")
		assert.EqualValues(t, 900, d.Gold)
	},
	"one has ended another order, which is equal": func(t *testing.T) {
		d := newStudio(t)
		d.Witness(t)
		other := d.Place(t, d.Service.Mint)
		order := d.Place(t, d.Service.Mint, ramptest.StaysPending())
		d.Service.Advance(13 * time.Hour)
		report := must.Get(d.Show(t.Context(), order.UUID))(t)
		assert.Equal(t, support.NextAbandon, report.Advice.Next)
		assert.Equal(t, &other.TxHash, report.Advice.Tx)
		assert.Contains(t, report.Text(), "\n    which is equal to this order: it does not matter whose it is\n")
		must.Get(d.Abandon(t.Context(), order.UUID, alice))(t)
		assert.EqualValues(t, 900, d.Gold)
	},
	"another order has claimed one": func(t *testing.T) {
		b := newBatch(t, ramp.Burn, []int64{5}, burns(500))
		b.store.Shared = new(rig.Claims)
		order := rig.OrderOf(ramp.Burn, 5, rig.Now.Add(-14*time.Hour))
		b.store.Keep(t, order)
		at := order.AcceptedAt.Add(20 * time.Minute)
		tx := burns(500)
		tx.From, tx.Payer, tx.To = rig.Player, rig.Payer, rig.Vault
		hash, other := b.node.Send(at, tx), uuid.New() // of another database
		must.Get(b.store.Shared.Claim(t.Context(), hash, 0, other))(t)
		report := must.Get(b.Show(t.Context(), order.UUID))(t)
		assert.Equal(t, support.NextOtherOrder, report.Advice.Next)
		assert.Equal(t, &hash, report.Advice.Tx)
		assert.Contains(t, report.Advice.Do, "Order "+other.String()+" has claimed this transaction.")
		assert.Contains(t, report.Text(),
			"\n    order "+other.String()+" has claimed it, perhaps in another database\n")
		assert.False(t, report.OneDatabase)
		_, err := b.Finish(t.Context(), order.UUID, hash, alice)
		assert.ErrorContains(t, err, "tx_hash belongs to order "+other.String()+", which has claimed it")
		_, err = b.Finish(t.Context(), order.UUID, hash, inBatch)
		assert.ErrorContains(t, err, "has ended no other order with this outcome")
		_, err = b.Abandon(t.Context(), order.UUID, alice)
		refuses(t, err, hash)
		assert.Len(t, b.moved, 1, "it was accepted, and has moved nothing since")
	},
	`one "does not prove", but abandoning fails because of it`: func(t *testing.T) {
		d := newStudio(t)
		d.Proof.Decimals[rig.Token] = 19 // it seems to burn a tenth of what it should
		d.OpenOffice(t)
		order := d.Place(t, d.Service.Burn, ramptest.ResultNever())
		assert.Contains(t, d.Candidate(t, order).Unproven, rampproof.ErrNotProven.Error())
		assert.Contains(t, must.Get(d.Show(t.Context(), order.UUID))(t).Text(), "\n    abandoning the order fails: ")
		_, err := d.Finish(t.Context(), order.UUID, order.TxHash, alice)
		assert.ErrorIs(t, err, rampproof.ErrNotProven)
		_, err = d.Abandon(t.Context(), order.UUID, alice)
		refuses(t, err, order.TxHash)
	},
	`one "does not prove", and abandoning does not fail because of it`: func(t *testing.T) {
		d := newStudio(t)
		d.Witness(t)
		order := d.Place(t, d.Service.Burn, ramptest.StaysPending())
		for n, trick := range []thief.Trick{thief.SelfTransfer, thief.Approval, thief.FailedCall, thief.SignedTransfer,
			thief.FriendsTransfer} {
			tx := must.Get(thief.Play(t.Context(), d.Service, order, trick))(t)
			report := must.Get(d.Show(t.Context(), order.UUID))(t)
			assert.Len(t, report.Candidates, min(1, max(0, n-2)), "what moved a token from the player")
			for _, c := range report.Candidates {
				assert.NotEmpty(t, c.Unproven)
				assert.Empty(t, c.Objection)
			}
			_, err := d.Finish(t.Context(), order.UUID, tx, alice)
			assert.ErrorIs(t, err, rampproof.ErrNotProven, "%s", trick)
		}
		d.Service.Advance(13 * time.Hour)
		step := must.Get(d.Abandon(t.Context(), order.UUID, alice))(t)
		assert.Equal(t, ramp.OrderAbandoned, step.Order.State)
	},
	"there is none": func(t *testing.T) {
		d := newStudio(t)
		d.Witness(t)
		order := d.Place(t, d.Service.Mint, ramptest.StaysPending())
		report := must.Get(d.Show(t.Context(), order.UUID))(t)
		assert.Empty(t, report.Candidates)
		assert.EqualValues(t, 900, d.Gold)
		d.Service.Advance(13 * time.Hour)
		step := must.Get(d.Abandon(t.Context(), order.UUID, alice))(t)
		assert.Equal(t, ramp.OrderAbandoned, step.Order.State)
		assert.EqualValues(t, 1000, d.Gold)

		_ = d.Service.Deliver(t.Context(), order, ramptest.Succeeded)
		assert.EqualValues(t, 1000, d.Gold)
		require.Len(t, d.Conflicts, 1)
		assert.Equal(t, order.UUID, d.Conflicts[0].Order.UUID)
	},
	"there is none, and the chain stood still": func(t *testing.T) {
		orders, store, n := rig.NewOfficeOnNode(t, 365*24*time.Hour, rig.Paid)
		order := rig.OrderOf(ramp.Mint, 5, rig.Now.Add(-14*time.Hour))
		n.StandStill(order.AcceptedAt.Add(time.Minute), rig.Now.Add(-10*time.Minute))
		store.Keep(t, order)
		witnessIn(t, store, n, ramp.Mint, rig.Now.Add(-5*time.Minute))
		assert.Contains(t, must.Get(orders.Show(t.Context(), order.UUID))(t).Text(),
			"\n          hours since the order in which the chain made a block: 2, and an abandon needs 13\n")
		_, err := orders.Abandon(t.Context(), order.UUID, alice)
		require.ErrorContains(t, err, "the chain has made blocks in only 2 of the hours since the order")
		early := alice
		early.Early = true
		must.Get(orders.Abandon(t.Context(), order.UUID, early))(t)
	},
	`"there may be others"`: func(t *testing.T) {
		a := newAbsence(t)
		a.store.Witness(t, a.node)
		failed := a.node.Send(rig.Now.Add(-19*time.Hour),
			rig.Tx{Failed: true, From: rig.Payer, Payer: rig.Payer, To: rig.Vault})
		a.node.Lists = func(*rig.Tx) bool { return false }
		assert.Contains(t, a.show(t).Text(), "\n          there may be others: the node shows ")
		assert.ErrorContains(t, a.abandon(t, alice), "use another node, or decide without evidence")
		_, err := a.Finish(t.Context(), a.order.UUID, failed, alice)
		assert.ErrorContains(t, err, "use another node, or decide without evidence")
		require.NoError(t, a.abandon(t, without))
	},
	`one that the node "does not return"`: func(t *testing.T) {
		a := newAbsence(t)
		own, unknown := a.minted(time.Minute), a.minted(time.Hour)
		a.node.Hides = func(tx *rig.Tx) bool { return tx.Hash == unknown }
		assert.Contains(t, a.show(t).Text(), unknown.Hex())
		assert.Contains(t, a.show(t).Text(), "\n    the node lists its events, and does not return it: ")
		refuses(t, a.abandon(t, alice), own)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := a.Finish(ctx, a.order.UUID, unknown, alice)
		assert.ErrorIs(t, err, ramp.ErrNotFound)
	},
	"one is older than the order": func(t *testing.T) {
		a := newAbsence(t)
		own := a.minted(-20 * time.Minute)
		refuses(t, a.abandon(t, alice), own)
		_, err := a.Finish(t.Context(), a.order.UUID, own, alice)
		require.ErrorIs(t, err, rampproof.ErrNotProven)
		assert.ErrorContains(t, err, "it is 20m0s older than the order: the clock of the server was ahead, or that of "+
			"the chain was behind")
		advice := must.Get(a.Show(t.Context(), a.order.UUID))(t).Advice
		assert.Equal(t, support.NextCompareClocks, advice.Next)
		assert.Contains(t, advice.Do, "or that of the chain was behind. Compare both with the time")
		step := must.Get(a.Finish(t.Context(), a.order.UUID, own, against))(t)
		assert.Equal(t, ramp.OrderSucceeded, step.Order.State)
	},
	"the chain cannot be read": func(t *testing.T) {
		d := newStudio(t)
		order := d.Place(t, d.Service.Mint, ramptest.ResultNever())
		for name, do := range map[string]func() error{
			"show":    func() error { _, err := d.Show(t.Context(), order.UUID); return err },
			"finish":  func() error { _, err := d.Finish(t.Context(), order.UUID, order.TxHash, alice); return err },
			"abandon": func() error { _, err := d.Abandon(t.Context(), order.UUID, alice); return err },
		} {
			d.Service.FailRPC(-32601)
			assert.ErrorIs(t, do(), ramp.RPCMethodNotFound, name)
		}
		d.Service.FailRPC(-32601)
		report, _ := d.Show(t.Context(), order.UUID)
		require.NotNil(t, report)
		assert.Regexp(t, `\nchain     not read: .*Method not found`, report.Text())
		assert.Equal(t, ramp.OrderAccepted, report.Order.State)
		assert.EqualValues(t, 900, d.Gold)
	},
}

// docs/on-call.md has the table. Each row is played, and nothing that is not there.
func TestEachRowOfTheTableOfDecisions(t *testing.T) {
	guide := must.Get(os.ReadFile("../docs/on-call.md"))(t)
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
