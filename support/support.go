// Package support helps a person with an order whose result does not come: it shows the
// order and the transactions that may be its own, and ends it by hand. It also compares the
// orders with the chain. Use it in an admin tool of your own, or give your server its
// commands with [NewCommand]. docs/on-call.md has the table by which to decide.
package support

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
)

// Orders shows and ends the orders of a store. Make one with [New]. It is safe for
// concurrent use.
type Orders struct{ config Config }

// Config configures an [Orders]. Store is required. Every other field may be zero,
// which means its default.
type Config struct {
	// Store keeps the orders. Required.
	Store ramp.Store

	// Chain is where transactions are searched and confirmed. Without it, Show shows
	// only the order, Finish fails, and Abandon needs [Decision].Anyway.
	Chain *ramp.RPC

	// Proof says what a transaction must show before it ends an order. Use that of the
	// handler. Decimals that it lacks are asked of the chain. Required if Chain is set.
	Proof *ramp.Proof

	// Confirmations is how many confirmations [Orders.Finish] demands, counting the
	// block of the transaction. Use that of the handler. The default is 1.
	Confirmations uint64

	// ProjectID, if set, hides the orders of other projects.
	ProjectID string

	// Network, if set, hides the orders of the other network.
	Network ramp.Network

	// Products are what the game sells and has sold, under each of its prices, for
	// [Orders.Reconcile]. They name the totals, and say what the fee of a mint is. Without
	// a product, every fee is accepted.
	Products []ramp.Product

	// Tokens are the token contracts of the game, besides those of Products.
	Tokens []common.Address

	// Sessions returns the sessions of a player. Without it, the command list finds no
	// orders by the player's name.
	Sessions func(ctx context.Context, player string) ([]string, error)

	// Logger gets one record per decision: "ramp: order abandoned" or "ramp: order
	// finished" with uuid, who, reason, session_id, direction, state, tx_hash, effect
	// and new, or "ramp: order not abandoned" or "ramp: order not finished" with the
	// cause. [Orders.KeepBooks] logs what it finds. The default is [slog.Default].
	Logger *slog.Logger

	// Now is the clock of Order.FinishedAt and of the age of orders. The default is [time.Now].
	Now func() time.Time
}

// New returns an Orders. The error is a [*ramp.InvalidError] that lists every missing
// or wrong field of c.
func New(c Config) (*Orders, error) {
	var wrong problems
	wrong.require(c.Store != nil, "Config.Store")
	wrong.require(c.Chain == nil || c.Proof != nil, "Config.Proof")
	wrong.demand(c.Chain == nil || c.Proof == nil || len(c.Proof.Payers) > 0 || c.Proof.AnyFailure, "Config.Proof.Payers", "is required, unless AnyFailure is set: no failure would be proven")
	if err := wrong.err(); err != nil {
		return nil, err
	}
	c.Confirmations = max(1, c.Confirmations)
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Orders{config: c}, nil
}

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

// Show returns an order and the transactions that may be its own, best first. It changes
// nothing. If there is no such order, the error wraps [ramp.ErrOrderUnknown]. If the
// chain cannot be read, Show returns the order together with the error.
func (o *Orders) Show(ctx context.Context, id uuid.UUID) (*Report, error) {
	order, err := o.order(ctx, id)
	if err != nil {
		return nil, err
	}
	report := &Report{Order: order}
	if o.config.Chain == nil {
		report.Unread = "no node is configured"
	} else if err := o.search(ctx, report); err != nil {
		return &Report{Order: order, Unread: err.Error()}, fmt.Errorf("ramp: order %s: read the chain: %w", id, err)
	}
	return report, nil
}

