package ramp

import (
	"context"
	"crypto/rand"
	"database/sql"
	"database/sql/driver"
	_ "embed" // for the schema files
	"encoding/hex"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/google/uuid"
)

// Dialect is a kind of SQL database.
type Dialect int

// The dialects.
const (
	PostgreSQL Dialect = iota + 1 // PostgreSQL 9.5 or newer
	MySQL                         // MySQL 8.0 or newer, or MariaDB 10.5 or newer; with InnoDB
	SQLite                        // SQLite 3.37 or newer
)

// String returns the name of the database, such as "MySQL".
func (d Dialect) String() string {
	switch d {
	case PostgreSQL:
		return "PostgreSQL"
	case MySQL:
		return "MySQL"
	case SQLite:
		return "SQLite"
	default:
		return "unknown dialect"
	}
}

var (
	//go:embed schema/postgresql.sql
	schemaPostgreSQL string
	//go:embed schema/mysql.sql
	schemaMySQL string
	//go:embed schema/sqlite.sql
	schemaSQLite string
)

// Schema returns the statements that create the table of a [SQLStore], for your
// migrations. The module's directory schema has them as files too. It is empty for
// an unknown dialect.
func (d Dialect) Schema() string {
	switch d {
	case PostgreSQL:
		return schemaPostgreSQL
	case MySQL:
		return schemaMySQL
	case SQLite:
		return schemaSQLite
	default:
		return ""
	}
}

// SQLStore is a [Store] on database/sql: it stores each step of an order and
// applies its effect in one transaction of one database. Any number of processes on
// any number of machines can share the database.
//
// The table is that of [Dialect.Schema]; the store never creates it. Any isolation
// level works. Above READ COMMITTED, the database itself may abort a transaction
// that raced another.
//
// On MySQL, a session ID, project ID, user address or reason with a character above
// U+FFFF is rejected, because MySQL's charset utf8 cannot store it. The error is an
// [*InvalidError], and for a validate call a [*Refusal] with HTTP 400.
//
// By default the store retries nothing. If the database aborts a transaction, or
// the connection breaks, the call fails with HTTP 500, and either everything was
// stored or nothing. A repeat of the call finds out which. [SQLStoreConfig].Retries
// retries aborted transactions.
type SQLStore struct {
	config SQLStoreConfig

	insert, lock, end string
}

// SQLStoreConfig configures a [SQLStore]. DB, Dialect and Apply are required. Every
// other field may be zero, which means its default.
type SQLStoreConfig struct {
	// DB holds the orders and the game's assets, and has the table of
	// [Dialect.Schema]. Required.
	DB *sql.DB

	// Dialect is [PostgreSQL], [MySQL] (also for MariaDB) or [SQLite]. Required.
	Dialect Dialect

	// Apply applies the effect of a step in the transaction that records the step:
	// both are committed, or neither. It must use tx for every statement; the
	// database handle would commit on its own, and waits forever if tx holds the
	// only connection. Apply must return every error of tx and must not continue
	// after one, because the database may have rolled back the whole transaction.
	// If it did, Update commits nothing, and the call is answered with 500.
	// Required.
	//
	// Apply is never called for a repeat. Exactly one of its calls for a step is
	// committed. After a rollback it is called again, by a later delivery or at
	// once if Retries is set, so it must change nothing outside of tx. It should
	// always lock rows in the same order, such as by asset ID.
	//
	// The state of step.Order tells the steps apart. When an order was just
	// accepted, Apply may decline it with [Reject]. It must check what nothing else
	// checks: that the intent names the game's own token at the rate that the game
	// offers, that a mint takes no more than the player has, and that a burn, whose
	// effect is Nothing here, can be granted later. When an order ends, nothing can
	// be declined: after an error the order stays unchanged, and the service
	// redelivers unless the error is [Permanent].
	//
	// step.Order.SessionID says whose assets change. A result can come 12 hours
	// after its validate call, so sessions must be known for longer than their
	// tokens are valid.
	Apply func(ctx context.Context, tx *sql.Tx, step Step) error

	// TxOptions are the options of transactions. It is copied. By default those of
	// the driver and the database apply; no isolation level is required.
	TxOptions *sql.TxOptions

	// Retries is how often Update retries a transaction, including Apply, after an
	// error that Retryable accepts. Otherwise a deadlock makes a player wait 5
	// minutes for the next delivery. The delays are random: up to 10 ms before the
	// first retry, twice that before the next, and so on up to 200 ms. Update stops
	// when the context ends. UpdateTx never retries. The default is none.
	Retries int

	// Retryable reports whether an error means that the database aborted a
	// transaction that raced another: SQLSTATE 40001 or 40P01 of PostgreSQL, error
	// 1213 of MySQL, SQLITE_BUSY. It must report false for every other error, above
	// all for a broken connection, because a commit whose answer was lost may have
	// succeeded. docs/orders.md has one to copy. Required if Retries is set, and
	// forbidden otherwise.
	Retryable func(err error) bool
}

