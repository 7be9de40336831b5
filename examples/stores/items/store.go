// Package items is a ramp.Store for a game whose items live in another service, which knows
// idempotency keys. The orders are rows of a SQL database. Copy the package.
//
//	store := &items.Store{DB: db, Items: &items.Service{URL: "https://items.example/moves"}}
//	err := store.Settle(ctx) // when the server starts, and then every minute
//	handler, err := ramp.NewHandler(ramp.HandlerConfig{Players: players, Store: store, …})
//
// No transaction spans both, so each step of an order is three writes, in this order:
//
//  1. The row of the order notes the step and its key.
//  2. The service applies the step under this key.
//  3. The row takes over the step's order.
//
// If the server is killed between two of them, the row says which step is under way. The next
// call for the order, or Settle, asks the service again under the same key, and ends the row.
//
// The service must keep three promises:
//
//   - It decides each key once: it has applied the whole step, or it refuses. The same key again,
//     also at the same moment, gets the same answer and moves nothing more.
//   - It remembers refusals too. Otherwise a request that was on its way for long could take the
//     items of an order that does not exist.
//   - It never forgets a key. If it does after some days, let an alert watch [Store.UnderWay].
//
// Package support shows and ends an order of this store by its UUID. For its lists and books, add the
// look-ups of rampbooks.OrderLister, and columns of what they look for: rampsql/schema has them.
package items

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

// Schema creates the table of the orders, on PostgreSQL or SQLite. A row is never deleted, except
// that of an order that the service refused.
const Schema = `CREATE TABLE IF NOT EXISTS item_orders (
	uuid     text    PRIMARY KEY,
	version  integer NOT NULL, -- each write raises it
	document text,             -- the order; NULL until its first step has ended
	tx_hash  text    UNIQUE,   -- of the transaction by which it ends
	step     text,             -- the step that is under way; NULL if none is
	step_key text              -- its key
);`

// Items is the service that has the items.
type Items interface {
	// Apply applies the effect of a step, once for each key. nil means that it was applied, now or
	// before. An error that wraps ErrRefused means that nothing has moved, and that nothing ever will
	// under this key. Any other error means that nobody knows.
	//
	// A step that opens a burn has no effect. The service should refuse it if it could not grant
	// step.Order.Assets later.
	Apply(ctx context.Context, key string, step ramp.Step) error
}

// ErrRefused is wrapped by the error of a step that the service refused for good. An error that also
// wraps that of ramp.Reject rejects the order.
var ErrRefused = errors.New("items: the step was refused")

// Store implements ramp.Store. Any number of processes may share the database.
type Store struct {
	DB    *sql.DB
	Items Items
}

// row is the row of an order.
type row struct {
	id      string
	version int64
	order   *ramp.Order // nil if there is none (yet)
	step    *ramp.Step  // the step under way; nil if there is none
	key     string
}

// attempts is more than enough, because an order changes at most twice.
const attempts = 20

// Update implements ramp.Store.
func (s *Store) Update(ctx context.Context, id uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	for range attempts {
		r, err := s.read(ctx, "uuid", id.String())
		if err != nil {
			return ramp.Step{}, err
		}
		step, err := next(r.order)
		switch unchanged := err != nil || !step.New; {
		case r.step != nil: // of a server that was killed, or of one that works on it now
			if unsettled := s.settle(ctx, r); unsettled == nil || errors.Is(unsettled, ErrRefused) {
				continue // with what it has become
			} else if !unchanged {
				return ramp.Step{}, unsettled
			}
			return step, err // as before the step under way, which nobody was told of
		case unchanged:
			return step, err
		}
		won, err := s.begin(ctx, &r, step)
		if won {
			if err := s.settle(ctx, r); err != nil {
				return ramp.Step{}, err
			}
			return step, nil
		}
		if other, conflict := s.ended(ctx, step.Order); other != nil {
			return ramp.Step{}, &ramp.ConflictError{Order: *r.order, Field: "tx_hash", Other: other}
		} else if err := errors.Join(err, conflict); err != nil {
			return ramp.Step{}, err
		}
	}
	return ramp.Step{}, fmt.Errorf("items: order %s changed during %d attempts", id, attempts)
}

// Settle ends the steps that servers have left under way when they were killed. It may run at any
// time and on several servers.
func (s *Store) Settle(ctx context.Context) error {
	ids, failed := s.UnderWay(ctx)
	for _, id := range ids {
		r, err := s.read(ctx, "uuid", id)
		if err == nil && r.step != nil {
			err = s.settle(ctx, r)
		}
		if err != nil && !errors.Is(err, ErrRefused) {
			failed = errors.Join(failed, fmt.Errorf("items: order %s: %w", id, err))
		}
	}
	return failed
}

