// To make it yours: replace all of it. Take the players, sessions, items and prices of your game. Keep
// what the comment of Apply promises, and replace login, which asks for no password.

package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampsql"
)

// The items. Gold and gems are counted, and swords are kept in a table of their own.
const (
	itemGold  = "item_gold"
	itemGem   = "item_gem"
	itemSword = "item_sword"
)

// starting is how many of each counted item a new player owns.
var starting = map[string]int64{itemGold: 1_000_000, itemGem: 10_000}

const (
	tokenLife = 24 * time.Hour
	maxAmount = 1_000_000_000_000_000 // of an item in one order
)

// terms are what this game sells.
func (s *settings) terms() (*ramp.Terms, error) {
	return ramp.NewTerms(ramp.TermsConfig{ProjectID: s.project, Network: s.network, Products: s.products(),
		Any: s.anyRate})
}

// products are what this game sells, each for one token. A player chooses only a product,
// by its name, and the number of tokens: a player who could choose the token would burn a
// worthless one.
func (s *settings) products() []ramp.Product {
	if s.token == (common.Address{}) {
		return nil
	}
	product := func(name string, token common.Address, feeBps int, items ...ramp.Item) ramp.Product {
		return ramp.Product{Name: name, Token: token.Hex(), MintFeeBps: feeBps, Materials: items,
			Outputs: items}
	}
	item := func(id string, amount int64) ramp.Item {
		return ramp.Item{ID: id, Amount: ramp.NewAmount(amount),
			IconURL: "https://example.com/icons/" + id + ".png", IsNonFungible: id == itemSword}
	}
	list := []ramp.Product{
		product("gold", s.token, 100, item(itemGold, 100), item(itemGem, 1)),
		product("gems", s.token, 100, item(itemGem, 10)),
	}
	if s.swordToken != (common.Address{}) {
		list = append(list, product("sword", s.swordToken, 0, item(itemSword, 1)))
	}
	return list
}

// policy rejects an order for a token that is not sold. Only -any-rate needs it, because
// otherwise the terms do.
func (s *settings) policy(_ context.Context, _ ramp.Session, r *ramp.ValidateRequest) error {
	for _, asset := range slices.Concat(r.Intent.From, r.Intent.To) {
		if token := common.HexToAddress(asset.ID); asset.Type != ramp.TypeAsset && token != s.token &&
			token != s.swordToken {
			return &ramp.Rejection{Code: ramp.CodeInvalidMessage,
				Err: errors.New("the order is not for a token of this game: see -token")}
		}
	}
	return nil
}

// game is the part that a studio writes: a [ramp.Players] on its own tables.
type game struct {
	db      *sql.DB
	dialect rampsql.Dialect
	anyPage bool     // calls may have the login's token, and any UUID
	purse   int64    // how many of each counted item a player can own; more waits in the mailbox
	caps    caps     // of what becomes tokens
	bound   sync.Map // of statements, what bind returned
}

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

// bindWallet lets a wallet belong to the player who names it first, unless the shop is
// closed, which costs no round trip here. A player may have
// several. Whoever has the HMAC key could otherwise name the wallet of another player, and
// be paid for what that player burns. To free a wallet, first end the orders of its player
// that wait for it (gameserver orders), then delete its row. In a game with several
// characters for each account, bind it to the account.
func (g *game) bindWallet(ctx context.Context, s ramp.Session, wallet common.Address) error {
	key := hexutil.Encode(wallet[:]) // in lower case, without the checksum of wallet.Hex
	var player, owner, closed string
	read := func() error {
		return g.db.QueryRowContext(ctx,
			g.bind(`SELECT s.player, COALESCE(w.player, ''), COALESCE(c.closed, '') FROM sessions s
			LEFT JOIN wallets w ON w.wallet = ? LEFT JOIN shop c ON c.closed <> '' WHERE s.id = ?`),
			key, s.ID).Scan(&player, &owner, &closed)
	}
	err := read()
	if err == nil && closed != "" {
		err = g.checkOpen(ctx)
	}
	if err == nil && owner == "" {
		err = errors.Join(g.insertNew(ctx, g.db, "wallets", "wallet, player", key, player), read())
	}
	if err == nil && owner != player {
		err = ramp.Reject("INVALID_USER")
	}
	return err
}

// ownsWallet reports whether a wallet belongs to the player of a session. It binds none.
func (g *game) ownsWallet(ctx context.Context, session string, wallet common.Address) (bool, error) {
	const ofSession = "SELECT w.wallet FROM wallets w JOIN sessions s ON s.player = w.player WHERE s.id = ?"
	wallets, err := g.column(ctx, g.db, ofSession, session)
	return slices.Contains(wallets, hexutil.Encode(wallet[:])), err
}

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

// ofSession is the player of a session, in a statement. A query of its own would cost a
// round trip while rows are locked.
const ofSession = "(SELECT player FROM sessions WHERE id = ?)"

// Apply moves the items of one step of an order. It runs once for each step, in the
// transaction that records the step. A mint may be rejected. A grant or a give-back never
// fails: see mailbox.go.
//
// The handler has checked that an order is for a product at its price. countMoved checks how much
// leaves the game. A larger game also checks here who may trade. A rejected order leaves no row.
func (g *game) Apply(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
	if step.Order.State == ramp.OrderAccepted {
		if err := acceptable(step.Order); err != nil {
			return err
		}
	}
	if err := g.applySwords(ctx, tx, step); err != nil {
		return err
	}
	for _, item := range step.Effect.Assets { // sorted, so that two orders of a player cannot deadlock
		if item.ID == itemSword {
			continue
		}
		amount, err := item.Amount.Int64()
		switch {
		case err != nil:
			return ramp.Reject("INVALID_AMOUNT") // an item cannot be divided
		case step.Effect.Kind == ramp.Take:
			err = g.take(ctx, tx, step.Order.SessionID, item.ID, amount)
		default:
			err = g.give(ctx, tx, step.Order, item.ID, amount)
		}
		if err != nil {
			return fmt.Errorf("change how many %q the player of session %s owns: %w", item.ID,
				step.Order.SessionID, err)
		}
	}
	if step.Order.State == ramp.OrderAccepted {
		return g.countMoved(ctx, tx, step.Order)
	}
	return nil
}

// take takes items from the player of a session, who must own them.
func (g *game) take(ctx context.Context, tx *sql.Tx, session, item string, amount int64) error {
	err := g.change(ctx, tx, 1, "UPDATE inventory SET balance = balance - ? WHERE player = "+ofSession+
		" AND item = ? AND balance >= ?", amount, session, item, amount)
	if errors.Is(err, errRows) {
		err = ramp.Reject("INVALID_BALANCE")
	}
	return err
}

// acceptable rejects an order whose assets this game cannot store exactly.
func acceptable(o ramp.Order) error {
	for _, asset := range o.Assets {
		n, err := asset.Amount.Int64() // items cannot be divided
		switch {
		case starting[asset.ID] == 0 && asset.ID != itemSword:
			return ramp.Reject("INVALID_ITEM")
		case err != nil || n > maxAmount:
			return ramp.Reject("INVALID_AMOUNT")
		}
	}
	return nil
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
