package ramp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"math"
	mathrand "math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go/internal/rollback"
)

// SQLStore is a [Store] on database/sql: it stores each step of an order and
// applies its effect in one transaction of one database. Any number of processes on
// any number of machines can share the database.
//
// The table is that of [Dialect.Schema]; the store never creates it. Any isolation level
// works. If the database aborts a transaction, or the connection breaks, the call fails
// with HTTP 500, and either everything was stored or nothing. A repeat of the call finds
// out which.
type SQLStore struct {
	config SQLStoreConfig
	*dialect
	hooks commitHooks
}

// SQLStoreConfig configures a [SQLStore]; zero fields mean their defaults.
type SQLStoreConfig struct {
	// DB holds the orders and the game's assets, and has the table of [Dialect.Schema]. A SQLite
	// database must have one SQLStore per process, which sets its commit hook. Required.
	DB *sql.DB

	// Dialect is [PostgreSQL], [MySQL] (also for MariaDB and TiDB) or [SQLite]. Required.
	Dialect Dialect

	// Apply applies the effect of a step in the transaction that records the step: both are committed,
	// or neither. It must use tx for every statement; the database handle would commit on its own, and
	// waits forever if tx holds the only connection. It must return every error of tx and not continue
	// after one, because the database may have rolled back the whole transaction. Required.
	//
	// Apply is never called for a repeat. After a rollback it is called again, at once or by a later
	// delivery, so it must change nothing outside of tx. It should lock rows in a fixed order.
	//
	// When step.Order was just accepted, Apply may [Reject] it. It must check what nothing else
	// checks: that a mint takes no more than the player has, and that a burn, whose effect is Nothing
	// here, can be granted later. When an order ends, nothing can be rejected: after an error the
	// order stays unchanged, and the service redelivers unless the error is [Permanent].
	//
	// step.Order.SessionID says whose assets change, also 12 hours after the validate call.
	Apply func(ctx context.Context, tx *sql.Tx, step Step) error

	// TxOptions are the options of transactions. It is copied. No isolation level is required.
	TxOptions *sql.TxOptions

	// Retryable reports whether to retry after an error. Any answer is safe: if the commit had
	// succeeded, the retry finds a repeat. By default a transaction is retried that the database
	// aborted because it raced another: SQLSTATE 40001 or 40P01 of PostgreSQL, error 1213 of MySQL.
	Retryable func(err error) bool

	// Retries is how often Update retries a transaction, including Apply, after a random delay: up to
	// 10 ms before the first, twice that before the next, and so on up to 200 ms. UpdateTx never
	// retries. The default is 3; -1 means none.
	Retries int
}

// NewSQLStore returns a store in a database.
func NewSQLStore(c SQLStoreConfig) (*SQLStore, error) {
	var p problems
	p.require(c.DB != nil, "SQLStoreConfig.DB")
	d := c.Dialect.values()
	if d.schema == "" {
		p.add("SQLStoreConfig.Dialect", "is required and must be PostgreSQL, MySQL or SQLite")
	}
	p.require(c.Apply != nil, "SQLStoreConfig.Apply")
	if c.Retries < -1 {
		p.add("SQLStoreConfig.Retries", "must be at least -1, which means none")
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	if c.TxOptions != nil {
		begin := *c.TxOptions
		c.TxOptions = &begin
	}
	if c.Retryable == nil {
		c.Retryable = aborted
	}
	c.Retries = max(0, cmp.Or(c.Retries, 3))
	return &SQLStore{config: c, dialect: d}, nil
}

// aborted reports whether a database ended a transaction that raced another. This package
// knows no driver: those of PostgreSQL agree on a method, those of MySQL on a text.
func aborted(err error) bool {
	var state interface{ SQLState() string }
	if errors.As(err, &state) {
		// A serialization failure or a deadlock.
		return state.SQLState() == "40001" || state.SQLState() == "40P01"
	}
	return strings.Contains(err.Error(), "Error 1213") // deadlock
}

const updateOrder = "UPDATE ramp_orders SET claim = $1, state = $2, tx_hash = NULLIF($3, ''), reason = $4, " +
	"finished_at = $5 WHERE uuid = $6 AND claim = $7"

// Check returns an error if the database is not of the dialect or too old, if the table,
// a column or the unique index of tx_hash is missing, if a column is too narrow or of
// another type, if the user may not write, or if a pooler loses prepared statements,
// which shows if the pool has a second connection. [Handler.Check] calls it. It changes
// nothing.
func (s *SQLStore) Check(ctx context.Context) error {
	db := s.config.DB
	err := s.check(ctx, db)
	cause := err
	if err == nil && db.Stats().MaxOpenConnections != 1 {
		cause = s.onSecondConnection(ctx, db)
	}
	var state interface{ SQLState() string }
	if errors.As(cause, &state) && (state.SQLState() == "42P05" || state.SQLState() == "26000") {
		return fmt.Errorf("ramp: check: a pooler loses the driver's prepared statements; "+
			"docs/databases.md has settings for it: %w", cause)
	}
	return err
}

// onSecondConnection repeats a statement that another connection has prepared. Behind a
// pooler, both may be one connection of the server, which knows the name already.
func (s *SQLStore) onSecondConnection(ctx context.Context, db *sql.DB) error {
	first, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer first.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Second) // the others may be in use
	defer cancel()
	var version string
	return db.QueryRowContext(ctx, s.version).Scan(&version)
}

