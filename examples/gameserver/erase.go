// This file erases what is known of a player. To make it yours: name every table of yours that has
// rows of a player.

package main

import (
	"context"
	"database/sql"
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

// eraseOrders makes the orders of a player anonymous, and returns how many. It changes nothing while an
// order waits, or has ended less than a week ago: its result may come again.
func (g *game) eraseOrders(ctx context.Context, store *rampsql.Store, desk *support.Orders, player string,
	why support.Decision) (total int, err error) {
	sessions, err := g.sessions(ctx, player)
	if err == nil && len(sessions) == 0 {
		err = fmt.Errorf("there is no player %q", player)
	}
	if err != nil {
		return 0, err
	}
	before := time.Now().Add(-eraseAge)
	for _, session := range sessions {
		if err := erasable(ctx, store, session, before); err != nil {
			return 0, err
		}
	}
	for _, session := range sessions {
		n, err := desk.EraseSession(ctx, session, before, why)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// erasePlayer deletes the rows of a player, as a user who may DELETE.
func (g *game) erasePlayer(ctx context.Context, tx *sql.Tx, player string) error {
	for _, statement := range rowsOfPlayer() {
		if _, err := tx.ExecContext(ctx, g.bind(statement), player); err != nil {
			return err
		}
	}
	return nil
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
