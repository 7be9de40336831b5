package ramp_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/oneorder"
)

// rpcNode is a node behind real HTTP whose answers a test sets. ID in an answer is
// replaced by the id of the request.
type rpcNode struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string // with ID for their id
	last   *http.Request
}

func (n *rpcNode) asked() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.bodies
}

func (n *rpcNode) request() *http.Request {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.last
}

func newNode(t testing.TB, answer func(w http.ResponseWriter, r *http.Request, body string) string) *rpcNode {
	t.Helper()
	n := &rpcNode{}
	n.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var request struct{ ID json.Number }
		_ = json.Unmarshal(body, &request) // a batch has none
		text := strings.Replace(string(body), `"id":`+request.ID.String()+`,`, `"id":ID,`, 1)
		n.mu.Lock()
		n.bodies, n.last = append(n.bodies, text), r.Clone(context.Background())
		n.mu.Unlock()
		said := answer(w, r, text)
		if request.ID != "" {
			said = strings.ReplaceAll(said, "ID", request.ID.String())
		}
		_, _ = io.WriteString(w, said)
	}))
	t.Cleanup(n.Close)
	return n
}

// says answers every request with the same answer.
func says(status int, body string, header ...string) func(http.ResponseWriter, *http.Request, string) string {
	return func(w http.ResponseWriter, _ *http.Request, _ string) string {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		return body
	}
}

func result(json string) string { return `{"jsonrpc":"2.0","id":ID,"result":` + json + `}` }

func (n *rpcNode) client(t testing.TB) *ramp.RPC { return n.clientWith(t, ramp.RPCConfig{Retries: -1}) }

// clientWith is a client of the node with what a test sets beside its URL.
func (n *rpcNode) clientWith(t testing.TB, c ramp.RPCConfig) *ramp.RPC {
	c.URL = n.URL
	return must.Get(ramp.NewRPC(c))(t)
}

// clientWithin is a client of the node with a lower limit.
func (n *rpcNode) clientWithin(t testing.TB, answerBytes int64) *ramp.RPC {
	client := n.client(t)
	client.SetLimit(answerBytes)
	return client
}

// Answers that other clients misread, or that are not answers at all.
func TestAnswersThatNodesAndProxiesGive(t *testing.T) {
	rpcError := func(err error) *ramp.RPCError {
		var rejected *ramp.RPCError
		if errors.As(err, &rejected) {
			return rejected
		}
		return nil
	}
	for name, test := range map[string]struct {
		status int
		header []string
		body   string
		is     error // errors.Is
		rpc    *ramp.RPCError
		http   *ramp.HTTPError
		text   string // in the error; "" for success
	}{
		"a result beside a null error": {body: `{"jsonrpc":"2.0","id":ID,"result":"0x10","error":null}`},
		"a result without a version":   {body: `{"id":ID,"result":"0x10"}`},
		"a result with white space":    {body: " \r\n" + result(`"0x10"`) + "\n\n"},
		"a byte order mark":            {body: "\ufeff" + result(`"0x10"`)},
		"a page of any length": {body: strings.Repeat("<", 300_000),
			http: &ramp.HTTPError{Status: 200, Excerpt: strings.Repeat("<", 397) + "…"},
			text: `: HTTP 200, not JSON-RPC: "<`},
		"a message of any length": {body: `{"id":ID,"error":{"code":1,"message":"` + strings.Repeat("x", 70_000) +
			`"}}`, rpc: &ramp.RPCError{Code: 1, Message: strings.Repeat("x", 64<<10)},
			text: ": JSON-RPC error 1: " + strings.Repeat("x", 397) + "…"},
		"an error object": {
			body: `{"id":ID,"error":{"code":-32601,"message":"no such method","data":{"a":1}}}`,
			is:   ramp.RPCMethodNotFound,
			rpc:  &ramp.RPCError{Code: -32601, Message: "no such method", Data: json.RawMessage(`{"a":1}`)},
			text: "no such method"},
		"an error with null data": {body: `{"id":ID,"error":{"code":-32603,"message":"m","data":null}}`,
			is: ramp.RPCCode(-32603), rpc: &ramp.RPCError{Code: -32603, Message: "m"},
			text: "JSON-RPC error -32603: m"},
		"an error without an id": {
			body: `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`,
			is:   ramp.RPCCode(-32700), rpc: &ramp.RPCError{Code: -32700, Message: "parse error"}, text: "parse error"},
		"an error that is a string": {body: `{"id":ID,"error":"over quota"}`,
			rpc: &ramp.RPCError{Message: "over quota"}, text: "over quota"},
		"a code that is a string": {body: `{"id":ID,"error":{"code":"-32600","message":"m"}}`,
			is: ramp.RPCCode(-32600), rpc: &ramp.RPCError{Code: -32600, Message: "m"}, text: "m"},
		"an error without a message": {body: `{"id":ID,"error":{"code":-32601}}`, is: ramp.RPCMethodNotFound,
			rpc: &ramp.RPCError{Code: -32601}, text: "method not found"},
		"an error of the server range": {body: `{"id":ID,"error":{"code":-32042,"message":"m"}}`,
			is: ramp.RPCCode(-32042), rpc: &ramp.RPCError{Code: -32042, Message: "m"}, text: "m"},
		"a wrong id": {body: `{"id":999999,"result":"0x10"}`, text: "id of another request"},
		"an error with a wrong id": {body: `{"id":999999,"error":{"code":1,"message":"m"}}`,
			text: "id of another request"},
		"an id that is a string": {body: `{"id":"ID","result":"0x10"}`, text: "id of another request"},
		"a result without an id": {body: `{"result":"0x10"}`, text: "id of another request"},
		"a result that occurs twice": {body: `{"id":ID,"result":"0x10","result":"0x10"}`,
			http: &ramp.HTTPError{Status: 200, Excerpt: `{"id":1,"result":"0x10","result":"0x10"}`},
			text: "not JSON-RPC"},
		"a code beyond all numbers": {body: `{"id":ID,"error":{"code":99999999999999999999,"message":"m"}}`,
			rpc: &ramp.RPCError{Message: "m"}, text: "JSON-RPC error 0: m"},
		"neither result nor error": {body: `{"id":ID}`, http: &ramp.HTTPError{Status: 200, Excerpt: `{"id":1}`},
			text: "not JSON-RPC"},
		"an empty answer": {body: "", http: &ramp.HTTPError{Status: 200}, text: "not JSON-RPC"},
		"trailing garbage": {body: result(`"0x10"`) + "x",
			http: &ramp.HTTPError{Status: 200, Excerpt: `{"jsonrpc":"2.0","id":1,"result":"0x10"}x`},
			text: "not JSON-RPC"},
		"an array": {body: `[` + result(`"0x10"`) + `]`,
			http: &ramp.HTTPError{Status: 200, Excerpt: `[{"jsonrpc":"2.0","id":1,"result":"0x10"}]`},
			text: "not JSON-RPC"},
		"HTML": {body: "<html>\n<b>Log in</b>",
			http: &ramp.HTTPError{Status: 200, Excerpt: "<html> <b>Log in</b>"}, text: "<html> <b>Log in</b>"},
		"a result under a failing HTTP": {status: 500, body: result(`"0x10"`),
			http: &ramp.HTTPError{Status: 500, Excerpt: `{"jsonrpc":"2.0","id":1,"result":"0x10"}`}, text: "HTTP 500"},
		"a redirect": {status: 307, header: []string{"Location", "/elsewhere"}, http: &ramp.HTTPError{Status: 307},
			text: "HTTP 307"},
		"429 with Retry-After and an RPC error inside": {status: 429, header: []string{"Retry-After", "7"},
			body: `{"id":ID,"error":{"code":-32005,"message":"slow down"}}`, is: ramp.RPCCode(-32005),
			rpc:  &ramp.RPCError{Code: -32005, Message: "slow down"},
			http: &ramp.HTTPError{Status: 429, RetryAfter: 7 * time.Second},
			text: "HTTP 429 (retry after 7s): JSON-RPC error -32005: slow down"},
		"a negative quantity":      {body: result(`-1`), text: "cannot decode the result"},
		"a quantity above 64 bits": {body: result(`"0x10000000000000000"`), text: "more than 64 bits"},
		"a quantity that is null":  {body: result(`null`), text: "result is null"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.status == 0 {
				test.status = 200
			}
			n := newNode(t, says(test.status, test.body, test.header...))
			number, err := n.client(t).BlockNumber(t.Context())
			assert.Len(t, n.asked(), 1)
			if test.text == "" {
				require.NoError(t, err)
				assert.EqualValues(t, 16, number)
				return
			}
			require.Error(t, err)
			assert.Zero(t, number)
			assert.ErrorContains(t, err, test.text)
			assert.True(t, strings.HasPrefix(err.Error(), "ramp: eth_blockNumber: "), err)
			assert.Equal(t, test.rpc, rpcError(err))
			if test.is != nil {
				assert.ErrorIs(t, err, test.is)
			}
			var failure *ramp.HTTPError
			assert.Equal(t, test.http != nil, errors.As(err, &failure))
			if test.http != nil && failure != nil {
				assert.Equal(t, *test.http,
					ramp.HTTPError{Status: failure.Status, RetryAfter: failure.RetryAfter, Excerpt: failure.Excerpt})
			}
		})
	}
}

