package ramp

import (
	"encoding/json"
	"errors"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
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
