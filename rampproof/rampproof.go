// Package rampproof asks the chain whether a result is true before it ends an order. Set
// [ramp.HandlerConfig].Confirm to one of its values:
//
//   - [Confirmed] ends an order only if the transaction of the result exists. It need not
//     be the order's own.
//   - [New] returns a [Proof], which also demands that the transaction is the ramp's, and
//     moved what the order is about. Package support uses the same value.
//
// Without a [ramp.Handler], call Confirm of the value before you update your store:
//
//	next, err := proof.Confirm(ctx, store, result, ramp.Finish(result, time.Now()))
//	if err != nil {
//		return err // answer with HTTP 500: the result comes again
//	}
//	step, err := store.Update(ctx, result.UUID, next)
//
// docs/security.md lists what an attacker can do with and without each setting.
package rampproof

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence"
	"github.com/token-ramp/ramp-go/internal/typed"
)

// ErrNotProven means that a transaction does not prove that the order ended as the
// transaction did. It may belong to another order, or to nobody. A person must decide.
var ErrNotProven = evidence.ErrNotProven

// Config says what a transaction must show before it ends an order, because the interface
// does not say how the two are linked.
//
// The ramp must have taken part. One of Payers sent a successful transaction or paid for it, or it
// went to one of Contracts. A failed one needs both, as far as both are known, because anybody can
// make a transaction fail. With AnyFailure, any failed one will do.
//
// Tokens must have crossed the border of the game. Outside of it are the zero address and
// Contracts. For a burn, the order's amount must have gone outside and stayed there, and its user
// must have lost it. For a mint, the order's amount, less the fee, must have come from outside, and
// its user must keep it. What others gain in the same transaction is subtracted from a burn, so if
// a ramp settles several players in one transaction, a person must end each burn. Transfers of
// ERC-20 and ERC-721 with indexed arguments count. Those of ERC-1155, and those whose arguments are
// not indexed, are not supported: the error names them.
//
// If the user got the tokens in another way, the assets are not given back. So before a failed mint
// is given back, the chain must show this: since the order was accepted, each mint of the order's
// token for the order's user has ended an order. Otherwise, if the contract lets anybody submit the
// ramp's call, a player could send a copy of it first. The ramp's own transaction would fail, and
// the player would have the tokens and the assets. Mints of less than a hundredth of the amount do
// not count. If databases share a token, this one does not know the orders of the others: a mint
// that ended an order of another database counts here as one that ended none, so a failed mint of
// the same user waits for a person. With [ramp.Claims], the error names the other order. The store must
// be a [OrderFinder].
//
// If the user of an order is an account of the ramp or the token contract, no transaction proves
// its end.
//
// No transaction, whoever its user is, proves that the signatures of an order will not be used later.
type Config struct {
	// Chain is the node that is asked. It must have a [ramp.RPCConfig].ChainID, because a testnet
	// would confirm transactions that cost nothing. Required.
	Chain *ramp.RPC

	// Network is that of Chain: a proof ends no orders of the other network. Required.
	Network ramp.Network

	// Confirmations is how many confirmations a transaction needs, counting its own block. With more
	// than the chain makes in 5 seconds, orders wait for redelivery, which begins after 5 minutes
	// (interface 8). The default is 1; docs/security.md says how many a chain needs.
	Confirmations uint64

	// Payers are the accounts that send or pay transactions of the ramp. Required without AnyFailure.
	Payers []common.Address

	// Contracts are those of the ramp: where its transactions go, where burned tokens may go
	// besides the zero address, and where minted ones may come from, such as a treasury. Whoever
	// can take tokens out of one can burn them twice. List the token itself only if transactions of
	// the ramp go to it: then each successful call of the token counts as one of the ramp's.
	Contracts []common.Address

	// AnyFailure accepts every failed transaction, if you do not know Payers. Anybody with the HMAC
	// key can then have a mint given back by naming the failed transaction of somebody else. Off by
	// default.
	AnyFailure bool

	// MintFeeBps is, for each token, the highest fee of a mint that the game sells or has sold, in basis
	// points: 100 is 1%. A transaction that mints less than the order's amount minus this fee, which is
	// rounded up to whole units, proves nothing. A token without an entry has no fee; -1 says that you do
	// not know it, and a mint of any amount proves the end of an order, also the mint of a smaller order.
	// The fee that a result reports is not believed. No fee is taken off pieces of ERC-721, and a mint
	// always needs one unit at least.
	MintFeeBps map[common.Address]int

	// Decimals are those of ERC-20 tokens, or 0 of an NFT. The contract of a token without an entry is
	// asked once, and again after a proof has failed. If the contract has no decimals, it is that of an
	// NFT, and each token ID counts as one. If an entry is too low, a transaction that moves too few
	// tokens proves the order.
	Decimals map[common.Address]int

	// Logger gets a warning for each mint that is given back although nobody knows whether the node
	// lists mints, because the store has no order yet that a transaction has ended. The default is
	// [slog.Default].
	Logger *slog.Logger
}

