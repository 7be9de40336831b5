package evidence_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/rig"
)

// counted lists what moved to the user in the last hour, and returns how often each transaction was
// listed.
func counted(t *testing.T, n *node) (map[common.Hash]int, error) {
	times := map[common.Hash]int{}
	filter := ramp.LogFilter{Addresses: []common.Address{proofToken},
		Topics: [][]common.Hash{{evidence.TransferTopic}, nil, {common.BytesToHash(proofUser[:])}}}
	for l, err := range logs(t, n.RPC(t), filter, n.BlockAt(now.Add(-time.Hour)), n.Head) {
		if err != nil {
			return nil, err
		}
		times[l.TransactionHash]++
	}
	return times, nil
}

// A node may stop after some number of events and say nothing, whichever it keeps. Nothing is missed,
// and nothing counts twice, wherever the events are.
func TestAListThatIsCutOffIsNotBelieved(t *testing.T) {
	start := now.Add(-50 * time.Minute)
	spread := func(n *node, many int, every time.Duration) {
		for i := range many {
			n.send(start.Add(time.Duration(i)*every), "zero>user 1u")
		}
	}
	for name, play := range map[string]func(*node){
		"one in each block":          func(n *node) { spread(n, 300, time.Second) },
		"one in each of some blocks": func(n *node) { spread(n, 300, 7*time.Second) },
		"all in one block":           func(n *node) { spread(n, 300, 0) },
		"all in one block, and one":  func(n *node) { spread(n, 300, 0); n.send(now, "zero>user 10") },
		"one, and all others in one": func(n *node) {
			n.send(start.Add(-time.Minute), "zero>user 10")
			spread(n, 300, 0)
		},
		"thirty in one, and more later": func(n *node) { spread(n, 30, 0); n.send(now, "zero>user 1u") },
		"bursts of thirty": func(n *node) {
			for i := range 10 {
				for range 30 {
					n.send(start.Add(time.Duration(i)*time.Minute), "zero>user 1u")
				}
			}
		},
		"nineteen": func(n *node) { spread(n, 19, time.Second) },
		"none":     func(*node) {},
	} {
		for _, limit := range []int{20, 37, 50, 99, 100, 250, 256} {
			for _, newest := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, a limit of %d, %v", name, limit, newest), func(t *testing.T) {
					n := newNode()
					n.MostLogs, n.Newest = limit, newest
					play(n)
					times, err := counted(t, n)
					require.NoError(t, err)
					assert.Len(t, times, len(n.Sent))
					for hash, n := range times {
						assert.Equal(t, 1, n, hash)
					}
				})
			}
		}
	}
}

// A list that is short costs one request, and one that is long and whole two.
func TestAListCostsOneRequestOrTwo(t *testing.T) {
	for many, most := range map[int]int{0: 1, 19: 1, 20: 2, 200: 2} {
		n := newNode()
		for i := range many {
			n.send(now.Add(-time.Duration(i)*time.Second), "zero>user 1u")
		}
		must.Get(counted(t, n))(t)
		assert.Equal(t, 1+most, n.Requests, "%d events, and the first check of the chain", many)
	}
}

// More events in one block than are believed are read from the receipts of the block, whichever way the
// node gives them. If it gives none, the error names it.
func TestABlockFullOfDustHidesNothing(t *testing.T) {
	for name, tt := range map[string]struct {
		say  func(n *node, method string, params []json.RawMessage) (any, string, bool)
		want string
	}{
		"each receipt": {func(*node, string, []json.RawMessage) (any, string, bool) { return nil, "", false }, ""},
		"the receipts of the block": {func(n *node, method string, params []json.RawMessage) (any, string, bool) {
			if method == "eth_getTransactionReceipt" {
				return nil, "rate limited", true
			}
			if method != "eth_getBlockReceipts" {
				return nil, "", false
			}
			block, _ := n.Answer("eth_getBlockByNumber", params)
			receipts := []any{}
			for _, hash := range block.(map[string]any)["transactions"].([]common.Hash) {
				text := must.Get(json.Marshal(hash))(t)
				receipt, _ := n.Answer("eth_getTransactionReceipt", []json.RawMessage{text})
				receipts = append(receipts, receipt)
			}
			return receipts, "", true
		}, ""},
		"no receipts": {func(_ *node, method string, _ []json.RawMessage) (any, string, bool) {
			return nil, "", method == "eth_getTransactionReceipt"
		}, "the node https://node.example.com may not have listed whole, and its receipts cannot be read: use " +
			"another node"},
		"a block without transactions": {func(_ *node, method string, params []json.RawMessage) (any, string, bool) {
			if method != "eth_getBlockByNumber" || string(params[0]) == `"latest"` {
				return nil, "", false
			}
			return map[string]any{"number": params[0]}, "", true
		}, "the node names no transactions of the block"},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode()
			n.MostLogs = 25
			n.Say = func(method string, params []json.RawMessage) (any, string, bool) {
				return tt.say(n, method, params)
			}
			for range 40 {
				n.send(now.Add(-time.Minute), "zero>user 1u, zero>friend 1u")
			}
			times, err := counted(t, n)
			if tt.want != "" {
				assert.ErrorContains(t, err, tt.want)
				return
			}
			require.NoError(t, err)
			assert.Len(t, times, 40)
		})
	}
}

// Only the node that lists events knows how far its list goes.
func TestAListOfANodeThatIsBehindIsNone(t *testing.T) {
	const behind = "the node is behind: its newest block is of "
	for name, tt := range map[string]struct {
		lag  func(n *rig.Node) // of a request; the node that tells the newest block has no lag
		size int               // of batches
		want string
	}{
		"at the head":                   {func(*rig.Node) {}, 100, ""},
		"behind":                        {func(n *rig.Node) { n.Head -= 600 }, 100, behind},
		"behind, at first":              {func(n *rig.Node) { n.Head -= uint64(max(0, 3-n.Requests)) }, 100, ""},
		"no batches":                    {func(*rig.Node) {}, 1, ""},
		"no batches, and always behind": {func(n *rig.Node) { n.Head -= 600 }, 1, behind},
		"no batches, and behind afterward": {func(n *rig.Node) {
			n.Head -= uint64(600 * max(0, min(1, n.Requests-3)))
		}, 1, behind},
	} {
		inBubble(t, name, func(t *testing.T) {
			n := newNode()
			to, full := n.Head, n.Head
			n.Asked = func(n *rig.Node) { n.Head = full; tt.lag(n) }
			client := must.Get(ramp.NewRPC(ramp.RPCConfig{URL: "https://node.example.com", ChainID: 1112, Retries: -1,
				BatchSize: tt.size, HTTPClient: &http.Client{Transport: n}}))(t)
			list := &evidence.Logs{Chain: client}
			var failed error
			for _, err := range list.Between(t.Context(), to-1000, to) {
				failed = err
			}
			if tt.want != "" {
				assert.ErrorContains(t, failed, tt.want)
				return
			}
			assert.NoError(t, failed)
			assert.Equal(t, now, list.LastTime)
		})
	}
}
