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

// Desk is for the person who decides about an order whose result does not come.
// Put it behind your own admin tool. It works with every [Store]; which orders
// wait is a question for the store, such as [SQLStore.Waiting]. docs/operations.md
// says how to decide.
type Desk struct{ config DeskConfig }

// DeskConfig configures a [Desk]. Game is required. The zero value of every other
// field stands for its default.
type DeskConfig struct {
	// Game is the game whose orders are decided on. Required.
	Game *OrderGame

	// Chain is where [Desk.Show] looks for transactions. By default it shows the
	// order alone.
	Chain *RPC

	// Blocks is how many blocks [Desk.Show] reads at most, from a minute before
	// the order was accepted on. A UUID can be used for 5 minutes (interface 8), so
	// a transaction of the order comes soon after. The default is 2,000.
	Blocks int

	// Logger gets one record for each decision: "ramp: order abandoned" with
	// uuid, direction, who, reason and new, or "ramp: order not abandoned" with
	// the cause. The default is [slog.Default].
	Logger *slog.Logger
}

// NewDesk returns a desk for c.Game. The error is an [*InvalidError] that lists
// every field of c that is missing or wrong.
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

// OrderReport is an order, and what the chain has of its player.
type OrderReport struct {
	Order Order

	// Activity is what the order's user address did in the blocks from
	// FirstBlock to LastBlock, the oldest first. Nothing is known of the others,
	// up to NewestBlock. All are zero without [DeskConfig].Chain.
	Activity                           []Activity
	FirstBlock, LastBlock, NewestBlock uint64
}

// Activity is a transaction that a player sent, or that has an event of the
// order's token in which the player is named.
type Activity struct {
	Hash    common.Hash
	Block   uint64
	Time    time.Time // of the block
	From    common.Address
	To      *common.Address // nil created a contract
	Success bool            // of the receipt
	Token   bool            // whether the order's token has an event in it
}

// Show returns an order, and what the chain has of its player since it was
// accepted. It changes nothing. Without such an order, the error wraps
// [ErrOrderUnknown]. If the chain cannot be asked, the order comes together with
// the error.
//
// The interface does not say who sends the transaction of an order, nor how the
// two are tied. So a transaction of the player that moved the token is likely the
// one, and no such transaction in all of the blocks makes it likely that there is
// none. Neither is a proof.
func (d *Desk) Show(ctx context.Context, id uuid.UUID) (*OrderReport, error) {
	step, err := d.config.Game.config.Store.Update(ctx, id, func(stored *Order) (Step, error) {
		if stored == nil {
			return Step{}, fmt.Errorf("ramp: order %s: %w", id, ErrOrderUnknown)
		}
		return Step{Order: *stored}, nil // a repeat, which stores nothing
	})
	if err != nil {
		return nil, err
	}
	report := &OrderReport{Order: step.Order}
	if d.config.Chain != nil {
		if err := d.look(ctx, report); err != nil {
			return report, fmt.Errorf("ramp: order %s: look at the chain: %w", id, err)
		}
	}
	return report, nil
}

// Abandon ends an order whose result will never come, as [OrderGame.Abandon] does,
// and logs who decided it and why. Both are required, and kept as the Reason of
// the order: "who: reason".
func (d *Desk) Abandon(ctx context.Context, id uuid.UUID, who, reason string) (Step, error) {
	who, reason = strings.TrimSpace(who), strings.TrimSpace(reason)
	var p problems
	p.require(who != "", "who")
	p.require(reason != "", "reason")
	if err := p.err(); err != nil {
		return Step{}, err
	}
	step, err := d.config.Game.Abandon(ctx, id, who+": "+reason)
	log := d.config.Logger
	if log == nil {
		log = slog.Default()
	}
	attrs := []slog.Attr{slog.String("uuid", id.String()), slog.String("who", who), slog.String("reason", reason)}
	if err != nil {
		log.LogAttrs(ctx, slog.LevelError, "ramp: order not abandoned", append(attrs, slog.Any("error", err))...)
		return Step{}, err
	}
	log.LogAttrs(ctx, slog.LevelWarn, "ramp: order abandoned", append(attrs,
		slog.String("direction", step.Order.Direction.String()), slog.String("effect", step.Effect.Kind.String()), slog.Bool("new", step.New))...)
	return step, nil
}

// clockSkew is how far the clock of the game may be ahead of the chain's.
const clockSkew = time.Minute

// look reads the blocks since the order was accepted.
func (d *Desk) look(ctx context.Context, report *OrderReport) error {
	chain := d.config.Chain
	newest, err := chain.BlockNumber(ctx)
	if err != nil {
		return err
	}
	report.NewestBlock = newest
	if !common.IsHexAddress(report.Order.UserAddress) {
		return invalid("user_address", "must be 20 bytes in hex")
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
	for from := first; from <= last; from += mostBatchCalls {
		blocks := make([]Block, min(mostBatchCalls, last-from+1))
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

// blockBefore returns the number of the last block before a time. A block that
// the node no longer has is too early.
func (d *Desk) blockBefore(ctx context.Context, at time.Time, newest uint64) (uint64, error) {
	var failed error
	after := sort.Search(int(newest), func(n int) bool { // the first block that is not before
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

// eventsNaming returns the transactions with an event of one of the tokens that
// has the player as a topic, as a transfer has.
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
	const most = 1000 // blocks in one request; many nodes take no more
	for from := first; from <= last; from += most {
		logs, err := d.config.Chain.Logs(ctx, LogFilter{FromBlock: AtBlock(from), ToBlock: AtBlock(min(last, from+most-1)), Addresses: contracts})
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

// blockTime is the time of a block, in seconds.
func blockTime(b *Block) time.Time {
	seconds, err := b.Timestamp.Uint64()
	if err != nil {
		return time.Time{}
	}
	return time.Unix(int64(min(seconds, 1<<40)), 0).UTC()
}
