package ramp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/jsonrpc"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/oneorder"
)

// requestsOf returns the calls of a request, which can be read again.
func requestsOf(r *http.Request) (requests []jsonrpc.Call, batch bool, err error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, false, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return jsonrpc.Read(body)
}

var blockA, blockB = oneorder.BlockA, oneorder.BlockB

func mined(number uint64, block string) string {
	return fmt.Sprintf(`{"status":"0x1","transactionHash":"%s","blockNumber":"0x%x","blockHash":"%s","logs":[]}`,
		common.MaxHash, number, block)
}

func TestWaitReceiptWaitsForATransactionToBeInABlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &oneorder.Chain{Receipt: "null"}
		c.After(3500*time.Millisecond, func() { c.Receipt = mined(10, blockA) })
		start := time.Now()
		receipt := must.Get(rpcOver(t, c, ramp.RPCConfig{}).WaitReceipt(t.Context(), common.MaxHash, 1))(t)
		assert.Equal(t, common.MaxHash, receipt.TransactionHash)
		assert.Equal(t, 4*time.Second, time.Since(start), "it looks once a second")
		assert.Equal(t, 5, c.Requests)

		c.Asked = nil
		must.Get(rpcOver(t, c, ramp.RPCConfig{}).WaitReceipt(t.Context(), common.MaxHash, 0))(t)
		assert.Equal(t, []string{"eth_getTransactionReceipt", "eth_blockNumber"}, c.Asked)
	})
}

// A cache or a proxy that mixes up answers must not settle an order.
func TestWaitReceiptRejectsTheReceiptOfAnotherTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &oneorder.Chain{Receipt: mined(10, blockA), Head: 10}
		asked := common.HexToHash("0xbad")
		receipt, err := rpcOver(t, c, ramp.RPCConfig{}).WaitReceipt(t.Context(), asked, 1)
		assert.Nil(t, receipt)
		assert.ErrorContains(t, err,
			"ramp: wait for transaction "+asked.Hex()+
				": ramp: eth_getTransactionReceipt: the node answered with transaction "+common.MaxHash.Hex())
		assert.Equal(t, 1, c.Requests)
	})
}

func TestWaitReceiptWaitsForConfirmations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// the one node is behind the other
		c := &oneorder.Chain{Receipt: mined(10, blockA), Head: 9, Block: map[uint64]string{10: blockA}}
		for i := range 3 {
			c.After(time.Duration(i+1)*time.Minute, func() { c.Head++ })
		}
		start := time.Now()
		client := rpcOver(t, c, ramp.RPCConfig{PollInterval: time.Minute + time.Second})
		must.Get(client.WaitReceipt(t.Context(), common.MaxHash, 3))(t)
		assert.EqualValues(t, 12, c.Head, "block 10 and two on top")
		assert.Equal(t, 3*(time.Minute+time.Second), time.Since(start))
		assert.Equal(t, "eth_getBlockByNumber", c.Asked[len(c.Asked)-1], "the block is read again at depth")
	})
}

// A node that is far behind the one that sent the receipt has not confirmed
// anything.
func TestWaitReceiptCountsNoConfirmationsOfANodeThatIsBehind(t *testing.T) {
	for head, has := range map[uint64]string{8: "0 of 2", 9: "0 of 2", 10: "1 of 2"} {
		synctest.Test(t, func(t *testing.T) {
			c := &oneorder.Chain{Receipt: mined(10, blockA), Head: head, Block: map[uint64]string{10: blockA}}
			ctx := within(t, 500*time.Millisecond)
			_, err := rpcOver(t, c, ramp.RPCConfig{}).WaitReceipt(ctx, common.MaxHash, 2)
			assert.ErrorContains(t, err, "the transaction has "+has+" confirmations")
			assert.Equal(t, []string{"eth_getTransactionReceipt", "eth_blockNumber", "eth_getBlockByNumber"}, c.Asked)
		})
	}
}

