// To make it yours: use the sessions of your game. Keep that a session outlives its token: a result may come
// hours later.

package main

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"encoding/hex"
	"errors"
	"time"

	ramp "github.com/token-ramp/ramp-go"
)

// loggedIn compares the token with the hash that login stored for the session.
// An unknown session and a wrong token return the same error.
func (g *game) loggedIn(ctx context.Context, s ramp.Session) error {
	var stored string
	var expires int64
	err := g.db.QueryRowContext(ctx, g.bind("SELECT token_hash, expires_at FROM sessions WHERE id = ?"),
		s.ID).Scan(&stored, &expires)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if subtle.ConstantTimeCompare([]byte(stored), []byte(hash(s.Token.Reveal()))) != 1 ||
		time.Now().Unix() >= expires {
		return ramp.Reject("INVALID_USER")
	}
	return nil
}

// ofSession is the player of a session, in a statement. A query of its own would cost a
// round trip while rows are locked.
const ofSession = "(SELECT player FROM sessions WHERE id = ?)"

// sessions returns the IDs of a player's sessions.
func (g *game) sessions(ctx context.Context, player string) ([]string, error) {
	return g.column(ctx, g.db, "SELECT id FROM sessions WHERE player = ?", player)
}

// hash returns the hash under which a token is stored. The token is random, so a
// hash without salt is enough: it cannot be reversed by guessing.
func hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
