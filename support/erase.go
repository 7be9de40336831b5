package support

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
)

// eraser is a store that makes orders anonymous, such as rampsql.Store.
type eraser interface {
	EraseSession(ctx context.Context, sessionID string, before time.Time) (int, error)
}

// EraseSession makes those orders of a session anonymous that ended before a time, as EraseSession of the
// store does, and returns how many. Before that, for each order that has not succeeded by a transaction
// that it stores, it keeps in [Config].Journal which one on the chain belongs to it, such as for an
// abandoned mint that was minted after all: the books find that one only by the user's address, and
// erasing removes the address. Who and why are stored with it, and must not name the player.
//
// Reconcile finds the same before and after. What is [Ambiguous] has no match that could be kept: decide
// first which transaction is that of which order.
//
// If [Config].Proof is missing and there is such an order, EraseSession fails. With
// [Decision].WithoutEvidence it keeps none. Later books may then find events that nobody ordered.
func (o *Orders) EraseSession(
	ctx context.Context, sessionID string, before time.Time, d Decision,
) (erased int, err error) {
	if err := o.made(); err != nil {
		return 0, err
	}
	if _, err := d.text(); err != nil {
		return 0, err
	}
	ledger, err := o.ledger()
	if err != nil {
		return 0, err
	}
	store, ok := o.config.Store.(eraser)
	if !ok {
		return 0, invalid("Config.Store", "must have the method EraseSession")
	}
	orders, err := o.all(of(ctx, ledger.SessionOrders, strings.TrimSpace(sessionID)))
	if err != nil {
		return 0, err
	}
	orders = slices.DeleteFunc(orders, func(order ramp.Order) bool {
		return order.State == ramp.OrderAccepted || !order.FinishedAt.Before(before) ||
			order.TxHash != "" && order.State == ramp.OrderSucceeded ||
			!common.IsHexAddress(order.UserAddress)
	})
	switch {
	case len(orders) == 0:
	case o.config.Proof != nil:
		if err := o.keepMatches(ctx, ledger, orders, d); err != nil {
			return 0, fmt.Errorf("ramp: erase a session: %w", err)
		}
	case !d.WithoutEvidence:
		return 0, fmt.Errorf("ramp: erase a session: %w: without it, nobody can tell whether a "+
			"transaction on the chain belongs to order %s, and later books may find events that nobody "+
			"ordered; if you read no books, erase without evidence",
			invalid("Config.Proof", "is missing"), orders[0].UUID)
	}
	erased, err = store.EraseSession(ctx, sessionID, before)
	if err == nil {
		o.log().WarnContext(ctx, "ramp: session erased", "who", strings.TrimSpace(d.Who),
			"reason", strings.TrimSpace(d.Reason), "orders", erased)
	}
	return erased, err
}

// keepMatches stores the transactions that belong to orders.
func (o *Orders) keepMatches(ctx context.Context, ledger Ledger, orders []ramp.Order, d Decision) error {
	if o.config.Journal == nil {
		return invalid("Config.Journal", "is required")
	}
	entries, err := o.config.Journal.Entries(ctx, time.Time{})
	if err != nil {
		return err
	}
	known := newJournal(entries)
	r := o.newReconciler(ledger, span{from: o.config.Now()})
	r.journal = known
	matches, err := r.matches(ctx, orders)
	if err != nil {
		return err
	}
	for _, order := range orders {
		hash, matched := matches[order.UUID]
		if _, kept := known.kept[order.UUID]; kept || !matched {
			continue
		}
		e := Entry{ID: uuid.NewSHA1(order.UUID, hash[:]), At: o.config.Now().UTC().Truncate(time.Millisecond),
			Who: strings.TrimSpace(d.Who), Reason: strings.TrimSpace(d.Reason),
			Order: order.UUID, TxHash: hash}
		if err := o.config.Journal.Add(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// matches returns the transactions of orders that the books find by amount.
func (r *reconciler) matches(ctx context.Context, orders []ramp.Order) (map[uuid.UUID]common.Hash, error) {
	if err := r.askDecimals(ctx, r.o.prover.Config.Decimals); err != nil {
		return nil, err
	}
	final, err := r.finalBlock(ctx, r.o.prover.Confirmations)
	if err != nil {
		return nil, err
	}
	r.final, r.to = final, r.o.config.Now()
	if r.first, err = final.Number.Uint64(); err != nil {
		return nil, err
	}
	r.last = r.first
	if r.loose, err = r.olderOf(ctx, orders); err != nil {
		return nil, err
	}
	r.matched = map[uuid.UUID]common.Hash{}
	if err := r.lookUp(ctx); err != nil {
		return nil, err
	}
	r.resolve(r.fits, nil, nil)
	return r.matched, nil
}