func (s *SQLStore) check(ctx context.Context, db *sql.DB) error {
	if err := db.PingContext(ctx); err != nil {
		return fmt.Errorf("ramp: check: %w", err)
	}
	var version string
	if err := db.QueryRowContext(ctx, s.version).Scan(&version); err != nil {
		return fmt.Errorf("ramp: check: the dialect is %s, but the database does not answer like it: %w",
			s.config.Dialect, err)
	}
	if err := s.checkVersion(version); err != nil {
		return fmt.Errorf("ramp: check: %w", err)
	}
	const columns = "direction, " + orderColumns
	for _, statement := range []string{
		"SELECT " + columns + " FROM ramp_orders WHERE 1 = 0",
		// Matches no row; the key is for sql_safe_updates of MySQL.
		"UPDATE ramp_orders SET claim = claim WHERE uuid IS NULL",
		"INSERT INTO ramp_orders (" + columns + ") SELECT " + columns + " FROM ramp_orders WHERE 1 = 0",
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("ramp: check: table ramp_orders, which Dialect.Schema creates, is unusable for %.6s: %w",
				statement, err)
		}
	}
	var column, kind string
	err := db.QueryRowContext(ctx, s.wrongColumn).Scan(&column, &kind)
	if err == nil {
		return fmt.Errorf("ramp: check: column %s of table ramp_orders is of type %s, or narrower than Dialect.Schema creates it",
			column, kind)
	}
	var indexes int
	if errors.Is(err, sql.ErrNoRows) {
		err = db.QueryRowContext(ctx, s.hashIndexes).Scan(&indexes)
	}
	switch {
	case err != nil:
		return fmt.Errorf("ramp: check: read the columns and indexes: %w", err)
	case indexes == 0:
		return errors.New("ramp: check: table ramp_orders has no unique index of tx_hash alone, " +
			"as Dialect.Schema creates it: one transaction could end two orders")
	}
	return nil
}

// Update implements [Store] with one transaction per step. After an error of the commit,
// a repeat of the call finds out whether the step is stored.
func (s *SQLStore) Update(ctx context.Context, id uuid.UUID, next Transition) (Step, error) {
	opened, err := openingStep(next)
	if err != nil {
		return Step{}, err
	}
	for n := 0; ; n++ {
		step, err := s.transact(ctx, id, &opened, next, !rollback.Asked(ctx))
		if err == nil && rollback.Asked(ctx) { // by a test
			step, err = s.transact(ctx, id, &opened, next, true)
		}
		err = s.explain(ctx, s.config.DB, "", err)
		if err == nil || n == s.config.Retries || !s.config.Retryable(err) || !wait(ctx, n) {
			return step, err
		}
	}
}

