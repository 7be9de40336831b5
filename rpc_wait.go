package ramp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/token-ramp/ramp-go/internal/redact"
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
		err = bounded(fmt.Errorf("ramp: wait for transaction %s: %w", hash, err))
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

// MismatchError means that the chain contradicts a result of the service.
type MismatchError struct {
	// Field is the first field that differs, as the interface names it, such as
	// "receipt.logs[1].data".
	Field string

	// Webhook and Chain are the values of the result and of the chain, on one line
	// and shortened if they are long.
	Webhook, Chain string
}

// Error names the field and both values.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s is %s in the result, but %s on the chain", e.Field, e.Webhook, e.Chain)
}

// Confirm verifies a result on the chain (interface 6, 4.4). It waits for the
// transaction as [RPC.WaitReceipt] does, and compares every field that the result
// reports: hash, status, block, gas, price, state root, created contract, and every
// field of every log. The hash and the status are required; other missing fields
// are not compared. Neither are the type, which does not change what a transaction
// did, the logsBloom, which only summarizes the logs, and the blockTimestamp of a
// log, which is 0 on some chains. If the transaction succeeded, every token
// contract that the intent names must have an event in it. A difference is a
// [*MismatchError]. A success whose intent is missing or unreadable is an
// [*InvalidError], because without its tokens any successful transaction would
// confirm it.
//
// An honest result is contradicted too if its block was replaced, or if the node is
// on another branch. So pay nothing then, but a retry may succeed.
//
// Confirm returns the chain's receipt, with all of its events. It proves that the
// transaction exists, not that it belongs to this order, because the interface does
// not say how the two are linked. Let each transaction pay only once
// (docs/orders.md has an index for that), and if you know the contract, compare its
// events with the order. A result does not name its network either. Set
// [RPCConfig].ChainID, or a transaction on a testnet can confirm an order of the
// mainnet.
func (r *RPC) Confirm(ctx context.Context, result *Result, confirmations uint64) (*Receipt, error) {
	text, err := hexutil.Decode(result.TxHash)
	if err != nil || len(text) != common.HashLength {
		return nil, invalid("tx_hash", "must be 0x followed by 64 hex digits")
	}
	hash := common.Hash(text)
	if result.Succeeded() {
		// Without its tokens, any successful transaction would confirm it.
		var p problems
		if result.Intent.check(&p); p != nil {
			return nil, p.err()
		}
	}
	chain, err := r.WaitReceipt(ctx, hash, confirmations)
	var other *wrongReceiptError
	if errors.As(err, &other) {
		err = &MismatchError{Field: "tx_hash", Webhook: hash.String(), Chain: other.hash.String()}
		return nil, fmt.Errorf("ramp: confirm transaction %s: %w", hash, err)
	}
	if err != nil {
		return nil, err
	}
	if different := compare(result, hash, chain); different != nil {
		return nil, fmt.Errorf("ramp: confirm transaction %s: %w", hash, different)
	}
	return chain, nil
}

// compare returns the first contradiction between a result and the chain, or nil.
func compare(result *Result, hash common.Hash, chain *Receipt) *MismatchError {
	reported := &result.Receipt
	var c comparison
	c.strings("tx_hash", hash.String(), chain.TransactionHash.String())
	c.hashes("receipt.transactionHash", reported.TransactionHash, chain.TransactionHash)
	c.strings("receipt.status", reported.Status.String(), chain.Status.String())
	c.hashes("receipt.blockHash", reported.BlockHash, chain.BlockHash)
	c.quantities("receipt.blockNumber", reported.BlockNumber, chain.BlockNumber)
	c.quantities("receipt.transactionIndex", reported.TransactionIndex, chain.TransactionIndex)
	c.quantities("receipt.gasUsed", reported.GasUsed, chain.GasUsed)
	c.quantities("receipt.cumulativeGasUsed", reported.CumulativeGasUsed, chain.CumulativeGasUsed)
	if chain.EffectiveGasPrice.Present() { // not every node reports it
		c.quantities("receipt.effectiveGasPrice", reported.EffectiveGasPrice, chain.EffectiveGasPrice)
	}
	if len(reported.Root) > 0 && len(chain.Root) > 0 { // only old transactions have it
		c.strings("receipt.root", reported.Root.String(), chain.Root.String())
	}
	if reported.ContractAddress != (common.Address{}) {
		c.strings("receipt.contractAddress", reported.ContractAddress.String(), chain.ContractAddress.String())
	}
	if reported.Logs != nil {
		c.logs(reported.Logs, chain.Logs)
	}
	if result.Succeeded() {
		c.tokens("intent.from", result.Intent.From, chain.Logs)
		c.tokens("intent.to", result.Intent.To, chain.Logs)
	}
	return c.first
}

// shortened returns the beginning of a value, so that an error can show two.
func shortened(value string) string { return redact.New().Line(value, maxExcerpt/3) }

// comparison keeps the first contradiction.
type comparison struct{ first *MismatchError }

func (c *comparison) strings(field, webhook, chain string) {
	if c.first == nil && webhook != chain {
		c.first = &MismatchError{Field: field, Webhook: shortened(webhook), Chain: shortened(chain)}
	}
}

func (c *comparison) hashes(field string, webhook, chain common.Hash) {
	if webhook != (common.Hash{}) {
		c.strings(field, webhook.String(), chain.String())
	}
}

func (c *comparison) quantities(field string, webhook, chain Quantity) {
	if webhook.Present() {
		c.strings(field, webhook.String(), chain.String())
	}
}

func (c *comparison) logs(webhook, chain []Log) {
	c.strings("receipt.logs", fmt.Sprintf("a list of %d", len(webhook)), fmt.Sprintf("a list of %d", len(chain)))
	for i := range webhook {
		if c.first != nil {
			return
		}
		reported, actual := &webhook[i], &chain[i]
		at := fmt.Sprintf("receipt.logs[%d].", i)
		c.strings(at+"address", reported.Address.String(), actual.Address.String())
		c.strings(at+"topics", fmt.Sprint(reported.Topics), fmt.Sprint(actual.Topics))
		if !bytes.Equal(reported.Data, actual.Data) { // formatted only if they differ, because they can be long
			c.strings(at+"data", reported.Data.String(), actual.Data.String())
		}
		c.quantities(at+"blockNumber", reported.BlockNumber, actual.BlockNumber)
		c.hashes(at+"transactionHash", reported.TransactionHash, actual.TransactionHash)
		c.quantities(at+"transactionIndex", reported.TransactionIndex, actual.TransactionIndex)
		c.hashes(at+"blockHash", reported.BlockHash, actual.BlockHash)
		c.quantities(at+"logIndex", reported.LogIndex, actual.LogIndex)
		c.strings(at+"removed", strconv.FormatBool(reported.Removed), strconv.FormatBool(actual.Removed))
	}
}

func (c *comparison) tokens(path string, list []IntentAsset, chain []Log) {
	for i, asset := range list {
		if asset.Type == TypeAsset {
			continue
		}
		if !common.IsHexAddress(asset.ID) { // no event could ever match it
			c.strings(fmt.Sprintf("%s[%d].id", path, i), asset.ID, "not a contract address")
		}
		token := common.HexToAddress(asset.ID)
		if !slices.ContainsFunc(chain, func(l Log) bool { return l.Address == token }) {
			c.strings(fmt.Sprintf("%s[%d].id", path, i), asset.ID, "without an event")
		}
	}
}
