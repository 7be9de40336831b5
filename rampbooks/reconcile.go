package rampbooks

import (
	"context"
	"fmt"
	"time"

	"github.com/token-ramp/ramp-go/internal/invalid"
	"github.com/token-ramp/ramp-go/internal/orderlist"
)

// If books go on where others ended, as with [Reconciler.KeepBooks] and the command reconcile with a
// position, Overlap is how much earlier than their totals their findings begin. It catches late writes
// and reorganizations. Totals never overlap, so that they can be added up.
const Overlap = 2 * time.Hour

// Reconcile compares the orders of a period with the events of their tokens: the mints and burns in the
// blocks of the period, and the orders that ended in it. It also reports the orders that wait, and whose 13
// hours ended in the period. It changes nothing. The period ends just before to, which must be final and at
// least two minutes ago: otherwise the error wraps [ErrNotFinal]. If to is zero, it ends as late as it can.
// [Reconciler.KeepBooks], and the command reconcile with -position, also report again what earlier books
// have found for orders that wait still, if they have an event.
//
// An order and an event belong together by their transaction, or else by user, token, direction,
// amount and time. If that leaves a choice, it is a finding. Orders and events are each read once
// and in order, and leave memory once they are matched, but for some 40 bytes of each order: two orders
// with one transaction are found however far apart they are. Blocks that are not final are not judged:
// those with fewer confirmations than [Config].Proof demands, if it demands more than 1, or else
// those after the node's "finalized" block.
//
// [Config] needs Proof, and Products or Tokens. Tokens come from
// and go to the zero address or Contracts of the proof. The chain is asked for the decimals of each
// token, and they are compared with Decimals of the proof, so a token without a contract on this
// chain is an error. Transfers of zero, which anybody can make, are skipped.
func (r *Reconciler) Reconcile(ctx context.Context, from, to time.Time) (*Reconciliation, error) {
	books, _, err := r.reconcile(ctx, span{from: from, to: to})
	return books, err
}

// ReconcileLines is like [Reconciler.Reconcile], and also returns the lines that the totals add up:
// first the orders by their end, and then the events in the order of the chain. All of them are in
// memory.
func (r *Reconciler) ReconcileLines(
	ctx context.Context, from, to time.Time,
) (*Reconciliation, []Line, error) {
	return r.reconcile(ctx, span{from: from, to: to, lines: true})
}

func (r *Reconciler) reconcile(ctx context.Context, s span) (*Reconciliation, []Line, error) {
	if err := r.made(); err != nil {
		return nil, nil, err
	}
	var wrong invalid.Fields
	wrong.Require(r.config.Proof != nil, "Config.Proof", "is required")
	wrong.Require(len(r.config.Tokens)+len(r.config.Products) > 0, "Config.Products", "is required")
	wrong.Require(!s.from.IsZero(), "from", "is required")
	if err := wrong.Err(); err != nil {
		return nil, nil, err
	}
	if now := r.config.Now(); s.from.After(now) {
		return nil, nil, fmt.Errorf("ramp: reconcile: %w: it begins at %s, and it is %s", ErrNotFinal,
			s.from.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	if !s.to.IsZero() && s.to.Before(s.from) {
		return nil, nil, fmt.Errorf("ramp: reconcile: the period ends at %s, and begins at %s: "+
			"nothing would be compared", s.to.UTC().Format(time.RFC3339), s.from.UTC().Format(time.RFC3339))
	}
	c := newComparison(r, s)
	books, err := c.run(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("ramp: reconcile: %w", err)
	}
	return books, c.totals.lines.sorted(), nil
}

// run reads, matches and reports.
func (c *comparison) run(ctx context.Context) (*Reconciliation, error) {
	if err := c.askDecimals(ctx, c.prover.Config.Decimals); err != nil {
		return nil, err
	}
	if err := c.readJournal(ctx); err != nil {
		return nil, err
	}
	if err := c.setBlocks(ctx); err != nil {
		return nil, err
	}
	books := &Reconciliation{About: c.about(), From: c.counted.UTC(), To: c.to.UTC(),
		FindingsFrom: c.from.UTC(), FirstBlock: c.first, LastBlock: c.last,
		OneDatabase: orderlist.ClaimsOf(c.config.Store) == nil,
		Totals:      []Total{}, Chain: []ChainTotal{}, Decisions: []DecisionRow{}} // not null in JSON
	if err := c.readEarlier(ctx); err != nil {
		return nil, err
	}
	if err := c.findKnown(ctx); err != nil {
		return nil, err
	}
	if err := c.merge(ctx); err != nil {
		return nil, err
	}
	var err error
	if books.Stalled, err = c.stalled(ctx); err != nil {
		return nil, err
	}
	if err := c.matchUnmatched(ctx); err != nil {
		return nil, err
	}
	if err := c.countWaiting(ctx, books); err != nil {
		return nil, err
	}
	if err := c.addInFlight(ctx); err != nil {
		return nil, err
	}
	c.report(books)
	if err := c.describeDecisions(ctx, books.Decisions); err != nil {
		return nil, err
	}
	if err := c.addRefusals(ctx, books.Findings); err != nil {
		return nil, err
	}
	books.Fitting, err = c.markFitting(ctx, books.Findings)
	return books, err
}

// readJournal reads what persons have decided since the period began, and what is known of erased
// players.
func (c *comparison) readJournal(ctx context.Context) error {
	if c.config.Journal == nil {
		return nil
	}
	entries, err := c.config.Journal.Entries(ctx, c.begin().Add(-maxAhead))
	c.findings.journal = newJournal(entries)
	return err
}