// transact makes one attempt of Update, and rolls it back unless commit is set. opened is
// the result of openingStep.
func (s *SQLStore) transact(ctx context.Context, id uuid.UUID, opened *Step, next Transition, commit bool) (Step, error) {
	t, err := s.begin(ctx, pool{s.config.DB, s.config.TxOptions, &s.hooks})
	if err != nil {
		return Step{}, fmt.Errorf("ramp: begin: %w", err)
	}
	defer t.close(ctx) // rolls back unless committed
	step, row, err := s.update(ctx, t.tx(), id, opened, next)
	if err != nil || !step.New {
		return step, err
	}
	if err := s.apply(ctx, t.tx(), step); err != nil || !commit {
		return Step{}, err
	}
	if err := ctx.Err(); err != nil { // the error of tx would not name the cause
		return Step{}, fmt.Errorf("ramp: order %s: not committed, because its context had ended when Apply returned: %w", id, err)
	}
	// Check only the claim, which differs for every step. The state may be the same
	// if another delivery has finished the order meanwhile.
	if err := t.commit(ctx, id, row.claim); err != nil {
		return Step{}, &storeError{row.Order, step.Order.TxHash, fmt.Errorf("ramp: order %s: commit: %w", id, err)}
	}
	return step, nil
}

// wait waits after attempt n, and reports whether to make another.
func wait(ctx context.Context, n int) bool {
	const minDelay, maxDelay = 10 * time.Millisecond, 200 * time.Millisecond
	select {
	case <-time.After(mathrand.N(min(maxDelay, minDelay<<min(n, 10)))):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// UpdateTx takes a step in the caller's transaction, and does not call Apply. If the step
// is New, apply step.Effect in tx, and then commit. After an error of any statement in
// tx, roll back: on MySQL, MariaDB and SQLite, some errors, such as a deadlock, roll back
// the whole transaction at once; later statements then commit one by one, and COMMIT may
// still succeed. Update guards against this, UpdateTx cannot.
//
// To avoid deadlocks, call UpdateTx first in a transaction, and then lock your own rows,
// in a fixed order. On SQLite, a transaction that has read before fails with SQLITE_BUSY
// if another has written since, unless it began as IMMEDIATE. On MySQL, end the
// transaction soon after [ErrOrderUnknown], because it locks the gap for the order. On
// PostgreSQL, [ConflictError].Other has only a TxHash.
func (s *SQLStore) UpdateTx(ctx context.Context, tx *sql.Tx, id uuid.UUID, next Transition) (Step, error) {
	opened, err := openingStep(next)
	if err != nil {
		return Step{}, err
	}
	step, _, err := s.update(ctx, tx, id, &opened, next)
	return step, s.explain(ctx, tx, s.latest, err)
}

// storeError is an error of a statement that stores the end of an order or commits it.
type storeError struct {
	stored Order  // the order, which has not ended
	txHash string // the transaction by which it would have ended, or ""
	error
}

func (e *storeError) Unwrap() error { return e.error }

// explain returns the reason for a storeError: a [*ConflictError] if another order has
// ended by the transaction. It looks that up, because every driver has its own error
// for a unique index, and only after an error, so that it costs no other order a round
// trip. In a transaction, PostgreSQL answers nothing after an error, but its drivers
// agree on a method. explain returns every other error unchanged.
func (s *SQLStore) explain(ctx context.Context, from interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}, latest string, err error) error {
	var failed *storeError
	if !errors.As(err, &failed) || failed.txHash == "" {
		return err
	}
	query, args := s.bind(selectOrders+"WHERE tx_hash = $1"+latest, failed.txHash)
	other, unread := readOrder(from.QueryRowContext(ctx, query, args...), nil, Intent{})
	var state interface{ SQLState() string }
	switch {
	case other != nil && other.UUID != failed.stored.UUID: // a damaged row counts too
	case unread != nil && errors.As(err, &state) && state.SQLState() == "23505":
		other = &orderRow{Order: Order{TxHash: failed.txHash}}
	default:
		return err
	}
	return &ConflictError{Order: failed.stored, Field: "tx_hash", Other: &other.Order}
}

// openingStep returns the step that opens an order, which is New unless next needs a
// stored one. It is not a pointer, because an order would be allocated.
func openingStep(next Transition) (Step, error) {
	opened, err := next(nil)
	opened.New = err == nil
	if errors.Is(err, ErrOrderUnknown) {
		err = nil
	}
	return opened, err
}

// update takes a step in a transaction. opened is the result of openingStep. row is
// the order before the step, with the claim that a new step wrote.
func (s *SQLStore) update(ctx context.Context, tx *sql.Tx, id uuid.UUID, opened *Step, next Transition) (step Step, row *orderRow, err error) {
	claim := rand.Text()
	if !opened.New {
		row, err = s.selectForUpdate(ctx, tx, id)
		if errors.Is(err, sql.ErrNoRows) {
			_, err = next(nil)
		}
	} else {
		row, err = s.insertOrder(ctx, tx, &opened.Order, claim)
	}
	if err != nil {
		return Step{}, nil, err
	}
	// Compare a row that this call inserted, too: a database that is not strict may
	// have truncated values. Tell whose row it is by its claim, because the number
	// of rows that an insert affected depends on the settings of a driver.
	step, err = next(&row.Order)
	switch {
	case err != nil:
		return Step{}, nil, err
	case row.claim == claim:
		return Step{Order: row.Order, Effect: opened.Effect, New: true}, row, nil
	case strings.HasPrefix(claim, row.claim):
		// This call's own row would look like a repeat, and be signed.
		return Step{}, nil, fmt.Errorf("ramp: order %s: insert: the database truncated the claim: check the table with Check", id)
	case !step.New:
		return step, nil, nil
	}
	if err := s.endOrder(ctx, tx, row, &step.Order, claim); err != nil {
		return Step{}, nil, &storeError{row.Order, step.Order.TxHash, err}
	}
	row.claim = claim
	return step, row, nil
}

// insertOrder inserts an order unless it exists, and returns its locked row. It
// inserts before it locks, because the lock of a missing row is a gap lock, in
// which two new orders would deadlock.
func (s *SQLStore) insertOrder(ctx context.Context, tx *sql.Tx, o *Order, claim string) (*orderRow, error) {
	intent, err := marshal(o.Intent)
	if err != nil {
		return nil, fmt.Errorf("ramp: order %s: %w", o.UUID, err)
	}
	insert, args := s.bind(s.insert, string(o.Direction), o.UUID.String(), claim, string(o.State), string(o.Network),
		o.ProjectID, o.SessionID, o.UserAddress, o.Digest.String(), string(intent), o.AcceptedAt.UnixMilli())
	var row *orderRow
	if s.returning {
		row, err = readOrder(tx.QueryRowContext(ctx, insert, args...), intent, o.clone().Intent)
	} else {
		_, err = tx.ExecContext(ctx, insert, args...)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("ramp: order %s: insert: %w", o.UUID, err)
	case row == nil:
		return s.selectForUpdate(ctx, tx, o.UUID)
	default:
		return row, nil
	}
}

// endOrder stores the end of an order that the transaction has locked.
func (s *SQLStore) endOrder(ctx context.Context, tx *sql.Tx, stored *orderRow, o *Order, claim string) error {
	end, args := s.bind(updateOrder, claim, string(o.State), o.TxHash, o.Reason, o.FinishedAt.UnixMilli(),
		stored.UUID.String(), stored.claim)
	n, err := affected(tx.ExecContext(ctx, end, args...))
	if err != nil {
		return fmt.Errorf("ramp: order %s: update: %w", stored.UUID, err)
	}
	if n != 1 { // every driver counts the row, because the claim changes
		return fmt.Errorf("ramp: order %s: update: the order was finished despite the lock", stored.UUID)
	}
	return nil
}

// apply calls Apply. An error names the step and its order.
func (s *SQLStore) apply(ctx context.Context, tx *sql.Tx, step Step) error {
	waits := s.config.DB.Stats().WaitCount
	err := s.config.Apply(ctx, tx, step)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("ramp: order %s: Apply (%s): %w", step.Order.UUID, step.Order.State, err)
	gaveUp := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	locked := ctx.Err() != nil || strings.Contains(err.Error(), "database is locked")
	if gaveUp && s.config.DB.Stats().WaitCount > waits || s.config.Dialect == SQLite && locked {
		err = fmt.Errorf("%w (Apply must use tx for every statement: "+
			"one on the database handle waits for tx, or for its connection)", err)
	}
	return err
}

// orderRow is a row of the table.
type orderRow struct {
	Order
	claim string
}

// selectForUpdate reads the last committed state of an order and locks it until the
// transaction ends. A read without a lock could return an older snapshot: under
// REPEATABLE READ, MySQL would not see the row that the insert just met.
func (s *SQLStore) selectForUpdate(ctx context.Context, tx *sql.Tx, id uuid.UUID) (*orderRow, error) {
	query, args := s.bind(s.lock, id.String())
	row, err := readOrder(tx.QueryRowContext(ctx, query, args...), nil, Intent{})
	if err != nil {
		return nil, fmt.Errorf("ramp: order %s: %w", id, err)
	}
	return row, nil
}

// readOrder reads a row. of is the intent whose text is sent, to save reading it. If the
// row is not a valid order, readOrder returns what it could read and the error. If it
// cannot be scanned, readOrder returns nil.
func readOrder(from interface{ Scan(...any) error }, sent []byte, of Intent) (*orderRow, error) {
	var (
		row        orderRow
		digest     string
		intent     []byte
		txHash     sql.NullString
		acceptedAt int64
		finishedAt sql.NullInt64
	)
	err := from.Scan(&row.UUID, &row.claim, (*string)(&row.State), (*string)(&row.Network), &row.ProjectID,
		&row.SessionID, &row.UserAddress, &digest, &intent, &txHash, &row.Reason, &acceptedAt, &finishedAt)
	if err != nil {
		return nil, err
	}
	row.TxHash = txHash.String
	row.AcceptedAt = time.UnixMilli(acceptedAt).UTC()
	if finishedAt.Valid {
		row.FinishedAt = time.UnixMilli(finishedAt.Int64).UTC()
	}
	row.Intent = of
	if row.Digest, err = ParseDigest(digest); err == nil && !bytes.Equal(intent, sent) {
		err = row.Intent.UnmarshalJSON(intent)
	}
	if err == nil {
		err = row.derive()
	}
	if err != nil { // not wrapped: it is not an error of the call
		row.Digest, row.Intent, row.Direction, row.Assets = Digest{}, Intent{}, "", nil
		return &row, fmt.Errorf("the value stored under %s is not an order: %v", row.UUID, err)
	}
	return &row, nil
}

// OrderPage selects a page of orders. The zero value is the first one.
type OrderPage struct {
	// After is the last order of the page before; the list continues after it. Only its UUID and
	// AcceptedAt are used, or FinishedAt if the list is sorted by it. Zero is the beginning.
	After Order
	Limit int // the maximum number of orders on the page; the default is 100
}

// Order returns the order that is stored under a UUID, without locking it. If there is
// none, the error wraps [ErrOrderUnknown].
func (s *SQLStore) Order(ctx context.Context, id uuid.UUID) (Order, error) {
	return s.one(ctx, "order "+id.String(), "WHERE uuid = $1", id.String())
}

// OrderByTransaction returns the order that has ended by a transaction. If there is
// none, the error wraps [ErrOrderUnknown].
func (s *SQLStore) OrderByTransaction(ctx context.Context, hash common.Hash) (Order, error) {
	return s.one(ctx, "order of transaction "+hash.String(), "WHERE tx_hash = $1", hash.String())
}

// one returns the only order that matches.
func (s *SQLStore) one(ctx context.Context, what, where, arg string) (Order, error) {
	query, args := s.bind(selectOrders+where, arg)
	row, err := readOrder(s.config.DB.QueryRowContext(ctx, query, args...), nil, Intent{})
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrOrderUnknown
	}
	if err != nil {
		return Order{}, fmt.Errorf("ramp: %s: %w", what, err)
	}
	return row.Order, nil
}

