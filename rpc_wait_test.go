package ramp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ramp "github.com/token-ramp/ramp-go"
)

// chain is a node in memory whose answers a test can change over time.
type chain struct {
	mu          sync.Mutex
	head        uint64
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

type chainRequest struct {
	ID     uint64
	Method string
	Params []json.RawMessage
}

func (c *chain) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	batch := body[0] == '['
	if !batch {
		body = []byte("[" + string(body) + "]")
	}
	var requests []chainRequest
	if err := json.Unmarshal(body, &requests); err != nil {
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
		answers = append(answers, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, request.ID, c.answer(request)))
	}
	if batch {
		return status(200, nil, "["+strings.Join(answers, ",")+"]")(r)
	}
	return status(200, nil, answers[0])(r)
}

func (c *chain) answer(request chainRequest) string {
	if said, ok := c.say[request.Method]; ok {
		return said
	}
	answer := "null"
	switch request.Method {
	case "eth_chainId":
		answer = `"0x458"`
	case "eth_blockNumber":
		answer = fmt.Sprintf(`"0x%x"`, c.head)
	case "eth_getTransactionReceipt":
		answer = c.receipt
	case "eth_getTransactionByHash":
		if answer = c.transaction; answer == "" {
			answer = `{"hash":` + string(request.Params[0]) + `}`
		}
	case "eth_getBlockByNumber":
		var number ramp.Quantity
		if err := json.Unmarshal(request.Params[0], &number); err != nil {
			panic(err)
		}
		n, _ := number.Uint64()
		if hash, ok := c.block[n]; ok {
			answer = `{"hash":"` + hash + `"}`
		}
	}
	return `"result":` + answer
}

func (c *chain) client(t *testing.T) *ramp.RPC { return c.clientEvery(t, 0) }

// clientEvery returns a client with a poll interval.
func (c *chain) clientEvery(t *testing.T, interval time.Duration) *ramp.RPC {
	t.Helper()
	client, err := ramp.NewRPC(ramp.RPCConfig{
		URL: "https://node.example.com", HTTPClient: &http.Client{Transport: c}, PollInterval: interval})
	require.NoError(t, err)
	return client
}

// The hashes of a block with the transaction, and of the one that replaces it.
var blockA, blockB = common.HexToHash("0xa").Hex(), common.HexToHash("0xb").Hex()

func mined(number uint64, block string) string {
	return fmt.Sprintf(`{"status":"0x1","transactionHash":"%s","blockNumber":"0x%x","blockHash":"%s","logs":[]}`, common.MaxHash, number, block)
}

func TestWaitReceiptWaitsForATransactionToBeInABlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &chain{receipt: "null"}
		c.after(3500*time.Millisecond, func() { c.receipt = mined(10, blockA) })
		start := time.Now()
		receipt, err := c.client(t).WaitReceipt(t.Context(), common.MaxHash, 1)
		require.NoError(t, err)
		assert.Equal(t, common.MaxHash, receipt.TransactionHash)
		assert.Equal(t, 4*time.Second, time.Since(start), "it looks once a second")
		assert.Len(t, c.asked, 5)

		c.asked = nil
		_, err = c.client(t).WaitReceipt(t.Context(), common.MaxHash, 0)
		require.NoError(t, err)
		assert.Equal(t, []string{"eth_getTransactionReceipt"}, c.asked)
	})
}

// A cache or a proxy that mixes up answers must not settle an order.
func TestWaitReceiptRejectsTheReceiptOfAnotherTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &chain{receipt: mined(10, blockA), head: 10}
		asked := common.HexToHash("0xbad")
		receipt, err := c.client(t).WaitReceipt(t.Context(), asked, 1)
		assert.Nil(t, receipt)
		assert.ErrorContains(t, err, "ramp: wait for transaction "+asked.Hex()+": ramp: eth_getTransactionReceipt: the node answered with transaction "+common.MaxHash.Hex())
		assert.Equal(t, []string{"eth_getTransactionReceipt"}, c.asked)
	})
}

func TestWaitReceiptWaitsForConfirmations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &chain{receipt: mined(10, blockA), head: 9, block: map[uint64]string{10: blockA}} // the one node is behind the other
		for i := range 3 {
			c.after(time.Duration(i+1)*time.Minute, func() { c.head++ })
		}
		start := time.Now()
		_, err := c.clientEvery(t, time.Minute+time.Second).WaitReceipt(t.Context(), common.MaxHash, 3)
		require.NoError(t, err)
		assert.EqualValues(t, 12, c.head, "block 10 and two on top")
		assert.Equal(t, 3*(time.Minute+time.Second), time.Since(start))
		assert.Equal(t, "eth_getBlockByNumber", c.asked[len(c.asked)-1], "the block is read again at depth")
	})
}

