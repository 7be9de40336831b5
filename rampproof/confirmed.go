package rampproof

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence"
	"github.com/token-ramp/ramp-go/internal/redact"
)

// Confirmed returns a [ramp.Confirmer] that ends an order only if the chain has the
// transaction of the result, so that a stolen HMAC key cannot invent one. confirmations
// are as in [Config]: 0 means 1. chain must have a [ramp.RPCConfig].ChainID.
//
// It waits up to 5 seconds, as [ramp.RPC.WaitTransaction] does, and compares what can move
// assets: the hash, the status, and the events of the order's tokens, if the result has
// logs. If the transaction succeeded, each of these tokens must have an event. A
// difference is a [*MismatchError]. Gas and positions in a block are not compared: the
// result gets the chain's receipt.
//
// That proves that the transaction exists, not that it is the order's own; see [New].
func Confirmed(chain *ramp.RPC, confirmations uint64) ramp.Confirmer {
	return &confirmed{chain, max(1, confirmations)}
}

type confirmed struct {
	chain         *ramp.RPC
	confirmations uint64
}

// CheckConfig implements [ramp.Confirmer].
func (c *confirmed) CheckConfig(*ramp.HandlerConfig) error {
	if wrong := checkChain("HandlerConfig.Confirm: the node", c.chain); wrong != nil {
		return &ramp.InvalidError{Fields: wrong}
	}
	return nil
}

// checkChain returns what is wrong with a node. path names it.
func checkChain(path string, chain *ramp.RPC) []ramp.FieldError {
	switch {
	case chain == nil:
		return []ramp.FieldError{{Path: path, Problem: "is required"}}
	case chain.RequiredChainID() == 0:
		return []ramp.FieldError{{Path: path,
			Problem: "must have an RPCConfig.ChainID: a node of another chain would confirm what " +
				"costs nothing"}}
	default:
		return nil
	}
}

// Check implements [ramp.Confirmer].
func (c *confirmed) Check(ctx context.Context) error { return c.chain.Check(ctx) }

// Confirm implements [ramp.Confirmer].
func (c *confirmed) Confirm(
	ctx context.Context, _ ramp.Store, r *ramp.Result, finish ramp.Transition,
) (ramp.Transition, error) {
	return confirm(ctx, c.chain, c.confirmations, r, finish)
}

// confirmationWait limits how long one delivery waits for the chain, because the
// service does not wait forever, but delivers again.
const confirmationWait = 5 * time.Second

// confirm replaces the receipt of a result by that of the chain, and returns a transition
// that takes the step of finish if the events are the same.
func confirm(
	ctx context.Context, chain *ramp.RPC, confirmations uint64, r *ramp.Result, finish ramp.Transition,
) (ramp.Transition, error) {
	text, err := hexutil.Decode(r.TxHash)
	if err != nil || len(text) != common.HashLength {
		return nil, &ramp.InvalidError{Fields: []ramp.FieldError{{Path: "tx_hash",
			Problem: "must be 0x followed by 64 hex digits"}}}
	}
	hash := common.Hash(text)
	ctx, cancel := context.WithTimeout(ctx, confirmationWait)
	defer cancel()
	transaction, receipt, err := chain.WaitTransaction(ctx, hash, confirmations)
	if err != nil {
		return nil, err
	}
	reported := r.Receipt
	different := cmp.Or(
		mismatch("tx_hash", hash.String(), receipt.TransactionHash.String()),
		mismatch("receipt.transactionHash", cmp.Or(reported.TransactionHash, hash).String(), hash.String()),
		mismatch("receipt.status", reported.Status.String(), receipt.Status.String()))
	if different != nil {
		return nil, fmt.Errorf("ramp: confirm transaction %s: %w", hash, different)
	}
	r.Receipt, r.Transaction = *receipt, transaction
	none := new(evidence.Config) // nobody has said which contracts are the ramp's
	return func(stored *ramp.Order) (ramp.Step, error) {
		step, err := finish(stored)
		if err != nil || !step.New {
			return step, err
		}
		tokens := evidence.ContractsOf(stored)
		if err := evidence.CheckReadable(tokens, receipt.Logs); err != nil {
			err = fmt.Errorf("ramp: confirm transaction %s of order %s: %w", hash, stored.UUID, err)
			return ramp.Step{}, err
		}
		if different := compareEvents(stored, tokens, reported.Logs, receipt); different != nil {
			err = fmt.Errorf("ramp: confirm transaction %s of order %s: %w", hash, stored.UUID, different)
			return ramp.Step{}, err
		}
		step.Evidence = none.Shown(stored, transaction, receipt)
		return step, nil
	}, nil
}

// MismatchError means that the chain contradicts a result of the service.
type MismatchError struct {
	Field          string // the first that differs, as the interface names it: "receipt.status"
	Webhook, Chain string // the values of the result and of the chain, on one line and shortened
}

// Error names the field and both values.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s is %s in the result, but %s on the chain", e.Field, e.Webhook, e.Chain)
}

// mismatch returns nil for equal values. It shows the beginnings of others.
func mismatch(field, webhook, chain string) *MismatchError {
	if webhook == chain {
		return nil
	}
	const most = 130 // both fit into one line of a log
	shown := func(value string) string { return redact.New().Line(value, most) }
	return &MismatchError{Field: field, Webhook: shown(webhook), Chain: shown(chain)}
}

// compareEvents compares the events of an order's tokens, wherever in the block they are.
// Whoever forges anything else gains nothing, because the chain's receipt replaces the
// reported one.
func compareEvents(
	order *ramp.Order, tokens []common.Address, reported []ramp.Log, chain *ramp.Receipt,
) *MismatchError {
	actual := eventsOf(tokens, chain.Logs)
	if reported != nil {
		if different := compareLogs(eventsOf(tokens, reported), actual); different != nil {
			return different
		}
	}
	if !chain.Succeeded() {
		return nil
	}
	side := "intent.to"
	if order.Direction == ramp.Burn {
		side = "intent.from"
	}
	for i, token := range evidence.TokensOf(order) {
		emitted := func(l ramp.Log) bool { return l.Address == common.HexToAddress(token.ID) }
		if !common.IsHexAddress(token.ID) || !slices.ContainsFunc(actual, emitted) {
			return mismatch(fmt.Sprintf("%s[%d].id", side, i), token.ID, "without an event")
		}
	}
	return nil
}

// eventsOf returns the logs of tokens, each once, without what a reorganization removed.
func eventsOf(tokens []common.Address, logs []ramp.Log) []ramp.Log {
	return slices.DeleteFunc(evidence.Distinct(logs), func(l ramp.Log) bool {
		return l.Removed || !slices.Contains(tokens, l.Address)
	})
}

func compareLogs(webhook, chain []ramp.Log) *MismatchError {
	const field = "receipt.logs"
	if listed, has := len(webhook), len(chain); listed != has {
		return mismatch(field, fmt.Sprintf("a list of %d", listed), fmt.Sprintf("a list of %d", has))
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
