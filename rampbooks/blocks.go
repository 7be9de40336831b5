package rampbooks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence"
)

// ErrNotFinal is wrapped by the error of [Reconciler.Reconcile] if the period ends after the newest
// block that is final, or less than two minutes ago: what still happens before the end of the period would
// be in neither its books nor the next ones.
var ErrNotFinal = errors.New("the period is not final")

// maxFinality is how long a block may take to be final before the books are said to stand
// still.
const maxFinality = 3 * time.Hour

// storeTime is how long after its end an order may be stored: the end is when its result came, and the call
// then confirms it, applies it and commits.
const storeTime = 2 * time.Minute

// finalBlock returns the newest block that is judged.
func (c *comparison) finalBlock(ctx context.Context, confirmations uint64) (*ramp.Block, error) {
	if confirmations <= 1 {
		block, err := evidence.BlockAt(ctx, c.chain, "finalized")
		if err != nil {
			err = fmt.Errorf(
				"%w (for a node that knows no finalized block, set Config.Confirmations above 1)",
				err)
		}
		return block, err
	}
	block, err := evidence.BlockAt(ctx, c.chain, "latest")
	if err != nil {
		return nil, err
	}
	newest, err := block.Number.Uint64()
	if err != nil {
		return nil, err
	}
	return evidence.BlockAt(ctx, c.chain, ramp.AtBlock(newest-min(newest, confirmations-1)))
}

func (c *comparison) askDecimals(ctx context.Context, known map[common.Address]int) error {
	for _, token := range c.catalog.Tokens {
		if _, piece := c.catalog.Decimals[token]; piece {
			continue
		}
		expected, configured := known[token]
		decimals, err := evidence.Decimals(ctx, c.chain, token)
		switch {
		case configured && expected == 0:
			decimals = 0 // a contract of pieces may have none
		case err != nil:
			return err
		case configured && expected != decimals:
			return fmt.Errorf("Config.Decimals is %d for token %s, but its contract says %d", expected,
				token, decimals)
		}
		c.catalog.Decimals[token] = decimals
	}
	return nil
}

// setBlocks sets the end of the period, if it has none, and the blocks that are read. The period must
// end in a block that is final.
func (c *comparison) setBlocks(ctx context.Context) (err error) {
	if c.final, err = c.finalBlock(ctx, c.prover.Confirmations); err != nil {
		return err
	}
	end := evidence.TimeOf(c.final.Timestamp)
	after, stored := end.Add(time.Second), c.config.Now().Add(-storeTime).Truncate(time.Second)
	switch {
	case c.to.IsZero():
		c.to = after
		if stored.Before(after) {
			c.to = stored
		}
		if c.to.Before(c.counted) { // the last books ended just now
			c.to = c.counted
		}
	case c.to.After(after):
		return fmt.Errorf("%w: it ends at %s, and the newest block that is final is of %s: "+
			"wait, or end there", ErrNotFinal, c.to.UTC().Format(time.RFC3339), end.Format(time.RFC3339))
	case c.to.After(stored):
		return fmt.Errorf("%w: it ends at %s, and an order that ended less than two minutes ago may not be "+
			"stored yet: wait until %s, or end at %s", ErrNotFinal, c.to.UTC().Format(time.RFC3339),
			c.to.Add(storeTime).UTC().Format(time.RFC3339), stored.UTC().Format(time.RFC3339))
	}
	if c.last, _ = c.final.Number.Uint64(); c.to.Before(after) {
		if c.last, err = evidence.LastBlockBefore(ctx, c.chain, c.to, c.final); err != nil {
			return err
		}
	}
	if c.to.Before(c.counted) { // a person has asked for an end before these books
		c.to = c.counted
	}
	c.first, err = evidence.LastBlockBefore(ctx, c.chain, c.begin(), c.final)
	return err
}

// stalled says why the newest final block is hours old, or returns "". A node that is behind is an error.
func (c *comparison) stalled(ctx context.Context) (string, error) {
	newest, err := evidence.BlockAt(ctx, c.chain, "latest")
	if err != nil {
		return "", err
	}
	at, end := evidence.TimeOf(newest.Timestamp), evidence.TimeOf(c.final.Timestamp)
	if at.Before(c.to.Add(-skew)) { // of a fallback, which leaves out what it has not seen
		return "", fmt.Errorf("the node is behind: its newest block is of %s", at.Format(time.RFC3339))
	}
	if !c.to.After(end) || !at.After(end.Add(maxFinality)) {
		return "", nil
	}
	return fmt.Sprintf("the newest block that is final is of %s, and the newest of all of %s: "+
		"use another node, or set Config.Confirmations above 1", end.Format(time.RFC3339),
		at.Format(time.RFC3339)), nil
}