// SessionOrders lists the orders of a session, newest first. A row that is not a valid
// order, because it was changed by hand, is listed without digest, intent, direction and
// assets, and the returned error names it. Other pages may follow.
func (s *SQLStore) SessionOrders(ctx context.Context, sessionID string, page OrderPage) ([]Order, error) {
	sessionID = strings.TrimSpace(sessionID)
	return s.newest(ctx, "session_id", page, sessionID, sessionID, sessionID)
}

// UserOrders lists the orders of a wallet, newest first, like [SQLStore.SessionOrders].
// It finds an address in lower case and with its checksum.
func (s *SQLStore) UserOrders(ctx context.Context, address string, page OrderPage) ([]Order, error) {
	other := address
	if common.IsHexAddress(address) {
		other = common.HexToAddress(address).Hex()
	}
	return s.newest(ctx, "user_address", page, address, strings.ToLower(address), other)
}

// newest lists the orders with one of three values in a column, newest first.
func (s *SQLStore) newest(ctx context.Context, column string, page OrderPage, values ...string) ([]Order, error) {
	var p problems
	p.requireStorable(values[0], column, maxOrderText)
	if err := p.err(); err != nil {
		return nil, err
	}
	from := int64(math.MaxInt64)
	if !page.After.AcceptedAt.IsZero() {
		from = page.After.AcceptedAt.UnixMilli()
	}
	return s.list(ctx, "orders by "+column, page.Limit,
		"WHERE "+column+" IN ($1, $2, $3) AND accepted_at <= $4 AND (accepted_at < $4 OR uuid < $5)"+
			" ORDER BY accepted_at DESC, uuid DESC",
		values[0], values[1], values[2], from, page.After.UUID.String())
}

