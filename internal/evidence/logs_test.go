package evidence_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence"
	"github.com/token-ramp/ramp-go/internal/test/jsonrpc"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// status answers every request alike.
func status(code int, header map[string]string, body string) roundTripper {
	return func(*http.Request) (*http.Response, error) {
		recorder := httptest.NewRecorder()
		for name, value := range header {
			recorder.Header().Set(name, value)
		}
		recorder.WriteHeader(code)
		_, _ = recorder.WriteString(body)
		return recorder.Result(), nil
	}
}

// rpcOver returns a client of a node on a network in memory.
func rpcOver(t testing.TB, network http.RoundTripper) *ramp.RPC {
	return must.Get(ramp.NewRPC(ramp.RPCConfig{URL: "https://node.example.com",
		HTTPClient: &http.Client{Transport: network}}))(t)
}

// inBubble runs a subtest in a bubble, whose time passes by itself.
func inBubble(t *testing.T, name string, test func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// logNode has one log in each block, or in each of every so many. It rejects ranges as a test says.
type logNode struct {
	reject func(from, to uint64) string // the error member of the answer, "" to answer
	quiet  bool                         // there are no logs
	every  uint64                       // blocks, or 0 for 1
	asked  [][2]uint64
}

func (n *logNode) RoundTrip(r *http.Request) (*http.Response, error) {
	return answerEach(r, func(method string, params []json.RawMessage) string {
		switch method {
		case "eth_chainId":
			return `"result":"0x7"`
		case "eth_getBlockByNumber":
			if string(params[0]) != `"latest"` {
				return `"result":null`
			}
			return `"result":{"number":"0x1000000","timestamp":"0x1"}`
		case "eth_getLogs":
			return n.list(params[0])
		}
		return `"error":{"code":-32601,"message":"no such method"}`
	})
}

func (n *logNode) list(param json.RawMessage) string {
	var filter struct{ FromBlock, ToBlock hexutil.Uint64 }
	_ = json.Unmarshal(param, &filter)
	from, to := uint64(filter.FromBlock), uint64(filter.ToBlock)
	n.asked = append(n.asked, [2]uint64{from, to})
	if rejected := n.reject(from, to); rejected != "" {
		return `"error":` + rejected
	}
	var logs []string
	for at := from; at <= to && !n.quiet; at++ {
		if at%max(1, n.every) == 0 {
			logs = append(logs, fmt.Sprintf(`{"blockNumber":"0x%x","topics":[],"data":"0x"}`, at))
		}
	}
	return `"result":[` + strings.Join(logs, ",") + `]`
}

// answerEach answers each call of a request by what a function returns: its result or error member.
func answerEach(
	r *http.Request, answer func(method string, params []json.RawMessage) string,
) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	text, err := jsonrpc.Answer(body, func(c jsonrpc.Call) (any, string) {
		return jsonrpc.Raw(answer(c.Method, c.Params)), ""
	})
	if err != nil {
		return nil, err
	}
	return status(200, nil, string(text))(r)
}

func (n *logNode) client(t testing.TB) *ramp.RPC { return rpcOver(t, n) }

// logs lists the logs of some blocks.
func logs(t testing.TB, node *ramp.RPC, filter ramp.LogFilter, from, to uint64) iter.Seq2[ramp.Log, error] {
	return (&evidence.Logs{Chain: node, Filter: filter}).Between(t.Context(), from, to)
}

