package ramp_test

import (
	"encoding/json"
	"errors"
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
	requests, batch := requestsOf(r)
	answer := func(id uint64) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":"0x7"}`, id) }
	if !batch {
		n.sizes = append(n.sizes, 0)
		return status(200, nil, answer(requests[0].ID))(r)
	}
	n.sizes = append(n.sizes, len(requests))
	if n.answer != nil {
		if code, text := n.answer(len(requests)); text != "" {
			return status(code, nil, strings.ReplaceAll(text, "FIRST", fmt.Sprint(requests[0].ID)))(r)
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
			answers = append(answers, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":%s}`, request.ID, rest))
		}
	}
	return status(200, nil, "["+strings.Join(answers, ",")+"]")(r)
}

func (n *batchLimit) client() *ramp.RPC { return rpcOver(n, ramp.RPCConfig{}) }

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
		"go-ethereum":             {200, `[{"jsonrpc":"2.0","id":FIRST,"error":{"code":-32600,"message":"batch too large"}}]`},
		"Erigon":                  {200, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"batch limit 10 exceeded (can increase by --rpc.batch.limit)"}}`},
		"Nethermind":              {200, `{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"Batch size limit exceeded"}}`},
		"reth":                    {200, `{"jsonrpc":"2.0","id":null,"error":{"code":-32010,"message":"The batch request was too large","data":"Exceeded max limit of 10"}}`},
		"a gateway with HTTP 500": {500, "batch limit of 10 exceeded"},
		"a gateway with HTTP 400": {400, `{"error":{"code":-32602,"message":"maximum batch size is 10"}}`},
		"dRPC":                    {200, `{"id":null,"error":{"code":31,"message":"Batch of more than 10 requests are not allowed on free tier"}}`},
	} {
		inBubble(t, name, func(t *testing.T) {
			n := &batchLimit{answer: func(n int) (int, string) {
				if n > 10 {
					return rejection.code, rejection.body
				}
				return 0, ""
			}}
			client := n.client()
			assert.Equal(t, []int{25, 12, 6, 6, 6, 6, 0}, n.askAll(t, client, 25))
			assert.Equal(t, []int{6, 6, 6, 6, 0}, n.askAll(t, client, 25), "the next batch is not rejected")
		})
	}
}

func TestANodeWithoutBatchesIsAskedOneByOne(t *testing.T) {
	for name, body := range map[string]string{
		"reth":               `{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"Batched requests are not supported by this server"}}`,
		"an invalid request": `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}`,
		"a parse error":      `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"cannot unmarshal array into object"}}`,
	} {
		inBubble(t, name, func(t *testing.T) {
			n := &batchLimit{answer: func(int) (int, string) { return 200, body }}
			client := n.client()
			assert.Equal(t, []int{5, 2, 0, 0, 0, 0, 0}, n.askAll(t, client, 5))
			assert.Equal(t, []int{0, 0, 0}, n.askAll(t, client, 3))
		})
	}
}

// Whether an answer is too large depends on the calls, so the next batch starts anew.
func TestTheCallsWhoseAnswerIsTooLargeAreAskedForInHalves(t *testing.T) {
	for name, n := range map[string]*batchLimit{
		"go-ethereum, the rest": {part: func(n int) (int, string) { return min(n, 3), `{"code":-32003,"message":"response too large"}` }},
		"reth, all of it": {answer: func(n int) (int, string) {
			if n > 3 {
				return 200, `{"jsonrpc":"2.0","id":null,"error":{"code":-32008,"message":"Response is too big","data":"Exceeded max limit of 167772160"}}`
			}
			return 0, ""
		}},
		"a proxy": {answer: func(n int) (int, string) {
			if n > 3 {
				return 413, "<html>"
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
			client := n.client()
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
		n := &batchLimit{part: func(n int) (int, string) { return 1, `{"code":-32003,"message":"transaction rejected"}` }}
		calls, _ := balances(3)
		require.NoError(t, n.client().Batch(t.Context(), calls))
		assert.Equal(t, []int{3, 0, 0}, n.sizes, "the code decides")
		assert.NoError(t, calls[2].Err)
	})
}

// Anybody can deploy a contract, and call it what they want.
func TestTheTextOfAContractSwitchesNoBatchesOff(t *testing.T) {
	for name, failure := range map[string]string{
		"go-ethereum":             `{"code":3,"message":"execution reverted: batch mint is paused","data":"0x08c379a0"}`,
		"an older node":           `{"code":-32000,"message":"execution reverted: batch limit 10 exceeded"}`,
		"in the data":             `{"code":-32000,"message":"execution reverted","data":"batch size limit exceeded, response is too big"}`,
		"invalid parameters":      `{"code":-32602,"message":"batch"}`,
		"an invalid request":      `{"code":-32600,"message":"batch"}`,
		"the code of go-ethereum": `{"code":-32003,"message":"response too large"}`,
	} {
		inBubble(t, name, func(t *testing.T) {
			n := &batchLimit{part: func(int) (int, string) { return 99, failure }}
			client := n.client()
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
		"instead of the batch":            `{"id":null,"error":{"code":3,"message":"execution reverted: batch mint is paused"}}`,
		"as the only answer":              `[{"id":FIRST,"error":{"code":3,"message":"execution reverted: batch mint is paused"}}]`,
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
			client := n.client()
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
		client := n.client()
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
		assert.Equal(t, []int{5, 3}, n.askAll(t, n.client(), 5))

		n.part = func(int) (int, string) { return 1, "" }
		n.sizes = nil
		calls, _ := balances(4)
		require.NoError(t, n.client().Batch(t.Context(), calls))
		assert.Equal(t, []int{4, 3}, n.sizes)
		assert.NoError(t, calls[1].Err)
		assert.ErrorContains(t, calls[2].Err, "the answer to the batch has none for this call")

		n.sizes = nil // a send that is not answered may have arrived
		calls, _ = balances(4)
		for i := range calls {
			calls[i].Method = "eth_sendRawTransaction"
		}
		require.NoError(t, n.client().Batch(t.Context(), calls))
		assert.Equal(t, []int{4}, n.sizes)
	})
}

// logNode has one log in each block. It rejects ranges as a test says.
type logNode struct {
	reject func(from, to uint64) string // the error member of the answer, "" to answer
	quiet  bool                         // there are no logs
	asked  [][2]uint64
}

func (n *logNode) RoundTrip(r *http.Request) (*http.Response, error) {
	requests, _ := requestsOf(r)
	request := requests[0]
	var filter struct{ FromBlock, ToBlock ramp.Quantity }
	if err := json.Unmarshal(request.Params[0], &filter); err != nil {
		return nil, err
	}
	from, _ := filter.FromBlock.Uint64()
	to, _ := filter.ToBlock.Uint64()
	n.asked = append(n.asked, [2]uint64{from, to})
	if rejected := n.reject(from, to); rejected != "" {
		return status(200, nil, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":%s}`, request.ID, rejected))(r)
	}
	var logs []string
	for at := from; at <= to && !n.quiet; at++ {
		logs = append(logs, fmt.Sprintf(`{"blockNumber":"0x%x","topics":[],"data":"0x"}`, at))
	}
	return status(200, nil, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":[%s]}`, request.ID, strings.Join(logs, ",")))(r)
}

