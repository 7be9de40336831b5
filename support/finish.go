package support

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence"
	"github.com/token-ramp/ramp-go/internal/invalid"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
)

// Finish ends an order as a transaction ended, if the service does not deliver its result: a
// failed mint gives back, and a successful burn grants. [Config].Proof is required, whose
// confirmations the transaction must have. If it does not prove the end of the order, the
// error wraps [rampproof.ErrNotProven]; [Decision].AgainstEvidence overrides that. It also proves
// nothing if it fits another order of the user, which waits or has ended without tokens, or may have ended
// one that was deleted since, because nobody but the service knows whose it is. Before a mint is given back,
// Finish looks for a transaction that minted it, and fails as [Orders.Abandon] does. AgainstEvidence does
// not override a [*CandidateError] here.
//
// Who and why are logged and stored. If the order has ended otherwise, or another order has
// ended by the transaction, the error is a [*ramp.ConflictError]. If the transaction settles both
// orders, set [Decision].Batch. A result that comes later is
// a repeat.
func (o *Orders) Finish(
	ctx context.Context, id uuid.UUID, transaction common.Hash, d Decision,
) (ramp.Step, error) {
	const done, failed = "ramp: order finished", "ramp: order not finished"
	return o.decide(ctx, done, failed, id, d, func(reason string) (ramp.Step, error) {
		if o.chain == nil {
			return ramp.Step{}, invalid.Field("Config.Proof", "is required")
		}
		order, err := o.order(ctx, id)
		if err != nil {
			return ramp.Step{}, err
		}
		result, err := o.resultOf(ctx, &order, transaction)
		if err != nil {
			return ramp.Step{}, err
		}
		at, err := o.timeOf(ctx, &result.Receipt)
		if err != nil {
			return ramp.Step{}, err
		}
		age := order.AcceptedAt.Sub(at)
		if err := o.checkWhose(ctx, &order, result, at, d); err != nil {
			return ramp.Step{}, err
		}
		isMint := order.State == ramp.OrderAccepted && order.Direction == ramp.Mint
		if isMint && result.Outcome() == ramp.OrderFailed {
			if err := o.checkUnminted(ctx, &order, d); err != nil {
				return ramp.Step{}, err
			}
		}
		finish := o.finishProven(result, age, reason, d)
		if !d.Batch {
			return o.update(ctx, id, finish)
		}
		if _, err := finish(&order); err != nil { // before it is noted
			return ramp.Step{}, err
		}
		if err := o.joinBatch(ctx, &order, result, d); err != nil {
			return ramp.Step{}, err
		}
		return o.update(ctx, id, withoutTransaction(finish))
	})
}

// withoutTransaction returns a transition whose step stores no transaction.
func withoutTransaction(next ramp.Transition) ramp.Transition {
	return func(stored *ramp.Order) (ramp.Step, error) {
		step, err := next(stored)
		if step.New {
			step.Order.TxHash = ""
		}
		return step, err
	}
}

// resultOf returns the result that the service would have sent of a transaction, which must be
// confirmed.
func (o *Orders) resultOf(
	ctx context.Context, order *ramp.Order, transaction common.Hash,
) (*ramp.Result, error) {
	soon, cancel := context.WithTimeout(ctx, 10*time.Second) // it does not wait for confirmations
	defer cancel()
	sent, receipt, err := o.chain.WaitTransaction(soon, transaction, o.prover.Confirmations)
	if err != nil {
		return nil, err
	}
	o.prover.LoadDecimals(ctx, evidence.ContractsOf(order)...)
	return &ramp.Result{
		UUID: order.UUID, TxHash: transaction.Hex(), Receipt: *receipt, Transaction: sent,
	}, nil
}

// finishProven returns the transition that ends an order by a result whose transaction is so much older,
// if that proves its end, or the decision overrides that it does not.
func (o *Orders) finishProven(
	result *ramp.Result, age time.Duration, reason string, d Decision,
) ramp.Transition {
	finish := d.ending(ramp.Finish(result, o.config.Now()))
	return func(stored *ramp.Order) (ramp.Step, error) {
		step, err := finish(stored)
		if err != nil || !step.New {
			return step, err
		}
		step.Order.Reason = reason
		var unproven error
		step.Evidence, unproven = o.prover.Check(stored, result.Transaction, &result.Receipt)
		if unproven == nil && age > skew {
			unproven = fmt.Errorf("ramp: order %s: %w: it is %s older than the order: %s",
				result.UUID, rampproof.ErrNotProven, age.Round(time.Minute), evidence.ClocksDiffer)
		}
		if unproven != nil && !d.AgainstEvidence {
			o.prover.ForgetDecimals(evidence.ContractsOf(stored)...) // the next attempt asks again
			return ramp.Step{}, unproven
		}
		return step, nil
	}
}