// OrderFinder is what a store must also say for a [Proof]. [ramp.MemoryStore] and the stores of
// rampsql do. If there is no such order, the error must wrap [ramp.ErrOrderUnknown].
// Package ramptest/storetest tests it.
type OrderFinder interface {
	// OrderByTransaction returns the order that a transaction has ended.
	OrderByTransaction(ctx context.Context, hash common.Hash) (ramp.Order, error)

	// NewestSuccess returns the last order that succeeded by a transaction, among the orders of a
	// network and those that were stored without a network. If a node does not list the event of
	// this order, nothing that the node lists can be believed. It may lag behind: an order that succeeded
	// earlier is as good a witness. It must not say that there is none once there was one.
	NewestSuccess(ctx context.Context, network ramp.Network) (ramp.Order, error)
}

// Proof decides whether a transaction proves the end of an order. It is a
// [ramp.Confirmer]. Make one with [New]. It is safe for concurrent use.
type Proof struct {
	config Config
	prover *evidence.Prover
}

var _ ramp.Confirmer = (*Proof)(nil)

// New returns a proof. The error is a [*ramp.InvalidError] that lists every missing or
// wrong field of c.
func New(c Config) (*Proof, error) {
	wrong := checkChain("Config.Chain", c.Chain)
	demand := func(ok bool, path, problem string) {
		if !ok {
			wrong = append(wrong, ramp.FieldError{Path: path, Problem: problem})
		}
	}
	demand(c.Network == ramp.Mainnet || c.Network == ramp.Testnet, "Config.Network",
		"must be mainnet or testnet")
	demand(len(c.Payers) > 0 || c.AnyFailure, "Config.Payers",
		"is required, unless AnyFailure is set: every failed mint would wait for a person")
	for _, token := range slices.SortedFunc(maps.Keys(c.MintFeeBps), common.Address.Cmp) {
		bps := c.MintFeeBps[token]
		demand(bps >= -1 && bps < 10_000, "Config.MintFeeBps",
			fmt.Sprintf("must be -1 to 9999 for %s", token))
	}
	for _, payer := range c.Payers {
		demand(!typed.HasNoKey(payer), "Config.Payers",
			fmt.Sprintf("has %s, whose key nobody can have", payer))
	}
	for _, token := range slices.SortedFunc(maps.Keys(c.Decimals), common.Address.Cmp) {
		decimals := c.Decimals[token]
		demand(decimals >= 0 && decimals <= 255, "Config.Decimals",
			fmt.Sprintf("must be 0 to 255 for %s", token))
	}
	if wrong != nil {
		return nil, &ramp.InvalidError{Fields: wrong}
	}
	c.Confirmations = max(1, c.Confirmations)
	c.Payers, c.Contracts = slices.Clone(c.Payers), slices.Clone(c.Contracts)
	c.Decimals, c.MintFeeBps = maps.Clone(c.Decimals), maps.Clone(c.MintFeeBps)
	return &Proof{config: c, prover: evidence.NewProver(evidence.Config(c))}, nil
}

// Config returns the config of the proof. Do not change what it refers to.
func (p *Proof) Config() Config { return p.config }

// CheckConfig compares the proof with the config of a handler. The terms must be of the same
// network, and no product may have a higher fee than its token has there. [ramp.HandlerConfig].Wallet is
// required: a proof assumes that the wallet of an order belongs to its player, so without Wallet, whoever
// has the HMAC key could claim what others burn. Fees of products that [ramp.Terms.Replace] adds later
// are not compared.
func (p *Proof) CheckConfig(c *ramp.HandlerConfig) error {
	if p == nil {
		return errors.New("must not be a nil *rampproof.Proof")
	}
	var wrong []ramp.FieldError
	add := func(path, problem string) {
		wrong = append(wrong, ramp.FieldError{Path: path, Problem: problem})
	}
	if c.Wallet == nil {
		add("HandlerConfig.Wallet",
			"is required with a rampproof.Proof: a stolen HMAC key could claim the burns "+
				"of others; ramp.AnyWallet lets it")
	}
	if _, ok := c.Store.(OrderFinder); c.Store != nil && !ok {
		add("HandlerConfig.Store",
			"must be a rampproof.OrderFinder, or nobody knows which order a mint has ended")
	}
	if network := c.Terms.Network(); network != "" && network != p.config.Network {
		add("HandlerConfig.Terms", fmt.Sprintf("are of the %s, but the node of the proof is of the %s",
			network, p.config.Network))
	}
	for _, product := range c.Terms.Products() {
		fee := p.config.MintFeeBps[common.HexToAddress(product.Token)]
		if fee >= 0 && product.MintFeeBps > fee {
			add("HandlerConfig.Terms",
				fmt.Sprintf("have the product %q with a MintFeeBps of %d, above that of its token in the "+
					"proof, %d: no mint of it could end", product.Name, product.MintFeeBps, fee))
		}
	}
	if wrong != nil {
		return &ramp.InvalidError{Fields: wrong}
	}
	return nil
}

