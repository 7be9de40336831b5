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
	PostgreSQL Dialect = iota + 1 // 9.5 or newer
	MySQL                         // MySQL 8.0 or newer, MariaDB 10.5 or newer; on InnoDB
	SQLite                        // 3.37 or newer
)

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
// migrations; the module has them as files too, in the directory schema. It is
// empty for an unknown dialect.
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

// SQLStore is a [Store] on database/sql: each step of an order and its effect on
// the game's assets are one transaction of one database. Any number of processes
// on any number of machines may share the database.
//
// The table is that of [Dialect.Schema], which the store never creates. The
// isolation level may be any; above READ COMMITTED the database itself may end a
// transaction that raced another.
//
// On MySQL, a session ID, project ID, user address or reason with a character
// above U+FFFF is refused, because MySQL's charset utf8 has none. The error is an
// [*InvalidError], and for a validate call a [*Refusal] with HTTP 400.
//
// By default the store repeats nothing. A transaction that the database ended,
// because it raced another or the connection broke, is an error like any other:
// HTTP 500, nothing or everything was done, and a repeat of the call finds out
// which. [SQLStoreConfig].Retries repeats the ones that raced.
type SQLStore struct {
	config SQLStoreConfig

	insert, lock, end string
}

// SQLStoreConfig configures a [SQLStore]. DB, Dialect and Apply are required.
type SQLStoreConfig struct {
	// DB holds the orders and what they move. Its tables include that of
	// [Dialect.Schema]. Required.
	DB *sql.DB

	// Dialect is [PostgreSQL], [MySQL] (for MariaDB too) or [SQLite]. Required.
	Dialect Dialect

	// Apply brings about the effect of a step, within the transaction that
	// records it: both are committed, or neither. It must return every error of
	// tx, and must not continue after one, not even where the statement does
	// not matter: the database may have rolled back the whole transaction. If
	// it did, Update commits nothing, and the call is answered with 500. Apply
	// must use tx for every statement. The database handle would commit them on
	// its own, and waits forever if tx holds the only connection. Required.
	//
	// Apply is never called for a repeat. Exactly one of its calls for a step is
	// committed; after a rollback it is called again, by a later delivery or at
	// once if Retries is set. So it must change nothing outside of tx. It must
	// always lock rows in the same order, such as by asset ID.
	//
	// The state of step.Order tells the steps apart. When an order was just
	// accepted, Apply may decline it, with [Reject], and must check what nobody
	// else does: that the intent names the game's own token at the rate that
	// the game offers, that a mint takes no more than the player has, and that
	// a burn, whose effect is Nothing here, can be granted later. When the order
	// ends, there is nothing to decline: an error leaves it as it was, and the
	// service delivers again, unless the error is [Permanent].
	//
	// step.Order.SessionID says whose assets move. A result can come 12 hours
	// after its validate call, so a session must be known for longer than its
	// token is good.
	Apply func(ctx context.Context, tx *sql.Tx, step Step) error

	// TxOptions sets how transactions begin. It is copied. No isolation level
	// is needed. The default is that of the driver and the database.
	TxOptions *sql.TxOptions

	// Retries is how often Update repeats a transaction, Apply included, that
	// failed with an error that Retryable accepts. Without it, a deadlock makes
	// a player wait for the next delivery, which takes 5 minutes. The delays are
	// random and short: up to 10 ms before the first repeat, twice that before
	// the next, and so on up to 200 ms. The end of the context ends the
	// repeats. UpdateTx never repeats. The default is none.
	Retries int

	// Retryable reports whether an error says that the database ended a
	// transaction because it raced another: SQLSTATE 40001 or 40P01 of
	// PostgreSQL, error 1213 of MySQL, SQLITE_BUSY. It must report false for
	// everything else, above all for a connection that broke, because a commit
	// whose answer was lost may have taken place. docs/orders.md has one to
	// copy. Required if Retries is set, and not allowed otherwise.
	Retryable func(err error) bool
}

// NewSQLStore returns the store of a database. The error is an [*InvalidError]
// that lists every field of c that is missing or wrong.
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
		// DEFAULT is NULL here. SQLite does not know it, so that a wrong dialect
		// is found at the first order, and not at its result.
		s.insert = insert + "DEFAULT" + upsert
		for _, statement := range []*string{&s.insert, &s.lock, &s.end} {
			*statement = numbered(*statement)
		}
	case MySQL:
		// Not INSERT IGNORE, which turns other errors into warnings and locks
		// an existing row weakly enough for two repeats to deadlock.
		s.insert = insert + "NULL) ON DUPLICATE KEY UPDATE uuid = ramp_orders.uuid"
	case SQLite:
		s.insert = insert + "NULL" + upsert
		// There is no FOR UPDATE. A write is what takes the one lock there is.
		s.lock = "UPDATE ramp_orders SET claim = claim WHERE uuid = ? RETURNING " + orderColumns
	}
	return s, nil
}

