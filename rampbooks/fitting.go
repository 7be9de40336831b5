package rampbooks

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence"
	"github.com/token-ramp/ramp-go/internal/orderlist"
)

// markFitting marks the fitting ones among findings, and counts them. It may leave an order to a
// person, and must not mark one whose transaction is another.
func (c *comparison) markFitting(ctx context.Context, findings []Finding) (n int, err error) {
	proof := c.prover
	if c.config.OwnsWallet == nil || len(proof.Payers)+len(proof.Contracts) == 0 ||
		c.byTransaction.witnesses == 0 {
		return 0, nil
	}
	events := map[common.Address][]ChainEvent{}
	for _, e := range c.byAmount.candidates {
		events[e.User] = append(events[e.User], e.ChainEvent)
	}
	var single []*Finding
	var orders []ramp.Order
	for i := range findings {
		f := &findings[i]
		if f.Kind != WaitsWithEvent || len(f.Events) == 0 || !c.isOver(f.Events[0].Time) {
			continue
		}
		order, err := c.onlyOrder(ctx, &f.Events[0])
		if err != nil {
			return 0, err
		}
		if order == nil || c.isOld(order) || c.displaced[order.UUID] ||
			c.byTransaction.wasUsed(f.Events[0].TxHash) || // it settled several orders
			c.countFitting(events[f.Events[0].User], order) != 1 {
			continue
		}
		owns, err := c.config.OwnsWallet(ctx, order.SessionID, f.Events[0].User)
		if err != nil {
			return 0, fmt.Errorf("whose the wallet of order %s is: %w", order.UUID, err)
		}
		if owns {
			single, orders = append(single, f), append(orders, *order)
		}
	}
	return c.proveFitting(ctx, single, orders)
}

// isOver reports whether no delivery of a result can come for what was done at a time. What
// ended a week ago may have been deleted or erased since, and so much may be missing then.
func (c *comparison) isOver(at time.Time) bool {
	return at.Before(c.to.Add(-maxDelay)) && at.After(c.to.Add(-orderlist.MinDeletedAge))
}

// onlyOrder returns the order that an event fits, if it fits no other one of the user, ended or not.
func (c *comparison) onlyOrder(ctx context.Context, e *ChainEvent) (*ramp.Order, error) {
	orders, err := c.scope.All(orderlist.Of(ctx, c.config.Store.UserOrders, e.User.Hex()))
	orders = slices.DeleteFunc(orders, func(o ramp.Order) bool { return !c.byAmount.mayFit(e, &o) })
	if err != nil || len(orders) != 1 {
		return nil, err
	}
	return &orders[0], nil
}

// countFitting counts the events that fit an order.
func (c *comparison) countFitting(events []ChainEvent, order *ramp.Order) (n int) {
	for i := range events {
		if c.byAmount.mayFit(&events[i], order) {
			n++
		}
	}
	return n
}

// proveFitting marks the findings whose transaction proves the end of their order, and counts them.
func (c *comparison) proveFitting(
	ctx context.Context, findings []*Finding, orders []ramp.Order,
) (n int, err error) {
	sent, receipts := make([]ramp.Transaction, len(findings)), make([]ramp.Receipt, len(findings))
	var calls []ramp.BatchCall
	for i, f := range findings {
		calls = append(calls, evidence.Call(&sent[i], "eth_getTransactionByHash", f.Events[0].TxHash),
			evidence.Call(&receipts[i], "eth_getTransactionReceipt", f.Events[0].TxHash))
	}
	if err := evidence.AskAll(ctx, c.chain, calls...); err != nil {
		return 0, err
	}
	for i, f := range findings {
		c.prover.LoadDecimals(ctx, evidence.ContractsOf(&orders[i])...)
		_, unproven := c.prover.Check(&orders[i], &sent[i], &receipts[i])
		if f.Fitting = unproven == nil && receipts[i].Succeeded(); f.Fitting {
			n++
		}
	}
	return n, nil
}
