// Package rampsql keeps orders in PostgreSQL, MySQL, MariaDB, TiDB or SQLite: it stores each
// step of an order and applies its effect in one transaction of one database. Any number of
// processes on any number of machines can share the database, at any isolation level.
//
// [New] returns the [ramp.Store], [Store.Check] finds out whether the database is fit for it,
// and the other methods look orders up. The text is docs/orders.md and docs/databases.md.
package rampsql

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/invalid"
	"github.com/token-ramp/ramp-go/internal/rollback"
)

// Store is a [ramp.Store] on database/sql. Its tables are those of [Dialect.Schema], which it never
// creates.
//
// If the database aborts a transaction, or the connection breaks, the call fails with HTTP
// 500, and either everything was stored or nothing. A repeat of the call finds out which.
type Store struct {
	config Config
	*dialect
	hooks      commitHooks
	home       home
	own        own
	rehearsals rehearsals
	turns      turns
}

// Config configures a [Store]; zero fields mean their defaults.
type Config struct {
	// DB holds the orders and the game's assets, and has the tables of [Dialect.Schema]. In one
	// process, open at most one Store on a SQLite database, because the Store sets the commit hook.
	// Required.
	DB *sql.DB

	// Dialect is [PostgreSQL], [MySQL] (also for MariaDB and TiDB) or [SQLite]. Required.
	Dialect Dialect

	// Projects are the IDs of the game's projects: the one of its terms, and those that it had before. The
	// Store opens no order of another project, and all its methods but Update leave those of other
	// projects alone, so games can share a database. Without Projects, the orders of every project
	// are listed and counted, and none can be erased or deleted.
	Projects []string

	// Network is that of the terms. The orders of the other network, which a game may keep from before it
	// went live, are left alone in the same way. An order without a network belongs to both.
	Network ramp.Network

	// Apply applies the effect of a step in the transaction that records the step: both are committed,
	// or neither. It must use tx for every statement; the database handle would commit on its own, and
	// waits forever if tx holds the only connection. It must return every error of tx and not continue
	// after one, because the database may have rolled back the whole transaction. It must leave the
	// connection as it was: no USE, SET ROLE or SET, but SET LOCAL on PostgreSQL. Required.
	//
	// Apply is never called for a repeat, nor for a step that is [ramp.Step.Settled]. After a rollback
	// it is called again, at once or by a later delivery, so it must change nothing outside of tx. It
	// should lock rows in a fixed order.
	//
	// A mint may be refused; a grant or a give-back must never fail. When step.Order was just
	// accepted, Apply may [ramp.Reject] it: it must check that a mint takes no more than the player
	// has. When an order ends, hours later, nothing can be rejected: after an error the order stays
	// unchanged, and the service redelivers. So a grant creates a missing row, and reduces a debt.
	// If something does not fit, for example because the inventory is full, the grant puts it where
	// the player can fetch it later.
	//
	// When a burn is accepted, whose effect is Nothing, Apply is called again at once with its
	// grant and step.Rehearsal set, and that call is rolled back to a savepoint. If it returns
	// [ramp.Reject], the burn is declined with that code, and no signature leaves. For a rehearsal,
	// Apply may return nil if it needs step.Evidence, and it must not send, log or count anything.
	// A rehearsal cannot see what changes later, what deferred constraints check, and what another
	// order does. Sequences are not rolled back, and InnoDB keeps its locks until the end.
	//
	// step.Order.SessionID says whose assets change, also 12 hours after the validate call.
	Apply func(ctx context.Context, tx *sql.Tx, step ramp.Step) error

	// Claims, if set, are those of all databases that sell the same tokens. An order then ends by a
	// transaction only if it is the first of all of them to claim it. Without Claims, the same transaction
	// can end one order in each database: somebody with the HMAC key could be paid in each for one burn.
	// Required if another database sells a token of this one.
	Claims *Claims

	// UntouchedTables names tables that no rollback changes, such as those of MyISAM, and to which Apply
	// never writes, nor a trigger or procedure that it calls. Every other such table in the schema of the
	// orders is an error of Check, and of each burn: what is written there when a grant is rehearsed would
	// stay.
	UntouchedTables []string

	// ASCIISessions says that every session ID of the game is of printable ASCII characters. The store then
	// accepts no order of another session, with a [*ramp.InvalidError], and Check does not demand that the
	// database and the connection can hold other characters, as those of latin1 on MySQL cannot.
	ASCIISessions bool

	// TxOptions are the options of transactions. It is copied. No isolation level is required.
	TxOptions *sql.TxOptions

	// Retryable reports whether to retry after an error. Any answer is safe: if the commit had
	// succeeded, the retry finds a repeat. By default a transaction is retried that the database
	// aborted because it raced another or a migration: SQLSTATE 40001, 40P01 or 0A000 of PostgreSQL,
	// error 1213 or 1020 of MySQL and MariaDB.
	Retryable func(err error) bool

	// Logger gets the warnings of Check, about settings with which some orders can fail or be lost. The
	// default is [slog.Default].
	Logger *slog.Logger

	// Retries is how often Update retries a transaction, including Apply, after a random delay: up to
	// 10 ms before the first, twice that before the next, and so on up to 200 ms. The default is 3;
	// -1 means none.
	Retries int
}

