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
	"a wait": func(ctx context.Context, r *ramp.RPC) error {
		_, err := r.WaitReceipt(ctx, common.MaxHash, 1)
		return err
	},
	"a confirmation": func(ctx context.Context, r *ramp.RPC) error {
		result, err := ramp.ParseResult(told().bytes())
		if err == nil {
			_, err = r.Confirm(ctx, result, 1)
		}
		return err
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

func TestAWaitGoesOnUntilTheChainCanBeAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		client := pinned(t, roundTrip(func(_ *http.Request, method string) (string, error) {
			switch {
			case method != "eth_chainId":
				return resultOf(method), nil
			case time.Since(begun) < time.Minute:
				return "", errors.New("connection refused")
			default:
				return `"0x458"`, nil
			}
		}), ramp.RPCConfig{})
		_, err := client.WaitReceipt(t.Context(), common.MaxHash, 1)
		require.NoError(t, err)
		assert.Equal(t, time.Minute, time.Since(begun))
	})
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
