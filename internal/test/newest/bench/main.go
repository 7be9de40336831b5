// Command bench is the server that a careful studio writes without the SDK: the statements
// of examples/gameserver, word for word, encoding/json, and one log record for each call. It
// reads the tables of gameserver, and answers only the calls of TestLoad. The tests of this
// module compare what both cost.
package main

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	_ "github.com/jackc/pgx/v5/stdlib"
)

type asset struct {
	Type   string      `json:"type"`
	ID     string      `json:"id"`
	Amount json.Number `json:"amount"` // of tokens, which may not fit into a float64
}

type intent struct {
	Method string  `json:"method"`
	Type   string  `json:"type"`
	From   []asset `json:"from"`
	To     []asset `json:"to"`
}

type receipt struct {
	Status string `json:"status"`
}

type call struct {
	SessionID   string  `json:"session_id"`
	UserSig     string  `json:"user_sig"`
	UserAddress string  `json:"user_address"`
	ProjectID   string  `json:"project_id"`
	Digest      string  `json:"digest"`
	UUID        string  `json:"uuid"`
	TxHash      string  `json:"tx_hash"`
	Receipt     receipt `json:"receipt"`
	Intent      intent  `json:"intent"`
}

var errRejected = errors.New("rejected")

// readSigned limits and reads a body, verifies its HMAC, and decodes it.
func readSigned(w http.ResponseWriter, r *http.Request, secret []byte, into any) error {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		return err
	}
	if err := verify(secret, body, r.Header.Get("X-HMAC-SIGNATURE")); err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}

func verify(secret, body []byte, signature string) error {
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	sent, err := hex.DecodeString(signature)
	if err != nil || !hmac.Equal(mac.Sum(nil), sent) {
		return errRejected
	}
	return nil
}

type envelope struct {
	Success   bool    `json:"success"`
	ErrorCode *string `json:"errorCode"`
	Data      any     `json:"data"`
}

// answer sends the envelope, and returns its status.
func answer(w http.ResponseWriter, data any, err error) int {
	status, e := http.StatusOK, envelope{Success: true, Data: data}
	if err != nil {
		code := "INTERNAL_ERROR"
		status, e = http.StatusInternalServerError, envelope{ErrorCode: &code}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(e)
	return status
}

type approval struct {
	UserSig      string `json:"userSig"`
	ValidatorSig string `json:"validatorSig"`
}

// approve signs the digest, which must have 32 bytes.
func approve(validator *ecdsa.PrivateKey, userSig, digest string) (any, error) {
	b, err := hexutil.Decode(digest)
	if err != nil {
		return nil, err
	}
	signature, err := crypto.Sign(b, validator)
	if err != nil {
		return nil, err
	}
	signature[crypto.RecoveryIDOffset] += 27
	return approval{userSig, hexutil.Encode(signature)}, nil
}

// sold reports whether an order is for one item of the game, in an amount that it can store,
// and for one token. What nobody sells would be signed for, and a burn of it never granted.
func (i *intent) sold(token string) bool {
	mint := i.Method == "mint" && i.Type == "assemble"
	if !mint && (i.Method != "burn-permit" || i.Type != "disassemble") || len(i.From) != 1 || len(i.To) != 1 {
		return false
	}
	game, chain := i.From[0], i.To[0]
	if !mint {
		game, chain = chain, game
	}
	n, err := game.Amount.Int64()
	return err == nil && n > 0 && n <= 1_000_000_000_000_000 && game.Type == "asset" &&
		(game.ID == "item_gold" || game.ID == "item_gem") && strings.EqualFold(chain.ID, token)
}

const (
	columns = "uuid, claim, state, network, project_id, session_id, user_address, digest, intent, " +
		"tx_hash, reason, accepted_at, finished_at"

	selectSession = "SELECT token_hash, expires_at FROM sessions WHERE id = $1"
	selectOwner   = "SELECT s.player, COALESCE(w.player, ''), COALESCE(c.closed, '') FROM sessions s" +
		" LEFT JOIN wallets w ON w.wallet = $1 LEFT JOIN shop c ON c.closed <> '' WHERE s.id = $2"
	insertWallet = "INSERT INTO wallets (wallet, player) VALUES ($1, $2) ON CONFLICT DO NOTHING"
	insertOrder  = "INSERT INTO ramp_orders (direction, " + columns +
		") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, NULL, '', $11, NULL)" +
		" ON CONFLICT (uuid) DO UPDATE SET claim = ramp_orders.claim RETURNING " + columns
	finishOrder = "UPDATE ramp_orders SET claim = $1, state = $2, tx_hash = NULLIF($3, ''), reason = $4, " +
		"finished_at = $5 WHERE uuid = $6 AND claim = $7"
	moveItem = "UPDATE inventory SET balance = balance + $1 WHERE player = (SELECT player FROM sessions " +
		"WHERE id = $2)" +
		" AND item = $3 AND balance BETWEEN $4 AND $5"
)

// game makes the statements of an order.
type game struct {
	db   *sql.DB
	lock string
}

func newGame(db *sql.DB, postgres bool) *game {
	if postgres {
		return &game{db, "SELECT " + columns + " FROM ramp_orders WHERE uuid = $1 FOR UPDATE"}
	}
	return &game{db, "UPDATE ramp_orders SET claim = claim WHERE uuid = $1 RETURNING " + columns}
}

func (g *game) authenticate(ctx context.Context, session, token string) error {
	var stored string
	var expires int64
	if err := g.db.QueryRowContext(ctx, selectSession, session).Scan(&stored, &expires); err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(token))
	if subtle.ConstantTimeCompare([]byte(stored), []byte(hex.EncodeToString(sum[:]))) != 1 ||
		time.Now().Unix() >= expires {
		return errRejected
	}
	return nil
}

