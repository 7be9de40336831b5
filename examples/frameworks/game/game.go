// Package game is what the servers on the three frameworks have in common: a game that sells gold, on SQLite.
// It has no router: each of ../nethttp, ../gin and ../fiber mounts Server.Handler and one route of the game.
package game

import (
	"context"
	"crypto/sha256"
	"database/sql"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampsql"
	_ "modernc.org/sqlite"
)

// Products are what the game sells: a token costs 100 gold, and is worth 100.
var Products = []ramp.Product{{
	Name: "gold", Token: "0x00000000000000000000000000000000000070c3",
	Materials: gold, Outputs: gold,
}}

var gold = []ramp.Item{
	{ID: "item_gold", Amount: ramp.NewAmount(100), IconURL: "https://example.com/gold.png"},
}

const table = `CREATE TABLE IF NOT EXISTS characters (
	session    TEXT    PRIMARY KEY,
	token_hash BLOB    NOT NULL DEFAULT '', -- of a character that is gone, which no token has
	gold       INTEGER NOT NULL CHECK (typeof(gold) = 'integer') -- SQLite would store a float beyond 2^63
)`

// Game authenticates players, lists what they own and moves it. A session is a character.
type Game struct{ db *sql.DB }

// Open opens the database and creates its tables, which a real game does in its migrations.
func Open(ctx context.Context, file string) (*sql.DB, error) {
	db, err := sql.Open("sqlite",
		"file:"+file+"?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(ctx, rampsql.SQLite.Schema()+";"+table)
	return db, err
}

// Authenticate compares the hash of the token with the one that was stored at login.
func (g *Game) Authenticate(ctx context.Context, s ramp.Session) error {
	hash := sha256.Sum256([]byte(s.Token.Reveal()))
	var known bool
	err := g.db.QueryRowContext(ctx,
		"SELECT EXISTS (SELECT 1 FROM characters WHERE session = $1 AND token_hash = $2)",
		s.ID, hash[:]).Scan(&known)
	if err == nil && !known {
		err = ramp.Reject("INVALID_USER")
	}
	return err
}

// Assets returns the player's balances, under the IDs of the service console.
func (g *Game) Assets(ctx context.Context, s ramp.Session) (*ramp.Player, error) {
	var gold int64
	err := g.db.QueryRowContext(ctx, "SELECT gold FROM characters WHERE session = $1", s.ID).Scan(&gold)
	return &ramp.Player{Assets: []ramp.Asset{{ID: "item_gold", Balance: ramp.NewAmount(gold)}}}, err
}

// Apply moves the assets of a step in the transaction that records the order. A mint may be
// refused. A grant or a give-back never fails: it reduces a debt, and creates a missing row.
func (g *Game) Apply(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
	for _, asset := range step.Effect.Assets { // one, because the only product has one item
		delta, err := step.Effect.Delta(asset).Int64()
		if err != nil {
			return ramp.Reject("INVALID_AMOUNT") // gold cannot be divided
		}
		change := `INSERT INTO characters (gold, session) VALUES ($1, $2)
			ON CONFLICT (session) DO UPDATE SET gold = characters.gold + excluded.gold`
		if step.Effect.Kind == ramp.Take {
			change = "UPDATE characters SET gold = gold + $1 WHERE session = $2 AND gold + $1 >= 0"
		}
		done, err := tx.ExecContext(ctx, change, delta, step.Order.SessionID)
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil {
			return err
		} else if n == 0 { // only a mint: too little gold, or no such character
			return ramp.Reject("INVALID_BALANCE")
		}
	}
	return nil
}
