package dbtest

import (
	"context"
	"database/sql"
	"net/http"
	"testing"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/ramptest"
)

// An Apply that writes through the database handle instead of tx works until a
// transaction is rolled back. The emulator has the store roll back its first attempt at
// each step, so its books find it. SQLite needs no such test: its lock keeps the handle out.
func TestTheEmulatorFindsAnApplyOnTheDatabaseHandle(t *testing.T) {
	eachServer(t, func(t *testing.T, d database) {
		p := newPlace(t, d, d.modes[0])
		s := studio{db: p.db, dialect: p.dialect}
		onHandle := func(ctx context.Context, _ *sql.Tx, step ramp.Step) error {
			for _, a := range step.Effect.Assets {
				delta := must.Get(step.Effect.Delta(a).Int64())(t)
				check(t, s.move(ctx, p.db, step.Order.UUID, step.Order.SessionID, step.Effect.Kind, a.ID, delta))
			}
			return nil
		}
		for _, c := range []struct {
			name  string
			apply apply
			mint  bool
			gold  int64 // of a player with 1000, who mints with 100 or burns for 80
			found bool
		}{
			{"mint_on_tx", s.Apply, true, 900, false},
			{"burn_on_tx", s.Apply, false, 1080, false},
			{"mint_on_handle", onHandle, true, 800, true},
			{"burn_on_handle", onHandle, false, 1320, true}, // each of its two attempts, and their rehearsals
		} {
			t.Run(c.name, func(t *testing.T) {
				run(t, p.db, "INSERT INTO holdings (session_id, asset, amount) VALUES ('"+c.name+"', 'gold', 1000)")
				found := play(t, newHandler(t, s, newStore(t, p, c.apply)), c.name, c.mint)
				for _, f := range found {
					t.Log(f)
				}
				equal(t, "whether the books found an imbalance", (len(found) > 0), c.found)
				var gold int64
				check(t, p.db.QueryRow("SELECT amount FROM holdings WHERE session_id = '"+c.name+"'").Scan(&gold))
				equal(t, "gold of the player", gold, c.gold)
			})
		}
	})
}

// An Apply that commits by itself takes the gold of each mint and answers 500. A test must not
// stay green because the second attempt finds an order.
func TestTheEmulatorFindsAnApplyThatCommits(t *testing.T) {
	eachDatabase(t, func(t *testing.T, p *place) {
		s := studio{db: p.db, dialect: p.dialect}
		store := newStore(t, p, func(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
			if err := s.Apply(ctx, tx, step); err != nil {
				return err
			}
			return tx.Commit()
		})
		run(t, p.db, "INSERT INTO holdings (session_id, asset, amount) VALUES ('alice', 'gold', 1000)")
		_, err := tryToPlay(t, newHandler(t, s, store), "alice", true)
		expectText(t, err, "HTTP 500")
	})
}

// play plays one order of a player against a game, and returns what the books found.
func play(t *testing.T, game http.Handler, player string, mint bool) []*ramptest.Imbalance {
	t.Helper()
	return must.Get(tryToPlay(t, game, player, mint))(t)
}

// tryToPlay does what play does, or returns the error with which the game rejected the order.
func tryToPlay(t *testing.T, game http.Handler, player string, mint bool) ([]*ramptest.Imbalance, error) {
	t.Helper()
	key := must.Get(ramp.TextKey(hmacText))(t)
	signer := must.Get(ramp.NewKeySigner(validatorKey))(t)
	service := must.Get(ramptest.New(ramptest.Config{PerOrder: true, Key: key, Validator: signer.Address(),
		Handler: game, Audit: ramptest.AuditReport, Settle: -1}))(t)
	defer service.Close()
	client := must.Get(ramp.NewClient(ramp.ClientConfig{URL: service.URL(), Key: key, HTTPClient: service.Client()}))(t)
	session := ramp.Session{ID: player, Token: ramp.NewAccessToken("token of " + player)}
	item := func(amount int64) []ramp.Item {
		return []ramp.Item{{ID: "gold", Amount: ramp.NewAmount(amount), IconURL: "https://example.com/gold.png"}}
	}
	started := must.Get(client.Initialize(t.Context(), ramp.InitializeRequest{Intent: ramp.InitializeIntent{
		Network: ramp.Testnet, ProjectID: "project", Token: token, Materials: item(100), Outputs: item(80)}}))(t)
	order := service.Burn
	if mint {
		order = service.Mint
	}
	if _, err := order(t.Context(), started.UUID, session, ramp.NewAmount(1)); err != nil {
		return nil, err
	}
	service.Advance(time.Minute)
	return service.Imbalances(), nil
}
