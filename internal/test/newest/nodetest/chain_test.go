package nodetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"os/exec"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// raw returns the node's answer without decoding it.
func raw(t *testing.T, r *ramp.RPC, method string, params ...any) json.RawMessage {
	t.Helper()
	var answer json.RawMessage
	require.NoError(t, r.Call(t.Context(), &answer, method, params...))
	return answer
}

// same compares a typed answer with the node's JSON: each field of the type must be
// encoded as the node wrote it. It returns the fields.
func same(t *testing.T, typed any, answer json.RawMessage) map[string]bool {
	t.Helper()
	text := must.Get(json.Marshal(typed))(t)
	var got, want map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(text, &got))
	require.NoError(t, json.Unmarshal(answer, &want))
	compared := map[string]bool{}
	for name, value := range want {
		written, known := got[name]
		switch {
		case !known, name == "transactions", name == "logs": // compared separately
			continue
		case string(value) == "null":
			assert.Contains(t, []string{"null", `"0x0000000000000000000000000000000000000000"`}, string(written), name)
		default:
			assert.Equal(t, string(value), string(written), name)
		}
		compared[name] = true
	}
	return compared
}

// The example reads a chain of its own, and here that of a real node.
func TestTheExampleReadsARealNode(t *testing.T) {
	onEveryNode(t, func(t *testing.T, n *node, r *ramp.RPC) {
		p := newPlayer(t, r)
		player := common.HexToAddress("0x7b")
		hash := p.send(t, &player, big.NewInt(1e18), nil)
		n.mine(t)
		out, err := exec.Command("go", "run", "github.com/token-ramp/ramp-go/examples/chain",
			"-url", n.url, "-address", player.Hex(), "-tx", hash.Hex()).CombinedOutput()
		require.NoError(t, err, "%s", out)
		assert.Contains(t, string(out), "balance      1.0000 of "+player.Hex())
	})
}

