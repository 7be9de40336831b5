package ramp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/token-ramp/ramp-go/internal/redact"
)

const (
	// maxWaitRetryAfter caps how long a single Retry-After can delay the wait.
	maxWaitRetryAfter = 5 * time.Minute

	// hurriedAttempt limits an attempt when less than a whole Timeout is left, so that one answer that
	// hangs does not use up the wait.
	hurriedAttempt = 2 * time.Second
)

// WaitReceipt waits until a transaction has a number of confirmations, and returns its
// receipt, also if it failed; see [Receipt.Succeeded]. Confirmations count the block of
// the transaction itself: 0 means 1.
//
// It keeps polling while the node does not know the transaction, is unreachable or
// rate-limiting, or fails in another way that may pass. If the block is replaced, it
// starts over. It fails at once if the node is on another chain, returns the receipt of a
// different transaction, denies access with HTTP 401 or 403, or rejects the call with
// [RPCMethodNotFound] or [RPCInvalidParams]. ctx should have a deadline; the error then
// wraps that of ctx, and has the last reason for waiting.
func (r *RPC) WaitReceipt(ctx context.Context, hash common.Hash, confirmations uint64) (*Receipt, error) {
	receipt, _, err := r.wait(ctx, hash, confirmations, false)
	return receipt, err
}

// wait waits for a receipt, and for the transaction if whole is true.
func (r *RPC) wait(ctx context.Context, hash common.Hash, confirmations uint64, whole bool) (receipt *Receipt, transaction *Transaction, err error) {
	ctx, op := r.begin(ctx, OperationRPC, "wait")
	reason := errors.New("the node has not answered yet")
	for {
		receipt, transaction, err = r.checkTransaction(ctx, hash, confirmations, whole)
		if err == nil || endsWait(err) && ctx.Err() == nil {
			break
		}
		if ctx.Err() == nil { // a canceled call's error adds nothing
			reason = withoutMark(err)
			select {
			case <-time.After(max(r.poll, min(marked(err).after, maxWaitRetryAfter))):
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", ctx.Err(), reason)
			break
		}
	}
	if err != nil {
		receipt, transaction = nil, nil
		err = bounded(fmt.Errorf("ramp: wait for transaction %s: %w", hash, withoutMark(err)))
	}
	r.record(ctx, op, err)
	return receipt, transaction, err
}

// endsWait reports whether an error can only occur again.
func endsWait(err error) bool {
	var status *HTTPError
	var other *wrongHashError
	switch {
	case errors.Is(err, ErrWrongChain), errors.As(err, &other):
		return true
	case errors.As(err, &status) && status.Status == http.StatusTooManyRequests:
		// With any code inside.
		return false
	case errors.Is(err, RPCMethodNotFound), errors.Is(err, RPCInvalidParams):
		return true
	default:
		return status != nil && (status.Status == http.StatusUnauthorized || status.Status == http.StatusForbidden)
	}
}

// checkTransaction checks once.
func (r *RPC) checkTransaction(ctx context.Context, hash common.Hash, confirmations uint64, whole bool) (*Receipt, *Transaction, error) {
	var id Quantity
	receipt, transaction := new(Receipt), new(Transaction)
	chainCall := &BatchCall{Method: "eth_chainId", Into: &id}
	receiptCall := &BatchCall{Method: "eth_getTransactionReceipt", Params: []any{hash}, Into: receipt}
	transactionCall := &BatchCall{Method: "eth_getTransactionByHash", Params: []any{hash}, Into: transaction}
	calls := []*BatchCall{chainCall, receiptCall, transactionCall}
	switch {
	case whole:
	case r.chainID != 0:
		calls = calls[:2]
	default:
		calls = calls[1:2]
	}
	err := r.lookUp(ctx, calls...)
	if err == nil {
		err = cmp.Or(r.checkReported(chainCall.Err, id, transaction),
			r.checkReceipt(hash, receipt, receiptCall.Err, id))
	}
	switch {
	case err != nil:
	case transactionCall.Err != nil: // perhaps null, from another node behind the URL
		err = transactionCall.Err
	case whole && transaction.Hash != hash:
		err = &wrongHashError{transactionCall.Method, transaction.Hash}
	case confirmations > 1:
		err = r.checkDepth(ctx, receipt, confirmations)
	}
	return receipt, transaction, err
}

// lookUp makes calls once, in one request if the node takes batches. Its error is
// that of a request; each call has its own.
func (r *RPC) lookUp(ctx context.Context, calls ...*BatchCall) error {
	timeout := r.timeout
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < timeout {
		timeout = min(timeout, hurriedAttempt)
	}
	return r.sendParts(ctx, calls, func(ctx context.Context, part []*BatchCall) error {
		name := "batch"
		if len(part) == 1 {
			name = part[0].Method
		}
		err := r.askInOrder(ctx, func(e *endpoint) error {
			return r.attempt(ctx, e, name, timeout, func(ctx context.Context, e *endpoint) error {
				again, after, err := r.exchangeBatch(ctx, e, part)
				for _, call := range again {
					call.Err = &retryableError{error: call.Err, after: after}
				}
				return err
			})
		})
		setErr(part, err)
		return err
	})
}

// checkReported checks the chain ID in a transaction, and without one that of the
// node, which may be another node behind the same URL.
func (r *RPC) checkReported(err error, id Quantity, transaction *Transaction) error {
	if own := transaction.ChainID.Big(); own != nil && own.Sign() > 0 {
		id, err = transaction.ChainID, nil
	}
	if r.chainID == 0 {
		return nil
	}
	if err == nil {
		err = withMethod("eth_chainId", r.compareChain(id))
	}
	if errors.Is(err, ErrWrongChain) {
		for _, e := range r.endpoints { // every other call must notice too
			e.checked.Store(false)
		}
	}
	return err
}

// checkReceipt checks that a receipt is in a block. id is the chain ID of the node,
// if it is known.
func (r *RPC) checkReceipt(hash common.Hash, receipt *Receipt, err error, id Quantity) error {
	switch {
	case errors.Is(err, ErrNotFound) && id.Present():
		return withMethod("eth_getTransactionReceipt", fmt.Errorf("%s: %w; the node's chain ID is %s", hash, ErrNotFound, id))
	case err != nil:
		return err
	case receipt.TransactionHash != hash && receipt.TransactionHash != common.Hash{}:
		return &wrongHashError{"eth_getTransactionReceipt", receipt.TransactionHash}
	case !receipt.BlockNumber.Present() || receipt.BlockHash == common.Hash{}:
		return errors.New("the transaction is in no block yet")
	}
	return nil
}

// checkDepth checks that the block of a receipt has confirmations, and was not
// replaced.
func (r *RPC) checkDepth(ctx context.Context, receipt *Receipt, confirmations uint64) error {
	number, err := receipt.BlockNumber.Uint64()
	if err != nil {
		return err
	}
	var newest Quantity
	var block Block
	headCall := &BatchCall{Method: "eth_blockNumber", Into: &newest}
	blockCall := &BatchCall{Method: "eth_getBlockByNumber", Params: []any{AtBlock(number), false}, Into: &block}
	err = r.lookUp(ctx, headCall, blockCall)
	head, absent := newest.Uint64()
	if err = cmp.Or(err, headCall.Err, absent); err != nil {
		return err
	}
	has := max(head+1, number) - number
	switch {
	case has < confirmations: // another node behind the URL may lag
		return fmt.Errorf("the transaction has %d of %d confirmations", has, confirmations)
	case errors.Is(blockCall.Err, ErrNotFound), blockCall.Err == nil && block.Hash != receipt.BlockHash:
		return fmt.Errorf("block %d, which contained the transaction, was replaced", number)
	}
	return blockCall.Err
}

// wrongHashError means that the node returned a different transaction, or its
// receipt.
type wrongHashError struct {
	method string
	hash   common.Hash
}

func (e *wrongHashError) Error() string {
	return fmt.Sprintf("ramp: %s: the node answered with transaction %s", e.method, e.hash)
}

// MismatchError means that the chain contradicts a result of the service.
type MismatchError struct {
	Field          string // the first that differs, as the interface names it: "receipt.logs[1].data"
	Webhook, Chain string // the values of the result and of the chain, on one line and shortened
}

// Error names the field and both values.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s is %s in the result, but %s on the chain", e.Field, e.Webhook, e.Chain)
}

