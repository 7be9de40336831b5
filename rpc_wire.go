package ramp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go/internal/redact"
)

// request is a JSON-RPC request (interface 2.8).
type request struct {
	Version string `json:"jsonrpc"`
	ID      uint64 `json:"id"`
	Method  string `json:"method"`
	Params  []any  `json:"params"`
}

func newRequest(id uint64, method string, params []any) request {
	if params == nil {
		params = []any{}
	}
	return request{Version: "2.0", ID: id, Method: method, Params: params}
}

// envelope is a JSON-RPC answer (interface 2.8).
type envelope struct {
	version, id unread
	result      unread // nil if it is missing, null if the node sent null
	failure     rpcFailure
}

// readEnvelope reads one answer. ok is false unless it is an object without
// duplicate names.
func (r *RPC) readEnvelope(x *reader) (e *envelope, ok bool) {
	faults := x.faults
	e = &envelope{failure: rpcFailure{secrets: r.endpoint.secrets}}
	x.object(
		field{"jsonrpc", &e.version},
		field{"id", &e.id},
		field{"result", &e.result},
		field{"error", &e.failure},
	)
	return e, x.faults == faults
}

// readAnswer reads a body that is one answer.
func (r *RPC) readAnswer(body []byte) (e *envelope, ok bool) {
	if !json.Valid(body) {
		return new(envelope), false
	}
	x := newReader(body, "answer")
	return r.readEnvelope(&x)
}

// read calls readResult, and adds to [ErrNotFound] what was not found and on which
// chain.
func (r *RPC) read(raw []byte, into any, params []any) error {
	err := readResult(raw, into, r.endpoint.secrets)
	if err != ErrNotFound {
		return err
	}
	if r.pin.id != 0 {
		err = fmt.Errorf("%w (chain ID %d)", err, r.pin.id)
	} else {
		err = fmt.Errorf("%w; if it should exist, the node may be on another network: set RPCConfig.ChainID to detect that", err)
	}
	if len(params) > 0 {
		switch subject := params[0].(type) { // other types may not be fit for a log
		case common.Hash:
			err = fmt.Errorf("%s: %w", subject, err)
		case BlockRef:
			err = fmt.Errorf("%s: %w", cmp.Or(subject, Latest), err)
		}
	}
	return err
}

// readResult decodes a result, which is valid JSON, into a pointer. The error of a
// caller's type may quote the result, and so is redacted.
func readResult(raw []byte, into any, secrets *redact.Redactor) error {
	var err error
	switch into := into.(type) {
	case nil:
		return nil
	case *[]Log:
		if string(raw) == "null" {
			return errNullResult // no logs are []
		}
		x := newReader(raw, "logs") // logs keep none of their bytes
		*into = readList(&x, 1, maxListEntries, (*Log).read)
		err = x.wrong.err()
	case readable:
		switch into.(type) {
		case *Receipt, *Transaction, *Block:
			if string(raw) == "null" {
				return ErrNotFound
			}
		}
		err = readWire(raw, "result", into)
	default:
		err = secrets.Error(json.Unmarshal(raw, into))
	}
	if err != nil {
		return fmt.Errorf("cannot decode the result: %w", err)
	}
	return nil
}

var errNullResult = errors.New("the result is null")

var errWrongID = errors.New("the answer has the id of another request")
