package ramp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go/internal/redact"
)

// request is what goes out (interface 2.8).
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

// envelope is what comes back (interface 2.8). Result is nil where there was
// none, and null where the node said so.
type envelope struct {
	ID     answerID
	Result json.RawMessage
	Error  *RPCError // "error":null is none
}

// readEnvelope takes one answer apart. It reports whether it is an object in
// which no name occurs twice.
func (r *RPC) readEnvelope(x *reader) (e envelope, ok bool) {
	faults := x.faults
	for name := range x.members("jsonrpc", "id", "result", "error") {
		switch name {
		case "id":
			e.ID = readAnswerID(x.raw())
		case "result":
			e.Result = x.raw()
		case "error":
			if x.kind() != 'n' {
				e.Error = readRPCError(x, r.endpoint.secrets)
			}
		}
	}
	return e, x.faults == faults
}

// readAnswer takes the one answer in a body apart.
func (r *RPC) readAnswer(body []byte) (envelope, bool) {
	if !json.Valid(body) {
		return envelope{}, false
	}
	x := newReader(body, "answer")
	return r.readEnvelope(&x)
}

// answerID is the id of an answer. Ours are numbers.
type answerID struct {
	form   idForm
	number uint64
}

type idForm uint8

const (
	idAbsent idForm = iota // or null
	idNumber
	idOther
)

func readAnswerID(b []byte) answerID {
	if string(b) == "null" {
		return answerID{}
	}
	n, err := strconv.ParseUint(string(b), 10, 64)
	if err != nil {
		return answerID{form: idOther}
	}
	return answerID{idNumber, n}
}

// read is readResult, with an error that says what was not found, and on which
// chain.
func (r *RPC) read(raw json.RawMessage, into any, params []any) error {
	err := readResult(raw, into, r.endpoint.secrets)
	if err != ErrNotFound {
		return err
	}
	if r.pin.id != 0 {
		err = fmt.Errorf("%w (chain ID %d)", err, r.pin.id)
	} else {
		err = fmt.Errorf("%w; if it should exist, the node may be on another network, which RPCConfig.ChainID would detect", err)
	}
	if len(params) > 0 {
		switch subject := params[0].(type) { // nothing else is known to be fit for a log
		case common.Hash:
			err = fmt.Errorf("%s: %w", subject, err)
		case BlockRef:
			err = fmt.Errorf("%s: %w", cmp.Or(subject, Latest), err)
		}
	}
	return err
}

// readResult reads a result, which is valid JSON, into a pointer. The error of a
// caller's own type may quote the result, and so is redacted.
func readResult(raw json.RawMessage, into any, secrets *redact.Redactor) error {
	var err error
	switch into := into.(type) {
	case nil:
		return nil
	case *[]Log:
		if string(raw) == "null" {
			return errNullResult // no logs would be []
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
		return fmt.Errorf("the result cannot be read: %w", err)
	}
	return nil
}

var errNullResult = errors.New("the result is null")

var errWrongID = errors.New("the answer has the id of another request")
