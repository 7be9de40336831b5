package ramp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/token-ramp/ramp-go/internal/transport"
	"github.com/token-ramp/ramp-go/internal/wire"
)

// BatchCall is one call of [RPC.Batch].
type BatchCall struct {
	Method string // JSON-RPC method
	Params []any  // its parameters
	Into   any    // where the result goes, as in [RPC.Call]; if Into is invalid, the call is not sent
	Err    error  // set by Batch; nil if the call succeeded
}

// Batch makes many calls, up to [RPCConfig].BatchSize per request, and sets the Err of
// each. It returns an error if the node did not answer a request, or answered the whole
// request with an error. The remaining calls are then not sent.
//
// A request that holds only reads is retried as by [RPC.Call]. If only some of its reads
// were rate-limited or left out, only those are asked for again. If the node rejects a
// request because of its size, Batch sends the reads of that request again in two halves,
// and so on, down to single calls. It does the same with calls that the node rejects
// because their answer would be too large (-32003, -32008). It remembers how many calls
// the node takes.
func (r *RPC) Batch(ctx context.Context, calls []BatchCall) error {
	if err := r.made(); err != nil {
		return err
	}
	ctx, op := r.begin(ctx, OperationRPC, "batch")
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
func (r *RPC) sendParts(ctx context.Context, calls []*BatchCall,
	send func(context.Context, []*BatchCall) error) error {
	size := int(r.batch.Load())
	parts := slices.Collect(slices.Chunk(calls, size))
	var missed []*BatchCall // were asked for again, because the answer left them out
	for len(parts) > 0 {
		part := parts[0]
		parts = parts[1:]
		err := send(ctx, part)
		half := max(1, len(part)/2)
		var again, tooLarge []*BatchCall
		var limit *limitError
		switch {
		case len(part) > 1 && onlyReads(part) &&
			(errors.As(err, &limit) || errors.Is(err, ErrAnswerTooLarge)):
			if tooLarge = part; limit != nil && limit.lasting {
				size, parts = half, slices.Collect(slices.Chunk(slices.Concat(parts...), half))
			}
		case err != nil:
			for _, call := range slices.Concat(parts...) {
				call.Err = withMethod(call.Method, fmt.Errorf("not sent: %w", err))
			}
			return err
		default:
			r.batch.Store(min(r.batch.Load(), int64(size)))
			for _, call := range part {
				switch {
				case !repeatable(call.Method):
				case errors.Is(call.Err, errNoAnswer) && !slices.Contains(missed, call):
					again, missed = append(again, call), append(missed, call)
				case len(part) > 1 && isAnswerTooLarge(call.Err):
					tooLarge = append(tooLarge, call)
				}
			}
		}
		parts = slices.Concat(slices.Collect(slices.Chunk(tooLarge, half)),
			slices.Collect(slices.Chunk(again, size)), parts)
	}
	return nil
}

// BatchSize returns how many calls one request of [RPC.Batch] has at most: [RPCConfig].BatchSize, or
// fewer if a node has rejected so many. 1 means that the node takes no batches, and that the calls
// of a batch may be answered by different machines behind its URL.
func (r *RPC) BatchSize() int { return int(r.batch.Load()) }

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
		return &transport.Retryable{Err: calls[0].Err, After: after, Answered: true}
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
func (r *RPC) exchangeSingle(ctx context.Context, e *endpoint, calls []*BatchCall) ([]*BatchCall,
	time.Duration, error) {
	call := calls[0]
	err := r.exchange(ctx, e, call.Into, call.Method, call.Params)
	if failedAsNode(err) || errors.Is(err, ErrAnswerTooLarge) {
		return nil, 0, err
	}
	if call.Err = transport.Unmarked(err); call.Err == err { // not retryable
		calls = nil
	}
	return calls, transport.Marked(err).After, nil
}

// exchangeBatch sends one request to an endpoint and reads its answers. It returns
// the calls to retry, and the minimum delay before that.
func (r *RPC) exchangeBatch(ctx context.Context, e *endpoint, calls []*BatchCall) ([]*BatchCall,
	time.Duration, error) {
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
	if a.Status/100 != 2 || !wire.IsJSON(a.Body) || bytes.TrimSpace(a.Body)[0] != '[' {
		return nil, 0, withMethod("batch", asLimit(r.wholeFailure(a)))
	}
	x := newReader(a.Body, "answer")
	var again []*BatchCall
	answers := 0
	var whole error // an error without an id, as JSON-RPC demands it for a request as a whole
	for range x.Elements(wire.MaxListEntries) {
		e, ok := r.readEnvelope(&x)
		if answers++; ok && e.id.Absent() && e.failure.err != nil {
			whole = r.mark(e.failure.err, e.failure.err, a)
		}
		id, err := strconv.ParseUint(string(e.id), 10, 64)
		at := id - first // an ID below first wraps around to a huge number
		if !ok || err != nil || at >= uint64(len(calls)) {
			continue // for none of the calls; the unanswered ones keep errNoAnswer
		}
		call := calls[at]
		if call.Err != errNoAnswer {
			call.Err = fmt.Errorf("ramp: %s: the call was answered twice", call.Method)
			continue
		}
		switch {
		case e.failure.err != nil:
			call.Err = withMethod(call.Method, e.failure.err)
			if isRetryable(a.Status, e.failure.err) {
				again = append(again, call)
			}
		case e.result != nil:
			call.Err = withMethod(call.Method, r.read(e.result, call.Into, call.Params))
		}
	}
	switch {
	case answers == 1 && whole != nil:
		return nil, 0, withMethod("batch", asLimit(whole))
	case answers == 1 && errors.Is(calls[0].Err, rpcInvalidRequest): // as go-ethereum rejects the whole
		return nil, 0, asLimit(calls[0].Err)
	}
	return again, a.RetryAfter(r.now()), nil
}

var errNoAnswer = errors.New("ramp: the answer to the batch has none for this call")

// wholeFailure returns the error of an answer to the whole batch.
func (r *RPC) wholeFailure(a *transport.Answer) error {
	e, ok := r.readAnswer(a.Body)
	switch {
	case !ok:
		return r.failure(a, nil)
	case e.failure.err == nil, a.Status/100 != 2:
		return r.failure(a, e.failure.err)
	default:
		return r.mark(e.failure.err, e.failure.err, a)
	}
}

// asLimit returns the error of a whole batch as a [limitError] if it is one. Nodes use
// many codes for the number of calls, some of them for rate limits too, but they name the
// batch: -32600 "batch too large" (go-ethereum), -32000 "batch limit 100 exceeded"
// (Erigon), -32005 "Batch size limit exceeded" (Nethermind), -32005 "Batched requests
// are not supported" (reth). Other nodes do not understand a batch at all. Only errors of
// the whole may be passed, because a contract can put any text into that of a call.
func asLimit(err error) error {
	var status *HTTPError
	var failed *RPCError
	errors.As(err, &status)
	errors.As(err, &failed)
	text := strings.ToLower(err.Error())
	limit := &limitError{error: transport.Unmarked(err)}
	switch {
	case failed != nil && (failed.Code == rpcReverted || isRateLimit(0, failed.Code)),
		status != nil && slices.Contains([]int{401, 403, 429}, status.Status):
		return err
	case errors.Is(err, rpcParseError), errors.Is(err, rpcInvalidRequest), errors.Is(err, RPCMethodNotFound),
		strings.Contains(text, "batch"),
		status != nil && status.Status == http.StatusRequestEntityTooLarge: // the request is
		limit.lasting = true
		return limit
	case isAnswerTooLarge(err), strings.Contains(text, "too large"), strings.Contains(text, "too big"):
		return limit
	default:
		return err
	}
}

// isAnswerTooLarge reports whether the answer to a call or a batch is too large.
func isAnswerTooLarge(err error) bool {
	return errors.Is(err, rpcResponseTooLarge) || errors.Is(err, rpcAnswerTooLarge) ||
		errors.Is(err, ErrAnswerTooLarge)
}
