package ramp

import (
	"context"
	"crypto/rand"
	"database/sql"
	_ "embed" // for the schema files
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Sentinels of [Orders], for [errors.Is]. After any error, roll back.
var (
	// ErrOrderUnknown says that no order has the UUID. A result for one should
	// be asked for again: the database may have been restored, and the order
	// with it may come back.
	ErrOrderUnknown = errors.New("no such order")

	// ErrOrderConflict says that a call contradicts what is stored under its
	// UUID. The error is a [*ConflictError].
	ErrOrderConflict = errors.New("the call contradicts the stored order")

	// ErrOrderFinished says that an order is over, so that it can be neither
	// accepted nor abandoned.
	ErrOrderFinished = errors.New("the order is over")
)

// ConflictError is a call that contradicts what is stored under its UUID. On it
// [errors.Is] finds [ErrOrderConflict].
type ConflictError struct {
	Order Order  // as it is stored, unchanged by the call
	Field string // the field of the call that differs, as the interface writes it: "digest", "intent", "receipt.status", "tx_hash"
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("ramp: order %s (%s): %v: %s differs", e.Order.UUID, e.Order.State, ErrOrderConflict, e.Field)
}

// Unwrap returns [ErrOrderConflict].
func (e *ConflictError) Unwrap() error { return ErrOrderConflict }

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

// Schema returns the statements that create the table of [Orders], for your
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

// OrderState is where an order stands.
type OrderState string

// The states of an order. It begins as OrderAccepted and moves once.
const (
	OrderAccepted  OrderState = "accepted"  // approved at validate; its result has not come
	OrderSucceeded OrderState = "succeeded" // its transaction succeeded
	OrderFailed    OrderState = "failed"    // its transaction failed
	OrderAbandoned OrderState = "abandoned" // a person decided that no result will come
)

// Order is a mint or a burn as it was validated, and what became of it.
type Order struct {
	UUID        uuid.UUID
	State       OrderState
	ProjectID   string
	SessionID   string // whose order it is: the session of the validate call
	UserAddress string
	Digest      Digest
	Intent      Intent

	Direction Direction
	Assets    []AssetAmount // of the game: what a mint takes, what a burn grants; one entry an ID

	TxHash     string    // of the result; empty until it has come, and if it is not 0x and 64 hex digits
	Reason     string    // why a person abandoned the order
	AcceptedAt time.Time // UTC, by the clock of the machine that accepted it
	FinishedAt time.Time // UTC; zero while the order waits
}

// Step is what a call did to an order.
type Step struct {
	Order Order // as it is now

	// Effect is what the step means for the game's assets: bring it about in
	// the same transaction. It is Nothing for a repeat.
	Effect Effect

	// New is false when the call repeats one that was committed before.
	New bool

	claim string // what the step wrote into its row, if it is new
}

// Orders remembers what was validated, so that a mint takes once and a result
// gives once, whoever repeats a call, on however many machines (interface 3, 6
// and 8). It holds no connection: every method works in the transaction of the
// caller, together with the caller's own statements, and leaves it to the
// caller to commit it, or, after any error, to roll it back. It is safe for
// concurrent use.
//
// The table is that of [Dialect.Schema], which Orders never creates. The
// isolation level may be any; above READ COMMITTED the database itself may end
// a transaction that raced another, which then has to be run again. [SQLGame]
// does the work around it for a game on database/sql.
//
// After an error of any statement in the transaction, roll back, even where the
// statement does not matter. On MySQL, MariaDB and SQLite, some errors, such as
// a deadlock, roll back the whole transaction at once; later statements then
// commit one by one, and COMMIT may still report success. SQLGame guards against
// this, but Orders cannot: the transaction is the caller's.
//
// To be free of deadlocks, call Orders first in a transaction, and then lock
// rows of your own, always in the same order. On SQLite that also makes the
// transaction a writing one from its start; one that has read before fails with
// SQLITE_BUSY when another has written since, unless it began as IMMEDIATE.
type Orders struct {
	dialect Dialect

	insert, lock, finish, waiting string
}

// NewOrders returns the orders of a database.
func NewOrders(d Dialect) (*Orders, error) {
	const (
		columns = "uuid, claim, state, project_id, session_id, user_address, digest, intent, tx_hash, reason, accepted_at, finished_at"
		insert  = "INSERT INTO ramp_orders (" + columns + ") VALUES (?, ?, 'accepted', ?, ?, ?, ?, ?, '', '', ?, NULL)"
		read    = "SELECT " + columns + " FROM ramp_orders "
	)
	o := &Orders{
		dialect: d,
		insert:  insert + " ON CONFLICT (uuid) DO NOTHING",
		lock:    read + "WHERE uuid = ? FOR UPDATE",
		finish:  "UPDATE ramp_orders SET claim = ?, state = ?, tx_hash = ?, reason = ?, finished_at = ? WHERE uuid = ? AND state = 'accepted'",
		waiting: read + "WHERE state = 'accepted' AND accepted_at < ? ORDER BY accepted_at, uuid LIMIT ?",
	}
	switch d {
	case PostgreSQL:
		for _, statement := range []*string{&o.insert, &o.lock, &o.finish, &o.waiting} {
			*statement = numbered(*statement)
		}
	case MySQL:
		// Not INSERT IGNORE, which turns other errors into warnings and locks
		// an existing row weakly enough for two repeats to deadlock.
		o.insert = insert + " ON DUPLICATE KEY UPDATE uuid = ramp_orders.uuid"
	case SQLite:
		// There is no FOR UPDATE. A write is what takes the one lock there is.
		o.lock = "UPDATE ramp_orders SET claim = claim WHERE uuid = ? RETURNING " + columns
	default:
		return nil, errors.New("ramp: NewOrders: the dialect is unknown")
	}
	return o, nil
}

// The longest texts that are stored, in bytes: far below the 65,535 of MySQL's
// TEXT, the smallest column of the three schemas.
const (
	maxStoredID     = 1024
	maxStoredReason = 4096
)

// checkStorable adds what would keep a text from being stored. It is found
// before the transaction, because an error of the database may quote the text.
func (o *Orders) checkStorable(p *problems, path, text string, most int) {
	switch {
	case len(text) > most:
		p.add(path, "must be at most %d bytes", most)
	case !utf8.ValidString(text):
		p.add(path, "must be valid UTF-8")
	case strings.ContainsRune(text, 0):
		p.add(path, "must not contain a NUL character")
	case o.dialect == MySQL && strings.ContainsFunc(text, func(r rune) bool { return r > 0xFFFF }):
		p.add(path, "must not contain a character above U+FFFF, because MySQL's charset utf8 has none")
	}
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

// Accept records an order at its validate call (interface 2.5) and pins all
// that it is about. The effect is Take for a mint that is new, and else
// Nothing. The same call again is a repeat that changes nothing, and may be
// signed again. When anything differs, in project, session, user address,
// digest, or what the intent moves, the error is a [*ConflictError]; when the
// order is over, it wraps [ErrOrderFinished]. To decline an order, roll back: no
// row is left.
//
// Session ID, project ID and user address may have at most 1,024 bytes each, and
// nothing that a database cannot store: no invalid UTF-8, no NUL and, on MySQL,
// no character above U+FFFF. Otherwise the error is an [*InvalidError].
func (o *Orders) Accept(ctx context.Context, tx *sql.Tx, s Session, r *ValidateRequest) (Step, error) {
	if s.ID == "" {
		return Step{}, fmt.Errorf("ramp: %w", ErrSessionMissing)
	}
	asked, err := r.Intent.moves()
	if err != nil {
		return Step{}, err
	}
	var p problems
	o.checkStorable(&p, "session_id", s.ID, maxStoredID)
	o.checkStorable(&p, "project_id", r.ProjectID, maxStoredID)
	o.checkStorable(&p, "user_address", r.UserAddress, maxStoredID)
	if err := p.err(); err != nil {
		return Step{}, err
	}
	intent, err := marshal(r.Intent)
	if err != nil {
		return Step{}, fmt.Errorf("ramp: order %s: %w", r.UUID, err)
	}
	// Who wrote the row is read from the row: the number of rows that an insert
	// affected depends on the settings of a driver.
	claim := rand.Text()
	if _, err := tx.ExecContext(ctx, o.insert, r.UUID.String(), claim, r.ProjectID, s.ID,
		r.UserAddress, r.Digest.String(), ascii(intent), time.Now().UnixMilli()); err != nil {
		return Step{}, fmt.Errorf("ramp: order %s: insert: %w", r.UUID, o.explain(err))
	}
	row, err := o.locked(ctx, tx, r.UUID)
	if err != nil {
		return Step{}, err
	}
	// Its own row is compared too: a database that is not strict may have cut
	// what it was given.
	conflict := func(field string) (Step, error) {
		return Step{}, &ConflictError{Order: row.Order, Field: field}
	}
	switch {
	case row.ProjectID != r.ProjectID:
		return conflict("project_id")
	case row.SessionID != s.ID:
		return conflict("session_id")
	case !strings.EqualFold(row.UserAddress, r.UserAddress): // case is a checksum, no difference
		return conflict("user_address")
	case row.Digest != r.Digest:
		return conflict("digest")
	case !sameMoves(row.moves, asked), !slices.Equal(row.Intent.tokens(), r.Intent.tokens()):
		return conflict("intent")
	case row.State != OrderAccepted:
		return Step{}, fmt.Errorf("ramp: order %s (%s): %w", r.UUID, row.State, ErrOrderFinished)
	case row.claim != claim:
		return Step{Order: row.Order}, nil
	}
	effect, err := row.Intent.effect(Take, Nothing)
	return Step{Order: row.Order, Effect: effect, New: true, claim: claim}, err
}

// Finish records the outcome of an order (interface 6). The effect is GiveBack
// for a mint that failed, Grant for a burn that succeeded, and else Nothing. It
// is worked out from what was stored at validate and belongs to the player of
// that call; of the result, only the UUID and the status decide.
//
// The same outcome again is a repeat that changes nothing; so is a failure of
// an order that was abandoned. Whether it names another transaction than
// Order.TxHash is for the caller to look at. Another outcome, another session,
// another quantity of game assets or another token than the stored one is a
// [*ConflictError], which no redelivery can mend. A UUID that is not known wraps [ErrOrderUnknown], which
// one may; on MySQL, end the transaction soon after it, because the gap where
// the order would be stays locked till then.
func (o *Orders) Finish(ctx context.Context, tx *sql.Tx, r *Result) (Step, error) {
	if _, err := r.Effect(); err != nil { // a result without a status has no outcome
		return Step{}, err
	}
	reported, err := r.Intent.moves()
	if err != nil {
		return Step{}, err
	}
	row, err := o.locked(ctx, tx, r.UUID)
	if err != nil {
		return Step{}, err
	}
	outcome := OrderFailed
	if r.Succeeded() {
		outcome = OrderSucceeded
	}
	conflict := func(field string) (Step, error) {
		return Step{}, &ConflictError{Order: row.Order, Field: field}
	}
	switch {
	case r.SessionID != "" && r.SessionID != row.SessionID:
		return conflict("session_id")
	case !sameMoves(row.moves, reported), !sameTokens(&row.Intent, &r.Intent):
		return conflict("intent")
	case row.State == OrderAccepted:
		return o.move(ctx, tx, row, outcome, storedTxHash(r.TxHash), "")
	case row.State == outcome, row.State == OrderAbandoned && outcome == OrderFailed:
		return Step{Order: row.Order}, nil
	default:
		return conflict("receipt.status")
	}
}

// storedTxHash returns the hash if it is one, and else the empty string. The text
// decides nothing, and must not keep a row from being written because of its
// length, its characters, or an index of the studio. 0X counts as 0x, because
// [RPC.Confirm] takes both, and one transaction must not pass for two.
func storedTxHash(reported string) string {
	const digits = 64
	if len(reported) != 2+digits || !strings.EqualFold(reported[:2], "0x") || !isHex(reported[2:]) {
		return ""
	}
	return "0x" + reported[2:]
}

// Abandon ends an order whose result will never come. The effect is GiveBack
// for a mint, and else Nothing. It is a person's decision, and the reason is
// kept: nothing in this package abandons an order by itself, because giving
// back what a silent transaction has turned into tokens would pay twice. A
// result that reports success afterwards is a [*ConflictError]. The reason may
// have at most 4,096 bytes, and the same characters as the texts of Accept.
//
// An order that is abandoned already is a repeat that changes nothing. One that
// has its outcome wraps [ErrOrderFinished], an unknown one [ErrOrderUnknown].
func (o *Orders) Abandon(ctx context.Context, tx *sql.Tx, id uuid.UUID, reason string) (Step, error) {
	if strings.TrimSpace(reason) == "" {
		return Step{}, errors.New("ramp: Abandon: the reason is empty")
	}
	var p problems
	o.checkStorable(&p, "reason", reason, maxStoredReason)
	if err := p.err(); err != nil {
		return Step{}, err
	}
	row, err := o.locked(ctx, tx, id)
	switch {
	case err != nil:
		return Step{}, err
	case row.State == OrderAccepted:
		return o.move(ctx, tx, row, OrderAbandoned, "", reason)
	case row.State == OrderAbandoned:
		return Step{Order: row.Order}, nil
	default:
		return Step{}, fmt.Errorf("ramp: order %s (%s): %w", id, row.State, ErrOrderFinished)
	}
}

// Queryer is a [*sql.DB], [*sql.Conn] or [*sql.Tx].
type Queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Waiting lists orders that were accepted before a time and have no result, the
// oldest first and at most limit of them. A delivery can take 12 hours
// (interface 8). It locks nothing, and what it lists may be over a moment
// later: [Orders.Abandon] looks again. A row that cannot be read does not hide
// the others: they come together with an error that names it.
func (o *Orders) Waiting(ctx context.Context, q Queryer, before time.Time, limit int) (orders []Order, err error) {
	if limit <= 0 {
		return nil, errors.New("ramp: Waiting: the limit must be above 0")
	}
	rows, err := q.QueryContext(ctx, o.waiting, before.UnixMilli(), limit)
	if err != nil {
		return nil, fmt.Errorf("ramp: waiting orders: %w", o.explain(err))
	}
	defer rows.Close()
	var damaged error
	for rows.Next() {
		if row, err := readOrder(rows); err != nil {
			damaged = errors.Join(damaged, fmt.Errorf("ramp: waiting orders: %w", err))
		} else {
			orders = append(orders, row.Order)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("ramp: waiting orders: %w", err)
	}
	return orders, damaged
}

// move ends an order that the transaction has locked.
func (o *Orders) move(ctx context.Context, tx *sql.Tx, row *orderRow, to OrderState, txHash, reason string) (Step, error) {
	now := time.UnixMilli(time.Now().UnixMilli()).UTC() // as it will be read back
	claim := rand.Text()
	done, err := tx.ExecContext(ctx, o.finish, claim, string(to), txHash, reason, now.UnixMilli(), row.UUID.String())
	if err != nil {
		return Step{}, fmt.Errorf("ramp: order %s: update: %w", row.UUID, err)
	}
	n, err := done.RowsAffected()
	if err != nil {
		return Step{}, fmt.Errorf("ramp: order %s: update: %w", row.UUID, err)
	}
	if n != 1 { // the state changes, so that every driver counts the row
		return Step{}, fmt.Errorf("ramp: order %s: update: it was over in spite of its lock", row.UUID)
	}
	onMint, onBurn := GiveBack, Nothing
	if to == OrderSucceeded {
		onMint, onBurn = Nothing, Grant
	}
	effect, err := row.Intent.effect(onMint, onBurn)
	step := Step{Order: row.Order, Effect: effect, New: true, claim: claim}
	step.Order.State, step.Order.TxHash, step.Order.Reason, step.Order.FinishedAt = to, txHash, reason, now
	return step, err
}

// kept returns an error unless the transaction still holds what the new step
// wrote. At a deadlock, MySQL rolls back the whole transaction, which a caller
// who ignores the error does not notice; COMMIT then succeeds. The other
// databases refuse the COMMIT and are not asked.
//
// The claim alone decides: it differs for every step. The state does not, when
// another delivery has finished the order meanwhile.
func (o *Orders) kept(ctx context.Context, tx *sql.Tx, step Step) error {
	if o.dialect != MySQL {
		return nil
	}
	var claim string
	err := tx.QueryRowContext(ctx, withUUID("SELECT claim FROM ramp_orders WHERE uuid = ?", step.Order.UUID)).Scan(&claim)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("ramp: order %s: read before the commit: %w", step.Order.UUID, err)
	}
	if claim == step.claim {
		return nil
	}
	return fmt.Errorf("ramp: order %s: %w", step.Order.UUID, errRolledBack)
}

// withUUID puts a UUID, which is nothing but hex digits and dashes, into a
// statement for MySQL. For an argument, its driver would prepare the statement,
// which is another round trip.
func withUUID(statement string, id uuid.UUID) string {
	return strings.Replace(statement, "?", "'"+id.String()+"'", 1)
}

var errRolledBack = errors.New("a statement in Apply failed, and the database rolled back the whole transaction, " +
	"but Apply ignored the error; it must return every error of tx")

// explain adds the likely cause to an error of a database that does not
// understand the statements of the dialect. Every driver has error types of its
// own, so it goes by the text.
func (o *Orders) explain(err error) error {
	text := strings.ToLower(err.Error())
	for _, sign := range []string{
		"syntax",
		"'$1'", "variable: $", // MySQL, of PostgreSQL's placeholders
		`"autocommit"`, // PostgreSQL, of MySQL's setting
	} {
		if strings.Contains(text, sign) {
			return fmt.Errorf("%w; the dialect is %s: check that the database is one", err, o.dialect)
		}
	}
	return err
}

// orderRow is a row of the table.
type orderRow struct {
	Order
	claim  string
	intent string
	moves  Effect
}

// locked reads an order as it was committed last, and keeps it from everyone
// else until the transaction ends. A plain read would not do: under REPEATABLE
// READ it shows MySQL's snapshot, which may be older than the row that the
// insert just met.
func (o *Orders) locked(ctx context.Context, tx *sql.Tx, id uuid.UUID) (*orderRow, error) {
	query, args := o.lock, []any{id.String()}
	if o.dialect == MySQL {
		query, args = withUUID(query, id), nil
	}
	row, err := readOrder(tx.QueryRowContext(ctx, query, args...))
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrOrderUnknown
	}
	if err != nil {
		return nil, fmt.Errorf("ramp: order %s: %w", id, o.explain(err))
	}
	return row, nil
}

func readOrder(from interface{ Scan(...any) error }) (*orderRow, error) {
	var (
		row        orderRow
		digest     string
		acceptedAt int64
		finishedAt sql.NullInt64
	)
	err := from.Scan(&row.UUID, &row.claim, (*string)(&row.State), &row.ProjectID, &row.SessionID, &row.UserAddress,
		&digest, &row.intent, &row.TxHash, &row.Reason, &acceptedAt, &finishedAt)
	if err != nil {
		return nil, err
	}
	if row.Digest, err = ParseDigest(digest); err == nil {
		err = json.Unmarshal([]byte(row.intent), &row.Intent)
	}
	if err == nil {
		row.moves, err = row.Intent.moves()
	}
	if err != nil { // as text: what is wrong here is not wrong in the call
		return nil, fmt.Errorf("what is stored under %s is no order: %v", row.UUID, err)
	}
	row.Assets, row.Direction = row.moves.Assets, Mint
	if row.moves.Kind == Grant {
		row.Direction = Burn
	}
	row.AcceptedAt = time.UnixMilli(acceptedAt).UTC()
	if finishedAt.Valid {
		row.FinishedAt = time.UnixMilli(finishedAt.Int64).UTC()
	}
	return &row, nil
}

// moves is what the intent is about for the game: Take for a mint, Grant for a
// burn.
func (i *Intent) moves() (Effect, error) { return i.effect(Take, Grant) }

// sameTokens says whether two intents name the same tokens. Quantities are not
// compared: those of a result may be what is left after fees.
func sameTokens(a, b *Intent) bool {
	return slices.EqualFunc(a.tokens(), b.tokens(), func(x, y IntentAsset) bool { return x.Type == y.Type && x.ID == y.ID })
}

// sameMoves compares two results of moves, in whatever order they list assets.
func sameMoves(a, b Effect) bool {
	byID := func(x, y AssetAmount) int { return strings.Compare(x.ID, y.ID) }
	return a.Kind == b.Kind &&
		slices.Equal(slices.SortedFunc(slices.Values(a.Assets), byID), slices.SortedFunc(slices.Values(b.Assets), byID))
}