func TestAnAnswerAboveTheLimitIsNotReadToItsEnd(t *testing.T) {
	n := newNode(t, func(w http.ResponseWriter, r *http.Request, _ string) string {
		for r.Context().Err() == nil { // endless, as far as the client lets it
			if _, err := w.Write(bytes.Repeat([]byte(" "), 1<<10)); err != nil {
				break
			}
		}
		return ""
	})
	_, err := n.clientWithin(t, 10<<10).BlockNumber(t.Context())
	assert.ErrorContains(t, err, "too large: the limit is 10240 bytes")

	fits := newNode(t, says(200, strings.Repeat(" ", 100)+`{"id":1,"result":"0x10"}`))
	_, err = fits.clientWithin(t, 124).BlockNumber(t.Context())
	assert.NoError(t, err)
	_, err = fits.clientWithin(t, 123).BlockNumber(t.Context())
	assert.ErrorContains(t, err, "too large")
}

// steps is what a script goes through.
type steps = []func(*http.Request) (*http.Response, error)

// scripted is a client on a network in memory, in a bubble whose time passes by
// itself.
func scripted(t testing.TB, s *script) *ramp.RPC { return scriptedWith(t, s, ramp.RPCConfig{}) }

func scriptedWith(t testing.TB, s *script, c ramp.RPCConfig) *ramp.RPC {
	s.start = time.Now()
	return rpcOver(t, s, c)
}

