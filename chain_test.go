package ramp_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/oneorder"
)

const hash32 = "0x00000000000000000000000000000000000000000000000000000000000000aa"

func TestEachMethodAsksAndReadsAsTheInterfaceHasIt(t *testing.T) {
	address, hash := common.HexToAddress("0x7a"), common.HexToHash(hash32)
	const a = "0x000000000000000000000000000000000000007a"
	to := common.HexToAddress("0x7b")
	nonce := uint64(0)
	everything := ramp.TransactionRequest{From: address, To: &to, Gas: 21000, GasPrice: big.NewInt(100),
		MaxFeePerGas:         big.NewInt(2),
		MaxPriorityFeePerGas: big.NewInt(1), Value: big.NewInt(0), Nonce: &nonce, Data: []byte{0xca, 0xfe}}
	const everythingJSON = `{"from":"` + a +
		`","to":"0x000000000000000000000000000000000000007b","gas":"0x5208","gasPrice":"0x64",` +
		`"maxFeePerGas":"0x2","maxPriorityFeePerGas":"0x1","value":"0x0","nonce":"0x0","data":"0xcafe"}`
	any2 := func(v any, err error) (any, error) { return v, err }
	for name, test := range map[string]struct {
		call   func(*ramp.RPC) (any, error)
		asked  string // method and params
		answer string
		want   any
	}{
		"block number": {func(r *ramp.RPC) (any, error) { return any2(r.BlockNumber(t.Context())) },
			`"eth_blockNumber","params":[]`, `"0x4b7"`, uint64(1207)},
		"balance": {func(r *ramp.RPC) (any, error) { return any2(r.Balance(t.Context(), address, "")) },
			`"eth_getBalance","params":["` + a + `","latest"]`, `"0x152d02c7e14af6800000"`,
			big.NewInt(0).Mul(big.NewInt(1e5), big.NewInt(1e18))},
		"balance at a block": {func(r *ramp.RPC) (any, error) {
			return any2(r.Balance(t.Context(), address,
				ramp.AtBlock(255)))
		},
			`"eth_getBalance","params":["` + a + `","0xff"]`, `"0x0"`, new(big.Int)},
		"transaction count": {func(r *ramp.RPC) (any, error) {
			return any2(r.TransactionCount(t.Context(), address,
				"pending"))
		},
			`"eth_getTransactionCount","params":["` + a + `","pending"]`, `"0x7"`, uint64(7)},
		"raw send": {func(r *ramp.RPC) (any, error) { return any2(r.SendRawTransaction(t.Context(), []byte{2, 1})) },
			`"eth_sendRawTransaction","params":["0x0201"]`, `"` + hash32 + `"`, hash},
		"send": {func(r *ramp.RPC) (any, error) { return any2(r.SendTransaction(t.Context(), everything)) },
			`"eth_sendTransaction","params":[` + everythingJSON + `]`, `"` + hash32 + `"`, hash},
		"call": {func(r *ramp.RPC) (any, error) {
			return any2(r.CallContract(t.Context(), ramp.TransactionRequest{To: &to, Data: []byte{1}}, "safe"))
		}, `"eth_call","params":[{"to":"0x000000000000000000000000000000000000007b","data":"0x01"},"safe"]`, `"0xbeef"`,
			[]byte{0xbe, 0xef}},
		"estimate": {func(r *ramp.RPC) (any, error) {
			return any2(r.EstimateGas(t.Context(), ramp.TransactionRequest{}, "earliest"))
		}, `"eth_estimateGas","params":[{},"earliest"]`, `"0x5208"`, uint64(21000)},
		"logs": {func(r *ramp.RPC) (any, error) {
			return any2(r.Logs(t.Context(),
				ramp.LogFilter{FromBlock: ramp.AtBlock(1), Addresses: []common.Address{address},
					Topics: [][]common.Hash{{hash}, nil, {hash, {}}}}))
		},
			`"eth_getLogs","params":[{"fromBlock":"0x1","toBlock":"latest","address":["` + a + `"],"topics":[["` +
				hash32 + `"],null,["` + hash32 + `","` + (common.Hash{}).Hex() + `"]]}]`,
			`[]`, []ramp.Log{}},
		"logs of a block": {func(r *ramp.RPC) (any, error) {
			return any2(r.Logs(t.Context(),
				ramp.LogFilter{BlockHash: hash}))
		},
			`"eth_getLogs","params":[{"blockHash":"` + hash32 + `"}]`, `[]`, []ramp.Log{}},
		"network": {func(r *ramp.RPC) (any, error) { return any2(r.NetVersion(t.Context())) },
			`"net_version","params":[]`, `"1112"`, "1112"},
		"network as a number": {func(r *ramp.RPC) (any, error) { return any2(r.NetVersion(t.Context())) },
			`"net_version","params":[]`, `1112`, "1112"},
		"chain": {func(r *ramp.RPC) (any, error) { return any2(r.ChainID(t.Context())) },
			`"eth_chainId","params":[]`, `"0x458"`, big.NewInt(1112)},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, says(200, result(test.answer)))
			got := must.Get(test.call(n.client(t)))(t)
			assert.EqualValues(t, test.want, got)
			assert.Equal(t, []string{`{"jsonrpc":"2.0","id":ID,"method":` + test.asked + `}`}, n.asked())
			assert.Equal(t, http.MethodPost, n.request().Method)
		})
	}
}

