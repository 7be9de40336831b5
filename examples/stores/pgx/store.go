// Package pgxstore is a ramp.Store on pgx without database/sql. Copy the whole
// package. It stores each step of an order and moves the balances in one transaction.
// Any number of processes may share the database.
//
//	store := &pgxstore.Store{Pool: pool, Approve: approve}
//	handler, err := ramp.NewHandler(ramp.HandlerConfig{Players: players, Store: store, Terms: terms, Key: key, Signer: signer})
//
// Store returns database errors, and the service then repeats the call. This covers
// serialization failures, deadlocks and commits whose answer was lost.
package pgxstore

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	ramp "github.com/token-ramp/ramp-go"
)

// Schema creates the tables. Add it to your migrations.
//
//go:embed schema.sql
var Schema string

// Store keeps orders and balances in PostgreSQL.
type Store struct {
	Pool *pgxpool.Pool
	// Approve applies the rules of the game; it may be nil. It is called for each
	// new step and may use tx. It may reject an order in the state OrderAccepted
	// with ramp.Reject.
	Approve func(ctx context.Context, tx pgx.Tx, step ramp.Step) error
}

// Update implements ramp.Store. It inserts a new order before it locks, so that of two
// concurrent calls one finds the row of the other.
func (s *Store) Update(ctx context.Context, id uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	step, err := next(nil)
	opens := err == nil
	if err != nil && !errors.Is(err, ramp.ErrOrderUnknown) {
		return ramp.Step{}, err
	}
	var stored *ramp.Order
	err = pgx.BeginFunc(ctx, s.Pool, func(tx pgx.Tx) error {
		inserted := false
		if opens {
			const insert = "INSERT INTO orders (uuid, document) VALUES ($1, $2) ON CONFLICT (uuid) DO NOTHING"
			if inserted, err = write(ctx, tx, insert, id, step.Order); err != nil {
				return err
			}
		}
		if !inserted {
			if stored, err = read(tx.QueryRow(ctx, selectOrder+"uuid = $1 FOR UPDATE", id.String())); err != nil {
				return err
			}
			if step, err = next(stored); err != nil || !step.New {
				return err
			}
			updated, err := write(ctx, tx, "UPDATE orders SET document = $2 WHERE uuid = $1", id, step.Order)
			if err != nil || !updated {
				return cmp.Or(err, errors.New("the row of the order is gone"))
			}
		}
		if err := move(ctx, tx, step); err != nil || s.Approve == nil {
			return err
		}
		return s.Approve(ctx, tx, step)
	})
	var broken *pgconn.PgError
	if errors.As(err, &broken) && broken.ConstraintName == "orders_tx_hash" { // another order has ended by the transaction
		other, failed := read(s.Pool.QueryRow(ctx, selectOrder+"document->>'tx_hash' = $1", step.Order.TxHash))
		if failed != nil || other == nil {
			return ramp.Step{}, errors.Join(err, failed)
		}
		return ramp.Step{}, &ramp.ConflictError{Order: *stored, Field: "tx_hash", Other: other}
	}
	if err != nil {
		return ramp.Step{}, err
	}
	return step, nil
}

// write stores an order and reports whether the statement changed a row.
func write(ctx context.Context, tx pgx.Tx, statement string, id uuid.UUID, o ramp.Order) (bool, error) {
	document, err := json.Marshal(o)
	if err != nil {
		return false, err
	}
	done, err := tx.Exec(ctx, statement, id.String(), document)
	return done.RowsAffected() == 1, err
}

const selectOrder = "SELECT document FROM orders WHERE "

// read returns the order of a row, or nil if there is none.
func read(row pgx.Row) (*ramp.Order, error) {
	var document []byte
	var o ramp.Order
	switch err := row.Scan(&document); {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &o, json.Unmarshal(document, &o)
}

const maxAmount = 100_000_000_000_000_000 // of an asset in one order, so that a balance does not overflow

// move moves the balances of a step. It rejects an order that it could not move
// exactly or could not grant later.
func move(ctx context.Context, tx pgx.Tx, step ramp.Step) error {
	assets, accepted := step.Effect.Assets, step.Order.State == ramp.OrderAccepted
	if accepted {
		assets = step.Order.Assets // includes those of a burn, each with a delta of 0
	}
	// Use a fixed order, so that two orders of a player cannot deadlock.
	for _, a := range slices.SortedFunc(slices.Values(assets), func(a, b ramp.AssetAmount) int { return cmp.Compare(a.ID, b.ID) }) {
		if n, err := a.Amount.Int64(); accepted && (err != nil || n > maxAmount) {
			return ramp.Reject("INVALID_AMOUNT")
		}
		delta, err := step.Effect.Delta(a).Int64()
		if err != nil {
			return err
		}
		moved, err := tx.Exec(ctx, "UPDATE balances SET amount = amount + $3 WHERE session_id = $1 AND asset = $2 AND amount + $3 >= 0",
			step.Order.SessionID, a.ID, delta)
		switch {
		case err != nil:
			return err
		case moved.RowsAffected() == 1:
		case accepted:
			return ramp.Reject("INVALID_BALANCE")
		default:
			return fmt.Errorf("order %s: session %q has no balance of %q", step.Order.UUID, step.Order.SessionID, a.ID)
		}
	}
	return nil
}