// Ended lists the orders that ended, by a result or by hand, from a time to before
// another, in the order of their ends, like [SQLStore.SessionOrders].
func (s *SQLStore) Ended(ctx context.Context, from, to time.Time, page OrderPage) ([]Order, error) {
	first := max(from.UnixMilli(), page.After.FinishedAt.UnixMilli())
	return s.list(ctx, "ended orders", page.Limit,
		"WHERE finished_at >= $1 AND finished_at < $2 AND (finished_at <> $3 OR uuid > $4) ORDER BY finished_at, uuid",
		first, to.UnixMilli(), page.After.FinishedAt.UnixMilli(), page.After.UUID.String())
}

// Waiting lists the orders of a direction that were accepted before a time and have no
// result, oldest first, like [SQLStore.SessionOrders]. Redelivery can take 12 hours
// (interface 8). Check mints first: they have taken assets, but an unfinished burn has
// moved nothing.
func (s *SQLStore) Waiting(ctx context.Context, d Direction, before time.Time, page OrderPage) ([]Order, error) {
	if err := requireDirection(d); err != nil {
		return nil, err
	}
	from := page.After.AcceptedAt.UnixMilli()
	return s.list(ctx, "waiting orders", page.Limit,
		whereWaiting+" AND accepted_at >= $3 AND (accepted_at > $3 OR uuid > $4) ORDER BY accepted_at, uuid",
		string(d), before.UnixMilli(), from, page.After.UUID.String())
}

