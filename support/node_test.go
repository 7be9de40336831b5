package support_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/support"
)

// node is a node whose chain a test writes. It has one block a second.
type node struct {
	begin    time.Time // of block 0
	head     uint64
	oldest   uint64   // block that it has kept
	behind   uint64   // how many of the newest blocks only another node behind the same address has
	sent     []sentTx // in the order of their blocks
	widest   uint64   // most blocks in a query of logs, or 0
	decimals string   // what the node answers to decimals(), or "" for an error
	calls    int      // JSON-RPC calls, each of a batch included
	failing  int      // which of the calls fails, from 1, or 0; logs are then asked for again in parts
	failed   bool
	down     string   // a method; a request with it is answered with HTTP 503
	ranges   []uint64 // blocks in each query of logs

	hides      func(*sentTx) bool // whether the node does not return a transaction that it lists; nil shows all
	chainID    uint64             // if it is another than that of the proof
	unfinal    uint64             // how many of the newest blocks are not final
	noFinality string             // why the node knows no final block, or ""

	lists   func(*sentTx) bool              // whether eth_getLogs knows a transaction; nil knows all
	logTime func(*sentTx, time.Time) uint64 // what a log says of its time, instead of the time
}

// sentTx is a transaction, which succeeded unless it failed.
type sentTx struct {
	failed      bool
	hash        common.Hash
	block       uint64
	from, payer common.Address
	to          common.Address
	transfers   []ramp.Transfer
}

var transferTopic = common.HexToHash("0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef")

func (tx *sentTx) logs(n *node) (logs []ramp.Log) {
	at := uint64(n.at(tx.block).Unix())
	if n.logTime != nil {
		at = n.logTime(tx, n.at(tx.block))
	}
	for i, t := range tx.transfers {
		logs = append(logs,
			ramp.Log{Address: t.Token,
				Topics: []common.Hash{transferTopic, common.BytesToHash(t.From[:]), common.BytesToHash(t.To[:])},
				Data:   common.BigToHash(t.Value).Bytes(), BlockNumber: ramp.NewQuantity(tx.block),
				TransactionHash: tx.hash, BlockTimestamp: ramp.NewQuantity(at), LogIndex: ramp.NewQuantity(uint64(i))})
	}
	return logs
}

func (n *node) at(block uint64) time.Time { return n.begin.Add(time.Duration(block) * time.Second) }

func (n *node) blockAt(t time.Time) uint64 { return uint64(t.Sub(n.begin) / time.Second) }

// hash is that of a block.
func (n *node) hash(block uint64) common.Hash {
	return common.BigToHash(new(big.Int).SetUint64(block + 1<<40))
}

func byBlock(tx sentTx, block uint64) int { return cmp.Compare(tx.block, block) }

// send puts a transaction into the chain.
func (n *node) send(at time.Time, tx sentTx) common.Hash {
	tx.block, tx.hash = n.blockAt(at), common.BigToHash(big.NewInt(int64(len(n.sent)+1)))
	tx.hash[0] = 1
	after, _ := slices.BinarySearchFunc(n.sent, tx.block+1, byBlock)
	n.sent = slices.Insert(n.sent, after, tx)
	return tx.hash
}