// Confirm verifies a result on the chain (interface 6, 4.4). It waits as
// [RPC.WaitReceipt] does, and compares what can move assets: the hash, the status, and
// the events of the tokens that the intent names, if the result has logs. If the
// transaction succeeded, each of these tokens must have an event. A difference is a
// [*MismatchError]; a success whose intent is missing or unreadable is an
// [*InvalidError]. Gas and positions in a block are not compared: use the chain's
// receipt, which it returns.
//
// That proves that the transaction exists, not that it belongs to this order: a [Store]
// lets each transaction end only one order, and [Proof] compares it with the order. A
// result does not name its network, so set [RPCConfig].ChainID: it is compared with that
// of the transaction or, if it has none, of the node.
func (r *RPC) Confirm(ctx context.Context, result *Result, confirmations uint64) (*Receipt, *Transaction, error) {
	text, err := hexutil.Decode(result.TxHash)
	if err != nil || len(text) != common.HashLength {
		return nil, nil, invalid("tx_hash", "must be 0x followed by 64 hex digits")
	}
	hash := common.Hash(text)
	if result.Succeeded() {
		// Without its tokens, any successful transaction would confirm it.
		var p problems
		if result.Intent.check(&p); p != nil {
			return nil, nil, p.err()
		}
	}
	receipt, transaction, err := r.wait(ctx, hash, confirmations, true)
	var other *wrongHashError
	var different *MismatchError
	switch {
	case errors.As(err, &other):
		different = &MismatchError{Field: "tx_hash", Webhook: hash.String(), Chain: other.hash.String()}
	case err != nil:
		return nil, nil, err
	default:
		different = compare(result, hash, receipt)
	}
	if different != nil {
		return nil, nil, fmt.Errorf("ramp: confirm transaction %s: %w", hash, different)
	}
	return receipt, transaction, nil
}

