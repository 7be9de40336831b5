package evidence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/token-ramp/ramp-go"
)

// Logs lists the logs that match a filter. Whatever concludes something from a list goes through it,
// because a list that answers need not be whole: the node may be behind, may know nothing of old
// blocks, or may stop after some number of logs and not say so.
//
// A list that goes up to a block which the node did not have is an error. The newest block is asked
// for in the same request as the list, and by a node without batches before and after it.
type Logs struct {
	Chain     *ramp.RPC
	Filter    ramp.LogFilter // without blocks
	Witnesses []*Witness     // asked for in each request

	LastTime time.Time // of the oldest newest block that a request knew
	Unlisted string    // why a list says nothing, if a witness is not listed
}

// Between iterates over the logs in the blocks from to to, oldest first, whatever the node's
// limits are: after an error that may be about the range of blocks, and after a list that is not
// whole, it asks for half of it, and for more again after some successes. If even one block fails,
// its receipts are read; if that fails, too, an error ends the iteration, and so does any other
// error. A rate limit splits nothing. Only the logs of one request are in memory, and exact doubles
// among them count once.
func (l *Logs) Between(ctx context.Context, from, to uint64) iter.Seq2[ramp.Log, error] {
	return func(yield func(ramp.Log, error) bool) {
		from := from              // the iteration may be repeated
		width := to - from        // one less than the number of blocks to ask for
		successes, enough := 0, 4 // before more is asked for
		for grown := false; from <= to; {
			last := from + min(width, to-from)
			logs, whole, err := l.list(ctx, from, last)
			if from < last && ctx.Err() == nil && (isAboutRange(err) || err == nil && !whole) {
				if grown { // a limit that stays: try that more rarely
					enough *= 2
				}
				width, successes, grown = (last-from)/2, 0, false
				continue
			}
			if from == last && ctx.Err() == nil && (isAboutRange(err) || err == nil && !whole) {
				logs, err = l.readBlock(ctx, from, logs, err)
			}
			if err != nil {
				yield(ramp.Log{}, err)
				return
			}
			for _, log := range logs {
				if !yield(log, nil) {
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

// maxBelieved is the longest list that is believed to be whole. Nodes are known that stop after
// 100 logs or more.
const maxBelieved = 19

// list asks for the logs of some blocks. whole is false if the list is cut off. To find out, a long
// list is asked for again from the block of its last log on, and up to that of its first: a node
// that stops after some number of logs then lists more. If all logs are in one of several blocks,
// the blocks before and after it are asked for. Of a long list of one block, nobody knows.
func (l *Logs) list(ctx context.Context, from, to uint64) (logs []ramp.Log, whole bool, err error) {
	lists, err := l.ask(ctx, to, [2]uint64{from, to})
	if err != nil {
		return nil, false, err
	}
	logs = lists[0]
	if len(logs) <= maxBelieved {
		return logs, true, nil
	}
	if from == to {
		return logs, false, nil
	}
	first, last, err := span(logs)
	if err != nil {
		return nil, false, err
	}
	ends := [][2]uint64{{from, first}, {last, to}}
	if first == last {
		ends = nil
		if from < first {
			ends = append(ends, [2]uint64{from, first - 1})
		}
		if last < to {
			ends = append(ends, [2]uint64{last + 1, to})
		}
	}
	if lists, err = l.ask(ctx, to, ends...); err != nil {
		return nil, false, err
	}
	if slices.ContainsFunc(lists, func(list []ramp.Log) bool { return adds(list, logs) }) {
		return nil, false, nil
	}
	if first == last {
		logs, err = l.readBlock(ctx, first, logs, nil)
	}
	return logs, true, err
}

// span returns the first and the last block of logs.
func span(logs []ramp.Log) (first, last uint64, err error) {
	first = math.MaxUint64
	for _, l := range logs {
		block, err := l.BlockNumber.Uint64()
		if err != nil {
			return 0, 0, fmt.Errorf("ramp: eth_getLogs: a log names no block: %w", err)
		}
		first, last = min(first, block), max(last, block)
	}
	return first, last, nil
}

// usualLag is how many blocks the machines behind one address are apart at most.
const usualLag = 16

// ask asks for the logs of ranges of blocks, the last of which ends at to, in one request.
func (l *Logs) ask(ctx context.Context, to uint64, ranges ...[2]uint64) ([][]ramp.Log, error) {
	const tries = 3
	for try := 1; ; try++ {
		lists, newest, err := l.askOnce(ctx, ranges)
		if err != nil {
			return nil, err
		}
		behind := Behind(newest, to)
		if behind == nil {
			if at := TimeOf(newest.Timestamp); l.LastTime.IsZero() || at.Before(l.LastTime) {
				l.LastTime = at
			}
			return lists, nil
		}
		if number, _ := newest.Number.Uint64(); try == tries || to-number > usualLag {
			return nil, fmt.Errorf("ramp: eth_getLogs: %w", behind)
		}
		select {
		case <-time.After(time.Second): // another machine has it already
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// askOnce also returns the newest block that the node had before and after it listed.
func (l *Logs) askOnce(ctx context.Context, ranges [][2]uint64) ([][]ramp.Log, *ramp.Block, error) {
	lists, known := make([][]ramp.Log, len(ranges)), make([][]ramp.Log, len(l.Witnesses))
	var calls []ramp.BatchCall
	for n, blocks := range ranges {
		filter := l.Filter
		filter.FromBlock, filter.ToBlock = ramp.AtBlock(blocks[0]), ramp.AtBlock(blocks[1])
		calls = append(calls, Call(&lists[n], "eth_getLogs", filter))
	}
	for n, w := range l.Witnesses {
		calls = append(calls, Call(&known[n], "eth_getLogs", w.filter()))
	}
	// In a batch, a call that the node rejects is not logged as a failure.
	calls, newest, err := AskWithNewest(ctx, l.Chain, calls...)
	if err != nil {
		return nil, nil, err
	}
	for n, call := range calls {
		if call.Err != nil && n >= len(ranges) { // of a witness
			return nil, nil, &besideError{call.Err}
		}
		err = cmp.Or(err, call.Err)
	}
	if err != nil {
		return nil, nil, err
	}
	for n, w := range l.Witnesses {
		if !w.in(known[n]) {
			l.Unlisted = w.unlisted()
		}
	}
	for n := range lists {
		lists[n] = Distinct(lists[n])
	}
	return lists, newest, nil
}

// isAboutRange reports whether a log query may have failed because of its range: the node
// answered with an error that is not a rate limit, with too much, or not in time.
func isAboutRange(err error) bool {
	var status *ramp.HTTPError
	var failed *ramp.RPCError
	var wrong *ramp.InvalidError // such as too many logs
	var timeout interface{ Timeout() bool }
	var beside *besideError
	switch {
	case errors.As(err, &beside):
		return false
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

// readBlock returns the logs of one block that match the filter, from the receipts of all its
// transactions: no list of them can be believed, or the node rejected it because of its length.
// Anybody can fill a block with events, which must hide nothing and stop nobody.
func (l *Logs) readBlock(
	ctx context.Context, number uint64, listed []ramp.Log, rejected error,
) ([]ramp.Log, error) {
	receipts, err := receiptsOf(ctx, l.Chain, number)
	var logs []ramp.Log
	for _, receipt := range receipts {
		logs = append(logs, slices.DeleteFunc(Distinct(receipt.Logs), func(log ramp.Log) bool {
			return log.Removed || !matches(&l.Filter, &log)
		})...)
	}
	if err == nil && adds(listed, logs) {
		err = errors.New("the receipts lack an event that is listed")
	}
	if err != nil {
		return nil, cmp.Or(rejected, fmt.Errorf("ramp: block %d has more than %d events, which the node %s "+
			"may not have listed whole, and its receipts cannot be read: use another node: %w",
			number, maxBelieved, l.Chain, err))
	}
	return logs, nil
}
