package ramp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// mostPatience is the longest Retry-After that a wait for a transaction obeys:
// it is there to wait, but not for ever on one word of a node.
const mostPatience = 5 * time.Minute

// WaitReceipt waits until a transaction has a number of confirmations, and
// returns its receipt. Confirmations count the block of the transaction itself:
// 0 and 1 both mean that it is in a block.
//
// It keeps polling while the node does not know the transaction, still indexes
// it, is unreachable or reports an error that is retried (see
// [RPCConfig].Retries), and starts over when the block of the transaction was
// replaced. It ends at an answer that cannot be read, at an error of the node
// that is final, under whatever HTTP status it comes, and with ctx, which should
// have a deadline: the error then says what was still missing, and wraps that
// beside the error of ctx.
//
// A failed transaction has a receipt too: see [Receipt.Succeeded]. The receipt of
// another transaction than the one asked for is refused.
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
	missing := errors.New("the node has not answered yet")
	for {
		receipt, err := r.look(ctx, hash, confirmations)
		var passing *transient
		switch {
		case err == nil:
			return receipt, nil
		case ctx.Err() != nil: // what a call says that was cut off is no news
		case !errors.As(err, &passing):
			return nil, err
		default:
			missing = passing.error
			select {
			case <-time.After(max(r.poll, min(passing.after, mostPatience))):
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%w: %w", ctx.Err(), missing)
		}
	}
}

// look looks once. What may be different the next time is marked as transient.
func (r *RPC) look(ctx context.Context, hash common.Hash, confirmations uint64) (*Receipt, error) {
	if err := r.checkChain(ctx); err != nil {
		return nil, err
	}
	receipt := new(Receipt)
	err := r.once(ctx, receipt, "eth_getTransactionReceipt", []any{hash})
	var refused *RPCError
	switch {
	case errors.Is(err, ErrNotFound),
		errors.As(err, &refused) && strings.Contains(refused.Message+string(refused.Data), "indexing is in progress"):
		return nil, &transient{error: err}
	case err != nil:
		return nil, err
	case receipt.TransactionHash != hash && receipt.TransactionHash != common.Hash{}:
		return nil, &otherReceiptError{receipt.TransactionHash}
	case !receipt.BlockNumber.Present() || receipt.BlockHash == common.Hash{}:
		return nil, &transient{error: errors.New("the transaction is in no block yet")}
	case confirmations <= 1:
		return receipt, nil
	}

	number, err := receipt.BlockNumber.Uint64()
	if err != nil {
		return nil, err
	}
	var newest Quantity
	if err := r.once(ctx, &newest, "eth_blockNumber", nil); err != nil {
		return nil, err
	}
	head, err := newest.Uint64()
	if err != nil {
		return nil, err
	}
	if has := max(head+1, number) - number; has < confirmations { // another node may be behind
		return nil, &transient{error: fmt.Errorf("the transaction has %d of %d confirmations", has, confirmations)}
	}
	var block Block
	err = r.once(ctx, &block, "eth_getBlockByNumber", []any{AtBlock(number), false})
	switch {
	case errors.Is(err, ErrNotFound), err == nil && block.Hash != receipt.BlockHash:
		return nil, &transient{error: fmt.Errorf("block %d, which had the transaction, was replaced", number)}
	case err != nil:
		return nil, err
	}
	return receipt, nil
}

// otherReceiptError is about a node that answers with the receipt of another
// transaction than it was asked about.
type otherReceiptError struct{ hash common.Hash }

func (e *otherReceiptError) Error() string {
	return fmt.Sprintf("ramp: eth_getTransactionReceipt: the node answered with the receipt of transaction %s", e.hash)
}
