// Package support helps a person with an order whose result does not come: it shows the
// order and the transactions that may be its own, and ends it by hand. It also compares the
// orders with the chain. Use it in an admin tool of your own, or give your server its
// commands with [NewCommand]. docs/on-call.md has the table by which to decide.
package support

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence"
	"github.com/token-ramp/ramp-go/rampproof"
)

// Orders shows and ends the orders of a store. Make one with [New]. It is safe for
// concurrent use.
type Orders struct {
	config Config
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

	// ProjectID, if set, hides the orders of other projects.
	ProjectID string

	// Network, if set, hides the orders of the other network. The default is that of Proof.
	Network ramp.Network

	// Products are what the game sells and has sold, under each of its prices, each with its time, for
	// [Orders.Reconcile]. They name the totals, and say what the fee of a mint is. Without
	// a product, every fee is accepted. For products that hold at all times, use [Always].
	Products []Sold

	// Tokens are the token contracts of the game, besides those of Products. An order with a token of
	// neither is not compared: see [NotCompared].
	Tokens []common.Address

	// Sessions returns the sessions of a player. Without it, the command list finds no
	// orders by the player's name.
	Sessions func(ctx context.Context, player string) ([]string, error)

	// OwnsWallet reports whether a wallet belongs to the player of a session, as Wallet of the handler
	// has decided when it was called. It must not bind the wallet. Without it, the books mark no order
	// as [Finding].Fitting: whoever has the HMAC key could name the wallet of another player, and be
	// paid for what that player burns.
	OwnsWallet func(ctx context.Context, sessionID string, wallet common.Address) (bool, error)

	// Journal stores what persons decide about findings of the books, and what the books still need to
	// know of an erased player. Without it, [Orders.Decide] fails, and so does [Orders.EraseSession]
	// where it has to keep something.
	Journal Journal

	// Logger gets one record per decision. If it succeeded, this is "ramp: order abandoned" or
	// "ramp: order finished", with the attributes uuid, who, reason, session_id, direction, state,
	// tx_hash, effect and new. If the game has moved nothing, it also has the attribute settled. If
	// the decision failed, it is "ramp: order not abandoned" or "ramp: order not finished", with
	// the cause. [Orders.KeepBooks] logs what it finds. The default is [slog.Default].
	Logger *slog.Logger

	// Now is the clock of Order.FinishedAt and of the age of orders. The default is [time.Now].
	Now func() time.Time
}

const (
	// maxDelay is how long after its transaction the result of an order can come: 12
	// hours of deliveries (interface 8), and one to spare.
	maxDelay = 13 * time.Hour

	// early is how much earlier than its order a transaction is looked for: the clock of a server can
	// be ahead by hours.
	early = 24 * time.Hour

	skew = evidence.Skew
)

// New returns an Orders. The error is a [*ramp.InvalidError] that lists every missing
// or wrong field of c.
func New(c Config) (*Orders, error) {
	var wrong problems
	wrong.require(c.Store != nil, "Config.Store")
	if v := reflect.ValueOf(c.Store); v.Kind() == reflect.Pointer {
		wrong.demand(!v.IsNil(), "Config.Store", fmt.Sprintf("must not be a nil %T", c.Store))
	}
	if c.Proof != nil {
		network := c.Proof.Config().Network
		c.Network = cmp.Or(c.Network, network)
		wrong.demand(c.Network == network, "Config.Network", "must be that of Proof, the "+string(network))
	}
	if err := wrong.err(); err != nil {
		return nil, err
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	o := &Orders{config: c}
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

// mine makes a transition see only orders of the project and the network.
func (o *Orders) mine(next ramp.Transition) ramp.Transition {
	return ramp.OnlyOf(o.config.ProjectID, o.config.Network, next)
}

// foreign returns an error if an order is of another project or network.
func (o *Orders) foreign(order *ramp.Order) error {
	_, err := o.mine(func(*ramp.Order) (ramp.Step, error) { return ramp.Step{}, nil })(order)
	return err
}

func (o *Orders) log() *slog.Logger { return cmp.Or(o.config.Logger, slog.Default()) }

// problems collects what is wrong with a config or a decision.
type problems []ramp.FieldError

func (p *problems) require(ok bool, path string) { p.demand(ok, path, "is required") }

func (p *problems) demand(ok bool, path, problem string) {
	if !ok {
		*p = append(*p, ramp.FieldError{Path: path, Problem: problem})
	}
}

func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return &ramp.InvalidError{Fields: p}
}

func invalid(path, problem string) error { return problems{{Path: path, Problem: problem}}.err() }