// rangeRejections are what nodes and providers say, from their public sources.
var rangeRejections = map[string]string{
	"Infura, results": `{"code":-32005,"message":"query returned more than 10000 results"}`,
	"Infura, time":    `{"code":-32005,"message":"query timeout exceeded"}`,
	"Infura, blocks":  `{"code":-32602,"message":"range 1000000 exceeds limit of 10000"}`,
	"Alchemy, results": `{"code":-32602,"message":"Log response size exceeded. You can make eth_getLogs requests ` +
		`with up to a 2K block range and no limit on the response size, or you can request any block range with a ` +
		`cap of 10K logs in the response."}`,
	"Alchemy, blocks": `{"code":-32600,"message":"You can make eth_getLogs requests with up to a 500 block ` +
		`range. Based on your parameters, this block range should work: [0x1a30dfd, 0x1a30ff0]"}`,
	"Ankr":      `{"code":-32600,"message":"block range is too wide"}`,
	"QuickNode": `{"code":-32614,"message":"eth_getLogs is limited to a 10,000 range"}`,
	"QuickNode, earlier": `{"code":-32602,"message":"eth_getLogs and eth_newFilter are limited to a 10,000 ` +
		`blocks range"}`,
	"Tenderly": `{"code":-32602,"message":"invalid params","data":{"error_id":"4ed9","payload":"range ` +
		`9009594 is bigger than range limit 2000"}}`,
	"Cloudflare": `{"code":-32047,"message":"Invalid eth_getLogs request. 'fromBlock'-'toBlock' range too ` +
		`large. Max range: 800"}`,
	"Chainstack":      `{"code":-32602,"message":"Block range limit exceeded."}`,
	"Erigon, results": `{"code":-32000,"message":"logs matched by query exceeds limit of 10000"}`,
	"Erigon, blocks":  `{"code":-32005,"message":"block range too large, max range: 1000"}`,
	"reth, results": `{"code":-32602,"message":"query exceeds max results 20000, retry with the range ` +
		`24383075-24383096"}`,
	"reth, blocks": `{"code":-32602,"message":"query exceeds max block range 100000"}`,
	"Blast":        `{"code":-32000,"message":"log query timed out"}`,
	"BNB chain":    `{"code":-32000,"message":"exceed maximum block range: 50000"}`,
	"Arbitrum":     `{"code":-32000,"message":"Exceeded max range limit for eth_getLogs: 10000"}`,
	"Scroll":       `{"code":-32000,"message":"block range is bigger than maxBlockRange"}`,
	"Morph": `{"code":-32000,"message":"block range is larger than max block range, block range = ` +
		`5120, max block range = 5000"}`,
	"Optimism": `{"code":-32600,"message":"Block range is too large"}`,
	"Avalanche": `{"code":-32000,"message":"requested too many blocks from 1 to 5000, maximum is set ` +
		`to 2048"}`,
	"thirdweb":             `{"code":-32005,"message":"Maximum allowed number of requested blocks is 3500"}`,
	"Harmony":              `{"code":-32000,"message":"query must be smaller than size 1024"}`,
	"GetBlock":             `{"code":-32000,"message":"maximum [from, to] blocks distance: 2000"}`,
	"dRPC":                 `{"code":35,"message":"ranges over 10000 blocks are not supported on freetier"}`,
	"a gateway, size":      `{"code":-32603,"message":"backend response too large"}`,
	"reth, size of answer": `{"code":-32008,"message":"Response is too big","data":"Exceeded max limit of 167772160"}`,
}