func TestWhatMayBeMissingIsNotFound(t *testing.T) {
	hash := common.HexToHash(hash32)
	for asked, call := range map[string]func(*ramp.RPC) (any, error){
		`"eth_getBlockByNumber","params":["finalized",true]`: func(r *ramp.RPC) (any,
			error) {
			return r.BlockByNumber(t.Context(), "finalized", true)
		},
		`"eth_getBlockByHash","params":["` + hash32 + `",false]`: func(r *ramp.RPC) (any,
			error) {
			return r.BlockByHash(t.Context(), hash, false)
		},
		`"eth_getTransactionByHash","params":["` + hash32 + `"]`: func(r *ramp.RPC) (any,
			error) {
			return r.Transaction(t.Context(), hash)
		},
		`"eth_getTransactionReceipt","params":["` + hash32 + `"]`: func(r *ramp.RPC) (any, error) {
			return r.Receipt(t.Context(), hash)
		},
	} {
		n := newNode(t, says(200, result("null")))
		got, err := call(n.client(t))
		assert.ErrorIs(t, err, ramp.ErrNotFound)
		subject := hash32
		if strings.Contains(asked, "finalized") {
			subject = "finalized"
		}
		assert.ErrorContains(t, err,
			`: `+subject+`: the node does not know it (yet); if it should exist, the node may be on another network`)
		assert.Nil(t, got)
		assert.Equal(t, []string{`{"jsonrpc":"2.0","id":ID,"method":` + asked + `}`}, n.asked())

		n = newNode(t, says(200, result("{}")))
		_, err = call(n.client(t))
		assert.NoError(t, err, "nothing is required of an answer")

		n = newNode(t, says(200, result(`"text"`)))
		_, err = call(n.client(t))
		assert.ErrorContains(t, err, "cannot decode the result")
		assert.NotErrorIs(t, err, ramp.ErrNotFound)
	}
}

func TestWhatIsNeitherAmountNorFilterIsNotSent(t *testing.T) {
	n := newNode(t, says(200, result(`"0x"`)))
	for _, wei := range []*big.Int{big.NewInt(-1), new(big.Int).Lsh(common.Big1, 256)} {
		_, err := n.client(t).CallContract(t.Context(), ramp.TransactionRequest{Value: wei}, ramp.Latest)
		assert.ErrorContains(t, err, "an amount of wei must not be negative")
	}
	for _, f := range []ramp.LogFilter{{FromBlock: ramp.Latest}, {ToBlock: ramp.Latest}} {
		f.BlockHash = common.MaxHash
		_, err := n.client(t).Logs(t.Context(), f)
		assert.ErrorContains(t, err, "either BlockHash, or FromBlock and ToBlock")
	}
	assert.Empty(t, n.asked())
	largest := new(big.Int).Sub(new(big.Int).Lsh(common.Big1, 256), common.Big1)
	must.Get(n.client(t).CallContract(t.Context(), ramp.TransactionRequest{Value: largest}, ramp.Latest))(t)
	assert.Contains(t, n.asked()[0], `"value":"0x`+strings.Repeat("f", 64)+`"`)
}

