package ramp

import (
	"encoding/json"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// Receipt is the outcome of a transaction. One type reads both shapes that
// occur: that of the result webhook (interface 6) and that of JSON-RPC (4.4),
// which differ in what they leave out. Every field but Status may be missing;
// what is missing, null or empty is zero here.
type Receipt struct {
	Type              Quantity       `json:"type,omitzero"`   // transaction type; 0x2 and 0x7 (fee delegated) occur
	Root              hexutil.Bytes  `json:"root,omitzero"`   // state root, usually empty
	Status            Quantity       `json:"status,omitzero"` // 1 for success; see [Receipt.Succeeded]
	CumulativeGasUsed Quantity       `json:"cumulativeGasUsed,omitzero"`
	LogsBloom         hexutil.Bytes  `json:"logsBloom,omitzero"` // 256 bytes
	Logs              []Log          `json:"logs"`               // event logs; nil is written as []
	TransactionHash   common.Hash    `json:"transactionHash"`    // as the node gave it, never recomputed
	ContractAddress   common.Address `json:"contractAddress"`    // the contract that was created; zero for none
	GasUsed           Quantity       `json:"gasUsed,omitzero"`
	EffectiveGasPrice Quantity       `json:"effectiveGasPrice,omitzero"` // wei for a unit of gas
	BlockHash         common.Hash    `json:"blockHash"`
	BlockNumber       Quantity       `json:"blockNumber,omitzero"`
	TransactionIndex  Quantity       `json:"transactionIndex,omitzero"`

	// Over JSON-RPC only.
	From     common.Address `json:"from,omitzero"`     // the sender
	To       common.Address `json:"to,omitzero"`       // the receiver; zero for a creation
	FeePayer common.Address `json:"feePayer,omitzero"` // who paid the gas of a type 0x7

	// Raw is the receipt as it came, with the fields that this type does not
	// know.
	Raw json.RawMessage `json:"-"`
}

// Succeeded says whether the receipt's status is 1. A receipt without a status
// did not succeed, but did not fail either: ask Status.Present first.
func (r *Receipt) Succeeded() bool {
	n, err := r.Status.Uint64()
	return err == nil && n == 1
}

// UnmarshalJSON reads either shape and keeps its bytes in Raw. A field of a
// wrong form is an [*InvalidError].
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

// MarshalJSON writes the shape of the result webhook, and logs as an array.
func (r Receipt) MarshalJSON() ([]byte, error) {
	type plain Receipt
	if r.Logs == nil {
		r.Logs = []Log{}
	}
	return marshal(plain(r))
}

// Log is an event of a contract (interface 6, receipt.logs).
type Log struct {
	Address          common.Address `json:"address"` // emitting contract
	Topics           []common.Hash  `json:"topics"`  // signature and indexed parameters; nil is written as []
	Data             hexutil.Bytes  `json:"data"`    // non-indexed data
	BlockNumber      Quantity       `json:"blockNumber,omitzero"`
	TransactionHash  common.Hash    `json:"transactionHash"`
	TransactionIndex Quantity       `json:"transactionIndex,omitzero"`
	BlockHash        common.Hash    `json:"blockHash"`
	BlockTimestamp   Quantity       `json:"blockTimestamp,omitzero"` // seconds since 1970; 0 on some chains
	LogIndex         Quantity       `json:"logIndex,omitzero"`
	Removed          bool           `json:"removed"` // true if removed by a chain reorganisation
}

// UnmarshalJSON reads a log. What is missing, null or empty is left zero; a
// field of a wrong form is an [*InvalidError].
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

// readHash reads an entry of a list, where null and "" are no hashes.
func readHash(h *common.Hash, x *reader) { x.decodeFixed(x.raw(), h[:]) }

// MarshalJSON writes topics as an array.
func (l Log) MarshalJSON() ([]byte, error) {
	type plain Log
	if l.Topics == nil {
		l.Topics = []common.Hash{}
	}
	return marshal(plain(l))
}
