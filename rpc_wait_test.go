package ramp_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/jsonrpc"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// chain is a node in memory whose answers a test can change over time.
type chain struct {
	mu          sync.Mutex
	head        uint64                                      // its newest block, or 0 for 16
	receipt     string                                      // JSON of the only receipt, "null" for none
	transaction string                                      // JSON of its transaction; "" for one that says little
	block       map[uint64]string                           // hash by number
	fail        func(method string) (*http.Response, error) // answers a whole request instead, if it returns something
	say         map[string]string                           // a method's answer after the id, instead of the chain's
	noBatches   bool
	asked       []string // methods
	requests    int
}

// after changes the chain when some time has passed.
func (c *chain) after(d time.Duration, change func()) {
	time.AfterFunc(d, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		change()
	})
}

// requestsOf returns the calls of a request, which can be read again.
func requestsOf(r *http.Request) (requests []jsonrpc.Call, batch bool, err error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, false, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return jsonrpc.Read(body)
}

func (c *chain) RoundTrip(r *http.Request) (*http.Response, error) {
	requests, batch, err := requestsOf(r)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests++
	if batch && c.noBatches {
		return status(200, nil, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}`)(r)
	}
	var answers []string
	for _, request := range requests {
		c.asked = append(c.asked, request.Method)
		if c.fail != nil {
			if response, err := c.fail(request.Method); response != nil || err != nil {
				return response, err
			}
		}
		answers = append(answers, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, request.ID, c.answer(request)))
	}
	if batch {
		return status(200, nil, "["+strings.Join(answers, ",")+"]")(r)
	}
	return status(200, nil, answers[0])(r)
}

func (c *chain) answer(request jsonrpc.Call) string {
	if said, ok := c.say[request.Method]; ok {
		return said
	}
	answer := `"` + common.MaxHash.Hex() + `"`
	switch request.Method {
	case "eth_chainId":
		answer = `"0x458"`
	case "eth_blockNumber":
		answer = fmt.Sprintf(`"0x%x"`, cmp.Or(c.head, 16))
	case "eth_getTransactionReceipt":
		answer = c.receipt
	case "eth_getTransactionByHash":
		if answer = c.transaction; answer == "" {
			answer = `{"hash":` + string(request.Params[0]) + `}`
		}
	case "eth_getBlockByNumber":
		var number ramp.Quantity
		if err := json.Unmarshal(request.Params[0], &number); err != nil {
			return fmt.Sprintf(`"error":{"code":-32602,"message":%q}`, err.Error())
		}
		n, _ := number.Uint64()
		answer = "null"
		if hash, ok := c.block[n]; ok {
			answer = `{"hash":"` + hash + `"}`
		}
	}
	return `"result":` + answer
}

func (c *chain) client(t testing.TB) *ramp.RPC { return c.clientEvery(t, 0) }

// clientEvery returns a client with a poll interval.
func (c *chain) clientEvery(t testing.TB, interval time.Duration) *ramp.RPC {
	return rpcOver(t, c, ramp.RPCConfig{PollInterval: interval})
}

// The hashes of a block with the transaction, and of the one that replaces it.
var blockA, blockB = common.HexToHash("0xa").Hex(), common.HexToHash("0xb").Hex()

func mined(number uint64, block string) string {
	return fmt.Sprintf(`{"status":"0x1","transactionHash":"%s","blockNumber":"0x%x","blockHash":"%s","logs":[]}`,
		common.MaxHash, number, block)
}

func TestWaitReceiptWaitsForATransactionToBeInABlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &chain{receipt: "null"}
		c.after(3500*time.Millisecond, func() { c.receipt = mined(10, blockA) })
		start := time.Now()
		receipt := must.Get(c.client(t).WaitReceipt(t.Context(), common.MaxHash, 1))(t)
		assert.Equal(t, common.MaxHash, receipt.TransactionHash)
		assert.Equal(t, 4*time.Second, time.Since(start), "it looks once a second")
		assert.Equal(t, 5, c.requests)

		c.asked = nil
		must.Get(c.client(t).WaitReceipt(t.Context(), common.MaxHash, 0))(t)
		assert.Equal(t, []string{"eth_getTransactionReceipt", "eth_blockNumber"}, c.asked)
	})
}

// A cache or a proxy that mixes up answers must not settle an order.
func TestWaitReceiptRejectsTheReceiptOfAnotherTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &chain{receipt: mined(10, blockA), head: 10}
		asked := common.HexToHash("0xbad")
		receipt, err := c.client(t).WaitReceipt(t.Context(), asked, 1)
		assert.Nil(t, receipt)
		assert.ErrorContains(t, err,
			"ramp: wait for transaction "+asked.Hex()+
				": ramp: eth_getTransactionReceipt: the node answered with transaction "+common.MaxHash.Hex())
		assert.Equal(t, 1, c.requests)
	})
}

func TestWaitReceiptWaitsForConfirmations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// the one node is behind the other
		c := &chain{receipt: mined(10, blockA), head: 9, block: map[uint64]string{10: blockA}}
		for i := range 3 {
			c.after(time.Duration(i+1)*time.Minute, func() { c.head++ })
		}
		start := time.Now()
		must.Get(c.clientEvery(t, time.Minute+time.Second).WaitReceipt(t.Context(), common.MaxHash, 3))(t)
		assert.EqualValues(t, 12, c.head, "block 10 and two on top")
		assert.Equal(t, 3*(time.Minute+time.Second), time.Since(start))
		assert.Equal(t, "eth_getBlockByNumber", c.asked[len(c.asked)-1], "the block is read again at depth")
	})
}

// A node that is far behind the one that sent the receipt has not confirmed
// anything.
func TestWaitReceiptCountsNoConfirmationsOfANodeThatIsBehind(t *testing.T) {
	for head, has := range map[uint64]string{8: "0 of 2", 9: "0 of 2", 10: "1 of 2"} {
		synctest.Test(t, func(t *testing.T) {
			c := &chain{receipt: mined(10, blockA), head: head, block: map[uint64]string{10: blockA}}
			ctx := within(t, 500*time.Millisecond)
			_, err := c.client(t).WaitReceipt(ctx, common.MaxHash, 2)
			assert.ErrorContains(t, err, "the transaction has "+has+" confirmations")
			assert.Equal(t, []string{"eth_getTransactionReceipt", "eth_blockNumber", "eth_getBlockByNumber"}, c.asked)
		})
	}
}

// Nodes report a transaction before they have its whole block.
func TestWaitReceiptWaitsForABlockWithNumberAndHash(t *testing.T) {
	for name, receipt := range map[string]object{
		"a number alone": onChain().without("blockHash"), "a hash alone": onChain().without("blockNumber"),
		"neither": onChain().without("blockHash").without("blockNumber"),
		"nulls":   onChain().with("blockHash", nil).with("blockNumber", nil),
	} {
		for _, confirmations := range []uint64{0, 1, 2} {
			inBubble(t, name, func(t *testing.T) {
				c := &chain{receipt: string(receipt.bytes(t)), head: 20, block: map[uint64]string{10: blockA}}
				ctx := within(t, 1500*time.Millisecond)
				_, err := c.client(t).WaitReceipt(ctx, common.MaxHash, confirmations)
				assert.ErrorContains(t, err, "the transaction is in no block yet")
				assert.Equal(t, 2, c.requests)
			})
		}
	}
}

func TestWaitReceiptStartsOverWhenTheBlockWasReplaced(t *testing.T) {
	for name, after := range map[string]map[uint64]string{
		"by another":   {10: blockB, 11: blockB},
		"by none yet":  {},
		"out of order": {10: blockB},
	} {
		inBubble(t, name, func(t *testing.T) {
			c := &chain{receipt: mined(10, blockA), head: 12, block: after}
			c.after(5500*time.Millisecond, func() {
				c.receipt, c.head, c.block = mined(11, blockB), 12, map[uint64]string{10: blockA, 11: blockB}
			})
			c.after(7500*time.Millisecond, func() { c.head = 13 })
			start := time.Now()
			receipt := must.Get(c.client(t).WaitReceipt(t.Context(), common.MaxHash, 3))(t)
			assert.Equal(t, "11", receipt.BlockNumber.String())
			assert.Equal(t, blockB, receipt.BlockHash.Hex())
			assert.Equal(t, 8*time.Second, time.Since(start), "its confirmations are counted anew")
		})
	}
}

func TestWaitReceiptGoesOnOverWhatMayPass(t *testing.T) {
	rejection := func(http, code int, message, data string) func(string) (*http.Response, error) {
		return always(http,
			fmt.Sprintf(`{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":%q,"data":%q}}`, code, message, data))
	}
	saying := func(method, answer string) func(string) (*http.Response, error) {
		return func(asked string) (*http.Response, error) {
			if asked != method {
				return nil, nil
			}
			return status(200, nil, answer)(nil)
		}
	}
	for name, fail := range map[string]func(string) (*http.Response, error){
		"an unreachable node": func(string) (*http.Response, error) {
			return nil,
				errors.New("connection refused")
		},
		"a node that is busy":            rejection(200, -32005, "limit exceeded", ""),
		"a rate limit in 429":            rejection(429, 15, "Too many connections", ""),
		"no such method in 429":          rejection(429, -32601, "rate limited", ""),
		"an internal error":              rejection(200, -32603, "Internal error", ""),
		"a header that is not there yet": rejection(200, -32000, "header not found", ""),
		"a node that indexes":            rejection(200, -32000, "transaction indexing is in progress", ""),
		"a node that says why":           rejection(200, -32000, "not ready", "transaction indexing is in progress"),
		"a page that is not there":       always(404, "<html>"),
		"a receipt that cannot be read":  saying("eth_getTransactionReceipt", `{"id":1,"result":{"blockNumber":-1}}`),
		"the answer to another request":  saying("eth_getTransactionReceipt", `{"id":77,"result":null}`),
		"a node without a number": func(method string) (*http.Response, error) {
			return failFor(method,
				"eth_blockNumber")
		},
		"a node without a block": func(method string) (*http.Response, error) {
			return failFor(method,
				"eth_getBlockByNumber")
		},
		"a head that cannot be read": saying("eth_blockNumber", `[{"id":2,"result":{}}]`),
		"a block that cannot be read": saying("eth_blockNumber",
			`[{"id":2,"result":"0x20"},{"id":3,"result":{"hash":1}}]`),
	} {
		inBubble(t, name, func(t *testing.T) {
			c := &chain{receipt: mined(10, blockA), head: 11, block: map[uint64]string{10: blockA}, fail: fail}
			c.after(10*time.Minute-time.Second/2, func() { c.fail = nil })
			start := time.Now()
			must.Get(c.client(t).WaitReceipt(t.Context(), common.MaxHash, 2))(t)
			assert.Equal(t, 10*time.Minute, time.Since(start))
		})
	}
}

func failFor(method, failing string) (*http.Response, error) {
	if method == failing {
		return nil, errors.New("connection refused")
	}
	return nil, nil
}

func TestWaitReceiptHonorsRetryAfterWithinReason(t *testing.T) {
	for asked, waits := range map[string]time.Duration{"90": 90 * time.Second, "86400": 5 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			c := &chain{receipt: mined(10, blockA)}
			c.fail = func(string) (*http.Response, error) {
				c.fail = nil
				return status(429, map[string]string{"Retry-After": asked}, "")(nil)
			}
			start := time.Now()
			must.Get(c.client(t).WaitReceipt(t.Context(), common.MaxHash, 0))(t)
			assert.Equal(t, waits, time.Since(start))
		})
	}
}