// Check returns every fault of the nodes, and an error if Decimals differ from what the
// token contracts say, if a token of c.Terms is no contract on the chain or has too few
// decimals for what a product sells, or if one of Payers is a contract. It logs a warning if
// one of Contracts has no code.
func (p *Proof) Check(ctx context.Context, c *ramp.HandlerConfig) error {
	if err := p.config.Chain.Check(ctx); err != nil {
		return err
	}
	withoutCode, err := p.prover.CheckAccounts(ctx)
	for _, contract := range withoutCode {
		cmp.Or(p.config.Logger, slog.Default()).WarnContext(ctx, "ramp: check",
			"warning", "an address of Config.Contracts has no code on this chain: no transaction of the "+
				"ramp goes to it, unless it is an account of the ramp, such as a treasury, or tokens are "+
				"burned to it",
			"address", contract.Hex())
	}
	return errors.Join(err, p.prover.CheckDecimals(ctx), p.prover.CheckTokens(ctx, c.Terms.Products()))
}

// Confirm implements [ramp.Confirmer]. It fails as [Confirmed] does. If the transaction
// does not prove the end of the order, the transition fails with an error that wraps
// [ErrNotProven]. Before a failed mint is given back, Confirm itself fails with such an
// error if the chain shows a mint for it that ended no order.
func (p *Proof) Confirm(
	ctx context.Context, store ramp.Store, r *ramp.Result, finish ramp.Transition,
) (ramp.Transition, error) {
	finder, ok := store.(OrderFinder)
	if !ok {
		return nil, errors.New("ramp: the store must be a rampproof.OrderFinder")
	}
	if err := confirm(ctx, p.config.Chain, p.config.Confirmations, r); err != nil {
		return nil, err
	}
	order := ramp.Order{Intent: r.Intent} // as reported; that of the stored order is the same, or a conflict
	order.Direction, _ = r.Intent.Direction()
	p.prover.LoadDecimals(ctx, evidence.ContractsOf(&order)...)
	proven := ramp.OnlyOf(nil, p.config.Network, func(stored *ramp.Order) (ramp.Step, error) {
		step, err := finish(stored)
		if err == nil && step.New {
			if step.Evidence, err = p.prover.Check(stored, r.Transaction, &r.Receipt); err != nil {
				p.prover.ForgetDecimals(evidence.ContractsOf(stored)...) // the next delivery asks again
			}
		}
		return step, err
	})
	looked, err := p.checkUnminted(ctx, store, finder, r, proven)
	if err != nil {
		return nil, err
	}
	return func(stored *ramp.Order) (ramp.Step, error) {
		step, err := proven(stored)
		if err == nil && step.New && step.Effect.Kind == ramp.GiveBack && !looked {
			err = fmt.Errorf("ramp: order %s: another mint was not looked for, so nothing is given back",
				r.UUID)
		}
		return step, err
	}, nil
}

// checkUnminted looks for another mint before a failed one is given back. It does so before
// the store is updated, because a transition does no I/O. It reports whether it has looked: the
// store may have failed, or had another order than it has when it is updated.
func (p *Proof) checkUnminted(
	ctx context.Context, store ramp.Store, finder OrderFinder, r *ramp.Result, proven ramp.Transition,
) (looked bool, err error) {
	if r.Outcome() != ramp.OrderFailed {
		return false, nil
	}
	step, err := store.Update(ctx, r.UUID, dryRun(proven))
	if err != nil || step.Effect.Kind != ramp.GiveBack {
		return false, nil // the update that follows says what is wrong, or gives nothing back
	}
	witnessed, err := p.prover.Unminted(ctx, finder, &step.Order, &r.Receipt)
	if err != nil {
		return false, fmt.Errorf("ramp: order %s: look for another mint: %w", r.UUID, err)
	}
	if !witnessed {
		cmp.Or(p.config.Logger, slog.Default()).WarnContext(ctx,
			"ramp: a mint is given back, and nobody knows whether the node lists mints: no order has "+
				"ended by a transaction",
			"uuid", r.UUID.String())
	}
	return true, nil
}

// dryRun returns a transition that changes nothing, whose step has the effect of next.
func dryRun(next ramp.Transition) ramp.Transition {
	return func(stored *ramp.Order) (ramp.Step, error) {
		step, err := next(stored)
		if err != nil || stored == nil {
			return ramp.Step{}, cmp.Or(err, ramp.ErrOrderUnknown)
		}
		step.Order, step.New = *stored, false
		return step, nil
	}
}
