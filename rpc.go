package ramp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"strings"
	"sync/atomic"
	"time"
)

// RPC speaks JSON-RPC with a node of the chain (interface 2.8, 4.4). Make one
// with [NewRPC] and share it: it is safe for concurrent use. Its methods are
// named after what they return; [RPC.Call] and [RPC.Batch] reach every other
// method of the node.
//
// Reads are retried after a failure that may be temporary; see
// [RPCConfig].Retries. Sends are not, because nobody could say whether the first
// attempt arrived; see [RPCConfig].Resend. Redirects are not followed.
//
// Errors are an [*RPCError] where the node refused, an [*HTTPError] where the
// answer was not that of a node, [ErrNotFound] where the node knows no such
// block, transaction or receipt, and [ErrWrongChain] where it is on another chain
// than [RPCConfig].ChainID.
//
// No text of an error, log record or String of an RPC shows a secret: the user
// info and the query values of the URL, its path segments of 16 characters or
// more, and the header values. Foreign text that quotes one, in any common
// encoding, is shown with [redacted] in its place. Pieces of fewer than 4 bytes
// are not taken for secrets. Data is for programs and never redacted: see
// [RPCError].Data.
type RPC struct {
	transport *transport
	endpoint  *endpoint // a pointer, so that printing an RPC shows an address at most
	limit     int64
	batch     int
	poll      time.Duration
	resend    bool
	pin       chainPin
	lastID    atomic.Uint64
}

// The limits of an [RPC]: nodes and providers have some of their own, about as
// large.
const (
	mostAnswerBytes = 32 << 20
	mostBatchCalls  = 100 // in one request
)

// NewRPC returns a client for the node at c.URL. The error is an [*InvalidError]
// that lists every field of c that is missing or wrong.
func NewRPC(c RPCConfig) (*RPC, error) {
	var p problems
	r := &RPC{
		endpoint:  newEndpoint(&p, c),
		transport: newTransport(&p, "RPCConfig", transportConfig{c.HTTPClient, c.Timeout, c.Retries, c.Logger, time.Now, c.Observer}),
		limit:     mostAnswerBytes,
		batch:     mostBatchCalls,
		poll:      cmp.Or(c.PollInterval, time.Second),
		resend:    c.Resend,
		pin:       chainPin{id: c.ChainID},
	}
	if c.PollInterval < 0 {
		p.add("RPCConfig.PollInterval", "must not be negative")
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	return r, nil
}

// String returns scheme and host of the node.
func (r *RPC) String() string { return r.endpoint.shown }

// Call calls any method of the node with its parameters, and reads the result
// into a pointer as encoding/json does; nil drops the result. For a hex number
// use a [*Quantity], for hex bytes a *hexutil.Bytes. Nothing is sent if into is
// not a pointer, or a nil pointer of some type.
//
// null is [ErrNotFound] for a [*Receipt], a [*Transaction] and a [*Block], an
// error for a *[]Log, and otherwise what encoding/json makes of it. A call is
// repeated only if its method is known to do nothing but read; see [RPC].
func (r *RPC) Call(ctx context.Context, into any, method string, params ...any) error {
	if err := checkInto(into); err != nil {
		return within(method, err)
	}
	ctx, op := r.transport.begin(ctx, OperationRPC, method)
	err := r.attempts(ctx, repeatable(method), func() error { return r.once(ctx, into, method, params) })
	r.record(ctx, op, err)
	return err
}

// attempts runs attempt once, or again as long as its failure is transient. The
// chain is checked before, and that may always be repeated.
func (r *RPC) attempts(ctx context.Context, again bool, attempt func() error) error {
	switch {
	case again && r.pin.open():
		return r.transport.retry(ctx, r.afterCheck(ctx, attempt))
	case again:
		return r.transport.retry(ctx, attempt)
	case r.pin.open():
		if err := r.transport.retry(ctx, func() error { return r.checkChain(ctx) }); err != nil {
			return err
		}
	}
	return unmarked(attempt())
}

// repeatable says whether a method only reads. One that is not known may send.
func repeatable(method string) bool {
	switch method {
	case "eth_blockNumber", "eth_call", "eth_chainId", "eth_estimateGas", "eth_createAccessList",
		"eth_gasPrice", "eth_maxPriorityFeePerGas", "eth_blobBaseFee", "eth_feeHistory", "eth_syncing", "eth_accounts":
		return true
	case "eth_getFilterChanges": // hands each change out once
		return false
	default:
		return strings.HasPrefix(method, "eth_get") || strings.HasPrefix(method, "net_") || strings.HasPrefix(method, "web3_")
	}
}

// once makes one attempt. A failure that may pass is marked as transient.
func (r *RPC) once(ctx context.Context, into any, method string, params []any) error {
	ctx, op := r.transport.begin(ctx, OperationAttempt, method)
	err := r.exchange(ctx, into, method, params)
	r.transport.end(ctx, op, unmarked(err))
	return err
}

// exchange sends one request and reads the answer to it.
func (r *RPC) exchange(ctx context.Context, into any, method string, params []any) error {
	id := r.lastID.Add(1)
	a, err := r.post(ctx, newRequest(id, method, params))
	if err != nil {
		return within(method, err)
	}
	e, ok := r.readAnswer(a.body)
	if !ok {
		return within(method, r.failure(a, nil))
	}
	switch {
	case a.status/100 != 2, e.Error == nil && e.Result == nil:
		return within(method, r.failure(a, e.Error))
	case e.ID.form == idAbsent && e.Error != nil: // the node could not read the id
	case e.ID != answerID{idNumber, id}:
		return within(method, errWrongID)
	}
	if e.Error != nil {
		return within(method, r.passing(e.Error, a))
	}
	return within(method, r.read(e.Result, into, params))
}

// post sends a request, or a slice of them, and reads the answer.
func (r *RPC) post(ctx context.Context, message any) (*answer, error) {
	body, err := marshal(message)
	if err != nil {
		return nil, fmt.Errorf("the parameters cannot be written: %w", err)
	}
	a, err := r.transport.post(ctx, r.endpoint.address, maps.Clone(r.endpoint.header), body, r.limit)
	switch {
	case errors.Is(err, errAnswerTooLarge):
		return nil, fmt.Errorf("%w: its limit is %d bytes", err, r.limit)
	case err != nil:
		return nil, &transient{error: r.endpoint.secrets.Error(err)}
	}
	return a, nil
}

// checkInto reports whether a result can be read into something, before a call
// is sent whose result would be lost.
func checkInto(into any) error {
	if v := reflect.ValueOf(into); into != nil && (v.Kind() != reflect.Pointer || v.IsNil()) {
		return fmt.Errorf("the result must go into a pointer that is not nil, not into a %T", into)
	}
	return nil
}

// record ends one call and logs it. Success is for debugging only: a client that
// waits makes many.
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
