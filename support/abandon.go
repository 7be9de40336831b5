package support

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
)

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
// It also fails if the chain stood still: it must have made blocks in 13 of the hours since the order was
// accepted, as [Report].ChainHours says. Otherwise the transaction may have waited with the chain, and may
// still come. Early overrides that, too.
//
// It also fails if the search may not have shown all, as [Report].Incomplete says. Finding nothing
// counts only if the search found what other orders have moved. [Decision].WithoutEvidence
// overrides that.
func (o *Orders) Abandon(ctx context.Context, id uuid.UUID, d Decision) (ramp.Step, error) {
	const done, failed = "ramp: order abandoned", "ramp: order not abandoned"
	return o.decide(ctx, done, failed, id, d, func(reason string) (ramp.Step, error) {
		if err := o.checkUnused(ctx, id, d); err != nil {
			return ramp.Step{}, err
		}
		step, err := o.update(ctx, id, d.ending(ramp.Abandon(reason, o.config.Now())))
		if err != nil {
			return ramp.Step{}, fmt.Errorf("ramp: abandon order %s: %w", id, err)
		}
		return step, nil
	})
}

// checkWaited returns an error if the result of an order may still come.
func (o *Orders) checkWaited(order *ramp.Order, d Decision) error {
	until := order.AcceptedAt.Add(maxDelay)
	if order.State != ramp.OrderAccepted || !until.After(o.config.Now()) || d.Early {
		return nil
	}
	return fmt.Errorf("ramp: order %s: its result may come until %s: wait, or abandon it early",
		order.UUID, until.Format(time.RFC3339))
}

// checkUnused returns an error if a transaction may be that of an order that waits.
func (o *Orders) checkUnused(ctx context.Context, id uuid.UUID, d Decision) error {
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
		isOther := d.logged && c.EndedOther != nil
		if c.Objection != "" && !d.AgainstEvidence && !isOther {
			return &CandidateError{Order: id, Candidate: c}
		}
	}
	if err := o.checkWaited(&report.Order, d); err != nil || d.WithoutEvidence {
		return err
	}
	if report.Incomplete != "" {
		return fmt.Errorf("ramp: order %s: %s: use another node, or decide without evidence",
			id, report.Incomplete)
	}
	if stood := report.stoodStill(); stood != "" && !d.Early {
		return fmt.Errorf("ramp: order %s: %s: wait, or abandon it early", id, stood)
	}
	return nil
}
