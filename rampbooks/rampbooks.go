// Package rampbooks compares the orders of a period with the mints and burns on the chain: whether each
// order that ended moved what it promised, and whether each movement has an order. It reports what does
// not fit, and adds up what does, for accounting. It corrects nothing.
//
// Make a [Reconciler] with [New]. In your server, [Reconciler.KeepBooks] compares every hour.
// [Reconciler.Reconcile] compares one period. Both make a [Reconciliation]. A person looks at each
// [Finding] in it, and [Reconciler.Decide] stores what that person has decided in a [Journal], which ends
// the finding. [NewCommand] gives your program the commands for this. docs/books.md explains each kind
// of finding.
//
// To find one order and end it by hand, use package support.
package rampbooks

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
	"github.com/token-ramp/ramp-go/internal/catalog"
	"github.com/token-ramp/ramp-go/internal/evidence"
	"github.com/token-ramp/ramp-go/internal/invalid"
	"github.com/token-ramp/ramp-go/internal/orderlist"
	"github.com/token-ramp/ramp-go/rampproof"
)

// Reconciler compares orders with the chain. Make one with [New]. It is safe for concurrent use.
type Reconciler struct {
	config Config
	scope  orderlist.Scope
	prover *evidence.Prover // nil without Proof
	chain  *ramp.RPC        // likewise
}

// Config configures a [Reconciler]. Store is required. Every other field may be zero, which means its
// default.
type Config struct {
	// Store has the orders. Required.
	Store OrderLister

	// Proof is that of the handler: the node where events are read, and what a transaction must show
	// before it ends an order. Without it, only [Reconciler.Decide] works.
	Proof *rampproof.Proof

	// Projects, if set, hide the orders of other projects than these, the game's own: the one of its
	// terms, and those that it had before.
	Projects []string

	// Network, if set, hides the orders of the other network. The default is that of Proof.
	Network ramp.Network

	// Products are what the game sells and has sold, under each of its prices, each with its time.
	// They name the totals, and say what the fee of a mint is. Without a product, every fee is
	// accepted. For products that hold at all times, use [Always].
	Products []Offer

	// Tokens are the token contracts of the game, besides those of Products. An order with a token of
	// neither is not compared: see [NotCompared].
	Tokens []common.Address

	// OwnsWallet reports whether a wallet belongs to the player of a session, as Wallet of the handler
	// has decided when it was called. It must not bind the wallet. Without it, no order is marked
	// as [Finding].Fitting: whoever has the HMAC key could name the wallet of another player, and be
	// paid for what that player burns.
	OwnsWallet func(ctx context.Context, sessionID string, wallet common.Address) (bool, error)

	// Journal stores what persons decide about findings, and what the books still need to know of an
	// erased player. Without it, [Reconciler.Decide] and [Reconciler.KeepMatches] fail.
	Journal Journal

	// Logger gets what [Reconciler.KeepBooks] finds, and one record per decision. The default is
	// [slog.Default].
	Logger *slog.Logger

	// Now is the clock that says how long orders have waited. The default is [time.Now].
	Now func() time.Time
}

// OrderLister is a [ramp.Store] that also lists its orders, such as rampsql.Store, whose methods
// say what these do. They lock nothing and write nothing. If it also has the methods Refusals and
// CountRefused of rampsql.Store, the books and the commands of package support say whose end was
// refused, and why.
type OrderLister interface {
	Order(ctx context.Context, id uuid.UUID) (ramp.Order, error)
	Ended(ctx context.Context, from, to time.Time, page ramp.OrderPage) ([]ramp.Order, error)
	Waiting(ctx context.Context, d ramp.Direction, before time.Time,
		page ramp.OrderPage) ([]ramp.Order, error)
	SessionOrders(ctx context.Context, sessionID string, page ramp.OrderPage) ([]ramp.Order, error)
	UserOrders(ctx context.Context, address string, page ramp.OrderPage) ([]ramp.Order, error)
	OrderByTransaction(ctx context.Context, hash common.Hash) (ramp.Order, error)
	CountWaiting(ctx context.Context, d ramp.Direction, before time.Time) (n int, oldest time.Time, err error)
}

// New returns a Reconciler. The error is a [*ramp.InvalidError] that lists every missing or wrong field
// of c.
func New(c Config) (*Reconciler, error) {
	var wrong invalid.Fields
	wrong.Require(c.Store != nil, "Config.Store", "is required")
	wrong.RequireNotNil(c.Store, "Config.Store")
	wrong.Require(!slices.Contains(c.Projects, ""), "Config.Projects", "must not have an empty one")
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
	r := &Reconciler{config: c, scope: orderlist.Scope{Projects: c.Projects, Network: c.Network}}
	if c.Proof != nil {
		r.prover = evidence.NewProver(evidence.Config(c.Proof.Config()))
		r.chain = r.prover.Chain
	}
	return r, nil
}

// made returns an error for a Reconciler that New has not made, such as new(Reconciler).
func (r *Reconciler) made() error {
	if r.config.Store == nil {
		return errors.New("ramp: the rampbooks.Reconciler was not made by rampbooks.New")
	}
	return nil
}

// order returns a stored order of the project and the network.
func (r *Reconciler) order(ctx context.Context, id uuid.UUID) (ramp.Order, error) {
	order, err := r.config.Store.Order(ctx, id)
	if err == nil {
		err = r.scope.Check(&order)
	}
	return order, err
}

func (r *Reconciler) log() *slog.Logger { return cmp.Or(r.config.Logger, slog.Default()) }

// catalog returns the tokens and products of the game, without decimals.
func (c *Config) catalog() *catalog.Catalog {
	offers := make([]catalog.Offer, len(c.Products))
	for i, offer := range c.Products {
		offers[i] = catalog.Offer(offer)
	}
	return catalog.New(c.Tokens, offers)
}
