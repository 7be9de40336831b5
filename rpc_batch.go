package ramp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// BatchCall is one call of a [RPC.Batch].
type BatchCall struct {
	Method string
	Params []any
	Into   any   // where the result goes, as in [RPC.Call]; a call that has no place for it is not sent
	Err    error // set by Batch: nil if the result was read
}

// Batch makes many calls, up to 100 in one request, and sets the Err of each. It
// returns an error when the node did not answer a request at all, or answered it
// as a whole with an error; calls that were to follow are then not sent, and
// have an Err that says so.
//
// Reads that were turned away because there were too many are repeated alone. A
// request of reads only is repeated as [RPC.Call] is, and cut in halves when it
// or its answer is too large.
func (r *RPC) Batch(ctx context.Context, calls []BatchCall) error {
	ctx, op := r.transport.begin(ctx, OperationRPC, "batch")
	rest := make([]*BatchCall, 0, len(calls))
	for i := range calls {
		call := &calls[i]
		if call.Err = within(call.Method, checkInto(call.Into)); call.Err == nil {
			rest = append(rest, call)
		}
	}
	err := r.parts(ctx, slices.Collect(slices.Chunk(rest, r.batch))...)
	r.record(ctx, op, err)
	return err
}

// parts makes requests one after the other, until one fails.
func (r *RPC) parts(ctx context.Context, parts ...[]*BatchCall) (err error) {
	for _, calls := range parts {
		if err == nil {
			err = r.part(ctx, calls)
			continue
		}
		for _, call := range calls {
			call.Err = fmt.Errorf("ramp: %s: not sent: %w", call.Method, err)
		}
	}
	return err
}

// part makes the calls of one request.
func (r *RPC) part(ctx context.Context, calls []*BatchCall) error {
	reads := !slices.ContainsFunc(calls, func(c *BatchCall) bool { return !repeatable(c.Method) })
	answered := false // the request, perhaps with calls in it that failed
	err := r.attempts(ctx, reads, func() error {
		again, after, err := r.onceBatch(ctx, calls)
		answered = err == nil
		if len(again) == 0 {
			return err
		}
		calls = again
		return &transient{error: calls[0].Err, after: after}
	})
	if answered {
		return nil
	}
	var status *HTTPError
	if large := errors.Is(err, errAnswerTooLarge) ||
		errors.As(err, &status) && status.Status == http.StatusRequestEntityTooLarge; large && reads && len(calls) > 1 {
		half := len(calls) / 2
		return r.parts(ctx, calls[:half], calls[half:])
	}
	for _, call := range calls {
		call.Err = err
	}
	return err
}

// onceBatch makes one attempt. It returns the calls that were turned away and
// may be repeated, with how long to wait before that at least.
func (r *RPC) onceBatch(ctx context.Context, calls []*BatchCall) ([]*BatchCall, time.Duration, error) {
	ctx, op := r.transport.begin(ctx, OperationAttempt, "batch")
	again, after, err := r.exchangeBatch(ctx, calls)
	r.transport.end(ctx, op, unmarked(err))
	return again, after, err
}

// exchangeBatch sends one request and reads the answers to it.
func (r *RPC) exchangeBatch(ctx context.Context, calls []*BatchCall) ([]*BatchCall, time.Duration, error) {
	requests := make([]request, len(calls))
	first := r.lastID.Add(uint64(len(calls))) - uint64(len(calls)) + 1
	for i, call := range calls {
		requests[i] = newRequest(first+uint64(i), call.Method, call.Params)
		call.Err = errNoAnswer
	}
	a, err := r.post(ctx, requests)
	if err != nil {
		return nil, 0, within("batch", err)
	}
	if a.status/100 != 2 || !json.Valid(a.body) {
		return nil, 0, within("batch", r.wholeFailure(a))
	}
	x := newReader(a.body, "answer")
	if x.kind() != '[' {
		return nil, 0, within("batch", r.wholeFailure(a))
	}
	var again []*BatchCall
	answered := make([]bool, len(calls))
	for range x.elements(maxListEntries) {
		e, ok := r.readEnvelope(&x)
		at := e.ID.number - first // wraps round below first, far out of range
		if !ok || at >= uint64(len(calls)) {
			continue // nobody's, and who waits for it keeps errNoAnswer
		}
		call := calls[at]
		if answered[at] {
			call.Err = fmt.Errorf("ramp: %s: the call was answered twice", call.Method)
			continue
		}
		answered[at] = true
		switch {
		case e.Error != nil:
			call.Err = within(call.Method, e.Error)
			if _, ok := r.passing(e.Error, a).(*transient); ok {
				again = append(again, call)
			}
		case e.Result != nil:
			call.Err = within(call.Method, r.read(e.Result, call.Into, call.Params))
		}
	}
	for _, call := range calls {
		if call.Err == errNoAnswer {
			call.Err = within(call.Method, errNoAnswer)
		}
	}
	return again, a.retryAfter(r.transport.now()), nil
}

var errNoAnswer = errors.New("the batch came back without an answer to this call")

// wholeFailure is the one answer to a whole batch.
func (r *RPC) wholeFailure(a *answer) error {
	e, ok := r.readAnswer(a.body)
	switch {
	case !ok:
		return r.failure(a, nil)
	case e.Error == nil, a.status/100 != 2:
		return r.failure(a, e.Error)
	default:
		return r.passing(e.Error, a)
	}
}
