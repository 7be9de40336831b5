package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	ramp "github.com/token-ramp/ramp-go"
)

// starting lists the items that are counted, and how many of each a new player owns.
// Swords are kept in a table of their own.
var starting = []ramp.AssetAmount{
	{ID: "item_gold", Amount: ramp.NewAmount(1_000_000)},
	{ID: "item_gem", Amount: ramp.NewAmount(10_000)},
}

const (
	tokenLife = 24 * time.Hour
	maxAmount = 1_000_000_000_000_000 // of an item in one order
)

// game is the part that a studio writes: a [ramp.Players] on its own tables.
type game struct {
	db      *sql.DB
	dialect ramp.Dialect
}

// check returns an error unless the database answers and has the tables.
func (g *game) check(ctx context.Context, store *ramp.SQLStore) error {
	if err := store.Check(ctx); err != nil {
		return err
	}
	for _, table := range []string{"sessions", "inventory", "swords", "conflicts"} {
		rows, err := g.db.QueryContext(ctx, "SELECT 1 FROM "+table+" WHERE 1 = 0")
		if err != nil {
			return err
		}
		if err := rows.Close(); err != nil {
			return err
		}
	}
	return nil
}

// Authenticate compares the token with the hash that login stored for the session.
// An unknown session and a wrong token return the same error.
func (g *game) Authenticate(ctx context.Context, s ramp.Session) error {
	var stored string
	var expires int64
	err := g.db.QueryRowContext(ctx, g.bind("SELECT token_hash, expires_at FROM sessions WHERE id = ?"), s.ID).Scan(&stored, &expires)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if subtle.ConstantTimeCompare([]byte(stored), []byte(hash(s.Token.Reveal()))) != 1 || time.Now().Unix() >= expires {
		return ramp.Reject("INVALID_USER")
	}
	return nil
}

// Assets returns the items of the session's player.
func (g *game) Assets(ctx context.Context, s ramp.Session) (*ramp.Player, error) {
	rows, err := g.db.QueryContext(ctx, g.bind(`SELECT i.player, i.item, i.balance FROM inventory i
		JOIN sessions s ON s.player = i.player WHERE s.id = ? ORDER BY i.item`), s.ID)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var player ramp.Player
	for rows.Next() {
		var item string
		var balance int64
		if err := rows.Scan(&player.PlayerID, &item, &balance); err != nil {
			return nil, err
		}
		player.Name = player.PlayerID
		player.Assets = append(player.Assets, ramp.Asset{ID: item, Balance: ramp.NewAmount(balance)})
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, err
	}
	swords, err := g.countSwords(ctx, player.PlayerID)
	player.Assets = append(player.Assets, ramp.Asset{ID: itemSword, Balance: ramp.NewAmount(swords)})
	return &player, err
}

// Apply moves the items of one step of an order. It runs once for each step, in the
// transaction that records the step.
//
// The handler has checked that an order is for a product at its price. A larger game
// also checks here who may trade and how much per day. A rejected order leaves no row.
func (g *game) Apply(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
	if step.Order.State == ramp.OrderAccepted {
		if err := acceptable(step.Order); err != nil {
			return err
		}
	}
	var player string
	err := tx.QueryRowContext(ctx, g.bind("SELECT player FROM sessions WHERE id = ?"), step.Order.SessionID).Scan(&player)
	if err != nil {
		return fmt.Errorf("look up the player of the session: %w", err)
	}
	// Update the items in a fixed order, so that two orders of a player cannot
	// deadlock.
	items := slices.SortedFunc(slices.Values(step.Effect.Assets), func(a, b ramp.AssetAmount) int { return cmp.Compare(a.ID, b.ID) })
	if err := g.applySwords(ctx, tx, step, player); err != nil {
		return err
	}
	for _, item := range items {
		if item.ID == itemSword {
			continue
		}
		delta, err := step.Effect.Delta(item).Int64()
		if err != nil {
			return err
		}
		// The balance must neither become negative nor overflow the column.
		moved, err := tx.ExecContext(ctx, g.bind(
			"UPDATE inventory SET balance = balance + ? WHERE player = ? AND item = ? AND balance BETWEEN ? AND ?"),
			delta, player, item.ID, max(0, -delta), math.MaxInt64-max(0, delta))
		if err != nil {
			return err
		}
		switch n, err := moved.RowsAffected(); {
		case err != nil:
			return err
		case n == 1:
		case step.Effect.Kind == ramp.Take:
			return ramp.Reject("INVALID_BALANCE")
		default:
			return fmt.Errorf("cannot change how many %q player %s owns", item.ID, player)
		}
	}
	return nil
}

// acceptable rejects an order whose assets this game cannot store exactly or could
// not grant later.
func acceptable(o ramp.Order) error {
	for _, asset := range o.Assets {
		if !exists(asset.ID) && asset.ID != itemSword {
			return ramp.Reject("INVALID_ITEM")
		}
		if _, err := asset.Amount.Int(); err != nil { // items cannot be divided
			return ramp.Reject("INVALID_AMOUNT")
		}
		if asset.Amount.Cmp(ramp.NewAmount(maxAmount)) > 0 {
			if o.Direction == ramp.Mint {
				return ramp.Reject("INVALID_BALANCE")
			}
			return ramp.Reject("INVALID_AMOUNT")
		}
	}
	return nil
}

// exists reports whether the game has the item.
func exists(id string) bool {
	return slices.ContainsFunc(starting, func(known ramp.AssetAmount) bool { return known.ID == id })
}

var errPlayerName = errors.New("player must be 1 to 64 characters")

// login starts a session for a player, and creates the player if the name is unknown.
// Replace it before you deploy: it asks for no password, and every new player owns
// the starting items, which can be minted.
func (g *game) login(ctx context.Context, player string) (ramp.Session, error) {
	if n := len([]rune(player)); n == 0 || n > 64 || strings.ContainsRune(player, 0) || strings.TrimSpace(player) != player {
		return ramp.Session{}, errPlayerName
	}
	s := ramp.Session{ID: rand.Text(), Token: ramp.NewAccessToken(rand.Text())}
	tx, err := g.db.BeginTx(ctx, nil)
	if err != nil {
		return ramp.Session{}, err
	}
	defer func() { _ = tx.Rollback() }()
	insert := "INSERT INTO inventory (player, item, balance) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
	if g.dialect == ramp.MySQL {
		insert = "INSERT INTO inventory (player, item, balance) VALUES (?, ?, ?) ON DUPLICATE KEY UPDATE balance = inventory.balance"
	}
	if err := g.createSwords(ctx, tx, player); err != nil {
		return ramp.Session{}, err
	}
	for _, item := range starting {
		if _, err := tx.ExecContext(ctx, g.bind(insert), player, item.ID, item.Amount.String()); err != nil {
			return ramp.Session{}, err
		}
	}
	if _, err := tx.ExecContext(ctx, g.bind("INSERT INTO sessions (id, player, token_hash, expires_at) VALUES (?, ?, ?, ?)"),
		s.ID, player, hash(s.Token.Reveal()), time.Now().Add(tokenLife).Unix()); err != nil {
		return ramp.Session{}, err
	}
	return s, tx.Commit()
}

// hash returns the hash under which a token is stored. The token is random, so a
// hash without salt is enough: it cannot be reversed by guessing.
func hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// bind converts the placeholders of a statement to those of the database.
func (g *game) bind(statement string) string {
	if g.dialect != ramp.PostgreSQL {
		return statement
	}
	for n := 1; strings.Contains(statement, "?"); n++ {
		statement = strings.Replace(statement, "?", "$"+strconv.Itoa(n), 1)
	}
	return statement
}
