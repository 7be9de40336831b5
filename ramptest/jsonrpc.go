package ramptest

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	ramp "github.com/token-ramp/ramp-go"
)

// The errors of the interface (7.3).
const (
	parseError     = -32700
	invalidRequest = -32600
	methodNotFound = -32601
	invalidParams  = -32602
	internalError  = -32603
	serverError    = -32000
	reverted       = 3 // a contract refused: of Ethereum nodes, with hex as data
)

// rpcError is an error of JSON-RPC (interface 2.8).
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    string `json:"data"`
}

func (e *rpcError) Error() string { return fmt.Sprintf("%d %s: %s", e.Code, e.Message, e.Data) }

func newRPCError(code int, data string) *rpcError {
	message := "Server error"
	switch code {
	case parseError:
		message = "Parse error"
	case invalidRequest:
		message = "Invalid Request"
	case methodNotFound:
		message = "Method not found"
	case invalidParams:
		message = "Invalid params"
	case internalError:
		message = "Internal error"
	case reverted:
		message = "execution reverted"
	}
	return &rpcError{Code: code, Message: message, Data: data}
}

type rpcRequest struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"` // nil if there is none
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

type rpcAnswer struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result"`
	Error   *rpcError       `json:"error"`
}

// MarshalJSON writes either result or error (interface 2.8).
func (a rpcAnswer) MarshalJSON() ([]byte, error) {
	members := map[string]any{"jsonrpc": a.Version, "id": a.ID}
	if a.Error != nil {
		members["error"] = a.Error
	} else {
		members["result"] = a.Result
	}
	return json.Marshal(members)
}

// FailRPC lets the next requests to the chains fail, one for each code, in this
// order, whatever they ask. A code below 100 is one of JSON-RPC: those of the
// interface (7.3) are below 0, and 3 is a contract that refuses. Any other is an
// HTTP status; 429 comes with a Retry-After of 1 second. 0 lets a request through.
func (s *Service) FailRPC(codes ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failRPC = append(s.failRPC, codes...)
}

// mostBatch is how many requests a batch may have.
const mostBatch = 1000

// serveRPC answers a request to a chain (interface 4.4), or a batch of them.
func (s *Service) serveRPC(w http.ResponseWriter, r *http.Request) {
	event := Event{Time: s.Now(), Kind: KindRPC, Outcome: "success"}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.config.MaxBody))
	secrets := secretsOf(r.Header)
	event.Request = &Message{Method: r.Method, Path: r.URL.Path, Header: redactHeader(r.Header, secrets), Body: redactBody(body, secrets)}
	status, text := s.rpc(r, body, err, &event)
	event.Answer = &Message{Status: status, Body: string(text)}
	event.Took = s.Now().Sub(event.Time)
	s.record.add(event)
	w.Header().Set("Content-Type", "application/json")
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(status)
	_, _ = w.Write(text) // the caller is gone: nobody is left to tell
}

func (s *Service) rpc(r *http.Request, body []byte, unread error, event *Event) (int, []byte) {
	refuse := func(status int) (int, []byte) {
		event.Outcome, event.Failed = http.StatusText(status), true
		return status, nil
	}
	if status := s.refusal(r); status != 0 {
		return refuse(status)
	}
	s.mu.Lock()
	scripted := 0
	if len(s.failRPC) > 0 {
		scripted, s.failRPC = s.failRPC[0], s.failRPC[1:]
		event.Fault = strconv.Itoa(scripted)
	}
	s.mu.Unlock()
	c := s.chains[ramp.Network(r.PathValue("network"))]
	switch {
	case scripted >= 100:
		return refuse(scripted)
	case c == nil:
		return refuse(http.StatusNotFound)
	case !s.config.AuthorizeRPC(r):
		return refuse(http.StatusUnauthorized)
	case unread != nil:
		return refuse(http.StatusRequestEntityTooLarge)
	}

	whole := s.answerBody(c, body, scripted, event)
	if whole == nil {
		return http.StatusOK, nil
	}
	text, err := json.Marshal(whole)
	if err != nil {
		panic(err) // everything in it was made here
	}
	return http.StatusOK, text
}