// A node that is far behind the one that sent the receipt has not confirmed
// anything.
func TestWaitReceiptCountsNoConfirmationsOfANodeThatIsBehind(t *testing.T) {
	for head, has := range map[uint64]string{0: "0 of 2", 8: "0 of 2", 9: "0 of 2", 10: "1 of 2"} {
		synctest.Test(t, func(t *testing.T) {
			c := &chain{receipt: mined(10, blockA), head: head, block: map[uint64]string{10: blockA}}
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
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
		"neither": onChain().without("blockHash").without("blockNumber"), "nulls": onChain().with("blockHash", nil).with("blockNumber", nil),
	} {
		for _, confirmations := range []uint64{0, 1, 2} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := &chain{receipt: string(receipt.bytes()), head: 20, block: map[uint64]string{10: blockA}}
					ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
					defer cancel()
					_, err := c.client(t).WaitReceipt(ctx, common.MaxHash, confirmations)
					assert.ErrorContains(t, err, "the transaction is in no block yet")
					assert.Equal(t, []string{"eth_getTransactionReceipt", "eth_getTransactionReceipt"}, c.asked)
				})
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
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &chain{receipt: mined(10, blockA), head: 12, block: after}
				c.after(5500*time.Millisecond, func() {
					c.receipt, c.head, c.block = mined(11, blockB), 12, map[uint64]string{10: blockA, 11: blockB}
				})
				c.after(7500*time.Millisecond, func() { c.head = 13 })
				start := time.Now()
				receipt, err := c.client(t).WaitReceipt(t.Context(), common.MaxHash, 3)
				require.NoError(t, err)
				assert.Equal(t, "11", receipt.BlockNumber.String())
				assert.Equal(t, blockB, receipt.BlockHash.Hex())
				assert.Equal(t, 8*time.Second, time.Since(start), "its confirmations are counted anew")
			})
		})
	}
}

func TestWaitReceiptGoesOnOverWhatMayPass(t *testing.T) {
	rejection := func(http, code int, message, data string) func(string) (*http.Response, error) {
		return always(http, fmt.Sprintf(`{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":%q,"data":%q}}`, code, message, data))
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
		"an unreachable node":            func(string) (*http.Response, error) { return nil, errors.New("connection refused") },
		"a node that is busy":            rejection(200, -32005, "limit exceeded", ""),
		"a rate limit of QuickNode":      rejection(200, -32007, "50/second request limit reached", ""),
		"a rate limit of Base":           rejection(200, -32016, "over rate limit", ""),
		"a rate limit of TheRPC":         rejection(200, -32029, "Too many requests", ""),
		"a rate limit in 429":            rejection(429, 15, "Too many connections", ""),
		"an invalid request in 429":      rejection(429, -32600, "rate limited", ""),
		"no such method in 429":          rejection(429, -32601, "rate limited", ""),
		"an internal error":              rejection(200, -32603, "Internal error", ""),
		"a header that is not there yet": rejection(200, -32000, "header not found", ""),
		"a resource that is not there":   rejection(200, -32002, "resource unavailable", ""),
		"an unknown block":               rejection(200, -39001, "Unknown block", ""),
		"a block that is not final":      rejection(200, -32000, "cannot query unfinalized data", ""),
		"a node that indexes":            rejection(200, -32000, "transaction indexing is in progress", ""),
		"a node that says why":           rejection(200, -32000, "not ready", "transaction indexing is in progress"),
		"a node that indexes, in 500":    rejection(500, -32000, "transaction indexing is in progress", ""),
		"a proxy without a node":         always(502, "<html>"),
		"a page":                         always(200, "<html>"),
		"an empty answer":                always(200, ""),
		"an answer that is cut off":      always(200, `{"jsonrpc":"2.0","id":1,"res`),
		"a page that is not there":       always(404, "<html>"),
		"a receipt that cannot be read":  saying("eth_getTransactionReceipt", `{"id":1,"result":{"blockNumber":-1}}`),
		"the answer to another request":  saying("eth_getTransactionReceipt", `{"id":77,"result":null}`),
		"a node without a number":        func(method string) (*http.Response, error) { return failFor(method, "eth_blockNumber") },
		"a node without a block":         func(method string) (*http.Response, error) { return failFor(method, "eth_getBlockByNumber") },
		"a head that cannot be read":     saying("eth_blockNumber", `[{"id":2,"result":{}}]`),
		"a block that cannot be read":    saying("eth_blockNumber", `[{"id":2,"result":"0x20"},{"id":3,"result":{"hash":1}}]`),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &chain{receipt: mined(10, blockA), head: 11, block: map[uint64]string{10: blockA}, fail: fail}
				c.after(10*time.Minute-time.Second/2, func() { c.fail = nil })
				start := time.Now()
				_, err := c.client(t).WaitReceipt(t.Context(), common.MaxHash, 2)
				require.NoError(t, err)
				assert.Equal(t, 10*time.Minute, time.Since(start))
			})
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
			_, err := c.client(t).WaitReceipt(t.Context(), common.MaxHash, 0)
			require.NoError(t, err)
			assert.Equal(t, waits, time.Since(start))
		})
	}
}

