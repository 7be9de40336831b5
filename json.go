package ramp

import (
	"bytes"
	"encoding/json"
)

// marshal is json.Marshal without the escapes that only HTML needs.
func marshal(v any) ([]byte, error) {
	b := bytes.NewBuffer(make([]byte, 0, 512)) // room for an answer or a request
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
