package ramptest_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Whatever a chain is asked, it answers with JSON, or a notification with nothing.
func FuzzRPC(f *testing.F) {
	c := newCounter(f)
	c.mint(f)
	c.service.Advance(time.Minute)
	for _, seed := range []string{
		`[{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x0","topics":[null,["0x00"]]}]}]`,
		`{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0xffffffffffffffff",true]}`,
		`{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":["0x1",true]}`,
		`{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{"to":"0x00000000000000000000000000000000000070c3","data":"0x70a08231"},"latest"]}`,
		`{"jsonrpc":"2.0","id":{},"method":"eth_sendRawTransaction","params":["0x02c0"]}`,
		`{"jsonrpc":"2.0","id":1,"method":"eth_sendTransaction","params":[{"value":"0x1"}]}`,
		`{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":["0x00000000000000000000000000000000000070c3",{}]}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		w := c.direct("POST", "/rpc/testnet", body, here, "Content-Type", "application/json")
		require.Equal(t, 200, w.Code)
		answer := w.Body.Bytes()
		require.True(t, len(answer) == 0 || json.Valid(answer), string(answer))
	})
}