// always gives every request the same answer.
func always(code int, body string) func(string) (*http.Response, error) {
	return func(string) (*http.Response, error) { return status(code, nil, body)(nil) }
}

func TestWaitReceiptSaysWhatIsMissing(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*chain)
		text   string
		is     error
		ends   bool // at once, for it will not pass
	}{
		"the transaction": {func(c *chain) { c.receipt = "null" },
			"eth_getTransactionReceipt: " + common.MaxHash.Hex() +
				": the node does not know it (yet); if it should exist, the node may be on another network: set " +
				"RPCConfig.ChainID to detect that", ramp.ErrNotFound, false},
		"its block":     {func(c *chain) { c.receipt = `{"status":"0x1"}` }, "is in no block yet", nil, false},
		"confirmations": {func(c *chain) { c.head = 12 }, "has 3 of 5 confirmations", nil, false},
		"a block that stands": {func(c *chain) { c.block[10] = blockB },
			"block 10, which contained the transaction, was replaced: the receipt names block " + blockA +
				", and the chain has " + blockB + "; if that stays so, ask another node", nil, false},
		"a node": {func(c *chain) {
			c.fail = func(string) (*http.Response, error) {
				return nil,
					errors.New("rejected")
			}
		}, "rejected", nil, false},
		"an index": {func(c *chain) {
			c.fail = func(string) (*http.Response, error) {
				return status(200, nil, `{"id":null,"error":"transaction indexing is in progress"}`)(nil)
			}
		}, "indexing is in progress", nil, false},
		"any answer": {func(c *chain) {
			c.fail = func(string) (*http.Response, error) {
				time.Sleep(time.Hour)
				return nil,
					context.DeadlineExceeded
			}
		}, "has not answered yet", nil, false},
		"no such method": {func(c *chain) { c.fail = always(200, `{"id":null,"error":{"code":-32601,"message":"m"}}`) },
			"-32601", ramp.RPCMethodNotFound, true},
		"invalid params": {func(c *chain) { c.fail = always(200, `{"id":null,"error":{"code":-32602,"message":"m"}}`) },
			"-32602", ramp.RPCInvalidParams, true},
		"no such method inside a 500": {func(c *chain) {
			c.fail = always(500,
				`{"id":null,"error":{"code":-32601,"message":"m"}}`)
		},
			"HTTP 500: JSON-RPC error -32601", ramp.RPCMethodNotFound, true},
		"a ban": {func(c *chain) { c.fail = always(403, strings.Repeat("<html>", 100)) }, "HTTP 403", nil, true},
		"a login late": {func(c *chain) {
			c.fail = func(method string) (*http.Response, error) {
				if method == "eth_blockNumber" {
					return always(401, "")(method)
				}
				return nil, nil
			}
		}, "HTTP 401", nil, true},
	} {
		inBubble(t, name, func(t *testing.T) {
			c := &chain{receipt: mined(10, blockA), head: 20, block: map[uint64]string{10: blockA}}
			test.change(c)
			ctx := within(t, 3500*time.Millisecond)
			start := time.Now()
			receipt, err := c.client(t).WaitReceipt(ctx, common.MaxHash, 5)
			assert.Equal(t, test.ends, time.Since(start) == 0)
			assert.Equal(t, !test.ends, errors.Is(err, context.DeadlineExceeded))
			assert.ErrorContains(t, err, test.text)
			assert.ErrorContains(t, err, "ramp: wait for transaction "+common.MaxHash.Hex())
			assert.LessOrEqual(t, len(err.Error()), 500)
			assert.Nil(t, receipt)
			if test.is != nil {
				assert.ErrorIs(t, err, test.is)
			}
			time.Sleep(time.Hour) // lets a call that hangs end
		})
	}
}

