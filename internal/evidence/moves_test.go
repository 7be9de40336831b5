package evidence_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence"
	"github.com/token-ramp/ramp-go/internal/evidence/movetest"
	"github.com/token-ramp/ramp-go/internal/test/jsonrpc"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/rig"
)

// now is when the newest block of a node is made. It makes one each second.
var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// node is a node in memory.
type node struct {
	chainID uint64
	head    uint64
	oldest  uint64                     // block that it has kept
	sent    map[common.Hash][]ramp.Log // the events of each transaction
	blocks  map[common.Hash]uint64     // of the transactions
	widest  uint64                     // most blocks in a query of logs, or 0
	silent  bool                       // about wider queries: it lists nothing, and says nothing
	blind   func(block uint64) bool    // of which blocks no logs are listed
	most    int                        // after how many logs a list ends and does not say so, or 0
	late    bool                       // and whether it keeps the newest ones
	hides   common.Hash                // a transaction that it does not return
	change  func(*node)                // before each request

	// What it answers instead, if the last result is true.
	say func(n *node, method string, params []json.RawMessage) (result any, problem string, instead bool)

	requests, calls int
}

func newNode() *node {
	return &node{chainID: 7, head: 1_000_000,
		sent: map[common.Hash][]ramp.Log{}, blocks: map[common.Hash]uint64{},
		blind: func(uint64) bool { return false }, change: func(*node) {}}
}

func (n *node) blockAt(at time.Time) uint64 { return n.head - uint64(now.Sub(at)/time.Second) }

// send puts a transaction into the chain; see movetest.
func (n *node) send(at time.Time, list string) common.Hash {
	hash := common.BigToHash(big.NewInt(int64(len(n.sent) + 1)))
	n.blocks[hash] = n.blockAt(at)
	for i, l := range movetest.Logs(proofToken, list, named) {
		l.BlockNumber, l.TransactionHash = ramp.NewQuantity(n.blocks[hash]), hash
		l.LogIndex = ramp.NewQuantity(uint64(i))
		n.sent[hash] = append(n.sent[hash], l)
	}
	return hash
}

// receipt is that of a transaction that failed.
func (n *node) failed(at time.Time) *ramp.Receipt {
	return &ramp.Receipt{Status: ramp.NewQuantity(0), BlockNumber: ramp.NewQuantity(n.blockAt(at))}
}

func (n *node) RoundTrip(r *http.Request) (*http.Response, error) {
	n.requests++
	n.change(n)
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	text, err := jsonrpc.Answer(body, func(c jsonrpc.Call) (any, string) {
		n.calls++
		if n.say != nil {
			if result, problem, instead := n.say(n, c.Method, c.Params); instead {
				return result, problem
			}
		}
		return n.answer(c.Method, c.Params)
	})
	if err != nil {
		return nil, err
	}
	return status(200, nil, string(text))(r)
}

func (n *node) answer(method string, params []json.RawMessage) (any, string) {
	switch method {
	case "eth_chainId":
		return hexutil.Uint64(n.chainID), ""
	case "eth_call":
		return hexutil.Encode(common.LeftPadBytes([]byte{18}, 32)), ""
	case "eth_getBlockByNumber":
		number := hexutil.Uint64(n.head)
		if json.Unmarshal(params[0], &number) == nil && (uint64(number) > n.head || uint64(number) < n.oldest) {
			return nil, ""
		}
		made := now.Add(-time.Duration(n.head-uint64(number)) * time.Second)
		hashes := []common.Hash{}
		for hash, block := range n.blocks {
			if block == uint64(number) {
				hashes = append(hashes, hash)
			}
		}
		slices.SortFunc(hashes, common.Hash.Cmp)
		return map[string]any{"number": number, "timestamp": hexutil.Uint64(made.Unix()), "transactions": hashes}, ""
	case "eth_getTransactionReceipt":
		var hash common.Hash
		_ = json.Unmarshal(params[0], &hash)
		if n.blocks[hash] == 0 || hash == n.hides {
			return nil, ""
		}
		return ramp.Receipt{Status: ramp.NewQuantity(1), TransactionHash: hash, Logs: n.sent[hash],
			BlockNumber: ramp.NewQuantity(n.blocks[hash])}, ""
	case "eth_getLogs":
		return n.list(params[0])
	}
	return nil, "no such method"
}

func (n *node) list(param json.RawMessage) (any, string) {
	var f struct {
		Address            []common.Address
		FromBlock, ToBlock hexutil.Uint64
		Topics             [][]common.Hash
	}
	_ = json.Unmarshal(param, &f)
	wide := n.widest > 0 && uint64(f.ToBlock-f.FromBlock) >= n.widest
	if wide && n.silent {
		return []ramp.Log{}, ""
	}
	if wide {
		return nil, "block range is too wide"
	}
	listed := []ramp.Log{}
	for hash, block := range n.blocks {
		if block < uint64(f.FromBlock) || block > uint64(f.ToBlock) || n.blind(block) {
			continue
		}
		for _, l := range n.sent[hash] {
			matches := slices.Contains(f.Address, l.Address)
			for i, wanted := range f.Topics {
				matches = matches && i < len(l.Topics) && (len(wanted) == 0 || slices.Contains(wanted, l.Topics[i]))
			}
			if matches {
				listed = append(listed, l)
			}
		}
	}
	if n.most > 0 && len(listed) > n.most {
		slices.SortFunc(listed, func(a, b ramp.Log) int { return a.BlockNumber.Big().Cmp(b.BlockNumber.Big()) })
		if n.late {
			return listed[len(listed)-n.most:], ""
		}
		return listed[:n.most], ""
	}
	return listed, ""
}

