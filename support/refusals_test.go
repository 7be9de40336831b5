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
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
)

// noting is a ledger that notes refusals.
type noting struct {
	*ledger
	refused map[uuid.UUID]ramp.Refusal
	failing error
}

func (n *noting) Refused(_ context.Context, id uuid.UUID, reason string) error {
	if o, known := n.orders[id]; known && o.State == ramp.OrderAccepted && n.failing == nil {
		r := n.refused[id]
		n.refused[id] = ramp.Refusal{UUID: id, First: now, Last: now.Add(time.Hour), Count: r.Count + 1, Reason: reason}
	}
	return n.failing
}

func (n *noting) Refusals(_ context.Context, orders ...uuid.UUID) (map[uuid.UUID]ramp.Refusal, error) {
	found := map[uuid.UUID]ramp.Refusal{}
	for _, id := range orders {
		if r, ok := n.refused[id]; ok {
			found[id] = r
		}
	}
	return found, nil
}

func (n *noting) CountRefused(_ context.Context, d ramp.Direction) (count int, first time.Time, err error) {
	for id := range n.refused {
		if o := n.orders[id]; o.State == ramp.OrderAccepted && o.Direction == d {
			count++
		}
	}
	return count, now, nil
}

// Whoever looks at an order sees why it does not end, until it has ended.
func TestWhyAnOrderDoesNotEndIsShown(t *testing.T) {
	proof := &rampproof.Config{Contracts: []common.Address{vault}, Payers: []common.Address{payer}}
	_, store, n := newOrders(t, 48*time.Hour, proof)
	store.witness(t, n)
	full, waits := orderOf(ramp.Burn, 5, now.Add(-14*time.Hour)), orderOf(ramp.Mint, 5, now.Add(-14*time.Hour))
	store.keep(t, full, waits)
	burned := n.send(now.Add(-13*time.Hour), sentTx{from: player, payer: payer, to: vault,
		transfers: []ramp.Transfer{moved(player, common.Address{}, 500)}})
	other := n.send(now.Add(-12*time.Hour), sentTx{from: friend, to: hidden,
		transfers: []ramp.Transfer{moved(friend, hidden, 500)}})
	noted := &noting{ledger: store, refused: map[uuid.UUID]ramp.Refusal{}}
	orders := ramp.Must(newBackoffice(backofficeConfig{Store: noted, Proof: proofOn(n.rpc(t), proof),
		Products: rampbooks.Always(product), Now: func() time.Time { return now }, Logger: quiet}))
	memory := store.Store.(*ramp.MemoryStore)
	memory.Apply = func(context.Context, ramp.Step) error { return errors.New("the purse\nis full") }

	_, err := orders.Finish(t.Context(), full.UUID, burned, alice)
	require.ErrorContains(t, err, "is full")
	assert.Equal(t, "the purse is full", noted.refused[full.UUID].Reason, "Apply's refusal")
	listed := ramp.Must(command(t, orders, "list"))
	lines := strings.Split(listed, "\n")
	assert.True(t, strings.HasSuffix(lines[0], "REFUSED"), lines[0])
	for _, line := range lines[1:] {
		said := "1 times since " + now.Format(time.RFC3339) + ", last " + now.Add(time.Hour).Format(time.RFC3339) +
			": the purse is full"
		assert.Equal(t, strings.Contains(line, full.UUID.String()), strings.Contains(line, said), line)
	}
	_, err = orders.Finish(t.Context(), full.UUID, other, alice)
	require.ErrorIs(t, err, rampproof.ErrNotProven)
	assert.Contains(t, noted.refused[full.UUID].Reason, "does not prove", "the proof's refusal")
	assert.Equal(t, 2, noted.refused[full.UUID].Count)
	report := ramp.Must(orders.Show(t.Context(), full.UUID))
	assert.Equal(t, noted.refused[full.UUID], *report.Refusal)
	assert.Contains(t, report.Text(), "2 times since ")
	assert.Contains(t, ramp.Must(command(t, orders, "count")), "and were refused     0      1\n")

	noted.failing = errors.New("no such table")
	_, err = orders.Finish(t.Context(), full.UUID, burned, alice)
	assert.ErrorContains(t, err, "is full", "a refusal that is not noted changes no answer")
	noted.failing, memory.Apply = nil, func(context.Context, ramp.Step) error { return nil }
	ramp.Must(orders.Finish(t.Context(), full.UUID, burned, alice))
	assert.Nil(t, ramp.Must(orders.Show(t.Context(), full.UUID)).Refusal)
	assert.Contains(t, ramp.Must(command(t, orders, "count")), "and were refused     0      0\n")
}
