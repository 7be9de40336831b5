package jsonrpc_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/token-ramp/ramp-go/internal/test/jsonrpc"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

func TestAnswer(t *testing.T) {
	answer := func(c jsonrpc.Call) (any, string) {
		switch c.Method {
		case "fails":
			return nil, "no such method"
		case "raw":
			return jsonrpc.Raw(`"error":{"code":3}`), ""
		}
		return c.Params, ""
	}
	for request, want := range map[string]string{
		`{"id":1,"method":"m","params":["a",2]}`: `{"jsonrpc":"2.0","id":1,"result":["a",2]}`,
		`[{"id":"x","method":"m"},{"id":2,"method":"raw"}]`: `[{"jsonrpc":"2.0","id":"x","result":null},` +
			`{"jsonrpc":"2.0","id":2,"error":{"code":3}}]`,
		`[{"id":1,"method":"fails"}]`: `[{"jsonrpc":"2.0","id":1,` +
			`"error":{"code":-32602,"message":"no such method"}}]`,
	} {
		assert.Equal(t, want, string(must.Get(jsonrpc.Answer([]byte(request), answer))(t)))
	}
	_, err := jsonrpc.Answer([]byte("<html>"), answer)
	assert.Error(t, err)
}