func TestWaitReceiptEndsAtWhatWillNotPass(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*chain)
		text   string
	}{
		"no such method":  {func(c *chain) { c.fail = rejecting(-32601) }, "-32601"},
		"invalid params":  {func(c *chain) { c.fail = rejecting(-32602) }, "-32602"},
		"another receipt": {func(c *chain) { c.receipt = strings.Replace(c.receipt, common.MaxHash.Hex(), hash32, 1) }, "the node answered with transaction " + hash32},
		"no such method inside a 500": {func(c *chain) {
			c.fail = always(500, `{"id":null,"error":{"code":-32601,"message":"m"}}`)
		}, "HTTP 500: JSON-RPC error -32601"},
		"a login": {func(c *chain) { c.fail = always(401, "") }, "HTTP 401"},
		"a ban":   {func(c *chain) { c.fail = always(403, "<html>") }, "HTTP 403"},
		"a login late": {func(c *chain) {
			c.fail = func(method string) (*http.Response, error) {
				if method == "eth_blockNumber" {
					return always(401, "")(method)
				}
				return nil, nil
			}
		}, "HTTP 401"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &chain{receipt: mined(10, blockA), head: 11, block: map[uint64]string{10: blockA}}
				test.change(c)
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				start := time.Now()
				receipt, err := c.client(t).WaitReceipt(ctx, common.MaxHash, 2)
				assert.ErrorContains(t, err, test.text)
				assert.Nil(t, receipt)
				assert.Zero(t, time.Since(start))
			})
		})
	}
}

func rejecting(code int) func(string) (*http.Response, error) {
	return always(200, fmt.Sprintf(`{"id":null,"error":{"code":%d,"message":"m"}}`, code))
}

// always gives every request the same answer.
func always(code int, body string) func(string) (*http.Response, error) {
	return func(string) (*http.Response, error) { return status(code, nil, body)(nil) }
}

func TestWaitReceiptSaysWhatWasMissingWhenTheContextEnds(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*chain)
		text   string
		is     error
	}{
		"the transaction":     {func(c *chain) { c.receipt = "null" }, "eth_getTransactionReceipt: " + common.MaxHash.Hex() + ": not found on the node's chain, or not yet; if it should exist, the node may be on another network: set RPCConfig.ChainID to detect that", ramp.ErrNotFound},
		"its block":           {func(c *chain) { c.receipt = `{"status":"0x1"}` }, "is in no block yet", nil},
		"confirmations":       {func(c *chain) { c.head = 12 }, "has 3 of 5 confirmations", nil},
		"a block that stands": {func(c *chain) { c.block[10] = blockB }, "block 10, which contained the transaction, was replaced", nil},
		"a node":              {func(c *chain) { c.fail = func(string) (*http.Response, error) { return nil, errors.New("rejected") } }, "rejected", nil},
		"an index": {func(c *chain) {
			c.fail = func(string) (*http.Response, error) {
				return status(200, nil, `{"id":null,"error":"transaction indexing is in progress"}`)(nil)
			}
		}, "indexing is in progress", nil},
		"any answer": {func(c *chain) {
			c.fail = func(string) (*http.Response, error) { time.Sleep(time.Hour); return nil, context.DeadlineExceeded }
		}, "has not answered yet", nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &chain{receipt: mined(10, blockA), head: 20, block: map[uint64]string{10: blockA}}
				test.change(c)
				ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
				defer cancel()
				client := c.client(t)
				receipt, err := client.WaitReceipt(ctx, common.MaxHash, 5)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				assert.ErrorContains(t, err, test.text)
				assert.ErrorContains(t, err, "ramp: wait for transaction "+common.MaxHash.Hex())
				assert.Nil(t, receipt)
				if test.is != nil {
					assert.ErrorIs(t, err, test.is)
				}
				time.Sleep(time.Hour) // lets a call that hangs end
			})
		})
	}
}

// onChain is the receipt of the chain, as in JSON-RPC.
func onChain() object {
	return object{
		"type": "0x7", "status": "0x1", "transactionHash": common.MaxHash.Hex(), "transactionIndex": "0x2", "blockHash": blockA, "blockNumber": "0xa",
		"gasUsed": "0x5208", "cumulativeGasUsed": "0x5209", "effectiveGasPrice": "0x1", "contractAddress": nil,
		"from": "0x000000000000000000000000000000000000007a", "to": testToken, "feePayer": "0x000000000000000000000000000000000000fee0",
		"logs": []any{map[string]any{"address": testToken, "topics": []any{hash32}, "data": "0x01", "logIndex": "0x3", "removed": false, "blockTimestamp": "0x65",
			"blockNumber": "0xa", "blockHash": blockA, "transactionHash": common.MaxHash.Hex(), "transactionIndex": "0x2"}},
	}
}

// told is the receipt of the service, as in the webhook.
func told() object {
	receipt := onChain().without("from").without("to").without("feePayer").with("contractAddress", common.Address{}.Hex()).
		with("root", "0x").with("gasUsed", 0x5208).with("logs.0.blockTimestamp", 0)
	return resultCall().with("receipt", map[string]any(receipt)).with("intent", burnObject())
}

// twoLogs are logs, of which the second has some data.
func twoLogs(data string) []any {
	return []any{map[string]any{"address": testToken, "topics": []any{}, "data": "0x"}, map[string]any{"address": testToken, "topics": []any{}, "data": data}}
}

