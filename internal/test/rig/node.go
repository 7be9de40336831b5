package rig

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/jsonrpc"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// Node is a node whose chain a test writes. It has one block a second, except while it stood still.
type Node struct {
	Begin  time.Time // of block 0
	Head   uint64
	halts  []halt // in their order
	Oldest uint64 // block that it has kept
	Behind uint64 // how many of the newest blocks only another node behind the same address has
	Sent   []Tx   // in the order of their blocks
	Widest uint64 // most blocks in a query of logs, or 0
	Lag    uint64 // how many of the newest blocks the machine lacks that is asked for logs

	ReceiptLag uint64 // the same of receipts

	MostLogs int    // after how many logs a list ends and does not say so, or 0
	Newest   bool   // whether such a list has the newest logs, and not the oldest
	Silent   bool   // it answers a query of too many blocks with an empty list
	Decimals string // what the node answers to decimals(), or "" for an error
	Calls    int    // JSON-RPC calls, each of a batch included
	Requests int
	Asked    func(*Node) // before each request; nil does nothing
	Failing  int         // which of the calls fails, from 1, or 0; logs are then asked for again in parts
	Failed   bool
	Down     string   // a method; a request with it is answered with HTTP 503
	Ranges   []uint64 // blocks in each query of logs

	Hides      func(*Tx) bool // whether the node does not return a transaction that it lists; nil shows all
	ChainID    uint64         // if it is another than that of the proof
	Unfinal    uint64         // how many of the newest blocks are not final
	NoFinality string         // why the node knows no final block, or ""

	Lists   func(*Tx) bool              // whether eth_getLogs knows a transaction; nil knows all
	LogTime func(*Tx, time.Time) uint64 // what a log says of its time, instead of the time

	// What the node answers to a call instead, if the last result is true; nil changes nothing.
	Say func(method string, params []json.RawMessage) (result any, problem string, instead bool)
}

// Eighteen is what a token with 18 decimals answers to decimals().
var Eighteen = hexutil.Encode(common.LeftPadBytes([]byte{18}, 32))

// Tx is a transaction, which succeeded unless it failed.
type Tx struct {
	Failed      bool
	Hash        common.Hash
	Block       uint64
	From, Payer common.Address
	To          common.Address
	Transfers   []ramp.Transfer
	Events      []ramp.Log // instead of Transfers; they do not say their time
}

var transferTopic = common.HexToHash("0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef")

func (tx *Tx) logs(n *Node) (logs []ramp.Log) {
	for i, l := range tx.Events {
		l.TransactionHash = tx.Hash
		l.BlockNumber, l.LogIndex = ramp.NewQuantity(tx.Block), ramp.NewQuantity(uint64(i))
		logs = append(logs, l)
	}
	at := uint64(n.At(tx.Block).Unix())
	if n.LogTime != nil {
		at = n.LogTime(tx, n.At(tx.Block))
	}
	for i, t := range tx.Transfers {
		logs = append(logs,
			ramp.Log{Address: t.Token,
				Topics: []common.Hash{transferTopic, common.BytesToHash(t.From[:]),
					common.BytesToHash(t.To[:])},
				Data: common.BigToHash(t.Value).Bytes(), BlockNumber: ramp.NewQuantity(tx.Block),
				TransactionHash: tx.Hash, BlockTimestamp: ramp.NewQuantity(at),
				LogIndex: ramp.NewQuantity(uint64(i))})
	}
	return logs
}

// halt is a time in which no block was made.
type halt struct {
	last uint64 // the block before it
	took time.Duration
}

// At returns when a block was made.
func (n *Node) At(block uint64) time.Time {
	at := n.Begin.Add(time.Duration(block) * time.Second)
	for _, h := range n.halts {
		if block > h.last {
			at = at.Add(h.took)
		}
	}
	return at
}

// BlockAt returns the last block that was made at a time or before it.
func (n *Node) BlockAt(t time.Time) uint64 {
	for _, h := range slices.Backward(n.halts) {
		if last := n.At(h.last); t.After(last) {
			t = last.Add(max(0, t.Sub(last)-h.took))
		}
	}
	return uint64(t.Sub(n.Begin) / time.Second)
}

// StandStill lets the chain have made no block from one time to another. The node is as old as before. What
// was sent must be sent afterwards; a later standstill comes after an earlier one.
func (n *Node) StandStill(from, to time.Time) {
	end := n.At(n.Head)
	n.halts = append(n.halts, halt{n.BlockAt(from), to.Sub(from)})
	n.Head = n.BlockAt(end)
}

// hash is that of a block.
func (n *Node) hash(block uint64) common.Hash {
	return common.BigToHash(new(big.Int).SetUint64(block + 1<<40))
}

// in returns the transactions in blocks.
func (n *Node) in(from, to uint64) []Tx {
	first, _ := slices.BinarySearchFunc(n.Sent, from, byBlock)
	after, _ := slices.BinarySearchFunc(n.Sent, to+1, byBlock)
	return n.Sent[first:max(first, after)]
}

func byBlock(tx Tx, block uint64) int { return cmp.Compare(tx.Block, block) }

// Send puts a transaction into the chain.
func (n *Node) Send(at time.Time, tx Tx) common.Hash {
	tx.Block, tx.Hash = n.BlockAt(at), common.BigToHash(big.NewInt(int64(len(n.Sent)+1)))
	tx.Hash[0] = 1
	after, _ := slices.BinarySearchFunc(n.Sent, tx.Block+1, byBlock)
	n.Sent = slices.Insert(n.Sent, after, tx)
	return tx.Hash
}

