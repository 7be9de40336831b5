package support

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/invalid"
)

// Decision says who ends an order by hand, and why. Both are required, and stored as
// [ramp.Order].Reason: "who: reason", in at most 4,096 bytes.
type Decision struct {
	Who    string // the person
	Reason string // why the order is ended by hand

	// AgainstEvidence overrides what the chain shows, which may pay twice: look at the transaction
	// first. It abandons an order although a transaction may be its own, and finishes one although
	// the transaction lacks something that Proof demands, such as the ramp's part in a transaction
	// that a bundler or a forwarder sent, or that settled several players, or fits another order, too.
	AgainstEvidence bool

	// Batch finishes an order by a transaction that has ended another order, because it settles both, such
	// as a wallet's batch of two burns. What it moved must cover all orders that have ended by it, and this
	// one; nothing overrides that. The order stores no TxHash, because only one order stores a transaction:
	// the journal of Books has it. [Config].Books is required.
	Batch bool

	// WithoutEvidence gives back although the chain could not show that nothing happened, which may
	// pay twice, too: the node is behind, unreachable, not configured or of an unknown network, or
	// lists nothing of what is known to have happened. A transaction that the chain does show still
	// counts. It also erases a player without Books; see [Orders.EraseSession].
	WithoutEvidence bool

	// Early abandons an order that has not waited for 13 hours, or for 13 hours in which the chain made
	// blocks, although its transaction may still be pending, and its result may still come.
	Early bool

	// Settled says how the assets of the order were settled in another way, such as by mail, because
	// the game cannot move them: the player is gone, or the item. The order then ends without moving
	// anything; see [ramp.Settled]. It needs AgainstEvidence.
	Settled string

	fitting bool // for [Orders.FinishFitting]
	logged  bool // for [Orders.Restore]: the log says which transaction ended which order
}

// text returns what is stored.
func (d *Decision) text() (string, error) {
	var wrong invalid.Fields
	text := wrong.Reason("Decision", d.Who, d.Reason)
	wrong.Require(d.AgainstEvidence || strings.TrimSpace(d.Settled) == "",
		"Decision.AgainstEvidence", "is required with Settled, which the chain cannot show")
	return text, wrong.Err()
}

// ending returns a transition that ends an order as the decision says.
func (d *Decision) ending(end ramp.Transition) ramp.Transition {
	if settled := strings.TrimSpace(d.Settled); settled != "" {
		return ramp.Settled(settled, end)
	}
	return end
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
	if d.Batch {
		log = log.With("batch", true)
	}
	if step.Order.Settled != "" {
		log = log.With("settled", step.Order.Settled)
	}
	if !step.New {
		moved, at := step.Order.Moved()
		log = log.With("moved", moved.String(), "moved_at", at)
	}
	log.WarnContext(ctx, done, "session_id", step.Order.SessionID,
		"direction", string(step.Order.Direction), "state", string(step.Order.State),
		"project_id", step.Order.ProjectID, "tx_hash", step.Order.TxHash, "effect", step.Effect.String(),
		"new", step.New, "order", &step.Order)
	return step, nil
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