// onChain is the receipt of the chain, as in JSON-RPC.
func onChain() object {
	return object{
		"type": "0x7", "status": "0x1", "transactionHash": common.MaxHash.Hex(), "transactionIndex": "0x2",
		"blockHash": blockA, "blockNumber": "0xa",
		"gasUsed": "0x5208", "cumulativeGasUsed": "0x5209", "effectiveGasPrice": "0x1", "contractAddress": nil,
		"from": "0x000000000000000000000000000000000000007a", "to": testToken,
		"feePayer": "0x000000000000000000000000000000000000fee0",
		"logs": []any{map[string]any{"address": testToken, "logIndex": "0x3", "removed": false,
			"blockTimestamp": "0x65",
			"topics":         []any{transferTopic, common.BytesToHash(vectorAddress[:]).Hex(), common.Hash{}.Hex()},
			"data":           common.BigToHash(common.Big1).Hex(),
			"blockNumber":    "0xa", "blockHash": blockA, "transactionHash": common.MaxHash.Hex(),
			"transactionIndex": "0x2"}},
	}
}

// One answer that hangs must not use up the 5 seconds of a delivery.
func TestAWaitOutlivesAnAnswerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &chain{receipt: string(onChain().bytes(t)), head: 11, block: map[uint64]string{10: blockA}}
		hung := 0
		client := must.Get(ramp.NewRPC(ramp.RPCConfig{URL: "https://node.example.com",
			HTTPClient: &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				if hung++; hung == 1 {
					return hang(r)
				}
				return c.RoundTrip(r)
			})}}))(t)
		start := time.Now()
		_, receipt, err := client.WaitTransaction(within(t, 5*time.Second), common.MaxHash, 2)
		require.NoError(t, err)
		assert.Equal(t, common.MaxHash, receipt.TransactionHash)
		assert.Equal(t, 3*time.Second, time.Since(start), "cut at 2 seconds, and asked again after 1")

		hung = 0 // with time for a whole attempt, it is not cut
		start = time.Now()
		must.Get(client.WaitReceipt(within(t, time.Minute), common.MaxHash, 1))(t)
		assert.Equal(t, 11*time.Second, time.Since(start))
	})
}