func TestTransfersAndBlocks(t *testing.T) {
	onEveryNode(t, func(t *testing.T, n *node, r *ramp.RPC) {
		ctx, p := t.Context(), newPlayer(t, r)
		to := common.HexToAddress("0x7b")

		var version any
		require.NoError(t, r.Call(ctx, &version, "net_version"))
		assert.Equal(t, version, must.Get(r.NetVersion(ctx))(t))
		assert.JSONEq(t, string(raw(t, r, "eth_chainId")), fmt.Sprintf(`"0x%x"`, must.Get(r.ChainID(ctx))(t)))

		assert.Zero(t, must.Get(r.Balance(ctx, to, ramp.Latest))(t).Sign())
		hash := p.send(t, &to, big.NewInt(1e18), nil)

		_, err := r.Receipt(ctx, hash)
		assert.ErrorIs(t, err, ramp.ErrNotFound)
		assert.False(t, must.Get(r.Transaction(ctx, hash))(t).BlockNumber.Present(), "in no block yet")

		n.mine(t)
		receipt := must.Get(r.Receipt(ctx, hash))(t)
		assert.True(t, receipt.Succeeded())
		answer := raw(t, r, "eth_getTransactionReceipt", hash)
		assert.JSONEq(t, string(answer), string(receipt.Raw))
		for _, name := range []string{"type", "status", "cumulativeGasUsed", "logsBloom", "transactionHash",
			"contractAddress", "gasUsed",
			"effectiveGasPrice", "blockHash", "blockNumber", "transactionIndex", "from", "to"} {
			assert.Contains(t, same(t, receipt, answer), name)
		}

		tx := must.Get(r.Transaction(ctx, hash))(t)
		answer = raw(t, r, "eth_getTransactionByHash", hash)
		assert.JSONEq(t, string(answer), string(tx.Raw))
		for _, name := range []string{"type", "hash", "chainId", "nonce", "from", "to", "value", "gas", "gasPrice",
			"maxFeePerGas",
			"maxPriorityFeePerGas", "input", "blockHash", "blockNumber", "transactionIndex", "v", "r", "s"} {
			assert.Contains(t, same(t, tx, answer), name)
		}
		assert.Equal(t, p.address, tx.From)
		assert.Equal(t, big.NewInt(1e18), tx.Value.Big())

		number := must.Get(r.BlockNumber(ctx))(t)
		assert.JSONEq(t, string(raw(t, r, "eth_blockNumber")), fmt.Sprintf(`"0x%x"`, number))
		for _, full := range []bool{false, true} {
			byNumber := must.Get(r.BlockByNumber(ctx, ramp.AtBlock(number), full))(t)
			answer = raw(t, r, "eth_getBlockByNumber", ramp.AtBlock(number), full)
			assert.JSONEq(t, string(answer), string(byNumber.Raw))
			for _, name := range []string{"number", "hash", "parentHash", "timestamp", "miner", "gasLimit", "gasUsed",
				"baseFeePerGas", "size",
				"stateRoot", "transactionsRoot", "receiptsRoot", "extraData"} {
				assert.Contains(t, same(t, byNumber, answer), name)
			}
			assert.Equal(t, []common.Hash{hash}, byNumber.TransactionHashes)
			byHash := must.Get(r.BlockByHash(ctx, byNumber.Hash, full))(t)
			assert.Equal(t, byNumber.Number, byHash.Number)
			assert.JSONEq(t, string(answer), string(byHash.Raw))
			if full {
				require.Len(t, byNumber.Transactions, 1)
				assert.Equal(t, tx.Input, byNumber.Transactions[0].Input)
				same(t, byNumber.Transactions[0], byNumber.Transactions[0].Raw)
			} else {
				assert.Nil(t, byNumber.Transactions)
			}
		}

		assert.Equal(t, big.NewInt(1e18), must.Get(r.Balance(ctx, to, ramp.AtBlock(number)))(t))
		assert.Zero(t, must.Get(r.Balance(ctx, to, ramp.AtBlock(number-1)))(t).Sign())
		assert.EqualValues(t, 1, must.Get(r.TransactionCount(ctx, p.address, ramp.Latest))(t))

		_, err = r.BlockByNumber(ctx, ramp.AtBlock(number+100), false)
		assert.ErrorIs(t, err, ramp.ErrNotFound)
		_, err = r.BlockByHash(ctx, common.MaxHash, false)
		assert.ErrorIs(t, err, ramp.ErrNotFound)
		_, err = r.Transaction(ctx, common.MaxHash)
		assert.ErrorIs(t, err, ramp.ErrNotFound)
		for _, tag := range []ramp.BlockRef{ramp.Latest, "earliest", "pending"} {
			_, err = r.BlockByNumber(ctx, tag, true)
			assert.NoError(t, err, tag)
		}
	})
}

