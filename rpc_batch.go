package ramp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
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

// Batch makes many calls, up to 100 per request, and sets the Err of each. It
// returns an error if the node did not answer a request, or answered the whole
// request with an error. The remaining calls are then not sent, and their Err says
// so.
//
// Reads that were rate-limited are retried on their own. A request that holds only
// reads is retried as [RPC.Call] is, and split in half if it or its answer is too
// large.
func (r *RPC) Batch(ctx context.Context, calls []BatchCall) error {
	ctx, op := r.transport.begin(ctx, OperationRPC, "batch")
	rest := make([]*BatchCall, 0, len(calls))
	for i := range calls {
		call := &calls[i]
		if call.Err = withMethod(call.Method, checkInto(call.Into)); call.Err == nil {
			rest = append(rest, call)
		}
	}
	err := r.sendParts(ctx, slices.Collect(slices.Chunk(rest, r.batch))...)
	r.record(ctx, op, err)
	return err
}

// sendParts makes one request per part, until one fails.
func (r *RPC) sendParts(ctx context.Context, parts ...[]*BatchCall) (err error) {
	for _, calls := range parts {
		if err == nil {
			err = r.sendPart(ctx, calls)
			continue
		}
		for _, call := range calls {
			call.Err = fmt.Errorf("ramp: %s: not sent: %w", call.Method, err)
		}
	}
	return err
}

// sendPart makes the calls of one request.
func (r *RPC) sendPart(ctx context.Context, calls []*BatchCall) error {
	reads := !slices.ContainsFunc(calls, func(c *BatchCall) bool { return !repeatable(c.Method) })
	answered := false // the request, even if some of its calls failed
	err := r.attempts(ctx, reads, func() error {
		again, after, err := r.attemptBatch(ctx, calls)
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
	var status *HTTPError
	if large := errors.Is(err, errAnswerTooLarge) ||
		errors.As(err, &status) && status.Status == http.StatusRequestEntityTooLarge; large && reads && len(calls) > 1 {
		half := len(calls) / 2
		return r.sendParts(ctx, calls[:half], calls[half:])
	}
	for _, call := range calls {
		call.Err = err
	}
	return err
}

// attemptBatch makes one attempt. It returns the calls to retry, and the minimum
// delay before that.
func (r *RPC) attemptBatch(ctx context.Context, calls []*BatchCall) ([]*BatchCall, time.Duration, error) {
	ctx, op := r.transport.begin(ctx, OperationAttempt, "batch")
	again, after, err := r.exchangeBatch(ctx, calls)
	r.transport.end(ctx, op, withoutMark(err))
	return again, after, err
}

// exchangeBatch sends one request and reads its answers.
func (r *RPC) exchangeBatch(ctx context.Context, calls []*BatchCall) ([]*BatchCall, time.Duration, error) {
	requests := make([]request, len(calls))
	first := r.lastID.Add(uint64(len(calls))) - uint64(len(calls)) + 1
	for i, call := range calls {
		requests[i] = newRequest(first+uint64(i), call.Method, call.Params)
		call.Err = errNoAnswer
	}
	a, err := r.post(ctx, requests)
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
