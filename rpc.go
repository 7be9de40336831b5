package ramp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go/internal/redact"
)

// RPC is a JSON-RPC client for a node of the chain (interface 2.8, 4.4). Make one
// with [NewRPC] and share it: it is safe for concurrent use. Its methods are named
// after what they return. Use [RPC.Call] and [RPC.Batch] for every other method of
// the node.
//
// Reads are retried after a failure that may be temporary; see [RPCConfig].Retries.
// Sends are not, because the first attempt may have arrived. Redirects are not
// followed.
//
// An error is an [*RPCError] if the node rejected the call, or an [*HTTPError] if
// the answer is not that of a node. It wraps [ErrNotFound] if the node does not
// know the block, transaction or receipt, and [ErrWrongChain] if the node is not on
// the chain of [RPCConfig].ChainID.
//
// No error text, log record or String of an RPC shows a secret: the user, the
// password and the query values of the URL, its path segments of 16 characters or
// more, and the header values. If foreign text quotes one, as it is, percent-encoded
// or escaped for JSON, it is replaced by [redacted]. Values shorter than 4 bytes are
// not treated as secrets. Data is for programs and never redacted; see
// [RPCError].Data.
type RPC struct {
	transport *transport
	endpoints []*endpoint // pointers, so that printing an RPC shows at most addresses
	secrets   *redact.Redactor
	limit     int64
	batch     atomic.Int64 // calls in one request
	poll      time.Duration
	chainID   uint64 // 0 accepts any chain
	lastID    atomic.Uint64
}

// The limits of an [RPC], about as large as those of nodes and providers.
const (
	maxAnswerBytes = 32 << 20
	maxBatchCalls  = 100 // in one request
)

