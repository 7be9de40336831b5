package ramp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/token-ramp/ramp-go/internal/redact"
	"github.com/token-ramp/ramp-go/internal/transport"
	"github.com/token-ramp/ramp-go/internal/wire"
)

// BlockRef refers to a block: by a number with [AtBlock], or by a tag of the Ethereum
// specification, such as [Latest] or "finalized". Zero means [Latest].
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

// TransactionRequest is a transaction or a call. The node sets zero fields.
type TransactionRequest struct {
	// Amounts are in wei, GasPrice and fees per unit of gas. To is nil to create a contract with Data.
	From                 common.Address
	To                   *common.Address
	Gas                  uint64
	GasPrice             *big.Int
	MaxFeePerGas         *big.Int
	MaxPriorityFeePerGas *big.Int
	Value                *big.Int
	Nonce                *uint64
	Data                 []byte
}

// MarshalJSON writes the object for a node, with hex strings (interface 4.4).
func (t TransactionRequest) MarshalJSON() ([]byte, error) {
	for _, n := range []*big.Int{t.GasPrice, t.MaxFeePerGas, t.MaxPriorityFeePerGas, t.Value} {
		if n != nil && (n.Sign() < 0 || n.BitLen() > 256) {
			return nil, errors.New("an amount of wei must not be negative or need more than 256 bits")
		}
	}
	message := struct {
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
	return wire.Marshal(message)
}

// LogFilter selects logs (interface 4.4). The zero value selects those of the latest block.
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
	return wire.Marshal(plain(f))
}

// Block is a block as a node describes it. A field that is missing, null or empty
// is zero. The hash is not verified.
type Block struct {
	// The fields of the Ethereum specification. Number and Hash are zero for a pending block,
	// Timestamp is in seconds since 1970, BaseFeePerGas in wei. Transactions are nil unless requested.
	// Raw is the unchanged block.
	Number            Quantity        `json:"number,omitzero"`
	Hash              common.Hash     `json:"hash"`
	ParentHash        common.Hash     `json:"parentHash"`
	Timestamp         Quantity        `json:"timestamp,omitzero"`
	Miner             common.Address  `json:"miner"`
	GasLimit          Quantity        `json:"gasLimit,omitzero"`
	GasUsed           Quantity        `json:"gasUsed,omitzero"`
	BaseFeePerGas     Quantity        `json:"baseFeePerGas,omitzero"`
	Size              Quantity        `json:"size,omitzero"`
	StateRoot         common.Hash     `json:"stateRoot"`
	TransactionsRoot  common.Hash     `json:"transactionsRoot"`
	ReceiptsRoot      common.Hash     `json:"receiptsRoot"`
	ExtraData         hexutil.Bytes   `json:"extraData"`
	Transactions      []Transaction   `json:"transactions,omitempty"`
	TransactionHashes []common.Hash   `json:"-"`
	Raw               json.RawMessage `json:"-"`
}

// UnmarshalJSON reads a block and keeps its bytes in Raw.
func (b *Block) UnmarshalJSON(text []byte) error { return readWire(text, "block", b) }

var blockNames = wire.MemberNames[Block]()

func (b *Block) read(x *wire.Reader) {
	var list transactionList
	m := x.Mark()
	b.Raw = x.Structure(blockNames, b, &list) // the transactions are the last
	x.Forgive(m, "number", "hash", "timestamp", "transactions")
	b.TransactionHashes, b.Transactions = list.hashes, list.whole
}

// transactionList is a list of hashes or of whole transactions.
type transactionList struct {
	hashes []common.Hash
	whole  []Transaction
}

func (l *transactionList) read(x *wire.Reader) {
	for range x.Elements(wire.MaxListEntries) {
		var hash common.Hash
		if x.Kind() == '{' {
			l.whole = append(l.whole, Transaction{})
			t := &l.whole[len(l.whole)-1]
			t.read(x)
			hash = t.Hash
		} else {
			wire.ReadHash(&hash, x)
		}
		l.hashes = append(l.hashes, hash)
	}
}

// RPCCode is the code of an [RPCError], and an error: errors.Is(err, RPCCode(-32700)) finds a
// parse error (interface 7.3).
type RPCCode int

// The codes of a node that does not have what was asked for.
const (
	RPCMethodNotFound RPCCode = -32601 // the method does not exist
	RPCInvalidParams  RPCCode = -32602 // invalid parameters
)

const (
	rpcParseError       RPCCode = -32700
	rpcInvalidRequest   RPCCode = -32600
	rpcInternalError    RPCCode = -32603
	lowestServerError   RPCCode = -32099
	highestServerError  RPCCode = -32000
	rpcReverted         RPCCode = 3      // with a text of the contract
	rpcLimitExceeded    RPCCode = -32005 // a rate limit, or the size of what was asked for
	rpcResponseTooLarge RPCCode = -32003 // go-ethereum
	rpcAnswerTooLarge   RPCCode = -32008 // reth
)

