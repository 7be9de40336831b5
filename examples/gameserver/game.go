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

// starting is what a new player owns, and all the items that there are.
var starting = []ramp.AssetAmount{
	{ID: "item_gold", Amount: ramp.NewAmount(1_000_000)},
	{ID: "item_gem", Amount: ramp.NewAmount(10_000)},
}

const (
	tokenLife = 24 * time.Hour
	most      = 1_000_000_000_000_000 // of an item in one order
)

// game is what a studio writes: a [ramp.Studio] on its own tables.
type game struct {
	db      *sql.DB
	dialect ramp.Dialect
	terms   terms
}

// check finds out whether the database answers and has the tables.
func (g *game) check(ctx context.Context, store *ramp.SQLStore) error {
	if err := store.Check(ctx); err != nil {
		return err
	}
	for _, table := range []string{"sessions", "inventory"} {
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

// Authenticate compares the token with the hash that the login of this session
// stored. A session that nobody knows and a token that is wrong look the same.
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

// Assets lists what the player of a session owns.
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
	return &player, rows.Err()
}

// Apply moves the items of one step of an order. It runs in the transaction
// that records the step, and once for each.
//
// Rules apply where an order is accepted: here the terms, and in a larger game
// also who may trade and how much a day. A declined order leaves no row, and a
// repeat does not come here, so new terms cannot break an order that is paid.
func (g *game) Apply(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
	if step.Order.State == ramp.OrderAccepted {
		if err := g.terms.check(step.Order); err != nil {
			return err
		}
		if err := acceptable(step.Order); err != nil {
			return err
		}
	}
	var player string
	err := tx.QueryRowContext(ctx, g.bind("SELECT player FROM sessions WHERE id = ?"), step.Order.SessionID).Scan(&player)
	if err != nil {
		return fmt.Errorf("the player of the session: %w", err)
	}
	// Always in the same order, so that two orders of a player never wait for
	// each other.
	items := slices.SortedFunc(slices.Values(step.Effect.Assets), func(a, b ramp.AssetAmount) int { return cmp.Compare(a.ID, b.ID) })
	for _, item := range items {
		delta, err := step.Effect.Delta(item).Int64()
		if err != nil {
			return err
		}
		// Neither below zero nor beyond what the column holds exactly.
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
			return fmt.Errorf("%s cannot own %q", player, item.ID)
		}
	}
	return nil
}

// acceptable declines what this game could not keep exactly, or not grant later.
func acceptable(o ramp.Order) error {
	for _, asset := range o.Assets {
		if !exists(asset.ID) {
			return ramp.Reject("INVALID_ITEM")
		}
		if _, err := asset.Amount.Int(); err != nil { // items are whole
			return ramp.Reject("INVALID_AMOUNT")
		}
		if asset.Amount.Cmp(ramp.NewAmount(most)) > 0 {
			if o.Direction == ramp.Mint {
				return ramp.Reject("INVALID_BALANCE")
			}
			return ramp.Reject("INVALID_AMOUNT")
		}
	}
	return nil
}

// exists reports whether the game has an item.
func exists(id string) bool {
	return slices.ContainsFunc(starting, func(known ramp.AssetAmount) bool { return known.ID == id })
}

var errPlayerName = errors.New("player must be 1 to 64 characters")

// login starts a session for a player, who is new if nobody has the name. Replace
// it before you deploy: it asks for no password, and every new name owns the
// starting items, which can be minted.
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

// hash is what is stored of a token. The token is random, so a plain hash of it
// cannot be searched through.
func hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// bind writes placeholders as the database wants them.
func (g *game) bind(statement string) string {
	if g.dialect != ramp.PostgreSQL {
		return statement
	}
	for n := 1; strings.Contains(statement, "?"); n++ {
		statement = strings.Replace(statement, "?", "$"+strconv.Itoa(n), 1)
	}
	return statement
}