// answerBody answers a request or a batch; with nil, if nobody wants an answer.
func (s *Service) answerBody(c *chain, body []byte, scripted int, event *Event) any {
	fail := func(code int, data string) any {
		a := failed(nil, newRPCError(code, data))
		event.Outcome = a.Error.Error()
		return a
	}
	body, err := exact(body)
	if err != nil {
		return fail(parseError, "the body is not JSON")
	}
	var requests []json.RawMessage
	batch := json.Unmarshal(body, &requests) == nil && requests != nil
	if !batch {
		requests = []json.RawMessage{body}
	}
	if len(requests) == 0 || len(requests) > mostBatch {
		return fail(invalidRequest, fmt.Sprintf("a batch has 1 to %d requests", mostBatch))
	}
	var answers []*rpcAnswer
	for _, raw := range requests {
		a := s.answerRPC(c, raw, scripted)
		if a == nil {
			continue
		}
		if a.Error != nil {
			event.Outcome = a.Error.Error() // a refusal may be what was wanted
		}
		answers = append(answers, a)
	}
	switch {
	case len(answers) == 0:
		return nil
	case batch:
		return answers
	default:
		return answers[0]
	}
}

// failed is an answer without a result.
func failed(id json.RawMessage, err *rpcError) *rpcAnswer {
	if id == nil {
		id = json.RawMessage("null")
	}
	return &rpcAnswer{Version: "2.0", ID: id, Error: err}
}

// answerRPC answers one request; with nil, if it is a notification.
func (s *Service) answerRPC(c *chain, raw json.RawMessage, scripted int) *rpcAnswer {
	var request rpcRequest
	if json.Unmarshal(raw, &request) != nil || request.Version != "2.0" || request.Method == "" || !isID(request.ID) {
		return failed(nil, newRPCError(invalidRequest, "a request has jsonrpc 2.0, a method, params, and a number or a text as id"))
	}
	var list params
	a := &rpcAnswer{Version: "2.0", ID: request.ID}
	switch {
	case scripted != 0:
		a.Error = newRPCError(scripted, "scripted")
	case request.Params != nil && json.Unmarshal(request.Params, &list) != nil:
		a.Error = newRPCError(invalidParams, "params is no array")
	default:
		var err error
		a.Result, err = s.method(c, request.Method, list)
		if err != nil && !errors.As(err, &a.Error) {
			a.Error = newRPCError(serverError, request.Method)
			a.Error.Message = err.Error()
		}
	}
	if request.ID == nil {
		return nil
	}
	return a
}

// isID says whether an id is a number, a text or null, or is not there.
func isID(id json.RawMessage) bool { return len(id) == 0 || !strings.ContainsRune("{[tf", rune(id[0])) }

// params are the parameters of a method, read by their place.
type params []json.RawMessage

// read reads one parameter, and leaves it as it is where there is none.
func (p params) read(i int, into any, required bool) error {
	if i >= len(p) || string(p[i]) == "null" {
		if required {
			return newRPCError(invalidParams, fmt.Sprintf("missing value for required argument %d", i))
		}
		return nil
	}
	if err := json.Unmarshal(p[i], into); err != nil {
		return newRPCError(invalidParams, fmt.Sprintf("invalid argument %d", i))
	}
	return nil
}