func confirm(t *testing.T, result, is object) error {
	t.Helper()
	parsed, err := ramp.ParseResult(result.bytes())
	require.NoError(t, err)
	c := &chain{receipt: string(is.bytes()), head: 10, block: map[uint64]string{10: blockA}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, _, err = c.client(t).Confirm(ctx, parsed, 1)
	return err
}

func TestConfirmBelievesWhatTheChainSays(t *testing.T) {
	failed := told().with("receipt.status", "0x0").with("receipt.logs", []any{})
	for name, test := range map[string]struct{ told, is object }{
		"the same":                     {told(), onChain()},
		"in other digits":              {told().with("tx_hash", strings.ToUpper(common.MaxHash.Hex()[2:])).with("tx_hash", "0x"+strings.ToUpper(common.MaxHash.Hex()[2:])), onChain()},
		"with no more than the status": {told().with("receipt", map[string]any{"status": "0x1"}), onChain()},
		"a failure":                    {failed, onChain().with("status", "0x0").with("logs", []any{})},
		"a token in another case":      {told().with("intent.from.0.id", strings.ToUpper(testToken[2:])).with("intent.from.0.id", "0x"+strings.ToUpper(testToken[2:])), onChain()},
		"a mint":                       {told().with("intent", mintObject()), onChain()},
		"with logs that say little": {told().without("receipt.logs.0.blockNumber").without("receipt.logs.0.blockHash").without("receipt.logs.0.transactionHash").
			without("receipt.logs.0.transactionIndex").without("receipt.logs.0.logIndex").without("receipt.logs.0.removed"), onChain()},
		"a node that says little":   {told(), onChain().without("effectiveGasPrice").without("contractAddress")},
		"with what is not compared": {told().with("receipt.type", "0x2").with("receipt.logsBloom", "0x01").with("receipt.logs.0.blockTimestamp", 7), onChain()},
		"with other positions, gas and price": {told().with("receipt.blockNumber", "0xb").with("receipt.transactionIndex", "0x1").with("receipt.gasUsed", "0x1").
			with("receipt.cumulativeGasUsed", "0x1").with("receipt.effectiveGasPrice", "0x2").with("receipt.logs.0.logIndex", "0x4"), onChain()},
		"a root that the node lacks":            {told().with("receipt.root", "0x01"), onChain()},
		"a root of the node's own":              {told(), onChain().with("root", "0x02")},
		"a contract that was created":           {told().with("receipt.contractAddress", testToken), onChain().with("contractAddress", testToken)},
		"without the contract that was created": {told().without("receipt.contractAddress"), onChain().with("contractAddress", testToken)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { assert.NoError(t, confirm(t, test.told, test.is)) })
		})
	}
}

// Without the tokens that the order is about, any successful transaction of the
// chain would confirm it. So a success is confirmed only with its whole intent.
func TestASuccessWithoutItsIntentConfirmsNothing(t *testing.T) {
	for name, body := range map[string]object{
		"no intent":             told().without("intent"),
		"no tokens":             told().with("intent.from", []any{}).with("intent.to", []any{}),
		"a side that is absent": told().without("intent.from"),
		"an amount of text":     told().with("intent.from.0.amount", "10"),
		"a side made of assets": told().with("intent.from.0.type", "asset").with("intent.to.0.type", "asset"),
		"another token instead": told().without("intent.from").with("intent.to.0.type", "ERC20"),
	} {
		t.Run(name, func(t *testing.T) {
			r, err := ramp.ParseResult(body.bytes())
			require.NoError(t, err)
			c := &chain{receipt: string(onChain().bytes())}
			_, _, err = c.client(t).Confirm(t.Context(), r, 1)
			var wrong *ramp.InvalidError
			require.ErrorAs(t, err, &wrong)

			failed, err := ramp.ParseResult(body.with("receipt.status", "0x0").bytes())
			require.NoError(t, err)
			c = &chain{receipt: string(onChain().with("status", "0x0").bytes())}
			_, _, err = c.client(t).Confirm(t.Context(), failed, 1)
			assert.NoError(t, err, "a failed transaction has no events to look at")
		})
	}
}

func TestConfirmNamesTheFieldThatTheChainContradicts(t *testing.T) {
	other := common.HexToHash("0xdead").Hex()
	for name, test := range map[string]struct {
		told, is object
		field    string
	}{
		"a failure told as a success": {told(), onChain().with("status", "0x0"), "receipt.status"},
		"a success told as a failure": {told().with("receipt.status", "0x0"), onChain(), "receipt.status"},
		"no status on the chain":      {told(), onChain().without("status"), "receipt.status"},
		"a receipt of another":        {told().with("receipt.transactionHash", other), onChain(), "receipt.transactionHash"},
		"a node that answers another": {told(), onChain().with("transactionHash", other), "tx_hash"},
		"a node that names none":      {told(), onChain().without("transactionHash"), "tx_hash"},
		"a token no event can have": {told().with("intent.from.0.id", "token-7").without("receipt.logs"),
			onChain().with("logs.0.address", common.HexToAddress("token-7").Hex()), "intent.from[0].id"},
		"a log less":                   {told().with("receipt.logs", []any{}), onChain(), "receipt.logs"},
		"a log more":                   {told(), onChain().with("logs", []any{}), "receipt.logs"},
		"another contract":             {told().with("receipt.logs.0.address", "0x000000000000000000000000000000000000dead"), onChain(), "receipt.logs"},
		"another topic":                {told().with("receipt.logs.0.topics", []any{other}), onChain(), "receipt.logs"},
		"no topic":                     {told().with("receipt.logs.0.topics", []any{}), onChain(), "receipt.logs"},
		"other data":                   {told().with("receipt.logs.0.data", "0x02"), onChain(), "receipt.logs"},
		"the second of two logs":       {told().with("receipt.logs", twoLogs("0x01")), onChain().with("logs", twoLogs("0x02")), "receipt.logs"},
		"a transaction of other token": {told().with("intent.from.0.id", "0x000000000000000000000000000000000000dead"), onChain(), "intent.from[0].id"},
		"a token that is no address":   {told().with("intent.from.0.id", "token-7"), onChain(), "intent.from[0].id"},
		"a token and a blank":          {told().with("intent.from.0.id", testToken+" "), onChain(), "intent.from[0].id"},
		"a mint of another token":      {told().with("intent", mintObject()).with("intent.to.0.id", "0x000000000000000000000000000000000000dead"), onChain(), "intent.to[0].id"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := confirm(t, test.told, test.is)
				var different *ramp.MismatchError
				require.ErrorAs(t, err, &different)
				assert.Equal(t, test.field, different.Field)
				assert.NotEqual(t, different.Webhook, different.Chain)
				assert.ErrorContains(t, err, test.field+" is "+different.Webhook+" in the result, but "+different.Chain+" on the chain")
			})
		})
	}
}

