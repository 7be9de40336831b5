package ramp

import (
	"cmp"
	"encoding/json"
	"errors"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/token-ramp/ramp-go/internal/wire"
)

// Receipt is the outcome of a transaction. It reads the receipts of the result
// webhook (interface 6) and of JSON-RPC (4.4), which leave out different fields.
// A field that is missing, null or empty is zero.
type Receipt struct {
	// The fields of the interface; From, To and FeePayer are in JSON-RPC only. Type is 0x2, 0x7 (fee
	// delegated) or another. CumulativeGasUsed is that of the block, up to this transaction.
	// ContractAddress is zero if none was created. nil Logs are written as []. Raw is the unchanged
	// receipt.
	Type              Quantity        `json:"type,omitzero"`
	Root              hexutil.Bytes   `json:"root,omitzero"`
	Status            Quantity        `json:"status,omitzero"` // 1 for success; see [Receipt.Succeeded]
	CumulativeGasUsed Quantity        `json:"cumulativeGasUsed,omitzero"`
	LogsBloom         hexutil.Bytes   `json:"logsBloom,omitzero"`
	Logs              []Log           `json:"logs"`
	TransactionHash   common.Hash     `json:"transactionHash"`
	ContractAddress   common.Address  `json:"contractAddress"`
	GasUsed           Quantity        `json:"gasUsed,omitzero"`
	EffectiveGasPrice Quantity        `json:"effectiveGasPrice,omitzero"`
	BlockHash         common.Hash     `json:"blockHash"`
	BlockNumber       Quantity        `json:"blockNumber,omitzero"`
	TransactionIndex  Quantity        `json:"transactionIndex,omitzero"`
	From              common.Address  `json:"from,omitzero"`
	To                common.Address  `json:"to,omitzero"`
	FeePayer          common.Address  `json:"feePayer,omitzero"`
	Raw               json.RawMessage `json:"-"`
}

// Succeeded reports whether the status is 1. A receipt without a status neither
// succeeded nor failed; check Status.Present first.
func (r *Receipt) Succeeded() bool {
	n, err := r.Status.Uint64()
	return err == nil && n == 1
}

// UnmarshalJSON reads either kind of receipt and keeps its bytes in Raw.
func (r *Receipt) UnmarshalJSON(b []byte) error { return readWire(b, "receipt", r) }

var receiptNames = wire.MemberNames[Receipt]()

func (r *Receipt) read(x *wire.Reader) {
	m := x.Mark()
	r.Raw = x.Object(receiptNames, &r.Type, &r.Root, &r.Status, &r.CumulativeGasUsed, &r.LogsBloom,
		(*logList)(&r.Logs), &r.TransactionHash, &r.ContractAddress, &r.GasUsed, &r.EffectiveGasPrice,
		&r.BlockHash, &r.BlockNumber, &r.TransactionIndex, &r.From, &r.To, &r.FeePayer)
	x.Forgive(m, "status", "logs", "transactionHash", "blockHash", "blockNumber")
}

// MarshalJSON writes the receipt as in the webhook, and nil Logs as [].
func (r Receipt) MarshalJSON() ([]byte, error) {
	type plain Receipt
	if r.Logs == nil {
		r.Logs = []Log{}
	}
	return wire.Marshal(plain(r))
}

// Log is an event of a contract (interface 6, receipt.logs).
type Log struct {
	// The fields of the interface; nil Topics are written as [].
	Address          common.Address `json:"address"`
	Topics           []common.Hash  `json:"topics"`
	Data             hexutil.Bytes  `json:"data"`
	BlockNumber      Quantity       `json:"blockNumber,omitzero"`
	TransactionHash  common.Hash    `json:"transactionHash"`
	TransactionIndex Quantity       `json:"transactionIndex,omitzero"`
	BlockHash        common.Hash    `json:"blockHash"`
	BlockTimestamp   Quantity       `json:"blockTimestamp,omitzero"` // in seconds since 1970, or 0
	LogIndex         Quantity       `json:"logIndex,omitzero"`
	Removed          bool           `json:"removed"` // by a chain reorganization

	// Unreadable reports that a part of this log could not be read in a node's receipt, and that it
	// decides what the event is. The part is zero here. Other unreadable parts do not set
	// Unreadable.
	Unreadable bool `json:"-"`
}

// UnmarshalJSON reads a log.
func (l *Log) UnmarshalJSON(b []byte) error { return readWire(b, "log", l) }

var logNames = wire.MemberNames[Log]()

func (l *Log) read(x *wire.Reader) {
	m := x.Mark()
	x.Object(logNames, &l.Address, &l.Topics, &l.Data, &l.BlockNumber, &l.TransactionHash,
		&l.TransactionIndex, &l.BlockHash, &l.BlockTimestamp, &l.LogIndex, &l.Removed)
	x.Forgive(m, "address", "topics", "data", "blockNumber", "transactionHash", "logIndex", "removed")
}

// readInReceipt reads a log among those of other contracts: what a node says of one in a form
// that cannot be read must not hide the others.
func (l *Log) readInReceipt(x *wire.Reader) {
	m := x.Mark()
	l.read(x)
	l.Unreadable = x.Overlook(m)
}

// logList are the logs of a receipt.
type logList []Log