func TestARangeThatTheNodeRejectsIsSplit(t *testing.T) {
	for name, rejection := range rangeRejections {
		inBubble(t, name, func(t *testing.T) {
			n := &logNode{every: 5, reject: func(from, to uint64) string {
				if to-from >= 100 {
					return rejection
				}
				return ""
			}}
			next, start := uint64(1000), time.Now()
			for log, err := range logs(t, n.client(t), ramp.LogFilter{}, 1000, 1999) {
				require.NoError(t, err)
				require.Equal(t, ramp.NewQuantity(next), log.BlockNumber, "in order, and each once")
				next += 5
			}
			assert.EqualValues(t, 2000, next)
			times := map[[2]uint64]int{}
			for _, asked := range n.asked {
				times[asked]++
			}
			most := 1
			switch {
			case strings.Contains(rejection, "-32005"): // also a rate limit: the last try decides
				most = 3
			case strings.Contains(rejection, "-32008"): // also of the batch: the call is made alone
				most = 2
			default:
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
func TestALimitOnBlocksIsRemembered(t *testing.T) {
	rejected := 0
	n := &logNode{reject: func(from, to uint64) string {
		if to-from >= 10 {
			rejected++
			return rangeRejections["Infura, blocks"]
		}
		return ""
	}}
	blocks := 0
	for _, err := range logs(t, n.client(t), ramp.LogFilter{}, 0, 8_639) {
		require.NoError(t, err)
		blocks++
	}
	assert.Equal(t, 8_640, blocks)
	assert.LessOrEqual(t, rejected, 20)
	assert.LessOrEqual(t, len(n.asked)-rejected, 1025)
}

// A node limits the number of logs, and most of them are in a few blocks.
func TestMoreBlocksAreAskedForAgain(t *testing.T) {
	rejected := 0
	n := &logNode{quiet: true, reject: func(from, to uint64) string {
		if from <= 500_007 && 500_000 <= to && from < to {
			rejected++
			return rangeRejections["Erigon, results"]
		}
		return ""
	}}
	for _, err := range logs(t, n.client(t), ramp.LogFilter{}, 0, 1_000_000) {
		require.NoError(t, err)
	}
	assert.EqualValues(t, 1_000_000, n.asked[len(n.asked)-1][1])
	assert.EqualValues(t, 0, n.asked[0][0])
	assert.LessOrEqual(t, len(n.asked), 250)
}

// hang answers when the request's context ends.
func hang(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// What a node says again and again is about the range; what passes was a rate limit.
func TestWhatPassesSplitsNothing(t *testing.T) {
	page := func(code int) roundTripper { return status(code, nil, "<html>") }
	rpc := func(code int) roundTripper {
		return func(r *http.Request) (*http.Response, error) {
			return (&logNode{reject: func(uint64, uint64) string {
				return fmt.Sprintf(`{"code":%d,"message":"slow down, or ask for less"}`, code)
			}}).RoundTrip(r)
		}
	}
	for name, tt := range map[string]struct {
		answer roundTripper
		times  int // how often the node says so
		asked  []uint64
	}{
		"-32005 three times":     {rpc(-32005), 3, []uint64{15, 15, 15, 7, 15}},
		"-32005 for ever":        {rpc(-32005), 99, []uint64{15, 15, 15, 7, 7, 7, 3, 3, 3, 1, 1, 1, 0, 0, 0}},
		"a flood of Retry-After": {status(504, map[string]string{"Retry-After": "2147483647"}, ""), 99, []uint64{15}},
		"-32005 in a 429": {status(429, nil, `{"id":null,"error":{"code":-32005,"message":"m"}}`), 99,
			[]uint64{15, 15, 15}},
		"-32007":                   {rpc(-32007), 99, []uint64{15, 15, 15}},
		"-32029":                   {rpc(-32029), 99, []uint64{15, 15, 15}},
		"-32016, and then it ends": {rpc(-32016), 2, []uint64{15, 15, 15}},
		"-32600 in a 429": {status(429, nil, `{"id":null,"error":{"code":-32600,"message":"m"}}`), 99,
			[]uint64{15, 15, 15}},
		"no connection": {func(*http.Request) (*http.Response, error) { return nil, errors.New("connection reset") },
			99, []uint64{15, 15, 15}},
		"504 three times":   {page(504), 3, []uint64{15, 15, 15, 7, 15}},
		"no answer in time": {hang, 3, []uint64{15, 15, 15, 7, 15}},
		"413":               {page(413), 1, []uint64{15, 15}}, // of the batch
		"more logs than we read": {status(200, nil, `{"id":1,"result":[`+strings.Repeat(`{},`, 100_000)+`{}]}`), 1,
			[]uint64{15, 7, 15}},
		"-32002":         {rpc(-32002), 1, []uint64{15, 7, 15}},
		"no such method": {rpc(-32601), 99, []uint64{15}},
		"no permission":  {page(403), 99, []uint64{15}},
	} {
		inBubble(t, name, func(t *testing.T) {
			var asked []uint64
			n := &logNode{quiet: true, reject: func(uint64, uint64) string { return "" }}
			client := rpcOver(t, roundTripper(func(r *http.Request) (*http.Response, error) {
				n.asked = nil
				body := must.Get(io.ReadAll(r.Body))(t)
				r.Body = io.NopCloser(bytes.NewReader(body))
				response, err := n.RoundTrip(r)
				if len(n.asked) > 0 {
					asked = append(asked, n.asked[0][1])
				}
				if len(n.asked) > 0 && len(asked) <= tt.times {
					r.Body = io.NopCloser(bytes.NewReader(body))
					return tt.answer(r)
				}
				return response, err
			}))
			var err error
			for _, failed := range logs(t, client, ramp.LogFilter{}, 0, 15) {
				err = failed
			}
			assert.Equal(t, tt.times == 99, err != nil, err)
			assert.Equal(t, tt.asked, asked)
		})
	}
}

func TestAnErrorEndsTheLogs(t *testing.T) {
	for name, test := range map[string]struct {
		reject string
		text   string
	}{
		"one block that is too large": {rangeRejections["Infura, results"], "query returned more than"},
		"another rejection": {`{"code":-32000,"message":"block range extends beyond current head block"}`,
			"beyond current head"},
		"a rate limit": {`{"code":-32005,"message":"daily request count exceeded, request rate limited"}`,
			"rate limited"},
	} {
		inBubble(t, name, func(t *testing.T) {
			n := &logNode{reject: func(from, to uint64) string {
				if from <= 7 && 7 <= to {
					return test.reject
				}
				return ""
			}}
			var failed error
			for _, err := range logs(t, n.client(t), ramp.LogFilter{}, 0, 15) {
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
	twice := logs(t, again.client(t), ramp.LogFilter{}, 0, 15)
	for range 2 {
		n := 0
		for _, err := range twice {
			require.NoError(t, err)
			n++
		}
		assert.Equal(t, 16, n, "an iteration can be repeated")
	}
	n := &logNode{reject: func(uint64, uint64) string { return "" }}
	for range logs(t, n.client(t), ramp.LogFilter{}, 0, 15) {
		break
	}
	assert.Len(t, n.asked, 1)
	for range logs(t, n.client(t), ramp.LogFilter{}, 16, 15) {
		t.Error("there are no blocks")
	}
	assert.Len(t, n.asked, 1)
	for _, err := range logs(t, n.client(t), ramp.LogFilter{BlockHash: [32]byte{1}}, 0, 15) {
		assert.ErrorContains(t, err, "either BlockHash, or FromBlock and ToBlock")
	}
	assert.Len(t, n.asked, 1)
}