func TestResultsOfTheWrongKind(t *testing.T) {
	n := newNode(t, says(200, result(`null`)))
	_, err := n.client(t).SendRawTransaction(t.Context(), nil)
	assert.ErrorContains(t, err, "cannot decode the result", "a hash is never null")
	_, err = n.client(t).CallContract(t.Context(), ramp.TransactionRequest{}, ramp.Latest)
	assert.ErrorContains(t, err, "cannot decode the result")
	logs, err := n.client(t).Logs(t.Context(), ramp.LogFilter{})
	assert.EqualError(t, err, "ramp: eth_getLogs: the result is null", "not the same as no logs")
	assert.Nil(t, logs)
	wrong := newNode(t, says(200, result(`[{"address":7}]`)))
	_, err = wrong.client(t).Logs(t.Context(), ramp.LogFilter{})
	assert.ErrorContains(t, err, "ramp: eth_getLogs: cannot decode the result: ")
	_, err = n.client(t).NetVersion(t.Context())
	assert.EqualError(t, err, "ramp: net_version: the result is neither a string nor a number")
	rejecting := newNode(t, says(200, `{"id":ID,"error":{"code":-32601,"message":"no such method"}}`))
	id, err := rejecting.client(t).NetVersion(t.Context())
	assert.ErrorIs(t, err, ramp.RPCMethodNotFound)
	assert.Empty(t, id, "an error is not a version")
}

const (
	// A transaction of type 0x7, as a node of the chain describes it.
	feeDelegated = `{"blockHash":"` + hash32 +
		`","blockNumber":"0x1b4","from":"0x000000000000000000000000000000000000007a","gas":"0x5208",` +
		`"gasPrice":"0x174876e800","maxFeePerGas":"0x2e90edd000","maxPriorityFeePerGas":"0x174876e800",` +
		`"hash":"0x00000000000000000000000000000000000000000000000000000000000000bb","input":"0xcafe","nonce":"0x7",` +
		`"to":"0x000000000000000000000000000000000000007b","transactionIndex":"0x0","value":"0xde0b6b3a7640000",` +
		`"type":"0x7",` +
		`"accessList":[],"chainId":"0x458","v":"0x1","r":"0x` +
		"f000000000000000000000000000000000000000000000000000000000000001" + `","s":"0x2",` +
		`"feePayer":"0x000000000000000000000000000000000000fee0","fv":"0x0","fr":"0x3","fs":"0x4"}`

	// An unknown type, unsigned and in no block.
	unknownType = `{"type":"0x6b","hash":"` + hash32 +
		`","from":null,"to":null,"input":"","blockHash":null,"blockNumber":null,"transactionIndex":null,"new":{"a":1}}`
)

func TestTransactionsOfAnyTypeAreRead(t *testing.T) {
	n := newNode(t, says(200, result(feeDelegated)))
	tx := must.Get(n.client(t).Transaction(t.Context(), common.MaxHash))(t)
	assert.Equal(t, feeDelegated, string(tx.Raw)) // FuzzAgainstEncodingJSON compares each field
	assert.Equal(t, common.HexToHash("0xbb"), tx.Hash, "the node's, never recomputed")
	assert.Equal(t, common.HexToAddress("0xfee0"), tx.FeePayer)
	assert.Equal(t, "1112 436 3", fmt.Sprint(tx.ChainID, tx.BlockNumber, tx.FR))

	n = newNode(t, says(200, result(unknownType)))
	tx = must.Get(n.client(t).Transaction(t.Context(), common.MaxHash))(t)
	assert.Equal(t, unknownType, string(tx.Raw))
	assert.Equal(t, "107", tx.Type.String())
	assert.Nil(t, tx.To)
	assert.False(t, tx.BlockNumber.Present() || tx.V.Present() || tx.Value.Present())
}