func (n *logNode) client() *ramp.RPC { return rpcOver(n, ramp.RPCConfig{}) }

// rangeRejections are what nodes and providers say, from their public sources.
var rangeRejections = map[string]string{
	"Infura, results":      `{"code":-32005,"message":"query returned more than 10000 results"}`,
	"Infura, time":         `{"code":-32005,"message":"query timeout exceeded"}`,
	"Infura, blocks":       `{"code":-32602,"message":"range 1000000 exceeds limit of 10000"}`,
	"Alchemy, results":     `{"code":-32602,"message":"Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range and no limit on the response size, or you can request any block range with a cap of 10K logs in the response."}`,
	"Alchemy, blocks":      `{"code":-32600,"message":"You can make eth_getLogs requests with up to a 500 block range. Based on your parameters, this block range should work: [0x1a30dfd, 0x1a30ff0]"}`,
	"Ankr":                 `{"code":-32600,"message":"block range is too wide"}`,
	"QuickNode":            `{"code":-32614,"message":"eth_getLogs is limited to a 10,000 range"}`,
	"QuickNode, earlier":   `{"code":-32602,"message":"eth_getLogs and eth_newFilter are limited to a 10,000 blocks range"}`,
	"Tenderly":             `{"code":-32602,"message":"invalid params","data":{"error_id":"4ed9","payload":"range 9009594 is bigger than range limit 2000"}}`,
	"Cloudflare":           `{"code":-32047,"message":"Invalid eth_getLogs request. 'fromBlock'-'toBlock' range too large. Max range: 800"}`,
	"Chainstack":           `{"code":-32602,"message":"Block range limit exceeded."}`,
	"Erigon, results":      `{"code":-32000,"message":"logs matched by query exceeds limit of 10000"}`,
	"Erigon, blocks":       `{"code":-32005,"message":"block range too large, max range: 1000"}`,
	"reth, results":        `{"code":-32602,"message":"query exceeds max results 20000, retry with the range 24383075-24383096"}`,
	"reth, blocks":         `{"code":-32602,"message":"query exceeds max block range 100000"}`,
	"Blast":                `{"code":-32000,"message":"log query timed out"}`,
	"BNB chain":            `{"code":-32000,"message":"exceed maximum block range: 50000"}`,
	"Arbitrum":             `{"code":-32000,"message":"Exceeded max range limit for eth_getLogs: 10000"}`,
	"Scroll":               `{"code":-32000,"message":"block range is bigger than maxBlockRange"}`,
	"Morph":                `{"code":-32000,"message":"block range is larger than max block range, block range = 5120, max block range = 5000"}`,
	"Optimism":             `{"code":-32600,"message":"Block range is too large"}`,
	"Avalanche":            `{"code":-32000,"message":"requested too many blocks from 1 to 5000, maximum is set to 2048"}`,
	"thirdweb":             `{"code":-32005,"message":"Maximum allowed number of requested blocks is 3500"}`,
	"Harmony":              `{"code":-32000,"message":"query must be smaller than size 1024"}`,
	"GetBlock":             `{"code":-32000,"message":"maximum [from, to] blocks distance: 2000"}`,
	"dRPC":                 `{"code":35,"message":"ranges over 10000 blocks are not supported on freetier"}`,
	"a gateway, size":      `{"code":-32603,"message":"backend response too large"}`,
	"reth, size of answer": `{"code":-32008,"message":"Response is too big","data":"Exceeded max limit of 167772160"}`,
}