// NewRPC returns a client for the node at c.URL. The error is an [*InvalidError]
// that lists every missing or wrong field of c.
func NewRPC(c RPCConfig) (*RPC, error) {
	var p problems
	r := &RPC{
		endpoints: []*endpoint{newEndpoint(&p, "RPCConfig", RPCEndpoint{c.URL, c.Header}, c.InsecureHTTP)},
		transport: newTransport(&p, "RPCConfig", c.HTTPClient,
			transport{timeout: c.Timeout, retries: c.Retries, log: c.Logger, observer: c.Observer}),
		limit:   maxAnswerBytes,
		poll:    cmp.Or(c.PollInterval, time.Second),
		chainID: c.ChainID,
	}
	if c.Fallback.URL != "" || c.Fallback.Header != nil {
		r.endpoints = append(r.endpoints, newEndpoint(&p, "RPCConfig.Fallback", c.Fallback, c.InsecureHTTP))
	}
	r.batch.Store(int64(cmp.Or(c.BatchSize, maxBatchCalls)))
	if c.PollInterval < 0 {
		p.add("RPCConfig.PollInterval", "must not be negative")
	}
	if c.BatchSize < 0 {
		p.add("RPCConfig.BatchSize", "must not be negative")
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	var secrets []string
	for _, e := range r.endpoints { // each may quote the other
		secrets = append(secrets, e.secrets...)
	}
	r.secrets = redact.New(secrets...)
	return r, nil
}

// String returns the scheme and host of the node.
func (r *RPC) String() string { return r.endpoints[0].shown }

// Call calls any method of the node with its parameters, and decodes the result
// into a pointer as encoding/json does. If into is nil, the result is dropped. Use
// a [*Quantity] for a hex number and a *hexutil.Bytes for hex bytes. If into is
// anything else than nil or a non-nil pointer, nothing is sent.
//
// A null result is [ErrNotFound] for a [*Receipt], a [*Transaction] or a [*Block],
// an error for a *[]Log, and otherwise decoded as encoding/json does. A call is
// retried only if its method is known to be a read; see [RPC].
func (r *RPC) Call(ctx context.Context, into any, method string, params ...any) error {
	if err := checkInto(into); err != nil {
		return withMethod(method, err)
	}
	ctx, op := r.transport.begin(ctx, OperationRPC, method)
	err := r.attempts(ctx, method, repeatable(method), func(ctx context.Context, e *endpoint) error {
		return r.exchange(ctx, e, into, method, params)
	})
	r.record(ctx, op, err)
	return err
}

// exchange is one request to an endpoint and its answer. Errors that may pass are
// marked retryable.
type exchange func(ctx context.Context, e *endpoint) error

// attempts makes an exchange once, or if again is true until its failure is not
// retryable. The chain is checked first; that is always retried.
func (r *RPC) attempts(ctx context.Context, name string, again bool, do exchange) error {
	if again {
		return r.transport.retry(ctx, func() error { return r.ask(ctx, name, do) })
	}
	var chosen *endpoint
	if err := r.transport.retry(ctx, func() error {
		return r.askInOrder(ctx, func(e *endpoint) error {
			chosen = e
			return r.checkChain(ctx, e)
		})
	}); err != nil {
		return err
	}
	err := r.attempt(ctx, chosen, name, r.transport.timeout, do)
	if ctx.Err() == nil {
		chosen.note(r.transport.now(), err)
	}
	return withoutMark(err)
}

// ask makes an exchange with the first endpoint that works and is on the chain.
func (r *RPC) ask(ctx context.Context, name string, do exchange) error {
	return r.askInOrder(ctx, func(e *endpoint) error {
		if err := r.checkChain(ctx, e); err != nil {
			return err
		}
		return r.attempt(ctx, e, name, r.transport.timeout, do)
	})
}

// askInOrder calls try with the first endpoint, and with the fallback if that failed
// as a node. If it failed a short time ago, it is asked last.
func (r *RPC) askInOrder(ctx context.Context, try func(*endpoint) error) (err error) {
	order := r.endpoints
	if len(order) > 1 && order[0].resting(r.transport.now()) {
		order = []*endpoint{order[1], order[0]}
	}
	for n, e := range order {
		if err = try(e); ctx.Err() != nil { // nothing is known about the node
			break
		}
		if e.note(r.transport.now(), err); !failedAsNode(err) {
			break
		}
		if n < len(order)-1 {
			r.transport.log.LogAttrs(ctx, slog.LevelWarn, "ramp: asking the other node",
				slog.String("failed", e.shown), slog.Any("error", withoutMark(err)))
		}
	}
	return err
}

// attempt makes an exchange in limited time.
func (r *RPC) attempt(ctx context.Context, e *endpoint, name string, timeout time.Duration, do exchange) error {
	ctx, op := r.transport.begin(ctx, OperationAttempt, name)
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := do(limited, e)
	r.transport.end(ctx, op, withoutMark(err))
	return err
}

// ErrWrongChain means that the node is not on the chain of [RPCConfig].ChainID. The
// error that wraps it names both chain IDs.
var ErrWrongChain = errors.New("the node is on another chain")

// Check asks each configured node for its chain ID. It returns an error if one
// cannot be reached, and [ErrWrongChain] if one is not on the chain of
// [RPCConfig].ChainID. Call it when the program starts: otherwise a wrong
// configuration shows at the first result, after a player has paid.
func (r *RPC) Check(ctx context.Context) (err error) {
	ctx, op := r.transport.begin(ctx, OperationRPC, "check")
	for _, e := range r.endpoints {
		if err = r.transport.retry(ctx, func() error { return r.askChain(ctx, e) }); err != nil {
			err = bounded(fmt.Errorf("ramp: check %s: %w", e.shown, err))
			break
		}
	}
	r.record(ctx, op, err)
	return err
}

// checkChain returns nil if an endpoint is on the configured chain, or none is
// configured. It asks until one check has succeeded.
func (r *RPC) checkChain(ctx context.Context, e *endpoint) error {
	if r.chainID == 0 || e.checked.Load() {
		return nil
	}
	return r.askChain(ctx, e)
}

func (r *RPC) askChain(ctx context.Context, e *endpoint) error {
	const method = "eth_chainId"
	var id Quantity
	err := r.attempt(ctx, e, method, r.transport.timeout, func(ctx context.Context, e *endpoint) error {
		return r.exchange(ctx, e, &id, method, nil)
	})
	if err == nil {
		err = withMethod(method, r.compareChain(id))
	}
	e.checked.Store(err == nil)
	return err
}

// compareChain compares the chain ID of a node with the configured one.
func (r *RPC) compareChain(id Quantity) error {
	switch actual := id.Big(); {
	case actual == nil:
		return errNullResult
	case r.chainID != 0 && actual.Cmp(new(big.Int).SetUint64(r.chainID)) != 0:
		return fmt.Errorf("%w: its chain ID is %s, but RPCConfig.ChainID is %d", ErrWrongChain, actual, r.chainID)
	}
	return nil
}

// repeatable reports whether a method only reads. Unknown methods may send.
func repeatable(method string) bool {
	switch method {
	case "eth_blockNumber", "eth_call", "eth_chainId", "eth_estimateGas", "eth_createAccessList",
		"eth_gasPrice", "eth_maxPriorityFeePerGas", "eth_blobBaseFee", "eth_feeHistory",
		"eth_syncing", "eth_accounts":
		return true
	case "eth_getFilterChanges": // returns each change only once
		return false
	default:
		return strings.HasPrefix(method, "eth_get") || strings.HasPrefix(method, "net_") ||
			strings.HasPrefix(method, "web3_")
	}
}

// exchange sends one request to an endpoint and reads its answer.
func (r *RPC) exchange(ctx context.Context, e *endpoint, into any, method string, params []any) error {
	id := r.lastID.Add(1)
	a, err := r.post(ctx, e, newRequest(id, method, params))
	if err != nil {
		return withMethod(method, err)
	}
	x, ok := r.readAnswer(a.body)
	if !ok {
		return withMethod(method, r.failure(a, nil))
	}
	switch {
	case a.status/100 != 2, x.failure.err == nil && x.result == nil:
		return withMethod(method, r.failure(a, x.failure.err))
	case x.id.absent() && x.failure.err != nil: // the node could not read the id
	case !bytes.Equal(x.id, strconv.AppendUint(make([]byte, 0, 20), id, 10)):
		return withMethod(method, errWrongID)
	}
	if x.failure.err != nil {
		return withMethod(method, r.mark(x.failure.err, x.failure.err, a))
	}
	return withMethod(method, r.read(x.result, into, params))
}

// post sends a request, or a slice of them, and reads the answer.
func (r *RPC) post(ctx context.Context, e *endpoint, message any) (*answer, error) {
	body, err := marshal(message)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the parameters: %w", err)
	}
	a, err := r.transport.post(ctx, e.address, maps.Clone(e.header), body, r.limit)
	switch {
	case errors.Is(err, errAnswerTooLarge):
		return nil, fmt.Errorf("%w: the limit is %d bytes", err, r.limit)
	case err != nil:
		return nil, &retryableError{error: r.secrets.Error(err)}
	}
	return a, nil
}