// New returns a store in a database. The error is a [*ramp.InvalidError].
func New(c Config) (*Store, error) {
	var p invalid.Fields
	p.Require(c.DB != nil, "Config.DB", "is required")
	p.Require(c.Dialect.known(), "Config.Dialect", dialectRequired)
	p.Require(!slices.Contains(c.Projects, ""), "Config.Projects", "must not have an empty one")
	known := c.Network == "" || c.Network == ramp.Mainnet || c.Network == ramp.Testnet
	p.Require(known, "Config.Network", "must be mainnet or testnet")
	p.Require(c.Apply != nil, "Config.Apply", "is required")
	if c.Claims != nil {
		p.Require(c.Claims.made() == nil, "Config.Claims", "must be made by NewClaims")
		p.Require(c.Network == "" || c.Network == c.Claims.config.Network, "Config.Claims",
			"must be of the same network")
	}
	for n, table := range c.UntouchedTables {
		path := fmt.Sprintf("Config.UntouchedTables[%d]", n)
		p.Require(table != "" && strings.TrimSpace(table) == table, path, "must be the name of a table")
		p.Require(!strings.HasPrefix(table, "ramp_"), path, "must not be a table of the store")
	}
	p.Require(c.TxOptions == nil || !c.TxOptions.ReadOnly, "Config.TxOptions",
		"must not be read-only: each transaction writes an order")
	p.Require(c.Retries >= -1, "Config.Retries", "must be at least -1, which means none")
	if err := p.Err(); err != nil {
		return nil, err
	}
	c.Projects = slices.Clone(c.Projects)
	if c.TxOptions != nil {
		begin := *c.TxOptions
		c.TxOptions = &begin
	}
	if c.Retryable == nil {
		c.Retryable = aborted
	}
	c.Retries = max(0, cmp.Or(c.Retries, 3))
	c.UntouchedTables = slices.Clone(c.UntouchedTables)
	s := &Store{config: c, dialect: c.Dialect.values(), own: own{c.Projects, c.Network}}
	s.rehearsals = rehearsals{dialect: s.dialect, apply: s.apply, untouched: c.UntouchedTables,
		turn: make(chan struct{}, 1)}
	return s, nil
}

// bind returns a statement and its arguments as they are sent.
func (s *Store) bind(statement string, args ...any) (string, []any) {
	if strings.Contains(statement, ours) {
		var condition string
		condition, args = s.own.condition(args)
		statement = strings.ReplaceAll(statement, ours, condition)
	}
	return s.dialect.bind(statement, args...)
}

// made returns an error for a store that New has not made, such as new(Store).
func (s *Store) made() error {
	if s.config.DB == nil {
		return errors.New("ramp: the rampsql.Store was not made by rampsql.New")
	}
	return nil
}

