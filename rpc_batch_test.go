package ramp_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ramp "github.com/token-ramp/ramp-go"
)

// batchLimit is a node that limits batches in the way of some provider.
type batchLimit struct {
	answer func(n int) (code int, body string) // for a batch of n calls; "" to answer it
	part   func(n int) (answered int, rest string)
	sizes  []int // 0 for a call without brackets
}

func (n *batchLimit) RoundTrip(r *http.Request) (*http.Response, error) {
	requests, batch, err := requestsOf(r)
	if err != nil {
		return nil, err
	}
	answer := func(id []byte) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":"0x7"}`, id) }
	if !batch {
		n.sizes = append(n.sizes, 0)
		return status(200, nil, answer(requests[0].ID))(r)
	}
	n.sizes = append(n.sizes, len(requests))
	if n.answer != nil {
		if code, text := n.answer(len(requests)); text != "" {
			return status(code, nil, strings.ReplaceAll(text, "FIRST", string(requests[0].ID)))(r)
		}
	}
	answered, rest := len(requests), ""
	if n.part != nil {
		answered, rest = n.part(len(requests))
	}
	var answers []string
	for i, request := range requests {
		switch {
		case i < answered:
			answers = append(answers, answer(request.ID))
		case rest != "":
			answers = append(answers, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":%s}`, request.ID, rest))
		}
	}
	return status(200, nil, "["+strings.Join(answers, ",")+"]")(r)
}

func (n *batchLimit) client(t testing.TB) *ramp.RPC { return rpcOver(t, n, ramp.RPCConfig{}) }

// askAll makes a batch that must succeed at once, and returns the sizes of its
// requests.
func (n *batchLimit) askAll(t *testing.T, client *ramp.RPC, calls int) []int {
	t.Helper()
	n.sizes = nil
	batch, got := balances(calls)
	start := time.Now()
	require.NoError(t, client.Batch(t.Context(), batch))
	assert.Zero(t, time.Since(start), "no rejection is repeated after a pause")
	for i := range batch {
		assert.NoError(t, batch[i].Err)
		assert.Equal(t, "7", got[i].String())
	}
	return n.sizes
}

// The node limits how many calls a request may have. What worked is remembered.
func TestABatchFitsTheLimitOfTheNode(t *testing.T) {
	for name, rejection := range map[string]struct {
		code int
		body string
	}{
		"go-ethereum": {200,
			`[{"jsonrpc":"2.0","id":FIRST,"error":{"code":-32600,"message":"batch too large"}}]`},
		"Erigon": {200,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"batch limit 10 exceeded (can increase by ` +
				`--rpc.batch.limit)"}}`},
		"Nethermind": {200,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"Batch size limit exceeded"}}`},
		"reth": {200,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32010,"message":"The batch request was too large",` +
				`"data":"Exceeded max limit of 10"}}`},
		"a gateway with HTTP 500": {500, "batch limit of 10 exceeded"},
		"a list with one error": {200,
			`[{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batch too large"}}]`},
		"a list, without an id": {200,
			`[{"jsonrpc":"2.0","error":{"code":-32000,"message":"batch limit 10 exceeded"}}]`},
		"a proxy with HTTP 413":   {413, "<html>"},
		"a gateway with HTTP 400": {400, `{"error":{"code":-32602,"message":"maximum batch size is 10"}}`},
		"dRPC": {200,
			`{"id":null,"error":{"code":31,"message":"Batch of more than 10 requests are not allowed on free tier"}}`},
	} {
		inBubble(t, name, func(t *testing.T) {
			n := &batchLimit{answer: func(n int) (int, string) {
				if n > 10 {
					return rejection.code, rejection.body
				}
				return 0, ""
			}}
			client := n.client(t)
			assert.Equal(t, []int{25, 12, 6, 6, 6, 6, 0}, n.askAll(t, client, 25))
			assert.Equal(t, []int{6, 6, 6, 6, 0}, n.askAll(t, client, 25), "the next batch is not rejected")
			assert.LessOrEqual(t, len(n.askAll(t, n.client(t), 1500)), 254)
		})
	}
}

func TestANodeWithoutBatchesIsAskedOneByOne(t *testing.T) {
	for name, body := range map[string]string{
		"reth": `{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"Batched requests are not ` +
			`supported by this server"}}`,
		"an invalid request": `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}`,
		"a parse error": `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"cannot unmarshal array ` +
			`into object"}}`,
		"a list with one": `[{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}]`,
	} {
		inBubble(t, name, func(t *testing.T) {
			n := &batchLimit{answer: func(int) (int, string) { return 200, body }}
			client := n.client(t)
			assert.Equal(t, []int{5, 2, 0, 0, 0, 0, 0}, n.askAll(t, client, 5))
			assert.Equal(t, []int{0, 0, 0}, n.askAll(t, client, 3))
		})
	}
}

