package support

import (
	"context"
	"errors"
	"fmt"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/invalid"
	"github.com/token-ramp/ramp-go/rampbooks"
)

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
	d.AgainstEvidence, d.WithoutEvidence, d.fitting = false, false, true
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
