package ramp

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
)

// The codes that a [SQLGame] declines with by itself.
const (
	CodeOrderConflict Code = "ORDER_CONFLICT" // another order was accepted under the UUID
	CodeOrderFinished Code = "ORDER_FINISHED" // the order is over
)

// Studio is what a game on a SQL database writes: who is this, what do they
// hold, and move it. [NewSQLGame] makes a [Game] of it. Every method may be
// called by many requests at once.
type Studio interface {
	// Authenticate is that of [Game].
	Authenticate(ctx context.Context, s Session) error

	// Assets is that of [Game].
	Assets(ctx context.Context, s Session) (*Player, error)

	// Apply brings about the effect of a step, within the transaction that
	// records it: both are committed, or neither. It must return every error of
	// tx, and must not continue after one, not even where the statement does
	// not matter: the database may have rolled back the whole transaction. If
	// it did, SQLGame commits nothing, and the call is answered with 500. Apply
	// must use tx for every statement. The database handle would commit them on
	// its own, and waits forever if tx holds the only connection.
	//
	// Apply is called once for each step that is committed, and never for a
	// repeat. It must always lock rows in the same order, such as by asset ID.
	//
	// The state of step.Order tells the steps apart. When an order was just
	// accepted, Apply may decline it: Take of what the player does not have
	// with Reject("INVALID_BALANCE"), and, for a burn, whose effect is Nothing
	// here, what could not be granted later, such as an asset that the game
	// does not know. When the order ends, there is nothing to decline: an
	// error leaves it as it was, and the service delivers again, unless the
	// error is [Permanent].
	//
	// step.Order.SessionID says whose assets move. A result can come 12 hours
	// after its validate call, so a session must be known for longer than its
	// token is good.
	Apply(ctx context.Context, tx *sql.Tx, step Step) error
}

// SQLGame is a [Game] whose orders are exact: each step of an order and its
// effect on the game's assets are one transaction of one database. Make one
// with [NewSQLGame] and hand it to [NewHandler]. Any number of processes on any
// number of machines may share the database.
//
// It repeats nothing by itself. A transaction that the database ended, because
// it raced another or the connection broke, is an error like any other: HTTP
// 500, nothing or everything was done, and a repeat of the call finds out
// which.
type SQLGame struct {
	db       *sql.DB
	orders   *Orders
	studio   Studio
	begin    *sql.TxOptions
	project  string // empty for any
	conflict func(context.Context, *ConflictError, *Result) error
}

// SQLGameConfig configures a [SQLGame]. DB, Dialect and Studio are required. The
// zero value of every other field stands for its default.
type SQLGameConfig struct {
	// DB holds the orders and what they move. Its tables include that of
	// [Dialect.Schema]. Required.
	DB *sql.DB

	// Dialect is [PostgreSQL], [MySQL] (for MariaDB too) or [SQLite]. Required.
	Dialect Dialect

	// Studio is the game. Required.
	Studio Studio

	// ProjectID makes a result for an order of another project a conflict,
	// whoever signed it, and refuses validate calls for another project. Set it
	// where projects with HMAC keys of their own share a database, because a
	// result names no project (interface 6). By default every project is
	// accepted.
	ProjectID string

	// TxOptions sets how transactions begin. It is copied. No isolation level
	// is needed; those above READ COMMITTED end transactions that race each
	// other, which a redelivery then repeats. The default is that of the driver
	// and the database.
	TxOptions *sql.TxOptions

	// OnConflict is called with every result that contradicts its order, after
	// the transaction was rolled back: a success after [SQLGame.Abandon], say,
	// when a player has both the tokens and what was given back. Nothing was
	// moved, and a person has to look. If it returns nil, the service is told
	// that no redelivery can help; if it fails, the result is delivered again,
	// and OnConflict is called again. By default a conflict is only in the log
	// of the handler.
	//
	// A repeat with a different tx_hash also calls OnConflict, because a player
	// may have paid twice for one order, but is answered with 200. By default
	// it goes unreported.
	OnConflict func(ctx context.Context, conflict *ConflictError, r *Result) error
}

// NewSQLGame returns a game for c.Studio on c.DB. The error is an
// [*InvalidError] that lists every field of c that is missing or wrong.
func NewSQLGame(c SQLGameConfig) (*SQLGame, error) {
	var p problems
	p.require(c.DB != nil, "SQLGameConfig.DB")
	orders, err := NewOrders(c.Dialect)
	if err != nil {
		p.add("SQLGameConfig.Dialect", "is required and must be PostgreSQL, MySQL or SQLite")
	}
	p.require(c.Studio != nil, "SQLGameConfig.Studio")
	if err := p.err(); err != nil {
		return nil, err
	}
	g := &SQLGame{db: c.DB, orders: orders, studio: c.Studio, project: c.ProjectID, conflict: c.OnConflict}
	if c.TxOptions != nil {
		begin := *c.TxOptions
		g.begin = &begin
	}
	return g, nil
}

// Authenticate asks the studio.
func (g *SQLGame) Authenticate(ctx context.Context, s Session) error {
	return g.studio.Authenticate(ctx, s)
}

