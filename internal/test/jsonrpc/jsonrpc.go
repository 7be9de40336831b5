// Package jsonrpc is what the nodes of tests have in common: it reads the JSON-RPC requests that a node gets,
// one call or a batch, and writes the answers. What a node answers is its own.
package jsonrpc

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Call is a call of a request.
type Call struct {
	ID     json.RawMessage
	Method string
	Params []json.RawMessage
}

// Read returns the calls of a request, and whether they are a batch.
func Read(body []byte) (calls []Call, batch bool, err error) {
	if batch = bytes.HasPrefix(body, []byte("[")); !batch {
		body = slices.Concat([]byte("["), body, []byte("]"))
	}
	return calls, batch, json.Unmarshal(body, &calls)
}

// Raw is an answer behind its ID, such as `"result":"0x1"`.
type Raw string

// Answer answers a request. For each call, answer returns a result, a [Raw], or the message of an error.
func Answer(body []byte, answer func(Call) (result any, problem string)) ([]byte, error) {
	calls, batch, err := Read(body)
	if err != nil {
		return nil, err
	}
	var answers [][]byte
	for _, call := range calls {
		result, problem := answer(call)
		raw, ok := result.(Raw)
		if !ok {
			member := map[string]any{"result": result}
			if problem != "" {
				member = map[string]any{"error": map[string]any{"code": -32602, "message": problem}}
			}
			text, err := json.Marshal(member)
			if err != nil {
				return nil, err
			}
			raw = Raw(text[1 : len(text)-1])
		}
		answers = append(answers,
			slices.Concat([]byte(`{"jsonrpc":"2.0","id":`), call.ID, []byte(","), []byte(raw), []byte("}")))
	}
	text := bytes.Join(answers, []byte(","))
	if batch {
		text = slices.Concat([]byte("["), text, []byte("]"))
	}
	return text, nil
}
