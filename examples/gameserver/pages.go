// To make it yours: change nothing, or where your game keeps what opens a page.

// This file is a piece to copy, with its table: each page has a token of its own. The address of a page
// lands in histories, crash reports and screenshots. Whoever finds one has a token that opens one order
// of one player, and not the token with which the player's game is logged in.

package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

const (
	// pageLife is longer than the 5 minutes of a UUID: the page goes on asking for assets, and its
	// validate call may be repeated.
	pageLife = time.Hour

	// A player may open maxPages in pageTime. The service limits initialize calls, too, but its limit
	// is one for all players. A few more that are opened at once may pass.
	maxPages = 20
	pageTime = time.Minute
)

// pagesSchema creates the table of the pages. The command migrate deletes those that have expired.
const pagesSchema = `
CREATE TABLE IF NOT EXISTS pages (
    token_hash VARCHAR(64) NOT NULL PRIMARY KEY,
    session_id VARCHAR(64) NOT NULL,
    player     VARCHAR(64) NOT NULL,
    order_uuid VARCHAR(36) NOT NULL DEFAULT '', -- the only order; a page without one shows assets
    opened_at  BIGINT      NOT NULL,
    expires_at BIGINT      NOT NULL,
    UNIQUE (player, opened_at, token_hash) -- for counting
);
`

// openPage makes the token of a page for a session that is logged in. It shows assets only, until
// startOrder binds it to an order.
func (g *game) openPage(ctx context.Context, session string) (page ramp.Session, err error) {
	now, opened := time.Now(), 0
	const count = "SELECT COUNT(*) FROM pages WHERE player = " + ofSession + " AND opened_at > ?"
	err = g.db.QueryRowContext(ctx, g.bind(count), session, now.Add(-pageTime).Unix()).Scan(&opened)
	if err == nil && opened >= maxPages {
		err = &failure{status: http.StatusTooManyRequests, text: "too many pages: wait for a minute"}
	}
	if err != nil {
		return page, err
	}
	page = ramp.Session{ID: session, Token: ramp.NewAccessToken(rand.Text())}
	err = g.change(ctx, g.db, 1, "INSERT INTO pages (token_hash, session_id, player, opened_at, expires_at) "+
		"SELECT ?, id, player, ?, ? FROM sessions WHERE id = ?",
		hash(page.Token.Reveal()), now.Unix(), now.Add(pageLife).Unix(), session)
	return page, err
}

// startOrder binds a page to an order, once.
func (g *game) startOrder(ctx context.Context, page ramp.Session, id uuid.UUID) error {
	return g.change(ctx, g.db, 1, "UPDATE pages SET order_uuid = ? WHERE token_hash = ? AND order_uuid = ''",
		id.String(), hash(page.Token.Reveal()))
}

// pageOf returns the order of the page of a call, or "" if it shows assets only. The session must be
// the page's own. The rejection is the same for an unknown token, an expired one, and that of another
// session.
func (g *game) pageOf(ctx context.Context, s ramp.Session) (order string, err error) {
	var session string
	var expires int64
	const page = "SELECT session_id, order_uuid, expires_at FROM pages WHERE token_hash = ?"
	err = g.db.QueryRowContext(ctx, g.bind(page), hash(s.Token.Reveal())).Scan(&session, &order, &expires)
	switch {
	case errors.Is(err, sql.ErrNoRows), err == nil && (session != s.ID || time.Now().Unix() >= expires):
		return "", ramp.Reject("INVALID_USER")
	default:
		return order, err
	}
}

// Authenticate accepts the token of a page for the session that opened it. The token of the login opens
// no page.
func (g *game) Authenticate(ctx context.Context, s ramp.Session) error {
	if g.anyPage && g.loggedIn(ctx, s) == nil {
		return nil
	}
	_, err := g.pageOf(ctx, s)
	return err
}

// checkPage rejects a validate call for another order than that of its page.
func (g *game) checkPage(ctx context.Context, s ramp.Session, r *ramp.ValidateRequest) error {
	if g.anyPage {
		return nil
	}
	order, err := g.pageOf(ctx, s)
	if err == nil && order != r.UUID.String() {
		cause := errors.New("the page was opened for another order, or for none")
		err = &ramp.Rejection{Code: "INVALID_USER", Err: cause}
	}
	return err
}