const whereWaiting = "WHERE state = 'accepted' AND direction = $1 AND accepted_at < $2"

func requireDirection(d Direction) error {
	if d != Mint && d != Burn {
		return invalid("direction", "must be Mint or Burn")
	}
	return nil
}

// CountWaiting counts the orders that [SQLStore.Waiting] lists, and returns when the
// oldest was accepted, or the zero time.
func (s *SQLStore) CountWaiting(ctx context.Context, d Direction, before time.Time) (n int, oldest time.Time, err error) {
	if err := requireDirection(d); err != nil {
		return 0, time.Time{}, err
	}
	var first sql.NullInt64
	query, args := s.bind("SELECT COUNT(*), MIN(accepted_at) FROM ramp_orders "+whereWaiting, string(d), before.UnixMilli())
	if err := s.config.DB.QueryRowContext(ctx, query, args...).Scan(&n, &first); err != nil {
		return 0, time.Time{}, fmt.Errorf("ramp: count waiting orders: %w", err)
	}
	if first.Valid {
		oldest = time.UnixMilli(first.Int64).UTC()
	}
	return n, oldest, nil
}

// list returns the orders of a page.
func (s *SQLStore) list(ctx context.Context, what string, limit int, where string, args ...any) (orders []Order, err error) {
	if limit < 0 {
		return nil, invalid("OrderPage.Limit", "must not be negative")
	}
	query, args := s.bind(selectOrders+where+" LIMIT "+strconv.Itoa(cmp.Or(limit, 100)), args...)
	rows, err := s.config.DB.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("ramp: %s: %w", what, err)
	}
	defer rows.Close()
	var damaged error
	for rows.Next() {
		row, err := readOrder(rows, nil, Intent{})
		if err != nil {
			damaged = errors.Join(damaged, fmt.Errorf("ramp: %s: %w", what, err))
		}
		if row != nil {
			orders = append(orders, row.Order)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("ramp: %s: %w", what, err)
	}
	return orders, damaged
}

