package ramp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
)

// BlockRef says which block a call is about: a tag, or a number from [AtBlock].
// The zero value is [Latest].
type BlockRef string

// The block tags of the Ethereum specification.
const (
	Latest    BlockRef = "latest"    // the newest block
	Safe      BlockRef = "safe"      // the newest that is safe from reorganisation, in all likelihood
	Finalized BlockRef = "finalized" // the newest that cannot be replaced any more
	Earliest  BlockRef = "earliest"  // the first the node has
	Pending   BlockRef = "pending"   // the next block, as the node would make it
)

// AtBlock refers to the block with number n.
func AtBlock(n uint64) BlockRef { return BlockRef(hexutil.EncodeUint64(n)) }

// MarshalText writes what a node reads.
func (b BlockRef) MarshalText() ([]byte, error) {
	if b == "" {
		b = Latest
	}
	return []byte(b), nil
}

// BlockNumber returns the number of the most recent block: eth_blockNumber
// (interface 4.4).
func (r *RPC) BlockNumber(ctx context.Context) (uint64, error) {
	return r.number(ctx, "eth_blockNumber")
}

// ChainID returns the number that transactions of this chain are signed for:
// eth_chainId, of the Ethereum specification.
func (r *RPC) ChainID(ctx context.Context) (*big.Int, error) {
	return r.quantity(ctx, "eth_chainId")
}

// NetVersion returns the current network ID, as a rule a decimal number:
// net_version (interface 4.4).
func (r *RPC) NetVersion(ctx context.Context) (string, error) {
	var id any
	if err := r.Call(ctx, &id, "net_version"); err != nil {
		return "", err
	}
	switch id := id.(type) {
	case string:
		return id, nil
	case float64:
		return strconv.FormatFloat(id, 'f', -1, 64), nil
	default:
		return "", errors.New("ramp: net_version: the result is neither a string nor a number")
	}
}

// Balance returns what an address has, in wei: eth_getBalance (interface 4.4).
func (r *RPC) Balance(ctx context.Context, address common.Address, at BlockRef) (*big.Int, error) {
	return r.quantity(ctx, "eth_getBalance", address, at)
}

// TransactionCount returns the number of transactions from an address, which
// is the nonce of its next one: eth_getTransactionCount (interface 4.4).
func (r *RPC) TransactionCount(ctx context.Context, address common.Address, at BlockRef) (uint64, error) {
	return r.number(ctx, "eth_getTransactionCount", address, at)
}

// BlockByNumber returns a block, with its transactions if full, else with their
// hashes alone: eth_getBlockByNumber (interface 4.4). The error wraps
// [ErrNotFound] if there is no such block.
func (r *RPC) BlockByNumber(ctx context.Context, at BlockRef, full bool) (*Block, error) {
	return found[Block](ctx, r, "eth_getBlockByNumber", at, full)
}

// BlockByHash is [RPC.BlockByNumber] for a hash: eth_getBlockByHash (interface
// 4.4).
func (r *RPC) BlockByHash(ctx context.Context, hash common.Hash, full bool) (*Block, error) {
	return found[Block](ctx, r, "eth_getBlockByHash", hash, full)
}

// Transaction returns a transaction, in a block or not:
// eth_getTransactionByHash (interface 4.4). The error wraps [ErrNotFound] if the
// node knows none of that hash.
func (r *RPC) Transaction(ctx context.Context, hash common.Hash) (*Transaction, error) {
	return found[Transaction](ctx, r, "eth_getTransactionByHash", hash)
}

// Receipt returns the outcome of a transaction: eth_getTransactionReceipt
// (interface 4.4). The error wraps [ErrNotFound] as long as it is in no block;
// see [RPC.WaitReceipt].
func (r *RPC) Receipt(ctx context.Context, hash common.Hash) (*Receipt, error) {
	return found[Receipt](ctx, r, "eth_getTransactionReceipt", hash)
}

// SendRawTransaction submits a signed transaction and returns its hash as the
// node has it: eth_sendRawTransaction (interface 4.4). It is sent once, see
// [RPCConfig].Resend. After an error other than an [*RPCError] or
// [ErrWrongChain] nobody knows whether it arrived: ask for [RPC.Transaction].
func (r *RPC) SendRawTransaction(ctx context.Context, raw []byte) (common.Hash, error) {
	const method = "eth_sendRawTransaction"
	var hash common.Hash
	if !r.resend {
		err := r.Call(ctx, &hash, method, hexutil.Bytes(raw))
		return hash, err
	}
	ctx, op := r.transport.begin(ctx, OperationRPC, method)
	err := r.attempts(ctx, true, func() error { return r.once(ctx, &hash, method, []any{hexutil.Bytes(raw)}) })
	var refused *RPCError
	if errors.As(err, &refused) {
		// Perhaps for the transaction itself, that came with an earlier attempt.
		var known Transaction
		if r.Call(ctx, &known, "eth_getTransactionByHash", transactionHash(raw)) == nil {
			hash, err = known.Hash, nil
		}
	}
	r.record(ctx, op, err)
	return hash, err
}