func TestConfirmNeedsAHash(t *testing.T) {
	for _, hash := range []string{"", "0x", "0x01", common.MaxHash.Hex()[2:], common.MaxHash.Hex() + "00", common.MaxHash.Hex() + "zz", "0x" + strings.Repeat("z", 64)} {
		err := confirm(t, told().with("tx_hash", hash), onChain())
		var wrong *ramp.InvalidError
		require.ErrorAs(t, err, &wrong)
		assert.Equal(t, "tx_hash", wrong.Fields[0].Path)
	}
}

func TestOnlyAConfirmedResultReachesTheGame(t *testing.T) {
	type steps = func(*chain)
	for name, test := range map[string]struct {
		change steps
		status int
		cause  string // in the log
	}{
		"confirmed":       {func(*chain) {}, http.StatusOK, ""},
		"a lie":           {func(c *chain) { c.receipt = string(onChain().with("status", "0x0").bytes()) }, http.StatusInternalServerError, "receipt.status"},
		"another branch":  {func(c *chain) { c.receipt = string(onChain().with("blockHash", blockB).bytes()) }, http.StatusInternalServerError, "block 10, which contained the transaction, was replaced"},
		"made up":         {func(c *chain) { c.receipt = "null" }, http.StatusInternalServerError, "the node's chain ID is 1112"},
		"not deep enough": {func(c *chain) { c.head = 10 }, http.StatusInternalServerError, "has 1 of 2 confirmations"},
		"the chain being away": {func(c *chain) {
			c.fail = func(string) (*http.Response, error) { return nil, errors.New("unreachable") }
		}, http.StatusInternalServerError, "unreachable"},
		"the chain being wrong": {func(c *chain) { c.receipt = `"text"` }, http.StatusInternalServerError, "cannot decode the result"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &chain{receipt: string(onChain().bytes()), head: 11, block: map[uint64]string{10: blockA}}
				test.change(c)
				game := &recorder{}
				handler, err := ramp.NewHandler(ramp.HandlerConfig{Terms: anyTerms, Game: game, Key: testKey(t), Signer: testSigner(t), Chain: c.client(t), Confirmations: 2})
				require.NoError(t, err)
				body := told().bytes()
				start := time.Now()
				reply := handler.AnswerResult(t.Context(), http.Header{"X-Dapp-Authorization": {"Bearer x"}, "X-Dapp-Sessionid": {"session-1"},
					"X-Hmac-Signature": {testKey(t).Sign(body)}}, body)
				assert.Equal(t, test.status, reply.Status)
				assert.LessOrEqual(t, time.Since(start), 5*time.Second)
				if test.status == http.StatusOK {
					assert.Equal(t, []string{"result"}, game.calls)
					assert.NotZero(t, game.last.(*ramp.Result).Receipt.From, "the game sees the chain's receipt")
					return
				}
				assert.Empty(t, game.calls, "nothing is paid")
				assert.Equal(t, rejection("INTERNAL_ERROR"), string(reply.Body), "the wire has no detail")
				assert.ErrorContains(t, reply.Err, test.cause)
			})
		})
	}
}

// A transaction of the testnet must never pay for an order of the mainnet.
func TestATransactionOfAnotherNetworkConfirmsNothing(t *testing.T) {
	c := &chain{receipt: string(onChain().bytes()), head: 11, block: map[uint64]string{10: blockA}}
	mainnet, err := ramp.NewRPC(ramp.RPCConfig{URL: "https://testnet.example.com", ChainID: 1111, HTTPClient: &http.Client{Transport: c}})
	require.NoError(t, err)
	game := &recorder{}
	handler, err := ramp.NewHandler(ramp.HandlerConfig{Terms: anyTerms, Game: game, Key: testKey(t), Signer: testSigner(t), Chain: mainnet})
	require.NoError(t, err)
	body := told().bytes()
	reply := handler.AnswerResult(t.Context(), http.Header{"X-Dapp-Authorization": {"Bearer x"}, "X-Dapp-Sessionid": {"session-1"},
		"X-Hmac-Signature": {testKey(t).Sign(body)}}, body)
	assert.Equal(t, http.StatusInternalServerError, reply.Status, "the service delivers again, once the URL is right")
	assert.ErrorIs(t, reply.Err, ramp.ErrWrongChain)
	assert.ErrorContains(t, reply.Err, "its chain ID is 1112, but RPCConfig.ChainID is 1111")
	assert.Empty(t, game.calls)
}

