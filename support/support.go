// Package support helps a person with an order whose result does not come. [Orders.Find] finds the order,
// [Orders.Show] shows it with the transactions that may be its own and says what to do next, and
// [Orders.Finish] or [Orders.Abandon] ends it. Use it in an admin tool of your own, or give your
// server its commands with [NewCommand]. docs/on-call.md has the table by which to decide.
//
// To compare all orders with the chain, use package rampbooks.
package support

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence"
	"github.com/token-ramp/ramp-go/internal/invalid"
	"github.com/token-ramp/ramp-go/internal/orderlist"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
)

// Orders shows and ends the orders of a store. Make one with [New]. It is safe for
// concurrent use.
type Orders struct {
	config Config
	scope  orderlist.Scope
	prover *evidence.Prover // nil without Proof
	chain  *ramp.RPC        // likewise
}

// Config configures an [Orders]. Store is required. Every other field may be zero,
// which means its default.
type Config struct {
	// Store keeps the orders. Required.
	Store ramp.Store

	// Proof is that of the handler: the node where transactions are searched, and what one must
	// show before it ends an order. Without it, Show shows only the order, Finish fails, and
	// Abandon needs [Decision].WithoutEvidence, as EraseSession may.
	Proof *rampproof.Proof

	// Projects, if set, hide the orders of other projects than these, the game's own: the one of its
	// terms, and those that it had before.
	Projects []string

	// Network, if set, hides the orders of the other network. The default is that of Proof.
	Network ramp.Network

	// NoEmptyBlocks says that the chain makes no block without a transaction, so an hour without a block does
	// not mean that the chain stood still. [Orders.Abandon] then does not count [Report].ChainHours, and what
	// it gives back can be minted after the chain goes on; see docs/security.md.
	NoEmptyBlocks bool

	// Products are what the game sells and has sold, as in [rampbooks.Config]. They say what the fee
	// of a mint is. Without a product, every fee is accepted.
	Products []rampbooks.Offer

	// Sessions returns the sessions of a player. Without it, the command list finds no
	// orders by the player's name.
	Sessions func(ctx context.Context, player string) ([]string, error)

	// Books keep what they need of a player before EraseSession erases the player, find the orders
	// that the command finish -fitting ends, and say which orders one transaction has ended, for
	// [Decision].Batch. Leave it nil if no node is configured.
	Books Books

	// Logger gets one record per decision. If it succeeded, this is "ramp: order abandoned",
	// "ramp: order finished" or "ramp: order restored", with the attributes uuid, who, reason, session_id,
	// project_id, direction, state, tx_hash, effect, new, and order, which is the order in its JSON form. If
	// new is false, moved and moved_at say what was moved before, and when. If the game has moved nothing, it
	// also has the attribute settled. If the decision failed, it is
	// "ramp: order not abandoned", "ramp: order not finished" or "ramp: order not restored", with the cause.
	// The default is [slog.Default].
	Logger *slog.Logger

	// Now is the clock of Order.FinishedAt and of the age of orders. The default is [time.Now].
	Now func() time.Time
}

// Books are what an [Orders] asks of the books, such as a [rampbooks.Reconciler].
type Books interface {
	// Reconcile compares the orders of a period with the chain, for the command finish -fitting.
	Reconcile(ctx context.Context, from, to time.Time) (*rampbooks.Reconciliation, error)

	// KeepMatches stores which transactions belong to orders whose player is erased next, and who
	// erases that player, and why.
	KeepMatches(ctx context.Context, orders []ramp.Order, who, reason string) error

	// BatchOf returns the orders that have ended by a transaction besides the one that stores it, and
	// KeepBatch stores another one; see [Decision].Batch.
	BatchOf(ctx context.Context, transaction common.Hash) ([]uuid.UUID, error)
	KeepBatch(ctx context.Context, transaction common.Hash, earlier []uuid.UUID, order uuid.UUID,
		who, reason string) error
}

const (
	maxDelay = evidence.MaxDelay
	maxAhead = evidence.MaxAhead
	skew     = evidence.Skew
)

// New returns an Orders. The error is a [*ramp.InvalidError] that lists every missing
// or wrong field of c.
func New(c Config) (*Orders, error) {
	var wrong invalid.Fields
	wrong.Require(c.Store != nil, "Config.Store", "is required")
	wrong.RequireNotNil(c.Store, "Config.Store")
	wrong.Require(!slices.Contains(c.Projects, ""), "Config.Projects", "must not have an empty one")
	wrong.RequireNotNil(c.Books, "Config.Books")
	wrong.Require(c.Proof != nil || !c.NoEmptyBlocks, "Config.NoEmptyBlocks",
		"means nothing without Proof, which reads the chain")
	if c.Proof != nil {
		network := c.Proof.Config().Network
		c.Network = cmp.Or(c.Network, network)
		wrong.Require(c.Network == network, "Config.Network", "must be that of Proof, the "+string(network))
	}
	if err := wrong.Err(); err != nil {
		return nil, err
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	o := &Orders{config: c, scope: orderlist.Scope{Projects: c.Projects, Network: c.Network}}
	if c.Proof != nil {
		o.prover = evidence.NewProver(evidence.Config(c.Proof.Config()))
		o.chain = o.prover.Chain
	}
	return o, nil
}

// made returns an error for Orders that New has not made, such as new(Orders).
func (o *Orders) made() error {
	if o.config.Store == nil {
		return errors.New("ramp: the support.Orders was not made by support.New")
	}
	return nil
}

func (o *Orders) log() *slog.Logger { return cmp.Or(o.config.Logger, slog.Default()) }
