// Command byhand is the server that a careful studio writes without the SDK for PostgreSQL:
// the statements of examples/gameserver, word for word, encoding/json, and one log record
// for each call. The command load compares what both cost. It reads the tables of
// gameserver, and answers only the calls of that load.
package main

import (
	"cmp"
	"context"
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

const (
	columns = "uuid, claim, state, network, project_id, session_id, user_address, digest, intent, tx_hash, reason, accepted_at, finished_at"
	insert  = "INSERT INTO ramp_orders (direction, " + columns + ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, NULL, '', $11, DEFAULT)" +
		" ON CONFLICT (uuid) DO UPDATE SET claim = ramp_orders.claim RETURNING " + columns
	lock   = "SELECT " + columns + " FROM ramp_orders WHERE uuid = $1 FOR UPDATE"
	finish = "UPDATE ramp_orders SET claim = $1, state = $2, tx_hash = NULLIF($3, ''), reason = $4, finished_at = $5 WHERE uuid = $6 AND state = $7"
	wallet = "SELECT s.player, COALESCE(w.player, ''), COALESCE(c.closed, '') FROM sessions s LEFT JOIN wallets w ON w.wallet = $1" +
		" LEFT JOIN shop c ON c.closed <> '' WHERE s.id = $2"
	move = "UPDATE inventory SET balance = balance + $1 WHERE player = (SELECT player FROM sessions WHERE id = $2) AND item = $3 AND balance BETWEEN $4 AND $5"
)

type asset struct {
	Type   string      `json:"type"`
	ID     string      `json:"id"`
	Amount json.Number `json:"amount"`
}

type intent struct {
	Method string  `json:"method"`
	Type   string  `json:"type"`
	From   []asset `json:"from"`
	To     []asset `json:"to"`
}

type call struct {
	SessionID   string `json:"session_id"`
	UserSig     string `json:"user_sig"`
	UserAddress string `json:"user_address"`
	ProjectID   string `json:"project_id"`
	Digest      string `json:"digest"`
	UUID        string `json:"uuid"`
	TxHash      string `json:"tx_hash"`
	Receipt     struct {
		Status string `json:"status"`
	} `json:"receipt"`
	Intent intent `json:"intent"`
}

// order is a row of ramp_orders.
type order struct {
	uuid, claim, state, network, project, session, user, digest, intent, txHash, reason sql.NullString
	accepted, finished                                                                  sql.NullInt64
}

func (o *order) scan(row *sql.Row) error {
	return row.Scan(&o.uuid, &o.claim, &o.state, &o.network, &o.project, &o.session, &o.user, &o.digest, &o.intent, &o.txHash, &o.reason, &o.accepted, &o.finished)
}

var errRejected = errors.New("rejected")

func main() {
	addr := flag.String("addr", "", "address")
	database := flag.String("db", "", "database")
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
	secret := []byte(os.Getenv("RAMP_HMAC_KEY"))
	logger := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	handle := func(path string, answer func(r *http.Request, c *call) (any, error)) {
		http.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			begun := time.Now()
			var c call
			body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
			if err == nil {
				mac := hmac.New(sha256.New, secret)
				mac.Write(body)
				if sent, _ := hex.DecodeString(r.Header.Get("X-HMAC-SIGNATURE")); !hmac.Equal(mac.Sum(nil), sent) {
					err = errRejected
				}
			}
			var data any
			if err = cmp.Or(err, json.Unmarshal(body, &c)); err == nil {
				data, err = answer(r, &c)
			}
			status := http.StatusOK
			if err != nil {
				status = http.StatusInternalServerError
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(map[string]any{"success": err == nil, "errorCode": nil, "data": data})
			logger.Info("call", "path", path, "uuid", c.UUID, "session", r.Header.Get("X-Dapp-SessionID"), "status", status, "took", time.Since(begun), "error", err)
		})
	}
	handle("/api/validate", func(r *http.Request, c *call) (any, error) {
		session := r.Header.Get("X-Dapp-SessionID")
		if err := authenticate(r, db, session); err != nil {
			return nil, err
		}
		digest, err := hexutil.Decode(c.Digest)
		if err != nil {
			return nil, err
		}
		var player, owner, closed string
		err = db.QueryRowContext(r.Context(), wallet, c.UserAddress, session).Scan(&player, &owner, &closed)
		switch {
		case err != nil:
			return nil, err
		case closed != "":
			return nil, errRejected
		case owner != player:
			if err := bind(r.Context(), db, c.UserAddress, player, owner); err != nil {
				return nil, err
			}
		}
		if err := accept(r.Context(), db, session, c); err != nil {
			return nil, err
		}
		signature, err := crypto.Sign(digest, validator)
		if err != nil {
			return nil, err
		}
		signature[crypto.RecoveryIDOffset] += 27
		return map[string]string{"userSig": c.UserSig, "validatorSig": hexutil.Encode(signature)}, nil
	})
	handle("/api/result", func(r *http.Request, c *call) (any, error) { return nil, end(r.Context(), db, c) })
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("ready on http://%s by hand\n", listener.Addr())
	log.Fatal(http.Serve(listener, nil))
}

