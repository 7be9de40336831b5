package support_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/rig"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
)

// Whoever looks at an order sees why it does not end, until it has ended.
func TestWhyAnOrderDoesNotEndIsShown(t *testing.T) {
	proof := &rampproof.Config{Contracts: []common.Address{rig.Vault}, Payers: []common.Address{rig.Payer}}
	_, store, n := rig.NewOfficeOnNode(t, 48*time.Hour, proof)
	store.Witness(t, n)
	full, waits := rig.OrderOf(ramp.Burn, 5, rig.Now.Add(-14*time.Hour)),
		rig.OrderOf(ramp.Mint, 5, rig.Now.Add(-14*time.Hour))
	store.Keep(t, full, waits)
	burned := n.Send(rig.Now.Add(-13*time.Hour), rig.Tx{From: rig.Player, Payer: rig.Payer, To: rig.Vault,
		Transfers: []ramp.Transfer{rig.Moved(rig.Player, common.Address{}, 500)}})
	other := n.Send(rig.Now.Add(-12*time.Hour), rig.Tx{From: rig.Friend, To: rig.Hidden,
		Transfers: []ramp.Transfer{rig.Moved(rig.Friend, rig.Hidden, 500)}})
	noted := &rig.NotingStore{Store: store, Noted: map[uuid.UUID]ramp.Refusal{}}
	orders := must.Get(rig.NewOffice(rig.Config{Store: noted, Proof: rig.ProofOn(t, n.RPC(t), proof),
		Products: rampbooks.Always(rig.Product), Now: func() time.Time { return rig.Now }, Logger: rig.Quiet}))(t)
	memory := store.Store.(*ramp.MemoryStore)
	memory.Apply = func(context.Context, ramp.Step) error { return errors.New("the purse\nis full") }

	_, err := orders.Finish(t.Context(), full.UUID, burned, alice)
	require.ErrorContains(t, err, "is full")
	assert.Equal(t, "the purse is full", noted.Noted[full.UUID].Reason, "Apply's refusal")
	listed := must.Get(rig.RunCommand(t, orders, "list"))(t)
	lines := strings.Split(listed, "\n")
	assert.True(t, strings.HasSuffix(lines[0], "REFUSED"), lines[0])
	for _, line := range lines[1:] {
		said := "1 times since " + rig.Now.Format(time.RFC3339) +
			", last " + rig.Now.Add(time.Hour).Format(time.RFC3339) +
			": the purse is full"
		assert.Equal(t, strings.Contains(line, full.UUID.String()), strings.Contains(line, said), line)
	}
	_, err = orders.Finish(t.Context(), full.UUID, other, alice)
	require.ErrorIs(t, err, rampproof.ErrNotProven)
	assert.Contains(t, noted.Noted[full.UUID].Reason, "does not prove", "the proof's refusal")
	assert.Equal(t, 2, noted.Noted[full.UUID].Count)
	report := must.Get(orders.Show(t.Context(), full.UUID))(t)
	assert.Equal(t, noted.Noted[full.UUID], *report.Refusal)
	assert.Contains(t, report.Text(), "2 times since ")
	assert.Contains(t, must.Get(rig.RunCommand(t, orders, "count"))(t), "and were refused     0      1\n")

	noted.Failing = errors.New("no such table")
	_, err = orders.Finish(t.Context(), full.UUID, burned, alice)
	assert.ErrorContains(t, err, "is full", "a refusal that is not noted changes no answer")
	noted.Failing, memory.Apply = nil, func(context.Context, ramp.Step) error { return nil }
	must.Get(orders.Finish(t.Context(), full.UUID, burned, alice))(t)
	assert.Nil(t, must.Get(orders.Show(t.Context(), full.UUID))(t).Refusal)
	assert.Contains(t, must.Get(rig.RunCommand(t, orders, "count"))(t), "and were refused     0      0\n")
}
