package rampbooks

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence"
	"github.com/token-ramp/ramp-go/internal/orderlist"
)

// fitter marks the findings whose order and event fit each other and nothing else.
type fitter struct {
	*matcher
	o      *Reconciler
	store  OrderLister
	events []candidate        // that have no order by their transaction, and fit some
	lost   map[uuid.UUID]bool // orders whose transaction has ended another
}

// mark marks the fitting ones among findings, and counts them. It may leave an order to a
// person, and must not mark one whose transaction is another.
func (m *fitter) mark(ctx context.Context, findings []Finding) (n int, err error) {
	proof := m.o.prover
	if m.o.config.OwnsWallet == nil || len(proof.Payers)+len(proof.Contracts) == 0 || m.witnesses == 0 {
		return 0, nil
	}
	events := map[common.Address][]ChainEvent{}
	for _, c := range m.events {
		events[c.User] = append(events[c.User], c.ChainEvent)
	}
	var single []*Finding
	var orders []ramp.Order
	for i := range findings {
		f := &findings[i]
		if f.Kind != WaitsWithEvent || len(f.Events) == 0 || !m.isOver(f.Events[0].Time) {
			continue
		}
		order, err := m.only(ctx, &f.Events[0])
		if err != nil {
			return 0, err
		}
		if order == nil || m.isOld(order) || m.lost[order.UUID] ||
			m.fitting(events[f.Events[0].User], order) != 1 {
			continue
		}
		owns, err := m.o.config.OwnsWallet(ctx, order.SessionID, f.Events[0].User)
		if err != nil {
			return 0, fmt.Errorf("whose the wallet of order %s is: %w", order.UUID, err)
		}
		if owns {
			single, orders = append(single, f), append(orders, *order)
		}
	}
	return m.prove(ctx, single, orders)
}

// isOver reports whether no delivery of a result can come for what was done at a time. What
// ended a week ago may have been deleted or erased since, and so much may be missing then.
func (m *fitter) isOver(at time.Time) bool {
	return at.Before(m.to.Add(-maxDelay)) && at.After(m.to.Add(-7*24*time.Hour))
}

// only returns the order that an event fits, if it fits no other one of the user, ended or not.
func (m *fitter) only(ctx context.Context, e *ChainEvent) (*ramp.Order, error) {
	orders, err := m.o.scope.All(orderlist.Of(ctx, m.store.UserOrders, e.User.Hex()))
	orders = slices.DeleteFunc(orders, func(o ramp.Order) bool { return !m.mayFit(e, &o) })
	if err != nil || len(orders) != 1 {
		return nil, err
	}
	return &orders[0], nil
}

// fitting counts the events that fit an order.
func (m *fitter) fitting(events []ChainEvent, order *ramp.Order) (n int) {
	for i := range events {
		if m.mayFit(&events[i], order) {
			n++
		}
	}
	return n
}

// prove marks the findings whose transaction proves the end of their order, and counts them.
func (m *fitter) prove(ctx context.Context, findings []*Finding, orders []ramp.Order) (n int, err error) {
	sent, receipts := make([]ramp.Transaction, len(findings)), make([]ramp.Receipt, len(findings))
	var calls []ramp.BatchCall
	for i, f := range findings {
		calls = append(calls, evidence.Call(&sent[i], "eth_getTransactionByHash", f.Events[0].TxHash),
			evidence.Call(&receipts[i], "eth_getTransactionReceipt", f.Events[0].TxHash))
	}
	if err := evidence.AskAll(ctx, m.o.chain, calls...); err != nil {
		return 0, err
	}
	for i, f := range findings {
		m.o.prover.LearnDecimals(ctx, evidence.ContractsOf(&orders[i])...)
		_, unproven := m.o.prover.Check(&orders[i], &sent[i], &receipts[i])
		if f.Fitting = unproven == nil && receipts[i].Succeeded(); f.Fitting {
			n++
		}
	}
	return n, nil
}
