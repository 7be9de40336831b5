package pairs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/jsonrpc"
)

// chain makes a block every twelve seconds, all of them final, except while it stands still.
type chain struct {
	mu    sync.Mutex
	now   func() time.Time
	begun time.Time
	halts []halt
	txs   []*tx
	node  node
	asked func() // called once, before the next request is answered
}

// halt is a time without blocks; for_ is zero while it lasts.
type halt struct {
	at   time.Time
	for_ time.Duration
}

// tx is a transaction. It is on the chain once its block is made, unless it was dropped.
type tx struct {
	hash    common.Hash
	block   uint64
	ok      bool
	dropped bool
	moved   []ramp.Transfer
}

// node is how the node shows the chain.
type node struct {
	down    bool          // it does not answer
	behind  uint64        // how many blocks its head is older
	cuts    int           // it lists at most so many logs, and does not say so; 0 means all
	forgets time.Duration // it has no history that is older; 0 means all
}

const blockTime = 12 * time.Second

var (
	token    = common.HexToAddress("0x70c3")
	payer    = common.HexToAddress("0xfee")
	nobody   common.Address
	transfer = common.HexToHash("0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef")
	unit     = new(big.Int).Exp(big.NewInt(10), big.NewInt(18), nil)
)

// head is the newest block.
func (c *chain) head() uint64 {
	now := c.now()
	made := now.Sub(c.begun)
	for _, h := range c.halts {
		if over := now.Sub(h.at); h.for_ == 0 {
			made -= over
		} else {
			made -= min(over, h.for_)
		}
	}
	return uint64(made / blockTime)
}

// timeOf is when a block was made.
func (c *chain) timeOf(block uint64) time.Time {
	t := c.begun.Add(time.Duration(block) * blockTime)
	for _, h := range c.halts {
		if t.After(h.at) {
			t = t.Add(h.for_)
		}
	}
	return t
}

// set changes how the node shows the chain.
func (c *chain) set(change func(n *node)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.node)
}

func (c *chain) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.halts = append(c.halts, halt{at: c.now()})
}

func (c *chain) goOn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.halts); n > 0 && c.halts[n-1].for_ == 0 {
		c.halts[n-1].for_ = max(1, c.now().Sub(c.halts[n-1].at))
	}
}

func (c *chain) stands() bool { n := len(c.halts); return n > 0 && c.halts[n-1].for_ == 0 }

// mine puts a transaction into the next block.
func (c *chain) mine(ok bool, moved ...ramp.Transfer) *tx {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &tx{block: c.head() + 1, ok: ok, hash: common.BigToHash(big.NewInt(int64(len(c.txs) + 1)))}
	t.hash[0] = 1
	if ok {
		t.moved = moved
	}
	c.txs = append(c.txs, t)
	return t
}

// has reports whether a transaction is on the chain.
func (c *chain) has(t *tx) bool { return t != nil && !t.dropped && t.block <= c.head() }

// logs are the events of a transaction.
func (c *chain) logs(t *tx) []ramp.Log {
	logs := []ramp.Log{}
	for i, m := range t.moved {
		logs = append(logs, ramp.Log{Address: m.Token, BlockHash: hashOf(t.block), TransactionHash: t.hash,
			Topics: []common.Hash{transfer, common.BytesToHash(m.From[:]), common.BytesToHash(m.To[:])},
			Data:   common.BigToHash(m.Value).Bytes(), BlockNumber: ramp.NewQuantity(t.block),
			BlockTimestamp: ramp.NewQuantity(uint64(c.timeOf(t.block).Unix())), LogIndex: ramp.NewQuantity(uint64(i))})
	}
	return logs
}

func (c *chain) receipt(t *tx) ramp.Receipt {
	status := uint64(0)
	if t.ok {
		status = 1
	}
	return ramp.Receipt{Type: ramp.NewQuantity(2), Status: ramp.NewQuantity(status), TransactionHash: t.hash,
		BlockNumber: ramp.NewQuantity(t.block), BlockHash: hashOf(t.block), Logs: c.logs(t)}
}

