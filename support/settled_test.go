package support_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/rig"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/support"
)

// The game cannot move what belongs to a deleted player. A person settles it in another way, and
// ends the order with the words of how.
func TestAnOrderIsSettledInAnotherWay(t *testing.T) {
	proof := &rampproof.Config{Contracts: []common.Address{rig.Vault}, Payers: []common.Address{rig.Payer}}
	orders, store, n := rig.NewOfficeOnNode(t, 48*time.Hour, proof)
	store.Witness(t, n)
	mint, burn := rig.OrderOf(ramp.Mint, 5, rig.Now.Add(-14*time.Hour)),
		rig.OrderOf(ramp.Burn, 5, rig.Now.Add(-14*time.Hour))
	store.Keep(t, mint, burn)
	burned := n.Send(rig.Now.Add(-13*time.Hour), rig.Tx{From: rig.Player, Payer: rig.Payer, To: rig.Vault,
		Transfers: []ramp.Transfer{rig.Moved(rig.Player, common.Address{}, 500)}})
	gone := errors.New("the player is gone")
	store.Store.(*ramp.MemoryStore).Apply = func(context.Context, ramp.Step) error { return gone }

	for _, d := range []support.Decision{
		alice, {Who: "alice", Reason: "case 17", AgainstEvidence: true, WithoutEvidence: true, Early: true},
	} {
		_, err := orders.Finish(t.Context(), burn.UUID, burned, d)
		assert.ErrorIs(t, err, gone)
	}
	settled := alice
	settled.Settled = " by mail "
	_, err := orders.Finish(t.Context(), burn.UUID, burned, settled)
	assert.EqualError(t, err, "ramp: Decision.AgainstEvidence is required with Settled, which the chain cannot show")
	_, err = orders.FinishFitting(t.Context(), &rampbooks.Reconciliation{}, settled)
	assert.EqualError(t, err, "ramp: Decision.Settled is for one order, which a person has looked at")

	by := []string{"-who", "alice", "-reason", "case 17", "-settled", "by mail", "-against-evidence"}
	said := must.Get(rig.RunCommand(t, orders, "finish", append(by, "-tx", burned.Hex(), burn.UUID.String())...))(t)
	nothing := "the game has moved nothing, because it was settled in another way: by mail\n"
	assert.Equal(t, burn.UUID.String()+" is succeeded; "+nothing, said)
	said = must.Get(rig.RunCommand(t, orders, "abandon", append(by, mint.UUID.String())...))(t)
	assert.Equal(t, mint.UUID.String()+" is abandoned; "+nothing, said)

	listed := must.Get(rig.RunCommand(t, orders, "list", "-by-hand", "-address", rig.Player.Hex()))(t)
	assert.Equal(t, 2, strings.Count(listed, "alice: case 17; settled in another way: by mail"), listed)
	shown := must.Get(rig.RunCommand(t, orders, "show", mint.UUID.String()))(t)
	assert.Contains(t, shown, "by hand   alice: case 17; settled in another way: by mail")
}