func (l *logList) read(x *wire.Reader) {
	limit := wire.MaxReceiptLogs
	if x.Root() != "body" { // the answer of a node, which is trusted more
		limit = wire.MaxListEntries
	}
	*l = wire.ReadList(x, 1, limit, (*Log).readInReceipt)
}

// MarshalJSON writes nil Topics as an empty array.
func (l Log) MarshalJSON() ([]byte, error) {
	type plain Log
	if l.Topics == nil {
		l.Topics = []common.Hash{}
	}
	return wire.Marshal(plain(l))
}

// Transfer is a transfer of tokens, of ERC-20 or ERC-721.
type Transfer struct {
	// Value is that of ERC-20, in smallest units, and TokenID the piece of ERC-721; the other is nil.
	// From is the zero address for a mint, and To usually for a burn.
	Token    common.Address `json:"token"`
	From     common.Address `json:"from"`
	To       common.Address `json:"to"`
	Value    *big.Int       `json:"value,omitempty"`
	TokenID  *big.Int       `json:"token_id,omitempty"`
	LogIndex Quantity       `json:"log_index"`
}

// Transfers returns the transfers of tokens among the logs, in their order. Logs of
// other events, and those that a reorganization removed, are left out.
func (r *Receipt) Transfers() []Transfer {
	var transfers []Transfer
	for i := range r.Logs {
		if t, ok := r.Logs[i].Transfer(); ok {
			transfers = append(transfers, t)
		}
	}
	return transfers
}

// transferTopic is the hash of Transfer(address,address,uint256), which ERC-20 and
// ERC-721 share.
var transferTopic = common.HexToHash("0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef")

// Transfer returns the transfer of tokens that the log is, and whether it is one. An
// ERC-721 transfer has the token ID as its fourth topic.
func (l *Log) Transfer() (t Transfer, ok bool) {
	if l.Removed || len(l.Topics) < 3 || l.Topics[0] != transferTopic {
		return Transfer{}, false
	}
	t.Token, t.LogIndex = l.Address, l.LogIndex
	t.From, t.To = common.BytesToAddress(l.Topics[1][:]), common.BytesToAddress(l.Topics[2][:])
	switch {
	case len(l.Topics) == 3 && len(l.Data) == 32:
		t.Value = new(big.Int).SetBytes(l.Data)
	case len(l.Topics) == 4 && len(l.Data) == 0:
		t.TokenID = l.Topics[3].Big()
	default:
		return Transfer{}, false
	}
	return t, true
}

// Transaction is a transaction as a node describes it. Unknown types are read too.
// A field that is missing, null or empty is zero. Hash and From are not verified.
type Transaction struct {
	// The fields of the Ethereum specification, with amounts in wei. To is nil if it creates a
	// contract. The position in the chain is zero if it is in no block. FeePayer pays the gas of type
	// 0x7, and FV, FR and FS are its signature. Raw is the unchanged transaction.
	Type                 Quantity        `json:"type,omitzero"`
	Hash                 common.Hash     `json:"hash"`
	ChainID              Quantity        `json:"chainId,omitzero"`
	Nonce                Quantity        `json:"nonce,omitzero"`
	From                 common.Address  `json:"from"`
	To                   *common.Address `json:"to"`
	Value                Quantity        `json:"value,omitzero"`
	Gas                  Quantity        `json:"gas,omitzero"`
	GasPrice             Quantity        `json:"gasPrice,omitzero"`
	Input                hexutil.Bytes   `json:"input"`
	MaxFeePerGas         Quantity        `json:"maxFeePerGas,omitzero"`
	MaxPriorityFeePerGas Quantity        `json:"maxPriorityFeePerGas,omitzero"`
	BlockHash            common.Hash     `json:"blockHash,omitzero"`
	BlockNumber          Quantity        `json:"blockNumber,omitzero"`
	TransactionIndex     Quantity        `json:"transactionIndex,omitzero"`
	V                    Quantity        `json:"v,omitzero"`
	R                    Quantity        `json:"r,omitzero"`
	S                    Quantity        `json:"s,omitzero"`
	FeePayer             common.Address  `json:"feePayer,omitzero"`
	FV                   Quantity        `json:"fv,omitzero"`
	FR                   Quantity        `json:"fr,omitzero"`
	FS                   Quantity        `json:"fs,omitzero"`
	Raw                  json.RawMessage `json:"-"`
}

// UnmarshalJSON reads a transaction and keeps its bytes in Raw.
func (t *Transaction) UnmarshalJSON(b []byte) error { return readWire(b, "transaction", t) }

var transactionNames = wire.MemberNames[Transaction]()

func (t *Transaction) read(x *wire.Reader) {
	m := x.Mark()
	t.Raw = x.Structure(transactionNames, t)
	x.Forgive(m, "hash", "chainId", "from", "to", "feePayer")
}

// BlockRef refers to a block: by a number with [AtBlock], or by a tag of the Ethereum
// specification, such as [Latest] or "finalized". The empty BlockRef means [Latest].
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
		return nil,
			errors.New("a block must be latest, safe, finalized, earliest, pending, or a number from AtBlock")
	}
	return []byte(b), nil
}

// TransactionRequest is a transaction or a call. The node fills in the fields that are
// zero.
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
