package ramp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// BatchCall is one call of [RPC.Batch].
type BatchCall struct {
	Method string // JSON-RPC method
	Params []any  // its parameters
	Into   any    // where the result goes, as in [RPC.Call]; the call is not sent if it is invalid
	Err    error  // set by Batch; nil if the call succeeded
}

// Batch makes many calls, up to [RPCConfig].BatchSize per request, and sets the Err
// of each. It returns an error if the node did not answer a request, or answered the
// whole request with an error. The remaining calls are then not sent, and their Err
// says so.
//
// Reads that were rate-limited are retried on their own, reads that the answer left
// out are asked for once more, and reads that the node rejected because the request
// or its answer was too large are asked for in halves, at last one by one. How many
// calls a node takes is remembered. A request that holds only reads is retried as
// [RPC.Call] is.
func (r *RPC) Batch(ctx context.Context, calls []BatchCall) error {
	ctx, op := r.transport.begin(ctx, OperationRPC, "batch")
	rest := make([]*BatchCall, 0, len(calls))
	for i := range calls {
		call := &calls[i]
		if call.Err = withMethod(call.Method, checkInto(call.Into)); call.Err == nil {
			rest = append(rest, call)
		}
	}
	err := r.sendParts(ctx, rest, r.sendPart)
	r.record(ctx, op, err)
	return err
}

// sendParts makes the calls in as many requests as necessary, until one fails. send
// makes one request, and sets the Err of its calls.
func (r *RPC) sendParts(ctx context.Context, rest []*BatchCall, send func(context.Context, []*BatchCall) error) error {
	size := int(r.batch.Load())
	var missed []*BatchCall // were asked for again, because the answer left them out
	for len(rest) > 0 {
		part := rest[:min(size, len(rest))]
		rest = rest[len(part):]
		err := send(ctx, part)
		again, tooLarge := r.tooLargeCalls(part, err)
		if err != nil && len(again) == 0 {
			for _, call := range rest {
				call.Err = withMethod(call.Method, fmt.Errorf("not sent: %w", err))
			}
			return err
		}
		for _, call := range part {
			if errors.Is(call.Err, errNoAnswer) && repeatable(call.Method) && (tooLarge || !slices.Contains(missed, call)) {
				again = append(again, call)
				if !tooLarge {
					missed = append(missed, call)
				}
			}
		}
		if tooLarge {
			size = max(1, len(part)/2)
		}
		rest = append(again, rest...)
	}
	return nil
}

// tooLargeCalls returns the calls of a request, which failed with err or not, that
// were rejected because the request or its answer was too large. If the node limits
// the number of calls, the next batch will be smaller.
func (r *RPC) tooLargeCalls(part []*BatchCall, err error) (again []*BatchCall, any bool) {
	if len(part) == 1 || err != nil && !onlyReads(part) {
		return nil, false
	}
	for _, call := range part {
		tooLarge, lasting := isTooLarge(call.Err)
		if err != nil && isNoBatch(err) {
			tooLarge, lasting = call.Err == err, true
		}
		if tooLarge && repeatable(call.Method) {
			again = append(again, call)
		}
		if lasting {
			r.batch.Store(min(r.batch.Load(), int64(len(part)/2)))
		}
	}
	return again, len(again) > 0
}

func onlyReads(calls []*BatchCall) bool {
	return !slices.ContainsFunc(calls, func(c *BatchCall) bool { return !repeatable(c.Method) })
}

// sendPart makes the calls of one request, with retries.
func (r *RPC) sendPart(ctx context.Context, calls []*BatchCall) error {
	answered := false // the request, even if some of its calls failed
	err := r.attempts(ctx, "batch", onlyReads(calls), func(ctx context.Context, e *endpoint) error {
		again, after, err := r.exchangeBatch(ctx, e, calls)
		answered = err == nil
		if len(again) == 0 {
			return err
		}
		calls = again
		return &retryableError{error: calls[0].Err, after: after}
	})
	if answered {
		return nil
	}
	setErr(calls, err)
	return err
}

// setErr sets the error of a request as that of its calls.
func setErr(calls []*BatchCall, err error) {
	for _, call := range calls {
		if err != nil {
			call.Err = err
		}
	}
}

// exchangeSingle makes the only call of a request as exchangeBatch does, but without
// brackets, because some nodes take no batches.
func (r *RPC) exchangeSingle(ctx context.Context, e *endpoint, calls []*BatchCall) ([]*BatchCall, time.Duration, error) {
	call := calls[0]
	err := r.exchange(ctx, e, call.Into, call.Method, call.Params)
	if failedAsNode(err) || errors.Is(err, errAnswerTooLarge) {
		return nil, 0, err
	}
	if call.Err = withoutMark(err); call.Err == err { // not retryable
		calls = nil
	}
	return calls, retryDelay(err), nil
}

// exchangeBatch sends one request to an endpoint and reads its answers. It returns
// the calls to retry, and the minimum delay before that.
func (r *RPC) exchangeBatch(ctx context.Context, e *endpoint, calls []*BatchCall) ([]*BatchCall, time.Duration, error) {
	if len(calls) == 1 {
		return r.exchangeSingle(ctx, e, calls)
	}
	requests := make([]request, len(calls))
	first := r.lastID.Add(uint64(len(calls))) - uint64(len(calls)) + 1
	for i, call := range calls {
		requests[i] = newRequest(first+uint64(i), call.Method, call.Params)
		call.Err = errNoAnswer
	}
	a, err := r.post(ctx, e, requests)
	if err != nil {
		return nil, 0, withMethod("batch", err)
	}
	if a.status/100 != 2 || !json.Valid(a.body) {
		return nil, 0, withMethod("batch", r.wholeFailure(a))
	}
	x := newReader(a.body, "answer")
	if x.kind() != '[' {
		return nil, 0, withMethod("batch", r.wholeFailure(a))
	}
	var again []*BatchCall
	answered := make([]bool, len(calls))
	for range x.elements(maxListEntries) {
		e, ok := r.readEnvelope(&x)
		id, err := strconv.ParseUint(string(e.id), 10, 64)
		at := id - first // an ID below first wraps around to a huge number
		if !ok || err != nil || at >= uint64(len(calls)) {
			continue // for none of the calls; the unanswered ones keep errNoAnswer
		}
		call := calls[at]
		if answered[at] {
			call.Err = fmt.Errorf("ramp: %s: the call was answered twice", call.Method)
			continue
		}
		answered[at] = true
		switch {
		case e.failure.err != nil:
			call.Err = withMethod(call.Method, e.failure.err)
			if _, ok := r.markRetryable(e.failure.err, a).(*retryableError); ok {
				again = append(again, call)
			}
		case e.result != nil:
			call.Err = withMethod(call.Method, r.read(e.result, call.Into, call.Params))
		}
	}
	for _, call := range calls {
		if call.Err == errNoAnswer {
			call.Err = withMethod(call.Method, errNoAnswer)
		}
	}
	return again, a.retryAfter(r.transport.now()), nil
}

var errNoAnswer = errors.New("the answer to the batch has none for this call")

// wholeFailure returns the error of an answer to the whole batch.
func (r *RPC) wholeFailure(a *answer) error {
	e, ok := r.readAnswer(a.body)
	switch {
	case !ok:
		return r.failure(a, nil)
	case e.failure.err == nil, a.status/100 != 2:
		return r.failure(a, e.failure.err)
	default:
		return r.markRetryable(e.failure.err, a)
	}
}