func TestAReadIsRepeatedAfterAFailureThatMayPass(t *testing.T) {
	for name, test := range map[string]struct {
		first func(*http.Request) (*http.Response, error)
		sent  int
	}{
		"a dropped connection":    {disconnect, 2},
		"429 for 30 seconds":      {status(429, map[string]string{"Retry-After": "30"}, ""), 2},
		"429 for more":            {status(429, map[string]string{"Retry-After": "31"}, ""), 1},
		"an attempt without end":  {hang, 2},
		"429":                     {status(429, nil, ""), 2},
		"500":                     {status(500, nil, ""), 2},
		"503 inside a 200":        {status(200, nil, `{"id":1,"error":{"code":503,"message":"m"}}`), 2},
		"600 inside a 200":        {status(200, nil, `{"id":1,"error":{"code":600,"message":"m"}}`), 1},
		"a message inside a 500":  {status(500, nil, `{"id":1,"error":"upstream timeout"}`), 2},
		"a message inside a 400":  {status(400, nil, `{"id":1,"error":"upstream timeout"}`), 1},
		"a server error in a 503": {status(503, nil, `{"id":1,"error":{"code":-32000,"message":"m"}}`), 2},
		"a server error in a 500": {status(500, nil, `{"id":1,"error":{"code":-32000,"message":"m"}}`), 1},
		"a revert in a 500":       {status(500, nil, `{"id":1,"error":{"code":3,"message":"execution reverted"}}`), 1},
		"any code in a 429":       {status(429, nil, `{"id":1,"error":{"code":-32600,"message":"m"}}`), 2},
		"a revert in a 429":       {status(429, nil, `{"id":1,"error":{"code":3,"message":"execution reverted"}}`), 1},
		"-32016 inside a 200": {status(200, nil,
			`{"id":1,"error":{"code":-32016,"message":"over rate limit"}}`), 2},
		"-32005 inside a 200": {status(200, nil, `{"id":1,"error":{"code":-32005,"message":"m"}}`), 2},
		"429 inside a 200":    {status(200, nil, `{"id":1,"error":{"code":429,"message":"m"}}`), 2},
		"a rejection":         {status(200, nil, `{"id":1,"error":{"code":-32000,"message":"m"}}`), 1},
		"a redirect":          {status(302, nil, ""), 1},
	} {
		inBubble(t, name, func(t *testing.T) {
			s := &script{steps: steps{test.first, status(200, nil, `{"id":2,"result":"0x10"}`)}}
			var log strings.Builder
			number, err := scriptedWith(t, s,
				ramp.RPCConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))}).BlockNumber(t.Context())
			assert.Len(t, s.sent, test.sent)
			assert.Equal(t, test.sent == 2, err == nil, err)
			assert.Equal(t, test.sent == 2,
				strings.Contains(log.String(), `level=WARN msg="ramp: retrying" attempt=1 wait=`), log.String())
			if err == nil {
				assert.EqualValues(t, 16, number)
			}
			if name == "429 for 30 seconds" {
				assert.Equal(t, 30*time.Second, s.at[1])
				assert.Contains(t, log.String(), `wait=30s error="ramp: eth_blockNumber: HTTP 429`)
			}
		})
	}
}

func TestOnlyWhatIsKnownToReadIsRepeated(t *testing.T) {
	for method, sent := range map[string]int{
		"eth_blockNumber": 3, "eth_call": 3, "eth_getLogs": 3, "eth_getProof": 3, "net_version": 3,
		"web3_clientVersion": 3, "eth_gasPrice": 3,
		"eth_sendTransaction": 1, "eth_sendRawTransaction": 1, "eth_sendRawTransactionSync": 1,
		"personal_sendTransaction": 1, "eth_getFilterChanges": 1, "eth_sign": 1, "evm_mine": 1, "custom_anything": 1,
	} {
		inBubble(t, method, func(t *testing.T) {
			s := &script{steps: steps{disconnect}}
			err := scripted(t, s).Call(t.Context(), nil, method)
			assert.ErrorContains(t, err, "ramp: "+method+": connection reset")
			assert.Len(t, s.sent, sent)

			s = &script{steps: steps{disconnect}}
			calls := []ramp.BatchCall{{Method: "eth_blockNumber"}, {Method: method}}
			assert.Error(t, scripted(t, s).Batch(t.Context(), calls))
			assert.Len(t, s.sent, sent, "in a batch")
		})
	}
}