// RoundTrip answers without a network.
func (n *Node) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	n.Requests++
	if n.Asked != nil {
		n.Asked(n)
	}
	w := httptest.NewRecorder()
	if n.Down != "" && bytes.Contains(body, []byte(n.Down)) {
		w.WriteHeader(http.StatusServiceUnavailable)
		return w.Result(), nil
	}
	for method, lag := range map[string]uint64{
		"eth_getLogs":               n.Lag,
		"eth_getTransactionReceipt": n.ReceiptLag,
	} {
		if bytes.Contains(body, []byte(method)) {
			n.Head -= lag
			defer func() { n.Head += lag }()
		}
	}
	text, err := jsonrpc.Answer(body, func(call jsonrpc.Call) (any, string) {
		n.Calls++
		if n.Say != nil {
			if result, problem, instead := n.Say(call.Method, call.Params); instead {
				return result, problem
			}
		}
		result, problem := n.Answer(call.Method, call.Params)
		if n.Calls == n.Failing && call.Method != "eth_getLogs" {
			problem, n.Failed = "the disk is full", true
		}
		return result, problem
	})
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text)
	return w.Result(), err
}

// Answer returns the result of a call, or the message of an error.
func (n *Node) Answer(method string, params []json.RawMessage) (any, string) {
	var hash common.Hash
	tx := func() *Tx {
		_ = json.Unmarshal(params[0], &hash)
		at := slices.IndexFunc(n.Sent, func(tx Tx) bool { return tx.Hash == hash })
		if at < 0 || n.Hides != nil && n.Hides(&n.Sent[at]) {
			return nil
		}
		return &n.Sent[at]
	}
	switch method {
	case "eth_chainId":
		return hexutil.Uint64(cmp.Or(n.ChainID, 1112)), ""
	case "eth_blockNumber":
		return hexutil.Uint64(n.Head), ""
	case "eth_getBlockByNumber":
		number := hexutil.Uint64(n.Head)
		if string(params[0]) == `"finalized"` {
			if n.NoFinality != "" {
				return nil, n.NoFinality
			}
			number -= hexutil.Uint64(n.Unfinal)
		}
		if json.Unmarshal(params[0], &number) == nil &&
			(uint64(number)+n.Behind > n.Head || uint64(number) < n.Oldest) {
			return nil, ""
		}
		at := n.At(uint64(number)).Unix()
		hashes := []common.Hash{}
		for _, tx := range n.in(uint64(number), uint64(number)) {
			hashes = append(hashes, tx.Hash)
		}
		return map[string]any{"number": number, "hash": n.hash(uint64(number)),
			"timestamp": hexutil.Uint64(at), "transactions": hashes}, ""
	case "eth_getTransactionByHash":
		if tx := tx(); tx != nil {
			to := &tx.To
			if tx.To == (common.Address{}) { // it created a contract
				to = nil
			}
			return map[string]any{"hash": tx.Hash, "from": tx.From, "to": to, "feePayer": tx.Payer,
				"input": "0x",
				"nonce": "0x0", "value": "0x0",
				"type": "0x7", "gas": "0x0", "blockNumber": hexutil.Uint64(tx.Block),
				"blockHash": n.hash(tx.Block)}, ""
		}
	case "eth_getTransactionReceipt":
		if tx := tx(); tx != nil {
			status := uint64(1)
			if tx.Failed {
				status = 0
			}
			return ramp.Receipt{Status: ramp.NewQuantity(status), TransactionHash: tx.Hash,
				BlockNumber: ramp.NewQuantity(tx.Block), BlockHash: n.hash(tx.Block), Logs: tx.logs(n)}, ""
		}
	case "eth_getLogs":
		var filter struct {
			Address            []common.Address
			FromBlock, ToBlock hexutil.Uint64
			Topics             [][]common.Hash
		}
		_ = json.Unmarshal(params[0], &filter)
		n.Ranges = append(n.Ranges, uint64(filter.ToBlock-filter.FromBlock)+1)
		if n.Widest > 0 && uint64(filter.ToBlock-filter.FromBlock) >= n.Widest {
			if n.Silent {
				return []ramp.Log{}, ""
			}
			return nil, "block range is too wide"
		}
		logs := []ramp.Log{}
		for _, tx := range n.in(uint64(filter.FromBlock), min(n.Head, uint64(filter.ToBlock))) {
			if n.Lists != nil && !n.Lists(&tx) {
				continue
			}
			for _, log := range tx.logs(n) {
				matches := slices.Contains(filter.Address, log.Address) &&
					len(filter.Topics) <= len(log.Topics)
				for i, wanted := range filter.Topics {
					matches = matches && (len(wanted) == 0 || slices.Contains(wanted, log.Topics[i]))
				}
				if matches {
					logs = append(logs, log)
				}
			}
		}
		if over := len(logs) - n.MostLogs; n.MostLogs > 0 && over > 0 && n.Newest {
			logs = logs[over:]
		} else if n.MostLogs > 0 && over > 0 {
			logs = logs[:n.MostLogs]
		}
		return logs, ""
	case "eth_call":
		if n.Decimals != "" {
			return n.Decimals, ""
		}
		return nil, "execution reverted"
	default:
		return nil, "no such method"
	}
	return nil, ""
}

// RPC asks the node.
func (n *Node) RPC(t testing.TB) *ramp.RPC {
	return must.Get(ramp.NewRPC(ramp.RPCConfig{URL: "https://node.example.com", ChainID: 1112, Retries: -1,
		HTTPClient: &http.Client{Transport: n}}))(t)
}
