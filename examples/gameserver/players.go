// To make it yours: replace all of it by the players of your game. login asks for no password.

package main

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"
	"time"

	ramp "github.com/token-ramp/ramp-go"
)

const tokenLife = 24 * time.Hour

// Assets returns the items of the session's player. A debt is shown as 0, because a balance
// must not be negative.
func (g *game) Assets(ctx context.Context, s ramp.Session) (*ramp.Player, error) {
	rows, err := g.db.QueryContext(ctx,
		g.bind(
			`SELECT s.player, i.item, CASE WHEN i.balance > 0 THEN i.balance ELSE 0 END FROM sessions s
			JOIN inventory i ON i.player = s.player WHERE s.id = ?
		UNION ALL SELECT s.player, '`+itemSword+`', COUNT(w.id) FROM sessions s
			LEFT JOIN swords w ON w.player = s.player AND w.order_id = '' WHERE s.id = ?
			GROUP BY s.player ORDER BY 2`), s.ID, s.ID)
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

// login starts a session for a player, and creates the player if the name is unknown.
// Replace it before you deploy: it asks for no password, and every new player owns
// the starting items, which can be minted.
func (g *game) login(ctx context.Context, player string) (ramp.Session, error) {
	if n := len([]rune(player)); n == 0 || n > 64 || strings.ContainsRune(player, 0) ||
		strings.TrimSpace(player) != player {
		return ramp.Session{},
			&failure{status: http.StatusBadRequest, text: "player must be 1 to 64 characters"}
	}
	s := ramp.Session{ID: rand.Text(), Token: ramp.NewAccessToken(rand.Text())}
	tx, err := g.db.BeginTx(ctx, nil)
	if err != nil {
		return ramp.Session{}, err
	}
	defer func() { _ = tx.Rollback() }()
	if err := g.createSwords(ctx, tx, player); err != nil {
		return ramp.Session{}, err
	}
	for _, item := range []string{itemGem, itemGold} { // in the order of Apply, so that they cannot deadlock
		if err := g.insertNew(ctx, tx, "inventory", "player, item, balance", player, item,
			starting[item]); err != nil {
			return ramp.Session{}, err
		}
	}
	if err := g.insertNew(ctx, tx, "sessions", "id, player, token_hash, expires_at", s.ID, player,
		hash(s.Token.Reveal()), time.Now().Add(tokenLife).Unix()); err != nil {
		return ramp.Session{}, err
	}
	return s, tx.Commit()
}
