package evidence

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math"
	"slices"

	"github.com/token-ramp/ramp-go"
)

// Logs iterates over the logs in the blocks from to to, oldest first, whatever the node's
// limits are: after an error that may be about the range of blocks, it asks for half of
// it, and for more again after some successes. If even one block fails, its error ends the
// iteration, and so does any other error. A rate limit splits nothing. Only the logs of
// one request are in memory, and exact doubles among them count once. The filter must not
// have a BlockHash; its FromBlock and ToBlock are not used.
func Logs(
	ctx context.Context, chain *ramp.RPC, filter ramp.LogFilter, from, to uint64,
) iter.Seq2[ramp.Log, error] {
	return logsBy(ctx, filter, from, to, func(filter ramp.LogFilter) (logs []ramp.Log, err error) {
		// In a batch, a call that the node rejects is not logged as a failure.
		calls := []ramp.BatchCall{Call(&logs, "eth_getLogs", filter)}
		err = cmp.Or(chain.Batch(ctx, calls), calls[0].Err)
		return logs, err
	})
}

// logsBy is Logs with a function that makes one request.
func logsBy(
	ctx context.Context, filter ramp.LogFilter, from, to uint64, ask func(ramp.LogFilter) ([]ramp.Log, error),
) iter.Seq2[ramp.Log, error] {
	return func(yield func(ramp.Log, error) bool) {
		from := from              // the iteration may be repeated
		width := to - from        // one less than the number of blocks to ask for
		successes, enough := 0, 4 // before more is asked for
		for grown := false; from <= to; {
			last := from + min(width, to-from)
			filter.FromBlock, filter.ToBlock = ramp.AtBlock(from), ramp.AtBlock(last)
			logs, err := ask(filter)
			if from < last && ctx.Err() == nil && isAboutRange(err) {
				if grown { // a limit that stays: try that more rarely
					enough *= 2
				}
				width, successes, grown = (last-from)/2, 0, false
				continue
			}
			if err != nil {
				yield(ramp.Log{}, err)
				return
			}
			for _, l := range Distinct(logs) {
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

// isAboutRange reports whether a log query may have failed because of its range: the node
// answered with an error that is not a rate limit, with too much, or not in time.
func isAboutRange(err error) bool {
	var status *ramp.HTTPError
	var failed *ramp.RPCError
	var wrong *ramp.InvalidError // such as too many logs
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &status) &&
		(status.RetryAfter > 0 || slices.Contains([]int{401, 403, 404, 429, 503}, status.Status)):
		return false
	case errors.As(err, &failed) && slices.Contains(notAboutRange, failed.Code):
		return false
	case status != nil, failed != nil, errors.As(err, &wrong), errors.Is(err, ramp.ErrAnswerTooLarge):
		return true
	default:
		return errors.As(err, &timeout) && timeout.Timeout()
	}
}

// notAboutRange are the codes of rate limits (QuickNode, Base, TheRPC, proxies). -32005
// has two meanings; it is retried before.
var notAboutRange = []ramp.RPCCode{-32007, -32016, -32029, 429, ramp.RPCMethodNotFound}