// For all that the client knows, a node that reads a send and hangs up has accepted
// it.
func TestASendIsNeverSentTwice(t *testing.T) {
	for name, send := range map[string]func(*ramp.RPC) error{
		"raw": func(r *ramp.RPC) error { _, err := r.SendRawTransaction(t.Context(), []byte{2, 1}); return err },
		"signed by node": func(r *ramp.RPC) error {
			_, err := r.SendTransaction(t.Context(), ramp.TransactionRequest{})
			return err
		},
		"in a batch": func(r *ramp.RPC) error {
			return r.Batch(t.Context(), []ramp.BatchCall{{Method: "eth_sendRawTransaction", Params: []any{"0x0201"}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			warm := true
			n := newNode(t, func(_ http.ResponseWriter, _ *http.Request, _ string) string {
				if warm {
					return result(`"0x1"`)
				}
				panic(http.ErrAbortHandler) // hangs up
			})
			client := n.clientWith(t, ramp.RPCConfig{Retries: 5})
			must.Get(client.BlockNumber(t.Context()))(t)
			warm = false
			assert.ErrorContains(t, send(client), "EOF")
			assert.Len(t, n.asked(), 2)

			n = newNode(t, says(503, "busy"))
			failure := as[*ramp.HTTPError](t, send(n.clientWith(t, ramp.RPCConfig{Retries: 5})))
			assert.Equal(t, 503, failure.Status)
			assert.Len(t, n.asked(), 1)
		})
	}
}

// batchNode answers a batch with its answers in the order that a test says. A call
// without brackets is a batch of one.
func batchNode(t *testing.T, answer func(ids []string) string) *rpcNode {
	t.Helper()
	return newNode(t, func(_ http.ResponseWriter, _ *http.Request, body string) string {
		ids := idsOf(body)
		text := answer(ids)
		if body[0] != '[' {
			text = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
		}
		return text
	})
}

// idsOf returns the IDs of a batch, or that of a single call, which newNode sets.
func idsOf(body string) (ids []string) {
	var requests []struct{ ID json.Number }
	if json.Unmarshal([]byte(body), &requests) != nil {
		return []string{"ID"}
	}
	for _, r := range requests {
		ids = append(ids, r.ID.String())
	}
	return ids
}

func balances(n int) ([]ramp.BatchCall, []ramp.Quantity) {
	calls, got := make([]ramp.BatchCall, n), make([]ramp.Quantity, n)
	for i := range calls {
		calls[i] = ramp.BatchCall{Method: "eth_getBalance",
			Params: []any{common.BigToAddress(common.Big1), ramp.Latest}, Into: &got[i]}
	}
	return calls, got
}

func TestABatchMatchesAnswersByID(t *testing.T) {
	const second = `{"id":B,"result":"0x2"}`
	for name, test := range map[string]struct {
		answer string    // to the calls A and B; 7 to one call, which is asked for once more
		want   [2]string // the number, or a part of the error
		whole  string    // a part of the error of the batch
		status int       // of HTTP; 200 by default
	}{
		"in order": {`[{"id":A,"result":"0x1"},` + second + `]`, [2]string{"1", "2"}, "", 0},
		"out of order": {`[` + second + `,{"id":A,"result":"0x1","error":null}]`,
			[2]string{"1", "2"}, "", 0},
		"with an error in it": {`[{"id":A,"error":{"code":3,"message":"reverted"}},` + second + `]`,
			[2]string{"JSON-RPC error 3: reverted", "2"}, "", 0},
		"with a result that cannot be read": {`[{"id":A,"result":{}},` + second + `]`,
			[2]string{"cannot decode the result", "2"}, "", 0},
		"with neither result nor error": {`[{"id":A},` + second + `]`, [2]string{"7", "2"}, "", 0},
		"with the id that comes next":   {`[` + second + `,{"id":3,"result":"0x3"}]`, [2]string{"7", "2"}, "", 0},
		"with names that occur twice": {`[{"id":A,"result":"0x1","result":"0x9"},` + second + `]`,
			[2]string{"7", "2"}, "", 0},
		"with one call answered twice, once": {`[{"id":A,"result":"0x1"},{"id":A,"result":"0x3"},` + second + `]`,
			[2]string{"ramp: eth_getBalance: the call was answered twice", "2"}, "", 0},
		"with ids of others": {
			`[{"id":99,"result":"0x9"},{"id":0,"result":"0x9"},{"id":"A","result":"0x9"},{"id":null,` +
				`"result":"0x9"},7,null]`,
			[2]string{"has none for this call", "has none for this call"}, "", 0},
		"by one error": {
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"invalid params"} }`, [2]string{},
			"JSON-RPC error -32602: invalid params", 0},
		"by one error with names twice": {`{"error":{"code":1,"message":"m"},"error":{"code":1}}`, [2]string{},
			"HTTP 200, not JSON-RPC", 0},
		"by one result": {`{"id":A,"result":"0x1"}`, [2]string{}, "not JSON-RPC", 0},
		"by HTML":       {"<html>", [2]string{}, "not JSON-RPC", 0},
		"by nothing":    {"", [2]string{}, "not JSON-RPC", 0},
		"under a failing HTTP": {`[{"id":A,"result":"0x1"},` + second + `]`, [2]string{},
			"HTTP 400, not JSON-RPC", 400},
		"by one error under it": {`{"id":null,"error":{"code":-32602,"message":"m"}}`, [2]string{},
			"HTTP 400: JSON-RPC error -32602: m", 400},
	} {
		t.Run(name, func(t *testing.T) {
			n := batchNode(t, func(ids []string) string {
				if len(ids) == 1 && test.whole == "" {
					return `{"id":` + ids[0] + `,"result":"0x7"}`
				}
				return strings.NewReplacer("A", ids[0], "B", ids[1]).Replace(test.answer)
			})
			answer := n.Config.Handler
			n.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(cmp.Or(test.status, 200))
				answer.ServeHTTP(w, r)
			})
			calls, got := balances(2)
			calls[0].Err = errors.New("of an earlier time")
			err := n.client(t).Batch(t.Context(), calls)
			if test.whole != "" {
				require.ErrorContains(t, err, test.whole)
				assert.Len(t, n.asked(), 1, "only what is too large is cut in halves")
				assert.False(t, got[0].Present() || got[1].Present())
				test.want = [2]string{test.whole, test.whole}
			} else {
				require.NoError(t, err)
			}
			for i, want := range test.want {
				if len(want) > 1 {
					assert.ErrorContains(t, calls[i].Err, want)
					continue
				}
				assert.NoError(t, calls[i].Err)
				assert.Equal(t, want, got[i].String())
			}
		})
	}
}

func TestABatchIsWrittenAsOneArray(t *testing.T) {
	n := batchNode(t, func(id []string) string {
		return `[{"id":` + id[0] + `,"result":null},{"id":` + id[1] + `,"result":"x"}]`
	})
	var receipt ramp.Receipt
	calls := []ramp.BatchCall{
		{Method: "eth_getTransactionReceipt", Params: []any{common.Hash{}}, Into: &receipt},
		{Method: "net_version"},
	}
	require.NoError(t, n.client(t).Batch(t.Context(), calls))
	assert.ErrorIs(t, calls[0].Err, ramp.ErrNotFound)
	assert.NoError(t, calls[1].Err, "a result that nobody wants")
	assert.Equal(t,
		[]string{`[{"jsonrpc":"2.0","id":1,"method":"eth_getTransactionReceipt","params":["` + (common.Hash{}).Hex() +
			`"]},` +
			`{"jsonrpc":"2.0","id":2,"method":"net_version","params":[]}]`}, n.asked())

	require.NoError(t, n.client(t).Batch(t.Context(), nil))
	assert.Len(t, n.asked(), 1, "nothing is asked for nothing")
}

// echo answers each call of a batch with its own id.
func echo(ids []string) string {
	answers := make([]string, len(ids))
	for i, id := range ids {
		answers[i] = `{"id":` + id + `,"result":` + id + `}`
	}
	return "[" + strings.Join(answers, ",") + "]"
}

func TestABatchThatFailsIsNotGoneOnWith(t *testing.T) {
	parts := 0
	n := batchNode(t, func(ids []string) string {
		if parts++; parts == 2 {
			return "<html>"
		}
		return echo(ids)
	})
	calls, _ := balances(3)
	require.Error(t, n.clientWith(t, ramp.RPCConfig{BatchSize: 1, Retries: -1}).Batch(t.Context(), calls))
	assert.Len(t, n.asked(), 2)
	assert.NoError(t, calls[0].Err)
	assert.ErrorContains(t, calls[1].Err, "not JSON-RPC")
	assert.ErrorContains(t, calls[2].Err, "not sent")
}

func TestOnlyTheCallsThatWereTurnedAwayAreRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: steps{
			status(200, nil,
				`[{"id":1,"result":"0x1"},{"id":2,"error":{"code":-32005,"message":"slow down"}},{"id":3,`+
					`"error":{"code":-32000,"message":"no"}}]`),
			status(200, nil, `{"id":4,"result":"0x2"}`),
		}}
		calls, got := balances(3)
		require.NoError(t, scripted(t, s).Batch(t.Context(), calls))
		require.Len(t, s.sent, 2)
		assert.Equal(t, 1, strings.Count(string(s.sent[1]), "eth_getBalance"))
		assert.Equal(t, "1", got[0].String())
		assert.Equal(t, "2", got[1].String())
		assert.ErrorContains(t, calls[2].Err, "-32000")

		s = &script{steps: steps{
			status(200, map[string]string{"Retry-After": "9"}, `{"id":1,"error":{"code":429,"message":"slow down"}}`),
			status(200, nil, `{"id":2,"error":{"code":429,"message":"slow down"}}`),
		}}
		calls, _ = balances(1)
		require.NoError(t, scriptedWith(t, s, ramp.RPCConfig{Retries: 1}).Batch(t.Context(), calls),
			"the batch as such was answered")
		assert.ErrorContains(t, calls[0].Err, "slow down")
		require.Len(t, s.sent, 2)
		assert.Equal(t, 9*time.Second, s.at[1], "as long after as the node asks for")
	})
}

