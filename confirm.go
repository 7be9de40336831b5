package ramp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

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
