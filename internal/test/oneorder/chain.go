package oneorder

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/token-ramp/ramp-go/internal/test/jsonrpc"
)

// Chain is a node in memory whose chain has one transaction. A test can change its answers over time.
type Chain struct {
	mu          sync.Mutex
	Head        uint64            // its newest block, or 0 for 16
	Receipt     string            // JSON of the receipt, "null" for none
	Transaction string            // JSON of the transaction; "" for one that says little
	Block       map[uint64]string // hash by number
	Say         map[string]string // a method's answer after the id, instead of the chain's
	NoBatches   bool
	Asked       []string // methods
	Requests    int

	// Fail answers a whole request instead, if it returns something.
	Fail func(method string) (*http.Response, error)
}

// After changes the chain when some time has passed.
func (c *Chain) After(d time.Duration, change func()) {
	time.AfterFunc(d, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		change()
	})
}

// RoundTrip answers without a network.
func (c *Chain) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	calls, batch, err := jsonrpc.Read(body)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Requests++
	if batch && c.NoBatches {
		const invalid = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}`
		return answered(invalid), nil
	}
	for _, call := range calls {
		c.Asked = append(c.Asked, call.Method)
		if c.Fail != nil {
			if response, err := c.Fail(call.Method); response != nil || err != nil {
				return response, err
			}
		}
	}
	text, err := jsonrpc.Answer(body, func(call jsonrpc.Call) (any, string) { return c.answer(call), "" })
	return answered(string(text)), err
}

func answered(body string) *http.Response {
	recorder := httptest.NewRecorder()
	_, _ = recorder.WriteString(body)
	return recorder.Result()
}

func (c *Chain) answer(call jsonrpc.Call) jsonrpc.Raw {
	if said, ok := c.Say[call.Method]; ok {
		return jsonrpc.Raw(said)
	}
	answer := `"` + common.MaxHash.Hex() + `"`
	switch call.Method {
	case "eth_chainId":
		answer = `"0x458"`
	case "eth_blockNumber":
		answer = fmt.Sprintf(`"0x%x"`, cmp.Or(c.Head, 16))
	case "eth_getTransactionReceipt":
		answer = c.Receipt
	case "eth_getTransactionByHash":
		answer = cmp.Or(c.Transaction, `{"hash":`+string(call.Params[0])+`}`)
	case "eth_getBlockByNumber":
		var number hexutil.Uint64
		if err := json.Unmarshal(call.Params[0], &number); err != nil {
			return jsonrpc.Raw(fmt.Sprintf(`"error":{"code":-32602,"message":%q}`, err.Error()))
		}
		answer = "null"
		if hash, ok := c.Block[uint64(number)]; ok {
			answer = `{"hash":"` + hash + `"}`
		}
	}
	return jsonrpc.Raw(`"result":` + answer)
}