// pinned returns a client that accepts only chain 1112.
func pinned(t testing.TB, node http.RoundTripper, c ramp.RPCConfig) *ramp.RPC {
	c.ChainID = 1112
	return rpcOver(t, node, c)
}

// everyUse lists each way to reach a node.
var everyUse = map[string]func(context.Context, *ramp.RPC) error{
	"a read": func(ctx context.Context, r *ramp.RPC) error {
		_, err := r.Balance(ctx, common.Address{}, ramp.Latest)
		return err
	},
	"a call of any method": func(ctx context.Context, r *ramp.RPC) error { return r.Call(ctx, nil, "custom_anything") },
	"a raw send": func(ctx context.Context, r *ramp.RPC) error {
		_, err := r.SendRawTransaction(ctx, []byte{2, 1})
		return err
	},
	"a send": func(ctx context.Context, r *ramp.RPC) error {
		_, err := r.SendTransaction(ctx, ramp.TransactionRequest{})
		return err
	},
	"a batch": func(ctx context.Context, r *ramp.RPC) error {
		calls, _ := balances(2)
		err := r.Batch(ctx, calls)
		return errors.Join(err, calls[0].Err, calls[1].Err)
	},
	"a batch of sends": func(ctx context.Context, r *ramp.RPC) error {
		calls := []ramp.BatchCall{{Method: "eth_sendRawTransaction", Params: []any{"0x0201"}}}
		err := r.Batch(ctx, calls)
		return errors.Join(err, calls[0].Err)
	},
}