func TestBlocksAreRead(t *testing.T) {
	for name, test := range map[string]struct {
		transactions string
		hashes       []common.Hash
		whole        int
	}{
		"with hashes": {`["` + hash32 + `","` + common.MaxHash.Hex() + `"]`,
			[]common.Hash{common.HexToHash(hash32), common.MaxHash}, 0},
		"with transactions": {`[` + feeDelegated + `,` + unknownType + `]`,
			[]common.Hash{common.HexToHash("0xbb"), common.HexToHash(hash32)}, 2},
		"empty":            {`[]`, nil, 0},
		"without the list": {`null`, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			text := `{"number":"0x1b4","transactions":` + test.transactions + `}`
			n := newNode(t, says(200, result(text)))
			b := must.Get(n.client(t).BlockByNumber(t.Context(), ramp.Latest, true))(t)
			assert.Equal(t, text, string(b.Raw))
			assert.Equal(t, test.hashes, b.TransactionHashes)
			require.Len(t, b.Transactions, test.whole)
			if test.whole > 0 {
				assert.Equal(t, common.HexToAddress("0xfee0"), b.Transactions[0].FeePayer)
				assert.Equal(t, unknownType, string(b.Transactions[1].Raw))
			}
		})
	}
	t.Run("with an entry that is neither", func(t *testing.T) {
		for _, entry := range []string{"7", "null", `"0x1"`, `{"hash":7}`} {
			n := newNode(t, says(200, result(`{"transactions":[`+entry+`]}`)))
			_, err := n.client(t).BlockByNumber(t.Context(), "pending", false)
			assert.ErrorContains(t, err, "cannot decode the result")
		}
	})
}

// Some nodes write the receiver of a creation so.
func TestAnEmptyAddressIsNone(t *testing.T) {
	n := newNode(t, says(200, result(`{"hash":"`+hash32+`","to":"0x"}`)))
	tx := must.Get(n.client(t).Transaction(t.Context(), common.MaxHash))(t)
	assert.Nil(t, tx.To)
	n = newNode(t, says(200, result(`{"status":"0x1","to":"0x","contractAddress":"0x"}`)))
	receipt := must.Get(n.client(t).Receipt(t.Context(), common.MaxHash))(t)
	assert.Zero(t, receipt.To)
	assert.Zero(t, receipt.ContractAddress)
}

// Nodes write what nobody reads in many ways, and one of them must not keep a receipt from
// ending an order.
func TestWhatDecidesNothingMayBeMalformed(t *testing.T) {
	read := func(method string, answer oneorder.Object) (any, error) {
		client := newNode(t, says(200, result(string(answer.Bytes(t))))).client(t)
		switch method {
		case "receipt":
			return client.Receipt(t.Context(), common.MaxHash)
		case "transaction":
			return client.Transaction(t.Context(), common.MaxHash)
		case "logs":
			return client.Logs(t.Context(), ramp.LogFilter{})
		default:
			return client.BlockByNumber(t.Context(), ramp.Latest, true)
		}
	}
	sent := oneorder.Object{"hash": common.MaxHash.Hex(), "from": testToken, "to": testToken,
		"chainId": "0x1", "nonce": "0x1"}
	block := oneorder.Object{"number": "0xa", "hash": blockA, "timestamp": "0x65",
		"transactions": []any{map[string]any(sent)}}
	foreign := map[string]any{"address": "0x0000000000000000000000000000000000000bad", "topics": []any{}, "data": "0x"}
	receipt := oneorder.OnChain().With("logs", append([]any{foreign}, oneorder.OnChain()["logs"].([]any)...))
	for _, tt := range []struct {
		method  string
		good    oneorder.Object
		paths   []string
		decides bool
	}{
		{"receipt", receipt, []string{"type", "root", "cumulativeGasUsed", "logsBloom", "contractAddress", "gasUsed",
			"effectiveGasPrice", "transactionIndex", "from", "to", "feePayer", "logs.1.blockTimestamp",
			"logs.1.transactionIndex", "logs.1.blockHash", "logs.0.address", "logs.0.topics", "logs.0.data",
			"logs.0.logIndex"}, false},
		{"receipt", receipt, []string{"status", "transactionHash", "blockHash", "blockNumber", "logs"}, true},
		{"transaction", sent, []string{"type", "nonce", "value", "gas", "gasPrice", "input", "maxFeePerGas",
			"maxPriorityFeePerGas", "blockHash", "blockNumber", "transactionIndex",
			"v", "r", "s", "fv", "fr", "fs"}, false},
		{"transaction", sent, []string{"hash", "chainId", "from", "to", "feePayer"}, true},
		{"block", block, []string{"miner", "gasLimit", "gasUsed", "baseFeePerGas", "size", "stateRoot",
			"transactionsRoot",
			"receiptsRoot", "extraData", "parentHash", "transactions.0.type"}, false},
		{"block", block, []string{"number", "hash", "timestamp", "transactions", "transactions.0.hash"}, true},
	} {
		for _, path := range tt.paths {
			for _, form := range []any{
				"0xzz", "legacy", "2026-11-26T00:00:00Z", "0X1", -1, true, map[string]any{}, []any{"0x"},
			} {
				got, err := read(tt.method, tt.good.With(path, form))
				if r, ok := got.(*ramp.Receipt); ok && path == "logs" && err == nil {
					require.True(t, r.Logs[0].Unreadable, "a list whose only entry is no event")
					continue
				}
				if tt.decides {
					as[*ramp.InvalidError](t, err)
					continue
				}
				require.NoError(t, err, "%s %v", path, form)
				if r, ok := got.(*ramp.Receipt); ok {
					require.True(t, r.Succeeded(), path)
					require.Equal(t, common.MaxHash, r.TransactionHash)
					require.Equal(t, blockA, r.BlockHash.Hex())
					require.Len(t, r.Logs, 2)
					require.Equal(t, testToken, r.Logs[1].Address.Hex(), path)
					require.Equal(t, common.Hash{31: 1}.Hex(), r.Logs[1].Data.String(), path)
					require.False(t, r.Logs[1].Unreadable)
					require.Equal(t, r.Logs[0].Unreadable, strings.HasPrefix(path, "logs.0"), "%s %v", path, form)
				}
			}
		}
	}

	// A list of events is asked for by whoever needs each of them.
	log := oneorder.OnChain()["logs"].([]any)[0]
	for path, decides := range map[string]bool{
		"topics": true, "data": true, "address": true, "removed": true, "logIndex": true, "blockNumber": true,
		"transactionHash": true, "blockTimestamp": false, "transactionIndex": false, "blockHash": false,
	} {
		answer := oneorder.Object(log.(map[string]any)).With(path, map[string]any{})
		_, err := newNode(t, says(200, result("["+string(answer.Bytes(t))+"]"))).client(t).Logs(t.Context(),
			ramp.LogFilter{})
		assert.Equal(t, decides, err != nil, path)
	}
}