// method does what the methods of the interface do (4.4).
func (s *Service) method(c *chain, name string, p params) (any, error) {
	if strings.HasPrefix(name, "eth_send") { // which records, and plans a block
		return s.sendTransaction(c, name, p)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch name {
	case "net_version":
		return strconv.FormatUint(c.id, 10), nil
	case "eth_chainId":
		return hexutil.Uint64(c.id), nil
	case "eth_blockNumber":
		return hexutil.Uint64(c.height()), nil
	case "eth_getBalance":
		owner, err := c.ownerNow(p)
		return (*hexutil.Big)(c.balance(owner)), err
	case "eth_getTransactionCount":
		owner, err := c.ownerNow(p)
		var tag string
		if err == nil {
			err = p.read(1, &tag, false)
		}
		if tag == "pending" {
			return hexutil.Uint64(c.nonces[owner]), err
		}
		return hexutil.Uint64(c.done[owner]), err
	case "eth_getBlockByNumber", "eth_getBlockByHash":
		return c.blockMethod(name, p)
	case "eth_getTransactionByHash", "eth_getTransactionReceipt":
		var hash common.Hash
		if err := p.read(0, &hash, true); err != nil {
			return nil, err
		}
		t := c.known[hash]
		switch {
		case t == nil, name == "eth_getTransactionReceipt" && !t.mined:
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
		if err := p.read(0, &t, true); err != nil {
			return nil, err
		}
		if len(t.Data)+len(t.Input) > 0 {
			return hexutil.Uint64(gasOfOrder), nil
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

// blockNumber reads a block tag. found is false for a block that is not there
// yet.
func (c *chain) blockNumber(tag string) (number uint64, found bool, err error) {
	height := c.height()
	behind := func(n uint64) uint64 { return height - min(n, height) }
	switch tag {
	case "", "latest", "pending":
		return height, true, nil
	case "safe":
		return behind(32), true, nil
	case "finalized":
		return behind(64), true, nil
	case "earliest":
		return 0, true, nil
	}
	n, err := hexutil.DecodeUint64(tag)
	if err != nil {
		return 0, false, newRPCError(invalidParams, "invalid block tag")
	}
	return n, n <= height, nil
}

// ownerNow reads an address and a block, which must be the newest: what was
// before is not kept.
func (c *chain) ownerNow(p params) (common.Address, error) {
	var owner common.Address
	if err := p.read(0, &owner, true); err != nil {
		return owner, err
	}
	return owner, c.onlyNow(p, 1)
}

func (c *chain) onlyNow(p params, i int) error {
	var tag string
	if err := p.read(i, &tag, false); err != nil {
		return err
	}
	n, _, err := c.blockNumber(tag)
	switch {
	case err != nil:
		return err
	case strings.HasPrefix(tag, "0x") && n != c.height(), tag == "earliest":
		return errors.New("the state of another block than the latest is not kept")
	default:
		return nil
	}
}

func (c *chain) blockMethod(name string, p params) (any, error) {
	var full bool
	if err := p.read(1, &full, false); err != nil {
		return nil, err
	}
	if name == "eth_getBlockByHash" {
		var hash common.Hash
		if err := p.read(0, &hash, true); err != nil {
			return nil, err
		}
		if n, found := c.number(hash); found {
			return c.blockJSON(n, full), nil
		}
		return nil, nil
	}
	var tag string
	if err := p.read(0, &tag, true); err != nil {
		return nil, err
	}
	n, found, err := c.blockNumber(tag)
	if err != nil || !found {
		return nil, err
	}
	return c.blockJSON(n, full), nil
}

// object is one of JSON.
type object map[string]any

func (c *chain) blockJSON(n uint64, full bool) object {
	hash, gas := c.hash(n), uint64(0)
	transactions := make([]any, len(c.filled[n]))
	var logs []ramp.Log
	for i, t := range c.filled[n] {
		transactions[i] = t.hash
		if full {
			transactions[i] = c.transactionJSON(t)
		}
		gas += t.gasUsed
		logs = append(logs, c.receipt(t).Logs...)
	}
	parent := common.Hash{}
	if n > 0 {
		parent = c.hash(n - 1)
	}
	root := func(of string) common.Hash { return crypto.Keccak256Hash([]byte(of), hash[:]) }
	return object{
		"number": hexutil.Uint64(n), "hash": hash, "parentHash": parent, "timestamp": c.timestamp(n),
		"miner": service(), "gasLimit": hexutil.Uint64(gasLimit), "gasUsed": hexutil.Uint64(gas),
		"baseFeePerGas": hexutil.Uint64(gasPrice - 1e9), "size": hexutil.Uint64(540 + 300*len(transactions)),
		"stateRoot": root("state"), "transactionsRoot": root("transactions"), "receiptsRoot": root("receipts"),
		"logsBloom": hexutil.Bytes(bloom(logs)), "extraData": "0x", "difficulty": "0x0", "totalDifficulty": "0x0",
		"nonce": "0x0000000000000000", "mixHash": common.Hash{}, "sha3Uncles": root("uncles"), "uncles": []any{},
		"transactions": transactions,
	}
}

func (c *chain) timestamp(n uint64) hexutil.Uint64 { return hexutil.Uint64(c.time(n).Unix()) }

func (c *chain) transactionJSON(t *transaction) object {
	v, r, s := signatureParts(t.signature)
	o := object{
		"type": hexutil.Uint64(t.kind), "hash": t.hash, "chainId": hexutil.Uint64(c.id), "nonce": hexutil.Uint64(t.nonce),
		"from": t.from, "to": t.to, "value": (*hexutil.Big)(t.value), "gas": hexutil.Uint64(t.gas),
		"gasPrice": hexutil.Uint64(gasPrice), "input": hexutil.Bytes(t.input),
		"v": (*hexutil.Big)(v), "r": (*hexutil.Big)(r), "s": (*hexutil.Big)(s),
		"blockHash": nil, "blockNumber": nil, "transactionIndex": nil,
	}
	switch {
	case t.kind == legacyType:
		o["v"] = hexutil.Uint64(35 + 2*c.id + v.Uint64())
	case t.kind == accessListType:
		o["accessList"] = []any{}
	default:
		o["accessList"], o["maxFeePerGas"], o["maxPriorityFeePerGas"] = []any{}, hexutil.Uint64(gasPrice), hexutil.Uint64(1e9)
	}
	if t.kind == accessListType || t.kind == dynamicFeeType {
		o["yParity"] = (*hexutil.Big)(v)
	}
	if t.kind == feeDelegatedType {
		fv, fr, fs := signatureParts(t.sponsor)
		o["feePayer"] = t.feePayer
		o["fv"], o["fr"], o["fs"] = (*hexutil.Big)(fv), (*hexutil.Big)(fr), (*hexutil.Big)(fs)
	}
	if t.mined {
		o["blockHash"], o["blockNumber"] = c.hash(t.block), hexutil.Uint64(t.block)
		o["transactionIndex"] = hexutil.Uint64(slices.Index(c.filled[t.block], t))
	}
	return o
}

// receiptJSON is a receipt in the shape of JSON-RPC, which is not that of the
// result webhook.
func (c *chain) receiptJSON(t *transaction) object {
	r := c.receipt(t)
	o := object{
		"type": r.Type, "status": r.Status, "cumulativeGasUsed": r.CumulativeGasUsed, "logsBloom": r.LogsBloom,
		"logs": c.logsJSON(t, r.Logs), "transactionHash": r.TransactionHash, "contractAddress": nil, "gasUsed": r.GasUsed,
		"effectiveGasPrice": r.EffectiveGasPrice, "blockHash": r.BlockHash, "blockNumber": r.BlockNumber,
		"transactionIndex": r.TransactionIndex, "from": t.from, "to": t.to,
	}
	if t.to == nil {
		o["contractAddress"] = crypto.CreateAddress(t.from, t.nonce)
	}
	if t.kind == feeDelegatedType {
		o["feePayer"] = t.feePayer
	}
	return o
}

// logsJSON are logs as JSON-RPC has them: with the time of the block as hex.
func (c *chain) logsJSON(t *transaction, logs []ramp.Log) []ramp.Log {
	shown := make([]ramp.Log, len(logs))
	for i, log := range logs {
		shown[i] = log
		shown[i].BlockTimestamp = ramp.NewQuantity(uint64(c.timestamp(t.block)))
	}
	return shown
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

// callContract plays every contract as a token: balanceOf, decimals, symbol and
// totalSupply. It refuses any other function, as a contract without it does.
func (c *chain) callContract(p params) (any, error) {
	var request callRequest
	if err := p.read(0, &request, true); err != nil {
		return nil, err
	}
	if err := c.onlyNow(p, 1); err != nil {
		return nil, err
	}
	data := request.data()
	if request.To == nil || len(data) < 4 {
		return hexutil.Bytes{}, nil
	}
	word := func(n *big.Int) (any, error) { return hexutil.Bytes(common.BigToHash(n).Bytes()), nil }
	switch function := [4]byte(data); {
	case function == selector("balanceOf(address)") && len(data) == 36:
		return word(c.tokenBalance(*request.To, common.BytesToAddress(data[4:])))
	case function == selector("decimals()"):
		return word(big.NewInt(int64(c.decimals)))
	case function == selector("totalSupply()"):
		supply := new(big.Int)
		for h := range c.holdings {
			if h.token == *request.To {
				supply.Add(supply, c.tokenBalance(h.token, h.owner))
			}
		}
		return word(supply)
	case function == selector("symbol()"):
		symbol := append(common.BigToHash(big.NewInt(32)).Bytes(), common.BigToHash(big.NewInt(5)).Bytes()...)
		return hexutil.Bytes(append(symbol, common.RightPadBytes([]byte("TOKEN"), 32)...)), nil
	default:
		return nil, newRPCError(reverted, "0x")
	}
}

// oneOrMany is a value, or a list of them.
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

func (c *chain) getLogs(p params) (any, error) {
	var filter struct {
		FromBlock string                    `json:"fromBlock"`
		ToBlock   string                    `json:"toBlock"`
		BlockHash *common.Hash              `json:"blockHash"`
		Address   oneOrMany[common.Address] `json:"address"`
		Topics    []oneOrMany[common.Hash]  `json:"topics"`
	}
	if err := p.read(0, &filter, true); err != nil {
		return nil, err
	}
	var first, last uint64
	if filter.BlockHash != nil {
		n, found := c.number(*filter.BlockHash)
		if !found {
			return nil, errors.New("unknown block")
		}
		first, last = n, n
	} else {
		var err error
		if first, _, err = c.blockNumber(filter.FromBlock); err != nil {
			return nil, err
		}
		if last, _, err = c.blockNumber(filter.ToBlock); err != nil {
			return nil, err
		}
		if first > last {
			return nil, newRPCError(invalidParams, "invalid block range")
		}
	}
	found := []ramp.Log{}
	for _, n := range c.filledFrom(first, last) {
		for _, t := range c.filled[n] {
			for _, log := range c.logsJSON(t, c.receipt(t).Logs) {
				if len(filter.Address) > 0 && !slices.Contains(filter.Address, log.Address) || !matches(log.Topics, filter.Topics) {
					continue
				}
				found = append(found, log)
			}
		}
	}
	return found, nil
}

// filledFrom are the blocks with transactions, from one to another.
func (c *chain) filledFrom(first, last uint64) []uint64 {
	var numbers []uint64
	for n := range c.filled {
		if first <= n && n <= last {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers
}

// matches says whether topics are among the wanted ones of their place. None
// wanted means any.
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

// sendTransaction takes a transaction in: one that a wallet has signed, or one
// that the node, which holds every key, signs itself. The next block has it.
func (s *Service) sendTransaction(c *chain, name string, p params) (any, error) {
	var t *transaction
	switch name {
	case "eth_sendRawTransaction":
		var raw hexutil.Bytes
		if err := p.read(0, &raw, true); err != nil {
			return nil, err
		}
		var err error
		if t, err = c.decode(raw); err != nil {
			return nil, err
		}
	case "eth_sendTransaction":
		var request callRequest
		if err := p.read(0, &request, true); err != nil {
			return nil, err
		}
		if request.From == nil {
			return nil, newRPCError(invalidParams, "from is required")
		}
		t = c.unsigned(*request.From, &request)
	default:
		return nil, newRPCError(methodNotFound, shorten(name))
	}
	if err := c.accept(t); err != nil {
		return nil, err
	}
	s.record.add(Event{Time: s.Now(), Kind: KindChain, Outcome: fmt.Sprintf("%s transaction %s submitted", c.network, t.hash)})
	s.plan(c.nextBlock(), func(context.Context) []Delivery {
		block, _ := c.mine(t, false)
		s.record.add(Event{Time: s.Now(), Kind: KindChain, Outcome: fmt.Sprintf("%s transaction %s in block %d", c.network, t.hash, block)})
		return nil
	})
	return t.hash, nil
}

// accept refuses what a node refuses.
func (c *chain) accept(t *transaction) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := c.nonces[t.from]
	switch {
	case c.known[t.hash] != nil:
		return errors.New("already known")
	case t.nonce < next:
		return fmt.Errorf("nonce too low: next nonce %d, tx nonce %d", next, t.nonce)
	case t.nonce > next:
		return fmt.Errorf("nonce too high: next nonce %d, tx nonce %d", next, t.nonce)
	case c.balance(t.from).Cmp(t.value) < 0:
		return errors.New("insufficient funds for gas * price + value")
	}
	c.add(t)
	return nil
}

// unsigned makes the transaction that a node would sign.
func (c *chain) unsigned(from common.Address, r *callRequest) *transaction {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &transaction{kind: dynamicFeeType, from: from, to: r.To, nonce: c.nonces[from], value: new(big.Int),
		gas: uint64(r.Gas), input: r.data(), gasUsed: gasOfTransfer}
	if r.Value != nil {
		t.value = r.Value.ToInt()
	}
	if r.Nonce != nil {
		t.nonce = uint64(*r.Nonce)
	}
	text := fmt.Sprint(c.id, t.from, t.to, t.nonce, t.value, hex.EncodeToString(t.input))
	t.hash = crypto.Keccak256Hash([]byte(text))
	t.signature[64] = 27 // a node's own
	if t.to != nil {
		c.readTransfer(t)
	}
	return t
}
