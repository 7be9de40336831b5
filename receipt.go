package ramp

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"reflect"
	"strconv"
	"strings"

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

// UnmarshalJSON reads either shape and keeps its bytes in Raw.
func (r *Receipt) UnmarshalJSON(b []byte) error {
	type plain Receipt
	wire := struct {
		*plain
		Root            lenient `json:"root"`
		LogsBloom       lenient `json:"logsBloom"`
		TransactionHash lenient `json:"transactionHash"`
		ContractAddress lenient `json:"contractAddress"`
		BlockHash       lenient `json:"blockHash"`
		From            lenient `json:"from"`
		To              lenient `json:"to"`
		FeePayer        lenient `json:"feePayer"`
	}{
		plain:           (*plain)(r),
		Root:            lenient{&r.Root},
		LogsBloom:       lenient{&r.LogsBloom},
		TransactionHash: lenient{&r.TransactionHash},
		ContractAddress: lenient{&r.ContractAddress},
		BlockHash:       lenient{&r.BlockHash},
		From:            lenient{&r.From},
		To:              lenient{&r.To},
		FeePayer:        lenient{&r.FeePayer},
	}
	err := decode(b, &wire)
	r.Raw = bytes.Clone(b)
	return err
}

// reportedReceipt is the receipt of a result, of which only the status decides
// anything; see [ParseResult].
type reportedReceipt Receipt

func (r *reportedReceipt) UnmarshalJSON(b []byte) error {
	err := (*Receipt)(r).UnmarshalJSON(b)
	if err == nil || b[0] != '{' {
		return err
	}
	var least struct {
		Status Quantity `json:"status"`
	}
	if err := json.Unmarshal(b, &least); err != nil {
		return err
	}
	*r = reportedReceipt{Status: least.Status, Raw: bytes.Clone(b)}
	return nil
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

// UnmarshalJSON reads a log; what is missing, null or empty is left zero.
func (l *Log) UnmarshalJSON(b []byte) error {
	type plain Log
	wire := struct {
		*plain
		Address         lenient `json:"address"`
		Data            lenient `json:"data"`
		TransactionHash lenient `json:"transactionHash"`
		BlockHash       lenient `json:"blockHash"`
	}{
		plain:           (*plain)(l),
		Address:         lenient{&l.Address},
		Data:            lenient{&l.Data},
		TransactionHash: lenient{&l.TransactionHash},
		BlockHash:       lenient{&l.BlockHash},
	}
	return decode(b, &wire)
}

// MarshalJSON writes topics as an array.
func (l Log) MarshalJSON() ([]byte, error) {
	type plain Log
	if l.Topics == nil {
		l.Topics = []common.Hash{}
	}
	return marshal(plain(l))
}

// lenient reads hex into a value, and leaves the value alone where a node says
// null or "" for nothing.
type lenient struct{ into json.Unmarshaler }

func (l lenient) UnmarshalJSON(b []byte) error {
	if string(b) == "null" || string(b) == `""` { // compared in place, without a copy
		return nil
	}
	if err := l.into.UnmarshalJSON(b); err != nil {
		return &json.UnmarshalTypeError{Value: describe(b), Type: reflect.TypeOf(l.into).Elem()}
	}
	return nil
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

// UnmarshalJSON reads every form. It refuses what is negative, has a fraction
// or needs more than 256 bits.
func (q *Quantity) UnmarshalJSON(b []byte) error {
	text, form := string(b), formNumber
	if b[0] == '"' {
		text, form = text[1:len(text)-1], formDecimal
	}
	digits, hex := strings.CutPrefix(text, "0x")
	switch {
	case string(b) == "null", text == "", hex && digits == "" && form == formDecimal:
		*q = Quantity{}
		return nil
	case hex && isHex(digits):
		return q.set(formHex, strings.TrimLeft(digits, "0"), 16, b)
	}
	plain, err := canonicalAmount(text)
	switch {
	case err != nil:
		return wrongType[Quantity](describe(b))
	case strings.HasPrefix(plain, "-"):
		return wrongType[Quantity]("a negative number")
	case strings.Contains(plain, "."):
		return wrongType[Quantity]("a fraction")
	}
	return q.set(form, plain, 10, b)
}

// set takes digits without sign and leading zeros; none stand for 0.
func (q *Quantity) set(form quantityForm, digits string, base int, b []byte) error {
	if digits == "" {
		*q = Quantity{form: form}
		return nil
	}
	if n, err := strconv.ParseUint(digits, base, 64); err == nil {
		*q = Quantity{form: form, small: n}
		return nil
	}
	const most = 78 // decimal digits of 2^256; hex needs fewer
	n, ok := new(big.Int), false
	if len(digits) <= most {
		n, ok = n.SetString(strings.Clone(digits), base) // so that the small ones stay off the heap
	}
	if !ok || n.BitLen() > 256 {
		return wrongType[Quantity](describe(b))
	}
	*q = Quantity{form: form, large: n}
	return nil
}
