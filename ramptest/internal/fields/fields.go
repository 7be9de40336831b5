// Package fields writes values as the fields of a line, and reads them again, much faster
// than JSON. A type lists its fields once, for both.
package fields

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unique"
)

// Lister is a value that consists of fields.
type Lister interface {
	// Fields passes pointers to all fields to f, always in the same order.
	Fields(f *Fields)
}

// Fields is a line that is being written or read. It contains no tab and no newline.
type Fields struct {
	line    []byte
	rest    string // what is not read yet
	reading bool
	wrong   bool // a field is missing, or has another form
}

const separator = "|"

// Write returns the line of a value.
func Write(value Lister) []byte {
	var f Fields
	value.Fields(&f)
	return f.line
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

// Values writes or reads fields. Each is a pointer, or a slice of bytes to fill.
func (f *Fields) Values(fields ...any) {
	for _, field := range fields {
		if f.reading {
			f.read(field)
		} else {
			f.line = append(append(f.line, text(field)...), separator...)
		}
	}
}

func text(field any) string {
	switch v := field.(type) {
	case *string:
		if !strings.ContainsAny(*v, "\\\t\n"+separator) {
			return *v
		}
		return strings.NewReplacer(`\`, `\\`, separator, `\p`, "\t", `\t`, "\n", `\n`).Replace(*v)
	case *bool:
		return strconv.FormatBool(*v)[:1]
	case *int:
		return strconv.Itoa(*v)
	case *int64:
		return strconv.FormatInt(*v, 10)
	case *uint64:
		return strconv.FormatUint(*v, 10)
	case *time.Time:
		return v.Format(time.RFC3339Nano)
	case []byte:
		return base64.RawStdEncoding.EncodeToString(v)
	case *[]byte:
		return base64.RawStdEncoding.EncodeToString(*v)
	case **big.Int:
		if *v == nil {
			return ""
		}
		return (*v).String()
	default:
		panic(fmt.Sprintf("fields: a field cannot be a %T", field))
	}
}

func (f *Fields) read(field any) {
	text, rest, ok := strings.Cut(f.rest, separator)
	f.rest = rest
	var err error
	switch v := field.(type) {
	case *string:
		if strings.Contains(text, `\`) {
			text = strings.NewReplacer(`\\`, `\`, `\p`, separator, `\t`, "\t", `\n`, "\n").Replace(text)
		}
		*v = unique.Make(text).Value() // many lines have the same
	case *bool:
		*v, err = strconv.ParseBool(text)
	case *int:
		*v, err = strconv.Atoi(text)
	case *int64:
		*v, err = strconv.ParseInt(text, 10, 64)
	case *uint64:
		*v, err = strconv.ParseUint(text, 10, 64)
	case *time.Time:
		*v, err = time.Parse(time.RFC3339Nano, text)
	case []byte:
		var data []byte
		data, err = base64.RawStdEncoding.DecodeString(text)
		copy(v, data)
		ok = ok && len(data) == len(v)
	case *[]byte:
		*v, err = base64.RawStdEncoding.DecodeString(text)
	case **big.Int:
		if text != "" {
			var valid bool
			*v, valid = new(big.Int).SetString(text, 10)
			ok = ok && valid
		}
	}
	f.wrong = f.wrong || !ok || err != nil
}