func authenticate(r *http.Request, db *sql.DB, session string) error {
	var stored string
	var expires int64
	err := db.QueryRowContext(r.Context(), "SELECT token_hash, expires_at FROM sessions WHERE id = $1", session).Scan(&stored, &expires)
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(strings.TrimPrefix(r.Header.Get("X-Dapp-Authorization"), "Bearer ")))
	if subtle.ConstantTimeCompare([]byte(stored), []byte(hex.EncodeToString(sum[:]))) != 1 || time.Now().Unix() >= expires {
		return errRejected
	}
	return nil
}

func bind(ctx context.Context, db *sql.DB, address, player, owner string) error {
	if owner != "" {
		return errRejected
	}
	_, err := db.ExecContext(ctx, "INSERT INTO wallets (wallet, player) VALUES ($1, $2) ON CONFLICT DO NOTHING", strings.ToLower(address), player)
	return err
}

func accept(ctx context.Context, db *sql.DB, session string, c *call) error {
	text, err := json.Marshal(c.Intent)
	if err != nil {
		return err
	}
	direction, delta, item := "burn", int64(0), asset{}
	if c.Intent.Type == "assemble" {
		direction, item = "mint", c.Intent.From[0]
		if delta, err = item.Amount.Int64(); err != nil {
			return err
		}
	}
	return transact(ctx, db, func(tx *sql.Tx) error {
		var o order
		claim := rand.Text()
		if err := o.scan(tx.QueryRowContext(ctx, insert, direction, c.UUID, claim, "accepted", "testnet", c.ProjectID, session,
			c.UserAddress, c.Digest, string(text), time.Now().UnixMilli())); err != nil {
			return err
		}
		if o.claim.String != claim { // a repeat
			return nil
		}
		return apply(ctx, tx, session, item.ID, -delta)
	})
}

func end(ctx context.Context, db *sql.DB, c *call) error {
	return transact(ctx, db, func(tx *sql.Tx) error {
		var o order
		if err := o.scan(tx.QueryRowContext(ctx, lock, c.UUID)); err != nil {
			return err
		}
		if o.state.String != "accepted" {
			return nil
		}
		state, item := "failed", asset{}
		if c.Receipt.Status == "0x1" {
			state = "succeeded"
		}
		if mint := c.Intent.Type == "assemble"; mint && state == "failed" {
			item = c.Intent.From[0]
		} else if !mint && state == "succeeded" {
			item = c.Intent.To[0]
		}
		if _, err := tx.ExecContext(ctx, finish, rand.Text(), state, c.TxHash, "", time.Now().UnixMilli(), c.UUID, "accepted"); err != nil || item.ID == "" {
			return err
		}
		delta, err := item.Amount.Int64()
		if err != nil {
			return err
		}
		return apply(ctx, tx, o.session.String, item.ID, delta)
	})
}

func apply(ctx context.Context, tx *sql.Tx, session, item string, delta int64) error {
	if delta == 0 {
		return nil
	}
	moved, err := tx.ExecContext(ctx, move, delta, session, item, max(0, -delta), int64(1)<<62)
	if err != nil {
		return err
	}
	if n, err := moved.RowsAffected(); err != nil || n != 1 {
		return cmp.Or(err, errRejected)
	}
	return nil
}

func transact(ctx context.Context, db *sql.DB, work func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := work(tx); err != nil {
		return err
	}
	return tx.Commit()
}
