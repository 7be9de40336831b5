package rampbooks

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/invalid"
)

// KeepMatches stores in [Config].Journal which transactions belong to orders that ended, but not by a
// transaction that they store, such as to an abandoned mint that was minted after all. The books find
// these only by the address of the order's user. EraseSession of support.Orders calls KeepMatches before
// it removes the address, so that the books find the same before and after. Who and why are stored, too,
// and must not name the player. [Config] needs Proof and Journal.
//
// What is [Ambiguous] has no match that could be kept: decide first which transaction is that of which
// order.
func (r *Reconciler) KeepMatches(ctx context.Context, orders []ramp.Order, who, reason string) error {
	if err := r.made(); err != nil {
		return err
	}
	var wrong invalid.Fields
	wrong.Require(r.config.Proof != nil, "Config.Proof", "is required")
	wrong.Require(r.config.Journal != nil, "Config.Journal", "is required")
	wrong.Reason("Entry", who, reason)
	if err := wrong.Err(); err != nil {
		return err
	}
	entries, err := r.config.Journal.Entries(ctx, time.Time{})
	if err != nil {
		return err
	}
	known := newJournal(entries)
	c := newComparison(r, span{from: r.config.Now()})
	c.findings.journal = known
	matches, err := c.matches(ctx, orders)
	if err != nil {
		return fmt.Errorf("ramp: match orders: %w", err)
	}
	for _, order := range orders {
		hash, matched := matches[order.UUID]
		if _, kept := known.transactionOf[order.UUID]; kept || !matched {
			continue
		}
		e := Entry{ID: uuid.NewSHA1(order.UUID, hash[:]), At: r.config.Now().UTC().Truncate(time.Millisecond),
			Who: strings.TrimSpace(who), Reason: strings.TrimSpace(reason),
			Order: order.UUID, TxHash: hash}
		if err := r.config.Journal.Add(ctx, e); err != nil && !r.isKept(ctx, e.ID) {
			return err
		}
	}
	return nil
}

// isKept reports whether an entry is stored. Two people may erase a player at the same moment.
func (r *Reconciler) isKept(ctx context.Context, id uuid.UUID) bool {
	entries, err := r.config.Journal.Entries(ctx, time.Time{})
	return err == nil && slices.ContainsFunc(entries, func(e Entry) bool { return e.ID == id })
}

// matches returns the transactions of orders that the books find by amount.
func (c *comparison) matches(ctx context.Context, orders []ramp.Order) (map[uuid.UUID]common.Hash, error) {
	if err := c.askDecimals(ctx, c.prover.Config.Decimals); err != nil {
		return nil, err
	}
	final, err := c.finalBlock(ctx, c.prover.Confirmations)
	if err != nil {
		return nil, err
	}
	c.final, c.to = final, c.config.Now()
	if c.first, err = final.Number.Uint64(); err != nil {
		return nil, err
	}
	c.last = c.first
	if c.byTransaction.unclaimed, err = c.olderOf(ctx, orders); err != nil {
		return nil, err
	}
	c.byAmount.matched = map[uuid.UUID]common.Hash{}
	if err := c.matchUnclaimed(ctx); err != nil {
		return nil, err
	}
	c.byAmount.resolve(nil, nil, nil)
	return c.byAmount.matched, nil
}
