package ramp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/token-ramp/ramp-go/internal/redact"
)

// BlockRef refers to a block: by a number with [AtBlock], or by a tag of the Ethereum
// specification, such as [Latest] or "finalized". The zero value means [Latest].
type BlockRef string

// Latest refers to the newest block.
const Latest BlockRef = "latest"

// AtBlock refers to the block with number n.
func AtBlock(n uint64) BlockRef { return BlockRef(hexutil.EncodeUint64(n)) }

// MarshalText writes the reference for a node. It fails for an unknown tag.
func (b BlockRef) MarshalText() ([]byte, error) {
	if b == "" {
		b = Latest
	}
	_, err := hexutil.DecodeUint64(string(b))
	if err != nil && !slices.Contains([]BlockRef{Latest, "safe", "finalized", "earliest", "pending"}, b) {
		return nil, errors.New("a block must be latest, safe, finalized, earliest, pending, or a number from AtBlock")
	}
	return []byte(b), nil
}

// TransactionRequest is a transaction to send, or a call. The node fills in zero
// fields.
type TransactionRequest struct {
	From                 common.Address  // the sender
	To                   *common.Address // the receiver; nil creates a contract
	Gas                  uint64          // gas limit
	GasPrice             *big.Int        // wei per unit of gas
	MaxFeePerGas         *big.Int        // wei per unit of gas, instead of GasPrice
	MaxPriorityFeePerGas *big.Int        // wei per unit of gas, part of MaxFeePerGas
	Value                *big.Int        // wei to transfer
	Nonce                *uint64         // how many transactions the sender made before
	Data                 []byte          // call data of a contract, or code of a new one
}

// MarshalJSON writes the object for a node, with hex strings (interface 4.4).
func (t TransactionRequest) MarshalJSON() ([]byte, error) {
	for _, n := range []*big.Int{t.GasPrice, t.MaxFeePerGas, t.MaxPriorityFeePerGas, t.Value} {
		if n != nil && (n.Sign() < 0 || n.BitLen() > 256) {
			return nil, errors.New("an amount of wei must not be negative or need more than 256 bits")
		}
	}
	wire := struct {
		From                 common.Address  `json:"from,omitzero"`
		To                   *common.Address `json:"to,omitempty"`
		Gas                  hexutil.Uint64  `json:"gas,omitempty"`
		GasPrice             *hexutil.Big    `json:"gasPrice,omitempty"`
		MaxFeePerGas         *hexutil.Big    `json:"maxFeePerGas,omitempty"`
		MaxPriorityFeePerGas *hexutil.Big    `json:"maxPriorityFeePerGas,omitempty"`
		Value                *hexutil.Big    `json:"value,omitempty"`
		Nonce                *hexutil.Uint64 `json:"nonce,omitempty"`
		Data                 hexutil.Bytes   `json:"data,omitempty"`
	}{
		t.From, t.To, hexutil.Uint64(t.Gas), (*hexutil.Big)(t.GasPrice), (*hexutil.Big)(t.MaxFeePerGas),
		(*hexutil.Big)(t.MaxPriorityFeePerGas), (*hexutil.Big)(t.Value), (*hexutil.Uint64)(t.Nonce), t.Data,
	}
	return marshal(wire)
}

// LogFilter selects logs (interface 4.4). The zero filter selects all logs of the
// latest block.
type LogFilter struct {
	FromBlock BlockRef         `json:"fromBlock,omitempty"` // first block
	ToBlock   BlockRef         `json:"toBlock,omitempty"`   // last block
	BlockHash common.Hash      `json:"blockHash,omitzero"`  // a single block, instead of both
	Addresses []common.Address `json:"address,omitempty"`   // contracts to match; none means all
	Topics    [][]common.Hash  `json:"topics,omitempty"`    // per position; none means any
}

// MarshalJSON writes the filter for a node.
func (f LogFilter) MarshalJSON() ([]byte, error) {
	type plain LogFilter
	switch {
	case f.BlockHash == common.Hash{}:
		f.FromBlock, f.ToBlock = cmp.Or(f.FromBlock, Latest), cmp.Or(f.ToBlock, Latest)
	case f.FromBlock != "", f.ToBlock != "":
		return nil, errors.New("a log filter must have either BlockHash, or FromBlock and ToBlock")
	}
	return marshal(plain(f))
}