func TestNothingIsAskedOfTheWrongChainOrOneThatIsNotKnown(t *testing.T) {
	for name, use := range everyUse {
		inBubble(t, name, func(t *testing.T) {
			c := &chain{say: map[string]string{"eth_chainId": `"result":"0x2711"`}}
			client := pinned(t, c, ramp.RPCConfig{})
			ctx := within(t, time.Minute)
			for range 2 {
				err := use(ctx, client)
				assert.ErrorIs(t, err, ramp.ErrWrongChain)
				assert.ErrorContains(t, err,
					"ramp: eth_chainId: the node is on another chain: its chain ID is 10001, but "+
						"RPCConfig.ChainID is 1112")
			}
			assert.Equal(t, []string{"eth_chainId", "eth_chainId"}, c.asked,
				"and it is asked again, for the node may be replaced")

			c.asked, c.fail = nil, func(method string) (*http.Response, error) { return failFor(method, "eth_chainId") }
			err := use(ctx, client)
			assert.ErrorContains(t, err, "ramp: eth_chainId: connection refused")
			assert.NotErrorIs(t, err, ramp.ErrWrongChain)
			assert.GreaterOrEqual(t, len(c.asked), 3, "asking is repeated, even before a send")
			assert.Equal(t, []string{"eth_chainId"}, slices.Compact(c.asked))

			c.say, c.asked, c.fail = nil, nil, nil
			require.NoError(t, use(ctx, client))
			require.NoError(t, use(ctx, client))
			assert.Equal(t, "eth_chainId", c.asked[0])
			assert.NotContains(t, c.asked[1:], "eth_chainId", "once it is known, it is not asked again")
		})
	}
}