// Assets asks the studio.
func (g *SQLGame) Assets(ctx context.Context, s Session) (*Player, error) {
	return g.studio.Assets(ctx, s)
}

// Validate accepts the order and takes what it takes. A call that contradicts
// an order under its UUID is declined with [CodeOrderConflict], one for an
// order that is over with [CodeOrderFinished].
func (g *SQLGame) Validate(ctx context.Context, s Session, r *ValidateRequest) error {
	if g.project != "" && r.ProjectID != g.project {
		return malformed(invalid("project_id", "is not the project of this game"))
	}
	return g.transact(ctx, func(tx *sql.Tx) (Step, error) {
		step, err := g.orders.Accept(ctx, tx, s, r)
		switch {
		case errors.Is(err, ErrOrderConflict):
			err = &Refusal{Code: CodeOrderConflict, Err: err}
		case errors.Is(err, ErrOrderFinished):
			err = &Refusal{Code: CodeOrderFinished, Err: err}
		}
		return step, malformed(err)
	})
}

// Result finishes the order and gives what it gives. A result for an unknown
// order is an error, so that it is delivered again; one that contradicts its
// order goes to [SQLGameConfig].OnConflict and is [Permanent].
func (g *SQLGame) Result(ctx context.Context, _ Session, r *Result) error {
	var repeated *Order
	err := g.transact(ctx, func(tx *sql.Tx) (Step, error) {
		step, err := g.orders.Finish(ctx, tx, r)
		switch {
		case err != nil:
		case g.project != "" && step.Order.ProjectID != g.project:
			err = &ConflictError{Order: step.Order, Field: "project_id"}
		case !step.New:
			repeated = &step.Order
		}
		return step, err
	})
	var conflict *ConflictError
	switch {
	case errors.As(err, &conflict):
		err = Permanent(conflict)
	case err == nil && repeated != nil && anotherTransaction(repeated.TxHash, r.TxHash):
		conflict = &ConflictError{Order: *repeated, Field: "tx_hash"} // though it is answered as the repeat that it is
	default:
		return err
	}
	if g.conflict != nil {
		if failed := g.conflict(ctx, conflict, r); failed != nil {
			return fmt.Errorf("%w (the conflict hook failed: %w)", conflict, failed)
		}
	}
	return err
}

// anotherTransaction reports whether a repeat names another transaction than
// the stored one.
func anotherTransaction(stored, reported string) bool {
	reported = storedTxHash(reported)
	return stored != "" && reported != "" && !strings.EqualFold(stored, reported)
}

// Abandon ends an order whose result will never come, and gives back what it
// took; see [Orders.Abandon]. It is for the tool of a person who has looked at
// the chain. The service is not told.
func (g *SQLGame) Abandon(ctx context.Context, id uuid.UUID, reason string) error {
	return g.transact(ctx, func(tx *sql.Tx) (Step, error) { return g.orders.Abandon(ctx, tx, id, reason) })
}

// Waiting lists orders without a result; see [Orders.Waiting].
func (g *SQLGame) Waiting(ctx context.Context, before time.Time, limit int) ([]Order, error) {
	return g.orders.Waiting(ctx, g.db, before, limit)
}

// malformed is err, as a refusal where the fields of the call are to blame: an
// intent whose amounts add up to more than any quantity, say.
func malformed(err error) error {
	var wrong *InvalidError
	if errors.As(err, &wrong) {
		return refusalOf(err)
	}
	return err
}

// transact takes a step and applies it in one transaction. An error of the
// commit leaves open whether it took place: the answer may have been lost. The
// call is an error then, its repeat looks the order up, and finds a step that
// was committed to be a repeat.
func (g *SQLGame) transact(ctx context.Context, take func(*sql.Tx) (Step, error)) error {
	t, err := g.open(ctx)
	if err != nil {
		return fmt.Errorf("ramp: begin: %w", g.orders.explain(err))
	}
	defer t.end(ctx) // after a commit it rolls nothing back
	step, err := take(t.Tx)
	if err != nil || !step.New {
		return err
	}
	if err := g.apply(ctx, t.Tx, step); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil { // which names the cause; the transaction would only say that it is over
		return fmt.Errorf("ramp: order %s: not committed: %w", step.Order.UUID, err)
	}
	if err := g.orders.kept(ctx, t.Tx, step); err != nil {
		return err
	}
	if err := t.commit(); err != nil {
		return fmt.Errorf("ramp: commit: %w", err)
	}
	return nil
}

// apply lets the studio apply a step. An error names the step and its order.
func (g *SQLGame) apply(ctx context.Context, tx *sql.Tx, step Step) error {
	waits := g.db.Stats().WaitCount
	err := g.studio.Apply(ctx, tx, step)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("ramp: order %s: Apply (%s): %w", step.Order.UUID, step.Order.State, err)
	pool := g.db.Stats()
	gaveUp := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	if gaveUp && pool.WaitCount > waits {
		err = fmt.Errorf("%w; meanwhile, the pool of %d connection(s) had none free: Apply must use tx, because the database handle waits for a connection that tx may hold itself", err, pool.MaxOpenConnections)
	}
	return err
}