// timeOf returns when a transaction happened.
func (o *Orders) timeOf(ctx context.Context, receipt *ramp.Receipt) (at time.Time, err error) {
	number, err := receipt.BlockNumber.Uint64()
	if err != nil {
		return at, err
	}
	block, err := evidence.BlockAt(ctx, o.chain, ramp.AtBlock(number))
	if err != nil {
		return at, err
	}
	return evidence.TimeOf(block.Timestamp), nil
}

// checkWhose returns an error if a transaction that proves the end of an order may be that of another one of
// its user, too: if the wrong one ended, nobody could end the other as it did.
func (o *Orders) checkWhose(
	ctx context.Context, order *ramp.Order, result *ramp.Result, at time.Time, d Decision,
) error {
	if d.AgainstEvidence || d.Batch || d.logged || order.State != ramp.OrderAccepted {
		return nil
	}
	if _, unproven := o.prover.Check(order, result.Transaction, &result.Receipt); unproven != nil {
		return nil // which is said when the order would end
	}
	ended, err := o.endedOther(ctx, order.UUID, result.Receipt.TransactionHash)
	if err != nil || ended != nil {
		return err // likewise
	}
	deleted, err := o.endedDeleted(ctx, order.Direction, at)
	if err != nil {
		return err
	}
	if deleted {
		return fmt.Errorf("ramp: order %s: %w: it may have ended an order that was deleted since: ask the "+
			"service whose it is. If it is this order's, finish it against the evidence",
			order.UUID, rampproof.ErrNotProven)
	}
	others, err := o.othersOf(ctx, order)
	if err != nil {
		return err
	}
	for i := range others {
		other := &others[i]
		e, unproven := o.prover.Check(other, result.Transaction, &result.Receipt)
		may := !other.AcceptedAt.Add(-skew).After(at) && mayBeOf(other, result.Receipt.TransactionHash, at)
		if unproven != nil || !may || o.fitsOnly(order, other, &e) {
			continue
		}
		is := "waits"
		if other.State != ramp.OrderAccepted {
			is = "has ended as " + string(other.State)
		}
		return fmt.Errorf("ramp: order %s: %w: it fits order %s, too, which %s: ask the service "+
			"whose it is. If it is this order's, finish this one against the evidence",
			order.UUID, rampproof.ErrNotProven, other.UUID, is)
	}
	return nil
}

// fitsOnly reports whether what a transaction moved is the amount of an order, and not that of another.
func (o *Orders) fitsOnly(order, other *ramp.Order, e *ramp.Evidence) bool {
	moved, pieces := movedBy(e), len(e.TokenIDs) > 0
	return e.Succeeded && moved != nil && o.tradeOf(order).Fits(moved, pieces) &&
		!o.tradeOf(other).Fits(moved, pieces)
}

// checkUnminted returns an error before a mint is given back by its failed transaction, if another
// one may have minted it.
func (o *Orders) checkUnminted(ctx context.Context, order *ramp.Order, d Decision) error {
	if d.fitting {
		return fmt.Errorf("ramp: order %s: its transaction failed: only a person gives back", order.UUID)
	}
	early := d.Early || !d.AgainstEvidence // no other result will come if the transaction proves the failure
	return o.checkUnused(ctx, order.UUID, Decision{WithoutEvidence: d.WithoutEvidence, Early: early,
		logged: d.logged})
}

// FinishFitting ends the orders of findings that are marked as Fitting, each with its
// transaction, as [Orders.Finish] does: a burn is granted, and a mint is marked as
// succeeded. books are those that [rampbooks.Reconciler.Reconcile] has just returned. Nothing is given
// back. It goes on after an error, and returns the steps that were taken, and the errors.
//
// Nothing in this package calls it but the command finish, which a person runs, or a
// scheduler; docs/books.md says what the latter costs.
func (o *Orders) FinishFitting(
	ctx context.Context, books *rampbooks.Reconciliation, d Decision,
) ([]ramp.Step, error) {
	if err := o.made(); err != nil {
		return nil, err
	}
	if d.Settled != "" {
		return nil, invalid.Field("Decision.Settled", "is for one order, which a person has looked at")
	}
	var steps []ramp.Step
	var failed []error
	d.AgainstEvidence, d.WithoutEvidence, d.Batch, d.fitting = false, false, false, true
	for _, f := range books.Findings {
		if !f.Fitting {
			continue
		}
		step, err := o.Finish(ctx, f.Orders[0].UUID, f.Events[0].TxHash, d)
		if err != nil {
			failed = append(failed, fmt.Errorf("order %s was not ended: %w", f.Orders[0].UUID, err))
			continue
		}
		steps = append(steps, step)
	}
	return steps, errors.Join(failed...)
}