func (g *game) bindWallet(ctx context.Context, session, wallet string) error {
	var player, owner, closed string
	err := g.db.QueryRowContext(ctx, selectOwner, strings.ToLower(wallet), session).Scan(&player,
		&owner, &closed)
	switch {
	case err != nil || owner == player && closed == "":
		return err
	case owner != "" || closed != "":
		return errRejected
	}
	_, err = g.db.ExecContext(ctx, insertWallet, strings.ToLower(wallet), player)
	return err
}

// order is a row of ramp_orders.
type order struct {
	uuid, claim, state, network, project, session, user, digest, intent, txHash, reason sql.NullString
	accepted, finished                                                                  sql.NullInt64
}

func (o *order) scan(row *sql.Row) error {
	return row.Scan(&o.uuid, &o.claim, &o.state, &o.network, &o.project, &o.session, &o.user, &o.digest,
		&o.intent, &o.txHash, &o.reason, &o.accepted, &o.finished)
}

func (g *game) accept(ctx context.Context, session string, c *call) error {
	text, err := json.Marshal(c.Intent)
	if err != nil {
		return err
	}
	direction := "burn"
	if c.Intent.Type == "assemble" {
		direction = "mint"
	}
	return g.transact(ctx, func(tx *sql.Tx) error {
		var o order
		claim := rand.Text()
		err := o.scan(tx.QueryRowContext(ctx, insertOrder, direction, c.UUID, claim, "accepted", "testnet",
			c.ProjectID, session,
			c.UserAddress, c.Digest, string(text), time.Now().UnixMilli()))
		switch {
		case err != nil:
			return err
		case o.claim.String == claim && direction == "burn":
			return g.rehearse(ctx, tx, session, c.Intent)
		case o.claim.String == claim:
			return g.apply(ctx, tx, session, c.Intent, "accepted")
		case o.state.String != "accepted" || o.session.String != session || o.user.String != c.UserAddress ||
			o.digest.String != c.Digest || o.intent.String != string(text): // one signature for one payment
			return errRejected
		}
		return nil
	})
}

// rehearse tries the grant of a burn, and rolls it back: a burn whose grant fails is not accepted.
func (g *game) rehearse(ctx context.Context, tx *sql.Tx, session string, i intent) error {
	if _, err := tx.ExecContext(ctx, "SAVEPOINT rehearsal"); err != nil {
		return err
	}
	if err := g.apply(ctx, tx, session, i, "succeeded"); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT rehearsal")
	return err
}

