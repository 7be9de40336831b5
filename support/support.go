// Package support helps a person with an order whose result does not come: it shows
// the order and what its user did on the chain, and ends it by hand. Use it in an admin
// tool of your own. docs/operations.md explains how to decide.
package support

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
)

// Orders shows and ends the orders of a store. Make one with [New]. The store itself
// lists waiting orders, such as [ramp.SQLStore.Waiting].
type Orders struct{ config Config }

// Config configures an [Orders]. Store is required. Every other field may be zero,
// which means its default.
type Config struct {
	// Store keeps the orders. Required.
	Store ramp.Store

	// Chain is where [Orders.Show] and [Orders.Finish] search for transactions. By
	// default Show shows only the order.
	Chain *ramp.RPC

	// Blocks is the maximum number of blocks that [Orders.Show] reads, beginning one
	// minute before the order was accepted. A UUID can be used for 5 minutes
	// (interface 8), so a transaction of the order comes soon after. The default is
	// 2,000.
	Blocks int

	// ProjectID, if set, hides the orders of other projects.
	ProjectID string

	// Logger gets one record per decision: "ramp: order abandoned" or "ramp: order
	// finished" with uuid, who, reason, session_id, direction, state, tx_hash, effect
	// and new, or "ramp: order not abandoned" or "ramp: order not finished" with the
	// cause. The default is [slog.Default].
	Logger *slog.Logger

	// Now is the clock of Order.FinishedAt. The default is [time.Now].
	Now func() time.Time
}

// New returns an Orders. The error is a [*ramp.InvalidError] that lists every missing
// or wrong field of c.
func New(c Config) (*Orders, error) {
	var wrong problems
	wrong.require(c.Store != nil, "Config.Store")
	if c.Blocks < 0 {
		wrong.add("Config.Blocks", "must not be negative")
	}
	if err := wrong.err(); err != nil {
		return nil, err
	}
	c.Blocks = cmp.Or(c.Blocks, 2000)
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Orders{config: c}, nil
}

// Report is an order, and what its user did on the chain.
type Report struct {
	Order ramp.Order // as it is stored

	// Activity is what the order's user address did in the blocks from FirstBlock
	// to LastBlock, oldest first. The blocks after that, up to NewestBlock, were
	// not read. All are zero without [Config].Chain.
	Activity                           []Activity
	FirstBlock, LastBlock, NewestBlock uint64
}

// Activity is a transaction that a user sent, or in which an event of the order's
// token names the user.
type Activity struct {
	Hash    common.Hash     // of the transaction
	Block   uint64          // number of its block
	Time    time.Time       // of its block
	From    common.Address  // the sender
	To      *common.Address // the receiver; nil if it created a contract
	Success bool            // whether the transaction succeeded
	Token   bool            // whether an event of the order's token names the user
}

// Show returns an order, and what its user did on the chain since it was accepted.
// It changes nothing. If there is no such order, the error wraps [ramp.ErrOrderUnknown].
// If the chain cannot be read, Show returns the order together with the error.
//
// The interface does not say who sends the transaction of an order, or how the two
// are linked. A transaction of the user that moved the token is likely the one. If
// none of the blocks up to the newest has such a transaction, there is likely none.
// Neither is a proof.
func (o *Orders) Show(ctx context.Context, id uuid.UUID) (*Report, error) {
	step, err := o.config.Store.Update(ctx, id, o.mine(func(stored *ramp.Order) (ramp.Step, error) {
		if stored == nil {
			return ramp.Step{}, fmt.Errorf("ramp: order %s: %w", id, ramp.ErrOrderUnknown)
		}
		return ramp.Step{Order: *stored}, nil // a repeat: nothing is stored
	}))
	if err != nil {
		return nil, err
	}
	report := &Report{Order: step.Order}
	if o.config.Chain != nil {
		if err := o.findActivity(ctx, report); err != nil {
			return report, fmt.Errorf("ramp: order %s: read the chain: %w", id, err)
		}
	}
	return report, nil
}

// mine makes a transition see only orders of the project.
func (o *Orders) mine(next ramp.Transition) ramp.Transition {
	return func(stored *ramp.Order) (ramp.Step, error) {
		if project := o.config.ProjectID; stored != nil && project != "" && stored.ProjectID != project {
			return ramp.Step{}, &ramp.ConflictError{Order: *stored, Field: "project_id"}
		}
		return next(stored)
	}
}

