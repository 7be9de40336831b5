package ramp_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
)

func TestEveryCodeOfTheInterfaceIsFound(t *testing.T) {
	for code, want := range map[ramp.RPCCode]ramp.RPCCode{
		-32700: ramp.RPCParseError,
		-32600: ramp.RPCInvalidRequest,
		-32601: ramp.RPCMethodNotFound,
		-32602: ramp.RPCInvalidParams,
		-32603: ramp.RPCInternalError,
		-32000: ramp.RPCServerError,
		-32050: ramp.RPCServerError,
		-32099: ramp.RPCServerError,
	} {
		err := fmt.Errorf("around: %w", &ramp.RPCError{Code: code, Message: "m"})
		assert.ErrorIs(t, err, want)
		assert.ErrorIs(t, err, code)
		for _, other := range []ramp.RPCCode{ramp.RPCParseError, ramp.RPCInvalidRequest, ramp.RPCMethodNotFound, ramp.RPCInvalidParams, ramp.RPCInternalError, ramp.RPCServerError} {
			if other != want {
				assert.NotErrorIs(t, err, other)
			}
		}
	}
	for _, code := range []ramp.RPCCode{-31999, -32100, 0, 3} {
		assert.NotErrorIs(t, &ramp.RPCError{Code: code}, ramp.RPCServerError)
		assert.Equal(t, fmt.Sprintf("error %d", code), code.Error())
	}
	for _, code := range []ramp.RPCCode{-32000, 0} {
		assert.NotErrorIs(t, &ramp.RPCError{Code: code}, errors.New("another"))
	}
	assert.Equal(t, []string{"parse error", "invalid request", "method not found", "invalid params", "internal error", "server error", "server error"},
		[]string{ramp.RPCParseError.Error(), ramp.RPCInvalidRequest.Error(), ramp.RPCMethodNotFound.Error(), ramp.RPCInvalidParams.Error(),
			ramp.RPCInternalError.Error(), ramp.RPCServerError.Error(), ramp.RPCCode(-32050).Error()})
}

// encoded is what a contract returns for a revert, made by go-ethereum.
func encoded(t *testing.T, selector, kind string, value any) string {
	t.Helper()
	kinds, err := abi.NewType(kind, "", nil)
	require.NoError(t, err)
	packed, err := abi.Arguments{{Type: kinds}}.Pack(value)
	require.NoError(t, err)
	return selector + hex.EncodeToString(packed)
}