func TestLogsBetweenSplitsWhereTheNodeRejectsARange(t *testing.T) {
	for name, rejection := range rangeRejections {
		inBubble(t, name, func(t *testing.T) {
			n := &logNode{reject: func(from, to uint64) string {
				if to-from >= 100 {
					return rejection
				}
				return ""
			}}
			next, start := uint64(1000), time.Now()
			for log, err := range n.client().LogsBetween(t.Context(), ramp.LogFilter{}, 1000, 1999) {
				require.NoError(t, err)
				require.Equal(t, ramp.NewQuantity(next), log.BlockNumber, "in order, and each once")
				next++
			}
			assert.EqualValues(t, 2000, next)
			times := map[[2]uint64]int{}
			for _, asked := range n.asked {
				times[asked]++
			}
			most := 1
			if strings.Contains(rejection, "-32005") { // also a rate limit: a second try decides
				most = 2
			} else {
				assert.Zero(t, time.Since(start), "no rejection is repeated after a pause")
			}
			for asked, n := range times {
				assert.LessOrEqual(t, n, most, "%v", asked)
			}
			assert.LessOrEqual(t, len(times), 31)
		})
	}
}

// A limit on blocks is met once for each halving; then the node is asked for what it
// takes, and ever more rarely for more.
func TestLogsBetweenRemembersALimitOnBlocks(t *testing.T) {
	rejected := 0
	n := &logNode{reject: func(from, to uint64) string {
		if to-from >= 10 {
			rejected++
			return rangeRejections["Infura, blocks"]
		}
		return ""
	}}
	blocks := 0
	for _, err := range n.client().LogsBetween(t.Context(), ramp.LogFilter{}, 0, 8_639) {
		require.NoError(t, err)
		blocks++
	}
	assert.Equal(t, 8_640, blocks)
	assert.LessOrEqual(t, rejected, 20)
	assert.LessOrEqual(t, len(n.asked)-rejected, 1025)
}

