package ramp

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/token-ramp/ramp-go/internal/wire"
)

// Bounds of an amount. Every quantity of a chain or a game fits, and a number such
// as 1e999999999 costs nothing.
const (
	maxAmountText   = 256 // bytes of input that are read
	maxAmountDigits = 100 // digits before the point, and also after it
)

// Amount is an exact decimal quantity: of an asset in whole units of the game, or of tokens, not of their
// smallest units. The interface writes amounts as numbers (its
// sections 2.2, 2.5 and 6) and balances as decimal strings (section 2.4). Both are read
// from their text and never rounded, so that 2^53+1, 10^30 and 0.5 stay exact.
//
// The zero value is 0. Amounts with equal values are equal under ==: 1.0 and 1e0 are 1.
//
// JSON has an amount as a number, and other codecs as the text of String. BSON, which can do neither,
// is refused. A column of text, whole numbers or type DECIMAL can be scanned into an amount. Do not
// pass an amount itself to a statement of database/sql. Pass what [Amount.Int64] returns, or pass
// what String returns and CAST it to DECIMAL in the statement. Without the CAST, the database can
// round a text that is added to a number.
type Amount struct {
	text string // canonical: no exponent, no redundant zeros, "" for 0
}

// NewAmount returns n as an amount.
func NewAmount(n int64) Amount {
	if n == 0 {
		return Amount{}
	}
	return Amount{text: strconv.FormatInt(n, 10)}
}

// ParseAmount reads a decimal number in JSON syntax: 5, -0.5, 1e30. It fails for other
// text, and for more than 100 digits on a side of the point.
func ParseAmount(s string) (Amount, error) {
	text, err := canonicalAmount(s)
	if err != nil {
		return Amount{}, fmt.Errorf("ramp: the amount %w", err)
	}
	return Amount{text: text}, nil
}

var (
	errNotNumber   = errors.New("is not a decimal number")
	errAmountRange = errors.New("has too many digits")
)

// canonicalAmount converts a JSON number to its canonical form. The work is bounded
// by the length of s and by maxAmountDigits, not by the exponent.
func canonicalAmount(s string) (string, error) {
	if len(s) > maxAmountText {
		return "", errAmountRange
	}
	rest, negative := strings.CutPrefix(s, "-")
	mantissa, exponent := rest, 0
	if i := strings.IndexAny(rest, "eE"); i >= 0 {
		mantissa = rest[:i]
		digits := strings.TrimPrefix(rest[i+1:], "+")
		if !wire.IsDigits(strings.TrimPrefix(digits, "-")) || strings.HasPrefix(rest[i+1:], "+-") {
			return "", errNotNumber
		}
		const maxExponent = 10 * maxAmountText
		n, _ := strconv.Atoi(digits) // the nearest int, if it is out of range
		exponent = max(-maxExponent, min(n, maxExponent))
	}
	whole, fraction, hasPoint := strings.Cut(mantissa, ".")
	switch {
	case !wire.IsDigits(whole), hasPoint && !wire.IsDigits(fraction):
		return "", errNotNumber
	case len(whole) > 1 && whole[0] == '0':
		return "", errNotNumber // not JSON
	}

	digits := strings.TrimLeft(whole+fraction, "0")
	// point is how many digits are before the point.
	point := len(whole) + exponent - (len(whole) + len(fraction) - len(digits))
	digits = strings.TrimRight(digits, "0")
	switch {
	case digits == "":
		return "", nil
	case point > maxAmountDigits, len(digits)-point > maxAmountDigits:
		return "", errAmountRange
	case point <= 0:
		digits = "0." + strings.Repeat("0", -point) + digits
	case point >= len(digits):
		digits += strings.Repeat("0", point-len(digits))
	default:
		digits = digits[:point] + "." + digits[point:]
	}
	if negative {
		digits = "-" + digits
	}
	return digits, nil
}

// String returns the amount as a plain decimal: 1000000, -0.5.
func (a Amount) String() string { return cmp.Or(a.text, "0") }

// Sign returns -1, 0 or 1 for a negative, zero or positive amount.
func (a Amount) Sign() int {
	switch {
	case a.text == "":
		return 0
	case a.text[0] == '-':
		return -1
	default:
		return 1
	}
}

