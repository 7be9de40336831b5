package support

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence"
	"github.com/token-ramp/ramp-go/internal/invalid"
	"github.com/token-ramp/ramp-go/rampproof"
)

// Decision says who ends an order by hand, and why. Both are required, and stored as
// [ramp.Order].Reason: "who: reason", in at most 4,096 bytes.
type Decision struct {
	Who    string // the person
	Reason string // why the order is ended by hand

	// AgainstEvidence overrides what the chain shows, which may pay twice: look at the transaction
	// first. It abandons an order although a transaction may be its own, and finishes one although
	// the transaction lacks something that Proof demands, such as the ramp's part in a transaction
	// that a bundler or a forwarder sent, or that settled several players.
	AgainstEvidence bool

	// WithoutEvidence gives back although the chain could not show that nothing happened, which may
	// pay twice, too: the node is behind, unreachable, not configured or of an unknown network, or
	// lists nothing of what is known to have happened. A transaction that the chain does show still
	// counts. It also erases a player without a node; see [Orders.EraseSession].
	WithoutEvidence bool

	// Early abandons an order that has not waited for 13 hours, although its transaction may still
	// be pending, and its result may still come.
	Early bool

	// Settled says how the assets of the order were settled in another way, such as by mail, because
	// the game cannot move them: the player is gone, or the item. The order then ends without moving
	// anything; see [ramp.Settled]. It needs AgainstEvidence.
	Settled string

	fitting bool // for [Orders.FinishFitting]
}

// CandidateError means that an order was not given back, because a transaction on the chain
// may be its own: [Candidate].Objection says why. Finish the order with it, or find out whose
// it is and abandon the order with [Decision].AgainstEvidence.
type CandidateError struct {
	Order     uuid.UUID
	Candidate Candidate
}

// Error names the order and the transaction.
func (e *CandidateError) Error() string {
	return fmt.Sprintf("ramp: order %s: transaction %s may be its own, because %s: "+
		"finish the order with it, or abandon it against the evidence",
		e.Order, e.Candidate.Hash, e.Candidate.Objection)
}

// Finish ends an order as a transaction ended, if the service does not deliver its result: a
// failed mint gives back, and a successful burn grants. [Config].Proof is required, whose
// confirmations the transaction must have. If it does not prove the end of the order, the
// error wraps [rampproof.ErrNotProven]; [Decision].AgainstEvidence overrides that. Before a
// mint is given back, Finish looks for a transaction that minted it, and fails as
// [Orders.Abandon] does. AgainstEvidence does not override a [*CandidateError] here.
//
// Who and why are logged and stored. If the order has ended otherwise, or another order has
// ended by the transaction, the error is a [*ramp.ConflictError]. A result that comes later is
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
		isMint := order.State == ramp.OrderAccepted && order.Direction == ramp.Mint
		if isMint && result.Outcome() == ramp.OrderFailed {
			if err := o.unminted(ctx, &order, d); err != nil {
				return ramp.Step{}, err
			}
		}
		age, err := o.age(ctx, &order, &result.Receipt)
		if err != nil {
			return ramp.Step{}, err
		}
		return o.update(ctx, id, o.proven(result, age, reason, d))
	})
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
	o.prover.LearnDecimals(ctx, evidence.ContractsOf(order)...)
	return &ramp.Result{
		UUID: order.UUID, TxHash: transaction.Hex(), Receipt: *receipt, Transaction: sent,
	}, nil
}

// proven returns the transition that ends an order by a result whose transaction is so much older,
// if that proves its end, or the decision overrides that it does not.
func (o *Orders) proven(
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
			unproven = fmt.Errorf("ramp: order %s: %w: it is %s older than the order",
				result.UUID, rampproof.ErrNotProven, age.Round(time.Minute))
		}
		if unproven != nil && !d.AgainstEvidence {
			return ramp.Step{}, unproven
		}
		return step, nil
	}
}

// update takes a step, and notes in the store that it was refused.
func (o *Orders) update(ctx context.Context, id uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	step, err := o.config.Store.Update(ctx, id, o.scope.Only(next))
	if err != nil {
		if failed := ramp.Refuse(ctx, o.config.Store, id, err); failed != nil {
			o.log().WarnContext(ctx, "ramp: the refusal was not noted", "uuid", id.String(), "error", failed)
		}
	}
	return step, err
}

// ending returns a transition that ends an order as the decision says.
func (d *Decision) ending(end ramp.Transition) ramp.Transition {
	if settled := strings.TrimSpace(d.Settled); settled != "" {
		return ramp.Settled(settled, end)
	}
	return end
}

// age returns how much older than an order its transaction is.
func (o *Orders) age(ctx context.Context, order *ramp.Order, receipt *ramp.Receipt) (time.Duration, error) {
	number, err := receipt.BlockNumber.Uint64()
	if err != nil {
		return 0, err
	}
	block, err := evidence.BlockAt(ctx, o.chain, ramp.AtBlock(number))
	if err != nil {
		return 0, err
	}
	return order.AcceptedAt.Sub(evidence.TimeOf(block.Timestamp)), nil
}