func TestContracts(t *testing.T) {
	onEveryNode(t, func(t *testing.T, n *node, r *ramp.RPC) {
		ctx, p := t.Context(), newPlayer(t, r)
		echo := p.deployEcho(t, n)

		returned := must.Get(r.CallContract(ctx, ramp.TransactionRequest{To: &echo, Data: []byte{1, 0xca, 0xfe}},
			ramp.Latest))(t)
		assert.Equal(t, []byte{0xca, 0xfe}, returned)
		gas := must.Get(r.EstimateGas(ctx, ramp.TransactionRequest{From: p.address, To: &echo}, ramp.Latest))(t)
		assert.JSONEq(t,
			string(raw(t, r, "eth_estimateGas", ramp.TransactionRequest{From: p.address, To: &echo}, "latest")),
			fmt.Sprintf(`"0x%x"`, gas))

		// Error("not enough gold"), as Solidity encodes it.
		reason := append(common.FromHex("0x08c379a0"), bytes.Join([][]byte{common.BigToHash(big.NewInt(32)).Bytes(),
			common.BigToHash(big.NewInt(15)).Bytes(), common.RightPadBytes([]byte("not enough gold"), 32)}, nil)...)
		overflow := append(common.FromHex("0x4e487b71"), common.BigToHash(big.NewInt(0x11)).Bytes()...)
		custom := common.FromHex("0xdeadbeef01")
		for name, data := range map[string][]byte{"a reason": reason, "a panic": overflow, "a custom error": custom} {
			for method, call := range map[string]func(ramp.TransactionRequest) error{
				"eth_call": func(c ramp.TransactionRequest) error {
					_,
						err := r.CallContract(ctx, c, ramp.Latest)
					return err
				},
				"eth_estimateGas": func(c ramp.TransactionRequest) error {
					_,
						err := r.EstimateGas(ctx, c, ramp.Latest)
					return err
				},
			} {
				var failed *ramp.RPCError
				require.ErrorAs(t, call(ramp.TransactionRequest{To: &echo, Data: append([]byte{0}, data...)}), &failed,
					name, method)
				assert.Contains(t, string(failed.Data), hexutil.Encode(data), name, method)
				if name == "a reason" {
					assert.Contains(t, failed.Message, "not enough gold", "the node says the reason itself: %s", method)
				}
			}
		}

		// A failed transaction has a receipt.
		failed := p.send(t, &echo, nil, append([]byte{0}, reason...))
		n.mine(t)
		receipt := must.Get(r.WaitReceipt(ctx, failed, 1))(t)
		assert.False(t, receipt.Succeeded())
		assert.Equal(t, "0", receipt.Status.String())

		logged := p.send(t, &echo, nil, nil)
		n.mine(t)
		receipt = must.Get(r.WaitReceipt(ctx, logged, 1))(t)
		require.Len(t, receipt.Logs, 1)
		topic, from := common.BigToHash(big.NewInt(0x77)), common.BytesToHash(p.address.Bytes())
		for name, filter := range map[string]ramp.LogFilter{
			"all":          {FromBlock: ramp.AtBlock(0)},
			"by address":   {FromBlock: ramp.AtBlock(0), Addresses: []common.Address{echo, {}}},
			"by topic":     {FromBlock: ramp.AtBlock(0), Topics: [][]common.Hash{{topic}}},
			"by any topic": {FromBlock: ramp.AtBlock(0), Topics: [][]common.Hash{nil, {common.MaxHash, from}}},
			"of a block":   {BlockHash: receipt.BlockHash},
			"of the last":  {},
		} {
			logs, err := r.Logs(ctx, filter)
			require.NoError(t, err, name)
			require.Len(t, logs, 1, name)
			assert.Equal(t, receipt.Logs[0], logs[0], name)
			var list []json.RawMessage
			require.NoError(t, json.Unmarshal(raw(t, r, "eth_getLogs", filter), &list))
			compared := same(t, logs[0], list[0])
			for _, field := range []string{"address", "topics", "data", "blockNumber", "transactionHash",
				"transactionIndex", "blockHash", "logIndex", "removed"} {
				assert.Contains(t, compared, field)
			}
		}
		assert.Equal(t, echo, receipt.Logs[0].Address)
		assert.Equal(t, []common.Hash{topic, from}, receipt.Logs[0].Topics)
		none := must.Get(r.Logs(ctx, ramp.LogFilter{FromBlock: ramp.AtBlock(0), Addresses: []common.Address{{}}}))(t)
		assert.Empty(t, none)
	})
}

