package rampproof

import (
	"cmp"
	"context"
	"fmt"
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
// It waits up to 5 seconds, as [ramp.RPC.WaitTransaction] does, and compares the hash and the
// status. A difference is a [*MismatchError]. Everything else that the service reports is a copy:
// the result gets the chain's receipt.
//
// If the transaction succeeded, it must have moved more than nothing of each token of the order:
// from the order's user for a burn, to the user for a mint. Otherwise the error wraps
// [ErrNotProven], and says who moved tokens instead. Only transfers of ERC-20 and ERC-721 with
// indexed arguments count.
//
// That does not prove that the transaction is the order's own, or moved enough; see [New].
func Confirmed(chain *ramp.RPC, confirmations uint64) ramp.Confirmer {
	prover := evidence.NewProver(evidence.Config{Chain: chain}) // nobody says what else is the ramp's
	return &confirmed{chain, max(1, confirmations), prover}
}

type confirmed struct {
	chain         *ramp.RPC
	confirmations uint64
	prover        *evidence.Prover
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
func (c *confirmed) Check(ctx context.Context, config *ramp.HandlerConfig) error {
	if err := c.chain.Check(ctx); err != nil {
		return err
	}
	return c.prover.CheckTokens(ctx, config.Terms.Products())
}

// Confirm implements [ramp.Confirmer].
func (c *confirmed) Confirm(
	ctx context.Context, _ ramp.Store, r *ramp.Result, finish ramp.Transition,
) (ramp.Transition, error) {
	if err := confirm(ctx, c.chain, c.confirmations, r); err != nil {
		return nil, err
	}
	return func(stored *ramp.Order) (ramp.Step, error) {
		step, err := finish(stored)
		if err != nil || !step.New {
			return step, err
		}
		if err := c.prover.CheckUser(stored, &r.Receipt); err != nil {
			err = fmt.Errorf("ramp: confirm transaction %s of order %s: %w", r.TxHash, stored.UUID, err)
			return ramp.Step{}, err
		}
		step.Evidence = c.prover.Shown(stored, r.Transaction, &r.Receipt)
		return step, nil
	}, nil
}

// confirmationWait limits how long one delivery waits for the chain, because the
// service does not wait forever, but delivers again.
const confirmationWait = 5 * time.Second

// confirm replaces the receipt of a result by that of the chain, if the chain has its transaction
// with the same status.
func confirm(ctx context.Context, chain *ramp.RPC, confirmations uint64, r *ramp.Result) error {
	text, err := hexutil.Decode(r.TxHash)
	if err != nil || len(text) != common.HashLength {
		return &ramp.InvalidError{Fields: []ramp.FieldError{{Path: "tx_hash",
			Problem: "must be 0x followed by 64 hex digits"}}}
	}
	hash := common.Hash(text)
	ctx, cancel := context.WithTimeout(ctx, confirmationWait)
	defer cancel()
	transaction, receipt, err := chain.WaitTransaction(ctx, hash, confirmations)
	if err != nil {
		return err
	}
	different := cmp.Or(
		mismatch("tx_hash", hash.String(), receipt.TransactionHash.String()),
		mismatch("receipt.transactionHash", cmp.Or(r.Receipt.TransactionHash, hash).String(), hash.String()),
		mismatch("receipt.status", r.Receipt.Status.String(), receipt.Status.String()))
	if different != nil {
		return fmt.Errorf("ramp: confirm transaction %s: %w", hash, different)
	}
	r.Receipt, r.Transaction = *receipt, transaction
	return nil
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
