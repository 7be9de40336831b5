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

// MismatchError means that the chain contradicts a result of the service.
type MismatchError struct {
	// Field is the first field that differs, as the interface names it, such as
	// "receipt.logs[1].data".
	Field string

	// Webhook and Chain are the values of the result and of the chain, shortened if
	// they are long.
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

// comparison keeps the first contradiction.
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
			c.strings(fmt.Sprintf("%s[%d].id", path, i), excerpt(asset.ID), "not a contract address")
		}
		token := common.HexToAddress(asset.ID)
		if !slices.ContainsFunc(chain, func(l Log) bool { return l.Address == token }) {
			c.strings(fmt.Sprintf("%s[%d].id", path, i), asset.ID, "without an event")
		}
	}
}
