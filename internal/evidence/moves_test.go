package evidence_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence"
	"github.com/token-ramp/ramp-go/internal/evidence/movetest"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/rig"
)

// now is when the newest block of a node is made. It makes one each second.
var now = rig.Now

// node is a node whose transactions are written as movetest reads them.
type node struct{ rig.Node }

func newNode() *node {
	const blocks = 1_000_000
	return &node{rig.Node{Begin: now.Add(-blocks * time.Second), Head: blocks, Decimals: rig.Eighteen}}
}

// send puts a transaction into the chain; see movetest.
func (n *node) send(at time.Time, list string) common.Hash {
	return n.Send(at, rig.Tx{Events: movetest.Logs(proofToken, list, named)})
}

// failed is the receipt of a transaction that failed.
func (n *node) failed(at time.Time) *ramp.Receipt {
	return &ramp.Receipt{Status: ramp.NewQuantity(0), BlockNumber: ramp.NewQuantity(n.BlockAt(at))}
}

// hide lets the node not return a transaction.
func (n *node) hide(hash common.Hash) {
	n.Hides = func(tx *rig.Tx) bool { return tx.Hash == hash }
}

// ledger knows some orders that have ended.
type ledger struct {
	newest *ramp.Order
	ended  map[common.Hash]ramp.Order
	err    error
	shared *rig.Claims
}

func (l *ledger) Claims() ramp.Claims {
	if l.shared == nil {
		return nil
	}
	return l.shared
}

func (l *ledger) OrderByTransaction(_ context.Context, hash common.Hash) (ramp.Order, error) {
	if o, ok := l.ended[hash]; ok {
		return o, l.err
	}
	return ramp.Order{}, fmt.Errorf("%w: %w", errors.Join(l.err), ramp.ErrOrderUnknown)
}

func (l *ledger) NewestSuccess(context.Context, ramp.Network) (ramp.Order, error) {
	if l.newest == nil {
		return ramp.Order{}, ramp.ErrOrderUnknown
	}
	return *l.newest, nil
}