// UnderWay returns the orders with a step that has not ended. One that stays here needs a person.
func (s *Store) UnderWay(ctx context.Context) (ids []string, err error) {
	rows, err := s.DB.QueryContext(ctx, "SELECT uuid FROM item_orders WHERE step IS NOT NULL")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// read returns the row in which a column has a value, or an empty one for a new order.
func (s *Store) read(ctx context.Context, column, value string) (row, error) {
	r := row{id: value}
	var document, step, key sql.NullString
	query := "SELECT uuid, version, document, step, step_key FROM item_orders WHERE " + column + " = $1"
	err := s.DB.QueryRowContext(ctx, query, value).Scan(&r.id, &r.version, &document, &step, &key)
	if errors.Is(err, sql.ErrNoRows) {
		return r, nil
	}
	if err == nil && document.Valid {
		r.order = new(ramp.Order)
		err = json.Unmarshal([]byte(document.String), r.order)
	}
	if err == nil && step.Valid {
		r.step, r.key = new(ramp.Step), key.String
		err = json.Unmarshal([]byte(step.String), r.step)
	}
	return r, err
}

// begin notes a step and a new key in the row, unless the row has changed since it was read. A key
// is never used for a second attempt, which a refusal of the first would end.
func (s *Store) begin(ctx context.Context, r *row, step ramp.Step) (won bool, err error) {
	text, err := json.Marshal(step)
	if err != nil {
		return false, err
	}
	r.step, r.key = &step, fmt.Sprintf("%s/%s/%s", r.id, step.Order.State, rand.Text())
	if r.version == 0 {
		return s.write(ctx, `INSERT INTO item_orders (uuid, version, step, step_key) VALUES ($1, 1, $2, $3)
			ON CONFLICT DO NOTHING`, r.id, string(text), r.key)
	}
	hash := sql.NullString{String: step.Order.TxHash, Valid: step.Order.TxHash != ""}
	return s.write(ctx, `UPDATE item_orders SET version = version + 1, tx_hash = $1, step = $2, step_key = $3
		WHERE uuid = $4 AND version = $5`, hash, string(text), r.key, r.id, r.version)
}

// settle asks the service for the step under way, and ends the row accordingly. If another server
// has ended it meanwhile, it changes nothing.
func (s *Store) settle(ctx context.Context, r row) error {
	var refused error
	if !r.step.Settled() {
		refused = s.Items.Apply(ctx, r.key, *r.step)
	}
	if refused != nil && !errors.Is(refused, ErrRefused) {
		return refused
	}
	if refused != nil && r.order == nil {
		_, err := s.write(ctx, "DELETE FROM item_orders WHERE uuid = $1 AND step_key = $2", r.id, r.key)
		return errors.Join(refused, err)
	}
	if refused != nil {
		_, err := s.write(ctx, `UPDATE item_orders
			SET version = version + 1, tx_hash = NULL, step = NULL, step_key = NULL
			WHERE uuid = $1 AND step_key = $2`, r.id, r.key)
		return errors.Join(refused, err)
	}
	document, err := json.Marshal(r.step.Order)
	if err != nil {
		return err
	}
	_, err = s.write(ctx, `UPDATE item_orders
		SET version = version + 1, document = $1, step = NULL, step_key = NULL
		WHERE uuid = $2 AND step_key = $3`, string(document), r.id, r.key)
	return err
}

// ended returns the other order that has ended by the transaction of an order, or nil. It first ends
// the step by which the other one claims the transaction.
func (s *Store) ended(ctx context.Context, order ramp.Order) (*ramp.Order, error) {
	if order.TxHash == "" {
		return nil, nil
	}
	other, err := s.read(ctx, "tx_hash", order.TxHash)
	switch {
	case err != nil || other.id == order.UUID.String() || other.version == 0:
		return nil, err
	case other.step == nil:
		return other.order, nil
	}
	if err := s.settle(ctx, other); err != nil && !errors.Is(err, ErrRefused) {
		return nil, err
	}
	return s.ended(ctx, order) // as it is now
}

// write runs one statement, and reports whether it changed a row.
func (s *Store) write(ctx context.Context, statement string, args ...any) (changed bool, err error) {
	result, err := s.DB.ExecContext(ctx, statement, args...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}
