package rampproof_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampproof"
)

// twoLogs are logs, of which the second has some data.
func twoLogs(data string) []any {
	first := map[string]any{"address": testToken, "topics": []any{}, "data": "0x"}
	return []any{first, map[string]any{"address": testToken, "topics": []any{}, "data": data}}
}

// confirm confirms a result for the order of its intent, on a chain with a receipt.
func confirm(t *testing.T, result, is object) error {
	t.Helper()
	r := must.Get(ramp.ParseResult(result.bytes()))(t)
	c := &chain{receipt: string(is.bytes()), head: 10, block: map[uint64]string{10: blockA}}
	order := stored(t, burnIntent())
	if r.Intent.Type == ramp.Assemble {
		order = stored(t, mintIntent())
	}
	order.Intent.From, order.Intent.To = r.Intent.From, r.Intent.To
	store := &keeper{order: order}
	next, err := rampproof.Confirmed(c.client(t), 1).Confirm(t.Context(), store, r, ramp.Finish(r, time.Now()))
	if err == nil {
		_, err = store.Update(t.Context(), r.UUID, next)
	}
	return err
}

func TestAResultIsComparedWithTheChain(t *testing.T) {
	failed := webhookResult().with("receipt.status", "0x0").with("receipt.logs", []any{})
	other := common.HexToHash("0xdead").Hex()
	// A service may deliver the same body after the block of its transaction was replaced.
	// Positions prove nothing then.
	moved := onChain().with("blockHash", blockB).with("blockNumber", "0xb").with("transactionIndex", "0x0").
		with("gasUsed", "0x9").with("cumulativeGasUsed", "0x9").with("logs.0.blockHash", blockB).
		with("logs.0.blockNumber", "0xb").with("logs.0.logIndex", "0x0").with("logs.0.transactionIndex", "0x0")
	const nobody = "0x000000000000000000000000000000000000dead"
	upper := func(hex string) string { return "0x" + strings.ToUpper(hex[2:]) }
	foreign := map[string]any{"address": nobody, "topics": []any{}, "data": "0x"}
	event := func(data string) map[string]any {
		return map[string]any{"address": testToken, "topics": []any{testTopic}, "data": data}
	}
	for name, test := range map[string]struct {
		reported, actual object
		field            string // that the chain contradicts; "" if it is confirmed
	}{
		"the same": {webhookResult(), onChain(), ""},
		"in other digits": {webhookResult().with("tx_hash", upper(common.MaxHash.Hex())),
			onChain(), ""},
		"with no more than the status": {webhookResult().with("receipt", map[string]any{"status": "0x1"}), onChain(),
			""},
		"a failure": {failed, onChain().with("status", "0x0").with("logs", []any{}), ""},
		"a token in another case": {webhookResult().with("intent.from.0.id", upper(testToken)),
			onChain(), ""},
		"with logs that say little": {webhookResult().without("receipt.logs.0.blockNumber").
			without("receipt.logs.0.blockHash").without("receipt.logs.0.transactionHash").
			without("receipt.logs.0.transactionIndex").without("receipt.logs.0.logIndex").
			without("receipt.logs.0.removed"), onChain(), ""},
		"with what is not compared": {webhookResult().with("receipt.type", "0x2").
			with("receipt.logsBloom", "0x01").with("receipt.logs.0.blockTimestamp", 7), onChain(), ""},
		"with other positions, gas and price": {webhookResult().with("receipt.blockNumber", "0xb").
			with("receipt.transactionIndex", "0x1").with("receipt.gasUsed", "0x1").
			with("receipt.cumulativeGasUsed", "0x1").with("receipt.effectiveGasPrice", "0x2").
			with("receipt.logs.0.logIndex", "0x4"), onChain(), ""},
		"a root that the node lacks": {webhookResult().with("receipt.root", "0x01"), onChain(), ""},
		"a contract that was created": {webhookResult().with("receipt.contractAddress", testToken),
			onChain().with("contractAddress", testToken), ""},
		"without the contract that was created": {webhookResult().without("receipt.contractAddress"),
			onChain().with("contractAddress", testToken), ""},

		"a failure reported as a success": {webhookResult(), onChain().with("status", "0x0"), "receipt.status"},
		"no status on the chain":          {webhookResult(), onChain().without("status"), "receipt.status"},
		"a success reported as a failure": {webhookResult().with("receipt.status", "0x0"), onChain(), "receipt.status"},
		"a receipt of another": {webhookResult().with("receipt.transactionHash", other), onChain(),
			"receipt.transactionHash"},
		"a node that names none": {webhookResult(), onChain().without("transactionHash"), "tx_hash"},
		"a token no event can have": {webhookResult().with("intent.from.0.id", "token-7").without("receipt.logs"),
			onChain().with("logs.0.address", common.HexToAddress("token-7").Hex()), "intent.from[0].id"},
		"a log less": {webhookResult().with("receipt.logs", []any{}), onChain(), "receipt.logs"},
		"another contract": {webhookResult().with("receipt.logs.0.address", nobody),
			onChain(), "receipt.logs"},
		"another topic": {webhookResult().with("receipt.logs.0.topics", []any{other}), onChain(), "receipt.logs"},
		"other data":    {webhookResult().with("receipt.logs.0.data", "0x02"), onChain(), "receipt.logs"},
		"the second of two logs": {webhookResult().with("receipt.logs", twoLogs("0x01")),
			onChain().with("logs", twoLogs("0x02")), "receipt.logs"},
		"a transaction of other token": {webhookResult().with("intent.from.0.id", nobody),
			onChain(), "intent.from[0].id"},
		"a mint of another token": {webhookResult().with("intent", mintIntent()).with("intent.to.0.id", nobody),
			onChain(), "intent.to[0].id"},

		"in another block, the same events": {webhookResult(), moved, ""},
		"in another block, a failure": {webhookResult().with("receipt.status", "0x0").with("receipt.logs", []any{}),
			moved.with("status", "0x0").with("logs", []any{}), ""},
		"no logs reported":             {webhookResult().without("receipt.logs"), moved, ""},
		"another event of a foreigner": {webhookResult(), moved.with("logs", []any{foreign, event("0x01")}), ""},
		"another event of the token":   {webhookResult(), moved.with("logs", []any{event("0x02")}), "receipt.logs"},
		"one event of the token less": {webhookResult(), moved.with("logs", []any{event("0x01"), event("0x01")}),
			"receipt.logs"},
		"events of a foreigner instead": {webhookResult(), moved.with("logs", []any{foreign}), "receipt.logs"},
		"a token without an event": {webhookResult().with("receipt.logs", []any{}), moved.with("logs", []any{foreign}),
			"intent.from[0].id"},
	} {
		inBubble(t, name, func(t *testing.T) {
			err := confirm(t, test.reported, test.actual)
			if test.field == "" {
				assert.NoError(t, err)
				return
			}
			different := as[*rampproof.MismatchError](t, err)
			assert.Equal(t, test.field, different.Field)
			assert.NotEqual(t, different.Webhook, different.Chain)
			assert.ErrorContains(t, err, fmt.Sprintf("%s is %s in the result, but %s on the chain",
				test.field, different.Webhook, different.Chain))
		})
	}
}

