package ramp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
)

// The codes that an [OrderGame] declines with by itself.
const (
	CodeOrderConflict Code = "ORDER_CONFLICT" // another order was accepted under the UUID
	CodeOrderFinished Code = "ORDER_FINISHED" // the order is over
)

// Players is what a game knows of its players. Every method may be called by
// many requests at once.
type Players interface {
	// Authenticate is that of [Game].
	Authenticate(ctx context.Context, s Session) error

	// Assets is that of [Game].
	Assets(ctx context.Context, s Session) (*Player, error)
}

// OrderGame is a [Game] whose orders are exact: a mint takes once and a result
// gives once, however often a call is repeated, and on however many machines.
// Make one with [NewOrderGame] and set it as [HandlerConfig].Game.
//
// The rules are those of [Accept], [Finish] and [Abandon]; the [Store] keeps the
// orders and applies what they move.
type OrderGame struct{ config OrderGameConfig }

// OrderGameConfig configures an [OrderGame]. Players and Store are required. The
// zero value of every other field stands for its default.
type OrderGameConfig struct {
	// Players is the game. Required.
	Players Players

	// Store keeps the orders and applies what they move. Required. See
	// [NewSQLStore] and [NewMemoryStore].
	Store Store

	// ProjectID makes a result for an order of another project a conflict,
	// whoever signed it, and refuses validate calls for another project. Set it
	// if projects with HMAC keys of their own share a store, because a result
	// names no project (interface 6). By default every project is accepted.
	ProjectID string

	// OnConflict is called with every result that contradicts its order: a
	// success after [OrderGame.Abandon], for example, when a player has both
	// the tokens and what was given back. Nothing was moved, and a person has
	// to decide. If it returns nil, the service is told that no redelivery can
	// help (HTTP 400). If it fails, or if there is no OnConflict, the answer is
	// HTTP 500 and the cause is logged: the service delivers the result again
	// for 12 hours.
	//
	// A repeat with a different tx_hash also calls OnConflict, because a player
	// may have paid twice for one order, but is answered with 200. Without
	// OnConflict, only the log record and the [Observer] of the handler have it.
	OnConflict func(ctx context.Context, conflict *ConflictError, r *Result) error

	// Now is the clock of Order.AcceptedAt and Order.FinishedAt. The default is
	// [time.Now].
	Now func() time.Time

	// Observer is told about every step, in its Step; the other functions are
	// those of [HandlerConfig]. By default nobody is.
	Observer Observer
}

// NewOrderGame returns a game for c.Players. The error is an [*InvalidError]
// that lists every field of c that is missing.
func NewOrderGame(c OrderGameConfig) (*OrderGame, error) {
	var p problems
	p.require(c.Players != nil, "OrderGameConfig.Players")
	p.require(c.Store != nil, "OrderGameConfig.Store")
	if err := p.err(); err != nil {
		return nil, err
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &OrderGame{config: c}, nil
}

// Authenticate asks the players.
func (g *OrderGame) Authenticate(ctx context.Context, s Session) error {
	return g.config.Players.Authenticate(ctx, s)
}

// Assets asks the players.
func (g *OrderGame) Assets(ctx context.Context, s Session) (*Player, error) {
	return g.config.Players.Assets(ctx, s)
}

// Validate accepts the order and takes what it takes. A call that contradicts
// an order under its UUID is declined with [CodeOrderConflict], and one for an
// order that is over with [CodeOrderFinished].
func (g *OrderGame) Validate(ctx context.Context, s Session, r *ValidateRequest) error {
	if project := g.config.ProjectID; project != "" && r.ProjectID != project {
		return refusalOf(invalid("project_id", "is not the project of this game"))
	}
	accept := Accept(s, r, g.config.Now())
	var wrong *InvalidError
	if _, err := accept(nil); errors.As(err, &wrong) { // the call's fault, and not the store's
		return refusalOf(err)
	}
	step, err := g.config.Store.Update(ctx, r.UUID, accept)
	g.observe(ctx, step, err)
	switch {
	case errors.Is(err, ErrOrderConflict):
		return &Refusal{Code: CodeOrderConflict, Err: err}
	case errors.Is(err, ErrOrderFinished):
		return &Refusal{Code: CodeOrderFinished, Err: err}
	}
	return err
}

// Result finishes the order and gives what it gives. A result for an unknown
// order is an error, so that it is delivered again; one that contradicts its
// order goes to [OrderGameConfig].OnConflict.
func (g *OrderGame) Result(ctx context.Context, _ Session, r *Result) error {
	finish := Finish(r, g.config.Now())
	step, err := g.config.Store.Update(ctx, r.UUID, func(stored *Order) (Step, error) {
		if project := g.config.ProjectID; stored != nil && project != "" && stored.ProjectID != project {
			return Step{}, &ConflictError{Order: *stored, Field: "project_id"}
		}
		return finish(stored)
	})
	g.observe(ctx, step, err)
	var conflict *ConflictError
	switch {
	case errors.As(err, &conflict):
		if g.config.OnConflict == nil {
			return fmt.Errorf("%w (set OrderGameConfig.OnConflict to have it decided by a person)", conflict)
		}
		err = Permanent(conflict)
	case err == nil && anotherTransaction(step.Order.TxHash, r.TxHash):
		conflict = &ConflictError{Order: step.Order, Field: "tx_hash"} // but answered as the repeat that it is
		noteConflict(ctx, conflict)
	default:
		return err
	}
	if g.config.OnConflict != nil {
		if failed := g.config.OnConflict(ctx, conflict, r); failed != nil {
			// A refusal of its own, because one in failed must not set the status.
			return &Refusal{Status: http.StatusInternalServerError, Code: CodeInternal,
				Err: fmt.Errorf("%w (OnConflict failed: %w)", conflict, failed)}
		}
	}
	return err
}

// observe tells the handler and the observer what a call did to its order.
func (g *OrderGame) observe(ctx context.Context, step Step, err error) {
	var conflict *ConflictError
	switch {
	case err == nil:
		noteStep(ctx, step)
		g.config.Observer.step(ctx, step)
	case errors.As(err, &conflict):
		noteConflict(ctx, conflict)
	}
}

// anotherTransaction reports whether a repeat names another transaction than
// the stored one.
func anotherTransaction(stored, reported string) bool {
	reported = storedTxHash(reported)
	return stored != "" && reported != "" && !strings.EqualFold(stored, reported)
}

// Abandon ends an order whose result will never come, and gives back what it
// took; see [Abandon]. It is meant for the tool of a person who has looked at
// the chain. The service is not told.
func (g *OrderGame) Abandon(ctx context.Context, id uuid.UUID, reason string) (Step, error) {
	step, err := g.config.Store.Update(ctx, id, Abandon(reason, g.config.Now()))
	g.observe(ctx, step, err)
	if err != nil {
		return Step{}, fmt.Errorf("ramp: abandon order %s: %w", id, err)
	}
	return step, nil
}