// A node limits the number of logs, and most of them are in a few blocks.
func TestLogsBetweenAsksForMoreAgain(t *testing.T) {
	rejected := 0
	n := &logNode{quiet: true, reject: func(from, to uint64) string {
		if from <= 500_007 && 500_000 <= to && from < to {
			rejected++
			return rangeRejections["Erigon, results"]
		}
		return ""
	}}
	for _, err := range n.client().LogsBetween(t.Context(), ramp.LogFilter{}, 0, 1_000_000) {
		require.NoError(t, err)
	}
	assert.EqualValues(t, 1_000_000, n.asked[len(n.asked)-1][1])
	assert.EqualValues(t, 0, n.asked[0][0])
	assert.LessOrEqual(t, len(n.asked), 250)
}

// What a node says again is about the range; what passes was a rate limit.
func TestASecondTryDecidesWhatLogsBetweenSplits(t *testing.T) {
	page := func(code int) func(*http.Request) (*http.Response, error) { return status(code, nil, "<html>") }
	rpc := func(code int) func(*http.Request) (*http.Response, error) {
		return status(200, nil, fmt.Sprintf(`{"id":null,"error":{"code":%d,"message":"slow down, or ask for less"}}`, code))
	}
	for name, tt := range map[string]struct {
		answer func(*http.Request) (*http.Response, error)
		times  int // how often the node says so
		asked  []uint64
	}{
		"-32005 twice":             {rpc(-32005), 2, []uint64{15, 15, 7, 15}},
		"-32005 for ever":          {rpc(-32005), 99, []uint64{15, 15, 7, 7, 3, 3, 1, 1, 0, 0, 0}},
		"-32005 and Retry-After":   {status(200, map[string]string{"Retry-After": "9"}, `{"id":null,"error":{"code":-32005,"message":"m"}}`), 99, []uint64{15, 15, 15}},
		"a flood of Retry-After":   {status(504, map[string]string{"Retry-After": "2147483647"}, ""), 99, []uint64{15}},
		"-32005 in a 429":          {status(429, nil, `{"id":null,"error":{"code":-32005,"message":"m"}}`), 99, []uint64{15, 15, 15}},
		"-32007":                   {rpc(-32007), 99, []uint64{15, 15, 15}},
		"-32029":                   {rpc(-32029), 99, []uint64{15, 15, 15}},
		"-32016, and then it ends": {rpc(-32016), 2, []uint64{15, 15, 15}},
		"-32600 in a 429":          {status(429, nil, `{"id":null,"error":{"code":-32600,"message":"m"}}`), 99, []uint64{15, 15, 15}},
		"no connection":            {disconnect, 99, []uint64{15, 15, 15}},
		"504 twice":                {page(504), 2, []uint64{15, 15, 7, 15}},
		"no answer in time, twice": {hang, 2, []uint64{15, 15, 7, 15}},
		"413":                      {page(413), 1, []uint64{15, 7, 15}},
		"more logs than we read":   {status(200, nil, `{"id":1,"result":[`+strings.Repeat(`{},`, 100_000)+`{}]}`), 1, []uint64{15, 7, 15}},
		"-32002":                   {rpc(-32002), 1, []uint64{15, 7, 15}},
		"no such method":           {rpc(-32601), 99, []uint64{15}},
		"no permission":            {page(403), 99, []uint64{15}},
	} {
		inBubble(t, name, func(t *testing.T) {
			var asked []uint64
			n := &logNode{quiet: true, reject: func(uint64, uint64) string { return "" }}
			client, err := ramp.NewRPC(ramp.RPCConfig{URL: "https://node.example.com", HTTPClient: &http.Client{Transport: roundTripper(
				func(r *http.Request) (*http.Response, error) {
					n.asked = nil
					response, err := n.RoundTrip(r)
					if asked = append(asked, n.asked[0][1]); len(asked) <= tt.times {
						return tt.answer(r)
					}
					return response, err
				})}})
			require.NoError(t, err)
			for _, failed := range client.LogsBetween(t.Context(), ramp.LogFilter{}, 0, 15) {
				err = failed
			}
			assert.Equal(t, tt.times == 99, err != nil, err)
			assert.Equal(t, tt.asked, asked)
		})
	}
}

