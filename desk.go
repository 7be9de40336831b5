package ramp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sort"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
)

// Desk helps a person decide about an order whose result does not come. Use it in
// your own admin tool. It works with every [Store]; the store itself lists waiting
// orders, such as [SQLStore.Waiting]. docs/operations.md explains how to decide.
type Desk struct{ config DeskConfig }

// DeskConfig configures a [Desk]. Game is required. Every other field may be zero,
// which means its default.
type DeskConfig struct {
	// Game is the game whose orders are shown and ended. Required.
	Game *OrderGame

	// Chain is where [Desk.Show] and [Desk.Finish] search for transactions. By
	// default Show shows only the order.
	Chain *RPC

	// Blocks is the maximum number of blocks that [Desk.Show] reads, beginning one
	// minute before the order was accepted. A UUID can be used for 5 minutes
	// (interface 8), so a transaction of the order comes soon after. The default is
	// 2,000.
	Blocks int

	// Logger gets one record per decision: "ramp: order abandoned" or "ramp: order
	// finished" with uuid, who, reason, direction, tx_hash, effect and new, or "ramp:
	// order not abandoned" or "ramp: order not finished" with the cause. The default
	// is [slog.Default].
	Logger *slog.Logger
}

// NewDesk returns a desk for c.Game. The error is an [*InvalidError] that lists
// every missing or wrong field of c.
func NewDesk(c DeskConfig) (*Desk, error) {
	var p problems
	p.require(c.Game != nil, "DeskConfig.Game")
	if c.Blocks < 0 {
		p.add("DeskConfig.Blocks", "must not be negative")
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	c.Blocks = cmp.Or(c.Blocks, 2000)
	return &Desk{config: c}, nil
}

// OrderReport is an order, and what its user did on the chain.
type OrderReport struct {
	Order Order // as it is stored

	// Activity is what the order's user address did in the blocks from FirstBlock
	// to LastBlock, oldest first. The blocks after that, up to NewestBlock, were
	// not read. All are zero without [DeskConfig].Chain.
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
// It changes nothing. If there is no such order, the error wraps [ErrOrderUnknown].
// If the chain cannot be read, Show returns the order together with the error.
//
// The interface does not say who sends the transaction of an order, or how the two
// are linked. A transaction of the user that moved the token is likely the one. If
// none of the blocks up to the newest has such a transaction, there is likely none.
// Neither is a proof.
func (d *Desk) Show(ctx context.Context, id uuid.UUID) (*OrderReport, error) {
	step, err := d.config.Game.config.Store.Update(ctx, id, func(stored *Order) (Step, error) {
		if stored == nil {
			return Step{}, fmt.Errorf("ramp: order %s: %w", id, ErrOrderUnknown)
		}
		return Step{Order: *stored}, nil // a repeat: nothing is stored
	})
	if err != nil {
		return nil, err
	}
	report := &OrderReport{Order: step.Order}
	if d.config.Chain != nil {
		if err := d.findActivity(ctx, report); err != nil {
			return report, fmt.Errorf("ramp: order %s: read the chain: %w", id, err)
		}
	}
	return report, nil
}

// Abandon ends an order whose result will never come, as [OrderGame.Abandon] does,
// and logs who decided that and why. Both are required, and are stored as the
// Reason of the order: "who: reason".
func (d *Desk) Abandon(ctx context.Context, id uuid.UUID, who, reason string) (Step, error) {
	return d.decide(ctx, "ramp: order abandoned", "ramp: order not abandoned", id, who, reason, func(who, reason string) (Step, error) {
		return d.config.Game.Abandon(ctx, id, who+": "+reason)
	})
}

// Finish ends an order as a transaction ended, if the service does not deliver its
// result: a failed mint gives back, and a successful burn grants. It logs who
// decided that and why. Both are required, and so is [DeskConfig].Chain.
//
// The transaction must be one that [Desk.Show] lists for the order. If it succeeded,
// an event of the order's token must name the user. It must not have ended another
// order of the session, if the store can list those, as [SQLStore] does. Otherwise
// the error is an [*InvalidError]. That the transaction belongs to this order and to
// no other is the decision. If the order has ended otherwise, the error is a
// [*ConflictError]. A result that comes later is a repeat.
func (d *Desk) Finish(ctx context.Context, id uuid.UUID, transaction common.Hash, who, reason string) (Step, error) {
	return d.decide(ctx, "ramp: order finished", "ramp: order not finished", id, who, reason, func(string, string) (Step, error) {
		if d.config.Chain == nil {
			return Step{}, invalid("DeskConfig.Chain", "is required")
		}
		report, err := d.Show(ctx, id)
		if err != nil {
			return Step{}, err
		}
		if err := d.checkUnused(ctx, &report.Order, transaction); err != nil {
			return Step{}, err
		}
		for _, a := range report.Activity {
			switch {
			case a.Hash != transaction:
			case !a.Success:
				return d.config.Game.finish(ctx, &Result{UUID: id, TxHash: a.Hash.Hex(), Receipt: Receipt{Status: NewQuantity(0)}})
			case a.Token:
				return d.config.Game.finish(ctx, &Result{UUID: id, TxHash: a.Hash.Hex(), Receipt: Receipt{Status: NewQuantity(1)}})
			default:
				return Step{}, invalid("transaction", "has no event of the order's token that names the user")
			}
		}
		return Step{}, invalid("transaction", "is not one of the user's in the blocks that were read")
	})
}

// checkUnused returns an error if a transaction has ended another order of the
// session.
func (d *Desk) checkUnused(ctx context.Context, order *Order, transaction common.Hash) error {
	store, ok := d.config.Game.config.Store.(interface {
		SessionOrders(ctx context.Context, sessionID string, page OrderPage) ([]Order, error)
	})
	if !ok {
		return nil
	}
	for page := (OrderPage{}); ; {
		list, err := store.SessionOrders(ctx, order.SessionID, page)
		if err != nil {
			return err
		}
		for _, o := range list {
			if o.UUID != order.UUID && strings.EqualFold(o.TxHash, transaction.Hex()) {
				return invalid("transaction", "has ended another order of the session")
			}
		}
		if len(list) == 0 {
			return nil
		}
		page.After = list[len(list)-1]
	}
}

// decide makes a decision and logs it as done or failed.
func (d *Desk) decide(ctx context.Context, done, failed string, id uuid.UUID, who, reason string, do func(who, reason string) (Step, error)) (Step, error) {
	who, reason = strings.TrimSpace(who), strings.TrimSpace(reason)
	var p problems
	p.require(who != "", "who")
	p.require(reason != "", "reason")
	if err := p.err(); err != nil {
		return Step{}, err
	}
	step, err := do(who, reason)
	log := cmp.Or(d.config.Logger, slog.Default())
	attrs := []slog.Attr{slog.String("uuid", id.String()), slog.String("who", who), slog.String("reason", reason)}
	if err != nil {
		log.LogAttrs(ctx, slog.LevelError, failed, append(attrs, slog.Any("error", err))...)
		return Step{}, err
	}
	log.LogAttrs(ctx, slog.LevelWarn, done, append(attrs, slog.String("direction", step.Order.Direction.String()),
		slog.String("tx_hash", step.Order.TxHash), slog.String("effect", step.Effect.Kind.String()), slog.Bool("new", step.New))...)
	return step, nil
}

// clockSkew is how far the game's clock may be ahead of the chain's.
const clockSkew = time.Minute

// findActivity reads the blocks since the order was accepted.
func (d *Desk) findActivity(ctx context.Context, report *OrderReport) error {
	chain := d.config.Chain
	newest, err := chain.BlockNumber(ctx)
	if err != nil {
		return err
	}
	report.NewestBlock = newest
	if !common.IsHexAddress(report.Order.UserAddress) {
		return invalid("user_address", "must be 40 hex digits")
	}
	first, err := d.blockBefore(ctx, report.Order.AcceptedAt.Add(-clockSkew), newest)
	if err != nil {
		return err
	}
	last := min(newest, first+uint64(d.config.Blocks)-1)
	report.FirstBlock, report.LastBlock = first, last

	player := common.HexToAddress(report.Order.UserAddress)
	named, err := d.eventsNaming(ctx, report.Order.chainSide(), player, first, last)
	if err != nil {
		return err
	}
	for from := first; from <= last; from += maxBatchCalls {
		blocks := make([]Block, min(maxBatchCalls, last-from+1))
		calls := make([]BatchCall, len(blocks))
		for i := range blocks {
			calls[i] = BatchCall{Method: "eth_getBlockByNumber", Params: []any{AtBlock(from + uint64(i)), true}, Into: &blocks[i]}
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
func (d *Desk) blockBefore(ctx context.Context, at time.Time, newest uint64) (uint64, error) {
	var failed error
	after := sort.Search(int(newest), func(n int) bool { // the first block that is not before at
		if failed != nil {
			return true
		}
		block, err := d.config.Chain.BlockByNumber(ctx, AtBlock(uint64(n)), false)
		if errors.Is(err, ErrNotFound) {
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
func (d *Desk) eventsNaming(ctx context.Context, tokens []IntentAsset, player common.Address, first, last uint64) (map[common.Hash]bool, error) {
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
	const maxBlocks = 1000 // per request; many nodes accept no more
	for from := first; from <= last; from += maxBlocks {
		logs, err := d.config.Chain.Logs(ctx, LogFilter{FromBlock: AtBlock(from), ToBlock: AtBlock(min(last, from+maxBlocks-1)), Addresses: contracts})
		if err != nil {
			return nil, err
		}
		topic := common.BytesToHash(player[:])
		for _, l := range logs {
			for _, t := range l.Topics {
				if t == topic {
					named[l.TransactionHash] = true
				}
			}
		}
	}
	return named, nil
}

// blockTime returns the time of a block.
func blockTime(b *Block) time.Time {
	seconds, err := b.Timestamp.Uint64()
	if err != nil {
		return time.Time{}
	}
	return time.Unix(int64(min(seconds, 1<<40)), 0).UTC()
}