func TestRejectionsAndBatches(t *testing.T) {
	onEveryNode(t, func(t *testing.T, n *node, r *ramp.RPC) {
		ctx, p := t.Context(), newPlayer(t, r)
		to := common.HexToAddress("0x7b")

		err := r.Call(ctx, nil, "eth_noSuchMethod")
		assert.ErrorIs(t, err, ramp.RPCMethodNotFound)
		err = r.Call(ctx, nil, "eth_getBalance", "no address", "latest")
		assert.ErrorIs(t, err, ramp.RPCInvalidParams)
		_, err = r.SendRawTransaction(ctx, []byte{2, 0xc0})
		var rejected *ramp.RPCError
		assert.ErrorAs(t, err, &rejected)

		signed := p.sign(t, &to, big.NewInt(1), nil)
		hash := must.Get(r.SendRawTransaction(ctx, signed))(t)
		assert.Equal(t, crypto.Keccak256Hash(signed), hash)
		_, err = r.SendRawTransaction(ctx, signed)
		assert.ErrorAs(t, err, &rejected, "already known")
		n.mine(t)

		var number, balance ramp.Quantity
		var receipt, missing ramp.Receipt
		calls := []ramp.BatchCall{
			{Method: "eth_blockNumber", Into: &number},
			{Method: "eth_getBalance", Params: []any{to, ramp.Latest}, Into: &balance},
			{Method: "eth_getTransactionReceipt", Params: []any{hash}, Into: &receipt},
			{Method: "eth_getTransactionReceipt", Params: []any{common.MaxHash}, Into: &missing},
			{Method: "eth_noSuchMethod"},
		}
		require.NoError(t, r.Batch(ctx, calls))
		for _, call := range calls[:3] {
			assert.NoError(t, call.Err)
		}
		assert.ErrorIs(t, calls[3].Err, ramp.ErrNotFound)
		assert.ErrorIs(t, calls[4].Err, ramp.RPCMethodNotFound)
		assert.Equal(t, ramp.NewQuantity(must.Get(r.BlockNumber(ctx))(t)), number)
		assert.Equal(t, "1", balance.String())
		assert.Equal(t, hash, receipt.TransactionHash)
	})
}

func TestTheNodeSigns(t *testing.T) {
	onEveryNode(t, func(t *testing.T, n *node, r *ramp.RPC) {
		to := common.HexToAddress("0x7b")
		request := ramp.TransactionRequest{From: n.signs, To: &to, Gas: 21000, GasPrice: big.NewInt(1e10),
			Value: big.NewInt(7)}
		hash, err := r.SendTransaction(t.Context(), request)
		if n.signs == (common.Address{}) {
			var rejected *ramp.RPCError
			assert.ErrorAs(t, err, &rejected, "a node without accounts says so")
			return
		}
		require.NoError(t, err)
		n.mine(t)
		assert.True(t, must.Get(r.Receipt(t.Context(), hash))(t).Succeeded())
	})
}

func TestAReorganization(t *testing.T) {
	onEveryNode(t, func(t *testing.T, n *node, r *ramp.RPC) {
		p := newPlayer(t, r)
		to := common.HexToAddress("0x7b")
		parent := must.Get(r.BlockByNumber(t.Context(), ramp.Latest, false))(t)
		signed := p.sign(t, &to, big.NewInt(1), nil)
		hash := must.Get(r.SendRawTransaction(t.Context(), signed))(t)
		n.mine(t)
		first := must.Get(r.Receipt(t.Context(), hash))(t)

		type outcome struct {
			receipt *ramp.Receipt
			err     error
		}
		done := make(chan outcome, 1)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		go func() {
			receipt, err := r.WaitReceipt(ctx, hash, 3)
			done <- outcome{receipt, err}
		}()

		n.replace(t, parent)
		// some nodes restore the transaction by themselves and reject it
		_, _ = r.SendRawTransaction(t.Context(), signed)
		n.mine(t)
		second := must.Get(r.WaitReceipt(ctx, hash, 1))(t)
		require.NotEqual(t, first.BlockHash, second.BlockHash)
		for !second.BlockNumber.Equal(ramp.NewQuantity(must.Get(r.BlockNumber(ctx))(t) - 1)) {
			n.mine(t)
		}
		select {
		case o := <-done:
			t.Fatalf("two confirmations were taken for three: %v", o)
		case <-time.After(100 * time.Millisecond): // ten checks
		}
		n.mine(t)
		o := <-done
		require.NoError(t, o.err)
		assert.Equal(t, second.BlockHash, o.receipt.BlockHash)
		number := must.Get(o.receipt.BlockNumber.Uint64())(t)
		block := must.Get(r.BlockByNumber(t.Context(), ramp.AtBlock(number), false))(t)
		assert.Equal(t, block.Hash, o.receipt.BlockHash)
		assert.Contains(t, block.TransactionHashes, hash)
	})
}
