package rampsql_test

import (
	"context"
	"crypto/sha256"
	"database/sql"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampsql"
)

const tokenContract = "0x00000000000000000000000000000000000070c3"

// A token costs 100 gold and is worth 80.
var products = []ramp.Product{{
	Name: "gold", Token: tokenContract, MintFeeBps: 100, // 1%
	Materials: []ramp.Item{{ID: "item_gold", Amount: ramp.NewAmount(100), IconURL: "https://example.com/gold.png"}},
	Outputs:   []ramp.Item{{ID: "item_gold", Amount: ramp.NewAmount(80), IconURL: "https://example.com/gold.png"}},
}}

// SQLGame is the whole of an integration on SQL: who is this, what do they own, and
// move it.
type SQLGame struct{ db *sql.DB }

func (g *SQLGame) Authenticate(ctx context.Context, s ramp.Session) error {
	hash := sha256.Sum256([]byte(s.Token.Reveal()))
	var known bool
	err := g.db.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM sessions WHERE id = $1 AND token_hash = $2)",
		s.ID, hash[:]).Scan(&known)
	if err == nil && !known {
		err = ramp.Reject("INVALID_USER")
	}
	return err
}

func (g *SQLGame) Assets(ctx context.Context, s ramp.Session) (*ramp.Player, error) {
	var gold int64
	err := g.db.QueryRowContext(ctx, "SELECT gold FROM characters WHERE id = $1", s.ID).Scan(&gold)
	return &ramp.Player{Assets: []ramp.Asset{{ID: "item_gold", Balance: ramp.NewAmount(gold)}}}, err
}

// Apply may refuse a mint. A grant or a give-back never fails: it reduces a debt, and
// creates a missing row.
func (g *SQLGame) Apply(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
	for _, asset := range step.Effect.Assets { // one, because the only product has one item
		delta, err := step.Effect.Delta(asset).Int64()
		if err != nil {
			return ramp.Reject("INVALID_AMOUNT") // gold cannot be divided
		}
		change := `INSERT INTO characters (gold, id) VALUES ($1, $2)
			ON CONFLICT (id) DO UPDATE SET gold = characters.gold + excluded.gold`
		if step.Effect.Kind == ramp.Take {
			change = "UPDATE characters SET gold = gold + $1 WHERE id = $2 AND gold + $1 >= 0"
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

// A game on PostgreSQL, whose characters have gold.
func ExampleNew() {
	var (
		db     *sql.DB      // yours, with the table of rampsql.PostgreSQL.Schema
		key    ramp.HMACKey // as for any game
		signer *ramp.Signer
	)
	game := &SQLGame{db}
	store := ramp.Must(rampsql.New(rampsql.Config{DB: db, Dialect: rampsql.PostgreSQL, Apply: game.Apply,
		Projects: []string{"project-1"}, Network: ramp.Testnet}))
	terms := ramp.Must(ramp.NewTerms(ramp.TermsConfig{
		ProjectID: "project-1", Network: ramp.Testnet, Products: products,
	}))
	handler := ramp.Must(ramp.NewHandler(ramp.HandlerConfig{
		Players: game, Store: store, Terms: terms, Key: key, Signer: signer,
	}))
	_ = handler // mount it
}