// Whether an answer is too large depends on the calls, so the next batch starts anew.
func TestTheCallsWhoseAnswerIsTooLargeAreAskedForInHalves(t *testing.T) {
	for name, n := range map[string]*batchLimit{
		"go-ethereum, the rest": {part: func(n int) (int, string) {
			return min(n, 3),
				`{"code":-32003,"message":"response too large"}`
		}},
		"reth, all of it": {answer: func(n int) (int, string) {
			if n > 3 {
				return 200,
					`{"jsonrpc":"2.0","id":null,"error":{"code":-32008,"message":"Response is too big",` +
						`"data":"Exceeded max limit of 167772160"}}`
			}
			return 0, ""
		}},
		"a node that answers more than we read": {answer: func(n int) (int, string) {
			if n > 3 {
				return 200, strings.Repeat(" ", 2000)
			}
			return 0, ""
		}},
	} {
		inBubble(t, name, func(t *testing.T) {
			client := n.client(t)
			client.SetLimit(1000)
			first := n.askAll(t, client, 8)
			assert.Contains(t, [][]int{{8, 4, 2, 2, 4, 2, 2}, {8, 4, 0, 0}}, first)
			assert.Equal(t, first, n.askAll(t, client, 8))

			n.sizes = nil // a send may have been done already; what was rejected beside it is asked for again
			calls, _ := balances(8)
			calls[7].Method = "eth_sendTransaction"
			assert.True(t, client.Batch(t.Context(), calls) != nil || calls[7].Err != nil)
			assert.Contains(t, [][]int{{8}, {8, 4, 0}}, n.sizes)
		})
	}
	synctest.Test(t, func(t *testing.T) {
		n := &batchLimit{part: func(n int) (int, string) {
			return 1,
				`{"code":-32003,"message":"transaction rejected"}`
		}}
		calls, _ := balances(3)
		require.NoError(t, n.client(t).Batch(t.Context(), calls))
		assert.Equal(t, []int{3, 0, 0}, n.sizes, "the code decides")
		assert.NoError(t, calls[2].Err)
	})
}

// Anybody can deploy a contract, and call it what they want.
func TestTheTextOfAContractSwitchesNoBatchesOff(t *testing.T) {
	for name, failure := range map[string]string{
		"go-ethereum": `{"code":3,"message":"execution reverted: batch mint is paused",` +
			`"data":"0x08c379a0"}`,
		"an older node": `{"code":-32000,"message":"execution reverted: batch limit 10 exceeded"}`,
		"in the data": `{"code":-32000,"message":"execution reverted","data":"batch size limit exceeded, ` +
			`response is too big"}`,
		"invalid parameters":      `{"code":-32602,"message":"batch"}`,
		"an invalid request":      `{"code":-32600,"message":"batch"}`,
		"the code of go-ethereum": `{"code":-32003,"message":"response too large"}`,
	} {
		inBubble(t, name, func(t *testing.T) {
			n := &batchLimit{part: func(int) (int, string) { return 99, failure }}
			client := n.client(t)
			for range 2 {
				n.sizes = nil
				calls, got := balances(100)
				require.NoError(t, client.Batch(t.Context(), calls))
				assert.Equal(t, 100, n.sizes[0], "the next batch is whole too")
				assert.LessOrEqual(t, len(n.sizes), 2)
				assert.Equal(t, "7", got[98].String())
				assert.Equal(t, len(n.sizes) == 1, calls[99].Err != nil)
			}
		})
	}
	for name, failure := range map[string]string{
		"instead of the batch": `{"id":null,"error":{"code":3,"message":"execution reverted: batch mint ` +
			`is paused"}}`,
		"as the only answer": `[{"id":FIRST,"error":{"code":3,"message":"execution reverted: batch mint ` +
			`is paused"}}]`,
		"a rate limit that names a batch": `{"id":null,"error":{"code":429,"message":"too many requests in a batch"}}`,
	} {
		inBubble(t, name, func(t *testing.T) {
			fails := true
			n := &batchLimit{answer: func(int) (int, string) {
				if fails {
					return 200, failure
				}
				return 0, ""
			}}
			client := n.client(t)
			calls, _ := balances(100)
			_ = client.Batch(t.Context(), calls)
			fails = false
			assert.Equal(t, []int{100}, n.askAll(t, client, 100))
		})
	}
}

// A limit counts once fewer calls have succeeded, so that a node that fails in every way
// is asked for a whole batch again.
func TestALimitIsRememberedOnceFewerCallsSucceed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := true
		n := &batchLimit{}
		n.answer = func(int) (int, string) {
			switch {
			case !down:
				return 0, ""
			case len(n.sizes) == 1:
				return 200, `{"id":null,"error":{"code":-32000,"message":"the batch processor is down"}}`
			default:
				return 404, "<html>"
			}
		}
		client := n.client(t)
		calls, _ := balances(100)
		assert.ErrorContains(t, client.Batch(t.Context(), calls), "HTTP 404")
		assert.Equal(t, []int{100, 50}, n.sizes)
		down = false
		assert.Equal(t, []int{100}, n.askAll(t, client, 100))
	})
}

func TestWhatAnAnswerLeavesOutIsAskedForOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &batchLimit{}
		n.part = func(calls int) (int, string) {
			if len(n.sizes) == 1 {
				return 2, ""
			}
			return calls, ""
		}
		assert.Equal(t, []int{5, 3}, n.askAll(t, n.client(t), 5))

		n.part = func(int) (int, string) { return 1, "" }
		n.sizes = nil
		calls, _ := balances(4)
		require.NoError(t, n.client(t).Batch(t.Context(), calls))
		assert.Equal(t, []int{4, 3}, n.sizes)
		assert.NoError(t, calls[1].Err)
		assert.ErrorContains(t, calls[2].Err, "the answer to the batch has none for this call")

		n.sizes = nil // a send that is not answered may have arrived
		calls, _ = balances(4)
		for i := range calls {
			calls[i].Method = "eth_sendRawTransaction"
		}
		require.NoError(t, n.client(t).Batch(t.Context(), calls))
		assert.Equal(t, []int{4}, n.sizes)
	})
}