// checkInto checks that a result can be stored in into, before a call whose result
// would be lost.
func checkInto(into any) error {
	if v := reflect.ValueOf(into); into != nil && (v.Kind() != reflect.Pointer || v.IsNil()) {
		return fmt.Errorf("the result must go into a non-nil pointer, not a %T", into)
	}
	return nil
}

// record ends and logs one call. Success is logged at level Debug, because a client
// that waits makes many calls.
func (r *RPC) record(ctx context.Context, op Operation, err error) {
	took := r.transport.end(ctx, op, err)
	level := slog.LevelDebug
	if err != nil && !errors.Is(err, ErrNotFound) {
		level = slog.LevelError
	}
	if !r.transport.log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{slog.String("method", op.Name), slog.Duration("duration", took)}
	text := "ramp: rpc"
	if err != nil {
		text, attrs = "ramp: rpc failed", append(attrs, slog.Any("error", err))
	}
	r.transport.log.LogAttrs(ctx, level, text, attrs...)
}

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
	e = &envelope{failure: rpcFailure{secrets: r.secrets}}
	x.members("jsonrpc", &e.version, "id", &e.id, "result", &e.result, "error", &e.failure)
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
	err := readResult(raw, into, r.secrets)
	if err != ErrNotFound {
		return err
	}
	if r.chainID != 0 {
		err = fmt.Errorf("%w (chain ID %d)", err, r.chainID)
	} else {
		err = fmt.Errorf("%w; if it should exist, the node may be on another network: "+
			"set RPCConfig.ChainID to detect that", err)
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