func (g *game) end(ctx context.Context, c *call) error {
	state, known := map[string]string{"0x1": "succeeded", "0x0": "failed"}[c.Receipt.Status]
	if !known {
		return errRejected
	}
	return g.transact(ctx, func(tx *sql.Tx) error {
		var o order
		if err := o.scan(tx.QueryRowContext(ctx, g.lock, c.UUID)); err != nil || o.state.String == state {
			return err
		}
		if o.state.String != "accepted" || o.session.String != c.SessionID {
			return errRejected
		}
		var stored intent // not what the result says
		if err := json.Unmarshal([]byte(o.intent.String), &stored); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, finishOrder, rand.Text(), state, c.TxHash, "",
			time.Now().UnixMilli(), c.UUID, o.claim.String); err != nil {
			return err
		}
		return g.apply(ctx, tx, o.session.String, stored, state)
	})
}

// apply moves what an order moves when it enters a state.
func (g *game) apply(ctx context.Context, tx *sql.Tx, session string, i intent, state string) error {
	var item asset
	sign := int64(1)
	switch mint := i.Type == "assemble"; {
	case mint && state == "accepted":
		item, sign = i.From[0], -1
	case mint && state == "failed":
		item = i.From[0]
	case !mint && state == "succeeded":
		item = i.To[0]
	default:
		return nil
	}
	delta, err := item.Amount.Int64()
	if err != nil || delta <= 0 {
		return errRejected
	}
	moved, err := tx.ExecContext(ctx, moveItem, sign*delta, session, item.ID, max(0, -sign*delta),
		int64(1)<<62)
	if err != nil {
		return err
	}
	if n, err := moved.RowsAffected(); err != nil || n != 1 {
		return cmp.Or(err, errRejected)
	}
	return nil
}

func (g *game) transact(ctx context.Context, work func(*sql.Tx) error) error {
	tx, err := g.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := work(tx); err != nil {
		return err
	}
	return tx.Commit()
}

func main() {
	addr := flag.String("addr", "", "address")
	database := flag.String("db", "", "database")
	token := flag.String("token", "", "contract address")
	flag.Parse()
	db, err := sql.Open("pgx", *database)
	if err != nil {
		log.Fatal(err)
	}
	db.SetMaxOpenConns(20)
	db.SetMaxIdleConns(20)
	validator, err := crypto.HexToECDSA(strings.TrimPrefix(os.Getenv("RAMP_VALIDATOR_KEY"), "0x"))
	if err != nil {
		log.Fatal(err)
	}
	logger, secret, g := slog.New(slog.NewJSONHandler(os.Stderr, nil)), []byte(os.Getenv("RAMP_HMAC_KEY")),
		newGame(db, true)
	handle := func(path string, run func(r *http.Request, session string, c *call) (any, error)) {
		http.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			begun, session := time.Now(), r.Header.Get("X-Dapp-SessionID")
			var c call
			var data any
			err := readSigned(w, r, secret, &c)
			if err == nil {
				data, err = run(r, session, &c)
			}
			status := answer(w, data, err)
			logger.Info("call", "path", path, "uuid", c.UUID, "session", session, "status", status, "took",
				time.Since(begun), "error", err)
		})
	}
	handle("/api/validate", func(r *http.Request, session string, c *call) (any, error) {
		if !c.Intent.sold(*token) {
			return nil, errRejected
		}
		if err := g.authenticate(r.Context(), session,
			strings.TrimPrefix(r.Header.Get("X-Dapp-Authorization"), "Bearer ")); err != nil {
			return nil, err
		}
		if err := g.bindWallet(r.Context(), session, c.UserAddress); err != nil {
			return nil, err
		}
		approved, err := approve(validator, c.UserSig, c.Digest)
		if err != nil { // before the player has paid
			return nil, err
		}
		return approved, g.accept(r.Context(), session, c)
	})
	handle("/api/result",
		func(r *http.Request, _ string, c *call) (any, error) { return nil, g.end(r.Context(), c) })
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("ready on http://%s by hand\n", listener.Addr())
	server := &http.Server{ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	log.Fatal(server.Serve(listener))
}
