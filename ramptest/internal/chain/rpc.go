package chain

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/exact"
)

// The errors of the interface (7.3).
const (
	parseError     = -32700
	invalidRequest = -32600
	methodNotFound = -32601
	invalidParams  = -32602
	internalError  = -32603
	serverError    = -32000
	reverted       = 3 // a contract call reverted; from Ethereum nodes, with data in hex
)

// rpcError is a JSON-RPC error (interface 2.8).
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    string `json:"data"`
}

func (e *rpcError) Error() string { return fmt.Sprintf("%d %s: %s", e.Code, e.Message, e.Data) }

var messages = map[int]string{parseError: "Parse error", invalidRequest: "Invalid Request",
	methodNotFound: "Method not found",
	invalidParams:  "Invalid params", internalError: "Internal error", reverted: "execution reverted"}

func newRPCError(code int, data string) *rpcError {
	return &rpcError{Code: code, Message: cmp.Or(messages[code], "Server error"), Data: data}
}

type rpcRequest struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"` // nil if there is none
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

// maxBatch is the maximum number of requests in a batch.
const maxBatch = 1000

// fieldNames are the names of a request's fields (interface 2.8, 4.4).
const fieldNames = "jsonrpc method params from to gas value nonce input fromBlock toBlock blockHash " +
	"address topics"

// Answer answers a request or a batch (interface 2.8). If scripted is not 0, every
// request fails with that code. The answer is nil if all requests are notifications.
// failure is the last error in the answer, or "" if there is none.
func (c *Chain) Answer(body []byte, scripted int) (answer []byte, failure string) {
	write := func(answer any) []byte { return ramp.Must(json.Marshal(answer)) }
	fail := func(code int, data string) ([]byte, string) {
		err := newRPCError(code, data)
		return write(failed(nil, err)), err.Error()
	}
	body, err := exact.JSON(body, strings.Fields(fieldNames)...)
	if err != nil {
		return fail(parseError, "the body is not JSON")
	}
	var requests []json.RawMessage
	batch := json.Unmarshal(body, &requests) == nil && requests != nil
	if !batch {
		requests = []json.RawMessage{body}
	}
	if len(requests) == 0 || len(requests) > maxBatch {
		return fail(invalidRequest, fmt.Sprintf("a batch has 1 to %d requests", maxBatch))
	}
	var answers []object
	for _, raw := range requests {
		a := c.answerRequest(raw, scripted)
		if a == nil {
			continue
		}
		if err, ok := a["error"].(*rpcError); ok {
			failure = err.Error()
		}
		answers = append(answers, a)
	}
	switch {
	case len(answers) == 0:
		return nil, failure
	case batch:
		return write(answers), failure
	default:
		return write(answers[0]), failure
	}
}

// failed returns an error answer.
func failed(id json.RawMessage, err *rpcError) object {
	return object{"jsonrpc": "2.0", "id": id, "error": err}
}

// answerRequest answers one request. It returns nil for a notification.
func (c *Chain) answerRequest(raw json.RawMessage, scripted int) object {
	var request rpcRequest
	if json.Unmarshal(raw, &request) != nil || request.Version != "2.0" || request.Method == "" ||
		!isID(request.ID) {
		return failed(nil,
			newRPCError(invalidRequest,
				"a request has jsonrpc 2.0, a method, params, and a number or a text as id"))
	}
	var given params
	var result any
	var err error
	switch {
	case scripted != 0:
		err = newRPCError(scripted, "scripted")
	case request.Params != nil && json.Unmarshal(request.Params, &given.list) != nil:
		err = newRPCError(invalidParams, "params is no array")
	default:
		result, err = c.method(request.Method, &given)
		err = cmp.Or(given.err, err)
	}
	var known *rpcError
	switch {
	case request.ID == nil:
		return nil
	case err == nil:
		return object{"jsonrpc": "2.0", "id": request.ID, "result": result}
	case !errors.As(err, &known):
		known = &rpcError{serverError, err.Error(), request.Method}
	}
	return failed(request.ID, known)
}

