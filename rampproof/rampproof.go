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
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence"
)

// ErrNotProven means that a transaction does not prove that the order ended as the
// transaction did. It may belong to another order, or to nobody. A person must decide.
var ErrNotProven = evidence.ErrNotProven

// Config says what a transaction must show before it ends an order, because the interface
// does not say how the two are linked.
//
// A successful burn needs at least the order's amount of its token, which the order's
// user loses, and which stays at the zero address or at one of Contracts. What anybody
// else gains of the token in the same transaction does not count, so a ramp that settles
// several players in one needs a person for each burn. Any transfer of the token to the
// user proves a successful mint. A failure needs a transaction that one of Payers sent or
// paid for, and that went to one of Contracts, if there are any. An account of the ramp
// or the token contract as the user proves nothing, and no transaction proves that a
// signature will not be used later.
type Config struct {
	// Chain is the node that is asked. It must have a [ramp.RPCConfig].ChainID, because a testnet
	// would confirm transactions that cost nothing. Required.
	Chain *ramp.RPC

	// Confirmations is how many confirmations a transaction needs, counting its own block. With more
	// than the chain makes in 5 seconds, orders wait for redelivery, which begins after 5 minutes
	// (interface 8). The default is 1.
	Confirmations uint64

	// Payers are the accounts that send or pay transactions of the ramp. Required without AnyFailure.
	Payers []common.Address

	// Contracts are those of the ramp: where burned tokens may go, besides the zero address, and where
	// a failed transaction must have gone. Whoever can take tokens out of one can burn them twice.
	Contracts []common.Address

	// AnyFailure accepts every failed transaction, if you do not know Payers. Anybody with the HMAC
	// key can then have a mint given back by somebody else's. Off by default.
	AnyFailure bool

	// Decimals are those of ERC-20 tokens that can be burned, or 0 of an NFT. The contract of a token
	// without an entry is asked once. If it has none, only the pieces of an NFT count. An entry that is
	// too low pays for too few.
	Decimals map[common.Address]int
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
	if len(c.Payers) == 0 && !c.AnyFailure {
		wrong = append(wrong, ramp.FieldError{Path: "Config.Payers",
			Problem: "is required, unless AnyFailure is set: every failed mint would wait for a person"})
	}
	for _, token := range slices.SortedFunc(maps.Keys(c.Decimals), common.Address.Cmp) {
		if decimals := c.Decimals[token]; decimals < 0 || decimals > 255 {
			wrong = append(wrong, ramp.FieldError{Path: "Config.Decimals",
				Problem: fmt.Sprintf("must be 0 to 255 for %s", token)})
		}
	}
	if wrong != nil {
		return nil, &ramp.InvalidError{Fields: wrong}
	}
	c.Confirmations = max(1, c.Confirmations)
	c.Payers, c.Contracts = slices.Clone(c.Payers), slices.Clone(c.Contracts)
	c.Decimals = maps.Clone(c.Decimals)
	return &Proof{config: c, prover: evidence.NewProver(evidence.Config(c))}, nil
}

// Config returns the config of the proof. Do not change what it refers to.
func (p *Proof) Config() Config { return p.config }

// CheckConfig demands [ramp.HandlerConfig].Wallet: a proof takes the wallet of an order
// for its player's, and whoever has the HMAC key could claim what others burn.
func (p *Proof) CheckConfig(c *ramp.HandlerConfig) error {
	switch {
	case p == nil:
		return errors.New("must not be a nil *rampproof.Proof")
	case c.Wallet == nil:
		return &ramp.InvalidError{Fields: []ramp.FieldError{{Path: "HandlerConfig.Wallet",
			Problem: "is required with a rampproof.Proof: a stolen HMAC key could claim the burns of others; " +
				"ramp.AnyWallet lets it"}}}
	default:
		return nil
	}
}

// Check returns every fault of the nodes, and an error if Decimals differ from what the
// token contracts say.
func (p *Proof) Check(ctx context.Context) error {
	if err := p.config.Chain.Check(ctx); err != nil {
		return err
	}
	return p.prover.CheckDecimals(ctx)
}

// Confirm implements [ramp.Confirmer]. It fails as [Confirmed] does, and the transition
// with an error that wraps [ErrNotProven] if the transaction does not prove the end of
// the order.
func (p *Proof) Confirm(
	ctx context.Context, store ramp.Store, r *ramp.Result, finish ramp.Transition,
) (ramp.Transition, error) {
	next, err := confirm(ctx, p.config.Chain, p.config.Confirmations, r, finish)
	if err != nil {
		return nil, err
	}
	order := ramp.Order{Intent: r.Intent} // as reported; that of the stored order is the same, or a conflict
	order.Direction, _ = r.Intent.Direction()
	p.prover.LearnDecimals(ctx, evidence.ContractsOf(&order)...)
	return func(stored *ramp.Order) (ramp.Step, error) {
		step, err := next(stored)
		if err == nil && step.New {
			step.Evidence, err = p.prover.Check(stored, r.Transaction, &r.Receipt)
		}
		return step, err
	}, nil
}
