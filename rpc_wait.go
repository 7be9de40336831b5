package ramp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// maxWaitRetryAfter caps how long a single Retry-After can delay the wait.
const maxWaitRetryAfter = 5 * time.Minute

// WaitReceipt waits until a transaction has a number of confirmations, and returns
// its receipt. Confirmations count the block of the transaction itself: 0 and 1
// both mean that it is in a block.
//
// It keeps polling while the node does not know the transaction, is indexing, is
// unreachable or rate-limiting, or returns another retryable error (see
// [RPCConfig].Retries). If the block of the transaction is replaced, it starts
// over. It fails if the node returns a final error, an answer that cannot be
// decoded, or the receipt of a different transaction. If ctx ends, the error wraps
// the error of ctx and the last reason for waiting. ctx should have a deadline.
//
// A failed transaction has a receipt too; see [Receipt.Succeeded].
func (r *RPC) WaitReceipt(ctx context.Context, hash common.Hash, confirmations uint64) (*Receipt, error) {
	ctx, op := r.transport.begin(ctx, OperationRPC, "wait")
	receipt, err := r.waitReceipt(ctx, hash, confirmations)
	if err != nil {
		err = fmt.Errorf("ramp: wait for transaction %s: %w", hash, err)
	}
	r.record(ctx, op, err)
	return receipt, err
}

func (r *RPC) waitReceipt(ctx context.Context, hash common.Hash, confirmations uint64) (*Receipt, error) {
	reason := errors.New("the node has not answered yet")
	for {
		receipt, err := r.checkReceipt(ctx, hash, confirmations)
		var retryable *retryableError
		switch {
		case err == nil:
			return receipt, nil
		case ctx.Err() != nil: // a canceled call's error adds nothing
		case !errors.As(err, &retryable):
			return nil, err
		default:
			reason = retryable.error
			select {
			case <-time.After(max(r.poll, min(retryable.after, maxWaitRetryAfter))):
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%w: %w", ctx.Err(), reason)
		}
	}
}

// checkReceipt checks once. Errors that may pass are marked retryable.
func (r *RPC) checkReceipt(ctx context.Context, hash common.Hash, confirmations uint64) (*Receipt, error) {
	if err := r.checkChain(ctx); err != nil {
		return nil, err
	}
	receipt := new(Receipt)
	err := r.attempt(ctx, receipt, "eth_getTransactionReceipt", []any{hash})
	var refused *RPCError
	switch {
	case errors.Is(err, ErrNotFound),
		errors.As(err, &refused) && strings.Contains(refused.Message+string(refused.Data), "indexing is in progress"):
		return nil, &retryableError{error: err}
	case err != nil:
		return nil, err
	case receipt.TransactionHash != hash && receipt.TransactionHash != common.Hash{}:
		return nil, &wrongReceiptError{receipt.TransactionHash}
	case !receipt.BlockNumber.Present() || receipt.BlockHash == common.Hash{}:
		return nil, &retryableError{error: errors.New("the transaction is in no block yet")}
	case confirmations <= 1:
		return receipt, nil
	}

	number, err := receipt.BlockNumber.Uint64()
	if err != nil {
		return nil, err
	}
	var newest Quantity
	if err := r.attempt(ctx, &newest, "eth_blockNumber", nil); err != nil {
		return nil, err
	}
	head, err := newest.Uint64()
	if err != nil {
		return nil, err
	}
	if has := max(head+1, number) - number; has < confirmations { // another node behind the URL may lag
		return nil, &retryableError{error: fmt.Errorf("the transaction has %d of %d confirmations", has, confirmations)}
	}
	var block Block
	err = r.attempt(ctx, &block, "eth_getBlockByNumber", []any{AtBlock(number), false})
	switch {
	case errors.Is(err, ErrNotFound), err == nil && block.Hash != receipt.BlockHash:
		return nil, &retryableError{error: fmt.Errorf("block %d, which contained the transaction, was replaced", number)}
	case err != nil:
		return nil, err
	}
	return receipt, nil
}

// wrongReceiptError means that the node returned the receipt of a different
// transaction.
type wrongReceiptError struct{ hash common.Hash }

func (e *wrongReceiptError) Error() string {
	return fmt.Sprintf("ramp: eth_getTransactionReceipt: the node answered with the receipt of transaction %s", e.hash)
}