// orderColumns are the columns that readOrder reads. The direction is not among
// them: it follows from the intent, and is a column for look-ups only.
const (
	orderColumns = "uuid, claim, state, project_id, session_id, user_address, digest, intent, tx_hash, reason, accepted_at, finished_at"
	selectOrders = "SELECT " + orderColumns + " FROM ramp_orders "
)

// numbered writes placeholders as $1, $2 and so on.
func numbered(statement string) string {
	var b strings.Builder
	for n, part := range strings.Split(statement, "?") {
		if n > 0 {
			b.WriteString("$" + strconv.Itoa(n))
		}
		b.WriteString(part)
	}
	return b.String()
}

// Update implements [Store]: it takes a step and applies it in one transaction.
// An error of the commit leaves open whether it took place, because the answer
// may have been lost. A repeat of the call finds a step that was committed to be
// a repeat.
func (s *SQLStore) Update(ctx context.Context, id uuid.UUID, next Transition) (Step, error) {
	opened, err := s.first(next)
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

// transact is one attempt of Update. opened is what first returned.
func (s *SQLStore) transact(ctx context.Context, id uuid.UUID, opened *Step, next Transition) (Step, error) {
	t, err := s.open(ctx)
	if err != nil {
		return Step{}, fmt.Errorf("ramp: begin: %w", s.explain(err))
	}
	defer t.close(ctx) // after a commit it rolls nothing back
	step, claim, err := s.update(ctx, t.Tx, id, opened, next)
	if err != nil || !step.New {
		return step, err
	}
	if err := s.apply(ctx, t.Tx, step); err != nil {
		return Step{}, err
	}
	if err := ctx.Err(); err != nil { // which names the cause; the transaction would only say that it is over
		return Step{}, fmt.Errorf("ramp: order %s: not committed: %w", id, err)
	}
	// The claim alone decides: it differs for every step. The state does not, if
	// another delivery has finished the order meanwhile.
	check, _ := s.bind("(SELECT claim FROM ramp_orders WHERE uuid = ?) = ?", id.String(), claim)
	if err := t.commit(ctx, check); err != nil {
		return Step{}, fmt.Errorf("ramp: order %s: commit: %w", id, err)
	}
	return step, nil
}

// retryable asks Retryable, except about a connection that broke: if it did so
// at the commit, the step may have been stored.
func (s *SQLStore) retryable(err error) bool {
	return s.config.Retryable != nil && !errors.Is(err, driver.ErrBadConn) && s.config.Retryable(err)
}

// wait waits before the repeat after attempt n, and reports whether there is to
// be one.
func wait(ctx context.Context, n int) bool {
	const first, most = 10 * time.Millisecond, 200 * time.Millisecond
	timer := time.NewTimer(mathrand.N(min(most, first<<min(n, 10))))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// UpdateTx takes a step in a transaction of the caller's, together with the
// caller's own statements. It does not call Apply: apply step.Effect in tx if
// the step is New, and then commit. After any error, roll back. A rollback of a
// step that opened an order leaves no row.
//
// After an error of any statement in tx, roll back, even where the statement
// does not matter. On MySQL, MariaDB and SQLite, some errors, such as a
// deadlock, roll back the whole transaction at once; later statements then
// commit one by one, and COMMIT may still report success. Update guards against
// this, but UpdateTx cannot, because the transaction is the caller's.
//
// To be free of deadlocks, call UpdateTx first in a transaction, and then lock
// rows of your own, always in the same order. On SQLite that also makes the
// transaction a writing one from its start; one that has read before fails with
// SQLITE_BUSY if another has written since, unless it began as IMMEDIATE. On
// MySQL, end the transaction soon after [ErrOrderUnknown], because the gap where
// the order would be stays locked until then.
func (s *SQLStore) UpdateTx(ctx context.Context, tx *sql.Tx, id uuid.UUID, next Transition) (Step, error) {
	opened, err := s.first(next)
	if err != nil {
		return Step{}, err
	}
	step, _, err := s.update(ctx, tx, id, opened, next)
	return step, err
}

// first returns the step that opens an order, nil if next needs a stored one. It
// refuses what the database may not be able to store, because an error of its
// driver could quote the text. That is the fault of the call, so the error is a
// [*Refusal].
func (s *SQLStore) first(next Transition) (*Step, error) {
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

// requireBMP refuses what MySQL's charset utf8 does not have.
func (p *problems) requireBMP(text, path string) {
	if strings.ContainsFunc(text, func(r rune) bool { return r > 0xFFFF }) {
		p.add(path, "must not contain a character above U+FFFF, because MySQL's charset utf8 has none")
	}
}

// update takes a step in a transaction. opened is what first returned. The claim
// is what a new step wrote into its row.
func (s *SQLStore) update(ctx context.Context, tx *sql.Tx, id uuid.UUID, opened *Step, next Transition) (step Step, claim string, err error) {
	claim = rand.Text()
	var row *orderRow
	if opened == nil {
		row, err = s.locked(ctx, tx, id)
		if errors.Is(err, sql.ErrNoRows) {
			_, err = next(nil)
		}
	} else {
		row, err = s.inserted(ctx, tx, &opened.Order, claim)
	}
	if err != nil {
		return Step{}, "", err
	}
	// A row of our own is compared too: a database that is not strict may have
	// cut what it was given. Whose it is, is read from the row: the number of
	// rows that an insert affected depends on the settings of a driver.
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

// inserted inserts an order unless there is one, and then reads and locks the
// row. It inserts before anything is locked: locks of a missing row are locks of
// a gap, in which two new orders would deadlock.
func (s *SQLStore) inserted(ctx context.Context, tx *sql.Tx, o *Order, claim string) (*orderRow, error) {
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
		return nil, fmt.Errorf("ramp: order %s: insert: %w", o.UUID, s.explain(err))
	case row == nil:
		return s.locked(ctx, tx, o.UUID)
	default:
		return row, nil
	}
}

// endOrder writes the end of an order that the transaction has locked.
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
	if n != 1 { // the claim changes, so that every driver counts the row
		return fmt.Errorf("ramp: order %s: update: the order was finished despite the lock", stored.UUID)
	}
	return nil
}

// apply applies a step. An error names the step and its order.
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
		err = fmt.Errorf("%w; meanwhile, the pool of %d connection(s) had none free: Apply must use tx, because the database handle waits for a connection that tx may hold itself", err, pool.MaxOpenConnections)
	}
	return err
}

