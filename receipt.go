package ramp

import (
	"encoding/json"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// Receipt is the outcome of a transaction. It reads the receipts of the result
// webhook (interface 6) and of JSON-RPC (4.4), which leave out different fields.
// Every field but Status may be missing. A field that is missing, null or empty is
// zero.
type Receipt struct {
	Type   Quantity      `json:"type,omitzero"`   // 0x2 and 0x7 (fee delegated) occur
	Root   hexutil.Bytes `json:"root,omitzero"`   // state root, usually empty
	Status Quantity      `json:"status,omitzero"` // 1 for success; see [Receipt.Succeeded]

	// CumulativeGasUsed is that of the block, up to this transaction.
	CumulativeGasUsed Quantity `json:"cumulativeGasUsed,omitzero"`

	LogsBloom hexutil.Bytes `json:"logsBloom,omitzero"` // 256 bytes
	Logs      []Log         `json:"logs"`               // events; nil is written as []

	// TransactionHash is as the node sent it, and never recomputed.
	TransactionHash common.Hash `json:"transactionHash"`

	// ContractAddress is that of the contract that was created, or zero.
	ContractAddress common.Address `json:"contractAddress"`

	GasUsed           Quantity    `json:"gasUsed,omitzero"`           // by this transaction
	EffectiveGasPrice Quantity    `json:"effectiveGasPrice,omitzero"` // wei per unit of gas
	BlockHash         common.Hash `json:"blockHash"`                  // of its block
	BlockNumber       Quantity    `json:"blockNumber,omitzero"`       // of its block
	TransactionIndex  Quantity    `json:"transactionIndex,omitzero"`  // in the block

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

var receiptNames = memberNames[Receipt]()

func (r *Receipt) read(x *reader) {
	start := x.at
	x.structure(receiptNames, r)
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
	Address common.Address `json:"address"` // emitting contract

	// Topics are the signature and the indexed parameters; nil is written as [].
	Topics []common.Hash `json:"topics"`

	Data             hexutil.Bytes `json:"data"`                      // non-indexed data
	BlockNumber      Quantity      `json:"blockNumber,omitzero"`      // the block of the event
	TransactionHash  common.Hash   `json:"transactionHash"`           // the transaction of the event
	TransactionIndex Quantity      `json:"transactionIndex,omitzero"` // its position in the block
	BlockHash        common.Hash   `json:"blockHash"`                 // the block of the event
	BlockTimestamp   Quantity      `json:"blockTimestamp,omitzero"`   // in seconds since 1970, or 0
	LogIndex         Quantity      `json:"logIndex,omitzero"`         // of the event in the block
	Removed          bool          `json:"removed"`                   // by a chain reorganization
}

// UnmarshalJSON reads a log. A field that is missing, null or empty is zero. The
// error for a malformed field is an [*InvalidError].
func (l *Log) UnmarshalJSON(b []byte) error { return unmarshalWire(b, "log", l) }

var logNames = memberNames[Log]()

func (l *Log) read(x *reader) { x.structure(logNames, l) }

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

// Transfer is a transfer of tokens, of ERC-20 or ERC-721. A mint comes from the zero
// address, and a burn usually goes to it.
type Transfer struct {
	Token    common.Address `json:"token"`              // the token contract
	From     common.Address `json:"from"`               // the zero address for a mint
	To       common.Address `json:"to"`                 // usually the zero address for a burn
	Value    *big.Int       `json:"value,omitempty"`    // ERC-20: in smallest units; else nil
	TokenID  *big.Int       `json:"token_id,omitempty"` // ERC-721: which piece; else nil
	LogIndex Quantity       `json:"log_index"`          // position of the event in the block
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