func TestParametersThatCannotBeWrittenAreNotSent(t *testing.T) {
	n := newNode(t, says(200, result(`"0x1"`)))
	err := n.client(t).Call(t.Context(), nil, "eth_call", make(chan int))
	assert.ErrorContains(t, err, "ramp: eth_call: cannot encode the parameters")
	calls := []ramp.BatchCall{{Method: "eth_call", Params: []any{make(chan int)}}, {Method: "eth_call"}}
	assert.ErrorContains(t, n.client(t).Batch(t.Context(), calls), "cannot encode the parameters")
	require.NoError(t, n.client(t).Batch(t.Context(), calls[:1]))
	assert.ErrorContains(t, calls[0].Err, "cannot encode the parameters")
	assert.Empty(t, n.asked())
}

func TestAnyMethodCanBeCalled(t *testing.T) {
	n := newNode(t, says(200, result(`{"a":[1,"0x2"]}`)))
	var raw json.RawMessage
	require.NoError(t, n.client(t).Call(t.Context(), &raw, "custom_anything", "a", 1, true, nil))
	assert.Equal(t, `{"a":[1,"0x2"]}`, string(raw))
	assert.Equal(t,
		[]string{`{"jsonrpc":"2.0","id":ID,"method":"custom_anything","params":["a",1,true,null]}`}, n.asked())
	assert.Equal(t, "application/json", n.request().Header.Get("Content-Type"))
	assert.Equal(t, "ramp-go", n.request().Header.Get("User-Agent"))

	var into struct{ A []any }
	require.NoError(t, n.client(t).Call(t.Context(), &into, "custom_anything"))
	assert.Equal(t, []any{1.0, "0x2"}, into.A)
}

// The data of an error is for programs: redacting it would change amounts, rename
// fields or break the JSON.
func TestDataOfARejectionIsAsTheNodeSentIt(t *testing.T) {
	reason := encoded(t, "0x08c379a0", "string", "not enough gold")
	for name, test := range map[string]struct{ user, path, data string }{
		"a password among the bytes of a revert": {user: "user:0000@", data: `"` + reason + `"`},
		"a path that is the name of a field":     {path: "/data", data: `{"data":"` + reason + `","method":"data"}`},
		"a password in a number":                 {user: "user:0000@", data: `{"rate":20000}`},
		"a long key": {path: "/v3-path-key-of-the-studio",
			data: `["v3-path-key-of-the-studio"]`},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, func(_ http.ResponseWriter, _ *http.Request, body string) string {
				rejection := `{"id":ID,"error":{"code":3,"message":"execution reverted","data":` + test.data + `}}`
				var batch []struct{ ID json.Number }
				if json.Unmarshal([]byte(body), &batch) == nil {
					rejection = "[" + strings.Replace(rejection, "ID", batch[0].ID.String(), 1) + "]"
				}
				return rejection
			})
			client := must.Get(ramp.NewRPC(ramp.RPCConfig{URL: strings.Replace(n.URL, "//", "//"+test.user, 1) +
				test.path, Retries: -1}))(t)
			_, err := client.BlockNumber(t.Context())
			var rejected *ramp.RPCError
			require.ErrorAs(t, err, &rejected)
			assert.Equal(t, test.data, string(rejected.Data))

			batch := []ramp.BatchCall{{Method: "eth_blockNumber"}}
			require.NoError(t, client.Batch(t.Context(), batch))
			require.ErrorAs(t, batch[0].Err, &rejected)
			assert.Equal(t, test.data, string(rejected.Data))
		})
	}
}