// Update implements [ramp.Store] with one transaction per step. After an error of the
// commit, a repeat of the call finds out whether the step is stored.
func (s *Store) Update(ctx context.Context, id uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	if err := s.made(); err != nil {
		return ramp.Step{}, err
	}
	opened, err := openingStep(next)
	if err == nil && opened.New { // nobody would find it
		if err = s.own.check(&opened.Order); err != nil {
			err = fmt.Errorf("%w: the terms must be for the Projects and the Network of rampsql.Config", err)
		}
	}
	if err != nil {
		return ramp.Step{}, err
	}
	if opened.New && s.config.ASCIISessions && !isASCII(opened.Order.SessionID) {
		return ramp.Step{}, invalid.Field("session_id",
			"must be of printable ASCII characters, as Config.ASCIISessions says")
	}
	claimed := "" // the transaction that the order has claimed
	if s.config.Claims != nil {
		next = onlyClaimed(next, &claimed)
	}
	turns := &callTurns{turns: &s.turns}
	defer turns.end()
	attempt := func() (ramp.Step, error) {
		step, err := s.attempt(ctx, id, &opened, next, turns)
		if lacks := (*unclaimedError)(nil); errors.As(err, &lacks) {
			// Committed before the order ends: two databases have no transaction in common.
			if err := s.claimFor(ctx, lacks); err != nil {
				return ramp.Step{}, err
			}
			claimed = lacks.txHash
			step, err = s.attempt(ctx, id, &opened, next, turns)
		}
		return step, err
	}
	err = turns.take(ctx, orderKey(id))
	if err == nil && opened.New {
		err = turns.takeSession(ctx, opened.Order.SessionID)
	}
	if err != nil {
		return ramp.Step{}, fmt.Errorf("ramp: order %s: %w", id, err)
	}
	for n := 0; ; n++ {
		step, err := attempt()
		if busy := (*busyError)(nil); errors.As(err, &busy) {
			if err := turns.takeSession(ctx, busy.session); err != nil {
				return ramp.Step{}, fmt.Errorf("ramp: order %s: %w", id, err)
			}
			step, err = attempt()
		}
		if kept := (*keptError)(nil); errors.As(err, &kept) && kept.grant.Order.UUID == id {
			return ramp.Step{}, s.abandonKept(ctx, id, kept, turns)
		}
		err = s.explain(ctx, err)
		again := errors.Is(err, errElsewhere) || err != nil && s.config.Retryable(err)
		if !again || n == s.config.Retries || !wait(ctx, n) {
			return step, err
		}
	}
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}

// attempt makes one attempt of Update, and in a test one before it that it rolls back.
func (s *Store) attempt(
	ctx context.Context, id uuid.UUID, opened *ramp.Step, next ramp.Transition, turns *callTurns,
) (step ramp.Step, err error) {
	if rollback.Asked(ctx) {
		err = s.rehearseStep(ctx, id, opened, next, turns)
	}
	if err == nil {
		step, _, err = s.transact(ctx, id, opened, next, turns, true)
	}
	return step, err
}

// rehearseStep makes an attempt of Update that it rolls back, and returns an error if Apply has
// committed it.
func (s *Store) rehearseStep(
	ctx context.Context, id uuid.UUID, opened *ramp.Step, next ramp.Transition, turns *callTurns,
) error {
	_, claim, err := s.transact(ctx, id, opened, next, turns, false)
	if err != nil || claim == "" {
		return err
	}
	query, args := s.bind("SELECT COUNT(*) FROM ramp_orders WHERE uuid = $1 AND claim = $2",
		id.String(), claim)
	var rows int
	err = s.config.DB.QueryRowContext(ctx, query, args...).Scan(&rows)
	if rows > 0 {
		err = errEnded
	}
	if err != nil {
		return fmt.Errorf("ramp: order %s: after a trial of Apply, which was rolled back: %w", id, err)
	}
	return nil
}

// transact makes one attempt of Update, and rolls it back unless commit is set. opened is
// the result of openingStep. claim is what a new step wrote.
func (s *Store) transact(
	ctx context.Context, id uuid.UUID, opened *ramp.Step, next ramp.Transition, turns *callTurns, commit bool,
) (step ramp.Step, claim string, err error) {
	if _, burn := opened.Rehearse(); burn {
		end, err := s.rehearsals.begin(ctx)
		if err != nil {
			return ramp.Step{}, "", fmt.Errorf("ramp: order %s: %w", id, err)
		}
		defer end()
	}
	t, err := s.begin(ctx, pool{s.config.DB, s.config.TxOptions, &s.hooks})
	if err != nil {
		return ramp.Step{}, "", fmt.Errorf("ramp: begin: %w", err)
	}
	ours := true // whether the transaction is ours to end
	defer func() {
		// Rolls back unless committed. The end of ctx ends the transaction, too.
		if before := t.close(ctx); before != nil && ours && ctx.Err() == nil {
			step, err = ramp.Step{}, endedError(id, before, err)
		}
	}()
	var before map[string]string
	if rollback.Asked(ctx) {
		if before, err = sessionOf(ctx, t.tx(), s.session); err != nil {
			return ramp.Step{}, "", err
		}
	}
	step, row, err := s.update(ctx, t.tx(), id, opened, next)
	if errors.Is(err, errElsewhere) {
		ours = false
		t.giveUp()
		return ramp.Step{}, "", err
	}
	if row != nil && (err != nil || !step.New) {
		// The answer rests on a row that may have been committed only here: its commit may still wait
		// for a standby, whose failover would lose it.
		ours = false
		if lost := cmp.Or(t.confirm(), ctx.Err()); lost != nil {
			return ramp.Step{}, "", fmt.Errorf("ramp: order %s: confirm what was stored: %w", id, lost)
		}
	}
	if err != nil || !step.New {
		return step, "", err
	}
	if err := turns.trySession(row.SessionID); err != nil {
		return ramp.Step{}, "", err
	}
	if err := s.apply(ctx, t.tx(), &step); err != nil {
		return ramp.Step{}, row.claim, err
	}
	err = s.rehearsals.tryGrant(ctx, t, &step, row.claim)
	if err == nil && !commit && !s.reverts {
		err = unchanged(ctx, t.tx(), s.session, id, before)
	}
	if err != nil || !commit {
		return ramp.Step{}, row.claim, err
	}
	if err := ctx.Err(); err != nil { // the error of tx would not name the cause
		return ramp.Step{}, "", fmt.Errorf("ramp: order %s: not committed, "+
			"because its context had ended when Apply returned: %w", id, err)
	}
	// Check only the claim, which differs for every step. The state may be the same
	// if another delivery has finished the order meanwhile.
	// If the context has ended, PostgreSQL may have given up waiting for a standby, and still answers
	// with success.
	err = cmp.Or(t.commit(ctx, id, row.claim), ctx.Err())
	if ours = ended(err) != nil; err != nil {
		err = fmt.Errorf("ramp: order %s: commit: %w", id, unusable(err))
		return ramp.Step{}, "", &storeError{row.Order, step.Order.TxHash, err}
	}
	return step, "", unchanged(ctx, t.connection(), s.session, id, before)
}

