package support_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/support"
)

// The game cannot move what belongs to a deleted player. A person settles it in another way, and
// ends the order with the words of how.
func TestAnOrderIsSettledInAnotherWay(t *testing.T) {
	proof := &rampproof.Config{Contracts: []common.Address{vault}, Payers: []common.Address{payer}}
	orders, store, n := newOrders(t, 48*time.Hour, proof)
	store.witness(t, n)
	mint, burn := orderOf(ramp.Mint, 5, now.Add(-14*time.Hour)), orderOf(ramp.Burn, 5, now.Add(-14*time.Hour))
	store.keep(t, mint, burn)
	burned := n.send(now.Add(-13*time.Hour), sentTx{from: player, payer: payer, to: vault,
		transfers: []ramp.Transfer{moved(player, common.Address{}, 500)}})
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
	said := ramp.Must(command(t, orders, "finish", append(by, "-tx", burned.Hex(), burn.UUID.String())...))
	nothing := "the game has moved nothing, because it was settled in another way: by mail\n"
	assert.Equal(t, burn.UUID.String()+" is succeeded; "+nothing, said)
	said = ramp.Must(command(t, orders, "abandon", append(by, mint.UUID.String())...))
	assert.Equal(t, mint.UUID.String()+" is abandoned; "+nothing, said)

	listed := ramp.Must(command(t, orders, "list", "-by-hand", "-address", player.Hex()))
	assert.Equal(t, 2, strings.Count(listed, "alice: case 17; settled in another way: by mail"), listed)
	shown := ramp.Must(command(t, orders, "show", mint.UUID.String()))
	assert.Contains(t, shown, "by hand   alice: case 17; settled in another way: by mail")
}

// The books never count as moved what was settled in another way.
func TestTheBooksDoNotCountWhatWasSettledInAnotherWay(t *testing.T) {
	s := newShop(t)
	s.place(t, s.service.Mint, 1)
	settled := s.place(t, s.service.Burn, 1)
	s.change(settled.UUID, func(o *ramp.Order) { o.Settled = "by mail" })
	books := s.books(t, s.begin, time.Time{})
	require.Len(t, books.Totals, 2)
	burns := books.Totals[1]
	assert.Equal(t, 1, burns.Succeeded)
	assert.Empty(t, burns.Granted)
	assert.Equal(t, map[string]rampbooks.Amount{"item_gold": {Amount: ramp.NewAmount(100)}}, burns.Settled)
	assert.Empty(t, books.Findings)
	var csv strings.Builder
	require.NoError(t, books.WriteTotalsCSV(&csv, rampbooks.DecimalPoint))
	assert.Contains(t, csv.String(), `,"burn","items_settled","item_gold",,100,,,`)
	assert.NotContains(t, csv.String(), "items_granted")
}
