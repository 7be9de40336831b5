package ramp

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
)

// Logs returns the logs that match a filter, oldest first: eth_getLogs (interface
// 4.4). The slice is empty if none match. A null answer is an error, because it
// does not say whether there are logs. Nodes limit the range of blocks or the number
// of logs; see [RPC.LogsBetween].
func (r *RPC) Logs(ctx context.Context, f LogFilter) ([]Log, error) {
	const method = "eth_getLogs"
	var logs []Log
	ctx, op := r.transport.begin(ctx, OperationRPC, method)
	err := r.attempts(ctx, method, true, func(ctx context.Context, e *endpoint) error {
		err := r.exchange(ctx, e, &logs, method, []any{f})
		if tooLarge, _ := isLargeRange(err); tooLarge {
			return withoutMark(err) // the same range would be rejected again
		}
		return err
	})
	r.record(ctx, op, err)
	return logs, err
}

// LogsBetween iterates over the logs in the blocks from to to, oldest first, whatever
// the node's limit on the range of blocks or on the number of logs is: where it
// rejects a range, the range is split. Only the logs of one request are in memory.
// The filter must not have a BlockHash; its FromBlock and ToBlock are not used. An
// error ends the iteration.
//
//	for log, err := range chain.LogsBetween(ctx, filter, first, last) {
func (r *RPC) LogsBetween(ctx context.Context, filter LogFilter, from, to uint64) iter.Seq2[Log, error] {
	type blocks struct{ from, to uint64 }
	return func(yield func(Log, error) bool) {
		var rest []blocks // in reverse order
		if from <= to {
			rest = []blocks{{from, to}}
		}
		widest := to - from // to minus from of a range that the node may take
		for len(rest) > 0 {
			b := rest[len(rest)-1]
			rest = rest[:len(rest)-1]
			if b.to-b.from > widest {
				rest = append(rest, blocks{b.from + widest + 1, b.to})
				b.to = b.from + widest
			}
			filter.FromBlock, filter.ToBlock = AtBlock(b.from), AtBlock(b.to)
			logs, err := r.Logs(ctx, filter)
			if tooLarge, lasting := isLargeRange(err); tooLarge && b.from < b.to {
				half := (b.to - b.from) / 2
				if lasting {
					widest = half
				}
				rest = append(rest, blocks{b.from + half + 1, b.to}, blocks{b.from, b.from + half})
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
		}
	}
}

// isLargeRange reports whether a node rejected a log query because of its range, and
// whether it would reject every range of that length: a limit on blocks is lasting,
// one on logs or time is not. The text decides, because nodes use many codes, some of
// them for rate limits too.
func isLargeRange(err error) (tooLarge, lasting bool) {
	text := errorText(err)
	says := func(part string) bool { return strings.Contains(text, part) }
	switch {
	case err == nil:
		return false, false
	case errors.Is(err, errAnswerTooLarge), slices.ContainsFunc([]string{
		"returned more than",   // Infura -32005 and others: query returned more than 10000 results
		"response size",        // Alchemy -32602: Log response size exceeded. …; Polygon's providers
		"logs matched",         // Erigon -32000: logs matched by query exceeds limit of 10000
		"exceeds max results",  // reth -32602: query exceeds max results 20000, retry with the range …
		"response too large",   // gateways -32603: backend response too large
		"response is too big",  // reth -32008
		"query timeout",        // Infura -32005: query timeout exceeded
		"query timed out",      // Blast -32000: log query timed out
		"exceeds max log size", // -32000: query exceeds max log size
	}, says):
		return true, false
	default:
		lasting = slices.ContainsFunc([]string{
			"block range should work",  // Alchemy -32600: … with up to a 500 block range. Based on your parameters, this block range should work: …
			"range is too ",            // Ankr -32600: block range is too wide; Optimism: Block range is too large
			"range too large",          // Cloudflare -32047: … range too large. Max range: 800; Erigon -32005
			"block range limit",        // Chainstack -32602: Block range limit exceeded
			"range is larger than",     // Morph -32000: block range is larger than max block range
			"range is bigger than",     // Scroll -32000: block range is bigger than maxBlockRange
			"is bigger than range",     // Tenderly -32602, in the data: range 9009594 is bigger than range limit 2000
			"exceeds limit of",         // Infura -32602: range 1000000 exceeds limit of 10000
			"exceeds max block range",  // reth -32602: query exceeds max block range 100000
			"maximum block range",      // BNB chain -32000: exceed maximum block range: 50000
			"max range limit",          // Arbitrum's providers -32000: Exceeded max range limit for eth_getLogs: 10000
			"getlogs is limited to",    // QuickNode -32614: eth_getLogs is limited to a 10,000 range
			"are limited to",           // QuickNode -32602: eth_getLogs and eth_newFilter are limited to a 10,000 blocks range
			"too many blocks",          // Avalanche -32000: requested too many blocks from 1 to 5000, maximum is set to 2048
			"of requested blocks",      // thirdweb -32005: Maximum allowed number of requested blocks is 3500
			"must be smaller than",     // Harmony -32000: query must be smaller than size 1024
			"blocks distance",          // GetBlock -32000: maximum [from, to] blocks distance: 2000
			"blocks are not supported", // dRPC 35: ranges over 10000 blocks are not supported on freetier
		}, says)
		return lasting, lasting
	}
}