func TestQuantityReadsEveryFormThatChainsWrite(t *testing.T) {
	most := "0x" + strings.Repeat("f", 64)
	max256 := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1)).String()
	for _, tt := range []struct {
		name, json string
		want       string // decimal, "" for absent
		written    string
	}{
		{"hex", `"0x5208"`, "21000", `"0x5208"`},
		{"hex of an odd number of digits", `"0x7a120"`, "500000", `"0x7a120"`},
		{"hex of zeros only", `"0x000"`, "0", `"0x0"`},
		{"a decimal string of 256 bits", `"` + max256 + `"`, max256, `"` + max256 + `"`},
		{"hex in capitals", `"0xAB"`, "171", `"0xab"`},
		{"hex of 65 bits", `"0x10000000000000000"`, "18446744073709551616", `"0x10000000000000000"`},
		{"hex of 256 bits behind leading zeros", `"0x00` + most[2:] + `"`, max256, `"` + most + `"`},
		{"a number", `1700000000`, "1700000000", `1700000000`},
		{"a number with an exponent", `1e3`, "1000", `1000`},
		{"a number with an empty fraction", `5.0`, "5", `5`},
		{"a decimal string", `"1700000000"`, "1700000000", `"1700000000"`},
		{"null", `null`, "", `null`},
		{"an empty string", `""`, "", `null`},
		{"0x alone", `"0x"`, "", `null`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := ramp.NewQuantity(99) // what was there before must not show through
			require.NoError(t, json.Unmarshal([]byte(tt.json), &q))
			written := must.Get(json.Marshal(q))(t)
			assert.Equal(t, tt.written, string(written))

			if tt.want == "" {
				assert.False(t, q.Present())
				assert.True(t, q.IsZero())
				assert.Nil(t, q.Big())
				assert.Equal(t, "absent", q.String())
				n, err := q.Uint64()
				assert.ErrorContains(t, err, "absent")
				assert.Zero(t, n)
				return
			}
			assert.True(t, q.Present())
			assert.False(t, q.IsZero(), "0 is a number that is there")
			assert.Equal(t, tt.want, q.String())
			assert.Equal(t, tt.want, q.Big().String())
			n, err := q.Uint64()
			if q.Big().IsUint64() {
				require.NoError(t, err)
				assert.Equal(t, q.Big().Uint64(), n)
			} else {
				assert.ErrorContains(t, err, "64 bits")
				assert.Zero(t, n)
			}
		})
	}
}

