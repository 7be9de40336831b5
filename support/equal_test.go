package support_test

import (
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/rig"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/support"
)

// A transaction that fits two orders of a player that wait does not say whose it is. If a person ended one with it by
// mistake, the other could be ended by nobody; and if it failed, what it gave back could still be minted.
func TestATransactionOfTwoOrdersIsNotFinishedWithUnasked(t *testing.T) {
	burned := []ramp.Transfer{rig.Moved(rig.Player, common.Address{}, 500)}
	minted := []ramp.Transfer{rig.Moved(common.Address{}, rig.Player, 490)}
	for name, c := range map[string]struct {
		direction ramp.Direction
		other     int64         // tokens of the other order
		younger   time.Duration // than the first, and so is the other
		tx        rig.Tx
		refused   bool
	}{
		"two mints":         {ramp.Mint, 5, time.Minute, rig.Tx{Transfers: minted}, true},
		"two burns":         {ramp.Burn, 5, time.Minute, rig.Tx{Transfers: burned}, true},
		"an older mint":     {ramp.Mint, 5, -time.Hour, rig.Tx{Transfers: minted}, true},
		"two failed mints":  {ramp.Mint, 5, time.Minute, rig.Tx{Failed: true}, true},
		"a failed burn":     {ramp.Burn, 3, time.Minute, rig.Tx{Failed: true}, true},
		"another amount":    {ramp.Mint, 3, time.Minute, rig.Tx{Transfers: minted}, false},
		"accepted after it": {ramp.Mint, 5, time.Hour, rig.Tx{Transfers: minted}, false},
		"neither amount":    {ramp.Burn, 4, time.Minute, burns(700), true},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAbsence(t)
			a.store.Witness(t, a.node)
			delete(a.store.Orders, a.order.UUID)
			order := rig.OrderOf(c.direction, 5, a.order.AcceptedAt)
			other := rig.OrderOf(c.direction, c.other, a.order.AcceptedAt.Add(c.younger))
			a.store.Keep(t, order, other)
			c.tx.From, c.tx.Payer, c.tx.To = rig.Player, rig.Payer, rig.Vault
			hash := a.node.Send(order.AcceptedAt.Add(2*time.Minute), c.tx)
			if c.refused {
				for this, that := range map[*ramp.Order]*ramp.Order{&order: &other, &other: &order} {
					_, err := a.Finish(t.Context(), this.UUID, hash, alice)
					require.ErrorIs(t, err, rampproof.ErrNotProven)
					require.ErrorContains(t, err, "it fits order "+that.UUID.String()+", too, which waits: "+
						"ask the service whose it is")
				}
				must.Get(a.Finish(t.Context(), order.UUID, hash, against))(t) // it has said so
				return
			}
			_, err := a.Finish(t.Context(), other.UUID, hash, alice)
			require.ErrorIs(t, err, rampproof.ErrNotProven)
			must.Get(a.Finish(t.Context(), order.UUID, hash, alice))(t)
		})
	}
}

// The transaction of a mint failed, and the wallet sent another one with the same signature: it fits an equal mint that
// waits, and is not its own.
func TestATransactionMayBeThatOfAnOrderThatHasFailed(t *testing.T) {
	for name, c := range map[string]struct {
		state ramp.OrderState
		older time.Duration
		may   bool
	}{
		"failed":          {ramp.OrderFailed, time.Minute, true},
		"abandoned":       {ramp.OrderAbandoned, time.Minute, true},
		"succeeded":       {ramp.OrderSucceeded, time.Minute, false},
		"failed long ago": {ramp.OrderFailed, 14 * time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAbsence(t)
			a.store.Witness(t, a.node)
			delete(a.store.Orders, a.order.UUID)
			order := rig.OrderOf(ramp.Mint, 5, a.order.AcceptedAt)
			other := rig.OrderOf(ramp.Mint, 5, order.AcceptedAt.Add(-c.older))
			minted := rig.Tx{Transfers: []ramp.Transfer{rig.Moved(common.Address{}, rig.Player, 490)}, From: rig.Player,
				Payer: rig.Payer, To: rig.Vault}
			own := minted
			if c.state != ramp.OrderSucceeded {
				own.Failed, own.Transfers = true, nil
			}
			end := rig.Ended(other, c.state, a.node.Send(other.AcceptedAt.Add(30*time.Second), own), order.AcceptedAt)
			a.store.Keep(t, order, end)
			hash := a.node.Send(order.AcceptedAt.Add(2*time.Minute), minted)

			report := must.Get(a.Show(t.Context(), order.UUID))(t)
			next := support.Advise(report, rig.Now)
			if !c.may {
				assert.Equal(t, support.NextFinish, next.Next)
				must.Get(a.Finish(t.Context(), order.UUID, hash, alice))(t)
				return
			}
			assert.Equal(t, support.NextAskService, next.Next)
			assert.Contains(t, report.Text(), "it would also prove the end of order "+other.UUID.String())
			_, err := a.Finish(t.Context(), order.UUID, hash, alice)
			require.ErrorIs(t, err, rampproof.ErrNotProven)
			require.ErrorContains(t, err, "which has ended as "+string(c.state)+": ask the service whose it is")
			must.Get(a.Finish(t.Context(), order.UUID, hash, against))(t) // it has said so
		})
	}
}