var errRolledBack = errors.New("a statement in Apply failed, and the database rolled back the whole transaction, " +
	"but Apply ignored the error; it must return every error of tx")

// bind returns a statement and its arguments as they are sent. For MySQL it
// writes the arguments into the statement, because for any argument the driver
// would first prepare the statement, which is another round trip.
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

// literal writes a value for MySQL. Text that is more than letters, digits and
// dashes is written in hex, which reads the same under every sql_mode and every
// character set of a connection.
func literal(value any) string {
	text, ok := value.(string)
	if !ok {
		return fmt.Sprintf("%d", value)
	}
	const plain = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	if strings.Trim(text, plain) != "" {
		return "_utf8mb4 X'" + hex.EncodeToString([]byte(text)) + "'"
	}
	return "'" + text + "'"
}

// ascii returns a JSON text with everything beyond ASCII escaped, so that any
// database stores it, whatever its character set. Such characters are inside
// strings only; bytes that are not UTF-8 become U+FFFD.
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

// explain adds the likely cause to an error of a database that does not
// understand the statements of the dialect. Every driver has error types of its
// own, so it goes by the text.
func (s *SQLStore) explain(err error) error {
	text := strings.ToLower(err.Error())
	for _, sign := range []string{
		"syntax",
		"'$1'", "variable: $", // MySQL, of PostgreSQL's placeholders
		`"autocommit"`, // PostgreSQL, of MySQL's setting
	} {
		if strings.Contains(text, sign) {
			return fmt.Errorf("%w; the dialect is %s: check that the database is one", err, s.config.Dialect)
		}
	}
	return err
}

// orderRow is a row of the table.
type orderRow struct {
	Order
	claim string
}

// locked reads an order as it was committed last, and keeps it from everyone
// else until the transaction ends. A plain read would not do: under REPEATABLE
// READ it shows MySQL's snapshot, which may be older than the row that the
// insert just met.
func (s *SQLStore) locked(ctx context.Context, tx *sql.Tx, id uuid.UUID) (*orderRow, error) {
	query, args := s.bind(s.lock, id.String())
	row, err := readOrder(tx.QueryRowContext(ctx, query, args...))
	if err != nil {
		return nil, fmt.Errorf("ramp: order %s: %w", id, s.explain(err))
	}
	return row, nil
}

// readOrder reads a row. Of one that is no order it returns what can be read,
// together with the error; of one that cannot be scanned it returns nil.
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
		err = row.Intent.UnmarshalJSON([]byte(intent)) // json.Unmarshal would read the text twice more
	}
	if err == nil {
		err = row.derive()
	}
	if err != nil { // as text: what is wrong here is not wrong in the call
		row.Digest, row.Intent, row.Direction, row.Assets = Digest{}, Intent{}, 0, nil
		return &row, fmt.Errorf("what is stored under %s is no order: %v", row.UUID, err)
	}
	return &row, nil
}
