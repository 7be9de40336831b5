// This file erases what is known of a player. To make it yours: name every table of yours that has
// rows of a player.

package main

import (
	"context"
	"fmt"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampsql"
	"github.com/token-ramp/ramp-go/support"
)

// eraseAge is how long ago an order must have ended before its session can be erased.
const eraseAge = 7 * 24 * time.Hour

// rowsOfPlayer returns what deletes the rows of a player in the tables of this game, first those
// that are found by others.
func rowsOfPlayer() []string {
	return []string{
		"DELETE FROM mailbox WHERE session_id IN (SELECT id FROM sessions WHERE player = ?)",
		"DELETE FROM pages WHERE player = ?",
		"DELETE FROM swords WHERE player = ?",
		"DELETE FROM wallets WHERE player = ?",
		"DELETE FROM moved WHERE who = ?",
		"DELETE FROM inventory WHERE player = ?",
		"DELETE FROM sessions WHERE player = ?",
	}
}

// erase makes the orders of a player anonymous, and deletes the player's rows, as a user who may DELETE.
// It changes nothing while an order waits, or has ended less than a week ago: its result may come again.
func (d *decision) erase(ctx context.Context, g *game, store *rampsql.Store) (said string, err error) {
	sessions, err := g.sessions(ctx, d.player)
	if err == nil && len(sessions) == 0 {
		err = fmt.Errorf("there is no player %q", d.player)
	}
	if err != nil {
		return "", err
	}
	before := time.Now().Add(-eraseAge)
	for _, session := range sessions {
		if err := erasable(ctx, store, session, before); err != nil {
			return "", err
		}
	}
	total := 0
	for _, session := range sessions {
		n, err := d.desk.EraseSession(ctx, session, before,
			support.Decision{Who: d.who, Reason: d.reason, WithoutEvidence: d.withoutEvidence})
		if err != nil {
			return "", err
		}
		total += n
	}
	tx, err := g.db.BeginTx(ctx, nil)
	if err != nil {
		return "", err
	}
	defer func() { _ = tx.Rollback() }()
	for _, statement := range rowsOfPlayer() {
		if _, err := tx.ExecContext(ctx, g.bind(statement), d.player); err != nil {
			return "", err
		}
	}
	if _, err := d.keep(ctx, g, tx, fmt.Sprintf("%d orders", total)); err != nil { // without the name
		return "", err
	}
	return fmt.Sprintf("Orders made anonymous: %d. The rows of the player are deleted.", total), tx.Commit()
}

// erasable returns an error if an order of a session waits, or has not ended before a time.
func erasable(ctx context.Context, store *rampsql.Store, session string, before time.Time) error {
	for page := (ramp.OrderPage{}); ; {
		orders, err := store.SessionOrders(ctx, session, page)
		if err != nil || len(orders) == 0 {
			return err
		}
		for _, o := range orders {
			if o.State == ramp.OrderAccepted {
				return fmt.Errorf("order %s waits: end it first", o.UUID)
			}
			if !o.FinishedAt.Before(before) {
				return fmt.Errorf("order %s ended less than a week ago: try again on %s", o.UUID,
					o.FinishedAt.Add(eraseAge+24*time.Hour).UTC().Format(time.DateOnly))
			}
		}
		page.After = orders[len(orders)-1]
	}
}
