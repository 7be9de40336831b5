package ramp

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/google/uuid"
)

// parseObject reads a body that must be one JSON object and nothing more, and
// reports what is wrong as an [*InvalidError].
func parseObject(body []byte, into json.Unmarshaler) error {
	if trimmed := bytes.TrimLeft(body, " \t\r\n"); len(trimmed) == 0 || trimmed[0] != '{' {
		return invalid("body", "must be one JSON object")
	}
	err := into.UnmarshalJSON(body)
	var wrong *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong) && wrong.Field != "":
		problem := "must be " + wanted(wrong.Type)
		if found := got(wrong.Value); found != "" {
			problem += ", not " + found
		}
		return invalid(wrong.Field, "%s", problem)
	case errors.As(err, &syntax):
		return invalid("body", "must be one JSON object")
	default:
		return invalid("body", "holds a value of the wrong form")
	}
}

// wrongType is the error that encoding/json completes with the path of the
// field. What was there instead is described, not shown.
func wrongType[T any](got string) error {
	return &json.UnmarshalTypeError{Value: got, Type: reflect.TypeFor[T]()}
}

// wanted says in words what a field must be.
func wanted(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[Amount]():
		return "a number"
	case reflect.TypeFor[Quantity]():
		return "a whole number of at most 256 bits"
	case reflect.TypeFor[Digest](), reflect.TypeFor[common.Hash]():
		return "32 bytes in hex with 0x"
	case reflect.TypeFor[common.Address]():
		return "20 bytes in hex with 0x"
	case reflect.TypeFor[hexutil.Bytes]():
		return "hex with 0x"
	case reflect.TypeFor[uuid.UUID]():
		return "a UUID"
	}
	switch t.Kind() {
	case reflect.Struct:
		return "an object"
	case reflect.Slice:
		return "an array"
	case reflect.Bool:
		return "a boolean"
	default:
		return "a string"
	}
}

// got says in words what encoding/json, or wrongType, found instead. The value
// itself, which some of its messages hold, is left out; "" says nothing.
func got(value string) string {
	kind, _, _ := strings.Cut(value, " ")
	switch kind {
	case "a", "an", "null":
		return value
	case "array", "object":
		return "an " + kind
	case "bool":
		return "a boolean"
	case "string", "number":
		return "a " + kind
	default:
		return ""
	}
}

// describe names the kind of a JSON value that has the wrong type or range.
func describe(b []byte) string {
	switch b[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}

// decode is json.Unmarshal for a type that decodes itself through a copy named
// plain, which has no place in the path of an error.
func decode(b []byte, into any) error {
	err := json.Unmarshal(b, into)
	if err == nil {
		return nil
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		wrong.Field = strings.TrimPrefix(wrong.Field, "plain.")
	}
	return err
}

// loose reads text that decides nothing: a string or a number, and "" for all
// else.
type loose string

func (l *loose) UnmarshalJSON(b []byte) error {
	var text string
	switch {
	case b[0] == '-', '0' <= b[0] && b[0] <= '9':
		text = string(b)
	case b[0] == '"':
		_ = json.Unmarshal(b, &text) // a literal of valid JSON
	}
	*l = loose(text)
	return nil
}

// marshal is json.Marshal without the escapes that only HTML needs.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// isHex says whether s is one hex digit or more.
func isHex(s string) bool {
	return s != "" && strings.Trim(s, "0123456789abcdefABCDEF") == ""
}