// Int64 returns the amount. It fails for a fraction, and if it does not fit.
func (a Amount) Int64() (int64, error) {
	n, err := strconv.ParseInt(a.String(), 10, 64)
	if err != nil {
		return 0, errors.New("ramp: the amount is not a whole number that fits an int64")
	}
	return n, nil
}

// Int returns the amount as a big integer. It fails for a fraction.
func (a Amount) Int() (*big.Int, error) {
	n, ok := new(big.Int).SetString(a.String(), 10)
	if !ok {
		return nil, errors.New("ramp: the amount is not a whole number")
	}
	return n, nil
}

// Rat returns the amount as an exact fraction.
func (a Amount) Rat() *big.Rat {
	r, _ := new(big.Rat).SetString(a.String()) // cannot fail: an amount holds a number
	return r
}

// Units returns the amount in the smallest units of a token with so many decimals: 1.5
// with 18 decimals is 1.5·10^18. It fails for a fraction of a unit.
func (a Amount) Units(decimals int) (*big.Int, error) {
	whole, fraction, _ := strings.Cut(a.String(), ".")
	zeros := max(0, decimals) - len(fraction)
	if zeros < 0 {
		return nil, fmt.Errorf("ramp: the amount %s has more than %d decimals", a, decimals)
	}
	// This cannot fail: there are digits only.
	units, _ := new(big.Int).SetString(whole+fraction+strings.Repeat("0", zeros), 10)
	return units, nil
}

// AmountOfUnits returns so many of the smallest units of a token as an amount. It fails
// if the amount has too many digits.
func AmountOfUnits(units *big.Int, decimals int) (Amount, error) {
	return ParseAmount(units.String() + "e-" + strconv.Itoa(max(0, decimals)))
}

func (a Amount) neg() Amount {
	if digits, negative := strings.CutPrefix(a.text, "-"); negative || digits == "" {
		return Amount{text: digits}
	}
	return Amount{text: "-" + a.text}
}

// Cmp returns -1, 0 or 1 if a is less than, equal to or greater than b.
func (a Amount) Cmp(b Amount) int {
	switch sign := a.Sign(); {
	case sign != b.Sign():
		return cmp.Compare(sign, b.Sign())
	case sign < 0:
		a, b = b.neg(), a.neg()
	}
	// Compare canonical forms as text, because a big.Rat of each takes a thousand
	// times as long, which matters for a large intent.
	whole, fraction, _ := strings.Cut(a.text, ".")
	otherWhole, otherFraction, _ := strings.Cut(b.text, ".")
	return cmp.Or(cmp.Compare(len(whole), len(otherWhole)),
		strings.Compare(whole, otherWhole), strings.Compare(fraction, otherFraction))
}

// Add returns a+b exactly. It fails only if the sum has too many digits.
func (a Amount) Add(b Amount) (Amount, error) {
	sum := new(big.Rat).Add(a.Rat(), b.Rat())
	// Neither term has more than maxAmountDigits decimal places, so neither has the
	// sum.
	return ParseAmount(sum.FloatString(maxAmountDigits))
}

// Equal reports whether a and b are the same amount.
func (a Amount) Equal(b Amount) bool { return a == b }

// MarshalText writes the amount as String does.
func (a Amount) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads what [ParseAmount] reads.
func (a *Amount) UnmarshalText(text []byte) error {
	read, err := ParseAmount(string(text))
	if err == nil {
		*a = read
	}
	return err
}

// MarshalBinary writes the same as MarshalText, for codecs that do not know that method.
func (a Amount) MarshalBinary() ([]byte, error) { return a.MarshalText() }

// UnmarshalBinary reads what MarshalBinary wrote.
func (a *Amount) UnmarshalBinary(text []byte) error { return a.UnmarshalText(text) }

// MarshalBSON fails: BSON uses neither MarshalText nor MarshalBinary, and would write every amount as {}.
func (Amount) MarshalBSON() ([]byte, error) { return nil, errNoBSON }

var errNoBSON = errors.New("ramp: BSON cannot hold this exactly: store its String, or all of it as JSON text")

