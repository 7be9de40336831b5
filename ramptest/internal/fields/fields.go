// Package fields writes values as the fields of a line, and reads them again, much faster
// than JSON. A type lists its fields once, for both.
package fields

import (
	"encoding/base64"
	"errors"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unique"
)

// Lister is a value that consists of fields.
type Lister interface {
	// Fields calls a function of f for each field, always in the same order.
	Fields(f *Fields)
}

// Fields is a line that is being written or read. It contains no tab and no newline.
type Fields struct {
	line    strings.Builder
	rest    string // what is not read yet
	reading bool
	wrong   bool // a field is missing, or has another form
}

const separator = "|"

// Write returns the line of a value.
func Write(value Lister) []byte {
	var f Fields
	value.Fields(&f)
	return []byte(f.line.String())
}

// Read reads a value from its line.
func Read(line []byte, value Lister) error {
	f := Fields{rest: string(line), reading: true}
	value.Fields(&f)
	if f.wrong || f.rest != "" {
		return errors.New("the line has other fields")
	}
	return nil
}

// Reading reports whether the fields are being read.
func (f *Fields) Reading() bool { return f.reading }

// field reads a field with parse, or writes text.
func (f *Fields) field(text func() string, parse func(string) error) {
	if !f.reading {
		f.line.WriteString(text())
		f.line.WriteString(separator)
		return
	}
	field, rest, found := strings.Cut(f.rest, separator)
	f.rest = rest
	f.wrong = f.wrong || !found || parse(field) != nil
}

// Text is a field with any text.
func Text[T ~string](f *Fields, s *T) {
	f.field(func() string { return escape(string(*s)) }, func(field string) error {
		*s = T(strings.Clone(unescape(field))) // it would keep the whole line
		return nil
	})
}

// Word is a field with a text that many lines share, which is kept once.
func Word[T ~string](f *Fields, s *T) {
	f.field(func() string { return escape(string(*s)) }, func(field string) error {
		*s = T(unique.Make(unescape(field)).Value())
		return nil
	})
}

func escape(text string) string {
	if !strings.ContainsAny(text, "\\\t\n"+separator) {
		return text
	}
	return strings.NewReplacer(`\`, `\\`, separator, `\p`, "\t", `\t`, "\n", `\n`).Replace(text)
}

func unescape(field string) string {
	if !strings.Contains(field, `\`) {
		return field
	}
	return strings.NewReplacer(`\\`, `\`, `\p`, separator, `\t`, "\t", `\n`, "\n").Replace(field)
}

// Number is a field with an integer.
func Number[T ~int | ~int64 | ~uint64](f *Fields, n *T) {
	f.field(func() string {
		return strconv.FormatInt(int64(*n), 10)
	}, func(field string) error {
		value, err := strconv.ParseInt(field, 10, 64)
		*n = T(value)
		return err
	})
}

// Bool is a field that is true or false.
func (f *Fields) Bool(b *bool) {
	n := 0
	if *b {
		n = 1
	}
	Number(f, &n)
	*b = n == 1
}

// Bytes is a field that fills b.
func (f *Fields) Bytes(b []byte) {
	data := b
	f.Data(&data)
	f.wrong = f.wrong || len(data) != len(b)
	copy(b, data)
}

// Data is a field with any number of bytes.
func (f *Fields) Data(b *[]byte) {
	f.field(func() string {
		return base64.RawStdEncoding.EncodeToString(*b)
	}, func(field string) (err error) {
		*b, err = base64.RawStdEncoding.DecodeString(field)
		return err
	})
}

// Big is a field with an integer of any size, or nil.
func (f *Fields) Big(n **big.Int) {
	text := ""
	if *n != nil {
		text = (*n).String()
	}
	if Text(f, &text); !f.reading || text == "" {
		return
	}
	var ok bool
	*n, ok = new(big.Int).SetString(text, 10)
	f.wrong = f.wrong || !ok
}

// Time is a field with a time.
func (f *Fields) Time(t *time.Time) {
	f.field(func() string {
		return t.Format(time.RFC3339Nano)
	}, func(field string) (err error) {
		*t, err = time.Parse(time.RFC3339Nano, field)
		return err
	})
}
