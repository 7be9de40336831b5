package ramp

import (
	"encoding/json"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// Receipt is the outcome of a transaction. It reads the receipts of the result
// webhook (interface 6) and of JSON-RPC (4.4), which leave out different fields.
// Every field but Status may be missing. A field that is missing, null or empty is
// zero.
type Receipt struct {
	Type              Quantity       `json:"type,omitzero"`              // transaction type; 0x2 and 0x7 (fee delegated) occur
	Root              hexutil.Bytes  `json:"root,omitzero"`              // state root, usually empty
	Status            Quantity       `json:"status,omitzero"`            // 1 for success; see [Receipt.Succeeded]
	CumulativeGasUsed Quantity       `json:"cumulativeGasUsed,omitzero"` // gas used in the block up to this transaction
	LogsBloom         hexutil.Bytes  `json:"logsBloom,omitzero"`         // 256 bytes
	Logs              []Log          `json:"logs"`                       // event logs; nil is written as []
	TransactionHash   common.Hash    `json:"transactionHash"`            // as the node sent it, never recomputed
	ContractAddress   common.Address `json:"contractAddress"`            // the contract that was created; zero for none
	GasUsed           Quantity       `json:"gasUsed,omitzero"`           // by this transaction
	EffectiveGasPrice Quantity       `json:"effectiveGasPrice,omitzero"` // wei per unit of gas
	BlockHash         common.Hash    `json:"blockHash"`                  // the block of the transaction
	BlockNumber       Quantity       `json:"blockNumber,omitzero"`       // the block of the transaction
	TransactionIndex  Quantity       `json:"transactionIndex,omitzero"`  // position in the block

	// These are in JSON-RPC only.
	From     common.Address `json:"from,omitzero"`     // the sender
	To       common.Address `json:"to,omitzero"`       // the receiver; zero if a contract was created
	FeePayer common.Address `json:"feePayer,omitzero"` // the account that paid the gas of a type 0x7

	// Raw is the unchanged receipt, including the fields that this type does not
	// have.
	Raw json.RawMessage `json:"-"`
}

// Succeeded reports whether the status is 1. A receipt without a status neither
// succeeded nor failed; check Status.Present first.
func (r *Receipt) Succeeded() bool {
	n, err := r.Status.Uint64()
	return err == nil && n == 1
}

// UnmarshalJSON reads either kind of receipt and keeps its bytes in Raw. The error
// for a malformed field is an [*InvalidError].
func (r *Receipt) UnmarshalJSON(b []byte) error { return unmarshalWire(b, "receipt", r) }

func (r *Receipt) read(x *reader) {
	start := x.at
	for name := range x.members("type", "root", "status", "cumulativeGasUsed", "logsBloom", "logs", "transactionHash",
		"contractAddress", "gasUsed", "effectiveGasPrice", "blockHash", "blockNumber", "transactionIndex", "from", "to", "feePayer") {
		switch name {
		case "type":
			r.Type.read(x)
		case "root":
			r.Root = x.blob()
		case "status":
			r.Status.read(x)
		case "cumulativeGasUsed":
			r.CumulativeGasUsed.read(x)
		case "logsBloom":
			r.LogsBloom = x.blob()
		case "logs":
			r.Logs = readList(x, 1, maxReceiptLogs, (*Log).read)
		case "transactionHash":
			x.fixed(r.TransactionHash[:])
		case "contractAddress":
			x.fixed(r.ContractAddress[:])
		case "gasUsed":
			r.GasUsed.read(x)
		case "effectiveGasPrice":
			r.EffectiveGasPrice.read(x)
		case "blockHash":
			x.fixed(r.BlockHash[:])
		case "blockNumber":
			r.BlockNumber.read(x)
		case "transactionIndex":
			r.TransactionIndex.read(x)
		case "from":
			x.fixed(r.From[:])
		case "to":
			x.fixed(r.To[:])
		case "feePayer":
			x.fixed(r.FeePayer[:])
		}
	}
	r.Raw = x.since(start)
}

// MarshalJSON writes the receipt as in the result webhook, with nil Logs as an
// empty array.
func (r Receipt) MarshalJSON() ([]byte, error) {
	type plain Receipt
	if r.Logs == nil {
		r.Logs = []Log{}
	}
	return marshal(plain(r))
}

// Log is an event of a contract (interface 6, receipt.logs).
type Log struct {
	Address          common.Address `json:"address"`                   // emitting contract
	Topics           []common.Hash  `json:"topics"`                    // signature and indexed parameters; nil is written as []
	Data             hexutil.Bytes  `json:"data"`                      // non-indexed data
	BlockNumber      Quantity       `json:"blockNumber,omitzero"`      // the block of the event
	TransactionHash  common.Hash    `json:"transactionHash"`           // the transaction of the event
	TransactionIndex Quantity       `json:"transactionIndex,omitzero"` // of the transaction in the block
	BlockHash        common.Hash    `json:"blockHash"`                 // the block of the event
	BlockTimestamp   Quantity       `json:"blockTimestamp,omitzero"`   // seconds since 1970; 0 on some chains
	LogIndex         Quantity       `json:"logIndex,omitzero"`         // of the event in the block
	Removed          bool           `json:"removed"`                   // true if removed by a chain reorganization
}

// UnmarshalJSON reads a log. A field that is missing, null or empty is zero. The
// error for a malformed field is an [*InvalidError].
func (l *Log) UnmarshalJSON(b []byte) error { return unmarshalWire(b, "log", l) }

func (l *Log) read(x *reader) {
	for name := range x.members("address", "topics", "data", "blockNumber", "transactionHash", "transactionIndex",
		"blockHash", "blockTimestamp", "logIndex", "removed") {
		switch name {
		case "address":
			x.fixed(l.Address[:])
		case "topics":
			l.Topics = readList(x, 3, maxLogTopics, readHash)
		case "data":
			l.Data = x.blob()
		case "blockNumber":
			l.BlockNumber.read(x)
		case "transactionHash":
			x.fixed(l.TransactionHash[:])
		case "transactionIndex":
			l.TransactionIndex.read(x)
		case "blockHash":
			x.fixed(l.BlockHash[:])
		case "blockTimestamp":
			l.BlockTimestamp.read(x)
		case "logIndex":
			l.LogIndex.read(x)
		case "removed":
			l.Removed = x.bool()
		}
	}
}

// readHash reads a hash of a list. null and "" are errors there.
func readHash(h *common.Hash, x *reader) { x.decodeFixed(x.raw(), h[:]) }

// MarshalJSON writes nil Topics as an empty array.
func (l Log) MarshalJSON() ([]byte, error) {
	type plain Log
	if l.Topics == nil {
		l.Topics = []common.Hash{}
	}
	return marshal(plain(l))
}
