package ramp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// validate accepts an order and applies its effect, or lets the Game do so. A call
// that contradicts the order stored under its UUID is rejected with
// [CodeOrderConflict], and one for a finished order with [CodeOrderFinished].
func (h *Handler) validate(ctx context.Context, c *call, r *ValidateRequest) error {
	if h.config.Game != nil {
		if err := h.config.Game.Validate(ctx, c.session, r); err != nil {
			return gameRejection(err, h.config.RejectStatus)
		}
		return nil
	}
	accept := Accept(c.session, r, h.config.Now())
	if _, err := accept(nil); err != nil { // an error of the call, not of the store
		return rejectionOf(err)
	}
	err := c.take(h.config.Store.Update(ctx, r.UUID, h.own(accept)))
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrOrderConflict):
		return &Rejection{Status: h.config.RejectStatus, Code: CodeOrderConflict, Err: err}
	case errors.Is(err, ErrOrderFinished):
		return &Rejection{Status: h.config.RejectStatus, Code: CodeOrderFinished, Err: err}
	default:
		return gameRejection(err, h.config.RejectStatus)
	}
}

// result finishes an order and applies its effect, or lets the Game do so. A result
// for an unknown order is an error, so that it is delivered again. One that
// contradicts its order goes to [HandlerConfig].OnConflict.
func (h *Handler) result(ctx context.Context, c *call, r *Result) error {
	if h.config.Game != nil {
		return h.config.Game.Result(ctx, c.session, r)
	}
	err := c.take(h.config.Store.Update(ctx, r.UUID, h.own(h.proven(r, Finish(r, h.config.Now())))))
	if err == nil && c.op.TxHash != "" && c.op.Step.Order.TxHash != "" && c.op.TxHash != c.op.Step.Order.TxHash {
		c.op.Conflict = &ConflictError{Order: c.op.Step.Order, Field: "tx_hash"} // but answered as a repeat
	}
	conflict := c.op.Conflict
	if conflict == nil || err == nil && h.config.OnConflict == nil {
		return err
	}
	if h.config.OnConflict == nil {
		return fmt.Errorf("%w (set HandlerConfig.OnConflict to hand conflicts to a person)", conflict)
	}
	if failed := h.config.OnConflict(ctx, conflict, r); failed != nil {
		// A new rejection, so that one inside failed cannot set the status.
		return &Rejection{Status: http.StatusInternalServerError, Code: CodeInternal,
			Err: fmt.Errorf("%w (OnConflict failed: %w)", conflict, failed)}
	}
	if err != nil && conflict.Other == nil {
		return Permanent(conflict)
	}
	return err // 500 if another order has the transaction, because a person can correct that
}

// proven lets a result end only an order whose end the transaction proves.
func (h *Handler) proven(r *Result, finish Transition) Transition {
	proof := h.config.Proof
	if proof == nil {
		return finish
	}
	return func(stored *Order) (Step, error) {
		step, err := finish(stored)
		if err == nil && step.New {
			_, err = proof.Check(stored, r.Transaction, &r.Receipt)
		}
		return step, err
	}
}

// own lets a transition see only orders of the handler's project and network. An order
// without a network was accepted before the network was configured.
func (h *Handler) own(next Transition) Transition {
	project, network := h.config.ProjectID, h.config.Network
	return func(stored *Order) (Step, error) {
		switch {
		case stored == nil:
		case project != "" && stored.ProjectID != project:
			return Step{}, &ConflictError{Order: *stored, Field: "project_id"}
		case network != "" && stored.Network != "" && stored.Network != network:
			return Step{}, &ConflictError{Order: *stored, Field: "network"}
		}
		step, err := next(stored)
		if stored == nil {
			step.Order.Network = network
		}
		return step, err
	}
}

// take records the step that a store returned, or the conflict that it met.
func (c *call) take(step Step, err error) error {
	if err == nil {
		step.Result = nil // it holds the body, which is not for an observer
		c.op.Step = &step
	} else {
		errors.As(err, &c.op.Conflict)
	}
	return err
}