func TestAForgedResultDoesNotEvenReachTheChain(t *testing.T) {
	c := &chain{receipt: string(onChain().bytes())}
	handler, err := ramp.NewHandler(ramp.HandlerConfig{Terms: anyTerms, Game: &recorder{}, Key: testKey(t), Signer: testSigner(t), Chain: c.client(t)})
	require.NoError(t, err)
	reply := handler.AnswerResult(t.Context(), http.Header{"X-Hmac-Signature": {strings.Repeat("0", 64)}}, told().bytes())
	assertCode(t, reply.Err, ramp.CodeHMACInvalid)
	assert.Empty(t, c.asked)
}

// One answer that hangs must not use up a delivery of 5 seconds.
func TestAConfirmationOutlivesAnAnswerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &chain{receipt: string(onChain().bytes()), head: 11, block: map[uint64]string{10: blockA}}
		hung := 0
		client, err := ramp.NewRPC(ramp.RPCConfig{URL: "https://node.example.com", HTTPClient: &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			if hung++; hung == 1 {
				return hang(r)
			}
			return c.RoundTrip(r)
		})}})
		require.NoError(t, err)
		handler, err := ramp.NewHandler(ramp.HandlerConfig{Terms: anyTerms, Game: &recorder{}, Key: testKey(t), Signer: testSigner(t), Chain: client, Confirmations: 2})
		require.NoError(t, err)
		body := told().bytes()
		start := time.Now()
		reply := handler.AnswerResult(t.Context(), (&studio{key: testKey(t)}).signed(body), body)
		assert.Equal(t, http.StatusOK, reply.Status)
		assert.Equal(t, 3*time.Second, time.Since(start), "cut at 2 seconds, and asked again after 1")

		hung = 0 // with time for a whole attempt, it is not cut
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start = time.Now()
		_, err = client.WaitReceipt(ctx, common.MaxHash, 1)
		require.NoError(t, err)
		assert.Equal(t, 11*time.Second, time.Since(start))
	})
}

// A service may deliver the same body after the block of its transaction was
// replaced. Positions prove nothing then.
func TestConfirmOfABlockThatWasReplaced(t *testing.T) {
	moved := onChain().with("blockHash", blockB).with("blockNumber", "0xb").with("transactionIndex", "0x0").with("gasUsed", "0x9").
		with("cumulativeGasUsed", "0x9").with("logs.0.blockHash", blockB).with("logs.0.blockNumber", "0xb").with("logs.0.logIndex", "0x0").with("logs.0.transactionIndex", "0x0")
	foreign := map[string]any{"address": "0x000000000000000000000000000000000000dead", "topics": []any{}, "data": "0x"}
	event := func(data string) map[string]any {
		return map[string]any{"address": testToken, "topics": []any{hash32}, "data": data}
	}
	for name, test := range map[string]struct {
		told, is object
		field    string // "" if it is confirmed
	}{
		"the same events":               {told(), moved, ""},
		"a failure":                     {told().with("receipt.status", "0x0").with("receipt.logs", []any{}), moved.with("status", "0x0").with("logs", []any{}), ""},
		"no logs reported":              {told().without("receipt.logs"), moved, ""},
		"another event of a foreigner":  {told(), moved.with("logs", []any{foreign, event("0x01")}), ""},
		"a failure told as a success":   {told(), moved.with("status", "0x0"), "receipt.status"},
		"a receipt of another":          {told().with("receipt.transactionHash", hash32), moved, "receipt.transactionHash"},
		"another event of the token":    {told(), moved.with("logs", []any{event("0x02")}), "receipt.logs"},
		"one event of the token less":   {told(), moved.with("logs", []any{event("0x01"), event("0x01")}), "receipt.logs"},
		"events of a foreigner instead": {told(), moved.with("logs", []any{foreign}), "receipt.logs"},
		"a token without an event":      {told().with("receipt.logs", []any{}), moved.with("logs", []any{foreign}), "intent.from[0].id"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := confirm(t, test.told, test.is)
				if test.field == "" {
					assert.NoError(t, err)
					return
				}
				var different *ramp.MismatchError
				require.ErrorAs(t, err, &different)
				assert.Equal(t, test.field, different.Field)
			})
		})
	}
}

// roundTrip is a transport that answers each method, also in a batch.
type roundTrip func(r *http.Request, method string) (result string, err error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var requests []struct {
		ID     json.Number
		Method string
	}
	batch := body[0] == '['
	if !batch {
		body = []byte("[" + string(body) + "]")
	}
	if err := json.Unmarshal(body, &requests); err != nil {
		return nil, err
	}
	var answers []string
	for _, request := range requests {
		text, err := f(r, request.Method)
		if err != nil {
			return nil, err
		}
		answers = append(answers, `{"jsonrpc":"2.0","id":`+request.ID.String()+`,"result":`+text+`}`)
	}
	text := strings.Join(answers, ",")
	if batch {
		text = "[" + text + "]"
	}
	return status(200, nil, text)(r)
}