// The stored order says which tokens there are. So what the intent of a result lacks
// matters to nobody, and any other successful transaction confirms nothing.
func TestTheTokensOfTheStoredOrderMustHaveEvents(t *testing.T) {
	foreign := onChain().with("logs.0.address", "0x000000000000000000000000000000000000dead")
	for name, body := range map[string]object{
		"the whole intent":      webhookResult(),
		"no intent":             webhookResult().without("intent"),
		"a side that is absent": webhookResult().without("intent.from"),
		"an amount of text":     webhookResult().with("intent.from.0.amount", "10"),
	} {
		t.Run(name, func(t *testing.T) {
			receipts := map[string]string{string(onChain().bytes()): "", string(foreign.bytes()): "intent.from[0].id"}
			for receipt, field := range receipts {
				r := must.Get(ramp.ParseResult(body.without("receipt.logs").bytes()))(t)
				c, store := &chain{receipt: receipt}, &keeper{order: stored(t, burnIntent())}
				confirmer := rampproof.Confirmed(c.client(t), 0)
				next, err := confirmer.Confirm(t.Context(), store, r, ramp.Finish(r, time.Now()))
				require.NoError(t, err)
				_, err = store.Update(t.Context(), r.UUID, next)
				if field == "" {
					assert.NoError(t, err)
					continue
				}
				assert.Equal(t, field, as[*rampproof.MismatchError](t, err).Field)
			}
		})
	}
}

