package support

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence"
)

// Restore stores again what a restored backup lacks of orders, as [Orders.Lost] returns them, and moves
// their assets again. An order that is missing is opened as it was accepted, which takes the assets of a
// mint, whatever the terms are today. An order that had ended then ends in the same way: with its
// transaction, as by [Orders.Finish], or abandoned, as by [Orders.Abandon] with [Decision].Early. An order
// that was still waiting waits again. Orders that succeeded come first: until then, the transaction of one
// could be that of another. If a transaction fits several of them, it ends the one that it has ended before.
//
// Restore goes on after an error. It returns every step that it took, which are two for an order that was
// missing and had ended, and the errors of the orders that are not restored. An order is not restored if no
// record has it, or if the game rejects it, because the player has too little: settle that with the player
// first. If an order was opened, and its end failed, it waits: correct the cause and restore it again, or
// end it as any other order.
//
// A mint that DeleteFinished of rampsql.Store has deleted is missing, too, and would be taken again. So what
// had ended is restored only if the store has an older order of its direction that has succeeded: whoever
// deletes, deletes the older ones first. [Decision].AgainstEvidence overrides that.
//
// Restoring again changes nothing. Once an order is stored, the service may send its calls again: they are
// repeats.
func (o *Orders) Restore(ctx context.Context, lost []Logged, d Decision) (steps []ramp.Step, failed error) {
	first, err := o.notDeleted(ctx, lost, d)
	if err != nil {
		failed = err
	}
	slices.SortStableFunc(first, func(x, y Logged) int {
		rank := map[ramp.OrderState]int{ramp.OrderSucceeded: -1}
		return cmp.Compare(rank[x.State], rank[y.State])
	})
	type again func(context.Context, *Logged, Decision) (ramp.Step, error)
	for _, l := range first {
		for _, again := range []again{o.reopen, o.endAgain} {
			step, err := again(ctx, &l, d)
			if err != nil {
				failed = errors.Join(failed, err)
				break
			}
			if step.Order.State != "" {
				steps = append(steps, step)
			}
		}
	}
	return steps, failed
}

// notDeleted returns the lost orders that were not deleted since, and an error for each of the others.
func (o *Orders) notDeleted(ctx context.Context, lost []Logged, d Decision) (rest []Logged, failed error) {
	if d.AgainstEvidence {
		return slices.Clone(lost), nil
	}
	retained := map[ramp.Direction]*retention{}
	for _, l := range lost {
		if !l.Missing || l.State == ramp.OrderAccepted || l.Order == nil {
			rest = append(rest, l)
			continue
		}
		of := l.Order.Direction
		if retained[of] == nil {
			retained[of] = o.retentionOf(of)
		}
		whole, err := retained[of].isWhole(ctx, l.Order.AcceptedAt)
		if err != nil {
			return nil, err
		}
		if !whole {
			failed = errors.Join(failed, fmt.Errorf("ramp: order %s: it may have been deleted, and not "+
				"lost: the store has no older %s that has succeeded: if nothing was deleted, restore it "+
				"against the evidence", l.UUID, of))
			continue
		}
		rest = append(rest, l)
	}
	return rest, failed
}

// endAgain ends an order as it had ended. The step is empty if it had not.
func (o *Orders) endAgain(ctx context.Context, lost *Logged, d Decision) (ramp.Step, error) {
	d.Early, d.logged = true, true // its result has come before
	switch lost.State {
	case ramp.OrderAccepted:
		return ramp.Step{}, nil
	case ramp.OrderAbandoned:
		return o.Abandon(ctx, lost.UUID, d)
	case ramp.OrderSucceeded, ramp.OrderFailed:
		return o.Finish(ctx, lost.UUID, common.HexToHash(lost.TxHash), d)
	default:
		return ramp.Step{}, fmt.Errorf("ramp: order %s: the log does not say how it ended", lost.UUID)
	}
}

// reopen stores an order that is missing as it was when it was accepted. The step is empty if it is not
// missing.
func (o *Orders) reopen(ctx context.Context, lost *Logged, d Decision) (ramp.Step, error) {
	if !lost.Missing {
		return ramp.Step{}, nil
	}
	const done, failed = "ramp: order restored", "ramp: order not restored"
	return o.decide(ctx, done, failed, lost.UUID, d, func(string) (ramp.Step, error) {
		order := lost.Order
		if order == nil {
			return ramp.Step{}, fmt.Errorf("ramp: order %s: no record of the logs has the order: give all "+
				"logs, or ask the service to send both of its calls again", lost.UUID)
		}
		if err := o.scope.Check(order); err != nil {
			return ramp.Step{}, err
		}
		step, err := o.config.Store.Update(ctx, order.UUID, lost.accept())
		var rejected *ramp.Rejection
		switch {
		case errors.Is(err, ramp.ErrOrderFinished): // it was restored meanwhile
			return ramp.Step{Order: *order}, nil
		case errors.As(err, &rejected):
			return ramp.Step{}, fmt.Errorf("ramp: order %s: the game does not open it again, and the player "+
				"may have what it took: %w", order.UUID, err)
		}
		return step, err
	})
}

// accept returns the transition of the call that was accepted.
func (l *Logged) accept() ramp.Transition {
	o := l.Order
	call := &ramp.ValidateRequest{UUID: o.UUID, ProjectID: o.ProjectID, UserAddress: o.UserAddress,
		Digest: o.Digest, Intent: o.Intent, Product: l.Product}
	if tokens := evidence.TokensOf(o); len(tokens) == 1 {
		call.Tokens = tokens[0].Amount
	}
	accept := ramp.Accept(ramp.Session{ID: o.SessionID}, call, o.AcceptedAt)
	return ramp.OnlyOf([]string{o.ProjectID}, o.Network, accept)
}