// Finish ends an order as a transaction ended, if the service does not deliver its
// result: a failed mint gives back, and a successful burn grants. [Config].Chain is
// required. It accepts what [Config].Proof accepts, with the confirmations of
// [Config].Confirmations, and nothing else: otherwise the error wraps
// [ramp.ErrNotProven], or says how many confirmations are missing.
//
// Who and why are logged and stored. If the order has ended otherwise, or another order has
// ended by the transaction, the error is a [*ramp.ConflictError]. A result that comes later is
// a repeat.
func (o *Orders) Finish(ctx context.Context, id uuid.UUID, transaction common.Hash, d Decision) (ramp.Step, error) {
	const done, failed = "ramp: order finished", "ramp: order not finished"
	return o.decide(ctx, done, failed, id, d, func(reason string) (ramp.Step, error) {
		if o.config.Chain == nil {
			return ramp.Step{}, invalid("Config.Chain", "is required")
		}
		order, err := o.order(ctx, id)
		if err != nil {
			return ramp.Step{}, err
		}
		soon, cancel := context.WithTimeout(ctx, 10*time.Second) // it does not wait for confirmations
		defer cancel()
		receipt, err := o.config.Chain.WaitReceipt(soon, transaction, o.config.Confirmations)
		if err != nil {
			return ramp.Step{}, err
		}
		sent, err := o.config.Chain.Transaction(soon, transaction)
		if err != nil {
			return ramp.Step{}, err
		}
		proof := o.proof(ctx, &order)
		result := &ramp.Result{UUID: id, TxHash: transaction.Hex(), Receipt: *receipt}
		finish := ramp.Finish(result, o.config.Now())
		return o.config.Store.Update(ctx, id, o.mine(func(stored *ramp.Order) (ramp.Step, error) {
			step, err := finish(stored)
			if err == nil && step.New {
				step.Order.Reason = reason
				step.Evidence, err = proof.Check(stored, sent, receipt)
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
	case o.config.Chain == nil:
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

// order returns the stored order. It asks a [Ledger] for no right to write.
func (o *Orders) order(ctx context.Context, id uuid.UUID) (ramp.Order, error) {
	if ledger, ok := o.config.Store.(Ledger); ok {
		order, err := ledger.Order(ctx, id)
		if field := o.foreign(&order); err == nil && field != "" {
			err = &ramp.ConflictError{Order: order, Field: field}
		}
		return order, err
	}
	step, err := o.config.Store.Update(ctx, id, o.mine(func(stored *ramp.Order) (ramp.Step, error) {
		if stored == nil {
			return ramp.Step{}, fmt.Errorf("ramp: order %s: %w", id, ramp.ErrOrderUnknown)
		}
		return ramp.Step{Order: *stored}, nil // a repeat: nothing is stored
	}))
	return step.Order, err
}

// mine makes a transition see only orders of the project and the network.
func (o *Orders) mine(next ramp.Transition) ramp.Transition {
	return func(stored *ramp.Order) (ramp.Step, error) {
		if stored != nil {
			if field := o.foreign(stored); field != "" {
				return ramp.Step{}, &ramp.ConflictError{Order: *stored, Field: field}
			}
		}
		return next(stored)
	}
}

// foreign returns by which field an order is of another project or network, or "".
func (o *Orders) foreign(order *ramp.Order) string {
	switch c := &o.config; {
	case c.ProjectID != "" && order.ProjectID != c.ProjectID:
		return "project_id"
	case c.Network != "" && order.Network != "" && order.Network != c.Network:
		return "network"
	default:
		return ""
	}
}

// proof returns what the transaction of an order must show, with the decimals of its
// token.
func (o *Orders) proof(ctx context.Context, order *ramp.Order) *ramp.Proof {
	proof := *o.config.Proof
	proof.Decimals = map[common.Address]int{}
	maps.Copy(proof.Decimals, o.config.Proof.Decimals)
	for _, token := range contractsOf(order) {
		if _, known := proof.Decimals[token]; known {
			continue
		}
		if decimals, err := o.config.Chain.TokenDecimals(ctx, token); err == nil { // otherwise Check says what is missing
			proof.Decimals[token] = decimals
		}
	}
	return &proof
}

// maxReason is how many bytes of a reason every store can keep.
const maxReason = 4096

// decide makes a decision and logs it as done or failed.
func (o *Orders) decide(ctx context.Context, done, failed string, id uuid.UUID, d Decision, do func(reason string) (ramp.Step, error)) (ramp.Step, error) {
	who, reason := strings.TrimSpace(d.Who), strings.TrimSpace(d.Reason)
	stored := who + ": " + reason
	var wrong problems
	wrong.require(who != "", "Decision.Who")
	wrong.require(reason != "", "Decision.Reason")
	wrong.demand(len(stored) <= maxReason && utf8.ValidString(stored) && !strings.ContainsRune(stored, 0),
		"Decision.Reason", fmt.Sprintf("must be UTF-8 without NUL, with Who in at most %d bytes", maxReason))
	if err := wrong.err(); err != nil {
		return ramp.Step{}, err
	}
	step, err := do(stored)
	log := o.log().With("uuid", id.String(), "who", who, "reason", reason)
	if err != nil {
		log.ErrorContext(ctx, failed, "error", err)
		return ramp.Step{}, err
	}
	log.WarnContext(ctx, done, "session_id", step.Order.SessionID, "direction", string(step.Order.Direction), "state", string(step.Order.State),
		"tx_hash", step.Order.TxHash, "effect", step.Effect.String(), "new", step.New)
	return step, nil
}

func (o *Orders) log() *slog.Logger { return cmp.Or(o.config.Logger, slog.Default()) }

// problems collects what is wrong with a config or a decision.
type problems []ramp.FieldError

func (p *problems) require(ok bool, path string) { p.demand(ok, path, "is required") }

func (p *problems) demand(ok bool, path, problem string) {
	if !ok {
		*p = append(*p, ramp.FieldError{Path: path, Problem: problem})
	}
}

func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	return &ramp.InvalidError{Fields: p}
}

func invalid(path, problem string) error { return problems{{Path: path, Problem: problem}}.err() }

// endedOther returns another order that a transaction has ended, or nil if there is none or
// the store is no [Ledger].
func (o *Orders) endedOther(ctx context.Context, id uuid.UUID, transaction common.Hash) (*ramp.Order, error) {
	store, ok := o.config.Store.(Ledger)
	if !ok {
		return nil, nil
	}
	order, err := store.OrderByTransaction(ctx, transaction)
	switch {
	case errors.Is(err, ramp.ErrOrderUnknown):
		return nil, nil
	case err != nil, order.UUID == id:
		return nil, err
	default:
		return &order, nil
	}
}