// pinned returns a client that accepts only chain 1112.
func pinned(t *testing.T, node http.RoundTripper, c ramp.RPCConfig) *ramp.RPC {
	t.Helper()
	c.URL, c.ChainID, c.HTTPClient = "https://node.example.com", 1112, &http.Client{Transport: node}
	client, err := ramp.NewRPC(c)
	require.NoError(t, err)
	return client
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

// resultOf returns the answer of a node that has the reported transaction.
func resultOf(method string) string {
	switch method {
	case "eth_getTransactionReceipt":
		return string(onChain().bytes())
	case "eth_sendRawTransaction", "eth_sendTransaction":
		return `"` + common.MaxHash.Hex() + `"`
	default:
		return `"0x1"`
	}
}

func TestNothingIsAskedOfTheWrongChain(t *testing.T) {
	for name, use := range everyUse {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				id, asked := `"0x2711"`, []string{}
				client := pinned(t, roundTrip(func(_ *http.Request, method string) (string, error) {
					asked = append(asked, method)
					if method == "eth_chainId" {
						return id, nil
					}
					return resultOf(method), nil
				}), ramp.RPCConfig{})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				for range 2 {
					err := use(ctx, client)
					assert.ErrorIs(t, err, ramp.ErrWrongChain)
					assert.ErrorContains(t, err, "ramp: eth_chainId: the node is on another chain: its chain ID is 10001, but RPCConfig.ChainID is 1112")
				}
				assert.Equal(t, []string{"eth_chainId", "eth_chainId"}, asked, "and it is asked again, for the node may be replaced")

				id, asked = `"0x458"`, nil
				require.NoError(t, use(ctx, client))
				require.NoError(t, use(ctx, client))
				assert.Equal(t, "eth_chainId", asked[0])
				assert.NotContains(t, asked[1:], "eth_chainId", "once it is known, it is not asked again")
			})
		})
	}
}

func TestAChainThatIsNotPinnedIsNotAskedFor(t *testing.T) {
	for name, use := range everyUse {
		t.Run(name, func(t *testing.T) {
			client, err := ramp.NewRPC(ramp.RPCConfig{URL: "https://node.example.com",
				HTTPClient: &http.Client{Transport: roundTrip(func(_ *http.Request, method string) (string, error) {
					assert.NotEqual(t, "eth_chainId", method)
					return resultOf(method), nil
				})}})
			require.NoError(t, err)
			assert.NoError(t, use(t.Context(), client))
		})
	}
}

// The node behind an unchanged URL may be switched to another chain.
func TestEveryConfirmationChecksTheChain(t *testing.T) {
	own := func(id string) string { return `{"hash":"` + common.MaxHash.Hex() + `","chainId":` + id + `}` }
	for name, test := range map[string]struct {
		node, transaction string
		wrong             string // the ID in the error
		waits             string // why it waits, if it does
	}{
		"the right one":                        {`"result":"0x458"`, own(`"0x458"`), "", ""},
		"a node and a transaction of another":  {`"result":"0x1"`, own(`"0x1"`), "1", ""},
		"a node of another without an ID":      {`"result":"0x1"`, own(`null`), "1", ""},
		"a node of another with a zero ID":     {`"result":"0x1"`, own(`"0x0"`), "1", ""},
		"a transaction of another":             {`"result":"0x458"`, own(`"0x1"`), "1", ""},
		"another node behind a load balancer":  {`"result":"0x1"`, own(`"0x458"`), "", ""},
		"a node that does not know, but an ID": {`"error":{"code":-32601,"message":"m"}`, own(`"0x458"`), "", ""},
		"a node that is busy, without an ID":   {`"error":{"code":-32005,"message":"busy"}`, own(`null`), "", "busy"},
		"a node without the transaction":       {`"result":"0x458"`, "null", "", "eth_getTransactionByHash: " + common.MaxHash.Hex() + ": not found"},
	} {
		for _, noBatches := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					result, err := ramp.ParseResult(told().bytes())
					require.NoError(t, err)
					c := &chain{receipt: string(onChain().bytes()), noBatches: noBatches}
					client := pinned(t, c, ramp.RPCConfig{})
					receipt, transaction, err := client.Confirm(t.Context(), result, 1)
					require.ErrorIs(t, err, nil, "the right chain, before it is switched")
					assert.Equal(t, common.MaxHash, receipt.TransactionHash)
					assert.Equal(t, common.MaxHash, transaction.Hash)
					if !noBatches {
						assert.Equal(t, 1, c.requests)
						assert.Equal(t, []string{"eth_chainId", "eth_getTransactionReceipt", "eth_getTransactionByHash"}, c.asked)
					}

					c.say, c.transaction = map[string]string{"eth_chainId": test.node}, test.transaction
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
					defer cancel()
					_, _, err = client.Confirm(ctx, result, 1)
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
				})
			})
		}
	}
}

func TestNotFoundNamesTheChainThatTheNodeHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		result, err := ramp.ParseResult(told().bytes())
		require.NoError(t, err)
		c := &chain{receipt: "null", say: map[string]string{"eth_chainId": `"result":"0x2a"`}}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, _, err = c.client(t).Confirm(ctx, result, 1)
		assert.ErrorIs(t, err, ramp.ErrNotFound)
		assert.ErrorContains(t, err, "; the node's chain ID is 42")
	})
}