// TestWhatWasIssuedIsNotGivenBack is about a mint of 10 tokens that was accepted 10 minutes ago,
// and whose transaction failed a minute ago. Yesterday, another order ended by a transaction.
func TestWhatWasIssuedIsNotGivenBack(t *testing.T) {
	const minted, lessThan = "has ended no order", ", which explains less"
	accepted, failed := now.Add(-10*time.Minute), now.Add(-time.Minute)
	succeeded := func(tokens int64) ramp.Order {
		o := orderOf(ramp.Mint, tokens)
		o.State = ramp.OrderSucceeded
		return o
	}
	type game struct {
		*node
		*ledger
		order ramp.Order
		proof evidence.Config
	}
	for name, tt := range map[string]struct {
		play func(*game)
		want string // part of the error; empty if it is given back
		is   error
	}{
		"nothing happened": {func(*game) {}, "", nil},
		"a copy of its own call, sent first": {func(g *game) { g.send(failed, "zero>user 10") }, minted,
			evidence.ErrNotProven},
		"a mint of the treasury": {func(g *game) { g.send(failed, "ramp>user 10") }, minted, evidence.ErrNotProven},
		"a mint through another account": {func(g *game) { g.send(failed, "zero>friend 10, friend>user 10") }, minted,
			evidence.ErrNotProven},
		"a mint of a hundredth": {func(g *game) { g.send(failed, "zero>user 0.1") }, minted, evidence.ErrNotProven},
		"a mint of a hundredth, in two parts": {func(g *game) { g.send(failed, "zero>user 0.05, zero>user 0.05") },
			minted, evidence.ErrNotProven},
		"dust, which anybody can send": {func(g *game) { g.send(failed, "zero>user 0.099") }, "", nil},
		"the tokens of a friend":       {func(g *game) { g.send(failed, "friend>user 10") }, "", nil},
		"the tokens of a friend, beside a mint": {func(g *game) { g.send(failed, "friend>user 10, zero>friend 0.01") },
			"", nil},
		"a mint of another player":      {func(g *game) { g.send(failed, "zero>friend 10") }, "", nil},
		"a burn":                        {func(g *game) { g.send(failed, "user>zero 10") }, "", nil},
		"another token":                 {func(g *game) { g.send(failed, "zero>user 10 other") }, "", nil},
		"a transfer to oneself":         {func(g *game) { g.send(failed, "user>user 10") }, "", nil},
		"what a reorganization removed": {func(g *game) { g.send(failed, "zero>user 10 removed") }, "", nil},
		"a mint that ended another order": {func(g *game) {
			g.ended[g.send(failed, "zero>user 10")] = succeeded(10)
		}, "", nil},
		"a mint that an order of another database has claimed": {func(g *game) {
			g.shared = new(rig.Claims)
			hash := g.send(failed, "zero>user 10")
			must.Get(g.shared.Claim(context.Background(), hash, 0, uuid.UUID{15: 7}))(t)
		}, "is claimed by order 00000000-0000-0000-0000-000000000007, which may be in another database",
			evidence.ErrNotProven},
		"a mint that it has claimed itself": {func(g *game) {
			g.shared = new(rig.Claims)
			must.Get(g.shared.Claim(context.Background(), g.send(failed, "zero>user 10"), 0, g.order.UUID))(t)
		}, minted, evidence.ErrNotProven},
		"one that did, and one that did not": {func(g *game) {
			g.ended[g.send(failed, "zero>user 10")] = succeeded(10)
			g.send(failed, "zero>user 10")
		}, minted, evidence.ErrNotProven},
		"it ended another order, less the fee": {func(g *game) {
			g.ended[g.send(failed, "zero>user 9")] = succeeded(10)
		}, "", nil},
		"it ended an order of less": {func(g *game) { g.ended[g.send(failed, "zero>user 10")] = succeeded(9) },
			lessThan, evidence.ErrNotProven},
		"by a hundredth of this one": {func(g *game) {
			g.ended[g.send(failed, "zero>user 1.1")] = succeeded(1)
		}, lessThan, evidence.ErrNotProven},
		"by less than a hundredth": {func(g *game) {
			g.ended[g.send(failed, "zero>user 1.099")] = succeeded(1)
		}, "", nil},
		"it passes on what it is minted": {func(g *game) {
			g.ended[g.send(failed, "zero>user 10, user>friend 10")] = succeeded(1)
		}, lessThan, evidence.ErrNotProven},
		"it ended another player's order": {func(g *game) {
			o := succeeded(10)
			o.UserAddress = stranger.Hex()
			g.ended[g.send(failed, "zero>friend 10, zero>user 10")] = o
		}, lessThan, evidence.ErrNotProven},
		"it ended another player's order, and this one's, too": {func(g *game) {
			g.ended[g.send(failed, "zero>friend 10, zero>user 10")] = succeeded(10)
		}, "", nil},
		"it ended a burn": {func(g *game) {
			o := orderOf(ramp.Burn, 10)
			o.State = ramp.OrderSucceeded
			g.ended[g.send(failed, "user>zero 10, zero>user 10")] = o
		}, lessThan, evidence.ErrNotProven},
		"it ended an order as failed": {func(g *game) {
			o := succeeded(10)
			o.State = ramp.OrderFailed
			g.ended[g.send(failed, "zero>user 10")] = o
		}, lessThan, evidence.ErrNotProven},
		"a mint that ended it": {func(g *game) { g.ended[g.send(failed, "zero>user 10")] = g.order }, minted,
			evidence.ErrNotProven},
		"a mint an hour before": {func(g *game) { g.send(accepted.Add(-time.Hour), "zero>user 10") }, "", nil},
		"a mint 10 minutes before, by the chain's clock": {func(g *game) {
			g.send(accepted.Add(-10*time.Minute), "zero>user 10")
		}, minted, evidence.ErrNotProven},
		"a mint, and the game's clock is an hour ahead": {func(g *game) {
			g.order.AcceptedAt = accepted.Add(time.Hour)
			g.send(failed.Add(-10*time.Minute), "zero>user 10")
		}, minted, evidence.ErrNotProven},
		"a mint after the failure": {func(g *game) { g.send(now, "zero>user 10") }, minted, evidence.ErrNotProven},
		"a mint, in small queries": {func(g *game) { g.send(failed, "zero>user 10"); g.Widest = 100 }, minted,
			evidence.ErrNotProven},
		"a mint that is not readable": {func(g *game) {
			g.hide(g.send(failed, "zero>user 10"))
		},
			"and does not return it", evidence.ErrNotProven},
		"a mint of a token without decimals": {func(g *game) {
			g.proof.Decimals = nil
			g.send(failed, "zero>user 1u")
		}, minted, evidence.ErrNotProven},

		"a mint behind dust, and the node stops at 256 events": {func(g *game) {
			for range 300 {
				g.send(accepted, "zero>user 0.01")
			}
			g.send(failed, "zero>user 10")
			g.MostLogs = 256
		}, minted, evidence.ErrNotProven},

		// An empty list says nothing if the node does not list what is known.
		"the node lists nothing": {func(g *game) {
			g.send(failed, "zero>user 10")
			g.Lists = func(*rig.Tx) bool { return false }
		},
			"lists none of its events: its index is broken", nil},
		"the node lists nothing of many blocks": {func(g *game) {
			g.newest.TxHash = g.send(failed, "zero>friend 3").Hex()
			g.send(failed, "zero>user 10")
			g.Widest, g.Silent = 100, true
		}, "lists none of its events", nil},
		"the node lists no older events": {func(g *game) {
			g.Lists = func(tx *rig.Tx) bool { return tx.Block >= g.BlockAt(accepted) }
		},
			"lists none of its events", nil},
		"the node has no transactions": {func(g *game) { g.hide(g.Sent[0].Hash) },
			"the node does not return transaction", ramp.ErrNotFound},
		"nothing is known": {func(g *game) { g.newest = nil; g.Lists = func(*rig.Tx) bool { return false } }, "", nil},
		"the store fails": {func(g *game) {
			g.ended[g.send(failed, "zero>user 10")] = ramp.Order{}
			g.err = errors.New("no connection")
		}, "no connection", nil},

		// Every request is of the same chain, and no node lies behind.
		"the node is behind": {func(g *game) { g.Head -= 100 }, "the node is behind", nil},
		"one of several is": {func(g *game) { g.Asked = func(n *rig.Node) { n.Head -= uint64(n.Requests % 2) } },
			"the node is behind", nil},
		"the chain is changed": {func(g *game) {
			g.Asked = func(n *rig.Node) { n.ChainID = 1112 + uint64(n.Requests/4) }
		},
			"its chain ID is 1113, and not 1112", ramp.ErrWrongChain},
		"old blocks are gone": {func(g *game) {
			g.Oldest = g.BlockAt(accepted.Add(-20 * time.Minute))
			g.send(failed, "zero>user 10")
		},
			minted, evidence.ErrNotProven},
		"and too many of them": {func(g *game) { g.Oldest = g.BlockAt(accepted) }, "the node does not know it",
			ramp.ErrNotFound},
		"a chain of few blocks": {func(g *game) {
			g.Begin, g.Head, g.Sent[0].Block = now.Add(-30*time.Second), 30, 5
		}, "", nil},
	} {
		inBubble(t, name, func(t *testing.T) {
			witness := orderOf(ramp.Mint, 3)
			witness.UserAddress, witness.State = stranger.Hex(), ramp.OrderSucceeded
			g := &game{newNode(), &ledger{&witness, map[common.Hash]ramp.Order{}, nil, nil},
				orderOf(ramp.Mint, 10), evidence.Config{}}
			witness.TxHash = g.send(now.Add(-24*time.Hour), "zero>friend 3").Hex()
			g.order.AcceptedAt = accepted
			g.proof = evidence.Config{Chain: g.RPC(t), Contracts: []common.Address{rampBridge},
				Decimals: map[common.Address]int{proofToken: 18}}
			receipt := g.failed(failed)
			tt.play(g)
			if g.Head < 100 {
				receipt.BlockNumber = ramp.NewQuantity(20)
			}
			knows := g.newest != nil
			prover := evidence.NewProver(g.proof)
			witnessed, err := prover.Unminted(t.Context(), g.ledger, &g.order, receipt)
			if tt.want == "" {
				require.NoError(t, err)
				assert.Equal(t, knows, witnessed)
				return
			}
			assert.ErrorContains(t, err, tt.want)
			if tt.is != nil {
				assert.ErrorIs(t, err, tt.is)
			}
			assert.Equal(t, tt.is == evidence.ErrNotProven, errors.Is(err, evidence.ErrNotProven))
		})
	}
}

