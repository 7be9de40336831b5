package rampproof_test

import (
	"context"
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
	"github.com/token-ramp/ramp-go/internal/test/oneorder"
	"github.com/token-ramp/ramp-go/rampproof"
)

// confirm confirms a result for the order of its intent, on a chain with a receipt.
func confirm(t *testing.T, result, is oneorder.Object) error {
	t.Helper()
	r := must.Get(ramp.ParseResult(result.Bytes(t)))(t)
	c := &oneorder.Chain{Receipt: string(is.Bytes(t)), Head: 11, Block: map[uint64]string{10: blockA}}
	order := stored(t, oneorder.Burn())
	if r.Intent.Type == ramp.Assemble {
		order = stored(t, oneorder.Mint())
	}
	order.Intent.From, order.Intent.To = r.Intent.From, r.Intent.To
	store := keeping(t, order)
	next, err := rampproof.Confirmed(pinned(t, c), 1).Confirm(t.Context(), store, r, ramp.Finish(r, time.Now()))
	if err == nil {
		_, err = store.Update(t.Context(), r.UUID, next)
	}
	return err
}

func TestAResultIsComparedWithTheChain(t *testing.T) {
	failed := webhookResult().With("receipt.status", "0x0").With("receipt.logs", []any{})
	other := common.HexToHash("0xdead").Hex()
	// A service may deliver the same body after the block of its transaction was replaced.
	// Positions prove nothing then.
	moved := oneorder.OnChain().With("blockHash", blockB).With("blockNumber", "0xb").With("transactionIndex", "0x0").
		With("gasUsed", "0x9").With("cumulativeGasUsed", "0x9").With("logs.0.blockHash", blockB).
		With("logs.0.blockNumber", "0xb").With("logs.0.logIndex", "0x0").With("logs.0.transactionIndex", "0x0")
	upper := func(hex string) string { return "0x" + strings.ToUpper(hex[2:]) }
	burned := oneorder.OnChain()["logs"].([]any)[0]
	unknown := map[string]any{"address": testToken, "topics": []any{}, "data": "0x01"}
	both, reversed := []any{burned, unknown}, []any{unknown, burned}
	for name, test := range map[string]struct {
		reported, actual oneorder.Object
		field            string // that the chain contradicts; "" if it is confirmed
	}{
		"the same": {webhookResult(), oneorder.OnChain(), ""},
		"in other digits": {webhookResult().With("tx_hash", upper(common.MaxHash.Hex())),
			oneorder.OnChain(), ""},
		"with no more than the status": {webhookResult().With("receipt", map[string]any{"status": "0x1"}),
			oneorder.OnChain(), ""},
		"a failure": {failed, oneorder.OnChain().With("status", "0x0").With("logs", []any{}), ""},
		"a token in another case": {webhookResult().With("intent.from.0.id", upper(testToken)),
			oneorder.OnChain(), ""},
		"with logs that say little": {webhookResult().Without("receipt.logs.0.blockNumber").
			Without("receipt.logs.0.blockHash").Without("receipt.logs.0.transactionHash").
			Without("receipt.logs.0.transactionIndex").Without("receipt.logs.0.logIndex").
			Without("receipt.logs.0.removed"), oneorder.OnChain(), ""},
		"with what is not compared": {webhookResult().With("receipt.type", "0x2").
			With("receipt.logsBloom", "0x01").With("receipt.logs.0.blockTimestamp", 7), oneorder.OnChain(), ""},
		"with other positions, gas and price": {webhookResult().With("receipt.blockNumber", "0xb").
			With("receipt.transactionIndex", "0x1").With("receipt.gasUsed", "0x1").
			With("receipt.cumulativeGasUsed", "0x1").With("receipt.effectiveGasPrice", "0x2").
			With("receipt.logs.0.logIndex", "0x4"), oneorder.OnChain(), ""},
		"a root that the node lacks": {webhookResult().With("receipt.root", "0x01"), oneorder.OnChain(), ""},
		"a contract that was created": {webhookResult().With("receipt.contractAddress", testToken),
			oneorder.OnChain().With("contractAddress", testToken), ""},
		"without the contract that was created": {webhookResult().Without("receipt.contractAddress"),
			oneorder.OnChain().With("contractAddress", testToken), ""},

		"a failure reported as a success": {webhookResult(),
			oneorder.OnChain().With("status", "0x0"), "receipt.status"},
		"no status on the chain": {webhookResult(), oneorder.OnChain().Without("status"), "receipt.status"},
		"a success reported as a failure": {webhookResult().With("receipt.status", "0x0"),
			oneorder.OnChain(), "receipt.status"},
		"a receipt of another": {webhookResult().With("receipt.transactionHash", other), oneorder.OnChain(),
			"receipt.transactionHash"},
		"a node that names none": {webhookResult(),
			oneorder.OnChain().Without("transactionHash"), "tx_hash"},
		"in another block, the same events": {webhookResult(), moved, ""},
		"in another block, a failure": {webhookResult().With("receipt.status", "0x0").With("receipt.logs", []any{}),
			moved.With("status", "0x0").With("logs", []any{}), ""},
		// Nothing depends on the reported logs: they are a copy, perhaps of a node that had not indexed
		// the events yet.
		"no logs reported": {webhookResult().Without("receipt.logs"), oneorder.OnChain(), ""},
		"null logs":        {webhookResult().With("receipt.logs", nil), oneorder.OnChain(), ""},
		"an empty list":    {webhookResult().With("receipt.logs", []any{}), oneorder.OnChain(), ""},
		"one log of two":   {webhookResult(), oneorder.OnChain().With("logs", both), ""},
		"another order":    {webhookResult().With("receipt.logs", reversed), oneorder.OnChain().With("logs", both), ""},
		"another contract": {webhookResult().With("receipt.logs.0.address", payer.Hex()), oneorder.OnChain(), ""},
		"another topic":    {webhookResult().With("receipt.logs.0.topics", []any{other}), oneorder.OnChain(), ""},
		"other data":       {webhookResult().With("receipt.logs.0.data", "0x02"), oneorder.OnChain(), ""},
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
		"a burn":               {oneorder.Burn(), "user>zero 10", ""},
		"a burn of little":     {oneorder.Burn(), "user>zero 1u", ""},
		"a burn beside others": {oneorder.Burn(), "account>zero 5, user>zero 10, zero>friend 3", ""},
		"a piece":              {oneorder.Burn(), "user>zero #7", ""},
		"the burn of another": {oneorder.Burn(), "account>zero 5",
			somebody + "burned 5000000000000000000 units" + of},
		"an approval beside it": {oneorder.Burn(), "user>account 10 approval, account>zero 5u",
			somebody + "burned 5 units" + of},
		"nothing, from the user": {oneorder.Burn(), "user>zero 0, account>zero 5u, account>zero 1u",
			somebody + "burned 6 units" + of},
		"from the user to the user": {oneorder.Burn(), "user>user 10", nothing + of},
		"a mint, as a burn":         {oneorder.Burn(), "zero>user 10", nothing + of},
		"a burn of another token":   {oneorder.Burn(), "user>zero 10 other", nothing + of},
		"a burn that was removed":   {oneorder.Burn(), "user>zero 10 removed", nothing + of},
		"ERC-1155": {oneorder.Burn(), "user>zero 10 single",
			nothing + "; not supported, and not counted, are transfers of ERC-1155: 1" + of},
		"no event": {oneorder.Burn(), "", nothing + of},

		"a mint":              {oneorder.Mint(), "zero>user 10", ""},
		"a mint by a bridge":  {oneorder.Mint(), "account>user 1u", ""},
		"the mint of another": {oneorder.Mint(), "zero>account 5u", somebody + "got 5 units" + of},
		"the mints of many": {oneorder.Mint(), "zero>account 5u, zero>friend 1u, zero>ramp 2u, zero>token 3u, " +
			"zero>account 1u",
			somebody + "got 6 units, " + named["friend"].Hex() + " got 1 units, " + rampBridge.Hex() +
				" got 2 units, and 1 more accounts did" + of},
		"a friend's transfer of nothing": {oneorder.Mint(), "account>user 0, zero>account 5u",
			somebody + "got 5 units" + of},
		"a burn, as a mint": {oneorder.Mint(), "user>zero 10", nothing + of},
	} {
		t.Run(name, func(t *testing.T) {
			err := confirm(t, webhookResult().With("intent", tt.intent),
				oneorder.OnChain().With("logs", movetest.Logs(proofToken, tt.list, who)))
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
	foreign := oneorder.OnChain().With("logs.0.address", "0x000000000000000000000000000000000000dead")
	for name, body := range map[string]oneorder.Object{
		"the whole intent":      webhookResult(),
		"no intent":             webhookResult().Without("intent"),
		"a side that is absent": webhookResult().Without("intent.from"),
		"an amount of text":     webhookResult().With("intent.from.0.amount", "10"),
	} {
		t.Run(name, func(t *testing.T) {
			ends := func(receipt oneorder.Object) error {
				r := must.Get(ramp.ParseResult(body.Bytes(t)))(t)
				c := &oneorder.Chain{Receipt: string(receipt.Bytes(t))}
				store := keeping(t, stored(t, oneorder.Burn()))
				next, err := rampproof.Confirmed(pinned(t, c), 0).Confirm(t.Context(), store, r,
					ramp.Finish(r, time.Now()))
				require.NoError(t, err)
				_, err = store.Update(t.Context(), r.UUID, next)
				return err
			}
			require.NoError(t, ends(oneorder.OnChain()))
			assert.ErrorIs(t, ends(foreign), rampproof.ErrNotProven)
		})
	}
}

// What a node says of an event of somebody else in a form of its own decides nothing.
func TestAnEventThatCannotBeRead(t *testing.T) {
	const nobody = "0x000000000000000000000000000000000000dead"
	other := map[string]any{"address": nobody, "topics": []any{}, "data": "0x"}
	two := oneorder.OnChain().With("logs", append(oneorder.OnChain()["logs"].([]any), other)).
		With("logsBloom", "0x0").With("type", "legacy")
	for path, want := range map[string]string{
		"logs.1.topics": "",
		"logs.0.topics": "event 0 of its receipt, of the contract " +
			common.HexToAddress(testToken).Hex() + ", could not be read",
		"logs.1.address": "event 1 of its receipt, of the contract " +
			"0x0000000000000000000000000000000000000000, could not be read",
	} {
		err := confirm(t, webhookResult().Without("receipt.logs"), two.With(path, "0x0"))
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
		err := confirm(t, webhookResult().With("tx_hash", hash), oneorder.OnChain())
		wrong := as[*ramp.InvalidError](t, err)
		assert.Equal(t, "tx_hash", wrong.Fields[0].Path)
	}
}

func TestOnlyAConfirmedResultEndsItsOrder(t *testing.T) {
	type steps = func(*oneorder.Chain)
	for name, test := range map[string]struct {
		change steps
		status int
		cause  string // in the log
	}{
		"confirmed": {func(*oneorder.Chain) {}, 200, ""},
		"a lie": {func(c *oneorder.Chain) {
			c.Receipt = string(oneorder.OnChain().With("status", "0x0").Bytes(t))
		}, 500, "receipt.status"},
		"another branch": {func(c *oneorder.Chain) {
			c.Receipt = string(oneorder.OnChain().With("blockHash", blockB).Bytes(t))
		}, 500,
			"block 10, which contained the transaction, was replaced"},
		"made up": {func(c *oneorder.Chain) { c.Receipt = "null" }, 500, "the node's chain ID is 1112"},
		"another network": {func(c *oneorder.Chain) { c.Say = map[string]string{"eth_chainId": `"result":"0x1"`} }, 500,
			"its chain ID is 1, but RPCConfig.ChainID is 1112"},
		"not deep enough": {func(c *oneorder.Chain) { c.Head = 10 }, 500, "has 1 of 2 confirmations"},
		"the chain being away": {func(c *oneorder.Chain) {
			c.Fail = func(string) (*http.Response, error) { return nil, errors.New("unreachable") }
		}, 500, "unreachable"},
		"the chain being wrong": {func(c *oneorder.Chain) { c.Receipt = `"text"` }, 500, "cannot decode the result"},
	} {
		inBubble(t, name, func(t *testing.T) {
			c := &oneorder.Chain{Receipt: string(oneorder.OnChain().Bytes(t)), Head: 11,
				Block: map[uint64]string{10: blockA}}
			test.change(c)
			store := keeping(t, stored(t, oneorder.Burn()))
			var ended []ramp.Step
			store.Apply = func(_ context.Context, step ramp.Step) error { ended = append(ended, step); return nil }
			config := configWith(t, rampproof.Confirmed(pinned(t, c), 2), nil)
			config.Store = store
			handler := must.Get(ramp.NewHandler(config))(t)
			body := webhookResult().Bytes(t)
			start := time.Now()
			reply := handler.Answer(t.Context(), http.MethodPost, ramp.PathResult, signed(t, body), body)
			assert.Equal(t, test.status, reply.Status)
			assert.LessOrEqual(t, time.Since(start), 5*time.Second)
			if test.status == 200 {
				require.Len(t, ended, 1)
				assert.True(t, ended[0].Evidence.Succeeded)
				assert.Equal(t, []string{"eth_chainId", "eth_getTransactionReceipt", "eth_getTransactionByHash",
					"eth_blockNumber", "eth_getBlockByNumber"}, c.Asked)
				assert.Equal(t, 2, c.Requests)
				return
			}
			assert.Empty(t, ended, "nothing is paid")
			const wire = `{"success":false,"errorCode":"INTERNAL_ERROR","data":null}` // without details
			assert.Equal(t, wire, string(reply.Body))
			assert.ErrorContains(t, reply.Err, test.cause)
		})
	}
}