// shorten truncates a caller's text for an error.
func shorten(text string) string {
	const most = 100
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// isID reports whether an id is a number, a string, null or missing.
func isID(id json.RawMessage) bool { return len(id) == 0 || !strings.ContainsRune("{[tf", rune(id[0])) }

// params are the parameters of a method, read by position. The method fails with err, which
// is the first one of read, whatever else it returns.
type params struct {
	list []json.RawMessage
	err  error
}

// read decodes one parameter, of which the first is required. It does not change into if
// the parameter is missing.
func (p *params) read(i int, into any) {
	problem := ""
	switch missing := i >= len(p.list) || string(p.list[i]) == "null"; {
	case missing && i == 0:
		problem = "missing value for required argument 0"
	case !missing && json.Unmarshal(p.list[i], into) != nil:
		problem = fmt.Sprintf("invalid argument %d", i)
	}
	if problem != "" && p.err == nil {
		p.err = newRPCError(invalidParams, problem)
	}
}

// method executes a method of the interface (4.4).
func (c *Chain) method(name string, p *params) (any, error) {
	if strings.HasPrefix(name, "eth_send") { // takes the lock itself
		return c.sendTransaction(name, p)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch name {
	case "net_version":
		return strconv.FormatUint(c.ID, 10), nil
	case "eth_chainId":
		return hexutil.Uint64(c.ID), nil
	case "eth_blockNumber":
		return hexutil.Uint64(c.head()), nil
	case "eth_getBalance":
		owner, _, err := c.ownerNow(p)
		return (*hexutil.Big)(c.balance(owner)), err
	case "eth_getTransactionCount":
		owner, tag, err := c.ownerNow(p)
		if tag == "pending" {
			return hexutil.Uint64(c.account(owner).Nonce), err
		}
		return hexutil.Uint64(c.account(owner).Done), err
	case "eth_getBlockByNumber", "eth_getBlockByHash":
		return c.blockMethod(name, p)
	case "eth_getTransactionByHash", "eth_getTransactionReceipt":
		var hash common.Hash
		p.read(0, &hash)
		t := c.known[hash]
		switch {
		case t == nil, name == "eth_getTransactionReceipt" && !t.Mined, t.Mined && !c.shows(t.Block):
			return nil, nil
		case name == "eth_getTransactionReceipt":
			return c.receiptJSON(t), nil
		default:
			return c.transactionJSON(t), nil
		}
	case "eth_call":
		return c.callContract(p)
	case "eth_estimateGas":
		var t callRequest
		p.read(0, &t)
		if len(t.Data)+len(t.Input) > 0 {
			return hexutil.Uint64(GasOfCall), nil
		}
		return hexutil.Uint64(gasOfTransfer), nil
	case "eth_gasPrice":
		return hexutil.Uint64(gasPrice), nil
	case "eth_getLogs":
		return c.getLogs(p)
	default:
		return nil, newRPCError(methodNotFound, shorten(name))
	}
}

// blockNumber parses a block tag. found is false for a block that does not exist yet.
func blockNumber(tag string, height uint64) (number uint64, found bool, err error) {
	below := func(n uint64) uint64 { return height - min(n, height) }
	switch tag {
	case "", "latest", "pending":
		return height, true, nil
	case "safe":
		return below(32), true, nil
	case "finalized":
		return below(64), true, nil
	case "earliest":
		return 0, true, nil
	}
	n, err := hexutil.DecodeUint64(tag)
	if err != nil {
		return 0, false, newRPCError(invalidParams, "invalid block tag")
	}
	return n, n <= height, nil
}

// ownerNow parses an address and a block, which must be the newest because older state
// is not kept.
func (c *Chain) ownerNow(p *params) (owner common.Address, tag string, err error) {
	p.read(0, &owner)
	tag, err = c.onlyNow(p)
	return owner, tag, err
}

func (c *Chain) onlyNow(p *params) (tag string, err error) {
	p.read(1, &tag)
	n, _, err := blockNumber(tag, c.newest())
	if err == nil && (strings.HasPrefix(tag, "0x") && n != c.newest() || tag == "earliest") {
		err = errors.New("the state of another block than the latest is not kept")
	}
	return tag, err
}

func (c *Chain) blockMethod(name string, p *params) (any, error) {
	var hash common.Hash
	var tag string
	var full, found bool
	var n uint64
	var err error
	if name == "eth_getBlockByHash" {
		p.read(0, &hash)
		n, found = c.number(hash)
		found = found && n <= c.head()
	} else {
		p.read(0, &tag)
		n, found, err = blockNumber(tag, c.head())
	}
	p.read(1, &full)
	if err != nil || !found {
		return nil, err
	}
	return c.blockJSON(n, full), nil
}

type callRequest struct {
	From  *common.Address `json:"from"`
	To    *common.Address `json:"to"`
	Gas   hexutil.Uint64  `json:"gas"`
	Value *hexutil.Big    `json:"value"`
	Nonce *hexutil.Uint64 `json:"nonce"`
	Data  hexutil.Bytes   `json:"data"`
	Input hexutil.Bytes   `json:"input"`
}

func (r *callRequest) data() []byte {
	if len(r.Input) > 0 {
		return r.Input
	}
	return r.Data
}

// callContract treats every contract as a token with balanceOf, decimals, symbol and
// totalSupply. Any other function reverts, as in a contract that lacks it.
func (c *Chain) callContract(p *params) (any, error) {
	var request callRequest
	p.read(0, &request)
	if _, err := c.onlyNow(p); err != nil {
		return nil, err
	}
	data := request.data()
	if request.To == nil || len(data) < 4 {
		return hexutil.Bytes{}, nil
	}
	word := func(n *big.Int) (any, error) { return hexutil.Bytes(common.BigToHash(n).Bytes()), nil }
	single := c.single[*request.To]
	count := func(units *big.Int) (any, error) {
		if single {
			units = new(big.Int).Quo(units, unit(c.Decimals))
		}
		return word(units)
	}
	switch function := [4]byte(data); {
	case function == Selector("balanceOf(address)") && len(data) == 36:
		return count(c.tokenBalance(*request.To, common.BytesToAddress(data[4:])))
	case function == Selector("decimals()") && !single:
		return word(big.NewInt(int64(c.Decimals)))
	case function == Selector("totalSupply()"):
		supply := new(big.Int)
		for owner, a := range c.accounts {
			if a.Holdings[*request.To] != nil {
				supply.Add(supply, c.tokenBalance(*request.To, owner))
			}
		}
		return count(supply)
	case function == Selector("symbol()"):
		symbol := append(common.BigToHash(big.NewInt(32)).Bytes(), common.BigToHash(big.NewInt(5)).Bytes()...)
		return hexutil.Bytes(append(symbol, common.RightPadBytes([]byte("TOKEN"), 32)...)), nil
	default:
		return nil, newRPCError(reverted, "0x")
	}
}

// oneOrMany is a value or a list of values.
type oneOrMany[T any] []T

func (o *oneOrMany[T]) UnmarshalJSON(b []byte) error {
	if b[0] == '[' {
		return json.Unmarshal(b, (*[]T)(o))
	}
	if string(b) == "null" {
		return nil
	}
	*o = make([]T, 1)
	return json.Unmarshal(b, &(*o)[0])
}

func (c *Chain) getLogs(p *params) (any, error) {
	var filter struct {
		FromBlock string                    `json:"fromBlock"`
		ToBlock   string                    `json:"toBlock"`
		BlockHash *common.Hash              `json:"blockHash"`
		Address   oneOrMany[common.Address] `json:"address"`
		Topics    []oneOrMany[common.Hash]  `json:"topics"`
	}
	p.read(0, &filter)
	first, _, err := blockNumber(filter.FromBlock, c.head())
	last, _, failed := blockNumber(filter.ToBlock, c.head())
	switch hash := filter.BlockHash; {
	case hash != nil:
		n, found := c.number(*hash)
		if !found || n > c.newest() {
			return nil, errors.New("unknown block")
		}
		first, last = n, n
	case err != nil, failed != nil:
		return nil, cmp.Or(err, failed)
	case first > last:
		return nil, newRPCError(invalidParams, "invalid block range")
	}
	found := []ramp.Log{}
	for _, n := range slices.Sorted(maps.Keys(c.filled)) {
		if n < first || n > last || !c.shows(n) {
			continue
		}
		for _, t := range c.filled[n] {
			for _, log := range c.logsJSON(t, c.receipt(t).Logs) {
				if len(filter.Address) > 0 && !slices.Contains(filter.Address, log.Address) ||
					!matches(log.Topics, filter.Topics) {
					continue
				}
				found = append(found, log)
			}
		}
	}
	if most := c.node.MaxLogs; most > 0 && len(found) > most {
		delete(c.idle, MaxLogs)
		found = found[:most]
	}
	return found, nil
}

// matches reports whether each topic is one of those wanted at its position. An empty
// list accepts any topic.
func matches(topics []common.Hash, wanted []oneOrMany[common.Hash]) bool {
	if len(wanted) > len(topics) {
		return false
	}
	for i, any := range wanted {
		if len(any) > 0 && !slices.Contains(any, topics[i]) {
			return false
		}
	}
	return true
}

// sendTransaction submits a transaction: one that a wallet has signed, or one that the
// node signs itself as if it held every key.
func (c *Chain) sendTransaction(name string, p *params) (any, error) {
	var t *Transaction
	switch name {
	case "eth_sendRawTransaction":
		var raw hexutil.Bytes
		p.read(0, &raw)
		var err error
		if t, err = c.decode(raw); err != nil {
			return nil, err
		}
	case "eth_sendTransaction":
		var request callRequest
		if p.read(0, &request); p.err != nil || request.From == nil {
			return nil, newRPCError(invalidParams, "from is required")
		}
		t = c.unsigned(*request.From, &request)
	default:
		return nil, newRPCError(methodNotFound, shorten(name))
	}
	if err := c.accept(t); err != nil {
		return nil, err
	}
	if c.Submitted != nil {
		c.Submitted(t)
	}
	return t.Hash, nil
}

// accept rejects the transactions that a node rejects.
func (c *Chain) accept(t *Transaction) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := c.account(t.From).Nonce
	switch {
	case c.known[t.Hash] != nil:
		return errors.New("already known")
	case t.Nonce < next:
		return fmt.Errorf("nonce too low: next nonce %d, tx nonce %d", next, t.Nonce)
	case t.Nonce > next:
		return fmt.Errorf("nonce too high: next nonce %d, tx nonce %d", next, t.Nonce)
	case c.balance(t.From).Cmp(t.Value) < 0:
		return errors.New("insufficient funds for gas * price + value")
	}
	c.add(t)
	return nil
}

// unsigned returns the transaction that a node would sign.
func (c *Chain) unsigned(from common.Address, r *callRequest) *Transaction {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &Transaction{Kind: dynamicFeeType, From: from, To: r.To, Nonce: c.account(from).Nonce,
		Value: new(big.Int),
		Gas:   uint64(r.Gas), Input: r.data(), GasUsed: gasOfTransfer}
	if r.Value != nil {
		t.Value = r.Value.ToInt()
	}
	if r.Nonce != nil {
		t.Nonce = uint64(*r.Nonce)
	}
	text := fmt.Sprint(c.ID, t.From, t.To, t.Nonce, t.Value, hex.EncodeToString(t.Input))
	t.Hash = crypto.Keccak256Hash([]byte(text))
	t.Signature[64] = 27 // a node's own
	c.readCall(t)
	return t
}
