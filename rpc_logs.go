package ramp

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"math"
	"slices"
)

// Logs returns the logs that match a filter, oldest first: eth_getLogs (interface
// 4.4). The slice is empty if none match. A null answer is an error, because it
// does not say whether there are logs. Nodes limit the range of blocks or the number
// of logs; see [RPC.LogsBetween].
func (r *RPC) Logs(ctx context.Context, f LogFilter) ([]Log, error) {
	logs, _, err := r.askLogs(ctx, f, false)
	return logs, err
}

// askLogs makes a log query. If its range can be split, an error that may be about the
// range is retried only once, and is not logged as a failure; tooWide is then true.
func (r *RPC) askLogs(ctx context.Context, f LogFilter, splits bool) (logs []Log, tooWide bool, err error) {
	const method = "eth_getLogs"
	ctx, op := r.transport.begin(ctx, OperationRPC, method)
	tries := 0
	err = r.attempts(ctx, method, true, func(ctx context.Context, e *endpoint) error {
		err := r.exchange(ctx, e, &logs, method, []any{f})
		tries++
		if tooWide = splits && isAboutRange(err) && retryDelay(err) == 0; tooWide && tries > 1 {
			return withoutMark(err)
		}
		return err
	})
	if tooWide = tooWide && err != nil && ctx.Err() == nil; tooWide {
		r.transport.end(ctx, op, err)
		r.transport.log.LogAttrs(ctx, slog.LevelDebug, "ramp: asking for fewer blocks", slog.Any("error", err))
	} else {
		r.record(ctx, op, err)
	}
	return logs, tooWide, err
}

// LogsBetween iterates over the logs in the blocks from to to, oldest first, whatever
// the node's limit on the range of blocks, on the number of logs or on time is: after an
// error that may be about a range, it asks for half of it, and for more again after
// some successes. If even one block fails, its error ends the iteration, and so does any
// other error. A rate limit (HTTP 429, its codes, or a Retry-After) is retried and splits
// nothing. -32005, which means both, an error of HTTP and a timeout are about the range if a
// second try fails too. Only the logs of one request are in memory. The filter must not
// have a BlockHash; its FromBlock and ToBlock are not used.
//
//	for log, err := range chain.LogsBetween(ctx, filter, first, last) {
func (r *RPC) LogsBetween(ctx context.Context, filter LogFilter, from, to uint64) iter.Seq2[Log, error] {
	return func(yield func(Log, error) bool) {
		from := from              // the iteration may be repeated
		width := to - from        // one less than the number of blocks to ask for
		successes, enough := 0, 4 // before more is asked for
		for grown := false; from <= to; {
			last := from + min(width, to-from)
			filter.FromBlock, filter.ToBlock = AtBlock(from), AtBlock(last)
			logs, tooWide, err := r.askLogs(ctx, filter, from < last)
			if tooWide {
				if grown { // a limit that stays: try that more rarely
					enough *= 2
				}
				width, successes, grown = (last-from)/2, 0, false
				continue
			}
			if err != nil {
				yield(Log{}, err)
				return
			}
			for _, l := range logs {
				if !yield(l, nil) {
					return
				}
			}
			if last == to {
				return
			}
			from, grown = last+1, false
			if successes++; successes >= enough && width < math.MaxUint64/2 {
				width, successes, grown = 2*width+1, 0, true
			}
		}
	}
}

// isAboutRange reports whether a log query may have failed because of its range: the
// node answered with an error that is not a rate limit, with too much, or not in time.
func isAboutRange(err error) bool {
	var status *HTTPError
	var failed *RPCError
	var wrong *InvalidError // such as too many entries
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &status) && slices.Contains([]int{401, 403, 404, 429, 503}, status.Status),
		errors.As(err, &failed) && (isRateLimit(0, failed.Code) || failed.Code == RPCMethodNotFound):
		return false
	case status != nil, failed != nil, errors.As(err, &wrong), errors.Is(err, errAnswerTooLarge):
		return true
	default:
		return errors.As(err, &timeout) && timeout.Timeout()
	}
}
