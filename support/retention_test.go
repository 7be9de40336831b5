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

// An order was lost, another mint of the wallet ended and was deleted, and then the first one was restored: the
// transaction of the other one proves its end, too, and nothing but a gap shows that there was another one.
func TestATransactionMayBeThatOfAnOrderThatWasDeleted(t *testing.T) {
	days := func(n int) time.Time { return rig.HoursAgo(24 * n) }
	stranger := func(d ramp.Direction, state ramp.OrderState, accepted, finished time.Time) ramp.Order {
		o := rig.OrderOf(d, 1, accepted)
		o.UserAddress, o.SessionID = rig.Stranger.Hex(), "session-2"
		if o.State = state; state == ramp.OrderAccepted {
			return o
		}
		return rig.Ended(o, state, common.Hash{1, byte(finished.Unix())}, finished)
	}
	older := stranger(ramp.Mint, ramp.OrderSucceeded, days(12), days(12).Add(time.Minute))
	erased := older
	erased.UserAddress, erased.SessionID = "erased-1", "erased-1"
	for name, c := range map[string]struct {
		accepted time.Time
		others   []ramp.Order
		may      bool
	}{
		"the oldest order of all": {days(9), nil, true},
		"an older mint is there":  {days(9), []ramp.Order{older}, false},
		"an older burn": {days(9),
			[]ramp.Order{stranger(ramp.Burn, ramp.OrderSucceeded, days(12), days(12).Add(time.Minute))}, true},
		"an older mint that failed, which is deleted later": {days(9),
			[]ramp.Order{stranger(ramp.Mint, ramp.OrderFailed, days(12), days(12).Add(time.Minute))}, true},
		"an older mint that a person ended yesterday": {days(9),
			[]ramp.Order{stranger(ramp.Mint, ramp.OrderSucceeded, days(12), days(1))}, true},
		"an older mint, kept because one waits": {days(9),
			[]ramp.Order{older, stranger(ramp.Mint, ramp.OrderAccepted, days(13), time.Time{})}, true},
		"an older mint, kept because one waited until yesterday": {days(9),
			[]ramp.Order{older, stranger(ramp.Mint, ramp.OrderFailed, days(13), days(1))}, true},
		"an older mint, whose wallet has others": {days(9), []ramp.Order{older,
			stranger(ramp.Mint, ramp.OrderFailed, days(13), days(12)),
			stranger(ramp.Burn, ramp.OrderAccepted, days(13), time.Time{}),
			stranger(ramp.Mint, ramp.OrderAccepted, days(8), time.Time{})}, false},
		"an older mint of an erased player": {days(9), []ramp.Order{erased}, true},
		"nothing of that age is deleted":    {days(6), nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			orders, store, node := rig.NewOfficeOnNode(t, 365*24*time.Hour, rig.Paid)
			store.Witness(t, node)
			order := rig.OrderOf(ramp.Mint, 5, c.accepted)
			store.Keep(t, append(c.others, order)...)
			hash := node.Send(c.accepted.Add(2*time.Minute), rig.Tx{From: rig.Player, Payer: rig.Payer, To: rig.Vault,
				Transfers: []ramp.Transfer{rig.Moved(common.Address{}, rig.Player, 490)}})

			report := must.Get(orders.Show(t.Context(), order.UUID))(t)
			if !c.may {
				assert.Equal(t, support.NextFinish, report.Advice.Next, report.Advice.Do)
				must.Get(orders.Finish(t.Context(), order.UUID, hash, alice))(t)
				return
			}
			assert.Equal(t, support.NextAskService, report.Advice.Next, report.Advice.Do)
			assert.Contains(t, report.Text(), "an order that it has ended may have been deleted: ask the service")
			_, err := orders.Finish(t.Context(), order.UUID, hash, alice)
			require.ErrorIs(t, err, rampproof.ErrNotProven)
			require.ErrorContains(t, err, "it may have ended an order that was deleted since: ask the service")
			must.Get(orders.Finish(t.Context(), order.UUID, hash, against))(t) // it has said so
		})
	}
}
