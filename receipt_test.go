package ramp_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
)

func TestQuantityReadsEveryFormThatChainsWrite(t *testing.T) {
	most := "0x" + strings.Repeat("f", 64)
	max256 := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1)).String()
	for _, tt := range []struct {
		name, json string
		want       string // decimal, "" for absent
		written    string
	}{
		{"hex", `"0x5208"`, "21000", `"0x5208"`},
		{"hex of one digit", `"0x1"`, "1", `"0x1"`},
		{"hex of an odd number of digits", `"0x7a120"`, "500000", `"0x7a120"`},
		{"hex zero", `"0x0"`, "0", `"0x0"`},
		{"hex with leading zeros", `"0x0001"`, "1", `"0x1"`},
		{"hex of zeros only", `"0x000"`, "0", `"0x0"`},
		{"hex behind a hundred zeros", `"0x` + strings.Repeat("0", 100) + `5208"`, "21000", `"0x5208"`},
		{"a number of 256 bits", max256, max256, max256},
		{"a decimal string of 256 bits", `"` + max256 + `"`, max256, `"` + max256 + `"`},
		{"hex in capitals", `"0xAB"`, "171", `"0xab"`},
		{"hex of 64 bits", `"0xffffffffffffffff"`, "18446744073709551615", `"0xffffffffffffffff"`},
		{"hex of 65 bits", `"0x10000000000000000"`, "18446744073709551616", `"0x10000000000000000"`},
		{"hex of 256 bits", `"` + most + `"`, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1)).String(), `"` + most + `"`},
		{"hex of 256 bits behind leading zeros", `"0x00` + most[2:] + `"`, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1)).String(), `"` + most + `"`},
		{"a number", `1700000000`, "1700000000", `1700000000`},
		{"the number zero", `0`, "0", `0`},
		{"a number of more than 64 bits", `18446744073709551616`, "18446744073709551616", `18446744073709551616`},
		{"a number with an exponent", `1e3`, "1000", `1000`},
		{"a number with an empty fraction", `5.0`, "5", `5`},
		{"a decimal string", `"1700000000"`, "1700000000", `"1700000000"`},
		{"a decimal string of zero", `"0"`, "0", `"0"`},
		{"null", `null`, "", `null`},
		{"an empty string", `""`, "", `null`},
		{"0x alone", `"0x"`, "", `null`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := ramp.NewQuantity(99) // what was there before must not show through
			require.NoError(t, json.Unmarshal([]byte(tt.json), &q))
			written, err := json.Marshal(q)
			require.NoError(t, err)
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
	for _, tt := range []struct{ name, json string }{
		{"a negative number", `-1`},
		{"a negative decimal string", `"-1"`},
		{"negative hex", `"-0x1"`},
		{"hex with a sign inside", `"0x-1"`},
		{"a fraction", `0.5`},
		{"a fraction as a string", `"1.5"`},
		{"no hex digit", `"0xg"`},
		{"hex with a blank", `"0x 1"`},
		{"0x twice", `"0x0x1"`},
		{"0X", `"0X1"`},
		{"an x behind another digit", `"1x12"`},
		{"a decimal string with leading zeros", `"007"`},
		{"hex without 0x", `"ff"`},
		{"the word null", `"null"`},
		{"words", `"success"`},
		{"a boolean", `true`},
		{"an array", `[1]`},
		{"an object", `{}`},
		{"hex of 257 bits", `"0x1` + strings.Repeat("0", 64) + `"`},
		{"a number of 257 bits", new(big.Int).Lsh(big.NewInt(1), 256).String()},
		{"a decimal string of 257 bits", `"` + new(big.Int).Lsh(big.NewInt(1), 256).String() + `"`},
		{"a number of endless size", `1e999999999`},
		{"a number at the end of the exponents", `1e9223372036854775807`},
		{"hex of a megabyte", `"0x` + strings.Repeat("1", 1<<20) + `"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var q ramp.Quantity
			err := json.Unmarshal([]byte(tt.json), &q)
			require.Error(t, err)
			assert.False(t, q.Present())
			assert.Less(t, len(err.Error()), 200, "the value itself is not repeated")
		})
	}
}

func TestQuantityBigBelongsToItsCaller(t *testing.T) {
	var q ramp.Quantity
	require.NoError(t, json.Unmarshal([]byte(`"0x10000000000000000"`), &q))
	q.Big().SetInt64(0)
	assert.Equal(t, "18446744073709551616", q.String())
}

func TestNewQuantityIsHex(t *testing.T) {
	for n, want := range map[uint64]string{0: `"0x0"`, 1: `"0x1"`, 255: `"0xff"`} {
		written, err := json.Marshal(ramp.NewQuantity(n))
		require.NoError(t, err)
		assert.Equal(t, want, string(written))
	}
}

// resultWith is a result whose receipt is the given JSON.
func resultWith(receipt string) []byte {
	return fmt.Appendf(nil, `{"session_id":"hero-1","uuid":"6f1c2f0e-8d5b-4c56-9a3e-2b7d4e5f6a71","tx_hash":"0x01","receipt":%s,
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

func TestReceiptStatusOfAnotherTypeIsRejected(t *testing.T) {
	for _, status := range []string{`true`, `false`, `"success"`, `-1`, `0.5`, `{}`, `[]`} {
		t.Run(status, func(t *testing.T) {
			_, err := ramp.ParseResult(resultWith(`{"status":` + status + `}`))
			assertFields(t, err, "receipt.status must be a whole number of at most 256 bits")
		})
	}
}

func TestReceiptFieldsThatSayNothingAreZero(t *testing.T) {
	hashes := []string{"transactionHash", "blockHash"}
	addresses := []string{"contractAddress", "from", "to", "feePayer"}
	blobs := []string{"root", "logsBloom"}
	quantities := []string{"type", "cumulativeGasUsed", "gasUsed", "effectiveGasPrice", "blockNumber", "transactionIndex"}

	read := func(t *testing.T, fields string) ramp.Receipt {
		var r ramp.Receipt
		require.NoError(t, json.Unmarshal([]byte(`{"status":"0x1"`+fields+`}`), &r))
		assert.True(t, r.Succeeded())
		r.Raw = nil
		return r
	}
	bare := read(t, "")
	assert.Equal(t, ramp.Receipt{Status: ramp.NewQuantity(1)}, bare)

	for _, names := range [][]string{hashes, addresses, blobs, quantities, {"logs"}} {
		for _, name := range names {
			assert.Equal(t, bare, read(t, `,"`+name+`":null`), "%s null", name)
			if name != "logs" {
				assert.Equal(t, bare, read(t, `,"`+name+`":""`), "%s empty", name)
			}
		}
	}
	for _, name := range quantities {
		assert.Equal(t, bare, read(t, `,"`+name+`":"0x"`), "%s 0x", name)
	}
	assert.Equal(t, bare, read(t, `,"contractAddress":"0x0000000000000000000000000000000000000000"`))

	empty := read(t, `,"root":"0x"`)
	assert.Empty(t, empty.Root)
	assert.NotNil(t, empty.Root, "0x is there, and empty")
	written, err := json.Marshal(empty)
	require.NoError(t, err)
	assert.Contains(t, string(written), `"root":"0x"`)
}

// Some tools write 0X instead of 0x.
func TestHashesMayBeginWith0X(t *testing.T) {
	var r ramp.Receipt
	require.NoError(t, json.Unmarshal([]byte(`{"transactionHash":"0X`+strings.Repeat("ab", 32)+`","root":"0X01"}`), &r))
	assert.Equal(t, common.HexToHash(strings.Repeat("ab", 32)), r.TransactionHash)
	assert.EqualValues(t, []byte{1}, r.Root)
}

func TestReceiptIsWrittenWithArrays(t *testing.T) {
	written, err := json.Marshal(ramp.Receipt{Status: ramp.NewQuantity(0), Logs: []ramp.Log{{}}})
	require.NoError(t, err)
	assert.Contains(t, string(written), `"topics":[]`)

	written, err = json.Marshal(ramp.Receipt{Status: ramp.NewQuantity(0)})
	require.NoError(t, err)
	assert.Contains(t, string(written), `"logs":[]`)
}

func TestLogBlockTimestampInEveryForm(t *testing.T) {
	for _, tt := range []struct {
		name, field string
		want        string
	}{
		{"the number 0 of some chains", `,"blockTimestamp":0`, "0"},
		{"a number", `,"blockTimestamp":1763693459`, "1763693459"},
		{"hex", `,"blockTimestamp":"0x691fd393"`, "1763693459"},
		{"a decimal string", `,"blockTimestamp":"1763693459"`, "1763693459"},
		{"null", `,"blockTimestamp":null`, "absent"},
		{"absent", ``, "absent"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := resultWith(`{"status":"0x1","logs":[{"address":"0x13345c94929a47a35a4dcd36e2574b8123fe190d"` + tt.field + `}]}`)
			r, err := ramp.ParseResult(body)
			require.NoError(t, err)
			require.Len(t, r.Receipt.Logs, 1)
			assert.Equal(t, tt.want, r.Receipt.Logs[0].BlockTimestamp.String())
			assert.Equal(t, tt.want != "absent", r.Receipt.Logs[0].BlockTimestamp.Present())
		})
	}
}

func TestLogFieldsThatSayNothingAreZero(t *testing.T) {
	for _, log := range []string{
		`{}`,
		`{"address":null,"topics":null,"data":null,"blockNumber":null,"transactionHash":null,"transactionIndex":null,"blockHash":null,"blockTimestamp":null,"logIndex":null,"removed":null}`,
		`{"address":"","data":"","blockNumber":"","transactionHash":"","transactionIndex":"","blockHash":"","blockTimestamp":"","logIndex":""}`,
	} {
		var l ramp.Log
		require.NoError(t, json.Unmarshal([]byte(log), &l), log)
		assert.Equal(t, ramp.Log{}, l, log)
	}
}

// Over JSON-RPC a malformed field is an error. In a result, where only the status
// decides, it must not strand an order.
func TestAReceiptWithAWrongFieldKeepsItsStatus(t *testing.T) {
	for field, want := range map[string]string{
		`"root":"0x0"`:             "root must be hex with 0x, not a string",
		`"root":"1x12"`:            "root must be hex with 0x, not a string",
		`"root":"0y12"`:            "root must be hex with 0x, not a string",
		`"root":"0"`:               "root must be hex with 0x, not a string",
		`"logsBloom":5`:            "logsBloom must be hex with 0x, not a number",
		`"transactionHash":"0x01"`: "transactionHash must be 0x followed by 64 hex digits, not a string",
		`"blockHash":true`:         "blockHash must be 0x followed by 64 hex digits, not a boolean",
		`"contractAddress":{}`:     "contractAddress must be 0x followed by 40 hex digits, not an object",
		`"from":[]`:                "from must be 0x followed by 40 hex digits, not an array",
		`"to":"0x` + strings.Repeat("z", 40) + `"`: "to must be 0x followed by 40 hex digits, not a string",
		`"gasUsed":-1`:                        "gasUsed must be a whole number of at most 256 bits, not a number",
		`"gasUsed":1.5`:                       "gasUsed must be a whole number of at most 256 bits, not a number",
		`"logs":{}`:                           "logs must be an array, not an object",
		`"logs":["x"]`:                        "logs[0] must be an object, not a string",
		`"logs":[{"topics":"0x"}]`:            "logs[0].topics must be an array, not a string",
		`"logs":[{"topics":["0x1"]}]`:         "logs[0].topics[0] must be 0x followed by 64 hex digits, not a string",
		`"logs":[{"topics":[7]}]`:             "logs[0].topics[0] must be 0x followed by 64 hex digits, not a number",
		`"logs":[{"topics":[null]}]`:          "logs[0].topics[0] must be 0x followed by 64 hex digits, not null",
		`"logs":[{"removed":"no"}]`:           "logs[0].removed must be a boolean, not a string",
		`"logs":[{},{"blockTimestamp":true}]`: "logs[1].blockTimestamp must be a whole number of at most 256 bits, not a boolean",
		`"gasUsed":"0x1","gasUsed":"0x1"`:     "gasUsed occurs more than once",
		`"logs":[{"data":"0x","data":"0x"}]`:  "logs[0].data occurs more than once",
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

func TestReceiptOverJSONRPC(t *testing.T) {
	r := readGolden[ramp.Receipt](t, "4.4-receipt.json")
	kind, err := r.Type.Uint64()
	require.NoError(t, err)
	assert.EqualValues(t, 7, kind, "a type that is new is read")
	assert.Equal(t, common.HexToAddress("0x9a1fc3d7b5e86240c9d1f7a3b8e4526d0f7c1a93"), r.FeePayer)
	assert.Equal(t, common.Address{}, r.ContractAddress, "null")
	assert.Contains(t, string(r.Raw), "feePayer")
}

func TestTransfersOfAReceipt(t *testing.T) {
	var r ramp.Receipt
	require.NoError(t, json.Unmarshal([]byte(`{"status":"0x1","logs":[
		{"address":"0x00000000000000000000000000000000000070c3","logIndex":"0x5","data":"0x0000000000000000000000000000000000000000000000000000000000000064",
		 "topics":["0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef","0x0000000000000000000000000000000000000000000000000000000000000000","0x0000000000000000000000000000000000000000000000000000000000000b0b"]},
		{"address":"0x00000000000000000000000000000000000070c4","data":"0x",
		 "topics":["0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef","0x0000000000000000000000000000000000000000000000000000000000000b0b","0x0000000000000000000000000000000000000000000000000000000000000000","0x0000000000000000000000000000000000000000000000000000000000000007"]},
		{"address":"0x00000000000000000000000000000000000070c3","removed":true,"data":"0x0000000000000000000000000000000000000000000000000000000000000064",
		 "topics":["0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef","0x0000000000000000000000000000000000000000000000000000000000000000","0x0000000000000000000000000000000000000000000000000000000000000b0b"]},
		{"address":"0x00000000000000000000000000000000000070c3","data":"0x64",
		 "topics":["0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef","0x0000000000000000000000000000000000000000000000000000000000000000","0x0000000000000000000000000000000000000000000000000000000000000b0b"]},
		{"address":"0x00000000000000000000000000000000000070c3","data":"0x",
		 "topics":["0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925","0x0000000000000000000000000000000000000000000000000000000000000000","0x0000000000000000000000000000000000000000000000000000000000000b0b"]}]}`), &r))
	bob := common.HexToAddress("0xb0b")
	assert.Equal(t, []ramp.Transfer{
		{Token: common.HexToAddress("0x70c3"), To: bob, Value: big.NewInt(100), LogIndex: ramp.NewQuantity(5)},
		{Token: common.HexToAddress("0x70c4"), From: bob, TokenID: big.NewInt(7)},
	}, r.Transfers(), "neither a removed event, nor a malformed one, nor one of another kind")
}
