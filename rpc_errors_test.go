package ramp_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
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

func TestTheTextOfAnErrorOfANode(t *testing.T) {
	for text, err := range map[string]*ramp.RPCError{
		"JSON-RPC error 3: execution reverted: not enough gold": {Code: 3, Message: "execution reverted: not enough gold", Data: json.RawMessage(`"0x08c379a0"`)},
		"JSON-RPC error -32000: two lines":                      {Code: -32000, Message: "two\nlines"},
		"JSON-RPC error -32050: server error":                   {Code: -32050},
	} {
		assert.Equal(t, text, err.Error())
	}
}
