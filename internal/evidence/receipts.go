package evidence

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/token-ramp/ramp-go"
)

// adds reports whether a list has a log that another lacks.
func adds(list, to []ramp.Log) bool {
	return len(Distinct(slices.Concat(to, list))) > len(to)
}

// receiptsOf returns the receipts of all transactions of a block.
func receiptsOf(ctx context.Context, chain *ramp.RPC, number uint64) ([]ramp.Receipt, error) {
	var block ramp.Block
	var receipts []ramp.Receipt
	at := ramp.AtBlock(number)
	calls, err := AskEach(ctx, chain, Call(&block, "eth_getBlockByNumber", at, false),
		Call(&receipts, "eth_getBlockReceipts", at))
	switch {
	case err != nil:
		return nil, err
	case calls[0].Err != nil:
		return nil, calls[0].Err
	case len(block.TransactionHashes) == 0:
		return nil, errors.New("the node names no transactions of the block")
	}
	if calls[1].Err == nil && areOf(receipts, &block) == nil {
		return receipts, nil
	}
	receipts = make([]ramp.Receipt, len(block.TransactionHashes)) // not every node knows those of a block
	each := make([]ramp.BatchCall, len(receipts))
	for i, hash := range block.TransactionHashes {
		each[i] = Call(&receipts[i], "eth_getTransactionReceipt", hash)
	}
	if err := AskAll(ctx, chain, each...); err != nil {
		return nil, err
	}
	return receipts, areOf(receipts, &block)
}

// areOf returns an error unless receipts are those of all transactions of a block.
func areOf(receipts []ramp.Receipt, block *ramp.Block) error {
	if len(receipts) != len(block.TransactionHashes) {
		return fmt.Errorf("a block of %d transactions has %d receipts",
			len(block.TransactionHashes), len(receipts))
	}
	for i, hash := range block.TransactionHashes {
		if receipts[i].TransactionHash != hash || receipts[i].BlockHash != block.Hash {
			return fmt.Errorf("the receipt of transaction %s is of another block", hash)
		}
	}
	return nil
}

// matches reports whether a node would list a log for a filter.
func matches(f *ramp.LogFilter, l *ramp.Log) bool {
	if len(f.Addresses) > 0 && !slices.Contains(f.Addresses, l.Address) || len(f.Topics) > len(l.Topics) {
		return false
	}
	for i, wanted := range f.Topics {
		if len(wanted) > 0 && !slices.Contains(wanted, l.Topics[i]) {
			return false
		}
	}
	return true
}