func TestCheckReportsAWrongChainOrAnUnreachableNodeAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &chain{}
		assert.NoError(t, pinned(t, c, ramp.RPCConfig{}).Check(t.Context()))
		assert.NoError(t, c.client(t).Check(t.Context()), "any chain")
		c.say = map[string]string{"eth_chainId": `"result":"0x1"`}
		assert.EqualError(t, pinned(t, c, ramp.RPCConfig{}).Check(t.Context()), "ramp: check https://node.example.com: ramp: eth_chainId: "+
			"the node is on another chain: its chain ID is 1, but RPCConfig.ChainID is 1112")
		c.say = map[string]string{"eth_chainId": `"result":null`}
		assert.ErrorContains(t, pinned(t, c, ramp.RPCConfig{}).Check(t.Context()), "the result is null")
		c.fail = func(string) (*http.Response, error) { return nil, errors.New("connection refused") }
		assert.EqualError(t, c.client(t).Check(t.Context()), "ramp: check https://node.example.com: ramp: eth_chainId: connection refused")
		_, err := c.client(t).BlockNumber(t.Context())
		assert.Error(t, err)
	})
}

// A chain that could not be checked does not count as correct.
func TestAFailureToAskForTheChainStopsTheCall(t *testing.T) {
	for name, use := range everyUse {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				down, asked := true, []string{}
				client := pinned(t, roundTrip(func(_ *http.Request, method string) (string, error) {
					asked = append(asked, method)
					switch {
					case method != "eth_chainId":
						return resultOf(method), nil
					case down:
						return "", errors.New("connection refused")
					default:
						return `"0x458"`, nil
					}
				}), ramp.RPCConfig{})
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				err := use(ctx, client)
				assert.ErrorContains(t, err, "ramp: eth_chainId: connection refused")
				assert.NotErrorIs(t, err, ramp.ErrWrongChain)
				assert.GreaterOrEqual(t, len(asked), 3, "asking is repeated, even before a send")
				for _, method := range asked {
					assert.Equal(t, "eth_chainId", method)
				}

				down, asked = false, nil
				require.NoError(t, use(t.Context(), client))
				assert.Equal(t, "eth_chainId", asked[0])
				assert.Greater(t, len(asked), 1)
			})
		})
	}
}

func TestAnAnswerThatNamesNoChainIsAnError(t *testing.T) {
	for answer, text := range map[string]string{
		`null`:                  "ramp: eth_chainId: the result is null",
		`""`:                    "ramp: eth_chainId: the result is null",
		`{}`:                    "ramp: eth_chainId: cannot decode the result",
		`"0x0"`:                 "its chain ID is 0, but",
		`"0x10000000000000458"`: "its chain ID is 18446744073709552728, but",
	} {
		client := pinned(t, roundTrip(func(_ *http.Request, method string) (string, error) {
			assert.Equal(t, "eth_chainId", method)
			return answer, nil
		}), ramp.RPCConfig{})
		_, err := client.BlockNumber(t.Context())
		assert.ErrorContains(t, err, text)
	}
}

// The check may be repeated before a send; the send itself may not.
func TestASendAfterTheCheckIsSentOnce(t *testing.T) {
	for _, use := range []string{"a raw send", "a send", "a batch of sends", "a call of any method"} {
		t.Run(use, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked []string
				client := pinned(t, roundTrip(func(_ *http.Request, method string) (string, error) {
					asked = append(asked, method)
					if method == "eth_chainId" && len(asked) > 1 {
						return `"0x458"`, nil
					}
					return "", errors.New("connection reset")
				}), ramp.RPCConfig{})
				assert.ErrorContains(t, everyUse[use](t.Context(), client), "connection reset")
				require.Len(t, asked, 3)
				assert.Equal(t, []string{"eth_chainId", "eth_chainId"}, asked[:2])
				assert.NotEqual(t, "eth_chainId", asked[2])
			})
		})
	}
}

// The error rules out the network as the cause.
func TestWhatIsNotFoundNamesTheChain(t *testing.T) {
	client := pinned(t, roundTrip(func(_ *http.Request, method string) (string, error) {
		if method == "eth_chainId" {
			return `"0x458"`, nil
		}
		return "null", nil
	}), ramp.RPCConfig{})
	_, err := client.BlockByNumber(t.Context(), "", false)
	assert.ErrorIs(t, err, ramp.ErrNotFound)
	assert.EqualError(t, err, "ramp: eth_getBlockByNumber: latest: not found on the node's chain, or not yet (chain ID 1112)")

	var receipt ramp.Receipt
	calls := []ramp.BatchCall{{Method: "eth_getTransactionReceipt", Params: []any{common.MaxHash}, Into: &receipt}, {Method: "custom_receipt", Into: &receipt},
		{Method: "custom_receipt", Params: []any{"secret"}, Into: &receipt}}
	require.NoError(t, client.Batch(t.Context(), calls))
	for i, text := range []string{"eth_getTransactionReceipt: " + common.MaxHash.Hex(), "custom_receipt", "custom_receipt"} {
		assert.ErrorIs(t, calls[i].Err, ramp.ErrNotFound)
		assert.EqualError(t, calls[i].Err, "ramp: "+text+": not found on the node's chain, or not yet (chain ID 1112)")
	}
}
