package support

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence"
)

// Decision says who ends an order by hand, and why. Both are required, and stored as
// [ramp.Order].Reason: "who: reason", in at most 4,096 bytes.
type Decision struct {
	Who    string // the person
	Reason string // why the order is ended by hand

	// Anyway abandons an order without a look at the chain: although a transaction there
	// may be its own, or although the node is behind, unreachable or not configured.
	Anyway bool

	// Early abandons an order that has not waited for 13 hours: although its transaction may
	// still be pending, and its result may still come.
	Early bool

	fitting bool // for [Orders.FinishFitting]
}

// CandidateError means that an order was not abandoned, because a transaction on the
// chain may be its own: [Candidate].Objection says why. Finish the order with it, or find
// out whose it is and set [Decision].Anyway.
type CandidateError struct {
	Order     uuid.UUID
	Candidate Candidate
}

// Error names the order and the transaction.
func (e *CandidateError) Error() string {
	return fmt.Sprintf("ramp: order %s: transaction %s may be its own, because %s: finish the order with it, or abandon it anyway",
		e.Order, e.Candidate.Hash, e.Candidate.Objection)
}

// Finish ends an order as a transaction ended, if the service does not deliver its
// result: a failed mint gives back, and a successful burn grants. [Config].Proof is
// required. What it accepts, with its confirmations, is accepted, and nothing else:
// otherwise the error wraps [rampproof.ErrNotProven], or says how many confirmations are
// missing.
//
// Who and why are logged and stored. If the order has ended otherwise, or another order has
// ended by the transaction, the error is a [*ramp.ConflictError]. A result that comes later is
// a repeat.
func (o *Orders) Finish(ctx context.Context, id uuid.UUID, transaction common.Hash, d Decision) (ramp.Step, error) {
	const done, failed = "ramp: order finished", "ramp: order not finished"
	return o.decide(ctx, done, failed, id, d, func(reason string) (ramp.Step, error) {
		if o.chain == nil {
			return ramp.Step{}, invalid("Config.Proof", "is required")
		}
		order, err := o.order(ctx, id)
		if err != nil {
			return ramp.Step{}, err
		}
		soon, cancel := context.WithTimeout(ctx, 10*time.Second) // it does not wait for confirmations
		defer cancel()
		sent, receipt, err := o.chain.WaitTransaction(soon, transaction, o.prover.Confirmations)
		if err != nil {
			return ramp.Step{}, err
		}
		o.prover.LearnDecimals(ctx, evidence.ContractsOf(&order)...)
		result := &ramp.Result{UUID: id, TxHash: transaction.Hex(), Receipt: *receipt}
		finish := ramp.Finish(result, o.config.Now())
		return o.config.Store.Update(ctx, id, o.mine(func(stored *ramp.Order) (ramp.Step, error) {
			step, err := finish(stored)
			if err == nil && step.New {
				step.Order.Reason = reason
				step.Evidence, err = o.prover.Check(stored, sent, receipt)
			}
			if err == nil && d.fitting && step.Effect.Kind == ramp.GiveBack {
				return ramp.Step{}, fmt.Errorf("ramp: order %s: its transaction failed: only a person gives back", id)
			}
			return step, err
		}))
	})
}

// Abandon ends an order whose result will never come, and gives back what it took; see
// [ramp.Abandon]. The service does not learn of it. Who and why are logged and stored.
//
// It fails for an order that was accepted less than 13 hours ago: its transaction may be
// pending, and its result may come, for which the order must wait. It also reads what the
// order's user has transferred of its token up to now. The error is a [*CandidateError] if a
// transaction may be the order's own, whatever Proof misses: one that the ramp sent or paid
// for, or that moved the token from or to the zero address or Contracts of Proof, unless
// another order has rightly ended by it. Giving back what became tokens pays twice. A
// transaction that failed does not count, because finishing the order with it gives back the
// same.
func (o *Orders) Abandon(ctx context.Context, id uuid.UUID, d Decision) (ramp.Step, error) {
	return o.decide(ctx, "ramp: order abandoned", "ramp: order not abandoned", id, d, func(reason string) (ramp.Step, error) {
		if !d.Anyway {
			if err := o.unused(ctx, id); err != nil {
				return ramp.Step{}, err
			}
		}
		now := o.config.Now()
		abandon := ramp.Abandon(reason, now)
		step, err := o.config.Store.Update(ctx, id, o.mine(func(stored *ramp.Order) (ramp.Step, error) {
			if stored != nil && stored.State == ramp.OrderAccepted && !d.Early && stored.AcceptedAt.After(now.Add(-maxDelay)) {
				return ramp.Step{}, fmt.Errorf("its result may come until %s: wait, or abandon it early", stored.AcceptedAt.Add(maxDelay).Format(time.RFC3339))
			}
			return abandon(stored)
		}))
		if err != nil {
			return ramp.Step{}, fmt.Errorf("ramp: abandon order %s: %w", id, err)
		}
		return step, nil
	})
}

// unused returns an error if a transaction may be that of an order that waits.
func (o *Orders) unused(ctx context.Context, id uuid.UUID) error {
	report, err := o.Show(ctx, id)
	if err != nil || report.Order.State != ramp.OrderAccepted {
		return err
	}
	switch {
	case o.chain == nil:
		return fmt.Errorf("ramp: order %s: no node is configured that knows its transaction: configure one, or abandon it anyway", id)
	case report.LastTime.Before(o.config.Now().Add(-skew)):
		return fmt.Errorf("ramp: order %s: the node is behind: its newest block is of %s", id, report.LastTime.Format(time.RFC3339))
	}
	for _, c := range report.Candidates {
		if c.Objection != "" {
			return &CandidateError{Order: id, Candidate: c}
		}
	}
	return nil
}

// text returns what is stored.
func (d *Decision) text() (string, error) {
	who, reason := strings.TrimSpace(d.Who), strings.TrimSpace(d.Reason)
	text := who + ": " + reason
	var wrong problems
	wrong.require(who != "", "Decision.Who")
	wrong.require(reason != "", "Decision.Reason")
	wrong.demand(len(text) <= maxReason && utf8.ValidString(text) && !strings.ContainsRune(text, 0),
		"Decision.Reason", fmt.Sprintf("must be UTF-8 without NUL, with Who in at most %d bytes", maxReason))
	return text, wrong.err()
}

// maxReason is how many bytes of a reason every store can keep.
const maxReason = 4096

// decide makes a decision and logs it as done or failed.
func (o *Orders) decide(ctx context.Context, done, failed string, id uuid.UUID, d Decision, do func(reason string) (ramp.Step, error)) (ramp.Step, error) {
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
	log.WarnContext(ctx, done, "session_id", step.Order.SessionID,
		"direction", string(step.Order.Direction), "state", string(step.Order.State),
		"tx_hash", step.Order.TxHash, "effect", step.Effect.String(), "new", step.New)
	return step, nil
}