func (n *node) client(t testing.TB) *ramp.RPC {
	return must.Get(ramp.NewRPC(ramp.RPCConfig{URL: "https://node.example.com", ChainID: 7, Retries: -1,
		HTTPClient: &http.Client{Transport: n}}))(t)
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
		"a mint, in small queries": {func(g *game) { g.send(failed, "zero>user 10"); g.widest = 100 }, minted,
			evidence.ErrNotProven},
		"a mint that is not readable": {func(g *game) {
			g.hides = g.send(failed, "zero>user 10")
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
			g.most = 256
		}, minted, evidence.ErrNotProven},

		// An empty list says nothing if the node does not list what is known.
		"the node lists nothing": {func(g *game) {
			g.send(failed, "zero>user 10")
			g.blind = func(uint64) bool { return true }
		},
			"lists none of its events: its index is broken", nil},
		"the node lists nothing of many blocks": {func(g *game) {
			g.newest.TxHash = g.send(failed, "zero>friend 3").Hex()
			g.send(failed, "zero>user 10")
			g.widest, g.silent = 100, true
		}, "lists none of its events", nil},
		"the node lists no older events": {func(g *game) {
			g.blind = func(b uint64) bool { return b < g.blockAt(accepted) }
		},
			"lists none of its events", nil},
		"the node has no transactions": {func(g *game) { g.hides = common.HexToHash("0x1") },
			"the node does not return transaction", ramp.ErrNotFound},
		"nothing is known": {func(g *game) { g.newest = nil; g.blind = func(uint64) bool { return true } }, "", nil},
		"the store fails": {func(g *game) {
			g.send(failed, "zero>user 10")
			g.ended[common.HexToHash("0x2")] = ramp.Order{}
			g.err = errors.New("no connection")
		}, "no connection", nil},

		// Every request is of the same chain, and no node lies behind.
		"the node is behind": {func(g *game) { g.head -= 100 }, "the node is behind", nil},
		"one of several is": {func(g *game) { g.change = func(n *node) { n.head -= uint64(n.requests % 2) } },
			"the node is behind", nil},
		"the chain is changed": {func(g *game) { g.change = func(n *node) { n.chainID = 7 + uint64(n.requests/4) } },
			"its chain ID is 8, and not 7", ramp.ErrWrongChain},
		"old blocks are gone": {func(g *game) {
			g.oldest = g.blockAt(accepted.Add(-20 * time.Minute))
			g.send(failed, "zero>user 10")
		},
			minted, evidence.ErrNotProven},
		"and too many of them": {func(g *game) { g.oldest = g.blockAt(accepted) }, "the node does not know it",
			ramp.ErrNotFound},
		"a chain of few blocks": {func(g *game) { g.head, g.blocks[common.HexToHash("0x1")] = 30, 5 }, "", nil},
	} {
		inBubble(t, name, func(t *testing.T) {
			witness := orderOf(ramp.Mint, 3)
			witness.UserAddress, witness.State = stranger.Hex(), ramp.OrderSucceeded
			g := &game{newNode(), &ledger{&witness, map[common.Hash]ramp.Order{}, nil, nil},
				orderOf(ramp.Mint, 10), evidence.Config{}}
			witness.TxHash = g.send(now.Add(-24*time.Hour), "zero>friend 3").Hex()
			g.order.AcceptedAt = accepted
			g.proof = evidence.Config{Chain: g.client(t), Contracts: []common.Address{rampBridge},
				Decimals: map[common.Address]int{proofToken: 18}}
			receipt := g.failed(failed)
			tt.play(g)
			if g.head < 100 {
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
		n.send(now.Add(-time.Minute), "zero>user 0.1")
		decimals := map[common.Address]int{proofToken: 18}
		prover := evidence.NewProver(evidence.Config{Chain: n.client(t), Decimals: decimals})
		n.requests, n.calls = 0, 0
		ended := map[common.Hash]ramp.Order{common.HexToHash("0x2"): other}
		failed := n.failed(now.Add(-30 * time.Second))
		witnessed, err := prover.Unminted(t.Context(), &ledger{&witness, ended, nil, nil}, &order, failed)
		require.NoError(t, err)
		assert.True(t, witnessed)
		assert.LessOrEqual(t, n.requests, 8, age)
		t.Logf("an order of %s: %d requests with %d calls", age, n.requests, n.calls)
	}
}