func TestQuantityRejectsWhatIsNoQuantity(t *testing.T) {
	beyond := new(big.Int).Lsh(big.NewInt(1), 256).String()
	for _, text := range []string{
		`-1`, `"-1"`, `"-0x1"`, `"0x-1"`, `0.5`, `"1.5"`, `"0xg"`, `"0x 1"`, `"0x0x1"`, `"0X1"`, `"1x12"`, `"007"`,
		`"ff"`, `"null"`, `"success"`,
		`true`, `[1]`, `{}`, `1e999999999`, `1e9223372036854775807`, beyond, `"` + beyond + `"`,
		`"0x1` + strings.Repeat("0", 64) + `"`, `"0x` + strings.Repeat("1", 1<<20) + `"`,
	} {
		var q ramp.Quantity
		err := json.Unmarshal([]byte(text), &q)
		require.Error(t, err, "%.100s", text)
		assert.False(t, q.Present())
		assert.Less(t, len(err.Error()), 200, "the value itself is not repeated")
	}
}

func TestQuantityBigBelongsToItsCaller(t *testing.T) {
	var q ramp.Quantity
	require.NoError(t, json.Unmarshal([]byte(`"0x10000000000000000"`), &q))
	q.Big().SetInt64(0)
	assert.Equal(t, "18446744073709551616", q.String())
}

// resultWith is a result whose receipt is the given JSON.
func resultWith(receipt string) []byte {
	return fmt.Appendf(nil,
		`{"session_id":"hero-1","uuid":"6f1c2f0e-8d5b-4c56-9a3e-2b7d4e5f6a71","tx_hash":"0x01","receipt":%s,
		"intent":{"method":"mint","type":"assemble","from":[{"type":"asset","id":"gold","amount":5}],
		"to":[{"type":"ERC20","id":"0x13345c94929a47a35a4dcd36e2574b8123fe190d","amount":1}]}}`, receipt)
}

// Giving back for a field that is merely missing would pay twice, so a receipt
// without a status is an error and not a failed transaction.
func TestReceiptWithoutStatusIsNotAFailedTransaction(t *testing.T) {
	for _, receipt := range []string{
		`null`, `{}`, `{"type":"0x2","gasUsed":"0x5208"}`,
		`{"status":null}`, `{"status":""}`, `{"status":"0x"}`,
	} {
		t.Run(receipt, func(t *testing.T) {
			_, err := ramp.ParseResult(resultWith(receipt))
			assertFields(t, err, "receipt.status is required")

			var r ramp.Result
			require.NoError(t, json.Unmarshal(resultWith(receipt), &r))
			assert.False(t, r.Receipt.Status.Present())
			assert.False(t, r.Succeeded())
			effect, err := r.Intent.Effect(r.Outcome())
			assertFields(t, err, "state must be")
			assert.Equal(t, ramp.Effect{}, effect)
		})
	}
}

func TestReceiptStatusInEveryForm(t *testing.T) {
	for status, succeeded := range map[string]bool{
		`"0x1"`: true, `"0x01"`: true, `1`: true, `"1"`: true,
		`"0x0"`: false, `"0x00"`: false, `0`: false, `"0"`: false,
		`"0x2"`: false, `"0x10000000000000001"`: false, // other than 0x1 (interface 3)
	} {
		t.Run(status, func(t *testing.T) {
			r, err := ramp.ParseResult(resultWith(`{"status":` + status + `}`))
			require.NoError(t, err, "a receipt with a status needs nothing else")
			assert.True(t, r.Receipt.Status.Present())
			assert.Equal(t, succeeded, r.Succeeded())
			assert.Equal(t, succeeded, r.Receipt.Succeeded())
		})
	}
}

func TestReceiptIsWrittenWithArrays(t *testing.T) {
	written := must.Get(json.Marshal(ramp.Receipt{Status: ramp.NewQuantity(0), Logs: []ramp.Log{{}}}))(t)
	assert.Contains(t, string(written), `"topics":[]`)

	written = must.Get(json.Marshal(ramp.Receipt{Status: ramp.NewQuantity(0)}))(t)
	assert.Contains(t, string(written), `"logs":[]`)
}

