package ramp

import (
	"cmp"
	"encoding/json"
	"errors"
	"math/big"
	"reflect"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
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