// endedError returns the error of a transaction that has ended before. err is what followed.
func endedError(id uuid.UUID, before, err error) error {
	if err == nil || ended(err) != nil {
		return fmt.Errorf("ramp: order %s: %w", id, before)
	}
	return fmt.Errorf("%w (%w)", err, before)
}

// storeError is an error of a statement that stores the end of an order or commits it.
type storeError struct {
	stored ramp.Order // the order, which has not ended
	txHash string     // the transaction by which it would have ended, or ""
	error
}

func (e *storeError) Unwrap() error { return e.error }

// explain returns the reason for a storeError: a [*ramp.ConflictError] if another order has
// ended by the transaction. It looks that up, because every driver has its own error
// for a unique index, and only after an error, so that it costs no other order a round
// trip. explain returns every other error unchanged.
func (s *Store) explain(ctx context.Context, err error) error {
	var failed *storeError
	if !errors.As(err, &failed) || failed.txHash == "" {
		return err
	}
	query, args := s.bind(s.orders+"WHERE tx_hash = $1", failed.txHash)
	other, _ := readOrder(s.config.DB.QueryRowContext(ctx, query, args...), nil)
	if other == nil || other.UUID == failed.stored.UUID { // a damaged row counts too
		return err
	}
	return &ramp.ConflictError{Order: failed.stored, Field: "tx_hash", Other: &other.Order}
}

// Claims returns the claims of the store, or nil if it has none; see [ramp.Claims].
func (s *Store) Claims() ramp.Claims {
	if s.config.Claims == nil {
		return nil
	}
	return s.config.Claims
}

// claimFor claims the transaction of an order that ends. If another order has claimed it, the error is a
// [*ramp.ConflictError].
func (s *Store) claimFor(ctx context.Context, e *unclaimedError) error {
	holder, err := s.config.Claims.Claim(ctx, common.HexToHash(e.txHash), 0, e.order.UUID)
	if err != nil || holder == e.order.UUID {
		return err
	}
	other := &ramp.Order{UUID: holder, TxHash: e.txHash} // of another database
	query, args := s.bind(s.orders+"WHERE uuid = $1", holder.String())
	if row, _ := readOrder(s.config.DB.QueryRowContext(ctx, query, args...), nil); row != nil {
		other = &row.Order
	}
	return &ramp.ConflictError{Order: e.order, Field: "tx_hash", Other: other}
}

// openingStep returns the step that opens an order, which is New unless next needs a
// stored one. It is not a pointer, because an order would be allocated.
func openingStep(next ramp.Transition) (opened ramp.Step, err error) {
	opened, err = next(nil)
	opened.New = err == nil
	if errors.Is(err, ramp.ErrOrderUnknown) {
		err = nil
	}
	return opened, err
}