// Abandon ends an order whose result will never come, and gives back what it took;
// see [ramp.Abandon]. Call it after a person has checked the chain. The service is not
// told. It logs who decided that and why. Both are required, and are stored as the
// Reason of the order: "who: reason".
func (o *Orders) Abandon(ctx context.Context, id uuid.UUID, who, reason string) (ramp.Step, error) {
	return o.decide(ctx, "abandoned", id, who, reason, func(who, reason string) (ramp.Step, error) {
		step, err := o.config.Store.Update(ctx, id, o.mine(ramp.Abandon(who+": "+reason, o.config.Now())))
		if err != nil {
			return ramp.Step{}, fmt.Errorf("ramp: abandon order %s: %w", id, err)
		}
		return step, nil
	})
}

// Finish ends an order as a transaction ended, if the service does not deliver its
// result: a failed mint gives back, and a successful burn grants. It logs who
// decided that and why. Both are required, and so is [Config].Chain.
//
// The transaction must be one that [Orders.Show] lists for the order. If it succeeded,
// an event of the order's token must name the user. Otherwise the error is a
// [*ramp.InvalidError]. That the transaction belongs to this order is the decision. If
// the order has ended otherwise, or another order has ended by the transaction, the
// error is a [*ramp.ConflictError]. A result that comes later is a repeat.
func (o *Orders) Finish(ctx context.Context, id uuid.UUID, transaction common.Hash, who, reason string) (ramp.Step, error) {
	return o.decide(ctx, "finished", id, who, reason, func(string, string) (ramp.Step, error) {
		if o.config.Chain == nil {
			return ramp.Step{}, invalid("Config.Chain", "is required")
		}
		report, err := o.Show(ctx, id)
		if err != nil {
			return ramp.Step{}, err
		}
		for _, a := range report.Activity {
			status := uint64(1)
			switch {
			case a.Hash != transaction:
				continue
			case !a.Success:
				status = 0
			case !a.Token:
				return ramp.Step{}, invalid("transaction", "has no event of the order's token that names the user")
			}
			result := &ramp.Result{UUID: id, TxHash: a.Hash.Hex(), Receipt: ramp.Receipt{Status: ramp.NewQuantity(status)}}
			return o.config.Store.Update(ctx, id, o.mine(ramp.Finish(result, o.config.Now())))
		}
		return ramp.Step{}, invalid("transaction", "is not one of the user's in the blocks that were read")
	})
}

// decide makes a decision and logs it as done or failed.
func (o *Orders) decide(ctx context.Context, decision string, id uuid.UUID, who, reason string, do func(who, reason string) (ramp.Step, error)) (ramp.Step, error) {
	who, reason = strings.TrimSpace(who), strings.TrimSpace(reason)
	var wrong problems
	wrong.require(who != "", "who")
	wrong.require(reason != "", "reason")
	if err := wrong.err(); err != nil {
		return ramp.Step{}, err
	}
	step, err := do(who, reason)
	log := cmp.Or(o.config.Logger, slog.Default())
	attrs := []slog.Attr{slog.String("uuid", id.String()), slog.String("who", who), slog.String("reason", reason)}
	if err != nil {
		log.LogAttrs(ctx, slog.LevelError, "ramp: order not "+decision, append(attrs, slog.Any("error", err))...)
		return ramp.Step{}, err
	}
	log.LogAttrs(ctx, slog.LevelWarn, "ramp: order "+decision, append(attrs, slog.String("session_id", step.Order.SessionID),
		slog.String("direction", step.Order.Direction.String()), slog.String("state", string(step.Order.State)),
		slog.String("tx_hash", step.Order.TxHash), slog.String("effect", step.Effect.String()), slog.Bool("new", step.New))...)
	return step, nil
}

// clockSkew is how far the game's clock may be ahead of the chain's.
const clockSkew = time.Minute

