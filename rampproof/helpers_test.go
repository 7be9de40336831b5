package rampproof_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/jsonobject"
	"github.com/token-ramp/ramp-go/internal/test/jsonrpc"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

const (
	testUUID   = "7b0f9a1e-4c1d-4c6e-9a53-0e8f5d6a2b10"
	testToken  = "0x00000000000000000000000000000000000070c3"
	testTopic  = "0x00000000000000000000000000000000000000000000000000000000000000aa"
	testWallet = "0x1Be31A94361a391bBaFB2a4CCd704F57dc04d4bb"
)

// The hashes of a block with the transaction, and of the one that replaces it.
var blockA, blockB = common.HexToHash("0xa").Hex(), common.HexToHash("0xb").Hex()

var quiet = slog.New(slog.DiscardHandler)

// anyTerms accept every order.
var anyTerms, _ = ramp.NewTerms(ramp.TermsConfig{Any: true})

func testKey(t testing.TB) ramp.HMACKey {
	return must.Get(ramp.TextKey("my_secret_salt_value_!@#$%^&*"))(t)
}

func testSigner(t testing.TB) *ramp.Signer {
	return must.Get(ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"))(t)
}

type noPlayers struct{}

func (noPlayers) Authenticate(context.Context, ramp.Session) error           { return nil }
func (noPlayers) Assets(context.Context, ramp.Session) (*ramp.Player, error) { return nil, nil }

// object is a JSON object that a test changes by path: "intent.from.0.amount".
type object map[string]any

func (o object) with(path string, value any) object { return jsonobject.With(o, path, value) }

func (o object) without(path string) object { return jsonobject.Without(o, path) }

func (o object) bytes(t testing.TB) []byte { return must.Get(json.Marshal(o))(t) }

func side(kind, id string, amount any) []any {
	return []any{map[string]any{"type": kind, "id": id, "amount": amount}}
}

func mintIntent() map[string]any {
	return map[string]any{"method": "mint", "type": "assemble", "target_candidate": map[string]any{},
		"from": side("asset", "item_gold", 100), "to": side("ERC20", testToken, 10)}
}

func burnIntent() map[string]any {
	return map[string]any{"method": "burn-permit", "type": "disassemble", "target_candidate": map[string]any{},
		"from": side("ERC20", testToken, 10), "to": side("asset", "item_gold", 100)}
}

// onChain is the receipt of the chain, as in JSON-RPC. The user of the order burned one unit.
func onChain() object {
	return object{
		"type": "0x7", "status": "0x1", "transactionHash": common.MaxHash.Hex(), "transactionIndex": "0x2",
		"blockHash": blockA, "blockNumber": "0xa", "gasUsed": "0x5208", "cumulativeGasUsed": "0x5209",
		"effectiveGasPrice": "0x1", "contractAddress": nil, "to": testToken,
		"from": "0x000000000000000000000000000000000000007a", "feePayer": "0x000000000000000000000000000000000000fee0",
		"logs": []any{map[string]any{"address": testToken, "data": common.BigToHash(common.Big1).Hex(),
			"topics":   []any{transferTopic, common.HexToHash(testWallet).Hex(), common.Hash{}.Hex()},
			"logIndex": "0x3", "removed": false, "blockTimestamp": "0x65", "blockNumber": "0xa", "blockHash": blockA,
			"transactionHash": common.MaxHash.Hex(), "transactionIndex": "0x2"}},
	}
}

// webhookResult is the result of a burn as the service sends it.
func webhookResult() object {
	receipt := onChain().without("from").without("to").without("feePayer").
		with("contractAddress", common.Address{}.Hex()).with("root", "0x").
		with("gasUsed", 0x5208).with("logs.0.blockTimestamp", 0)
	return object{"session_id": "session-1", "uuid": testUUID, "tx_hash": common.MaxHash.Hex(),
		"receipt": map[string]any(receipt), "intent": burnIntent()}
}

// stored returns the order of an intent, which waits.
func stored(t testing.TB, intent map[string]any) *ramp.Order {
	call := object{"user_sig": "0xaa55", "user_address": testWallet, "project_id": "project-1",
		"digest": testTopic, "uuid": testUUID, "intent": intent}
	request := must.Get(ramp.ParseValidate(call.bytes(t)))(t)
	accept := ramp.Accept(ramp.Session{ID: "session-1"}, request, time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	order := must.Get(accept(nil))(t).Order
	return &order
}

// keeper is a store of one order. It remembers the steps.
type keeper struct {
	order *ramp.Order
	steps []ramp.Step
}

func (k *keeper) Update(_ context.Context, _ uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	step, err := next(k.order)
	if err == nil && step.New {
		k.order, k.steps = &step.Order, append(k.steps, step)
	}
	return step, err
}

// OrderByTransaction and NewestSuccess make it an OrderFinder.
func (k *keeper) OrderByTransaction(context.Context, common.Hash) (ramp.Order, error) {
	return ramp.Order{}, ramp.ErrOrderUnknown
}

func (k *keeper) NewestSuccess(context.Context, ramp.Network) (ramp.Order, error) {
	return ramp.Order{}, ramp.ErrOrderUnknown
}

// chain is a node in memory, whose chain has one transaction.
type chain struct {
	mu          sync.Mutex
	head        uint64                                      // its newest block, or 0 for 16
	receipt     string                                      // JSON of the receipt, "null" for none
	transaction string                                      // JSON of the transaction; "" for one that says little
	block       map[uint64]string                           // hash by number
	fail        func(method string) (*http.Response, error) // answers a whole request instead, if it returns something
	say         map[string]string                           // a method's answer after the id, instead of the chain's
	asked       []string                                    // methods
	requests    int
}

func (c *chain) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	calls, _, err := jsonrpc.Read(body)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests++
	for _, call := range calls {
		c.asked = append(c.asked, call.Method)
		if c.fail != nil {
			if response, err := c.fail(call.Method); response != nil || err != nil {
				return response, err
			}
		}
	}
	text, err := jsonrpc.Answer(body, func(call jsonrpc.Call) (any, string) {
		return jsonrpc.Raw(c.answer(call.Method, call.Params)), ""
	})
	if err != nil {
		return nil, err
	}
	return status(200, string(text))(r)
}

func (c *chain) answer(method string, params []json.RawMessage) string {
	if said, ok := c.say[method]; ok {
		return said
	}
	answer := "null"
	switch method {
	case "eth_chainId":
		answer = `"0x458"`
	case "eth_blockNumber":
		answer = fmt.Sprintf(`"0x%x"`, cmp.Or(c.head, 16))
	case "eth_getTransactionReceipt":
		answer = c.receipt
	case "eth_getTransactionByHash":
		if answer = c.transaction; answer == "" {
			answer = `{"hash":` + string(params[0]) + `}`
		}
	case "eth_getBlockByNumber":
		var number ramp.Quantity
		if err := json.Unmarshal(params[0], &number); err != nil {
			return fmt.Sprintf(`"error":{"code":-32602,"message":%q}`, err.Error())
		}
		n, _ := number.Uint64()
		if hash, ok := c.block[n]; ok {
			answer = `{"hash":"` + hash + `"}`
		}
	}
	return `"result":` + answer
}

// client returns a client that accepts only chain 1112.
func (c *chain) client(t testing.TB) *ramp.RPC { return rpcOver(t, c, 1112) }

func rpcOver(t testing.TB, network http.RoundTripper, chainID uint64) *ramp.RPC {
	return must.Get(ramp.NewRPC(ramp.RPCConfig{URL: "https://node.example.com", ChainID: chainID, Retries: -1,
		HTTPClient: &http.Client{Transport: network}}))(t)
}

// status answers every request alike.
func status(code int, body string) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) {
		recorder := httptest.NewRecorder()
		recorder.WriteHeader(code)
		_, _ = recorder.WriteString(body)
		return recorder.Result(), nil
	}
}

// signed are the headers of a call whose HMAC is right.
func signed(t testing.TB, body []byte) http.Header {
	return http.Header{ramp.HeaderHMAC: {testKey(t).Sign(body)}}
}

// inBubble runs a subtest in a bubble, whose time passes by itself.
func inBubble(t *testing.T, name string, test func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// as returns the error of a type within err.
func as[E error](t testing.TB, err error) (found E) {
	t.Helper()
	require.ErrorAs(t, err, &found)
	return found
}