// compare returns the first contradiction between a result and the chain, or nil. It
// compares what can move assets. Whoever forges anything else gains nothing, because
// the chain's receipt replaces the reported one.
func compare(result *Result, hash common.Hash, chain *Receipt) *MismatchError {
	reported := &result.Receipt
	first := cmp.Or(
		mismatch("tx_hash", hash.String(), chain.TransactionHash.String()),
		mismatch("receipt.transactionHash", cmp.Or(reported.TransactionHash, hash).String(), chain.TransactionHash.String()),
		mismatch("receipt.status", reported.Status.String(), chain.Status.String()))
	var tokens []common.Address
	var unmoved *MismatchError // the first token without an event
	for _, s := range []side{{"intent.from", result.Intent.From}, {"intent.to", result.Intent.To}} {
		for i, asset := range s.assets {
			if asset.Type == TypeAsset {
				continue
			}
			token := common.HexToAddress(asset.ID)
			tokens = append(tokens, token)
			emitted := slices.ContainsFunc(chain.Logs, func(l Log) bool { return l.Address == token })
			if unmoved == nil && !(common.IsHexAddress(asset.ID) && emitted) {
				unmoved = mismatch(fmt.Sprintf("%s[%d].id", s.path, i), asset.ID, "without an event")
			}
		}
	}
	if first == nil && reported.Logs != nil {
		first = compareEvents(eventsOf(tokens, reported.Logs), eventsOf(tokens, chain.Logs))
	}
	if first == nil && result.Succeeded() {
		first = unmoved
	}
	return first
}

// mismatch returns nil for equal values. It shows the beginnings of others.
func mismatch(field, webhook, chain string) *MismatchError {
	if webhook == chain {
		return nil
	}
	shown := func(value string) string { return redact.New().Line(value, maxExcerpt/3) }
	return &MismatchError{Field: field, Webhook: shown(webhook), Chain: shown(chain)}
}

// eventsOf returns the logs of tokens.
func eventsOf(tokens []common.Address, logs []Log) []Log {
	other := func(l Log) bool { return !slices.Contains(tokens, l.Address) }
	return slices.DeleteFunc(slices.Clone(logs), other)
}

// compareEvents compares the events of the order's tokens, wherever in the block they
// are.
func compareEvents(webhook, chain []Log) *MismatchError {
	const field = "receipt.logs"
	if len(webhook) != len(chain) {
		return mismatch(field, fmt.Sprintf("a list of %d", len(webhook)), fmt.Sprintf("a list of %d", len(chain)))
	}
	for i, l := range webhook {
		switch c := chain[i]; {
		case l.Address != c.Address, !slices.Equal(l.Topics, c.Topics):
			return mismatch(field, fmt.Sprint(l.Address, l.Topics), fmt.Sprint(c.Address, c.Topics))
		case !bytes.Equal(l.Data, c.Data):
			return mismatch(field, l.Data.String(), c.Data.String())
		}
	}
	return nil
}

// Logs returns the logs that match a filter, oldest first: eth_getLogs. A null answer is
// an error. See also [RPC.LogsBetween].
func (r *RPC) Logs(ctx context.Context, f LogFilter) ([]Log, error) {
	logs, _, err := r.askLogs(ctx, f, false)
	return logs, err
}

// askLogs makes a log query. If its range can be split, an error that may be about the
// range is retried only once, and is not logged as a failure; tooWide is then true.
func (r *RPC) askLogs(ctx context.Context, f LogFilter, splits bool) (logs []Log, tooWide bool, err error) {
	const method = "eth_getLogs"
	ctx, op := r.begin(ctx, OperationRPC, method)
	tries := 0
	err = r.attempts(ctx, method, true, func(ctx context.Context, e *endpoint) error {
		err := r.exchange(ctx, e, &logs, method, []any{f})
		tries++
		if tooWide = splits && isAboutRange(err) && marked(err).after == 0; tooWide && tries > 1 {
			return withoutMark(err)
		}
		return err
	})
	if tooWide = tooWide && err != nil && ctx.Err() == nil; tooWide {
		r.end(ctx, op, err)
		r.log.LogAttrs(ctx, slog.LevelDebug, "ramp: asking for fewer blocks", slog.Any("error", err))
	} else {
		r.record(ctx, op, err)
	}
	return logs, tooWide, err
}

// LogsBetween iterates over the logs in the blocks from to to, oldest first, whatever the
// node's limits are: after an error that may be about the range of blocks, it asks for
// half of it, and for more again after some successes. If even one block fails, its error
// ends the iteration, and so does any other error. A rate limit is retried and splits
// nothing. -32005, an error of HTTP and a timeout are about the range if a second try
// fails too. Only the logs of one request are in memory. The filter must not have a
// BlockHash; its FromBlock and ToBlock are not used.
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
