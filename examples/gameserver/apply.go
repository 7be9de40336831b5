// To make it yours: move the items of your game. Keep what the comment of Apply promises.

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	ramp "github.com/token-ramp/ramp-go"
)

// Apply moves the items of one step of an order. It runs once for each step, in the
// transaction that records the step. A mint may be rejected. A grant or a give-back never
// fails: see mailbox.go.
//
// The handler has checked that an order is for a product at its price. countMoved checks how much
// leaves the game. A larger game also checks here who may trade. A rejected order leaves no row.
func (g *game) Apply(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
	if step.Order.State == ramp.OrderAccepted {
		if err := acceptable(step.Order); err != nil {
			return err
		}
	}
	if err := g.applySwords(ctx, tx, step); err != nil {
		return err
	}
	for _, item := range step.Effect.Assets { // sorted, so that two orders of a player cannot deadlock
		if item.ID == itemSword {
			continue
		}
		amount, err := item.Amount.Int64()
		switch {
		case err != nil:
			return ramp.Reject("INVALID_AMOUNT") // an item cannot be divided
		case step.Effect.Kind == ramp.Take:
			err = g.take(ctx, tx, step.Order.SessionID, item.ID, amount)
		default:
			err = g.give(ctx, tx, step.Order, item.ID, amount)
		}
		if err != nil {
			return fmt.Errorf("change how many %q the player of session %s owns: %w", item.ID,
				step.Order.SessionID, err)
		}
	}
	if step.Order.State == ramp.OrderAccepted {
		return g.countMoved(ctx, tx, step.Order)
	}
	return nil
}

// take takes items from the player of a session, who must own them.
func (g *game) take(ctx context.Context, tx *sql.Tx, session, item string, amount int64) error {
	err := g.change(ctx, tx, 1, "UPDATE inventory SET balance = balance - ? WHERE player = "+ofSession+
		" AND item = ? AND balance >= ?", amount, session, item, amount)
	if errors.Is(err, errRows) {
		err = ramp.Reject("INVALID_BALANCE")
	}
	return err
}

// acceptable rejects an order whose assets this game cannot store exactly.
func acceptable(o ramp.Order) error {
	for _, asset := range o.Assets {
		n, err := asset.Amount.Int64() // items cannot be divided
		switch {
		case starting[asset.ID] == 0 && asset.ID != itemSword:
			return ramp.Reject("INVALID_ITEM")
		case err != nil || n > maxAmount:
			return ramp.Reject("INVALID_AMOUNT")
		}
	}
	return nil
}