// Error returns the meaning of the code, such as "method not found".
func (c RPCCode) Error() string {
	meaning := map[RPCCode]string{
		rpcParseError: "parse error", rpcInvalidRequest: "invalid request",
		RPCMethodNotFound: "method not found", RPCInvalidParams: "invalid params",
		rpcInternalError: "internal error",
	}[c]
	if c.ofServer() {
		meaning = "server error"
	}
	return cmp.Or(meaning, "error "+strconv.Itoa(int(c)))
}

func (c RPCCode) ofServer() bool { return lowestServerError <= c && c <= highestServerError }

// RPCError is an error that a node returned (interface 2.8, 7.3).
type RPCError struct {
	Code RPCCode // as the node sent it, or 0; errors.Is matches it

	// Message is the text that the node sent, redacted, up to 64 KiB. It may quote the call.
	Message string

	// Data is what the node sent, unchanged, or nil. The interface specifies a string; nodes also send
	// objects. If a contract reverted a call, it has what the contract returned, for abi.UnpackRevert
	// of go-ethereum. It can quote a credential of the request, so do not log it.
	Data json.RawMessage
}

// Error returns the code and the message in less than 500 bytes on one line.
func (e *RPCError) Error() string {
	return fmt.Sprintf("JSON-RPC error %d: %s", int(e.Code),
		cmp.Or(redact.Excerpt(e.Message), e.Code.Error()))
}

// Is reports whether target is the [RPCCode] of e.
func (e *RPCError) Is(target error) bool {
	code, ok := target.(RPCCode)
	return ok && e.Code == code
}

// maxMessage limits how much of a foreign text is kept in a field.
const maxMessage = 64 << 10

// rpcFailure is an error of any shape, or null. Its text is redacted, but not its
// data.
type rpcFailure struct {
	err     *RPCError // nil for null
	secrets *redact.Redactor
}

func (f *rpcFailure) read(x *wire.Reader) {
	switch x.Kind() {
	case 'n':
		x.Skip()
		return
	case '{':
	default:
		f.err = &RPCError{Message: f.secrets.Beginning(textOf(x.Raw()), maxMessage)}
		return
	}
	var code, message, data wire.Unread
	x.Members("code", &code, "message", &message, "data", &data)
	e := &RPCError{Message: f.secrets.Beginning(textOf(message), maxMessage)}
	if n, err := strconv.Atoi(textOf(code)); err == nil {
		e.Code = RPCCode(n)
	}
	if !data.Absent() {
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
// the error page of a proxy. [errors.As] also finds the [*RPCError] of its body.
type HTTPError struct {
	Status     int           // HTTP status
	RetryAfter time.Duration // the delay that the answer asked for, or 0
	Excerpt    string        // beginning of a body that is not JSON-RPC, on one line; may quote the call

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

// isRetryable reports whether a failed call may succeed later. The error of the
// node decides, whatever the HTTP status: some nodes send a revert with HTTP 500.
func isRetryable(status int, failed *RPCError) bool {
	if failed == nil || failed.Code == 0 {
		return retryableStatus(status)
	}
	code := failed.Code
	// which proxies put there
	return isRateLimit(status, code) || code == rpcLimitExceeded || retryableStatus(int(code)) ||
		status == http.StatusServiceUnavailable && (code.ofServer() || code == rpcInternalError)
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

// limitError is a rejection of a whole batch because of its size.
type limitError struct {
	error
	lasting bool // the number of calls is limited, and not the size of their answers
}

func (e *limitError) Unwrap() error { return e.error }

// failedAsNode reports whether another node may answer: this one could not be
// reached, is overloaded, or is no node. An error of the call is not such a failure.
func failedAsNode(err error) bool {
	if err == nil {
		return false // without the allocations below
	}
	var status *HTTPError
	var failed *RPCError
	var retryable *transport.Retryable
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

// isOutage reports whether the error of a check may pass without anybody's help: the node
// could not be reached or did not answer in time, or it or a proxy turned the call away.
func isOutage(err error) bool {
	var status *HTTPError
	var failed *RPCError
	var name *net.DNSError
	var connection *net.OpError
	switch {
	case errors.As(err, &status):
		return status.Status/100 == 5 || status.Status == http.StatusTooManyRequests
	case errors.As(err, &failed):
		return isRateLimit(0, failed.Code) || failed.Code == rpcLimitExceeded
	case errors.As(err, &name):
		return !name.IsNotFound // a typo
	default:
		return errors.As(err, &connection) || errors.Is(err, context.DeadlineExceeded) ||
			errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	}
}

// withMethod adds the method to an error, and keeps a retryable mark outermost.
func withMethod(method string, err error) error {
	if err == nil {
		return nil
	}
	if retryable, ok := err.(*transport.Retryable); ok {
		marked := *retryable
		marked.Err = withMethod(method, retryable.Err)
		return &marked
	}
	return redact.Bounded(fmt.Errorf("ramp: %s: %w", method, err))
}
