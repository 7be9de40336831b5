// Nakama is a Go plugin for Nakama that connects its wallets to the token ramp. A session
// of the ramp is a user of Nakama. Copy the folder; README.md says how to build and run it.
package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"strconv"

	"github.com/google/uuid"
	"github.com/heroiclabs/nakama-common/runtime"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/rampsql"
)

// offer is what the game sells: a token costs 10 gold, and is worth 10.
var offer = ramp.TermsConfig{ProjectID: "project-1", Network: ramp.Testnet, Products: []ramp.Product{{
	Name: "gold", Token: "0x00000000000000000000000000000000000070c3",
	Materials: []ramp.Item{{ID: "gold", Amount: ramp.NewAmount(10), IconURL: "https://example.com/gold.png"}},
	Outputs:   []ramp.Item{{ID: "gold", Amount: ramp.NewAmount(10), IconURL: "https://example.com/gold.png"}},
}}}

// schema has the tokens of the exchange pages. Those of Nakama live for 60 seconds by
// default, and a page for 5 minutes. Nakama has no migrations for modules, so each node
// creates the tables when it starts.
const schema = `CREATE TABLE IF NOT EXISTS ramp_tokens (
	hash       bytea       PRIMARY KEY,
	user_id    uuid        NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	expires_at timestamptz NOT NULL DEFAULT now() + interval '15 minutes'
);`

// InitModule is called by Nakama. The environment is runtime.env of its configuration.
func InitModule(ctx context.Context, _ runtime.Logger, db *sql.DB, _ runtime.NakamaModule,
	nakama runtime.Initializer) error {
	env, _ := ctx.Value(runtime.RUNTIME_CTX_ENV).(map[string]string)
	if _, err := db.ExecContext(ctx, rampsql.PostgreSQL.Schema()+schema); err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	key, err := ramp.TextKey(env["RAMP_HMAC_KEY"])
	signer, err2 := ramp.NewKeySigner(env["RAMP_VALIDATOR_KEY"])
	terms, err3 := ramp.NewTerms(offer)
	store, err4 := rampsql.New(rampsql.Config{DB: db, Dialect: rampsql.PostgreSQL, Apply: apply,
		Projects: []string{offer.ProjectID}, Network: offer.Network})
	if err := errors.Join(err, err2, err3, err4); err != nil {
		return err
	}
	config := ramp.HandlerConfig{Players: players{db}, Store: store, Terms: terms, Key: key, Signer: signer,
		Logger: log}
	if url := env["RAMP_RPC_URL"]; url != "" {
		id, err := strconv.ParseUint(env["RAMP_CHAIN_ID"], 10, 64)
		chain, err2 := ramp.NewRPC(ramp.RPCConfig{URL: url, ChainID: id, Logger: log})
		if errors.Join(err, err2) != nil {
			return errors.Join(err, err2)
		}
		config.Confirm = rampproof.Confirmed(chain, 1)
	}
	handler, err := ramp.NewHandler(config)
	client, err2 := ramp.NewClient(ramp.ClientConfig{URL: env["RAMP_API_URL"], Key: key, Terms: terms,
		Logger: log})
	start := func(ctx context.Context, _ runtime.Logger, db *sql.DB, _ runtime.NakamaModule,
		payload string) (string, error) {
		return exchange(ctx, db, client, env["RAMP_FRONTEND_URL"], payload)
	}
	if err := errors.Join(err, err2, store.Check(ctx, offer.Network)); err != nil {
		return err
	}
	return errors.Join(
		nakama.RegisterHttp("/ramp/assets", handler.Assets),
		nakama.RegisterHttp("/ramp/validate", handler.Validate),
		nakama.RegisterHttp("/ramp/result", handler.Result), nakama.RegisterRpc("ramp_exchange", start))
}