// What it costs a node to say that nothing was minted. The request for the receipt comes on top.
func TestASearchAsksTheNodeLittle(t *testing.T) {
	for _, age := range []time.Duration{time.Minute, time.Hour, 13 * time.Hour} {
		n := newNode()
		witness, other := orderOf(ramp.Burn, 3), orderOf(ramp.Mint, 1)
		other.State = ramp.OrderSucceeded
		witness.TxHash = n.send(now.Add(-24*time.Hour), "user>zero 3").Hex()
		order := orderOf(ramp.Mint, 10)
		order.AcceptedAt = now.Add(-age)
		little := n.send(now.Add(-time.Minute), "zero>user 0.1")
		decimals := map[common.Address]int{proofToken: 18}
		prover := evidence.NewProver(evidence.Config{Chain: n.RPC(t), Decimals: decimals})
		n.Requests, n.Calls = 0, 0
		ended := map[common.Hash]ramp.Order{little: other}
		failed := n.failed(now.Add(-30 * time.Second))
		witnessed, err := prover.Unminted(t.Context(), &ledger{&witness, ended, nil, nil}, &order, failed)
		require.NoError(t, err)
		assert.True(t, witnessed)
		assert.LessOrEqual(t, n.Requests, 8, age)
		t.Logf("an order of %s: %d requests with %d calls", age, n.Requests, n.Calls)
	}
}