// Short pieces of a path, such as a version or the name of a network, are no
// secrets; user info, header values and query values are.
func TestWhatIsASecretOfAnRPC(t *testing.T) {
	for text, want := range map[string]string{
		"no method at /data or /v2/fifteen-letters": "no method at /data or /v2/fifteen-letters",
		"no method at /v2/sixteen--letters":         "no method at /v2/[redacted]",
		"unknown user alice:0000":                   "unknown user [redacted]:[redacted]",
		"project mainnet of apikey only-a-name-":    "project [redacted] of apikey [redacted]",
		"key of-the-header, or YWxpY2U6MDAwMA==":    "key [redacted], or [redacted]",
		"Basic YWxpY2U6MDAwMA==":                    "[redacted]",
		"token behind-a-semicolon":                  "token [redacted]",
		"application/json":                          "application/json",
	} {
		quoted := must.Get(json.Marshal(text))(t)
		n := newNode(t, says(200, `{"id":ID,"error":{"code":1,"message":`+string(quoted)+`}}`))
		client := must.Get(ramp.NewRPC(ramp.RPCConfig{
			URL: strings.Replace(n.URL, "//", "//alice:0000@", 1) +
				"/data/v2/fifteen-letters/sixteen--letters?project=mainnet&v=2;token=behind-a-semicolon&only-a-name-",
			Header: http.Header{"X-Api-Key": {"of-the-header"}, "Content-Type": {"application/json"}}, Retries: -1}))(t)
		var rejected *ramp.RPCError
		_, err := client.BlockNumber(t.Context())
		require.ErrorAs(t, err, &rejected)
		assert.Equal(t, want, rejected.Message)
		assert.ErrorContains(t, err, want)
	}
}

func TestAResultNeedsSomewhereToGo(t *testing.T) {
	n := batchNode(t, echo)
	for name, into := range map[string]any{
		"a receipt": (*ramp.Receipt)(nil), "a transaction": (*ramp.Transaction)(nil), "a block": (*ramp.Block)(nil),
		"logs":       (*[]ramp.Log)(nil),
		"a quantity": (*ramp.Quantity)(nil), "text": (*string)(nil), "no pointer": ramp.Receipt{},
		"a map": map[string]any{},
	} {
		t.Run(name, func(t *testing.T) {
			err := n.client(t).Call(t.Context(), into, "eth_sendTransaction")
			assert.ErrorContains(t, err, "ramp: eth_sendTransaction: the result must go into a non-nil pointer, not a ")

			calls, got := balances(2)
			calls[0].Into = into
			before := len(n.asked())
			require.NoError(t, n.client(t).Batch(t.Context(), calls))
			assert.ErrorContains(t, calls[0].Err, "ramp: eth_getBalance: the result must go into a non-nil pointer")
			require.NoError(t, calls[1].Err)
			assert.True(t, got[1].Present())
			require.Len(t, n.asked(), before+1)
			assert.Equal(t, 1, strings.Count(n.asked()[before], "eth_getBalance"), "the other call alone is sent")
		})
	}
	for _, body := range n.asked() {
		assert.NotContains(t, body, "eth_sendTransaction", "nothing is sent whose result is lost")
	}
}

func TestEachCallIsLoggedOnce(t *testing.T) {
	rejected := `{"id":ID,"error":{"code":-32601,"message":"no such method"}}`
	for name, test := range map[string]struct {
		answer string
		call   func(*ramp.RPC)
		want   string // level, text and method
		err    string
	}{
		"a success": {result(`"0x1"`), func(r *ramp.RPC) { _, _ = r.BlockNumber(t.Context()) },
			`DEBUG msg="ramp: rpc" method=eth_blockNumber`, ""},
		"a failure": {rejected, func(r *ramp.RPC) { _, _ = r.BlockNumber(t.Context()) },
			`ERROR msg="ramp: rpc failed" method=eth_blockNumber`, "no such method"},
		"nothing there": {result(`null`), func(r *ramp.RPC) { _, _ = r.Receipt(t.Context(), common.MaxHash) },
			`DEBUG msg="ramp: rpc failed" method=eth_getTransactionReceipt`, "does not know it"},
		"a batch": {rejected, func(r *ramp.RPC) {
			_ = r.Batch(t.Context(), []ramp.BatchCall{{Method: "eth_sign"}, {Method: "eth_sign"}})
		},
			`ERROR msg="ramp: rpc failed" method=batch`, "no such method"},
		"a wait": {rejected, func(r *ramp.RPC) { _, _ = r.WaitReceipt(t.Context(), common.MaxHash, 1) },
			`ERROR msg="ramp: rpc failed" method=wait`, "no such method"},
		"a send": {result(`"` + hash32 + `"`),
			func(r *ramp.RPC) { _, _ = r.SendRawTransaction(t.Context(), []byte{2, 1}) },
			`DEBUG msg="ramp: rpc" method=eth_sendRawTransaction`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, says(200, strings.Replace(test.answer, `"id":ID,"error"`, `"id":null,"error"`, 1)))
			for level, logged := range map[slog.Level]bool{slog.LevelDebug: true,
				slog.LevelInfo: strings.HasPrefix(test.want, "ERROR")} {
				var log bytes.Buffer
				test.call(n.clientWith(t, ramp.RPCConfig{Logger: slog.New(slog.NewTextHandler(&log,
					&slog.HandlerOptions{Level: level}))}))
				if !logged {
					assert.Empty(t, log.String())
					continue
				}
				assert.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
				assert.Contains(t, log.String(), "level="+test.want)
				assert.Contains(t, log.String(), "duration=")
				assert.Equal(t, test.err != "", strings.Contains(log.String(), "error="))
				assert.Contains(t, log.String(), test.err)
			}
		})
	}
}

