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

// MismatchError says that the chain contradicts a result of the service.
type MismatchError struct {
	// Field is the first field that differs, as the interface writes it:
	// "receipt.logs[1].data".
	Field string

	// Webhook and Chain are what the two say, cut off if it is long.
	Webhook, Chain string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s is %s in the result, but %s on the chain", e.Field, e.Webhook, e.Chain)
}

// Confirm asks the chain whether a result tells the truth (interface 6, 4.4): it
// waits for the transaction as [RPC.WaitReceipt] does, and compares what the
// result reports of it: hash, status, block, gas, price, state root, created
// contract, and every field of every log. What the result leaves out, but for
// the hash and the status, is not compared. Nor are the type, which does not
// change what a transaction did; the logsBloom, which only summarizes the logs;
// and the blockTimestamp of a log, which is 0 on some chains. If the transaction
// succeeded, every token contract that the intent names must have an event in
// it. What contradicts the chain is a [*MismatchError]. A success whose intent is
// missing or unreadable is an [*InvalidError], because without its tokens any
// successful transaction would confirm it.
//
// An honest result is contradicted too when its block was replaced, or the node
// is on another branch. So nothing may be paid, but another look may help.
//
// The receipt that it returns is the chain's, with all of its events. Confirm
// proves that such a transaction exists, not that it belongs to this order: the
// interface does not show how the two are tied. Let a transaction pay once only
// (docs/orders.md has an index for that), and if you know the contract, compare
// its events with the order. A result names no network either: set
// [RPCConfig].ChainID, or a transaction of a testnet confirms an order of the
// mainnet.
func (r *RPC) Confirm(ctx context.Context, result *Result, confirmations uint64) (*Receipt, error) {
	text, err := hexutil.Decode(result.TxHash)
	if err != nil || len(text) != common.HashLength {
		return nil, invalid("tx_hash", "must be 32 bytes in hex with 0x")
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
	var other *otherReceiptError
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

// confirmationWait bounds how long one delivery waits for the chain, because the
// service does not wait forever, and delivers again.
const confirmationWait = 5 * time.Second

// confirm asks the chain of the handler whether a result tells the truth.
func (h *Handler) confirm(ctx context.Context, result *Result) (*Receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, confirmationWait)
	defer cancel()
	return h.config.Chain.Confirm(ctx, result, h.config.Confirmations)
}

// compare returns the first contradiction between a result and the chain, nil if
// there is none.
func compare(result *Result, hash common.Hash, chain *Receipt) *MismatchError {
	told := &result.Receipt
	var c comparison
	c.strings("tx_hash", hash.String(), chain.TransactionHash.String())
	c.hashes("receipt.transactionHash", told.TransactionHash, chain.TransactionHash)
	c.strings("receipt.status", told.Status.String(), chain.Status.String())
	c.hashes("receipt.blockHash", told.BlockHash, chain.BlockHash)
	c.quantities("receipt.blockNumber", told.BlockNumber, chain.BlockNumber)
	c.quantities("receipt.transactionIndex", told.TransactionIndex, chain.TransactionIndex)
	c.quantities("receipt.gasUsed", told.GasUsed, chain.GasUsed)
	c.quantities("receipt.cumulativeGasUsed", told.CumulativeGasUsed, chain.CumulativeGasUsed)
	if chain.EffectiveGasPrice.Present() { // not every node reports it
		c.quantities("receipt.effectiveGasPrice", told.EffectiveGasPrice, chain.EffectiveGasPrice)
	}
	if len(told.Root) > 0 && len(chain.Root) > 0 { // early chains have it
		c.strings("receipt.root", told.Root.String(), chain.Root.String())
	}
	if told.ContractAddress != (common.Address{}) {
		c.strings("receipt.contractAddress", told.ContractAddress.String(), chain.ContractAddress.String())
	}
	if told.Logs != nil {
		c.logs(told.Logs, chain.Logs)
	}
	if result.Succeeded() {
		c.tokens("intent.from", result.Intent.From, chain.Logs)
		c.tokens("intent.to", result.Intent.To, chain.Logs)
	}
	return c.first
}

// comparison keeps the first of the contradictions that it meets.
type comparison struct{ first *MismatchError }

func (c *comparison) strings(field, webhook, chain string) {
	if c.first == nil && webhook != chain {
		c.first = &MismatchError{Field: field, Webhook: excerpt(webhook), Chain: excerpt(chain)}
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
		told, is := &webhook[i], &chain[i]
		at := fmt.Sprintf("receipt.logs[%d].", i)
		c.strings(at+"address", told.Address.String(), is.Address.String())
		c.strings(at+"topics", fmt.Sprint(told.Topics), fmt.Sprint(is.Topics))
		if !bytes.Equal(told.Data, is.Data) { // it can be long
			c.strings(at+"data", told.Data.String(), is.Data.String())
		}
		c.quantities(at+"blockNumber", told.BlockNumber, is.BlockNumber)
		c.hashes(at+"transactionHash", told.TransactionHash, is.TransactionHash)
		c.quantities(at+"transactionIndex", told.TransactionIndex, is.TransactionIndex)
		c.hashes(at+"blockHash", told.BlockHash, is.BlockHash)
		c.quantities(at+"logIndex", told.LogIndex, is.LogIndex)
		c.strings(at+"removed", strconv.FormatBool(told.Removed), strconv.FormatBool(is.Removed))
	}
}

func (c *comparison) tokens(path string, list []IntentAsset, chain []Log) {
	for i, asset := range list {
		if asset.Type == TypeAsset {
			continue
		}
		if !common.IsHexAddress(asset.ID) { // a name that no event can have would confirm anything
			c.strings(fmt.Sprintf("%s[%d].id", path, i), excerpt(asset.ID), "no address of a contract")
		}
		token := common.HexToAddress(asset.ID)
		if !slices.ContainsFunc(chain, func(l Log) bool { return l.Address == token }) {
			c.strings(fmt.Sprintf("%s[%d].id", path, i), asset.ID, "without an event")
		}
	}
}