func (n *node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if n.down != "" && bytes.Contains(body, []byte(n.down)) {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	single := body[0] != '['
	if single {
		body = slices.Concat([]byte("["), body, []byte("]"))
	}
	var calls []struct {
		ID     json.RawMessage
		Method string
		Params []json.RawMessage
	}
	_ = json.Unmarshal(body, &calls)
	answers := make([]map[string]any, len(calls))
	for i, call := range calls {
		n.calls++
		result, problem := n.answer(call.Method, call.Params)
		answers[i] = map[string]any{"jsonrpc": "2.0", "id": call.ID, "result": result}
		if n.calls == n.failing && call.Method != "eth_getLogs" {
			problem, n.failed = "the disk is full", true
		}
		if problem != "" {
			answers[i] = map[string]any{"jsonrpc": "2.0", "id": call.ID,
				"error": map[string]any{"code": -32602, "message": problem}}
		}
	}
	text, _ := json.Marshal(answers)
	if single {
		text = text[1 : len(text)-1]
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text)
}

func (n *node) answer(method string, params []json.RawMessage) (any, string) {
	var hash common.Hash
	tx := func() *sentTx {
		_ = json.Unmarshal(params[0], &hash)
		at := slices.IndexFunc(n.sent, func(tx sentTx) bool { return tx.hash == hash })
		if at < 0 || n.hides != nil && n.hides(&n.sent[at]) {
			return nil
		}
		return &n.sent[at]
	}
	switch method {
	case "eth_chainId":
		return hexutil.Uint64(cmp.Or(n.chainID, 1112)), ""
	case "eth_getBlockByNumber":
		number := hexutil.Uint64(n.head)
		if string(params[0]) == `"finalized"` {
			if n.noFinality != "" {
				return nil, n.noFinality
			}
			number -= hexutil.Uint64(n.unfinal)
		}
		if json.Unmarshal(params[0], &number) == nil &&
			(uint64(number)+n.behind > n.head || uint64(number) < n.oldest) {
			return nil, ""
		}
		at := n.at(uint64(number)).Unix()
		return map[string]any{"number": number, "hash": n.hash(uint64(number)), "timestamp": hexutil.Uint64(at)}, ""
	case "eth_getTransactionByHash":
		if tx := tx(); tx != nil {
			to := &tx.to
			if tx.to == (common.Address{}) { // it created a contract
				to = nil
			}
			return map[string]any{"hash": tx.hash, "from": tx.from, "to": to, "feePayer": tx.payer, "input": "0x",
				"nonce": "0x0", "value": "0x0",
				"type": "0x7", "gas": "0x0", "blockNumber": hexutil.Uint64(tx.block), "blockHash": n.hash(tx.block)}, ""
		}
	case "eth_getTransactionReceipt":
		if tx := tx(); tx != nil {
			status := uint64(1)
			if tx.failed {
				status = 0
			}
			return ramp.Receipt{Status: ramp.NewQuantity(status), TransactionHash: tx.hash,
				BlockNumber: ramp.NewQuantity(tx.block), BlockHash: n.hash(tx.block), Logs: tx.logs(n)}, ""
		}
	case "eth_getLogs":
		var filter struct {
			Address            []common.Address
			FromBlock, ToBlock hexutil.Uint64
			Topics             [][]common.Hash
		}
		_ = json.Unmarshal(params[0], &filter)
		n.ranges = append(n.ranges, uint64(filter.ToBlock-filter.FromBlock)+1)
		if n.widest > 0 && uint64(filter.ToBlock-filter.FromBlock) >= n.widest {
			return nil, "block range is too wide"
		}
		logs := []ramp.Log{}
		first, _ := slices.BinarySearchFunc(n.sent, uint64(filter.FromBlock), byBlock)
		for i := first; i < len(n.sent) && n.sent[i].block <= uint64(filter.ToBlock); i++ {
			if n.lists != nil && !n.lists(&n.sent[i]) {
				continue
			}
			for _, log := range n.sent[i].logs(n) {
				matches := slices.Contains(filter.Address, log.Address)
				for i, wanted := range filter.Topics {
					matches = matches && (len(wanted) == 0 || slices.Contains(wanted, log.Topics[i]))
				}
				if matches {
					logs = append(logs, log)
				}
			}
		}
		return logs, ""
	case "eth_call":
		if n.decimals != "" {
			return n.decimals, ""
		}
		return nil, "execution reverted"
	}
	return nil, ""
}

var (
	player = common.HexToAddress("0xa11ce")
	friend = common.HexToAddress("0xb0b")
	vault  = common.HexToAddress("0xc0") // a contract of the ramp
	payer  = common.HexToAddress("0xfee")
	hidden = common.HexToAddress("0xc1") // a contract of the ramp that Proof does not list
)

// orderOf is an order of the player that was accepted at a time.
func orderOf(d ramp.Direction, tokens int64, at time.Time) ramp.Order {
	o := ramp.Order{UUID: uuid.New(), State: ramp.OrderAccepted, SessionID: "session-1", UserAddress: player.Hex(),
		Direction: d, AcceptedAt: at.UTC()}
	items := []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: "item_gold", Amount: ramp.NewAmount(100 * tokens)}}
	tokensSide := []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: token.Hex(), Amount: ramp.NewAmount(tokens)}}
	o.Assets = []ramp.AssetAmount{{ID: "item_gold", Amount: ramp.NewAmount(100 * tokens)}}
	o.Intent = ramp.Intent{Method: ramp.MethodMint, Type: ramp.Assemble, From: items, To: tokensSide}
	if d == ramp.Burn {
		o.Intent = ramp.Intent{Method: ramp.MethodBurnPermit, Type: ramp.Disassemble, From: tokensSide, To: items}
	}
	return o
}