// update takes a step in a transaction. opened is the result of openingStep. row is
// the order before the step, with the claim that a new step wrote. It is also returned with an
// error of next for an order that was stored before.
func (s *Store) update(
	ctx context.Context, tx *sql.Tx, id uuid.UUID, opened *ramp.Step, next ramp.Transition,
) (step ramp.Step, row *orderRow, err error) {
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
		return ramp.Step{}, nil, err
	}
	// Compare a row that this call inserted, too: a database that is not strict may
	// have truncated values. Tell whose row it is by its claim, because the number
	// of rows that an insert affected depends on the settings of a driver.
	step, err = next(&row.Order)
	switch {
	case err != nil && strings.HasPrefix(claim, row.claim):
		return ramp.Step{}, nil, err
	case err != nil:
		return ramp.Step{}, row, err
	case row.claim == claim:
		step = *opened
		step.Order = row.Order
		return step, row, nil
	case strings.HasPrefix(claim, row.claim):
		// This call's own row would look like a repeat, and be signed.
		return ramp.Step{}, nil, fmt.Errorf("ramp: order %s: insert: the database truncated the claim: "+
			"check the table with Check", id)
	case !step.New:
		return step, row, nil
	}
	if err := s.endOrder(ctx, tx, row, &step.Order, claim); err != nil {
		return ramp.Step{}, nil, &storeError{row.Order, step.Order.TxHash, err}
	}
	row.claim = claim
	return step, row, nil
}

// insertOrder inserts an order unless it exists, and returns its locked row. It
// inserts before it locks, because the lock of a missing row is a gap lock, in
// which two new orders would deadlock.
func (s *Store) insertOrder(ctx context.Context, tx *sql.Tx, o *ramp.Order, claim string) (*orderRow, error) {
	sent, err := newRow(o, claim)
	if err != nil {
		return nil, err
	}
	insert, args := s.bind(s.insert, sent.values(atAccept)...)
	var row *orderRow
	if s.returning {
		var place sql.NullString
		row, err = readOrder(tx.QueryRowContext(ctx, insert, args...), sent, &place)
		if row != nil {
			err = cmp.Or(s.home.found(place), err)
		}
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
func (s *Store) endOrder(
	ctx context.Context, tx *sql.Tx, stored *orderRow, o *ramp.Order, claim string,
) error {
	row := orderRow{Order: *o, claim: claim}
	end, args := s.bind(updateOrder, append(row.values(atEnd), stored.UUID.String(), stored.claim)...)
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
func (s *Store) apply(ctx context.Context, tx *sql.Tx, step *ramp.Step) error {
	if step.Settled() {
		return nil
	}
	waits := s.config.DB.Stats().WaitCount
	err := s.config.Apply(ctx, tx, *step)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("ramp: order %s: Apply (%s): %w", step.Order.UUID, step.Order.State, unusable(err))
	gaveUp := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	locked := ctx.Err() != nil || strings.Contains(err.Error(), "database is locked")
	if gaveUp && s.config.DB.Stats().WaitCount > waits || s.config.Dialect == SQLite && locked {
		// A question, because another order may hold the row, or the connections.
		err = fmt.Errorf("%w (does Apply use tx for every statement? "+
			"One on the database handle waits for tx, or for its connection)", err)
	}
	return err
}

// selectForUpdate reads the last committed state of an order and locks it until the
// transaction ends. A read without a lock could return an older snapshot: under
// REPEATABLE READ, MySQL would not see the row that the insert just met.
func (s *Store) selectForUpdate(ctx context.Context, tx *sql.Tx, id uuid.UUID) (*orderRow, error) {
	query, args := s.bind(s.lock, id.String())
	var place sql.NullString
	row, err := readOrder(tx.QueryRowContext(ctx, query, args...), nil, &place)
	switch {
	case row != nil:
		err = cmp.Or(s.home.found(place), err)
	case errors.Is(err, sql.ErrNoRows):
		err = cmp.Or(s.findPlace(ctx, tx), err)
	}
	if err != nil {
		return nil, fmt.Errorf("ramp: order %s: %w", id, err)
	}
	return row, nil
}

// affected returns the number of rows that a statement has changed.
func affected(done sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return done.RowsAffected()
}

// findPlace compares where the table is with the place of the first order.
func (s *Store) findPlace(ctx context.Context, tx *sql.Tx) error {
	var place sql.NullString
	if err := tx.QueryRowContext(ctx, "SELECT "+s.place).Scan(&place); err != nil {
		return err
	}
	return s.home.found(place)
}

// abandonKept ends an order that Apply has committed in its rehearsal, so that no repeat of its call is
// signed.
func (s *Store) abandonKept(ctx context.Context, id uuid.UUID, kept *keptError, turns *callTurns) error {
	_, _, err := s.transact(ctx, id, &ramp.Step{},
		ramp.Abandon("its rehearsed grant was not rolled back", time.Now()), turns, true)
	if err == nil || errors.Is(err, ramp.ErrOrderUnknown) { // it was rolled back
		return kept
	}
	return fmt.Errorf("%w (abandon the order by hand: %w)", error(kept), err)
}
