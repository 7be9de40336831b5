package rampproof_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence/movetest"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampproof"
)

// confirm confirms a result for the order of its intent, on a chain with a receipt.
func confirm(t *testing.T, result, is object) error {
	t.Helper()
	r := must.Get(ramp.ParseResult(result.bytes(t)))(t)
	c := &chain{receipt: string(is.bytes(t)), head: 11, block: map[uint64]string{10: blockA}}
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
	upper := func(hex string) string { return "0x" + strings.ToUpper(hex[2:]) }
	burned := onChain()["logs"].([]any)[0]
	unknown := map[string]any{"address": testToken, "topics": []any{}, "data": "0x01"}
	both, reversed := []any{burned, unknown}, []any{unknown, burned}
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
		"a node that names none":            {webhookResult(), onChain().without("transactionHash"), "tx_hash"},
		"in another block, the same events": {webhookResult(), moved, ""},
		"in another block, a failure": {webhookResult().with("receipt.status", "0x0").with("receipt.logs", []any{}),
			moved.with("status", "0x0").with("logs", []any{}), ""},
		// Nothing depends on the reported logs: they are a copy, perhaps of a node that had not indexed
		// the events yet.
		"no logs reported": {webhookResult().without("receipt.logs"), onChain(), ""},
		"null logs":        {webhookResult().with("receipt.logs", nil), onChain(), ""},
		"an empty list":    {webhookResult().with("receipt.logs", []any{}), onChain(), ""},
		"one log of two":   {webhookResult(), onChain().with("logs", both), ""},
		"another order":    {webhookResult().with("receipt.logs", reversed), onChain().with("logs", both), ""},
		"another contract": {webhookResult().with("receipt.logs.0.address", payer.Hex()), onChain(), ""},
		"another topic":    {webhookResult().with("receipt.logs.0.topics", []any{other}), onChain(), ""},
		"other data":       {webhookResult().with("receipt.logs.0.data", "0x02"), onChain(), ""},
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

// A transaction may settle the calls of many, as a bundle of ERC-4337 does, and succeed although
// that of the order's user failed. So it must have moved something for that user.
func TestConfirmedDemandsAMoveOfTheUser(t *testing.T) {
	user, account := common.HexToAddress(testWallet), common.HexToAddress("0xacc0")
	who := maps.Clone(named)
	who["user"], who["account"] = user, account
	const unproven = "the transaction does not prove the outcome of the order: "
	somebody, of := unproven+account.Hex()+" ", "; the order's user is "+user.Hex()
	nothing := unproven + "it moved nothing of the token " + proofToken.Hex()
	for name, tt := range map[string]struct {
		intent map[string]any
		list   string
		want   string // the end of the error
	}{
		"a burn":               {burnIntent(), "user>zero 10", ""},
		"a burn of little":     {burnIntent(), "user>zero 1u", ""},
		"a burn beside others": {burnIntent(), "account>zero 5, user>zero 10, zero>friend 3", ""},
		"a piece":              {burnIntent(), "user>zero #7", ""},
		"the burn of another": {burnIntent(), "account>zero 5",
			somebody + "burned 5000000000000000000 units" + of},
		"an approval beside it": {burnIntent(), "user>account 10 approval, account>zero 5u",
			somebody + "burned 5 units" + of},
		"nothing, from the user": {burnIntent(), "user>zero 0, account>zero 5u, account>zero 1u",
			somebody + "burned 6 units" + of},
		"from the user to the user": {burnIntent(), "user>user 10", nothing + of},
		"a mint, as a burn":         {burnIntent(), "zero>user 10", nothing + of},
		"a burn of another token":   {burnIntent(), "user>zero 10 other", nothing + of},
		"a burn that was removed":   {burnIntent(), "user>zero 10 removed", nothing + of},
		"ERC-1155": {burnIntent(), "user>zero 10 single",
			nothing + "; not supported, and not counted, are transfers of ERC-1155: 1" + of},
		"no event": {burnIntent(), "", nothing + of},

		"a mint":              {mintIntent(), "zero>user 10", ""},
		"a mint by a bridge":  {mintIntent(), "account>user 1u", ""},
		"the mint of another": {mintIntent(), "zero>account 5u", somebody + "got 5 units" + of},
		"the mints of many": {mintIntent(), "zero>account 5u, zero>friend 1u, zero>ramp 2u, zero>token 3u, " +
			"zero>account 1u",
			somebody + "got 6 units, " + named["friend"].Hex() + " got 1 units, " + rampBridge.Hex() +
				" got 2 units, and 1 more accounts did" + of},
		"a friend's transfer of nothing": {mintIntent(), "account>user 0, zero>account 5u",
			somebody + "got 5 units" + of},
		"a burn, as a mint": {mintIntent(), "user>zero 10", nothing + of},
	} {
		t.Run(name, func(t *testing.T) {
			err := confirm(t, webhookResult().with("intent", tt.intent),
				onChain().with("logs", movetest.Logs(proofToken, tt.list, who)))
			if tt.want == "" {
				assert.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, rampproof.ErrNotProven)
			assert.EqualError(t, err,
				"ramp: confirm transaction "+common.MaxHash.Hex()+" of order "+testUUID+": "+tt.want)
		})
	}
}

// The stored order says which tokens there are. So what the intent of a result lacks matters to
// nobody.
func TestTheTokensOfTheStoredOrderMustMove(t *testing.T) {
	foreign := onChain().with("logs.0.address", "0x000000000000000000000000000000000000dead")
	for name, body := range map[string]object{
		"the whole intent":      webhookResult(),
		"no intent":             webhookResult().without("intent"),
		"a side that is absent": webhookResult().without("intent.from"),
		"an amount of text":     webhookResult().with("intent.from.0.amount", "10"),
	} {
		t.Run(name, func(t *testing.T) {
			ends := func(receipt object) error {
				r := must.Get(ramp.ParseResult(body.bytes(t)))(t)
				c, store := &chain{receipt: string(receipt.bytes(t))}, &keeper{order: stored(t, burnIntent())}
				next, err := rampproof.Confirmed(c.client(t), 0).Confirm(t.Context(), store, r,
					ramp.Finish(r, time.Now()))
				require.NoError(t, err)
				_, err = store.Update(t.Context(), r.UUID, next)
				return err
			}
			require.NoError(t, ends(onChain()))
			assert.ErrorIs(t, ends(foreign), rampproof.ErrNotProven)
		})
	}
}

// What a node says of an event of somebody else in a form of its own decides nothing.
func TestAnEventThatCannotBeRead(t *testing.T) {
	const nobody = "0x000000000000000000000000000000000000dead"
	other := map[string]any{"address": nobody, "topics": []any{}, "data": "0x"}
	two := onChain().with("logs", append(onChain()["logs"].([]any), other)).
		with("logsBloom", "0x0").with("type", "legacy")
	for path, want := range map[string]string{
		"logs.1.topics": "",
		"logs.0.topics": "event 0 of its receipt, of the contract " +
			common.HexToAddress(testToken).Hex() + ", could not be read",
		"logs.1.address": "event 1 of its receipt, of the contract " +
			"0x0000000000000000000000000000000000000000, could not be read",
	} {
		err := confirm(t, webhookResult().without("receipt.logs"), two.with(path, "0x0"))
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
		"a lie": {func(c *chain) { c.receipt = string(onChain().with("status", "0x0").bytes(t)) }, 500,
			"receipt.status"},
		"another branch": {func(c *chain) { c.receipt = string(onChain().with("blockHash", blockB).bytes(t)) }, 500,
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
			c := &chain{receipt: string(onChain().bytes(t)), head: 11, block: map[uint64]string{10: blockA}}
			test.change(c)
			store := &keeper{order: stored(t, burnIntent())}
			config := configWith(t, rampproof.Confirmed(c.client(t), 2), nil)
			config.Store = store
			handler := must.Get(ramp.NewHandler(config))(t)
			body := webhookResult().bytes(t)
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
