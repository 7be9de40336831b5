package ramp

import (
	"errors"
	"math/big"
	"strconv"
)

// Quantity is a whole number of up to 256 bits as chains write them: hex with 0x, a
// JSON number, or a decimal string. It is written in the form in which it was read.
// The zero value means absent, and so do null, "" and "0x".
type Quantity struct {
	form  quantityForm
	small uint64
	large *big.Int // instead of small, if the number needs more than 64 bits
}

type quantityForm uint8

const (
	formAbsent quantityForm = iota
	formHex
	formNumber
	formDecimal
)

// NewQuantity returns n as a quantity that is written in hex.
func NewQuantity(n uint64) Quantity { return Quantity{form: formHex, small: n} }

// Present reports whether the quantity is not absent.
func (q Quantity) Present() bool { return q.form != formAbsent }

// IsZero reports whether the quantity is absent, for omitzero of encoding/json. It
// is false for the number 0.
func (q Quantity) IsZero() bool { return !q.Present() }

// Uint64 returns the number. It fails if the quantity is absent or needs more than
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

// Big returns the number in a new big.Int, or nil if the quantity is absent.
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

// String returns the number in decimal, or "absent".
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

// MarshalJSON writes the number in the form in which it was read, or null if it is
// absent.
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

// UnmarshalJSON reads every form. For a number that is negative, has a fraction or
// needs more than 256 bits, the error is an [*InvalidError].
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
		whole, err := canonicalAmount(string(digits[:min(len(digits), maxAmountText+1)]))
		if err != nil {
			x.mismatch("a whole number of at most 256 bits", value)
			return
		}
		digits = []byte(whole)
	}
	if !q.set(form, digits, base) {
		x.mismatch("a whole number of at most 256 bits", value)
	}
}

// set sets the zero value to unsigned digits; no digits mean 0. It reports whether
// they are valid and have at most 256 bits.
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
