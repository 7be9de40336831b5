package ramp

import (
	"encoding/json"
	"errors"
	"math/big"
	"strconv"

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

// Quantity is a whole number of at most 256 bits as chains write them: hex with
// 0x, a JSON number, or a decimal string. It may be absent, which is its zero
// value; null, "" and "0x" are absent too. It is written in the form in which it
// came.
type Quantity struct {
	form  quantityForm
	small uint64
	large *big.Int // instead of small, when it needs more than 64 bits
}

type quantityForm uint8

const (
	formAbsent quantityForm = iota
	formHex
	formNumber
	formDecimal
)

// NewQuantity returns n as a quantity that is written as hex.
func NewQuantity(n uint64) Quantity { return Quantity{form: formHex, small: n} }

// Present says whether there was a number at all.
func (q Quantity) Present() bool { return q.form != formAbsent }

// IsZero is the opposite of Present; encoding/json asks it for omitzero. A
// quantity that is there and 0 is not zero in this sense.
func (q Quantity) IsZero() bool { return !q.Present() }

// Uint64 returns the number, and an error when it is absent or needs more than
// 64 bits.
func (q Quantity) Uint64() (uint64, error) {
	switch {
	case !q.Present():
		return 0, errors.New("ramp: the quantity is absent")
	case q.large != nil:
		return 0, errors.New("ramp: the quantity needs more than 64 bits")
	default:
		return q.small, nil
	}
}

// Big returns the number, and nil when it is absent. The caller owns it.
func (q Quantity) Big() *big.Int {
	switch {
	case !q.Present():
		return nil
	case q.large != nil:
		return new(big.Int).Set(q.large)
	default:
		return new(big.Int).SetUint64(q.small)
	}
}

// String returns the number in decimal, and "absent" when there is none.
func (q Quantity) String() string {
	switch {
	case !q.Present():
		return "absent"
	case q.large != nil:
		return q.large.String()
	default:
		return strconv.FormatUint(q.small, 10)
	}
}

// MarshalJSON writes the number in the form in which it was read, and null when
// it is absent.
func (q Quantity) MarshalJSON() ([]byte, error) {
	switch q.form {
	case formHex:
		if q.large != nil {
			return []byte(`"0x` + q.large.Text(16) + `"`), nil
		}
		return []byte(`"0x` + strconv.FormatUint(q.small, 16) + `"`), nil
	case formNumber:
		return []byte(q.String()), nil
	case formDecimal:
		return []byte(`"` + q.String() + `"`), nil
	default:
		return []byte("null"), nil
	}
}

// UnmarshalJSON reads every form. What is negative, has a fraction or needs more
// than 256 bits is an [*InvalidError].
func (q *Quantity) UnmarshalJSON(b []byte) error { return unmarshalWire(b, "quantity", q) }

func (q *Quantity) read(x *reader) {
	value := x.raw()
	digits, form, base := value, formNumber, 10
	switch {
	case isNothing(value):
		return
	case value[0] == '"':
		digits, form = x.unquoted(value), formDecimal
		if len(digits) >= 2 && digits[0] == '0' && digits[1] == 'x' {
			digits, form, base = digits[2:], formHex, 16
			if len(digits) == 0 {
				return
			}
		}
	}
	if base == 10 && (!isDigits(digits) || digits[0] == '0') { // an exponent, a fraction, a sign
		plain, err := canonicalAmount(string(digits[:min(len(digits), maxAmountText+1)]))
		if err != nil {
			x.mismatch("a whole number of at most 256 bits", value)
			return
		}
		digits = []byte(plain)
	}
	if !q.set(form, digits, base) {
		x.mismatch("a whole number of at most 256 bits", value)
	}
}

// set sets the zero value to digits without a sign; none stand for 0. It reports
// whether they are digits, and of at most 256 bits.
func (q *Quantity) set(form quantityForm, digits []byte, base int) bool {
	for len(digits) > 0 && digits[0] == '0' {
		digits = digits[1:]
	}
	const maxDigits = 78 // decimal digits of 2^256; hex needs fewer
	if len(digits) > maxDigits {
		return false
	}
	if len(digits) == 0 {
		q.form = form
		return true
	}
	n, err := strconv.ParseUint(string(digits), base, 64)
	if err == nil {
		q.form, q.small = form, n
		return true
	}
	large, ok := new(big.Int), false
	if errors.Is(err, strconv.ErrRange) {
		large, ok = large.SetString(string(digits), base)
	}
	if !ok || large.BitLen() > 256 {
		return false
	}
	q.form, q.large = form, large
	return true
}