// transactionHash is where a node should have a raw transaction. It serves for
// asking only; what counts is the hash that the node answers with.
func transactionHash(raw []byte) common.Hash {
	const feeDelegated, dynamicFee = 0x7, 0x2
	if len(raw) > 0 && raw[0] == feeDelegated {
		// The sender signed a transaction of type 2, the first thing in the list,
		// and its hash is that of both.
		list, _, _ := rlp.SplitList(raw[1:]) // nothing, if it is no list
		if _, rest, err := rlp.SplitList(list); err == nil {
			return crypto.Keccak256Hash([]byte{dynamicFee}, list[:len(list)-len(rest)])
		}
	}
	return crypto.Keccak256Hash(raw)
}

// SendTransaction has the node sign and submit a transaction from one of its
// own accounts, and returns the hash: eth_sendTransaction (interface 4.4). It is
// never sent twice. After an error other than an [*RPCError] or [ErrWrongChain]
// nobody knows whether it arrived.
func (r *RPC) SendTransaction(ctx context.Context, t TransactionRequest) (common.Hash, error) {
	var hash common.Hash
	err := r.Call(ctx, &hash, "eth_sendTransaction", t)
	return hash, err
}

// CallContract calls a function of a contract without changing anything, and
// returns the bytes that it returns: eth_call (interface 4.4). When the contract
// refuses, the error is an [*RPCError] with a [RPCError.Revert].
func (r *RPC) CallContract(ctx context.Context, t TransactionRequest, at BlockRef) ([]byte, error) {
	var returned hexutil.Bytes
	err := r.Call(ctx, &returned, "eth_call", t, at)
	return returned, err
}

// EstimateGas returns how much gas a transaction would need on top of a block:
// eth_estimateGas (interface 4.4). When a contract would refuse it, the error is
// an [*RPCError] with a [RPCError.Revert].
func (r *RPC) EstimateGas(ctx context.Context, t TransactionRequest, at BlockRef) (uint64, error) {
	return r.number(ctx, "eth_estimateGas", t, at)
}

// Logs returns the logs that match a filter, oldest first: eth_getLogs
// (interface 4.4). No matching logs are an empty slice; an answer of null is an
// error, because it says nothing about the logs.
func (r *RPC) Logs(ctx context.Context, f LogFilter) ([]Log, error) {
	var logs []Log
	err := r.Call(ctx, &logs, "eth_getLogs", f)
	return logs, err
}

// found calls a method whose result may be null.
func found[T Block | Transaction | Receipt](ctx context.Context, r *RPC, method string, params ...any) (*T, error) {
	result := new(T)
	if err := r.Call(ctx, result, method, params...); err != nil {
		return nil, err
	}
	return result, nil
}

func (r *RPC) quantity(ctx context.Context, method string, params ...any) (*big.Int, error) {
	q, err := r.present(ctx, method, params)
	return q.Big(), err
}

func (r *RPC) number(ctx context.Context, method string, params ...any) (uint64, error) {
	q, err := r.present(ctx, method, params)
	if err != nil {
		return 0, err
	}
	n, err := q.Uint64()
	if err != nil {
		return 0, fmt.Errorf("ramp: %s: the result needs more than 64 bits", method)
	}
	return n, nil
}

func (r *RPC) present(ctx context.Context, method string, params []any) (q Quantity, err error) {
	err = r.Call(ctx, &q, method, params...)
	if err == nil && !q.Present() {
		err = within(method, errNullResult)
	}
	return q, err
}

// TransactionRequest is a transaction that is yet to be made, or a call. What is
// left zero, the node chooses.
type TransactionRequest struct {
	From                 common.Address  // the sender
	To                   *common.Address // the receiver; nil creates a contract
	Gas                  uint64          // the most gas it may use
	GasPrice             *big.Int        // wei for a unit of gas
	MaxFeePerGas         *big.Int        // wei for a unit of gas, instead of GasPrice
	MaxPriorityFeePerGas *big.Int        // wei for a unit of gas, of the former
	Value                *big.Int        // wei
	Nonce                *uint64         // number of the sender's transactions before it
	Data                 []byte          // the call of a contract, or the code of a new one
}

