// To make it yours: set the largest number of an item that a player may own, and how your game shows
// what waits. Keep that a grant never fails.

package main

import (
	"context"
	"database/sql"
	"errors"

	ramp "github.com/token-ramp/ramp-go"
)

// A grant or a give-back never fails: the tokens are burned, or the mint has failed, hours
// after the game could have refused. So what does not fit into a player's purse, because it
// is full or the player is gone, waits in the mailbox, which has no end. From there the
// player takes it.

// give adds items to the purse of the session's player, or puts all of them into the mailbox.
func (g *game) give(ctx context.Context, tx *sql.Tx, o ramp.Order, item string, amount int64) error {
	err := g.addToPurse(ctx, tx, o.SessionID, item, amount)
	if errors.Is(err, errRows) {
		err = g.toMailbox(ctx, tx, o, item, amount)
	}
	return err
}

// toMailbox puts items into the mailbox of the session's player.
func (g *game) toMailbox(ctx context.Context, tx *sql.Tx, o ramp.Order, item string, amount int64) error {
	return g.change(ctx, tx, 1,
		"INSERT INTO mailbox (order_id, item, session_id, amount) VALUES (?, ?, ?, ?)",
		o.UUID.String(), item, o.SessionID, amount)
}

// addToPurse wraps errRows if the purse has no room, or if there is none. A debt is no
// reason to refuse.
func (g *game) addToPurse(ctx context.Context, tx *sql.Tx, session, item string, amount int64) error {
	return g.change(ctx, tx, 1, "UPDATE inventory SET balance = balance + ? WHERE player = "+ofSession+
		" AND item = ? AND balance <= ?", amount, session, item, g.purse-amount)
}

// mail is what waits in the mailbox for one order.
type mail struct {
	Order  string `json:"order"`
	Item   string `json:"item"`
	Amount int64  `json:"amount"`
}

// mailFor returns what waits for the player of a session.
func (g *game) mailFor(ctx context.Context, session string) ([]mail, error) {
	rows, err := g.db.QueryContext(ctx,
		g.bind(`SELECT order_id, item, amount FROM mailbox WHERE taken = 0 AND session_id IN
		(SELECT id FROM sessions WHERE player = `+ofSession+`) ORDER BY item, order_id`), session)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	waiting := []mail{}
	for rows.Next() {
		var m mail
		if err := rows.Scan(&m.Order, &m.Item, &m.Amount); err != nil {
			return nil, err
		}
		waiting = append(waiting, m)
	}
	return waiting, rows.Err()
}

// takeMail moves what fits from the mailbox into the purse, and returns what still waits.
func (g *game) takeMail(ctx context.Context, session string) ([]mail, error) {
	waiting, err := g.mailFor(ctx, session)
	if err != nil {
		return nil, err
	}
	for _, m := range waiting {
		// taken already, or no room
		if err := g.takeOne(ctx, session, m); err != nil && !errors.Is(err, errRows) {
			return nil, err
		}
	}
	return g.mailFor(ctx, session)
}

// takeOne marks the row first: of two calls at once, only one changes it.
func (g *game) takeOne(ctx context.Context, session string, m mail) error {
	tx, err := g.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := g.change(ctx, tx, 1,
		"UPDATE mailbox SET taken = 1 WHERE order_id = ? AND item = ? AND taken = 0", m.Order,
		m.Item); err != nil {
		return err
	}
	if err := g.addToPurse(ctx, tx, session, m.Item, m.Amount); err != nil {
		return err
	}
	return tx.Commit()
}
