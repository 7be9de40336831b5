package ramp_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
)

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