// unminted returns an error before a mint is given back by its failed transaction, if another
// one may have minted it.
func (o *Orders) unminted(ctx context.Context, order *ramp.Order, d Decision) error {
	if d.fitting {
		return fmt.Errorf("ramp: order %s: its transaction failed: only a person gives back", order.UUID)
	}
	early := d.Early || !d.AgainstEvidence // no other result will come if the transaction proves the failure
	return o.unused(ctx, order.UUID, Decision{WithoutEvidence: d.WithoutEvidence, Early: early})
}

// Abandon ends an order whose result will never come, and gives back what it took; see
// [ramp.Abandon]. The service does not learn of it. Who and why are logged and stored.
//
// Without [Decision].Early, it fails for an order that was accepted less than 13 hours ago, which
// must wait: its transaction may be pending, and its result may come. It also reads what the
// order's user has transferred of its token up to now. The error is a [*CandidateError] if a
// transaction may be the order's own, even if it does not prove the order's end. This is one that
// the ramp sent or paid for, or that moved the token from or to the zero address or Contracts of
// Proof, unless another order has rightly ended by it. Giving back what became tokens pays twice.
// [Decision].AgainstEvidence overrides that. A transaction that failed does not count, because
// finishing the order with it gives back the same.
//
// It also fails if the search may not have shown all, as [Report].Incomplete says. Finding nothing
// counts only if the search found what other orders have moved. [Decision].WithoutEvidence
// overrides that.
func (o *Orders) Abandon(ctx context.Context, id uuid.UUID, d Decision) (ramp.Step, error) {
	const done, failed = "ramp: order abandoned", "ramp: order not abandoned"
	return o.decide(ctx, done, failed, id, d, func(reason string) (ramp.Step, error) {
		if err := o.unused(ctx, id, d); err != nil {
			return ramp.Step{}, err
		}
		step, err := o.update(ctx, id, d.ending(ramp.Abandon(reason, o.config.Now())))
		if err != nil {
			return ramp.Step{}, fmt.Errorf("ramp: abandon order %s: %w", id, err)
		}
		return step, nil
	})
}

// waited returns an error if the result of an order may still come.
func (o *Orders) waited(order *ramp.Order, d Decision) error {
	until := order.AcceptedAt.Add(maxDelay)
	if order.State != ramp.OrderAccepted || !until.After(o.config.Now()) || d.Early {
		return nil
	}
	return fmt.Errorf("ramp: order %s: its result may come until %s: wait, or abandon it early",
		order.UUID, until.Format(time.RFC3339))
}

// unused returns an error if a transaction may be that of an order that waits.
func (o *Orders) unused(ctx context.Context, id uuid.UUID, d Decision) error {
	report, err := o.Show(ctx, id)
	switch {
	case report == nil:
		return err
	case report.Order.State != ramp.OrderAccepted:
		return nil
	case d.WithoutEvidence: // but not against what is shown
	case o.chain == nil:
		return fmt.Errorf("ramp: order %s: no node is configured that knows its transaction: "+
			"configure one, or abandon it without evidence", id)
	case err != nil:
		return err
	}
	for _, c := range report.Candidates {
		if c.Objection != "" && !d.AgainstEvidence {
			return &CandidateError{Order: id, Candidate: c}
		}
	}
	if err := o.waited(&report.Order, d); err != nil || d.WithoutEvidence {
		return err
	}
	if report.Incomplete != "" {
		return fmt.Errorf("ramp: order %s: %s: use another node, or decide without evidence",
			id, report.Incomplete)
	}
	return nil
}

// text returns what is stored.
func (d *Decision) text() (string, error) {
	var wrong invalid.Fields
	text := wrong.Reason("Decision", d.Who, d.Reason)
	wrong.Require(d.AgainstEvidence || strings.TrimSpace(d.Settled) == "",
		"Decision.AgainstEvidence", "is required with Settled, which the chain cannot show")
	return text, wrong.Err()
}

// decide makes a decision and logs it as done or failed.
func (o *Orders) decide(ctx context.Context, done, failed string, id uuid.UUID, d Decision,
	do func(reason string) (ramp.Step, error)) (ramp.Step, error) {
	if err := o.made(); err != nil {
		return ramp.Step{}, err
	}
	stored, err := d.text()
	if err != nil {
		return ramp.Step{}, err
	}
	step, err := do(stored)
	log := o.log().With("uuid", id.String(),
		"who", strings.TrimSpace(d.Who), "reason", strings.TrimSpace(d.Reason))
	if err != nil {
		log.ErrorContext(ctx, failed, "error", err)
		return ramp.Step{}, err
	}
	if d.fitting {
		log = log.With("fitting", true)
	}
	if step.Order.Settled != "" {
		log = log.With("settled", step.Order.Settled)
	}
	log.WarnContext(ctx, done, "session_id", step.Order.SessionID,
		"direction", string(step.Order.Direction), "state", string(step.Order.State),
		"tx_hash", step.Order.TxHash, "effect", step.Effect.String(), "new", step.New)
	return step, nil
}
