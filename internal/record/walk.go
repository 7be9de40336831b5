package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// maxDepth is how deeply a body may be nested; the interface has seven levels.
const maxDepth = 64

var errNotJSON = errors.New("it is not one JSON value")

// leaf is a value of a JSON text that is no object and no list, or the beginning of one.
type leaf struct {
	path  string // receipt.logs[].topics[]
	start int    // in the text, with the quotes
	end   int
	value json.Token // a json.Delim for an object or a list
}

// kind names the JSON type of the value.
func (l leaf) kind() string {
	switch l.value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case json.Number:
		return "number"
	}
	if l.value == json.Delim('{') {
		return "object"
	}
	return "array"
}

// walk returns the values of a JSON text, in its order.
func walk(text []byte) (leaves []leaf, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value func(path string, depth int) error
	value = func(path string, depth int) error {
		before := int(d.InputOffset())
		token, err := d.Token()
		if err != nil || depth > maxDepth {
			return errNotJSON
		}
		end := int(d.InputOffset())
		start := before + len(text[before:end]) - len(bytes.TrimLeft(text[before:end], " \t\r\n,:"))
		leaves = append(leaves, leaf{path, start, end, token})
		for open, isOpen := token.(json.Delim); isOpen; {
			if !d.More() {
				_, err := d.Token() // the end of the object or the list
				return err
			}
			at := path + "[]"
			if open == '{' {
				name, err := d.Token()
				if err != nil {
					return errNotJSON
				}
				at = strings.TrimPrefix(path+"."+name.(string), ".")
			}
			if err := value(at, depth+1); err != nil {
				return errNotJSON
			}
		}
		return nil
	}
	if err := value("", 0); err != nil {
		return nil, errNotJSON
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errNotJSON
	}
	return leaves, nil
}