// Over JSON-RPC a malformed field is an error. In a result, where only the status
// decides, it must not strand an order.
func TestAReceiptWithAWrongFieldKeepsItsStatus(t *testing.T) {
	for field, want := range map[string]string{
		`"root":"0x0"`:  "root must be hex with 0x, not a string",
		`"root":"1x12"`: "root must be hex with 0x, not a string",
		`"logsBloom":5`: "logsBloom must be hex with 0x, not a number",
		`"transactionHash":"0x01"`: "transactionHash must be 0x followed by 64 hex digits, " +
			"not a string",
		`"contractAddress":{}`: "contractAddress must be 0x followed by 40 hex digits, not " +
			"an object",
		`"to":"0x` + strings.Repeat("z", 40) + `"`: "to must be 0x followed by 40 hex digits, not a string",
		`"gasUsed":1.5`:                   "gasUsed must be a whole number of at most 256 bits, not a number",
		`"logs":{}`:                       "logs must be an array, not an object",
		`"logs":[{"topics":["0x1"]}]`:     "logs[0].topics[0] must be 0x followed by 64 hex digits, not a string",
		`"logs":[{"topics":[null]}]`:      "logs[0].topics[0] must be 0x followed by 64 hex digits, not null",
		`"logs":[{"removed":"no"}]`:       "logs[0].removed must be a boolean, not a string",
		`"gasUsed":"0x1","gasUsed":"0x1"`: "gasUsed occurs more than once",
	} {
		t.Run(field, func(t *testing.T) {
			receipt := `{"status":"0x0",` + field + `}`
			var r ramp.Receipt
			assertFields(t, json.Unmarshal([]byte(receipt), &r), want)

			result, err := ramp.ParseResult(resultWith(receipt))
			require.NoError(t, err, "a result is taken in all the same")
			assert.JSONEq(t, receipt, string(result.Receipt.Raw))
			result.Receipt.Raw = nil
			assert.Equal(t, ramp.Receipt{Status: ramp.NewQuantity(0)}, result.Receipt, "and nothing is half read")
			assert.False(t, result.Succeeded())
		})
	}
}

func TestTransfersOfAReceipt(t *testing.T) {
	var r ramp.Receipt
	require.NoError(t, json.Unmarshal([]byte(`{"status":"0x1","logs":[
		{"address":"0x00000000000000000000000000000000000070c3","logIndex":"0x5",
		  "data":"0x0000000000000000000000000000000000000000000000000000000000000064",
		 "topics":["0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef",
		  "0x0000000000000000000000000000000000000000000000000000000000000000",
		  "0x0000000000000000000000000000000000000000000000000000000000000b0b"]},
		{"address":"0x00000000000000000000000000000000000070c4","data":"0x",
		 "topics":["0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef",
		  "0x0000000000000000000000000000000000000000000000000000000000000b0b",
		  "0x0000000000000000000000000000000000000000000000000000000000000000",
		  "0x0000000000000000000000000000000000000000000000000000000000000007"]},
		{"address":"0x00000000000000000000000000000000000070c3","removed":true,
		 "data":"0x0000000000000000000000000000000000000000000000000000000000000064",
		 "topics":["0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef",
		  "0x0000000000000000000000000000000000000000000000000000000000000000",
		  "0x0000000000000000000000000000000000000000000000000000000000000b0b"]},
		{"address":"0x00000000000000000000000000000000000070c3","data":"0x64",
		 "topics":["0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef",
		  "0x0000000000000000000000000000000000000000000000000000000000000000",
		  "0x0000000000000000000000000000000000000000000000000000000000000b0b"]},
		{"address":"0x00000000000000000000000000000000000070c3","data":"0x",
		 "topics":["0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925",
		  "0x0000000000000000000000000000000000000000000000000000000000000000",
		  "0x0000000000000000000000000000000000000000000000000000000000000b0b"]}]}`), &r))
	bob := common.HexToAddress("0xb0b")
	assert.Equal(t, []ramp.Transfer{
		{Token: common.HexToAddress("0x70c3"), To: bob, Value: big.NewInt(100), LogIndex: ramp.NewQuantity(5)},
		{Token: common.HexToAddress("0x70c4"), From: bob, TokenID: big.NewInt(7)},
	}, r.Transfers(), "neither a removed event, nor a malformed one, nor one of another kind")
}
