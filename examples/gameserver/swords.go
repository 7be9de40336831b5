package main

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	ramp "github.com/token-ramp/ramp-go"
)

// itemSword is an item of which no two are the same, so its product is non-fungible. The
// interface has the ID of the item only, not of the sword or of its token. So the game
// chooses a sword when a mint is accepted, sets it aside under the UUID of the order, and
// learns from the receipt which token the sword became, or which token was burned.
const itemSword = "item_sword"

const startingSwords = 2 // of a new player

// countSwords returns how many swords a player can use.
func (g *game) countSwords(ctx context.Context, player string) (n int64, err error) {
	err = g.db.QueryRowContext(ctx, g.bind("SELECT COUNT(*) FROM swords WHERE player = ? AND order_id = ''"), player).Scan(&n)
	return n, err
}

// createSwords creates the swords of a new player.
func (g *game) createSwords(ctx context.Context, tx *sql.Tx, player string) error {
	insert := "INSERT INTO swords (id, player) VALUES (?, ?) ON CONFLICT DO NOTHING"
	if g.dialect == ramp.MySQL {
		insert = "INSERT INTO swords (id, player) VALUES (?, ?) ON DUPLICATE KEY UPDATE id = swords.id"
	}
	for n := range startingSwords {
		// The ID must be the same at every login. A hash also has room for the longest name.
		id := common.Bytes2Hex(crypto.Keccak256([]byte(player + "/" + strconv.Itoa(n))))
		if _, err := tx.ExecContext(ctx, g.bind(insert), id, player); err != nil {
			return err
		}
	}
	return nil
}

// applySwords moves the swords of one step of an order.
func (g *game) applySwords(ctx context.Context, tx *sql.Tx, step ramp.Step, player string) error {
	o := step.Order
	n, err := amountOf(o.Assets, itemSword).Int64()
	if err != nil || n == 0 {
		return err
	}
	switch {
	case step.Effect.Kind == ramp.Take:
		return g.setAside(ctx, tx, o, player, n)
	case step.Effect.Kind == ramp.GiveBack:
		return g.change(ctx, tx, n, "UPDATE swords SET order_id = '' WHERE order_id = ?", o.UUID.String())
	case step.Effect.Kind == ramp.Grant:
		return g.bringBack(ctx, tx, step, player, n)
	case o.Direction == ramp.Mint && o.State == ramp.OrderSucceeded:
		return g.remember(ctx, tx, step)
	default:
		return nil
	}
}

// setAside chooses swords of the player for a mint. Nobody can use them until it fails.
func (g *game) setAside(ctx context.Context, tx *sql.Tx, o ramp.Order, player string, n int64) error {
	query := "SELECT id FROM swords WHERE player = ? AND order_id = '' ORDER BY id LIMIT " + strconv.FormatInt(n, 10)
	if g.dialect != ramp.SQLite { // which has one writer at a time
		query += " FOR UPDATE"
	}
	chosen, err := g.ids(ctx, tx, query, player)
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
	minted, err := g.ids(ctx, tx, "SELECT id FROM swords WHERE order_id = ? ORDER BY id", step.Order.UUID.String())
	for n, token := range tokenIDs(step) {
		if err == nil && n < len(minted) {
			err = g.change(ctx, tx, 1, "UPDATE swords SET token_id = ? WHERE id = ?", token, minted[n])
		}
	}
	return err
}

// bringBack gives the player the swords whose tokens were burned. A token that the game
// does not know becomes a new sword.
func (g *game) bringBack(ctx context.Context, tx *sql.Tx, step ramp.Step, player string, n int64) error {
	burned := tokenIDs(step)
	for i := range n {
		var known int64
		if i < int64(len(burned)) {
			done, err := tx.ExecContext(ctx, g.bind("UPDATE swords SET player = ?, order_id = '', token_id = '' WHERE token_id = ?"), player, burned[i])
			if err != nil {
				return err
			}
			if known, err = done.RowsAffected(); err != nil {
				return err
			}
		}
		if known == 0 {
			id := fmt.Sprintf("%s/%d", step.Order.UUID, i)
			if err := g.change(ctx, tx, 1, "INSERT INTO swords (id, player) VALUES (?, ?)", id, player); err != nil {
				return err
			}
		}
	}
	return nil
}

// tokenIDs returns the IDs of the tokens that the transaction of a step moved. There are
// none if a person abandoned the order.
func tokenIDs(step ramp.Step) (ids []string) {
	if step.Result == nil {
		return nil
	}
	token := step.Order.Intent.To[0].ID
	if step.Order.Direction == ramp.Burn {
		token = step.Order.Intent.From[0].ID
	}
	for _, t := range step.Result.Receipt.Transfers() {
		if t.Token == common.HexToAddress(token) && t.TokenID != nil {
			ids = append(ids, t.TokenID.String())
		}
	}
	return ids
}

// querier is a *sql.DB or *sql.Tx.
type querier interface {
	QueryContext(ctx context.Context, query string, arguments ...any) (*sql.Rows, error)
}

func (g *game) ids(ctx context.Context, from querier, query, argument string) (ids []string, err error) {
	rows, err := from.QueryContext(ctx, g.bind(query), argument)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// change runs a statement that must change n rows.
func (g *game) change(ctx context.Context, tx *sql.Tx, n int64, statement string, arguments ...any) error {
	done, err := tx.ExecContext(ctx, g.bind(statement), arguments...)
	if err != nil {
		return err
	}
	changed, err := done.RowsAffected()
	if err == nil && changed != n {
		err = fmt.Errorf("changed %d swords instead of %d", changed, n)
	}
	return err
}