func TestLogsBetweenEndsAtAnError(t *testing.T) {
	for name, test := range map[string]struct {
		reject string
		text   string
	}{
		"one block that is too large": {rangeRejections["Infura, results"], "query returned more than"},
		"another rejection":           {`{"code":-32000,"message":"block range extends beyond current head block"}`, "beyond current head"},
		"a rate limit":                {`{"code":-32005,"message":"daily request count exceeded, request rate limited"}`, "rate limited"},
	} {
		inBubble(t, name, func(t *testing.T) {
			n := &logNode{reject: func(from, to uint64) string {
				if from <= 7 && 7 <= to {
					return test.reject
				}
				return ""
			}}
			var failed error
			for _, err := range n.client().LogsBetween(t.Context(), ramp.LogFilter{}, 0, 15) {
				if err != nil {
					require.NoError(t, failed, "one error")
					failed = err
				}
			}
			assert.ErrorContains(t, failed, test.text)
			assert.NotContains(t, n.asked, [2]uint64{8, 15}, "nothing after it is asked for")
		})
	}
	again := &logNode{reject: func(from, to uint64) string {
		if to-from > 3 {
			return rangeRejections["Ankr"]
		}
		return ""
	}}
	logs := again.client().LogsBetween(t.Context(), ramp.LogFilter{}, 0, 15)
	for range 2 {
		n := 0
		for _, err := range logs {
			require.NoError(t, err)
			n++
		}
		assert.Equal(t, 16, n, "an iteration can be repeated")
	}
	n := &logNode{reject: func(uint64, uint64) string { return "" }}
	for range n.client().LogsBetween(t.Context(), ramp.LogFilter{}, 0, 15) {
		break
	}
	assert.Len(t, n.asked, 1)
	for range n.client().LogsBetween(t.Context(), ramp.LogFilter{}, 16, 15) {
		t.Error("there are no blocks")
	}
	assert.Len(t, n.asked, 1)
	for _, err := range n.client().LogsBetween(t.Context(), ramp.LogFilter{BlockHash: [32]byte{1}}, 0, 15) {
		assert.ErrorContains(t, err, "either BlockHash, or FromBlock and ToBlock")
	}
	_, err := n.client().Logs(t.Context(), ramp.LogFilter{FromBlock: "newest"})
	assert.ErrorContains(t, err, "a block must be latest, safe, finalized, earliest, pending, or a number")
	assert.Len(t, n.asked, 1, "an unknown tag is not sent")
	var rejected *ramp.RPCError
	assert.False(t, errors.As(err, &rejected))
}
