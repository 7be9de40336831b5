package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	_ "modernc.org/sqlite"
)

// orderComparisons accept and finish a mint, each step in one transaction. Each side
// has its own database. In-process SQLite is the cheapest database: it has no network
// and, unless it syncs, does not wait for the disk.
func orderComparisons() []comparison {
	const subject = "an order on SQLite, accept and finish"
	return []comparison{orderComparison(subject, "normal"), orderComparison(subject+", synced", "full")}
}

func orderComparison(subject, synchronous string) comparison {
	return comparison{
		subject: subject, rival: "the same statements by hand, unchecked", clock: wallTime,
		setup: func() sides {
			dir := must(os.MkdirTemp("", "ramp-bench-"))
			ours, theirs := openSQLite(dir, "ours", synchronous), openSQLite(dir, "theirs", synchronous)
			store := must(ramp.NewSQLStore(ramp.SQLStoreConfig{DB: ours, Dialect: ramp.SQLite, Apply: applyNothing}))
			return sides{
				ours: func() error {
					return steps(ours,
						func(tx *sql.Tx, r *ramp.ValidateRequest) error {
							_, err := store.UpdateTx(context.Background(), tx, r.UUID, ramp.Accept(ramp.Session{ID: orderSession}, r, time.Now()))
							return err
						},
						func(tx *sql.Tx, r *ramp.Result) error {
							_, err := store.UpdateTx(context.Background(), tx, r.UUID, ramp.Finish(r, time.Now()))
							return err
						})
				},
				theirs: func() error { return steps(theirs, acceptByHand, finishByHand) },
				close: func() {
					_, _ = ours.Close(), theirs.Close()
					_ = os.RemoveAll(dir)
				},
			}
		},
	}
}

const orderSession = "hero-4821"

func applyNothing(context.Context, *sql.Tx, ramp.Step) error { return nil }

func openSQLite(dir, name, synchronous string) *sql.DB {
	db := must(sql.Open("sqlite", "file:"+filepath.Join(dir, name+".db")+
		"?_pragma=journal_mode(wal)&_pragma=synchronous("+synchronous+")&_txlock=immediate"))
	must(db.Exec(ramp.SQLite.Schema()))
	return db
}

// steps accepts and finishes a new order.
func steps(db *sql.DB, accept func(*sql.Tx, *ramp.ValidateRequest) error, finish func(*sql.Tx, *ramp.Result) error) error {
	id := uuid.New()
	intent := ramp.Intent{
		Method: ramp.MethodMint, Type: ramp.Assemble,
		From: []ramp.IntentAsset{{Type: ramp.TypeAsset, ID: "gold", Amount: ramp.NewAmount(100)}},
		To:   []ramp.IntentAsset{{Type: ramp.TypeERC20, ID: tokenAddress, Amount: ramp.NewAmount(10)}},
	}
	if err := transact(db, func(tx *sql.Tx) error {
		return accept(tx, &ramp.ValidateRequest{
			UserAddress: playerAddress, ProjectID: "project-1", Digest: ramp.Digest{31: 1}, UUID: id, Intent: intent,
		})
	}); err != nil {
		return err
	}
	return transact(db, func(tx *sql.Tx) error {
		return finish(tx, &ramp.Result{
			SessionID: orderSession, UUID: id, TxHash: fmt.Sprintf("0x%x", sha256.Sum256(id[:])), Intent: intent,
			Receipt: ramp.Receipt{Status: ramp.NewQuantity(1)},
		})
	})
}

func transact(db *sql.DB, step func(*sql.Tx) error) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	if err := step(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// The handwritten version runs the same statements on the same table and decodes the
// rows, but neither checks nor compares them.

const orderColumns = "uuid, claim, state, project_id, session_id, user_address, digest, intent, tx_hash, reason, accepted_at, finished_at"

func acceptByHand(tx *sql.Tx, r *ramp.ValidateRequest) error {
	intent, err := json.Marshal(r.Intent)
	if err != nil {
		return err
	}
	return readOrderByHand(tx.QueryRow("INSERT INTO ramp_orders (direction, "+orderColumns+
		") VALUES ('mint', ?, ?, 'accepted', ?, ?, ?, ?, ?, NULL, '', ?, NULL)"+
		" ON CONFLICT (uuid) DO UPDATE SET claim = ramp_orders.claim RETURNING "+orderColumns,
		r.UUID.String(), rand.Text(), r.ProjectID, orderSession, r.UserAddress, r.Digest.String(), string(intent),
		time.Now().UnixMilli()))
}

func finishByHand(tx *sql.Tx, r *ramp.Result) error {
	// SQLite has no FOR UPDATE, so the row is written to lock it.
	if err := readOrderByHand(tx.QueryRow("UPDATE ramp_orders SET claim = claim WHERE uuid = ? RETURNING "+orderColumns, r.UUID.String())); err != nil {
		return err
	}
	_, err := tx.Exec("UPDATE ramp_orders SET state = ?, tx_hash = ?, reason = ?, finished_at = ? WHERE uuid = ? AND state = 'accepted'",
		"succeeded", r.TxHash, "", time.Now().UnixMilli(), r.UUID.String())
	return err
}

func readOrderByHand(row *sql.Row) error {
	var key, claim, state, project, session, user, digest, intent, reason string
	var hash sql.NullString
	var acceptedAt int64
	var finishedAt sql.NullInt64
	if err := row.Scan(
		&key, &claim, &state, &project, &session, &user, &digest, &intent, &hash, &reason, &acceptedAt, &finishedAt); err != nil {
		return err
	}
	return json.Unmarshal([]byte(intent), new(plainIntent))
}
