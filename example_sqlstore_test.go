package ramp_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"log"

	ramp "github.com/token-ramp/ramp-go"
)

const tokenContract = "0x00000000000000000000000000000000000070c3"

// A token costs 100 gold and is worth 80.
var products = []ramp.Product{{Name: "gold", Intent: ramp.InitializeIntent{
	Network: ramp.Testnet, ProjectID: "project-1", Token: tokenContract, MintFeeBps: 100, // 1%
	Materials: []ramp.Item{{ID: "item_gold", Amount: ramp.NewAmount(100), IconURL: "https://example.com/gold.png"}},
	Outputs:   []ramp.Item{{ID: "item_gold", Amount: ramp.NewAmount(80), IconURL: "https://example.com/gold.png"}},
}}}

// SQLStudio is the whole of an integration on SQL: who is this, what do they
// hold, and move it.
type SQLStudio struct{ db *sql.DB }

func (g *SQLStudio) Authenticate(ctx context.Context, s ramp.Session) error {
	hash := sha256.Sum256([]byte(s.Token.Reveal()))
	var known bool
	err := g.db.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM sessions WHERE id = $1 AND token_hash = $2)",
		s.ID, hash[:]).Scan(&known)
	if err == nil && !known {
		err = ramp.Reject("INVALID_USER")
	}
	return err
}

func (g *SQLStudio) Assets(ctx context.Context, s ramp.Session) (*ramp.Player, error) {
	var gold int64
	err := g.db.QueryRowContext(ctx, "SELECT gold FROM characters WHERE id = $1", s.ID).Scan(&gold)
	return &ramp.Player{Assets: []ramp.Asset{{ID: "item_gold", Balance: ramp.NewAmount(gold)}}}, err
}

func (g *SQLStudio) Apply(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
	for _, asset := range step.Effect.Assets { // one transaction: all of it or nothing
		delta, err := step.Effect.Delta(asset).Int64()
		if err != nil {
			return err
		}
		done, err := tx.ExecContext(ctx, "UPDATE characters SET gold = gold + $1 WHERE id = $2 AND gold + $1 >= 0",
			delta, step.Order.SessionID)
		if err != nil {
			return err
		}
		switch n, err := done.RowsAffected(); {
		case err != nil:
			return err
		case n == 1:
		case step.Effect.Kind == ramp.Take:
			return ramp.Reject("INVALID_BALANCE")
		default:
			return errors.New("the character is gone")
		}
	}
	return nil
}

// A studio on PostgreSQL, whose characters have gold.
func ExampleNewSQLStore() {
	var (
		db     *sql.DB      // yours, with the table of ramp.PostgreSQL.Schema
		key    ramp.HMACKey // as for any game
		signer *ramp.Signer
	)
	studio := &SQLStudio{db}
	store, err := ramp.NewSQLStore(ramp.SQLStoreConfig{DB: db, Dialect: ramp.PostgreSQL, Apply: studio.Apply})
	if err != nil {
		log.Fatal(err)
	}
	terms, err := ramp.NewTerms(ramp.TermsConfig{Products: products})
	if err != nil {
		log.Fatal(err)
	}
	handler, err := ramp.NewHandler(ramp.HandlerConfig{Players: studio, Store: store, Terms: terms, Key: key, Signer: signer})
	if err != nil {
		log.Fatal(err)
	}
	_ = handler // mount it
}