// The node behind an unchanged URL may be switched to another chain.
func TestEveryWaitForATransactionChecksTheChain(t *testing.T) {
	own := func(id string) string { return `{"hash":"` + common.MaxHash.Hex() + `","chainId":` + id + `}` }
	for name, test := range map[string]struct {
		node, transaction string
		wrong             string // the ID in the error
		waits             string // why it waits, if it does
	}{
		"the right one":                       {`"result":"0x458"`, own(`"0x458"`), "", ""},
		"a node and a transaction of another": {`"result":"0x1"`, own(`"0x1"`), "1", ""},
		"a node of another without an ID":     {`"result":"0x1"`, own(`null`), "1", ""},
		"a node of another with a zero ID":    {`"result":"0x1"`, own(`"0x0"`), "1", ""},
		"a transaction of another":            {`"result":"0x458"`, own(`"0x1"`), "", ""}, // it was renumbered
		"another node behind a load balancer": {`"result":"0x1"`, own(`"0x458"`), "1", ""},
		"a node that is busy, without an ID":  {`"error":{"code":-32005,"message":"busy"}`, own(`null`), "", "busy"},
		"a node that is busy":                 {`"error":{"code":-32005,"message":"busy"}`, own(`"0x458"`), "", "busy"},
		"a node without the transaction": {`"result":"0x458"`, "null", "",
			"eth_getTransactionByHash: " + common.MaxHash.Hex() + ": the node does not know it"},
	} {
		for _, noBatches := range []bool{false, true} {
			inBubble(t, name, func(t *testing.T) {
				c := &chain{receipt: string(onChain().bytes(t)), noBatches: noBatches}
				var log bytes.Buffer
				client := pinned(t, c, ramp.RPCConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))})
				transaction, receipt, err := client.WaitTransaction(t.Context(), common.MaxHash, 1)
				require.ErrorIs(t, err, nil, "the right chain, before it is switched")
				assert.Equal(t, common.MaxHash, receipt.TransactionHash)
				assert.Equal(t, common.MaxHash, transaction.Hash)
				if !noBatches {
					assert.Equal(t, 1, c.requests)
					assert.Equal(t,
						[]string{"eth_chainId", "eth_getTransactionReceipt", "eth_getTransactionByHash",
							"eth_blockNumber"},
						c.asked)
				}

				c.say, c.transaction = map[string]string{"eth_chainId": test.node}, test.transaction
				ctx := within(t, 5*time.Second)
				_, _, err = client.WaitTransaction(ctx, common.MaxHash, 1)
				switch {
				case test.wrong != "":
					assert.ErrorIs(t, err, ramp.ErrWrongChain)
					assert.ErrorContains(t, err, "its chain ID is "+test.wrong+", but RPCConfig.ChainID is 1112")
					if strings.Contains(test.node, `"0x1"`) {
						_, err = client.BlockNumber(ctx)
						assert.ErrorIs(t, err, ramp.ErrWrongChain, "every other call notices too")
					}
				case test.waits != "":
					assert.ErrorIs(t, err, context.DeadlineExceeded)
					assert.ErrorContains(t, err, test.waits)
				default:
					assert.NoError(t, err)
				}
				assert.Equal(t, name == "a transaction of another", strings.Contains(log.String(), `level=WARN `+
					`msg="ramp: a transaction names another chain ID than its node" tx_hash=`+common.MaxHash.Hex()+
					` chain_id=1 node=1112`))
			})
		}
	}
}

// A node may name the block that it is about to make, which may become another one. So the newest block
// of the same answer decides, with one confirmation, too.
func TestABlockThatIsNotMadeConfirmsNothing(t *testing.T) {
	for name, config := range map[string]ramp.RPCConfig{"any chain": {}, "one chain": {ChainID: 1112}} {
		for _, confirmations := range []uint64{0, 1, 2} {
			inBubble(t, fmt.Sprint(name, confirmations), func(t *testing.T) {
				c := &chain{receipt: mined(10, blockA), head: 9, block: map[uint64]string{10: blockA}}
				client := rpcOver(t, c, config)
				_, _, err := client.WaitTransaction(within(t, 3*time.Second), common.MaxHash, confirmations)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				if confirmations < 2 {
					assert.ErrorContains(t, err,
						"the transaction is in block 10, which is not made yet: the newest block is 9")
				}
				c.after(1500*time.Millisecond, func() { c.head = 11 })
				c.requests = 0
				start := time.Now()
				must.Get(client.WaitReceipt(t.Context(), common.MaxHash, confirmations))(t)
				assert.Equal(t, 2*time.Second, time.Since(start))
				assert.Equal(t, 3*int(max(1, confirmations)), c.requests)
			})
		}
	}
}