// Nodes report a transaction before they have its whole block.
func TestWaitReceiptWaitsForABlockWithNumberAndHash(t *testing.T) {
	for name, receipt := range map[string]oneorder.Object{
		"a number alone": oneorder.OnChain().Without("blockHash"),
		"a hash alone":   oneorder.OnChain().Without("blockNumber"),
		"neither":        oneorder.OnChain().Without("blockHash").Without("blockNumber"),
		"nulls":          oneorder.OnChain().With("blockHash", nil).With("blockNumber", nil),
	} {
		for _, confirmations := range []uint64{0, 1, 2} {
			inBubble(t, name, func(t *testing.T) {
				c := &oneorder.Chain{Receipt: string(receipt.Bytes(t)), Head: 20, Block: map[uint64]string{10: blockA}}
				ctx := within(t, 1500*time.Millisecond)
				_, err := rpcOver(t, c, ramp.RPCConfig{}).WaitReceipt(ctx, common.MaxHash, confirmations)
				assert.ErrorContains(t, err, "the transaction is in no block yet")
				assert.Equal(t, 2, c.Requests)
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
			c := &oneorder.Chain{Receipt: mined(10, blockA), Head: 12, Block: after}
			c.After(5500*time.Millisecond, func() {
				c.Receipt, c.Head, c.Block = mined(11, blockB), 12, map[uint64]string{10: blockA, 11: blockB}
			})
			c.After(7500*time.Millisecond, func() { c.Head = 13 })
			start := time.Now()
			receipt := must.Get(rpcOver(t, c, ramp.RPCConfig{}).WaitReceipt(t.Context(), common.MaxHash, 3))(t)
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
			c := &oneorder.Chain{Receipt: mined(10, blockA), Head: 11, Block: map[uint64]string{10: blockA}, Fail: fail}
			c.After(10*time.Minute-time.Second/2, func() { c.Fail = nil })
			start := time.Now()
			must.Get(rpcOver(t, c, ramp.RPCConfig{}).WaitReceipt(t.Context(), common.MaxHash, 2))(t)
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
			c := &oneorder.Chain{Receipt: mined(10, blockA)}
			c.Fail = func(string) (*http.Response, error) {
				c.Fail = nil
				return status(429, map[string]string{"Retry-After": asked}, "")(nil)
			}
			start := time.Now()
			must.Get(rpcOver(t, c, ramp.RPCConfig{}).WaitReceipt(t.Context(), common.MaxHash, 0))(t)
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
		change func(*oneorder.Chain)
		text   string
		is     error
		ends   bool // at once, for it will not pass
	}{
		"the transaction": {func(c *oneorder.Chain) { c.Receipt = "null" },
			"eth_getTransactionReceipt: " + common.MaxHash.Hex() +
				": the node does not know it (yet); if it should exist, the node may be on another network: set " +
				"RPCConfig.ChainID to detect that", ramp.ErrNotFound, false},
		"its block":     {func(c *oneorder.Chain) { c.Receipt = `{"status":"0x1"}` }, "is in no block yet", nil, false},
		"confirmations": {func(c *oneorder.Chain) { c.Head = 12 }, "has 3 of 5 confirmations", nil, false},
		"a block that stands": {func(c *oneorder.Chain) { c.Block[10] = blockB },
			"block 10, which contained the transaction, was replaced: the receipt names block " + blockA +
				", and the chain has " + blockB + "; if that stays so, ask another node", nil, false},
		"a node": {func(c *oneorder.Chain) {
			c.Fail = func(string) (*http.Response, error) {
				return nil,
					errors.New("rejected")
			}
		}, "rejected", nil, false},
		"an index": {func(c *oneorder.Chain) {
			c.Fail = func(string) (*http.Response, error) {
				return status(200, nil, `{"id":null,"error":"transaction indexing is in progress"}`)(nil)
			}
		}, "indexing is in progress", nil, false},
		"any answer": {func(c *oneorder.Chain) {
			c.Fail = func(string) (*http.Response, error) {
				time.Sleep(time.Hour)
				return nil,
					context.DeadlineExceeded
			}
		}, "has not answered yet", nil, false},
		"no such method": {func(c *oneorder.Chain) {
			c.Fail = always(200, `{"id":null,"error":{"code":-32601,"message":"m"}}`)
		},
			"-32601", ramp.RPCMethodNotFound, true},
		"invalid params": {func(c *oneorder.Chain) {
			c.Fail = always(200, `{"id":null,"error":{"code":-32602,"message":"m"}}`)
		},
			"-32602", ramp.RPCInvalidParams, true},
		"no such method inside a 500": {func(c *oneorder.Chain) {
			c.Fail = always(500,
				`{"id":null,"error":{"code":-32601,"message":"m"}}`)
		},
			"HTTP 500: JSON-RPC error -32601", ramp.RPCMethodNotFound, true},
		"a ban": {func(c *oneorder.Chain) { c.Fail = always(403, strings.Repeat("<html>", 100)) },
			"HTTP 403", nil, true},
		"a login late": {func(c *oneorder.Chain) {
			c.Fail = func(method string) (*http.Response, error) {
				if method == "eth_blockNumber" {
					return always(401, "")(method)
				}
				return nil, nil
			}
		}, "HTTP 401", nil, true},
	} {
		inBubble(t, name, func(t *testing.T) {
			c := &oneorder.Chain{Receipt: mined(10, blockA), Head: 20, Block: map[uint64]string{10: blockA}}
			test.change(c)
			ctx := within(t, 3500*time.Millisecond)
			start := time.Now()
			receipt, err := rpcOver(t, c, ramp.RPCConfig{}).WaitReceipt(ctx, common.MaxHash, 5)
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

// One answer that hangs must not use up the 5 seconds of a delivery.
func TestAWaitOutlivesAnAnswerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &oneorder.Chain{Receipt: string(oneorder.OnChain().Bytes(t)), Head: 11,
			Block: map[uint64]string{10: blockA}}
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
			c := &oneorder.Chain{Say: map[string]string{"eth_chainId": `"result":"0x2711"`}}
			client := pinned(t, c, ramp.RPCConfig{})
			ctx := within(t, time.Minute)
			for range 2 {
				err := use(ctx, client)
				assert.ErrorIs(t, err, ramp.ErrWrongChain)
				assert.ErrorContains(t, err,
					"ramp: eth_chainId: the node is on another chain: its chain ID is 10001, but "+
						"RPCConfig.ChainID is 1112")
			}
			assert.Equal(t, []string{"eth_chainId", "eth_chainId"}, c.Asked,
				"and it is asked again, for the node may be replaced")

			c.Asked, c.Fail = nil, func(method string) (*http.Response, error) { return failFor(method, "eth_chainId") }
			err := use(ctx, client)
			assert.ErrorContains(t, err, "ramp: eth_chainId: connection refused")
			assert.NotErrorIs(t, err, ramp.ErrWrongChain)
			assert.GreaterOrEqual(t, len(c.Asked), 3, "asking is repeated, even before a send")
			assert.Equal(t, []string{"eth_chainId"}, slices.Compact(c.Asked))

			c.Say, c.Asked, c.Fail = nil, nil, nil
			require.NoError(t, use(ctx, client))
			require.NoError(t, use(ctx, client))
			assert.Equal(t, "eth_chainId", c.Asked[0])
			assert.NotContains(t, c.Asked[1:], "eth_chainId", "once it is known, it is not asked again")
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
				c := &oneorder.Chain{Receipt: string(oneorder.OnChain().Bytes(t)), NoBatches: noBatches}
				var log bytes.Buffer
				client := pinned(t, c, ramp.RPCConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))})
				transaction, receipt, err := client.WaitTransaction(t.Context(), common.MaxHash, 1)
				require.ErrorIs(t, err, nil, "the right chain, before it is switched")
				assert.Equal(t, common.MaxHash, receipt.TransactionHash)
				assert.Equal(t, common.MaxHash, transaction.Hash)
				if !noBatches {
					assert.Equal(t, 1, c.Requests)
					assert.Equal(t,
						[]string{"eth_chainId", "eth_getTransactionReceipt", "eth_getTransactionByHash",
							"eth_blockNumber"},
						c.Asked)
				}

				c.Say, c.Transaction = map[string]string{"eth_chainId": test.node}, test.transaction
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
				c := &oneorder.Chain{Receipt: mined(10, blockA), Head: 9, Block: map[uint64]string{10: blockA}}
				client := rpcOver(t, c, config)
				_, _, err := client.WaitTransaction(within(t, 3*time.Second), common.MaxHash, confirmations)
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				if confirmations < 2 {
					assert.ErrorContains(t, err,
						"the transaction is in block 10, which is not made yet: the newest block is 9")
				}
				c.After(1500*time.Millisecond, func() { c.Head = 11 })
				c.Requests = 0
				start := time.Now()
				must.Get(client.WaitReceipt(t.Context(), common.MaxHash, confirmations))(t)
				assert.Equal(t, 2*time.Second, time.Since(start))
				assert.Equal(t, 3*int(max(1, confirmations)), c.Requests)
			})
		}
	}
}