func hashOf(block uint64) common.Hash { return common.BigToHash(new(big.Int).SetUint64(block + 1<<40)) }

// RoundTrip is the node: it answers JSON-RPC, without a network.
func (c *chain) RoundTrip(r *http.Request) (*http.Response, error) {
	if asked := c.asked; asked != nil {
		c.asked = nil
		asked()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.node.down {
		return nil, errors.New("connection refused")
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	text, err := jsonrpc.Answer(body, func(call jsonrpc.Call) (any, string) {
		return jsonrpc.Raw(append([]byte(`"result":`), c.answer(call.Method, call.Params)...)), ""
	})
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: 200, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Request: r, Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: int64(len(text)),
		Body: io.NopCloser(bytes.NewReader(text))}, nil
}

// shows are the blocks that the node has.
func (c *chain) shows() (first, last uint64) {
	last = c.head() - c.node.behind
	if c.node.forgets > 0 {
		first = last - uint64(c.node.forgets/blockTime)
	}
	return first, last
}

func (c *chain) find(raw json.RawMessage) *tx {
	first, last := c.shows()
	var hash common.Hash
	if json.Unmarshal(raw, &hash) == nil {
		for _, t := range c.txs {
			if t.hash == hash && !t.dropped && t.block >= first && t.block <= last {
				return t
			}
		}
	}
	return nil
}

// answer is the JSON of a result. Blocks, which are most of them, are written without reflection.
func (c *chain) answer(method string, params []json.RawMessage) []byte {
	if method == "eth_getBlockByNumber" {
		_, last := c.shows()
		number := hexutil.Uint64(last) // also for latest and finalized
		if json.Unmarshal(params[0], &number) == nil && uint64(number) > last {
			return []byte("null")
		}
		return fmt.Appendf(nil, `{"number":"%#x","hash":"%s","timestamp":"%#x"}`, uint64(number),
			hashOf(uint64(number)).Hex(), c.timeOf(uint64(number)).Unix())
	}
	text, _ := json.Marshal(c.result(method, params))
	return text
}

func (c *chain) result(method string, params []json.RawMessage) any {
	first, last := c.shows()
	switch method {
	case "eth_chainId":
		return hexutil.Uint64(1112)
	case "eth_blockNumber":
		return hexutil.Uint64(last)
	case "eth_getTransactionByHash":
		if t := c.find(params[0]); t != nil {
			return map[string]any{"hash": t.hash, "from": payer, "to": token, "input": "0x", "nonce": "0x0",
				"value": "0x0", "type": "0x7", "gas": "0x0", "blockNumber": hexutil.Uint64(t.block),
				"blockHash": hashOf(t.block)}
		}
	case "eth_getTransactionReceipt":
		if t := c.find(params[0]); t != nil {
			return c.receipt(t)
		}
	case "eth_getLogs":
		var filter struct {
			Address            []common.Address
			FromBlock, ToBlock hexutil.Uint64
			Topics             [][]common.Hash
		}
		if err := json.Unmarshal(params[0], &filter); err != nil {
			return nil
		}
		first, last = max(first, uint64(filter.FromBlock)), min(last, uint64(filter.ToBlock))
		return c.list(filter.Address, filter.Topics, first, last)
	case "eth_call":
		return hexutil.Encode(common.LeftPadBytes([]byte{18}, 32))
	}
	return nil
}

func (c *chain) list(of []common.Address, topics [][]common.Hash, first, last uint64) []ramp.Log {
	logs := []ramp.Log{}
	for _, t := range c.txs {
		for _, log := range c.logs(t) {
			matches := !t.dropped && t.block >= first && t.block <= last && slices.Contains(of, log.Address)
			for i, wanted := range topics {
				matches = matches && (len(wanted) == 0 || slices.Contains(wanted, log.Topics[i]))
			}
			if matches {
				logs = append(logs, log)
			}
		}
	}
	slices.SortStableFunc(logs, func(x, y ramp.Log) int { return bytes.Compare(x.BlockHash[:], y.BlockHash[:]) })
	if c.node.cuts > 0 && len(logs) > c.node.cuts {
		logs = logs[:c.node.cuts]
	}
	return logs
}
