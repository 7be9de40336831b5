package support_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/rig"
	"github.com/token-ramp/ramp-go/rampbooks"
)

// An order that Apply refuses keeps no other one from being ended, and is named.
func TestFinishFittingGoesOnAfterARefusal(t *testing.T) {
	_, store, n := rig.NewOfficeOnNode(t, 96*time.Hour, rig.Paid)
	at := rig.Now.Add(-40 * time.Hour)
	full, other := rig.OrderOf(ramp.Burn, 5, at), rig.OrderOf(ramp.Burn, 3, at)
	other.UserAddress, other.SessionID = rig.Friend.Hex(), "session-2"
	right := rig.OrderOf(ramp.Burn, 1, at.Add(-time.Hour))
	right.UserAddress = rig.Stranger.Hex()
	burns := func(user common.Address, hundredths int64) common.Hash {
		return n.Send(at.Add(time.Minute), rig.Tx{From: user, Payer: rig.Payer, To: rig.Vault,
			Transfers: []ramp.Transfer{rig.Moved(user, common.Address{}, hundredths)}})
	}
	burns(rig.Player, 500)
	burns(rig.Friend, 300)
	store.Keep(t, full, other, rig.Ended(right, ramp.OrderSucceeded, burns(rig.Stranger, 100), at.Add(2*time.Minute)))
	store.Store.(*ramp.MemoryStore).Apply = func(_ context.Context, step ramp.Step) error {
		if step.Order.UUID == full.UUID {
			return errors.New("the purse is full")
		}
		return nil
	}
	owns := func(context.Context, string, common.Address) (bool, error) { return true, nil }
	orders := must.Get(rig.NewOffice(rig.Config{Store: store, Proof: rig.ProofOn(t, n.RPC(t), rig.Paid),
		OwnsWallet: owns,
		Products:   rampbooks.Always(rig.Product), Now: func() time.Time { return rig.Now }, Logger: rig.Quiet}))(t)
	books := must.Get(orders.Reconcile(t.Context(), rig.Now.Add(-72*time.Hour), time.Time{}))(t)
	require.Equal(t, 2, books.Fitting, "%v", books.Findings)
	steps, err := orders.FinishFitting(t.Context(), books, alice)
	require.ErrorContains(t, err, "order "+full.UUID.String()+" was not ended")
	require.ErrorContains(t, err, "the purse is full")
	require.Len(t, steps, 1)
	assert.Equal(t, other.UUID, steps[0].Order.UUID)
}