func TestCheckReportsAWrongChainOrAnUnreachableNodeAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &chain{}
		assert.NoError(t, pinned(t, c, ramp.RPCConfig{}).Check(t.Context()))
		assert.NoError(t, c.client(t).Check(t.Context()), "any chain")
		c.say = map[string]string{"eth_chainId": `"result":"0x1"`}
		assert.EqualError(t, pinned(t, c, ramp.RPCConfig{}).Check(t.Context()),
			"ramp: check https://node.example.com: ramp: eth_chainId: "+
				"the node is on another chain: its chain ID is 1, but RPCConfig.ChainID is 1112")
		c.say = map[string]string{"eth_chainId": `"result":null`}
		assert.ErrorContains(t, pinned(t, c, ramp.RPCConfig{}).Check(t.Context()), "the result is null")
		c.fail = func(string) (*http.Response, error) { return nil, errors.New("connection refused") }
		assert.EqualError(t, c.client(t).Check(t.Context()),
			"ramp: check https://node.example.com: ramp: eth_chainId: connection refused")
		_, err := c.client(t).BlockNumber(t.Context())
		assert.Error(t, err)
	})
}

func TestAnAnswerThatNamesNoChainIsAnError(t *testing.T) {
	for answer, text := range map[string]string{
		`null`:                  "ramp: eth_chainId: the result is null",
		`""`:                    "ramp: eth_chainId: the result is null",
		`{}`:                    "ramp: eth_chainId: cannot decode the result",
		`"0x0"`:                 "its chain ID is 0, but",
		`"0x10000000000000458"`: "its chain ID is 18446744073709552728, but",
	} {
		c := &chain{say: map[string]string{"eth_chainId": `"result":` + answer}}
		_, err := pinned(t, c, ramp.RPCConfig{}).BlockNumber(t.Context())
		assert.Equal(t, []string{"eth_chainId"}, c.asked)
		assert.ErrorContains(t, err, text)
	}
}

// The check may be repeated before a send; the send itself may not.
func TestASendAfterTheCheckIsSentOnce(t *testing.T) {
	for _, use := range []string{"a raw send", "a send", "a batch of sends", "a call of any method"} {
		inBubble(t, use, func(t *testing.T) {
			c := &chain{}
			c.fail = func(method string) (*http.Response, error) {
				if method == "eth_chainId" && len(c.asked) > 1 {
					return nil, nil
				}
				return nil, errors.New("connection reset")
			}
			assert.ErrorContains(t, everyUse[use](t.Context(), pinned(t, c, ramp.RPCConfig{})), "connection reset")
			require.Len(t, c.asked, 3)
			assert.Equal(t, []string{"eth_chainId", "eth_chainId"}, c.asked[:2])
			assert.NotEqual(t, "eth_chainId", c.asked[2])
		})
	}
}

// The error rules out the network as the cause.
func TestWhatIsNotFoundNamesTheChain(t *testing.T) {
	none := `"result":null`
	client := pinned(t, &chain{receipt: "null",
		say: map[string]string{"eth_getBlockByNumber": none, "custom_receipt": none}}, ramp.RPCConfig{})
	_, err := client.BlockByNumber(t.Context(), "", false)
	assert.ErrorIs(t, err, ramp.ErrNotFound)
	assert.EqualError(t, err, "ramp: eth_getBlockByNumber: latest: the node does not know it (yet) (chain ID 1112)")

	var receipt ramp.Receipt
	calls := []ramp.BatchCall{{Method: "eth_getTransactionReceipt", Params: []any{common.MaxHash}, Into: &receipt},
		{Method: "custom_receipt", Into: &receipt},
		{Method: "custom_receipt", Params: []any{"secret"}, Into: &receipt}}
	require.NoError(t, client.Batch(t.Context(), calls))
	for i, text := range []string{"eth_getTransactionReceipt: " + common.MaxHash.Hex(), "custom_receipt",
		"custom_receipt"} {
		assert.ErrorIs(t, calls[i].Err, ramp.ErrNotFound)
		assert.EqualError(t, calls[i].Err, "ramp: "+text+": the node does not know it (yet) (chain ID 1112)")
	}
}
