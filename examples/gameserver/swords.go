// To make it yours: replace the items that are unique in your game, or remove the file with its table
// and its calls in apply.go and players.go.

package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"

	ramp "github.com/token-ramp/ramp-go"
)

// Of item_sword no two are the same, so its product is non-fungible. The interface has the
// ID of the item only, not of the sword or of its token. So the game chooses a sword when a
// mint is accepted, sets it aside under the UUID of the order, and learns from the evidence
// of its end which token the sword became, or which token was burned.

const startingSwords = 2 // of a new player

// createSwords creates the swords of a new player.
func (g *game) createSwords(ctx context.Context, tx *sql.Tx, player string) error {
	for n := range startingSwords {
		// The ID must be the same at every login. A hash also has room for the longest name.
		if err := g.insertNew(ctx, tx, "swords", "id, player", hash(player+"/"+strconv.Itoa(n)),
			player); err != nil {
			return err
		}
	}
	return nil
}

// applySwords moves the swords of one step of an order.
func (g *game) applySwords(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
	o := step.Order
	i := slices.IndexFunc(o.Assets, func(a ramp.AssetAmount) bool { return a.ID == itemSword })
	if i < 0 {
		return nil
	}
	n, err := o.Assets[i].Amount.Int64()
	if err != nil {
		return err
	}
	switch {
	case step.Effect.Kind == ramp.Take:
		return g.setAside(ctx, tx, o, n)
	case step.Effect.Kind == ramp.GiveBack:
		return g.change(ctx, tx, n, "UPDATE swords SET order_id = '' WHERE order_id = ?", o.UUID.String())
	case step.Effect.Kind == ramp.Grant:
		return g.bringBack(ctx, tx, step, n)
	case o.Direction == ramp.Mint && o.State == ramp.OrderSucceeded:
		return g.remember(ctx, tx, step)
	default:
		return nil
	}
}

// setAside chooses swords of the player for a mint. Nobody can use them until it fails.
func (g *game) setAside(ctx context.Context, tx *sql.Tx, o ramp.Order, n int64) error {
	const query = "SELECT id FROM swords WHERE player = " + ofSession +
		" AND order_id = '' ORDER BY id LIMIT ? FOR UPDATE"
	chosen, err := g.column(ctx, tx, query, o.SessionID, n)
	if err == nil && int64(len(chosen)) < n {
		err = ramp.Reject("INVALID_BALANCE")
	}
	for _, id := range chosen {
		if err == nil {
			err = g.change(ctx, tx, 1, "UPDATE swords SET order_id = ? WHERE id = ?", o.UUID.String(), id)
		}
	}
	return err
}

// remember stores which tokens the swords of a mint became.
func (g *game) remember(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
	minted, err := g.column(ctx, tx, "SELECT id FROM swords WHERE order_id = ? ORDER BY id",
		step.Order.UUID.String())
	for n, token := range step.Evidence.TokenIDs {
		if err == nil && n < len(minted) {
			err = g.change(ctx, tx, 1, "UPDATE swords SET token_id = ? WHERE id = ?",
				token.String(), minted[n])
		}
	}
	return err
}

// bringBack gives the player the swords whose tokens were burned. A token that the game
// does not know becomes a new sword.
func (g *game) bringBack(ctx context.Context, tx *sql.Tx, step ramp.Step, n int64) error {
	burned := step.Evidence.TokenIDs
	for i := range n {
		err := errRows
		if i < int64(len(burned)) {
			err = g.change(ctx, tx, 1,
				"UPDATE swords SET player = "+ofSession+", order_id = '', token_id = '' WHERE token_id = ?",
				step.Order.SessionID, burned[i].String())
		}
		if errors.Is(err, errRows) { // unknown
			id := fmt.Sprintf("%s/%d", step.Order.UUID, i)
			err = g.change(ctx, tx, 1, "INSERT INTO swords (id, player) VALUES (?, "+ofSession+")", id,
				step.Order.SessionID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