// ended returns an order as it is after a transaction ended it.
func ended(o ramp.Order, state ramp.OrderState, hash common.Hash, at time.Time) ramp.Order {
	o.State, o.TxHash, o.FinishedAt = state, hash.Hex(), at.UTC()
	return o
}

// keep stores orders as they are.
func (l *ledger) keep(t *testing.T, orders ...ramp.Order) {
	t.Helper()
	for _, o := range orders {
		ramp.Must(l.Update(t.Context(), o.UUID,
			func(*ramp.Order) (ramp.Step, error) { return ramp.Step{Order: o, New: true}, nil }))
	}
}

// stranger is a player of whom tests have only orders that are right.
var stranger = common.HexToAddress("0x57a6e4")

// witness keeps a mint and a burn of the stranger that ended half an hour ago, so that a search
// that finds nothing else is known to work.
func (l *ledger) witness(t *testing.T, n *node) {
	t.Helper()
	at := now.Add(-30 * time.Minute)
	for d, transfer := range map[ramp.Direction]ramp.Transfer{
		ramp.Mint: moved(common.Address{}, stranger, 98), ramp.Burn: moved(stranger, common.Address{}, 100),
	} {
		o := orderOf(d, 1, at.Add(-time.Minute))
		o.UserAddress, o.SessionID = stranger.Hex(), "session-2"
		hash := n.send(at, sentTx{from: stranger, payer: payer, to: vault, transfers: []ramp.Transfer{transfer}})
		l.keep(t, ended(o, ramp.OrderSucceeded, hash, at.Add(time.Minute)))
	}
}

// units are hundredths of a token.
func moved(from, to common.Address, hundredths int64) ramp.Transfer {
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(16), nil)
	return ramp.Transfer{Token: token, From: from, To: to, Value: unit.Mul(unit, big.NewInt(hundredths))}
}

// now is when the chain of each node ends.
var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// paid proves what the ramp pays for.
var paid = &rampproof.Config{Payers: []common.Address{payer}}

// rpc serves the node.
func (n *node) rpc(t *testing.T) *ramp.RPC {
	t.Helper()
	server := httptest.NewServer(n)
	t.Cleanup(server.Close)
	return ramp.Must(ramp.NewRPC(ramp.RPCConfig{URL: server.URL, ChainID: 1112, Retries: -1}))
}

// newOrders returns orders of the game that sells product, on a node whose chain is so old.
func newOrders(t *testing.T, age time.Duration, proof *rampproof.Config) (*backoffice, *ledger, *node) {
	t.Helper()
	n := &node{begin: now.Add(-age), head: uint64(age / time.Second),
		decimals: hexutil.Encode(common.LeftPadBytes([]byte{18}, 32))}
	store := newLedger(t, func(context.Context, ramp.Step) error { return nil })
	return ordersOf(t, store, n, proof), store, n
}

// ordersOf returns the orders of a store, on a node.
func ordersOf(t *testing.T, store *ledger, n *node, proof *rampproof.Config) *backoffice {
	t.Helper()
	return ramp.Must(newBackoffice(backofficeConfig{Store: store, Proof: proofOn(n.rpc(t), proof),
		Products: rampbooks.Always(product),
		Now:      func() time.Time { return now }, Logger: quiet}))
}

// proofOn returns a proof on a chain, with the fee of product.
func proofOn(chain *ramp.RPC, c *rampproof.Config) *rampproof.Proof {
	config := *c
	config.Chain, config.Network, config.MintFeeBps = chain, cmp.Or(c.Network, ramp.Testnet), product.MintFeeBps
	return ramp.Must(rampproof.New(config))
}

// refuses asserts that an order is not abandoned because of a transaction.
func refuses(t *testing.T, err error, hash common.Hash) {
	t.Helper()
	var candidate *support.CandidateError
	require.ErrorAs(t, err, &candidate)
	assert.Equal(t, hash, candidate.Candidate.Hash)
}

var quiet = slog.New(slog.DiscardHandler)