// NewSQLStore returns a store in a database. The error is an [*InvalidError] that
// lists every missing or wrong field of c.
func NewSQLStore(c SQLStoreConfig) (*SQLStore, error) {
	var p problems
	p.require(c.DB != nil, "SQLStoreConfig.DB")
	if c.Dialect.Schema() == "" {
		p.add("SQLStoreConfig.Dialect", "is required and must be PostgreSQL, MySQL or SQLite")
	}
	p.require(c.Apply != nil, "SQLStoreConfig.Apply")
	switch {
	case c.Retries < 0:
		p.add("SQLStoreConfig.Retries", "must not be negative")
	case c.Retries > 0 && c.Retryable == nil:
		p.add("SQLStoreConfig.Retryable", "is required if Retries is set")
	case c.Retries == 0 && c.Retryable != nil:
		p.add("SQLStoreConfig.Retries", "is required if Retryable is set")
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	if c.TxOptions != nil {
		begin := *c.TxOptions
		c.TxOptions = &begin
	}
	const (
		insert = "INSERT INTO ramp_orders (direction, " + orderColumns + ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, '', '', ?, "
		upsert = ") ON CONFLICT (uuid) DO UPDATE SET claim = ramp_orders.claim RETURNING " + orderColumns
	)
	s := &SQLStore{
		config: c,
		lock:   selectOrders + "WHERE uuid = ? FOR UPDATE",
		end:    "UPDATE ramp_orders SET claim = ?, state = ?, tx_hash = ?, reason = ?, finished_at = ? WHERE uuid = ? AND state = ?",
	}
	switch c.Dialect {
	case PostgreSQL:
		// DEFAULT is NULL here. SQLite rejects it, so that a wrong dialect fails at
		// the first order and not at its result.
		s.insert = insert + "DEFAULT" + upsert
		for _, statement := range []*string{&s.insert, &s.lock, &s.end} {
			*statement = numberPlaceholders(*statement)
		}
	case MySQL:
		// Not INSERT IGNORE, which turns other errors into warnings, and locks an
		// existing row so weakly that two repeats can deadlock.
		s.insert = insert + "NULL) ON DUPLICATE KEY UPDATE uuid = ramp_orders.uuid"
	case SQLite:
		s.insert = insert + "NULL" + upsert
		// SQLite has no FOR UPDATE. A write takes its only lock.
		s.lock = "UPDATE ramp_orders SET claim = claim WHERE uuid = ? RETURNING " + orderColumns
	}
	return s, nil
}

// orderColumns are the columns that readOrder reads. The direction, which follows
// from the intent, is a column for lookups only.
const (
	orderColumns = "uuid, claim, state, project_id, session_id, user_address, digest, intent, tx_hash, reason, accepted_at, finished_at"
	selectOrders = "SELECT " + orderColumns + " FROM ramp_orders "
)

// numberPlaceholders replaces ? by $1, $2 and so on.
func numberPlaceholders(statement string) string {
	var b strings.Builder
	for n, part := range strings.Split(statement, "?") {
		if n > 0 {
			b.WriteString("$" + strconv.Itoa(n))
		}
		b.WriteString(part)
	}
	return b.String()
}

// Update implements [Store] with one transaction per step. After an error of the
// commit, the step may or may not be stored, because the answer may have been lost.
// If it is, a repeat of the call returns it as a repeat.
func (s *SQLStore) Update(ctx context.Context, id uuid.UUID, next Transition) (Step, error) {
	opened, err := s.openingStep(next)
	if err != nil {
		return Step{}, err
	}
	for n := 0; ; n++ {
		step, err := s.transact(ctx, id, opened, next)
		if err == nil || n == s.config.Retries || !s.retryable(err) || !wait(ctx, n) {
			return step, err
		}
	}
}

// transact makes one attempt of Update. opened is the result of openingStep.
func (s *SQLStore) transact(ctx context.Context, id uuid.UUID, opened *Step, next Transition) (Step, error) {
	t, err := s.open(ctx)
	if err != nil {
		return Step{}, fmt.Errorf("ramp: begin: %w", s.withDialectHint(err))
	}
	defer t.close(ctx) // rolls back unless committed
	step, claim, err := s.update(ctx, t.Tx, id, opened, next)
	if err != nil || !step.New {
		return step, err
	}
	if err := s.apply(ctx, t.Tx, step); err != nil {
		return Step{}, err
	}
	if err := ctx.Err(); err != nil { // the error of tx would not name the cause
		return Step{}, fmt.Errorf("ramp: order %s: not committed: %w", id, err)
	}
	// Check only the claim, which differs for every step. The state may be the same
	// if another delivery has finished the order meanwhile.
	check, _ := s.bind("(SELECT claim FROM ramp_orders WHERE uuid = ?) = ?", id.String(), claim)
	if err := t.commit(ctx, check); err != nil {
		return Step{}, fmt.Errorf("ramp: order %s: commit: %w", id, err)
	}
	return step, nil
}

// retryable calls Retryable, except for a broken connection: if it broke during the
// commit, the step may be stored.
func (s *SQLStore) retryable(err error) bool {
	return s.config.Retryable != nil && !errors.Is(err, driver.ErrBadConn) && s.config.Retryable(err)
}

// wait waits after attempt n, and reports whether to make another.
func wait(ctx context.Context, n int) bool {
	const minDelay, maxDelay = 10 * time.Millisecond, 200 * time.Millisecond
	timer := time.NewTimer(mathrand.N(min(maxDelay, minDelay<<min(n, 10))))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// UpdateTx takes a step in the caller's transaction, together with the caller's own
// statements. It does not call Apply. If the step is New, apply step.Effect in tx,
// and then commit. After any error, roll back. A rollback of a step that opened an
// order leaves no row.
//
// Roll back after an error of any statement in tx, even an unimportant one. On
// MySQL, MariaDB and SQLite, some errors, such as a deadlock, roll back the whole
// transaction at once; later statements then commit one by one, and COMMIT may
// still succeed. Update guards against this. UpdateTx cannot, because the
// transaction is the caller's.
//
// To avoid deadlocks, call UpdateTx first in a transaction, and then lock your own
// rows, always in the same order. On SQLite this also makes the transaction a write
// transaction from its start. One that has read before fails with SQLITE_BUSY if
// another has written since, unless it began as IMMEDIATE. On MySQL, end the
// transaction soon after [ErrOrderUnknown], because the gap for the order stays
// locked until then.
func (s *SQLStore) UpdateTx(ctx context.Context, tx *sql.Tx, id uuid.UUID, next Transition) (Step, error) {
	opened, err := s.openingStep(next)
	if err != nil {
		return Step{}, err
	}
	step, _, err := s.update(ctx, tx, id, opened, next)
	return step, err
}

// openingStep returns the step that opens an order, or nil if next needs a stored
// one. It rejects what the database may not be able to store, because a driver's
// error could quote it. That is an error of the call, so it is a [*Refusal].
func (s *SQLStore) openingStep(next Transition) (*Step, error) {
	opened, err := next(nil)
	switch {
	case errors.Is(err, ErrOrderUnknown):
		return nil, nil
	case err != nil:
		return nil, err
	}
	var p problems
	if s.config.Dialect == MySQL {
		p.requireBMP(opened.Order.SessionID, "session_id")
		p.requireBMP(opened.Order.UserAddress, "user_address")
		p.requireBMP(opened.Order.ProjectID, "project_id")
	}
	if err := p.err(); err != nil {
		return nil, refusalOf(err)
	}
	return &opened, nil
}

// requireBMP rejects characters that MySQL's charset utf8 does not have.
func (p *problems) requireBMP(text, path string) {
	if strings.ContainsFunc(text, func(r rune) bool { return r > 0xFFFF }) {
		p.add(path, "must not contain a character above U+FFFF, because MySQL's charset utf8 has none")
	}
}

// update takes a step in a transaction. opened is the result of openingStep. claim
// is what a new step wrote into its row.
func (s *SQLStore) update(ctx context.Context, tx *sql.Tx, id uuid.UUID, opened *Step, next Transition) (step Step, claim string, err error) {
	claim = rand.Text()
	var row *orderRow
	if opened == nil {
		row, err = s.selectForUpdate(ctx, tx, id)
		if errors.Is(err, sql.ErrNoRows) {
			_, err = next(nil)
		}
	} else {
		row, err = s.insertOrder(ctx, tx, &opened.Order, claim)
	}
	if err != nil {
		return Step{}, "", err
	}
	// Compare a row that this call inserted, too: a database that is not strict may
	// have truncated values. Tell whose row it is by its claim, because the number
	// of rows that an insert affected depends on the settings of a driver.
	step, err = next(&row.Order)
	switch {
	case err != nil:
		return Step{}, "", err
	case row.claim == claim:
		return Step{Order: row.Order, Effect: opened.Effect, New: true}, claim, nil
	case !step.New:
		return step, "", nil
	}
	if s.config.Dialect == MySQL {
		var p problems
		p.requireBMP(step.Order.Reason, "reason")
		if err := p.err(); err != nil {
			return Step{}, "", err
		}
	}
	if err := s.endOrder(ctx, tx, &row.Order, &step.Order, claim); err != nil {
		return Step{}, "", err
	}
	return step, claim, nil
}

// insertOrder inserts an order unless it exists, and returns its locked row. It
// inserts before it locks, because the lock of a missing row is a gap lock, in
// which two new orders would deadlock.
func (s *SQLStore) insertOrder(ctx context.Context, tx *sql.Tx, o *Order, claim string) (*orderRow, error) {
	intent, err := marshal(o.Intent)
	if err != nil {
		return nil, fmt.Errorf("ramp: order %s: %w", o.UUID, err)
	}
	insert, args := s.bind(s.insert, o.Direction.String(), o.UUID.String(), claim, string(o.State), o.ProjectID, o.SessionID,
		o.UserAddress, o.Digest.String(), ascii(intent), o.AcceptedAt.UnixMilli())
	var row *orderRow
	if s.config.Dialect == MySQL {
		_, err = tx.ExecContext(ctx, insert, args...)
	} else {
		row, err = readOrder(tx.QueryRowContext(ctx, insert, args...))
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("ramp: order %s: insert: %w", o.UUID, s.withDialectHint(err))
	case row == nil:
		return s.selectForUpdate(ctx, tx, o.UUID)
	default:
		return row, nil
	}
}

// endOrder stores the end of an order that the transaction has locked.
func (s *SQLStore) endOrder(ctx context.Context, tx *sql.Tx, stored, o *Order, claim string) error {
	end, args := s.bind(s.end, claim, string(o.State), o.TxHash, o.Reason, o.FinishedAt.UnixMilli(),
		stored.UUID.String(), string(stored.State))
	done, err := tx.ExecContext(ctx, end, args...)
	if err != nil {
		return fmt.Errorf("ramp: order %s: update: %w", stored.UUID, err)
	}
	n, err := done.RowsAffected()
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
	pool := s.config.DB.Stats()
	gaveUp := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	if gaveUp && pool.WaitCount > waits {
		err = fmt.Errorf("%w; meanwhile all %d connection(s) of the pool were in use: Apply must use tx, because the database handle may wait for the connection of tx", err, pool.MaxOpenConnections)
	}
	return err
}

var errRolledBack = errors.New("a statement in Apply failed, and the database rolled back the whole transaction, " +
	"but Apply ignored the error; it must return every error of tx")

// bind returns a statement and its arguments as they are sent. For MySQL it writes
// the arguments into the statement, because with arguments the driver would prepare
// the statement first, in another round trip.
func (s *SQLStore) bind(statement string, args ...any) (string, []any) {
	if s.config.Dialect != MySQL {
		return statement, args
	}
	var b strings.Builder
	for n, part := range strings.Split(statement, "?") {
		if n > 0 {
			b.WriteString(literal(args[n-1]))
		}
		b.WriteString(part)
	}
	return b.String(), nil
}

// literal writes a value for MySQL. Text with anything but letters, digits and
// dashes is written in hex, which has the same meaning under every sql_mode and
// character set.
func literal(value any) string {
	text, ok := value.(string)
	if !ok {
		return fmt.Sprintf("%d", value)
	}
	const safe = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	if strings.Trim(text, safe) != "" {
		return "_utf8mb4 X'" + hex.EncodeToString([]byte(text)) + "'"
	}
	return "'" + text + "'"
}

// ascii returns JSON with every non-ASCII character escaped, so that a database can
// store it whatever its character set. Such characters occur in strings only.
// Invalid UTF-8 becomes U+FFFD.
func ascii(text []byte) string {
	var b strings.Builder
	b.Grow(len(text))
	for _, r := range string(text) {
		switch {
		case r <= unicode.MaxASCII:
			b.WriteByte(byte(r))
		case r <= 0xFFFF:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		}
	}
	return b.String()
}

// withDialectHint adds the likely cause to an error of a database that does not
// understand the statements of the dialect. It checks the text, because every
// driver has its own error types.
func (s *SQLStore) withDialectHint(err error) error {
	text := strings.ToLower(err.Error())
	for _, sign := range []string{
		"syntax",
		"'$1'", "variable: $", // MySQL, of PostgreSQL's placeholders
		`"autocommit"`, // PostgreSQL, of MySQL's setting
	} {
		if strings.Contains(text, sign) {
			return fmt.Errorf("%w; the dialect is %s: check that the database is too", err, s.config.Dialect)
		}
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
	row, err := readOrder(tx.QueryRowContext(ctx, query, args...))
	if err != nil {
		return nil, fmt.Errorf("ramp: order %s: %w", id, s.withDialectHint(err))
	}
	return row, nil
}

// readOrder reads a row. If it is not a valid order, readOrder returns what it
// could read and the error. If it cannot be scanned, readOrder returns nil.
func readOrder(from interface{ Scan(...any) error }) (*orderRow, error) {
	var (
		row            orderRow
		digest, intent string
		acceptedAt     int64
		finishedAt     sql.NullInt64
	)
	err := from.Scan(&row.UUID, &row.claim, (*string)(&row.State), &row.ProjectID, &row.SessionID, &row.UserAddress,
		&digest, &intent, &row.TxHash, &row.Reason, &acceptedAt, &finishedAt)
	if err != nil {
		return nil, err
	}
	row.AcceptedAt = time.UnixMilli(acceptedAt).UTC()
	if finishedAt.Valid {
		row.FinishedAt = time.UnixMilli(finishedAt.Int64).UTC()
	}
	if row.Digest, err = ParseDigest(digest); err == nil {
		err = row.Intent.UnmarshalJSON([]byte(intent)) // json.Unmarshal would scan the text twice more
	}
	if err == nil {
		err = row.derive()
	}
	if err != nil { // not wrapped: it is not an error of the call
		row.Digest, row.Intent, row.Direction, row.Assets = Digest{}, Intent{}, 0, nil
		return &row, fmt.Errorf("the value stored under %s is not an order: %v", row.UUID, err)
	}
	return &row, nil
}