func TestCheckReportsAWrongChainOrAnUnreachableNodeAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &oneorder.Chain{}
		assert.NoError(t, pinned(t, c, ramp.RPCConfig{}).Check(t.Context()))
		assert.NoError(t, rpcOver(t, c, ramp.RPCConfig{}).Check(t.Context()), "any chain")
		c.Say = map[string]string{"eth_chainId": `"result":"0x1"`}
		assert.EqualError(t, pinned(t, c, ramp.RPCConfig{}).Check(t.Context()),
			"ramp: check https://node.example.com: ramp: eth_chainId: "+
				"the node is on another chain: its chain ID is 1, but RPCConfig.ChainID is 1112")
		c.Say = map[string]string{"eth_chainId": `"result":null`}
		assert.ErrorContains(t, pinned(t, c, ramp.RPCConfig{}).Check(t.Context()), "the result is null")
		c.Fail = func(string) (*http.Response, error) { return nil, errors.New("connection refused") }
		assert.EqualError(t, rpcOver(t, c, ramp.RPCConfig{}).Check(t.Context()),
			"ramp: check https://node.example.com: ramp: eth_chainId: connection refused")
		_, err := rpcOver(t, c, ramp.RPCConfig{}).BlockNumber(t.Context())
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
		c := &oneorder.Chain{Say: map[string]string{"eth_chainId": `"result":` + answer}}
		_, err := pinned(t, c, ramp.RPCConfig{}).BlockNumber(t.Context())
		assert.Equal(t, []string{"eth_chainId"}, c.Asked)
		assert.ErrorContains(t, err, text)
	}
}

// The check may be repeated before a send; the send itself may not.
func TestASendAfterTheCheckIsSentOnce(t *testing.T) {
	for _, use := range []string{"a raw send", "a send", "a batch of sends", "a call of any method"} {
		inBubble(t, use, func(t *testing.T) {
			c := &oneorder.Chain{}
			c.Fail = func(method string) (*http.Response, error) {
				if method == "eth_chainId" && len(c.Asked) > 1 {
					return nil, nil
				}
				return nil, errors.New("connection reset")
			}
			assert.ErrorContains(t, everyUse[use](t.Context(), pinned(t, c, ramp.RPCConfig{})), "connection reset")
			require.Len(t, c.Asked, 3)
			assert.Equal(t, []string{"eth_chainId", "eth_chainId"}, c.Asked[:2])
			assert.NotEqual(t, "eth_chainId", c.Asked[2])
		})
	}
}

// The error rules out the network as the cause.
func TestWhatIsNotFoundNamesTheChain(t *testing.T) {
	none := `"result":null`
	client := pinned(t, &oneorder.Chain{Receipt: "null",
		Say: map[string]string{"eth_getBlockByNumber": none, "custom_receipt": none}}, ramp.RPCConfig{})
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