func TestARevertIsDecodedHoweverItIsWrapped(t *testing.T) {
	reason := encoded(t, "0x08c379a0", "string", "not enough gold")
	long := encoded(t, "0x08c379a0", "string", strings.Repeat("gold ", 20))
	overflow := "0x4e487b71" + fmt.Sprintf("%064x", 0x11)
	none := "0x08c379a0" + fmt.Sprintf("%064x%064x", 32, 0)
	word := "0x08c379a0" + fmt.Sprintf("%064x%064x", 32, 32) + strings.Repeat(hex.EncodeToString([]byte("gold")), 8)
	overlong := strings.Replace(word, fmt.Sprintf("%064x%064x", 32, 32), fmt.Sprintf("%064x%064x", 32, 33), 1)
	for name, test := range map[string]struct {
		err    ramp.RPCError
		reason string
		panics string
		data   string // "" for none
		not    bool
	}{
		"as a string":               {err: ramp.RPCError{Code: 3, Message: "execution reverted: not enough gold", Data: json.RawMessage(`"` + reason + `"`)}, reason: "not enough gold", data: reason},
		"under another code":        {err: ramp.RPCError{Code: -32000, Message: "VM error", Data: json.RawMessage(`"` + reason + `"`)}, reason: "not enough gold", data: reason},
		"after a word":              {err: ramp.RPCError{Code: -32015, Message: "VM execution error.", Data: json.RawMessage(`"Reverted ` + reason + `"`)}, reason: "not enough gold", data: reason},
		"in an object":              {err: ramp.RPCError{Code: -32603, Message: "m", Data: json.RawMessage(`{"message":"m","data":"` + reason + `"}`)}, reason: "not enough gold", data: reason},
		"in an error in an object":  {err: ramp.RPCError{Code: -32603, Data: json.RawMessage(`{"originalError":{"code":3,"data":"` + reason + `","message":"m"}}`)}, reason: "not enough gold", data: reason},
		"under the hash of a call":  {err: ramp.RPCError{Code: -32000, Data: json.RawMessage(`{"0xab":{"error":"revert","return":"` + reason + `"},"hash":"0xcd"}`)}, reason: "not enough gold", data: reason},
		"a long reason":             {err: ramp.RPCError{Code: 3, Data: json.RawMessage(`"` + long + `"`)}, reason: strings.Repeat("gold ", 20), data: long},
		"a panic":                   {err: ramp.RPCError{Code: 3, Message: "execution reverted", Data: json.RawMessage(`"` + overflow + `"`)}, panics: "17", data: overflow},
		"a custom error":            {err: ramp.RPCError{Code: 3, Message: "execution reverted", Data: json.RawMessage(`"0xdeadbeef01"`)}, data: "0xdeadbeef01"},
		"without a reason":          {err: ramp.RPCError{Code: 3, Message: "execution reverted", Data: json.RawMessage(`"0x"`)}, data: "0x"},
		"in the message alone":      {err: ramp.RPCError{Code: -32000, Message: "execution reverted: not enough gold"}, reason: "not enough gold"},
		"a reason cut short":        {err: ramp.RPCError{Code: 3, Data: json.RawMessage(`"` + reason[:80] + `"`)}, data: reason[:80]},
		"a reason of endless size":  {err: ramp.RPCError{Code: 3, Data: json.RawMessage(`"0x08c379a0` + fmt.Sprintf("%064x", 32) + strings.Repeat("f", 64) + `"`)}, data: "0x08c379a0" + fmt.Sprintf("%064x", 32) + strings.Repeat("f", 64)},
		"a reason that begins late": {err: ramp.RPCError{Code: 3, Data: json.RawMessage(`"0x08c379a0` + fmt.Sprintf("%064x", 33) + fmt.Sprintf("%064x", 1) + `"`)}, data: "0x08c379a0" + fmt.Sprintf("%064x", 33) + fmt.Sprintf("%064x", 1)},
		"an empty reason":           {err: ramp.RPCError{Code: -32000, Message: "m", Data: json.RawMessage(`"` + none + `"`)}, data: none},
		"a reason of a whole word":  {err: ramp.RPCError{Code: -32000, Message: "m", Data: json.RawMessage(`"` + word + `"`)}, reason: strings.Repeat("gold", 8), data: word},
		"a reason that is too long": {err: ramp.RPCError{Code: -32000, Message: "m", Data: json.RawMessage(`"` + overlong + `"`)}, not: true},
		"a reason without an end":   {err: ramp.RPCError{Code: -32000, Message: "m", Data: json.RawMessage(`"` + none[:2+8+64+62] + `"`)}, not: true},
		"a reason that is nowhere":  {err: ramp.RPCError{Code: -32000, Message: "m", Data: json.RawMessage(`"0x08c379a0` + strings.Repeat("f", 64) + `"`)}, not: true},
		"the name of a reason":      {err: ramp.RPCError{Code: -32000, Message: "m", Data: json.RawMessage(`"0x08c379a0"`)}, not: true},
		"a panic cut short":         {err: ramp.RPCError{Code: -32000, Message: "m", Data: json.RawMessage(`"` + overflow[:70] + `"`)}, not: true},
		"a panic and more":          {err: ramp.RPCError{Code: 3, Data: json.RawMessage(`"` + overflow + `00"`)}, data: overflow + "00"},
		"hex without 0x":            {err: ramp.RPCError{Code: 3, Data: json.RawMessage(`"deadbeef"`)}},
		"half a byte":               {err: ramp.RPCError{Code: 3, Data: json.RawMessage(`"0xdeadbee"`)}},
		"after what is no revert":   {err: ramp.RPCError{Code: 3, Data: json.RawMessage(`{"a":"0xab","b":{"c":1},"d":{"data":"` + reason + `"}}`)}, reason: "not enough gold", data: reason},
		"in four objects":           {err: ramp.RPCError{Code: 3, Data: json.RawMessage(strings.Repeat(`{"a":`, 3) + `{"data":"` + reason + `"}` + strings.Repeat("}", 3))}, reason: "not enough gold", data: reason},
		"in five objects":           {err: ramp.RPCError{Code: 3, Data: json.RawMessage(strings.Repeat(`{"a":`, 4) + `{"data":"` + reason + `"}` + strings.Repeat("}", 4))}},
		"in four objects of a name": {err: ramp.RPCError{Code: 3, Data: json.RawMessage(strings.Repeat(`{"data":`, 4) + `"` + reason + `"` + strings.Repeat("}", 4))}, reason: "not enough gold", data: reason},
		"in five objects of a name": {err: ramp.RPCError{Code: 3, Data: json.RawMessage(strings.Repeat(`{"data":`, 5) + `"` + reason + `"` + strings.Repeat("}", 5))}},
		"another failure":           {err: ramp.RPCError{Code: -32000, Message: "nonce too low"}, not: true},
		"text that is no bytes":     {err: ramp.RPCError{Code: -32000, Message: "m", Data: json.RawMessage(`"transaction indexing is in progress"`)}, not: true},
		"objects without end":       {err: ramp.RPCError{Code: -32000, Message: "m", Data: json.RawMessage(strings.Repeat(`{"a":`, 9) + `{"data":"` + reason + `"}` + strings.Repeat("}", 9))}, not: true},
		"a list":                    {err: ramp.RPCError{Code: -32000, Message: "m", Data: json.RawMessage(`["0x01"]`)}, not: true},
	} {
		t.Run(name, func(t *testing.T) {
			revert, ok := test.err.Revert()
			assert.Equal(t, !test.not, ok)
			assert.Equal(t, test.reason, revert.Reason)
			if test.panics == "" {
				assert.False(t, revert.Panic.Present())
			} else {
				assert.Equal(t, test.panics, revert.Panic.String())
			}
			if test.data == "" {
				assert.Nil(t, revert.Data)
			} else {
				assert.Equal(t, test.data, hexutil.Encode(revert.Data))
			}
		})
	}
}

func TestAnErrorSaysWhyAContractRefused(t *testing.T) {
	reason := json.RawMessage(`"` + encoded(t, "0x08c379a0", "string", "not enough gold") + `"`)
	for text, err := range map[string]*ramp.RPCError{
		"JSON-RPC error 3: execution reverted: not enough gold": {Code: 3, Message: "execution reverted: not enough gold", Data: reason},
		"JSON-RPC error -32603: oops: not enough gold":          {Code: -32603, Message: "oops", Data: reason},
		"JSON-RPC error 3: execution reverted: panic 0x11":      {Code: 3, Message: "execution reverted", Data: json.RawMessage(`"0x4e487b71` + fmt.Sprintf("%064x", 0x11) + `"`)},
		"JSON-RPC error -32000: two lines":                      {Code: -32000, Message: "two\nlines"},
		"JSON-RPC error -32050: server error":                   {Code: -32050},
	} {
		assert.Equal(t, text, err.Error())
	}
}