// MarshalJSON writes the object that a node reads, with hex strings (interface
// 4.4).
func (t TransactionRequest) MarshalJSON() ([]byte, error) {
	for _, n := range []*big.Int{t.GasPrice, t.MaxFeePerGas, t.MaxPriorityFeePerGas, t.Value} {
		if n != nil && (n.Sign() < 0 || n.BitLen() > 256) {
			return nil, errors.New("a number of wei must be 0 or above, and of at most 256 bits")
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

// LogFilter says which logs are asked for (interface 4.4). The zero filter means
// all of the latest block.
type LogFilter struct {
	FromBlock BlockRef         // the first block
	ToBlock   BlockRef         // the last block
	BlockHash common.Hash      // one block, instead of FromBlock and ToBlock
	Addresses []common.Address // of any of these contracts; none means of all
	Topics    [][]common.Hash  // for each topic the ones that match; none means any
}

// MarshalJSON writes the filter object that a node reads.
func (f LogFilter) MarshalJSON() ([]byte, error) {
	wire := struct {
		FromBlock *BlockRef        `json:"fromBlock,omitempty"`
		ToBlock   *BlockRef        `json:"toBlock,omitempty"`
		BlockHash common.Hash      `json:"blockHash,omitzero"`
		Addresses []common.Address `json:"address,omitempty"`
		Topics    [][]common.Hash  `json:"topics,omitempty"`
	}{&f.FromBlock, &f.ToBlock, f.BlockHash, f.Addresses, f.Topics}
	if f.BlockHash != (common.Hash{}) {
		if f.FromBlock != "" || f.ToBlock != "" {
			return nil, errors.New("a log filter has either BlockHash, or FromBlock and ToBlock")
		}
		wire.FromBlock, wire.ToBlock = nil, nil
	}
	return marshal(wire)
}

// Transaction is a transaction as a node describes it. Every type is read, those
// that are new too; what is missing, null or empty is zero here. It is not
// checked: hash and sender are what the node says.
type Transaction struct {
	Type                 Quantity        `json:"type,omitzero"` // 0x2 and 0x7 (fee delegated) are usual
	Hash                 common.Hash     `json:"hash"`
	ChainID              Quantity        `json:"chainId,omitzero"`
	Nonce                Quantity        `json:"nonce,omitzero"` // number of the sender's transactions before it
	From                 common.Address  `json:"from"`
	To                   *common.Address `json:"to"`                            // nil creates a contract
	Value                Quantity        `json:"value,omitzero"`                // wei
	Gas                  Quantity        `json:"gas,omitzero"`                  // the most gas it may use
	GasPrice             Quantity        `json:"gasPrice,omitzero"`             // wei for a unit of gas
	MaxFeePerGas         Quantity        `json:"maxFeePerGas,omitzero"`         // wei for a unit of gas
	MaxPriorityFeePerGas Quantity        `json:"maxPriorityFeePerGas,omitzero"` // wei for a unit of gas
	Input                hexutil.Bytes   `json:"input"`                         // the call of a contract, or the code of a new one

	// Where it is; zero as long as it is in no block.
	BlockHash        common.Hash `json:"blockHash,omitzero"`
	BlockNumber      Quantity    `json:"blockNumber,omitzero"`
	TransactionIndex Quantity    `json:"transactionIndex,omitzero"`

	// The sender's signature.
	V Quantity `json:"v,omitzero"`
	R Quantity `json:"r,omitzero"`
	S Quantity `json:"s,omitzero"`

	// Of a type 0x7 only: who pays the gas, and that account's signature.
	FeePayer common.Address `json:"feePayer,omitzero"`
	FV       Quantity       `json:"fv,omitzero"`
	FR       Quantity       `json:"fr,omitzero"`
	FS       Quantity       `json:"fs,omitzero"`

	// Raw is the transaction as it came, with the fields that this type does not
	// know.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON reads a transaction and keeps its bytes in Raw. A field of a
// wrong form is an [*InvalidError].
func (t *Transaction) UnmarshalJSON(b []byte) error { return unmarshalWire(b, "transaction", t) }

func (t *Transaction) read(x *reader) {
	start := x.at
	for name := range x.members("blockHash", "blockNumber", "from", "gas", "gasPrice", "maxFeePerGas", "maxPriorityFeePerGas",
		"hash", "input", "nonce", "to", "transactionIndex", "value", "type", "chainId", "v", "r", "s", "feePayer", "fv", "fr", "fs") {
		switch name {
		case "blockHash":
			x.fixed(t.BlockHash[:])
		case "blockNumber":
			t.BlockNumber.read(x)
		case "from":
			x.fixed(t.From[:])
		case "gas":
			t.Gas.read(x)
		case "gasPrice":
			t.GasPrice.read(x)
		case "maxFeePerGas":
			t.MaxFeePerGas.read(x)
		case "maxPriorityFeePerGas":
			t.MaxPriorityFeePerGas.read(x)
		case "hash":
			x.fixed(t.Hash[:])
		case "input":
			t.Input = x.blob()
		case "nonce":
			t.Nonce.read(x)
		case "to":
			if value := x.raw(); !isNothing(value) {
				t.To = new(common.Address)
				x.decodeFixed(value, t.To[:])
			}
		case "transactionIndex":
			t.TransactionIndex.read(x)
		case "value":
			t.Value.read(x)
		case "type":
			t.Type.read(x)
		case "chainId":
			t.ChainID.read(x)
		case "v":
			t.V.read(x)
		case "r":
			t.R.read(x)
		case "s":
			t.S.read(x)
		case "feePayer":
			x.fixed(t.FeePayer[:])
		case "fv":
			t.FV.read(x)
		case "fr":
			t.FR.read(x)
		case "fs":
			t.FS.read(x)
		}
	}
	t.Raw = x.since(start)
}

// Block is a block as a node describes it. What is missing, null or empty is
// zero here; its hash is what the node says.
type Block struct {
	Number           Quantity       `json:"number,omitzero"` // absent from a pending block
	Hash             common.Hash    `json:"hash"`            // zero for a pending block
	ParentHash       common.Hash    `json:"parentHash"`
	Timestamp        Quantity       `json:"timestamp,omitzero"` // seconds since 1970
	Miner            common.Address `json:"miner"`
	GasLimit         Quantity       `json:"gasLimit,omitzero"`
	GasUsed          Quantity       `json:"gasUsed,omitzero"`
	BaseFeePerGas    Quantity       `json:"baseFeePerGas,omitzero"` // wei for a unit of gas
	Size             Quantity       `json:"size,omitzero"`          // bytes
	StateRoot        common.Hash    `json:"stateRoot"`
	TransactionsRoot common.Hash    `json:"transactionsRoot"`
	ReceiptsRoot     common.Hash    `json:"receiptsRoot"`
	ExtraData        hexutil.Bytes  `json:"extraData"`

	// TransactionHashes are those of all transactions in the block.
	TransactionHashes []common.Hash `json:"-"`

	// Transactions are the transactions themselves, nil if the block was asked
	// for without.
	Transactions []Transaction `json:"transactions,omitempty"`

	// Raw is the block as it came, with the fields that this type does not know.
	Raw json.RawMessage `json:"-"`
}

// UnmarshalJSON reads a block and keeps its bytes in Raw. A field of a wrong form
// is an [*InvalidError].
func (b *Block) UnmarshalJSON(text []byte) error { return unmarshalWire(text, "block", b) }

func (b *Block) read(x *reader) {
	start := x.at
	for name := range x.members("baseFeePerGas", "extraData", "gasLimit", "gasUsed", "hash", "miner", "number", "parentHash",
		"receiptsRoot", "size", "stateRoot", "timestamp", "transactions", "transactionsRoot") {
		switch name {
		case "baseFeePerGas":
			b.BaseFeePerGas.read(x)
		case "extraData":
			b.ExtraData = x.blob()
		case "gasLimit":
			b.GasLimit.read(x)
		case "gasUsed":
			b.GasUsed.read(x)
		case "hash":
			x.fixed(b.Hash[:])
		case "miner":
			x.fixed(b.Miner[:])
		case "number":
			b.Number.read(x)
		case "parentHash":
			x.fixed(b.ParentHash[:])
		case "receiptsRoot":
			x.fixed(b.ReceiptsRoot[:])
		case "size":
			b.Size.read(x)
		case "stateRoot":
			x.fixed(b.StateRoot[:])
		case "timestamp":
			b.Timestamp.read(x)
		case "transactions":
			b.readTransactions(x)
		case "transactionsRoot":
			x.fixed(b.TransactionsRoot[:])
		}
	}
	b.Raw = x.since(start)
}

// readTransactions reads a list of hashes or of whole transactions.
func (b *Block) readTransactions(x *reader) {
	for range x.elements(maxListEntries) {
		var hash common.Hash
		if x.kind() == '{' {
			var t Transaction
			t.read(x)
			hash = t.Hash
			b.Transactions = append(b.Transactions, t)
		} else {
			readHash(&hash, x)
		}
		b.TransactionHashes = append(b.TransactionHashes, hash)
	}
}