func TestAnRPCThatCannotWorkIsNotMade(t *testing.T) {
	config := ramp.RPCConfig{URL: "https://node.example.com"}
	assertCannotWork(t, config, ramp.NewRPC, []wrong[ramp.RPCConfig]{
		{"RPCConfig.URL is required", func(c *ramp.RPCConfig) { c.URL = "" }},
		{"RPCConfig.URL must be an https URL; use the node's HTTP address instead of its WebSocket address",
			func(c *ramp.RPCConfig) { c.URL = "ws://localhost:8546" }},
		{"RPCConfig.URL must be an https URL; use the node's HTTP address instead of its WebSocket address",
			func(c *ramp.RPCConfig) { c.URL = "wss://node.example.com" }},
		{"RPCConfig.URL must not have a fragment", func(c *ramp.RPCConfig) { c.URL = "https://node.example.com#x" }},
		{"RPCConfig.URL must be an absolute https URL, such as https://example.com",
			func(c *ramp.RPCConfig) { c.URL = "https://node.example.com/%zz-secret" }},
		{"RPCConfig.URL must not have a user if Header has Authorization", func(c *ramp.RPCConfig) {
			c.URL, c.Header = "https://user:secret@node.example.com", http.Header{"authorization": {"Bearer secret"}}
		}},
		{"RPCConfig.Header must not have an empty name",
			func(c *ramp.RPCConfig) { c.Header = http.Header{" ": {"x"}} }},
		{"RPCConfig.Header must not have Accept-Encoding: net/http would not decompress the answers",
			func(c *ramp.RPCConfig) { c.Header = http.Header{"accept-encoding": {"gzip"}} }},
		{"RPCConfig.Header must not have Idempotency-Key, with which a transaction could be sent twice",
			func(c *ramp.RPCConfig) { c.Header = http.Header{"idempotency-key": {"x"}} }},
		{"RPCConfig.Header must not have X-Idempotency-Key, with which a transaction could be sent twice",
			func(c *ramp.RPCConfig) { c.Header = http.Header{"X-Idempotency-Key": {"x"}} }},
		{"RPCConfig.Timeout must not be negative", func(c *ramp.RPCConfig) { c.Timeout = -1 }},
		{"RPCConfig.Retries must be at least -1, which means none", func(c *ramp.RPCConfig) { c.Retries = -2 }},
		{"RPCConfig.PollInterval must not be negative", func(c *ramp.RPCConfig) { c.PollInterval = -time.Second }},
		{"RPCConfig.BatchSize must not be negative", func(c *ramp.RPCConfig) { c.BatchSize = -1 }},
		{"RPCConfig.FallbackURL must be https, unless the host is on a private network",
			func(c *ramp.RPCConfig) { c.FallbackURL = "http://node.example.com" }},
		{"RPCConfig.FallbackURL is required",
			func(c *ramp.RPCConfig) { c.FallbackHeader = http.Header{"X-Api-Key": {"k"}} }},
	})
	_, err := ramp.NewRPC(ramp.RPCConfig{Timeout: -1, PollInterval: -1})
	assertFields(t, err, "RPCConfig.URL is required", "RPCConfig.Timeout", "RPCConfig.PollInterval")
}

// twoNodes is a network of a first node and a fallback.
type twoNodes struct {
	first, fallback http.RoundTripper
	asked           []string // which, and for which method
	seen            []*http.Request
}

func (n *twoNodes) RoundTrip(r *http.Request) (*http.Response, error) {
	requests, batch, err := requestsOf(r)
	if err != nil {
		return nil, err
	}
	n.seen = append(n.seen, r.Clone(r.Context()))
	name, _, _ := strings.Cut(r.URL.Host, ".")
	asked := name
	if !batch {
		asked += " " + strings.TrimPrefix(requests[0].Method, "eth_")
	}
	n.asked = append(n.asked, asked)
	if name == "first" {
		return n.first.RoundTrip(r)
	}
	return n.fallback.RoundTrip(r)
}

func (n *twoNodes) client(t testing.TB, c ramp.RPCConfig) *ramp.RPC {
	c.URL = "https://first-user:first-password@first.example.com/first-path-key-16"
	c.Header = http.Header{"X-First": {"first-header"}}
	c.FallbackURL = "https://fallback.example.com?key=fallback-query"
	c.FallbackHeader = http.Header{"X-Fallback": {"fallback-header"}}
	c.HTTPClient, c.Retries = &http.Client{Transport: n}, -1
	return must.Get(ramp.NewRPC(c))(t)
}

func alwaysAnswering(code int, body string) http.RoundTripper {
	return roundTripper(status(code, nil, body))
}

func TestTheFallbackIsAskedWhenTheFirstNodeFailsAsANode(t *testing.T) {
	for name, test := range map[string]struct {
		first http.RoundTripper
		asked bool
	}{
		"a failed connection": {roundTripper(disconnect), true},
		"no answer":           {roundTripper(hang), true},
		"429":                 {alwaysAnswering(429, ""), true},
		"503":                 {alwaysAnswering(503, "<html>"), true},
		"a page":              {alwaysAnswering(200, "<html>"), true},
		"a login":             {alwaysAnswering(401, "who?"), true},
		"no such method":      {alwaysAnswering(200, `{"id":1,"error":{"code":-32601,"message":"m"}}`), false},
		"a revert in a 500": {alwaysAnswering(500,
			`{"id":1,"error":{"code":3,"message":"execution reverted"}}`), false},
		"a success": {&oneorder.Chain{Head: 1}, false},
	} {
		inBubble(t, name, func(t *testing.T) {
			n := &twoNodes{first: test.first, fallback: &oneorder.Chain{Head: 2}}
			number, err := n.client(t, ramp.RPCConfig{}).BlockNumber(t.Context())
			if test.asked {
				require.NoError(t, err)
				assert.EqualValues(t, 2, number)
				assert.Equal(t, []string{"first blockNumber", "fallback blockNumber"}, n.asked)
			} else {
				assert.Equal(t, []string{"first blockNumber"}, n.asked)
			}
		})
	}
}

func TestTheFirstNodeIsTriedAgainAfterARest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &twoNodes{first: roundTripper(disconnect), fallback: &oneorder.Chain{Head: 2}}
		client := n.client(t, ramp.RPCConfig{})
		ask := func() []string {
			n.asked = nil
			must.Get(client.BlockNumber(t.Context()))(t)
			return n.asked
		}
		assert.Equal(t, []string{"first blockNumber", "fallback blockNumber"}, ask())
		time.Sleep(29 * time.Second)
		assert.Equal(t, []string{"fallback blockNumber"}, ask())
		time.Sleep(time.Second)
		assert.Equal(t, []string{"first blockNumber", "fallback blockNumber"}, ask())
		n.fallback = roundTripper(disconnect)
		n.first = &oneorder.Chain{Head: 1}
		assert.Equal(t, []string{"fallback blockNumber", "first blockNumber"}, ask(),
			"a node that rests is better than none")
		assert.Equal(t, []string{"first blockNumber"}, ask(), "and back at work")
	})
}

func TestEachNodesChainIsChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &twoNodes{first: roundTripper(disconnect),
			fallback: &oneorder.Chain{Say: map[string]string{"eth_chainId": `"result":"0x1"`}}}
		client := n.client(t, ramp.RPCConfig{ChainID: 1112})
		_, err := client.BlockNumber(t.Context())
		assert.ErrorIs(t, err, ramp.ErrWrongChain)
		assert.Equal(t, []string{"first chainId", "fallback chainId"}, n.asked)
		n.first = &oneorder.Chain{}
		assert.ErrorContains(t, client.Check(t.Context()),
			"ramp: check https://fallback.example.com: ramp: eth_chainId: the node is on another chain")
	})
}

func TestASendGoesToOneNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &twoNodes{first: roundTripper(disconnect),
			fallback: &oneorder.Chain{Say: map[string]string{"eth_sendRawTransaction": `"result":"` + hash32 + `"`}}}
		client := n.client(t, ramp.RPCConfig{})
		_, err := client.SendRawTransaction(t.Context(), []byte{2, 1})
		assert.ErrorContains(t, err, "connection reset")
		assert.Equal(t, []string{"first sendRawTransaction"}, n.asked)
		_, err = client.SendRawTransaction(t.Context(), []byte{2, 1})
		assert.NoError(t, err, "the first rests")
		assert.Equal(t, []string{"first sendRawTransaction", "fallback sendRawTransaction"}, n.asked)
	})
}

// A call that the caller cancels says nothing about the node.
func TestACanceledCallDoesNotMakeANodeRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &twoNodes{first: roundTripper(hang), fallback: &oneorder.Chain{}}
		client := n.client(t, ramp.RPCConfig{})
		ctx := within(t, time.Second)
		_, err := client.BlockNumber(ctx)
		assert.Error(t, err)
		n.first = &oneorder.Chain{}
		_, err = client.BlockNumber(t.Context())
		assert.NoError(t, err)
		assert.Equal(t, []string{"first blockNumber", "first blockNumber"}, n.asked)
	})
}

func TestAWaitAsksTheFallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &twoNodes{first: roundTripper(hang),
			fallback: &oneorder.Chain{Receipt: string(oneorder.OnChain().Bytes(t))}}
		ctx := within(t, 5*time.Second)
		start := time.Now()
		_, _, err := n.client(t, ramp.RPCConfig{ChainID: 1112}).WaitTransaction(ctx, common.MaxHash, 1)
		require.NoError(t, err)
		assert.Equal(t, 2*time.Second, time.Since(start))
		assert.Equal(t, []string{"first", "fallback"}, n.asked)
	})
}

// Credentials of one node go to that node only, and no text shows those of either.
func TestEachNodeGetsItsOwnCredentials(t *testing.T) {
	secrets := "first-user first-password first-path-key-16 first-header fallback-query fallback-header"
	n := &twoNodes{first: alwaysAnswering(503, secrets), fallback: alwaysAnswering(503, secrets)}
	var log strings.Builder
	client := n.client(t, ramp.RPCConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	_, err := client.BlockNumber(t.Context())
	require.Error(t, err)
	require.Len(t, n.seen, 2)
	for i, r := range n.seen {
		text := fmt.Sprint(r.URL, r.Header)
		_, _, basic := r.BasicAuth()
		assert.Equal(t, i == 0, basic)
		assert.Equal(t, i == 0, strings.Contains(text, "first-"))
		assert.Equal(t, i == 1, strings.Contains(text, "fallback-"))
	}
	var failure *ramp.HTTPError
	require.True(t, errors.As(err, &failure))
	shown := fmt.Sprintf("%v|%+v|%#v|%s|%s", err, client, client, failure.Excerpt, log.String())
	for _, secret := range strings.Fields(secrets) {
		assert.NotContains(t, shown, secret)
	}
	assert.Contains(t, log.String(), `msg="ramp: asking the other node" failed=https://first.example.com`)
}

func TestEveryCodeOfTheInterfaceIsFound(t *testing.T) {
	assert.Equal(t, []ramp.RPCCode{-32601, -32602}, []ramp.RPCCode{ramp.RPCMethodNotFound, ramp.RPCInvalidParams})
	texts := map[ramp.RPCCode]string{-32700: "parse error", -32600: "invalid request", -32601: "method not found",
		-32602: "invalid params", -32603: "internal error",
		-32000: "server error", -32050: "server error", -32099: "server error",
		-31999: "error -31999", -32100: "error -32100", 0: "error 0", 3: "error 3"}
	for code, text := range texts {
		err := fmt.Errorf("around: %w", &ramp.RPCError{Code: code, Message: "m"})
		for other := range texts {
			assert.Equal(t, other == code, errors.Is(err, other), "%d: %d", code, other)
		}
		assert.Equal(t, text, code.Error())
	}
}

// encoded is what a contract returns for a revert, made by go-ethereum.
func encoded(t testing.TB, selector, kind string, value any) string {
	kinds := must.Get(abi.NewType(kind, "", nil))(t)
	packed := must.Get(abi.Arguments{{Type: kinds}}.Pack(value))(t)
	return selector + hex.EncodeToString(packed)
}

// A proxy may compress what nobody has asked for.
func TestACompressedAnswerOfANodeIsNamed(t *testing.T) {
	for encoding, want := range map[string]string{"br": "compressed as br, which was not asked for",
		"identity": `not JSON-RPC: "`} {
		node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", encoding)
			_, _ = w.Write([]byte("\x1b\x03\x00secret"))
		}))
		defer node.Close()
		_, err := must.Get(ramp.NewRPC(ramp.RPCConfig{URL: node.URL, Retries: -1}))(t).BlockNumber(t.Context())
		assert.ErrorContains(t, err, want)
	}
}