// What a node says of an event of somebody else in a form of its own decides nothing.
func TestAnEventThatCannotBeRead(t *testing.T) {
	const nobody = "0x000000000000000000000000000000000000dead"
	other := map[string]any{"address": nobody, "topics": []any{}, "data": "0x"}
	both := onChain().with("logs", append(onChain()["logs"].([]any), other)).
		with("logsBloom", "0x0").with("type", "legacy")
	for path, want := range map[string]string{
		"logs.1.topics": "",
		"logs.0.topics": "event 0 of its receipt, of the contract " +
			common.HexToAddress(testToken).Hex() + ", could not be read",
		"logs.1.address": "event 1 of its receipt, of the contract " +
			"0x0000000000000000000000000000000000000000, could not be read",
	} {
		err := confirm(t, webhookResult().without("receipt.logs"), both.with(path, "0x0"))
		if want == "" {
			assert.NoError(t, err, path)
			continue
		}
		assert.ErrorContains(t, err, want, path)
	}
}

func TestAResultNeedsAHash(t *testing.T) {
	right := common.MaxHash.Hex()
	for _, hash := range []string{
		"", "0x", "0x01", right[2:], right + "00", right + "zz", "0x" + strings.Repeat("z", 64),
	} {
		err := confirm(t, webhookResult().with("tx_hash", hash), onChain())
		wrong := as[*ramp.InvalidError](t, err)
		assert.Equal(t, "tx_hash", wrong.Fields[0].Path)
	}
}

func TestOnlyAConfirmedResultEndsItsOrder(t *testing.T) {
	type steps = func(*chain)
	for name, test := range map[string]struct {
		change steps
		status int
		cause  string // in the log
	}{
		"confirmed": {func(*chain) {}, 200, ""},
		"a lie": {func(c *chain) { c.receipt = string(onChain().with("status", "0x0").bytes()) }, 500,
			"receipt.status"},
		"another branch": {func(c *chain) { c.receipt = string(onChain().with("blockHash", blockB).bytes()) }, 500,
			"block 10, which contained the transaction, was replaced"},
		"made up": {func(c *chain) { c.receipt = "null" }, 500, "the node's chain ID is 1112"},
		"another network": {func(c *chain) { c.say = map[string]string{"eth_chainId": `"result":"0x1"`} }, 500,
			"its chain ID is 1, but RPCConfig.ChainID is 1112"},
		"not deep enough": {func(c *chain) { c.head = 10 }, 500, "has 1 of 2 confirmations"},
		"the chain being away": {func(c *chain) {
			c.fail = func(string) (*http.Response, error) { return nil, errors.New("unreachable") }
		}, 500, "unreachable"},
		"the chain being wrong": {func(c *chain) { c.receipt = `"text"` }, 500, "cannot decode the result"},
	} {
		inBubble(t, name, func(t *testing.T) {
			c := &chain{receipt: string(onChain().bytes()), head: 11, block: map[uint64]string{10: blockA}}
			test.change(c)
			store := &keeper{order: stored(t, burnIntent())}
			config := configWith(t, rampproof.Confirmed(c.client(t), 2), nil)
			config.Store = store
			handler := must.Get(ramp.NewHandler(config))(t)
			body := webhookResult().bytes()
			start := time.Now()
			reply := handler.Answer(t.Context(), http.MethodPost, ramp.PathResult, signed(t, body), body)
			assert.Equal(t, test.status, reply.Status)
			assert.LessOrEqual(t, time.Since(start), 5*time.Second)
			if test.status == 200 {
				require.Len(t, store.steps, 1)
				assert.True(t, store.steps[0].Evidence.Succeeded)
				assert.Equal(t, []string{"eth_chainId", "eth_getTransactionReceipt", "eth_getTransactionByHash",
					"eth_blockNumber", "eth_getBlockByNumber"}, c.asked)
				assert.Equal(t, 2, c.requests)
				return
			}
			assert.Empty(t, store.steps, "nothing is paid")
			const wire = `{"success":false,"errorCode":"INTERNAL_ERROR","data":null}` // without details
			assert.Equal(t, wire, string(reply.Body))
			assert.ErrorContains(t, reply.Err, test.cause)
		})
	}
}
