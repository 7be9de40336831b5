package support_test

import (
	"cmp"
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
	erased, foreign := older, older
	erased.UserAddress, erased.SessionID = "erased-1", "erased-1"
	foreign.ProjectID = "project-2"
	damaged := stranger(ramp.Mint, ramp.OrderSucceeded, days(14), days(14))
	damaged.Direction = ""
	burned := stranger(ramp.Burn, ramp.OrderSucceeded, days(13), days(13).Add(time.Minute))
	waits := stranger(ramp.Mint, ramp.OrderAccepted, days(13), time.Time{})
	waitsElsewhere := waits
	waitsElsewhere.ProjectID = "project-2"
	for name, c := range map[string]struct {
		accepted time.Time
		others   []ramp.Order
		may      bool
	}{
		"the oldest order of all": {days(9), nil, true},
		"a mint of ten years ago": {days(9), []ramp.Order{
			stranger(ramp.Mint, ramp.OrderSucceeded, days(3650), days(3650).Add(time.Minute))}, false},
		"an older mint is there":        {days(9), []ramp.Order{older}, false},
		"an older burn":                 {days(9), []ramp.Order{burned}, true},
		"an older mint of another game": {days(9), []ramp.Order{foreign}, true},
		"an older mint, and a row that was changed by hand": {days(9),
			[]ramp.Order{older, burned, damaged}, false},
		"an older mint that failed, which is deleted later": {days(9),
			[]ramp.Order{stranger(ramp.Mint, ramp.OrderFailed, days(12), days(12).Add(time.Minute))}, true},
		"an older mint that a person ended yesterday": {days(9),
			[]ramp.Order{stranger(ramp.Mint, ramp.OrderSucceeded, days(12), days(1))}, true},
		"an older mint, kept because one waits": {days(9),
			[]ramp.Order{older, waits}, true},
		"an older mint, kept because one of another game waits": {days(9),
			[]ramp.Order{older, waitsElsewhere}, true},
		"an older mint, kept because one waits that seems to be younger": {days(9), []ramp.Order{older,
			stranger(ramp.Mint, ramp.OrderAccepted, older.FinishedAt.Add(time.Hour), time.Time{})}, true},
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
			_, store, node := rig.NewOfficeOnNode(t, 365*24*time.Hour, rig.Paid)
			orders := must.Get(rig.NewOffice(rig.Config{Store: store, Proof: rig.ProofOn(t, node.RPC(t), rig.Paid),
				Projects: []string{"project-1"}, Products: rampbooks.Always(rig.Product), Now: rig.Later,
				Logger: rig.Quiet}))(t)
			store.Witness(t, node)
			order := rig.OrderOf(ramp.Mint, 5, c.accepted)
			for _, o := range append(c.others, order) {
				o.ProjectID = cmp.Or(o.ProjectID, "project-1")
				store.Keep(t, o)
			}
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

// A list that fails shows nothing.
func TestNoTransactionIsBelievedIfTheStoreFails(t *testing.T) {
	orders, store, node := rig.NewOfficeOnNode(t, 365*24*time.Hour, rig.Paid)
	older, order := rig.OrderOf(ramp.Mint, 1, rig.HoursAgo(300)), rig.OrderOf(ramp.Mint, 5, rig.HoursAgo(200))
	older.UserAddress = rig.Stranger.Hex()
	store.Keep(t, rig.Ended(older, ramp.OrderSucceeded, common.Hash{1, 2}, rig.HoursAgo(299)), order)
	hash := node.Send(rig.HoursAgo(199), rig.Tx{From: rig.Player, Payer: rig.Payer, To: rig.Vault,
		Transfers: []ramp.Transfer{rig.Moved(common.Address{}, rig.Player, 490)}})
	for calls := 1; ; calls++ {
		store.Calls, store.Failing = 0, calls
		if _, err := orders.Finish(t.Context(), order.UUID, hash, alice); err == nil {
			assert.Greater(t, calls, 3)
			return
		}
		assert.Equal(t, ramp.OrderAccepted, store.Orders[order.UUID].State)
	}
}

// Of two orders that were lost, the store has one that is older than the second, and younger than the first.
func TestOnlyWhatIsYoungerThanWhatWasRetainedIsRestored(t *testing.T) {
	orders, store, _ := rig.NewOfficeOnNode(t, 365*24*time.Hour, rig.Paid)
	between := rig.OrderOf(ramp.Mint, 1, rig.HoursAgo(300))
	between.UserAddress = rig.Stranger.Hex()
	store.Keep(t, rig.Ended(between, ramp.OrderSucceeded, common.Hash{1, 2}, rig.HoursAgo(299)))
	first, second := rig.OrderOf(ramp.Mint, 5, rig.HoursAgo(400)), rig.OrderOf(ramp.Mint, 5, rig.HoursAgo(200))
	for _, lost := range [][]ramp.Order{{first, second}, {second, first}} {
		var logged []support.Logged
		for _, o := range lost {
			logged = append(logged, support.Logged{UUID: o.UUID, Missing: true, State: ramp.OrderAbandoned, Order: &o})
		}
		_, err := orders.Restore(t.Context(), logged, alice)
		assert.ErrorContains(t, err, "order "+first.UUID.String()+": it may have been deleted, and not lost")
		assert.NotContains(t, err.Error(), "order "+second.UUID.String()+": it may have been deleted")
	}
}