const (
	maxDeleted    = 1000
	minDeletedAge = 7 * 24 * time.Hour
)

// DeleteFinished deletes up to 1,000 orders of a direction that were finished before a
// time, which must be at least 7 days ago, and returns how many. Call it until that is 0.
// No other function needs the DELETE privilege.
//
// A deleted order is unknown: a result for it is answered with 500, and the same validate
// call opens it anew. If somebody who has recorded both calls of a burn repeats them, it
// is granted again. So delete burns only after the key of their time was removed from
// [HandlerConfig].Key.
func (s *SQLStore) DeleteFinished(ctx context.Context, d Direction, before time.Time) (int, error) {
	if err := requireDirection(d); err != nil {
		return 0, err
	}
	if time.Since(before) < minDeletedAge {
		return 0, invalid("before", "must be at least 7 days ago")
	}
	var old []Order
	var err error
	// One by one, so that every planner uses the index.
	for _, state := range []OrderState{OrderSucceeded, OrderFailed, OrderAbandoned} {
		old, err = s.list(ctx, "delete finished orders", maxDeleted,
			"WHERE state = $1 AND direction = $2 AND accepted_at < $3 AND finished_at < $3 ORDER BY accepted_at",
			string(state), string(d), before.UnixMilli())
		if len(old) > 0 || err != nil {
			break
		}
	}
	if len(old) == 0 { // otherwise err names damaged rows, which are deleted too
		return 0, err
	}
	var ids []any
	for _, o := range old {
		ids = append(ids, o.UUID.String())
	}
	// By primary key, so that InnoDB does not lock the gaps where new orders are
	// inserted.
	marks := "$1"
	for n := range ids[1:] {
		marks += ", $" + strconv.Itoa(n+2)
	}
	query, args := s.bind("DELETE FROM ramp_orders WHERE state <> 'accepted' AND uuid IN ("+marks+")", ids...)
	return s.change(ctx, "delete finished orders", query, args)
}

// EraseSession replaces the session and the user address of a session's orders that were
// finished before a time, which must be at least 7 days ago, by random ones, and returns
// how many orders it changed. Amounts and transaction hashes are kept, so the books stay
// complete; on the chain, a hash leads to the wallet. A later delivery for such an order
// is a conflict. Waiting orders keep their session: call EraseSession again after they
// have ended.
func (s *SQLStore) EraseSession(ctx context.Context, sessionID string, before time.Time) (int, error) {
	sessionID = strings.TrimSpace(sessionID)
	var p problems
	p.requireStorable(sessionID, "session_id", maxOrderText)
	if time.Since(before) < minDeletedAge {
		p.add("before", "must be at least 7 days ago")
	}
	if err := p.err(); err != nil {
		return 0, err
	}
	erased := "erased-" + rand.Text()
	query, args := s.bind("UPDATE ramp_orders SET session_id = $1, user_address = $2"+
		" WHERE session_id = $3 AND state <> 'accepted' AND finished_at < $4",
		erased, erased, sessionID, before.UnixMilli())
	return s.change(ctx, "erase a session", query, args)
}

// change runs a statement and returns the number of its rows.
func (s *SQLStore) change(ctx context.Context, what, query string, args []any) (int, error) {
	n, err := affected(s.config.DB.ExecContext(ctx, query, args...))
	if err != nil {
		return 0, fmt.Errorf("ramp: %s: %w", what, err)
	}
	return int(n), nil
}

// affected returns the number of rows that a statement has changed.
func affected(done sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}