// Scan reads a column of text, whole numbers or type DECIMAL, for database/sql and pgx. It rejects a
// float64, which has been rounded, and NULL, for which there is sql.Null[Amount].
func (a *Amount) Scan(column any) error {
	switch value := column.(type) {
	case string:
		return a.UnmarshalText([]byte(value))
	case []byte:
		return a.UnmarshalText(value)
	case int64:
		*a = NewAmount(value)
		return nil
	case uint64:
		return a.UnmarshalText(strconv.AppendUint(nil, value, 10))
	case float64, float32:
		return fmt.Errorf("ramp: an amount cannot be read from a %T, which may have been rounded: "+
			"select a DECIMAL or a text", value)
	default:
		return fmt.Errorf("ramp: an amount cannot be read from a column of type %T", value)
	}
}

// MarshalJSON writes a JSON number.
func (a Amount) MarshalJSON() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalJSON reads a JSON number, but no string and no null.
func (a *Amount) UnmarshalJSON(b []byte) error { return readWire(b, "amount", a) }

func (a *Amount) read(x *wire.Reader) {
	value := x.Raw()
	if len(value) <= maxAmountDigits && value[0] != '0' && wire.IsDigits(value) {
		a.text = string(value) // already canonical
		return
	}
	if !wire.IsNumber(value) {
		x.Mismatch("a number", value)
		return
	}
	text, err := canonicalAmount(string(value[:min(len(value), maxAmountText+1)]))
	if err != nil {
		x.Fault("must be a number of at most %d digits on either side of the point", maxAmountDigits)
		return
	}
	a.text = text
}

// Quantity is a whole number of up to 256 bits as chains write them: hex with 0x, a
// JSON number, or a decimal string. It is written in the form in which it was read.
// The zero value means absent, and so do null, "" and "0x". Compare quantities with Equal.
type Quantity struct {
	_     [0]func() // forbids ==, which would compare addresses
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

// Equal reports whether q and p are the same number, in any form, or are both absent.
func (q Quantity) Equal(p Quantity) bool {
	return q.Present() == p.Present() && (!q.Present() || q.Big().Cmp(p.Big()) == 0)
}

// Uint64 returns the number. It fails if the quantity is absent, or needs more than 64
// bits.
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

// MarshalJSON writes the number in the form in which it was read, or null.
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

// MarshalText writes the number without quotes, in hex if it was read in hex. An absent one is "".
func (q Quantity) MarshalText() ([]byte, error) {
	if !q.Present() {
		return nil, nil
	}
	text, err := q.MarshalJSON()
	return bytes.Trim(text, `"`), err
}

// UnmarshalText reads a hex number with 0x, a decimal number, or "".
func (q *Quantity) UnmarshalText(text []byte) error {
	return readWire(strconv.AppendQuote(nil, string(text)), "quantity", q)
}

// MarshalBinary writes the same as MarshalText, for codecs that do not know that method.
func (q Quantity) MarshalBinary() ([]byte, error) { return q.MarshalText() }

// UnmarshalBinary reads what MarshalBinary wrote.
func (q *Quantity) UnmarshalBinary(text []byte) error { return q.UnmarshalText(text) }

// MarshalBSON fails: BSON uses neither MarshalText nor MarshalBinary, and would write every quantity as {}.
func (Quantity) MarshalBSON() ([]byte, error) { return nil, errNoBSON }

// UnmarshalJSON reads every form of a whole number of up to 256 bits.
func (q *Quantity) UnmarshalJSON(b []byte) error { return readWire(b, "quantity", q) }

func (q *Quantity) read(x *wire.Reader) {
	value := x.Raw()
	var err error
	digits, form, base := value, formNumber, 10
	switch {
	case wire.IsNothing(value):
		return
	case value[0] == '"':
		digits, form = x.Unquoted(value), formDecimal
		if len(digits) >= 2 && digits[0] == '0' && digits[1] == 'x' {
			digits, form, base = digits[2:], formHex, 16
			if len(digits) == 0 {
				return
			}
		}
	}
	if base == 10 && (!wire.IsDigits(digits) || digits[0] == '0') { // an exponent, a fraction, a sign
		var whole string
		whole, err = canonicalAmount(string(digits[:min(len(digits), maxAmountText+1)]))
		digits = []byte(whole)
	}
	if err != nil || !q.set(form, digits, base) {
		x.Mismatch("a whole number of at most 256 bits", value)
	}
}

// set sets the zero value to unsigned digits; no digits mean 0. It reports whether
// they are valid and have at most 256 bits.
func (q *Quantity) set(form quantityForm, digits []byte, base int) bool {
	digits = bytes.TrimLeft(digits, "0")
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