// Transaction is a transaction as a node describes it. Unknown types are read too.
// A field that is missing, null or empty is zero. Hash and sender are not verified.
type Transaction struct {
	Type     Quantity        `json:"type,omitzero"`     // usually 0x2 or 0x7 (fee delegated)
	Hash     common.Hash     `json:"hash"`              // as the node sent it
	ChainID  Quantity        `json:"chainId,omitzero"`  // chain that it is signed for
	Nonce    Quantity        `json:"nonce,omitzero"`    // how many transactions the sender made before
	From     common.Address  `json:"from"`              // the sender
	To       *common.Address `json:"to"`                // the receiver; nil creates a contract
	Value    Quantity        `json:"value,omitzero"`    // wei to transfer
	Gas      Quantity        `json:"gas,omitzero"`      // gas limit
	GasPrice Quantity        `json:"gasPrice,omitzero"` // wei per unit of gas
	Input    hexutil.Bytes   `json:"input"`             // call data, or code of a new contract

	MaxFeePerGas         Quantity `json:"maxFeePerGas,omitzero"`         // wei per unit of gas
	MaxPriorityFeePerGas Quantity `json:"maxPriorityFeePerGas,omitzero"` // wei per unit of gas

	// The position in the chain; zero if it is in no block.
	BlockHash        common.Hash `json:"blockHash,omitzero"`
	BlockNumber      Quantity    `json:"blockNumber,omitzero"`
	TransactionIndex Quantity    `json:"transactionIndex,omitzero"`

	// The sender's signature.
	V Quantity `json:"v,omitzero"`
	R Quantity `json:"r,omitzero"`
	S Quantity `json:"s,omitzero"`

	// Type 0x7 only: the account that pays the gas, and its signature.
	FeePayer common.Address `json:"feePayer,omitzero"`
	FV       Quantity       `json:"fv,omitzero"`
	FR       Quantity       `json:"fr,omitzero"`
	FS       Quantity       `json:"fs,omitzero"`

	// Raw is the unchanged transaction, including the fields that this type does
	// not have.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON reads a transaction and keeps its bytes in Raw. The error for a
// malformed field is an [*InvalidError].
func (t *Transaction) UnmarshalJSON(b []byte) error { return unmarshalWire(b, "transaction", t) }

var transactionNames = memberNames[Transaction]()

func (t *Transaction) read(x *reader) {
	start := x.at
	x.structure(transactionNames, t)
	t.Raw = x.since(start)
}

// Block is a block as a node describes it. A field that is missing, null or empty
// is zero. The hash is not verified.
type Block struct {
	Number           Quantity       `json:"number,omitzero"`        // absent for a pending block
	Hash             common.Hash    `json:"hash"`                   // zero for a pending block
	ParentHash       common.Hash    `json:"parentHash"`             // hash of the block before
	Timestamp        Quantity       `json:"timestamp,omitzero"`     // seconds since 1970
	Miner            common.Address `json:"miner"`                  // account that gets the fees
	GasLimit         Quantity       `json:"gasLimit,omitzero"`      // of all transactions together
	GasUsed          Quantity       `json:"gasUsed,omitzero"`       // by all transactions together
	BaseFeePerGas    Quantity       `json:"baseFeePerGas,omitzero"` // wei per unit of gas
	Size             Quantity       `json:"size,omitzero"`          // bytes
	StateRoot        common.Hash    `json:"stateRoot"`              // root of the state trie
	TransactionsRoot common.Hash    `json:"transactionsRoot"`       // root of the transaction trie
	ReceiptsRoot     common.Hash    `json:"receiptsRoot"`           // root of the receipt trie
	ExtraData        hexutil.Bytes  `json:"extraData"`              // chosen by the miner

	// Transactions are the transactions themselves, nil unless they were requested.
	Transactions []Transaction `json:"transactions,omitempty"`

	// TransactionHashes are the hashes of all transactions in the block.
	TransactionHashes []common.Hash `json:"-"`

	// Raw is the unchanged block, including the fields that this type does not have.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON reads a block and keeps its bytes in Raw. The error for a malformed
// field is an [*InvalidError].
func (b *Block) UnmarshalJSON(text []byte) error { return unmarshalWire(text, "block", b) }

var blockNames = memberNames[Block]()

func (b *Block) read(x *reader) {
	start := x.at
	var list transactionList
	fields := reflect.ValueOf(b).Elem()
	x.object(blockNames, func(n int) any {
		if blockNames[n] == "transactions" {
			return &list
		}
		return fields.Field(n).Addr().Interface()
	})
	b.TransactionHashes, b.Transactions = list.hashes, list.whole
	b.Raw = x.since(start)
}

// transactionList is a list of hashes or of whole transactions.
type transactionList struct {
	hashes []common.Hash
	whole  []Transaction
}

func (l *transactionList) read(x *reader) {
	for range x.elements(maxListEntries) {
		var hash common.Hash
		if x.kind() == '{' {
			l.whole = append(l.whole, Transaction{})
			t := &l.whole[len(l.whole)-1]
			t.read(x)
			hash = t.Hash
		} else {
			readHash(&hash, x)
		}
		l.hashes = append(l.hashes, hash)
	}
}

// ErrNotFound means that the node answered null: it does not know the block,
// transaction or receipt. It may know it a moment later. If it never does, the node
// may be on another network; see [RPCConfig].ChainID.
var ErrNotFound = errors.New("not found on the node's chain, or not yet")

// RPCCode is the code of an [RPCError]. It is an error, so that errors.Is(err,
// ramp.RPCMethodNotFound) works.
type RPCCode int

// The codes of the interface (7.3). [RPCServerError] stands for all codes from
// -32099 to -32000.
const (
	RPCParseError     RPCCode = -32700 // invalid JSON
	RPCInvalidRequest RPCCode = -32600 // not a valid request
	RPCMethodNotFound RPCCode = -32601 // the method does not exist
	RPCInvalidParams  RPCCode = -32602 // invalid parameters
	RPCInternalError  RPCCode = -32603 // internal JSON-RPC error
	RPCServerError    RPCCode = -32000 // generic server-side errors
)

const (
	lowestServerError   RPCCode = -32099
	rpcReverted         RPCCode = 3      // with a text of the contract
	rpcLimitExceeded    RPCCode = -32005 // a rate limit, or the size of what was asked for
	rpcResponseTooLarge RPCCode = -32003 // go-ethereum
	rpcAnswerTooLarge   RPCCode = -32008 // reth
)

// Error returns the meaning of the code, such as "method not found".
func (c RPCCode) Error() string {
	meaning := map[RPCCode]string{
		RPCParseError: "parse error", RPCInvalidRequest: "invalid request", RPCMethodNotFound: "method not found",
		RPCInvalidParams: "invalid params", RPCInternalError: "internal error",
	}[c]
	if c.ofServer() {
		meaning = "server error"
	}
	return cmp.Or(meaning, "error "+strconv.Itoa(int(c)))
}

func (c RPCCode) ofServer() bool { return lowestServerError <= c && c <= RPCServerError }

// RPCError is an error that a node returned (interface 2.8, 7.3).
type RPCError struct {
	// Code is the code that the node sent, or 0. errors.Is matches it, and matches
	// [RPCServerError] for every code of that range.
	Code RPCCode

	// Message is the text that the node sent, up to 64 KiB, with the secrets of the
	// [RPCConfig] replaced by [redacted]. It may quote the call. If the error is a
	// string instead of an object, Message holds it.
	Message string

	// Data is what the node sent, unchanged, or nil. The interface specifies a
	// string; nodes also send objects. If a contract reverted a call, it has what the
	// contract returned, which abi.UnpackRevert of go-ethereum decodes. Data can
	// quote a credential of the request, so do not log it. The text of the error is
	// safe to log.
	Data json.RawMessage
}

// Error returns the code and the message in less than 500 bytes on one line.
func (e *RPCError) Error() string {
	return fmt.Sprintf("JSON-RPC error %d: %s", int(e.Code), cmp.Or(excerpt(e.Message), e.Code.Error()))
}

// Is reports whether target is the [RPCCode] of e.
func (e *RPCError) Is(target error) bool {
	code, ok := target.(RPCCode)
	return ok && (e.Code == code || code == RPCServerError && e.Code.ofServer())
}

// maxMessage limits how much of a foreign text is kept in a field.
const maxMessage = 64 << 10

// rpcFailure is an error of any shape, or null. Its text is redacted, but not its
// data.
type rpcFailure struct {
	err     *RPCError // nil for null
	secrets *redact.Redactor
}

func (f *rpcFailure) read(x *reader) {
	switch x.kind() {
	case 'n':
		x.skip()
		return
	case '{':
	default:
		f.err = &RPCError{Message: f.secrets.Beginning(textOf(x.raw()), maxMessage)}
		return
	}
	var code, message, data unread
	x.members("code", &code, "message", &message, "data", &data)
	e := &RPCError{Message: f.secrets.Beginning(textOf(message), maxMessage)}
	if n, err := strconv.Atoi(textOf(code)); err == nil {
		e.Code = RPCCode(n)
	}
	if !data.absent() {
		e.Data = bytes.Clone(data)
	}
	f.err = e
}

// textOf returns the text of a JSON string, or any other JSON unchanged.
func textOf(raw []byte) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// HTTPError is an answer without HTTP success, or one that is not JSON-RPC, such as
// the error page of a proxy. [errors.As] finds the [*RPCError] of the body, if it
// had one.
type HTTPError struct {
	Status     int           // HTTP status
	RetryAfter time.Duration // the delay that the answer asked for, or 0

	// Excerpt is the beginning of a body that is not JSON-RPC, on one line, with the
	// secrets of the [RPCConfig] replaced by [redacted]. It may quote the call.
	Excerpt string

	inside *RPCError
}

// Error returns the status, and the node's error or the excerpt.
func (e *HTTPError) Error() string {
	text := "HTTP " + strconv.Itoa(e.Status)
	if e.RetryAfter > 0 {
		text += " (retry after " + e.RetryAfter.String() + ")"
	}
	if e.inside != nil {
		return text + ": " + e.inside.Error()
	}
	return text + `, not JSON-RPC: "` + e.Excerpt + `"`
}

// Unwrap returns the [*RPCError] of the body, if it had one.
func (e *HTTPError) Unwrap() error {
	if e.inside == nil {
		return nil
	}
	return e.inside
}

// failure returns the error of an answer without HTTP success or JSON-RPC.
func (r *RPC) failure(a *answer, inside *RPCError) error {
	failure := &HTTPError{Status: a.status, RetryAfter: a.retryAfter(r.transport.now()), inside: inside}
	if inside == nil {
		failure.Excerpt = r.secrets.Line(string(a.body[:min(len(a.body), maxMessage)]), maxExcerpt)
	}
	return r.mark(failure, inside, a)
}

// isRetryable reports whether a failed call may succeed later. The error of the
// node decides, whatever the HTTP status: some nodes send a revert with HTTP 500.
func isRetryable(status int, failed *RPCError) bool {
	if failed == nil || failed.Code == 0 {
		return retryableStatus(status)
	}
	code := failed.Code
	return isRateLimit(status, code) || code == rpcLimitExceeded || retryableStatus(int(code)) || // which proxies put there
		status == http.StatusServiceUnavailable && (code.ofServer() || code == RPCInternalError)
}

// isRateLimit reports whether a node limits how much is asked of it, which passes.
// QuickNode, Base, TheRPC and proxies have codes for that; -32005 has a second meaning.
func isRateLimit(status int, code RPCCode) bool {
	return code != rpcReverted && (status == http.StatusTooManyRequests ||
		slices.Contains([]RPCCode{-32007, -32016, -32029, http.StatusTooManyRequests}, code))
}

func retryableStatus(status int) bool {
	return status/100 == 5 || slices.Contains([]int{http.StatusRequestTimeout,
		http.StatusTooEarly, http.StatusTooManyRequests}, status)
}

// mark marks the error of an answer, which holds the node's, if it is retryable, such as
// a rate limit.
func (r *RPC) mark(err error, inside *RPCError, a *answer) error {
	if isRetryable(a.status, inside) {
		return &retryableError{error: err, after: a.retryAfter(r.transport.now())}
	}
	return err
}

// failedAsNode reports whether another node may answer: this one could not be
// reached, is overloaded, or is no node. An error of the call is not such a failure.
func failedAsNode(err error) bool {
	if err == nil {
		return false // without the allocations below
	}
	var status *HTTPError
	var failed *RPCError
	var retryable *retryableError
	var limit *limitError
	switch {
	case errors.As(err, &limit):
		return false
	case errors.As(err, &status) && status.inside == nil:
		return status.Status != http.StatusRequestEntityTooLarge
	case !errors.As(err, &status) && errors.As(err, &failed):
		return false
	default:
		return errors.As(err, &retryable)
	}
}

// withMethod adds the method to an error, and keeps a retryable mark outermost.
func withMethod(method string, err error) error {
	if err == nil {
		return nil
	}
	if retryable, ok := err.(*retryableError); ok {
		return &retryableError{error: withMethod(method, retryable.error), after: retryable.after}
	}
	return bounded(fmt.Errorf("ramp: %s: %w", method, err))
}