// exchange is the RPC that starts an order for {"product":"gold"}, and returns the URL of the
// page for the player's webview. The URL contains the access token: do not log it.
func exchange(ctx context.Context, db *sql.DB, client *ramp.Client, frontend,
	payload string) (string, error) {
	user, _ := ctx.Value(runtime.RUNTIME_CTX_USER_ID).(string)
	var wanted struct{ Product string }
	if user == "" || json.Unmarshal([]byte(payload), &wanted) != nil {
		return "", runtime.NewError("log in, and send a product", 3)
	}
	started, err := client.Initialize(ctx, ramp.InitializeRequest{Product: wanted.Product})
	if err != nil {
		return "", runtime.NewError("the ramp is unavailable", 14) // the client has logged why
	}
	token := rand.Text()
	hash := sha256.Sum256([]byte(token))
	_, err = db.ExecContext(ctx,
		`WITH expired AS (DELETE FROM ramp_tokens WHERE user_id = $2 AND expires_at < now())
		INSERT INTO ramp_tokens (hash, user_id) VALUES ($1, $2)`, hash[:], user)
	page, err2 := started.ExchangeURL(frontend, ramp.Session{ID: user, Token: ramp.NewAccessToken(token)})
	answer, err3 := json.Marshal(map[string]string{"url": page})
	return string(answer), errors.Join(err, err2, err3)
}

type players struct{ db *sql.DB }

// Authenticate rejects a user whom Nakama has banned meanwhile, too: the page of an order lives
// longer than a session of Nakama.
func (p players) Authenticate(ctx context.Context, s ramp.Session) error {
	hash := sha256.Sum256([]byte(s.Token.Reveal()))
	var known bool
	err := p.db.QueryRowContext(ctx,
		`SELECT EXISTS (SELECT 1 FROM ramp_tokens t JOIN users u ON u.id = t.user_id
		WHERE t.hash = $1 AND u.id::text = $2 AND t.expires_at > now()
			AND extract(epoch FROM u.disable_time) = 0)`,
		hash[:], s.ID).Scan(&known)
	if err == nil && !known {
		err = ramp.Reject("INVALID_USER")
	}
	return err
}

// Assets shows a debt as 0: a balance must not be negative.
func (p players) Assets(ctx context.Context, s ramp.Session) (*ramp.Player, error) {
	var gold int64
	err := p.db.QueryRowContext(ctx,
		"SELECT greatest(0, coalesce((wallet->>'gold')::bigint, 0)) FROM users WHERE id = $1",
		s.ID).Scan(&gold)
	return &ramp.Player{PlayerID: s.ID,
		Assets: []ramp.Asset{{ID: "gold", Balance: ramp.NewAmount(gold)}}}, err
}

// apply moves a wallet as Nakama does: it locks the user, changes the whole wallet, and
// writes a row of the ledger. A mint may be rejected. A grant or a give-back never fails
// while the user exists, also if the wallet is negative.
func apply(ctx context.Context, tx *sql.Tx, step ramp.Step) error {
	var text []byte
	wallet, changes := map[string]int64{}, map[string]int64{}
	err := tx.QueryRowContext(ctx, "SELECT wallet FROM users WHERE id = $1 FOR UPDATE",
		step.Order.SessionID).Scan(&text)
	if err = errors.Join(err, json.Unmarshal(text, &wallet)); err != nil {
		return err
	}
	for _, asset := range step.Order.Assets { // also of a burn, whose effect is nothing until it succeeds
		if n, err := asset.Amount.Int64(); step.Order.State == ramp.OrderAccepted &&
			(err != nil || n > 1e15) { // so that a wallet does not overflow
			return ramp.Reject("INVALID_AMOUNT")
		}
	}
	for _, asset := range step.Effect.Assets {
		delta, err := step.Effect.Delta(asset).Int64()
		if err != nil {
			return err
		}
		changes[asset.ID] += delta
		wallet[asset.ID] += delta
		if step.Effect.Kind == ramp.Take && wallet[asset.ID] < 0 {
			return ramp.Reject("INVALID_BALANCE")
		}
	}
	if len(changes) == 0 {
		return nil
	}
	after, _ := json.Marshal(wallet) // maps of numbers cannot fail
	changed, _ := json.Marshal(changes)
	if _, err = tx.ExecContext(ctx, "UPDATE users SET update_time = now(), wallet = $2 WHERE id = $1",
		step.Order.SessionID, string(after)); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx,
		"INSERT INTO wallet_ledger (id, user_id, changeset, metadata) VALUES ($1, $2, $3, "+
			"jsonb_build_object('ramp_order', $4::text))",
		uuid.New(), step.Order.SessionID, string(changed), step.Order.UUID.String())
	return err
}

func main() {} // for go test