// findActivity reads the blocks since the order was accepted.
func (o *Orders) findActivity(ctx context.Context, report *Report) error {
	chain := o.config.Chain
	newest, err := chain.BlockNumber(ctx)
	if err != nil {
		return err
	}
	report.NewestBlock = newest
	if !common.IsHexAddress(report.Order.UserAddress) {
		return invalid("user_address", "must be 40 hex digits")
	}
	first, err := o.blockBefore(ctx, report.Order.AcceptedAt.Add(-clockSkew), newest)
	if err != nil {
		return err
	}
	last := min(newest, first+uint64(o.config.Blocks)-1)
	report.FirstBlock, report.LastBlock = first, last

	player := common.HexToAddress(report.Order.UserAddress)
	named, err := o.eventsNaming(ctx, chainSide(&report.Order), player, first, last)
	if err != nil {
		return err
	}
	const maxBlocks = 100 // per batch
	for from := first; from <= last; from += maxBlocks {
		blocks := make([]ramp.Block, min(maxBlocks, last-from+1))
		calls := make([]ramp.BatchCall, len(blocks))
		for i := range blocks {
			calls[i] = ramp.BatchCall{Method: "eth_getBlockByNumber", Params: []any{ramp.AtBlock(from + uint64(i)), true}, Into: &blocks[i]}
		}
		if err := chain.Batch(ctx, calls); err != nil {
			return err
		}
		for i := range blocks {
			if calls[i].Err != nil {
				return calls[i].Err
			}
			for _, t := range blocks[i].Transactions {
				if t.From == player || named[t.Hash] {
					report.Activity = append(report.Activity, Activity{Hash: t.Hash, Block: from + uint64(i),
						Time: blockTime(&blocks[i]), From: t.From, To: t.To, Token: named[t.Hash]})
				}
			}
		}
	}
	for i := range report.Activity {
		receipt, err := chain.Receipt(ctx, report.Activity[i].Hash)
		if err != nil {
			return err
		}
		report.Activity[i].Success = receipt.Succeeded()
	}
	return nil
}

// blockBefore returns the number of the last block before a time. A block that the
// node no longer has counts as earlier.
func (o *Orders) blockBefore(ctx context.Context, at time.Time, newest uint64) (uint64, error) {
	var failed error
	after := sort.Search(int(newest), func(n int) bool { // the first block that is not before at
		if failed != nil {
			return true
		}
		block, err := o.config.Chain.BlockByNumber(ctx, ramp.AtBlock(uint64(n)), false)
		if errors.Is(err, ramp.ErrNotFound) {
			return false
		}
		if err != nil {
			failed = err
			return true
		}
		return !blockTime(block).Before(at)
	})
	return uint64(max(after, 1) - 1), failed
}

// eventsNaming returns the transactions in which an event of one of the tokens has
// the player as a topic, as a transfer does.
func (o *Orders) eventsNaming(ctx context.Context, tokens []ramp.IntentAsset, player common.Address, first, last uint64) (map[common.Hash]bool, error) {
	var contracts []common.Address
	for _, token := range tokens {
		if common.IsHexAddress(token.ID) {
			contracts = append(contracts, common.HexToAddress(token.ID))
		}
	}
	named := map[common.Hash]bool{}
	if len(contracts) == 0 {
		return named, nil
	}
	const maxRange = 1000 // blocks per request; many nodes accept no more
	for from := first; from <= last; from += maxRange {
		logs, err := o.config.Chain.Logs(ctx, ramp.LogFilter{FromBlock: ramp.AtBlock(from), ToBlock: ramp.AtBlock(min(last, from+maxRange-1)), Addresses: contracts})
		if err != nil {
			return nil, err
		}
		topic := common.BytesToHash(player[:])
		for _, l := range logs {
			if slices.Contains(l.Topics, topic) {
				named[l.TransactionHash] = true
			}
		}
	}
	return named, nil
}

// blockTime returns the time of a block.
func blockTime(b *ramp.Block) time.Time {
	seconds, err := b.Timestamp.Uint64()
	if err != nil {
		return time.Time{}
	}
	return time.Unix(int64(min(seconds, 1<<40)), 0).UTC()
}

// chainSide returns the tokens of an order.
func chainSide(order *ramp.Order) []ramp.IntentAsset {
	if order.Direction == ramp.Burn {
		return order.Intent.From
	}
	return order.Intent.To
}

// problems collects what is wrong with a config or a decision.
type problems []ramp.FieldError

func (p *problems) add(path, problem string) {
	*p = append(*p, ramp.FieldError{Path: path, Problem: problem})
}

func (p *problems) require(ok bool, path string) {
	if !ok {
		p.add(path, "is required")
	}
}

func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return &ramp.InvalidError{Fields: p}
}

func invalid(path, problem string) error { return problems{{Path: path, Problem: problem}}.err() }