// A person ended the wrong one of two equal orders. Whichever of them the transaction belongs to, the player is right
// if the other one ends as if it were the one: so it can be ended, as soon as no transaction of either can come.
func TestWhatIsLeftOfTwoEqualOrdersCanBeEnded(t *testing.T) {
	for _, d := range []ramp.Direction{ramp.Mint, ramp.Burn} {
		t.Run(string(d), func(t *testing.T) {
			var b *batch
			var left, wrong ramp.Order
			begin := func(younger time.Duration, change func(o *ramp.Order)) {
				tx := mints(490)
				if d == ramp.Burn {
					tx = burns(500)
				}
				b = newBatch(t, d, nil, tx)
				at := rig.Now.Add(-14 * time.Hour)
				left, wrong = rig.OrderOf(d, 5, at), rig.OrderOf(d, 5, at.Add(younger))
				if change != nil {
					change(&wrong)
				}
				b.store.Keep(t, left, wrong)
				must.Get(b.Finish(t.Context(), wrong.UUID, b.hash, against))(t)
				b.moved = nil
			}
			show := func() *support.Report { return must.Get(b.Show(t.Context(), left.UUID))(t) }
			result := func() error { // of the service, after all
				receipt := ramp.Receipt{Status: ramp.NewQuantity(1)}
				_, err := b.store.Update(t.Context(), left.UUID, ramp.Finish(&ramp.Result{UUID: left.UUID,
					SessionID: left.SessionID, TxHash: b.hash.Hex(), Receipt: receipt, Intent: left.Intent}, b.clock))
				return err
			}

			begin(time.Minute, nil)
			require.Equal(t, support.NextAbandon, show().Advice.Next, show().Advice.Do)
			assert.Equal(t, &b.hash, show().Advice.Tx)
			assert.Contains(t, show().Advice.Do, "This transaction has ended order "+wrong.UUID.String()+
				", which is equal to this one")
			step := must.Get(b.Abandon(t.Context(), left.UUID, alice))(t)
			want := map[ramp.Direction]ramp.EffectKind{ramp.Mint: ramp.GiveBack, ramp.Burn: ramp.Nothing}[d]
			assert.Equal(t, want, step.Effect.Kind)
			b.moved = nil
			require.ErrorIs(t, result(), ramp.ErrOrderConflict, "a person is told")
			assert.Empty(t, b.moved)

			begin(time.Minute, nil) // and the transaction of the other comes
			tx := mints(490)
			if d == ramp.Burn {
				tx = burns(500)
			}
			tx.From, tx.Payer, tx.To = rig.Player, rig.Payer, rig.Vault
			own := b.node.Send(rig.Now.Add(-time.Hour), tx)
			require.Equal(t, support.NextFinish, show().Advice.Next, show().Advice.Do)
			_, err := b.Abandon(t.Context(), left.UUID, alice)
			refuses(t, err, own)
			must.Get(b.Finish(t.Context(), left.UUID, own, alice))(t)

			begin(4*time.Hour, nil) // its transaction may come
			require.Equal(t, support.NextOtherOrder, show().Advice.Next, show().Advice.Do)
			_, err = b.Abandon(t.Context(), left.UUID, alice)
			refuses(t, err, b.hash)
			assert.ErrorContains(t, err, "by hand, which is equal to this one, and whose own transaction may come ")
			b.clock = b.clock.Add(4 * time.Hour)
			b.node.Head += 4 * 3600
			must.Get(b.Abandon(t.Context(), left.UUID, alice))(t)

			begin(time.Minute, func(o *ramp.Order) { // at another price
				o.Assets[0].Amount = ramp.NewAmount(400)
				if d == ramp.Burn {
					o.Intent.To[0].Amount = ramp.NewAmount(400)
				} else {
					o.Intent.From[0].Amount = ramp.NewAmount(400)
				}
			})
			require.Equal(t, support.NextOtherOrder, show().Advice.Next, show().Advice.Do)
		})
	}
}
