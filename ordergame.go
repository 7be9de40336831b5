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
	CodeOrderConflict Code = "ORDER_CONFLICT" // the call contradicts the order stored under its UUID
	CodeOrderFinished Code = "ORDER_FINISHED" // the order is finished
)

// Players is the part of a [Game] that concerns players. Its methods are called
// concurrently.
type Players interface {
	// Authenticate is [Game.Authenticate].
	Authenticate(ctx context.Context, s Session) error

	// Assets is [Game.Assets].
	Assets(ctx context.Context, s Session) (*Player, error)
}

// OrderGame is a [Game] that applies each order exactly once: a mint takes once and
// a result gives once, however often a call is repeated, and on any number of
// machines. Make one with [NewOrderGame] and set it as [HandlerConfig].Game.
//
// The rules are [Accept], [Finish] and [Abandon]. The [Store] keeps the orders and
// applies their effects.
type OrderGame struct{ config OrderGameConfig }

// OrderGameConfig configures an [OrderGame]. Players and Store are required. Every
// other field may be zero, which means its default.
type OrderGameConfig struct {
	// Players authenticates players and lists their assets. Required.
	Players Players

	// Store keeps the orders and applies their effects, such as a [NewSQLStore].
	// Required.
	Store Store

	// ProjectID, if set, refuses validate calls for other projects, and makes a
	// result for an order of another project a conflict, whoever signed it. Set it
	// if projects with different HMAC keys share a store, because a result does not
	// name its project (interface 6). By default every project is accepted.
	ProjectID string

	// OnConflict is called with every result that contradicts its order, such as a
	// success after [OrderGame.Abandon], when a player has both the tokens and what
	// was given back. No assets have moved, and a person must decide. If OnConflict
	// returns nil, the service is told that redelivery cannot help (HTTP 400). If
	// it fails or is nil, the answer is HTTP 500, the cause is logged, and the
	// service redelivers for 12 hours.
	//
	// A repeat with a different tx_hash also calls OnConflict, because a player may
	// have paid twice for one order, but is answered with 200. Without OnConflict
	// it is only logged and observed.
	OnConflict func(ctx context.Context, conflict *ConflictError, r *Result) error

	// Now is the clock of Order.AcceptedAt and Order.FinishedAt. The default is
	// [time.Now].
	Now func() time.Time

	// Observer has its Step called after every step. The other functions are not
	// used here; set them in [HandlerConfig]. By default nothing is observed.
	Observer Observer
}

// NewOrderGame returns a game for c.Players. The error is an [*InvalidError] that
// lists every missing field of c.
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

// Authenticate calls Authenticate of the players.
func (g *OrderGame) Authenticate(ctx context.Context, s Session) error {
	return g.config.Players.Authenticate(ctx, s)
}

// Assets calls Assets of the players.
func (g *OrderGame) Assets(ctx context.Context, s Session) (*Player, error) {
	return g.config.Players.Assets(ctx, s)
}

// Validate accepts an order and applies its effect. It declines a call that
// contradicts the order stored under its UUID with [CodeOrderConflict], and a call
// for a finished order with [CodeOrderFinished].
func (g *OrderGame) Validate(ctx context.Context, s Session, r *ValidateRequest) error {
	accept := Accept(s, r, g.config.Now())
	_, err := accept(nil)
	if project := g.config.ProjectID; project != "" && r.ProjectID != project {
		err = invalid("project_id", "is not the project of this game")
	}
	var wrong *InvalidError
	if errors.As(err, &wrong) { // an error of the call, not of the store
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

// Result finishes an order and applies its effect. A result for an unknown order is
// an error, so that it is delivered again. One that contradicts its order goes to
// [OrderGameConfig].OnConflict.
func (g *OrderGame) Result(ctx context.Context, _ Session, r *Result) error {
	step, err := g.finish(ctx, r)
	var conflict *ConflictError
	switch {
	case errors.As(err, &conflict):
		if g.config.OnConflict == nil {
			return fmt.Errorf("%w (set OrderGameConfig.OnConflict to hand conflicts to a person)", conflict)
		}
		err = Permanent(conflict)
	case err == nil && differentTransaction(step.Order.TxHash, r.TxHash):
		conflict = &ConflictError{Order: step.Order, Field: "tx_hash"} // but answered as a repeat
		noteConflict(ctx, conflict)
	default:
		return err
	}
	if g.config.OnConflict != nil {
		if failed := g.config.OnConflict(ctx, conflict, r); failed != nil {
			// A new refusal, so that one inside failed cannot set the status.
			return &Refusal{Status: http.StatusInternalServerError, Code: CodeInternal,
				Err: fmt.Errorf("%w (OnConflict failed: %w)", conflict, failed)}
		}
	}
	return err
}

// finish takes the step of a result.
func (g *OrderGame) finish(ctx context.Context, r *Result) (Step, error) {
	finish := Finish(r, g.config.Now())
	step, err := g.config.Store.Update(ctx, r.UUID, func(stored *Order) (Step, error) {
		if project := g.config.ProjectID; stored != nil && project != "" && stored.ProjectID != project {
			return Step{}, &ConflictError{Order: *stored, Field: "project_id"}
		}
		return finish(stored)
	})
	g.observe(ctx, step, err)
	return step, err
}

// observe reports the outcome of a call to the handler and the observer.
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

// differentTransaction reports whether a repeat names a different transaction than
// the stored one.
func differentTransaction(stored, reported string) bool {
	reported = normalizeTxHash(reported)
	return stored != "" && reported != "" && !strings.EqualFold(stored, reported)
}

// Abandon ends an order whose result will never come, and gives back what it took;
// see [Abandon]. Call it from an admin tool, after a person has checked the chain.
// The service is not told.
func (g *OrderGame) Abandon(ctx context.Context, id uuid.UUID, reason string) (Step, error) {
	step, err := g.config.Store.Update(ctx, id, Abandon(reason, g.config.Now()))
	g.observe(ctx, step, err)
	if err != nil {
		return Step{}, fmt.Errorf("ramp: abandon order %s: %w", id, err)
	}
	return step, nil
}
