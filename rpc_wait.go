package ramp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go/internal/redact"
	"github.com/token-ramp/ramp-go/internal/transport"
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
// the transaction itself: 0 means 1. A block that is newer than the node's newest block counts for
// nothing.
//
// It keeps polling while the node does not know the transaction, is unreachable or
// rate-limiting, or fails in another way that may pass. If the block is replaced, it
// starts over. It fails at once if the node is on another chain, returns the receipt of a
// different transaction, denies access with HTTP 401 or 403, or rejects the call with
// [RPCMethodNotFound] or [RPCInvalidParams]. Give ctx a deadline. When it passes, the
// error wraps the error of ctx, and says why the call was still waiting.
func (r *RPC) WaitReceipt(ctx context.Context, hash common.Hash, confirmations uint64) (*Receipt, error) {
	_, receipt, err := r.wait(ctx, hash, confirmations, false)
	return receipt, err
}

// WaitTransaction waits as [RPC.WaitReceipt] does, and returns the transaction too, which
// says what a receipt may lack: who paid for it, and for which chain it was signed.
func (r *RPC) WaitTransaction(ctx context.Context, hash common.Hash, confirmations uint64) (*Transaction,
	*Receipt, error) {
	return r.wait(ctx, hash, confirmations, true)
}

// wait waits for a receipt, and for the transaction if whole is true.
func (r *RPC) wait(ctx context.Context, hash common.Hash, confirmations uint64,
	whole bool) (transaction *Transaction, receipt *Receipt, err error) {
	if err := r.made(); err != nil {
		return nil, nil, err
	}
	ctx, op := r.begin(ctx, OperationRPC, "wait")
	reason := errors.New("the node has not answered yet")
	for {
		transaction, receipt, err = r.checkTransaction(ctx, hash, confirmations, whole)
		if err == nil || endsWait(err) && ctx.Err() == nil {
			break
		}
		if ctx.Err() == nil { // a canceled call's error adds nothing
			reason = transport.Unmarked(err)
			select {
			case <-time.After(max(r.poll, min(transport.Marked(err).After, maxWaitRetryAfter))):
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
		err = redact.Bounded(fmt.Errorf("ramp: wait for transaction %s: %w", hash, transport.Unmarked(err)))
	}
	r.record(ctx, op, err)
	return transaction, receipt, err
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
		return status != nil &&
			(status.Status == http.StatusUnauthorized || status.Status == http.StatusForbidden)
	}
}

// checkTransaction checks once.
func (r *RPC) checkTransaction(ctx context.Context, hash common.Hash, confirmations uint64,
	whole bool) (*Transaction, *Receipt, error) {
	var id, newest Quantity
	receipt, transaction := new(Receipt), new(Transaction)
	chainCall := &BatchCall{Method: "eth_chainId", Into: &id}
	receiptCall := &BatchCall{Method: "eth_getTransactionReceipt", Params: []any{hash}, Into: receipt}
	transactionCall := &BatchCall{Method: "eth_getTransactionByHash", Params: []any{hash}, Into: transaction}
	newestCall := &BatchCall{Method: "eth_blockNumber", Into: &newest}
	calls := []*BatchCall{chainCall, receiptCall, transactionCall}
	switch {
	case whole:
	case r.chainID != 0:
		calls = calls[:2]
	default:
		calls = calls[1:2]
	}
	if confirmations <= 1 { // otherwise the block is checked at its depth
		calls = append(slices.Clone(calls), newestCall)
	}
	err := r.lookUp(ctx, calls...)
	if err == nil {
		err = cmp.Or(r.checkReported(chainCall.Err, id),
			r.checkReceipt(hash, receipt, receiptCall.Err, id))
	}
	if err == nil && confirmations <= 1 {
		err = checkMade(receipt, newest, newestCall.Err)
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
	if own := transaction.ChainID.Big(); err == nil && own != nil && own.Sign() > 0 && r.compareChain(
		transaction.ChainID) != nil {
		r.http.Log.LogAttrs(ctx, slog.LevelWarn, "ramp: a transaction names another chain ID than its node",
			slog.String("tx_hash", hash.Hex()), slog.String("chain_id", own.String()),
			slog.Uint64("node", r.chainID))
	}
	return transaction, receipt, err
}

// lookUp makes calls once, in one request if the node takes batches. Its error is
// that of a request; each call has its own.
func (r *RPC) lookUp(ctx context.Context, calls ...*BatchCall) error {
	timeout := r.http.Timeout
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
					call.Err = &transport.Retryable{Err: call.Err, After: after}
				}
				return err
			})
		})
		setErr(part, err)
		return err
	})
}

// checkReported checks the chain ID of the node, which may be another node behind the same URL. What
// the transaction says decides nothing: a network may have been renumbered after it was signed.
func (r *RPC) checkReported(err error, id Quantity) error {
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
		return withMethod("eth_getTransactionReceipt",
			fmt.Errorf("%s: %w; the node's chain ID is %s", hash, ErrNotFound, id))
	case err != nil:
		return err
	case receipt.TransactionHash != hash && receipt.TransactionHash != common.Hash{}:
		return &wrongHashError{"eth_getTransactionReceipt", receipt.TransactionHash}
	case !receipt.BlockNumber.Present() || receipt.BlockHash == common.Hash{}:
		return errors.New("the transaction is in no block yet")
	}
	return nil
}

// checkMade checks that the node has made the block of a receipt. Some nodes name a block that
// they are about to make, which may become another one.
func checkMade(receipt *Receipt, newest Quantity, err error) error {
	block, unread := receipt.BlockNumber.Uint64()
	head, absent := newest.Uint64()
	if err = cmp.Or(err, unread, absent); err != nil {
		return err
	}
	if block > head {
		return fmt.Errorf("the transaction is in block %d, which is not made yet: the newest block is %d",
			block, head)
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
	blockCall := &BatchCall{Method: "eth_getBlockByNumber", Params: []any{AtBlock(number), false},
		Into: &block}
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
		return fmt.Errorf(
			"block %d, which contained the transaction, was replaced: the receipt names block %s, "+
				"and the chain has %s; if that stays so, ask another node", number, receipt.BlockHash,
			block.Hash)
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

// Logs returns the logs that match a filter, oldest first: eth_getLogs. A null answer is
// an error.
func (r *RPC) Logs(ctx context.Context, f LogFilter) (logs []Log, err error) {
	err = r.Call(ctx, &logs, "eth_getLogs", f)
	return logs, err
}
