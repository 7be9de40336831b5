package rampbooks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence"
	"github.com/token-ramp/ramp-go/internal/orderlist"
)

// checkUnseen reads the receipts of orders that ended by a transaction without events in
// what was read. A failed order has none, unless its event is much older.
func (c *comparison) checkUnseen(ctx context.Context) error {
	var orders []ramp.Order
	for _, o := range c.byTransaction.unseen {
		slow := o.FinishedAt.Sub(o.AcceptedAt) > maxDelay-skew
		if o.State == ramp.OrderSucceeded || slow {
			orders = append(orders, o)
		}
		if o.State != ramp.OrderSucceeded && slow {
			c.byTransaction.lateFailures = append(c.byTransaction.lateFailures, o)
		}
	}
	c.byTransaction.unseen = nil
	receipts := make([]ramp.Receipt, len(orders))
	calls := make([]ramp.BatchCall, len(orders))
	for i, o := range orders {
		calls[i] = evidence.Call(&receipts[i], "eth_getTransactionReceipt", o.TxHash)
	}
	if len(calls) == 0 {
		return nil
	}
	calls, newest, err := evidence.AskWithNewest(ctx, c.chain, calls...)
	if err == nil {
		err = evidence.Behind(newest, c.last)
	}
	if err != nil {
		return err
	}
	for i := range orders {
		if err := calls[i].Err; err != nil && !errors.Is(err, ramp.ErrNotFound) {
			return err
		}
		if err := c.checkReceipt(ctx, &orders[i], &receipts[i], calls[i].Err == nil); err != nil {
			return err
		}
	}
	return nil
}

// findKnown looks for the event of an order that ended in the period. Each request for a list asks for it,
// too: behind an address, there may be a machine that lists nothing.
func (c *comparison) findKnown(ctx context.Context) error {
	const most = 3 // the transactions of some may be gone
	orders, err := c.config.Store.Ended(ctx, c.begin(), c.to, ramp.OrderPage{Limit: 100})
	if len(orders) == 0 { // otherwise a damaged row comes with an error
		return err
	}
	orders = slices.DeleteFunc(orders, func(o ramp.Order) bool {
		return o.State != ramp.OrderSucceeded || o.TxHash == "" || orderlist.IsDamaged(&o) ||
			c.scope.Check(&o) != nil || !common.IsHexAddress(o.UserAddress) ||
			len(evidence.ContractsOf(&o)) != 1
	})
	orders = orders[:min(len(orders), most)]
	receipts, calls := make([]ramp.Receipt, len(orders)), make([]ramp.BatchCall, len(orders))
	for i, o := range orders {
		calls[i] = evidence.Call(&receipts[i], "eth_getTransactionReceipt", o.TxHash)
	}
	if len(calls) == 0 {
		return nil
	}
	if calls, err = evidence.Ask(ctx, c.chain, calls...); err != nil {
		return err
	}
	for i := range orders {
		if calls[i].Err != nil {
			continue
		}
		w := evidence.WitnessOf(&orders[i], &receipts[i])
		if w != nil && c.first < w.Block && w.Block <= c.last {
			c.reader.known = []*evidence.Witness{w}
			return nil
		}
	}
	return nil
}

// checkReceipt judges an order by the receipt of its transaction.
func (c *comparison) checkReceipt(ctx context.Context, o *ramp.Order, receipt *ramp.Receipt,
	found bool) error {
	why := "its transaction moved none of the tokens"
	block, err := receipt.BlockNumber.Uint64()
	switch {
	case !found, err != nil:
		c.byAmount.addUndone(o, "the node does not know its transaction: a reorganization removed it, "+
			"the node has pruned or not indexed it, or it was invented; ask another node first")
		return nil
	case block > c.last:
		c.findings.open++
		return nil
	case !receipt.Status.Present():
		c.byAmount.addUndone(o, "the node's receipt of its transaction has no status; ask another node first")
		return nil
	case !receipt.Succeeded():
		c.byAmount.addUndone(o, "its transaction failed")
		return nil
	default:
		events, err := c.reader.transactions(ctx, receipt.Logs)
		if err != nil {
			return err
		}
		if len(events) > 0 {
			if err := c.splitByJournal(ctx, events[0]); err != nil { // of one transaction
				return err
			}
			if block > c.first { // which was read in part
				c.unlisted = append(c.unlisted, *o)
			}
			c.byTransaction.pair(c.catalog.Order(*o), slices.Concat(events...))
			orders, err := c.scope.All(orderlist.Of(ctx, c.config.Store.UserOrders, o.UserAddress))
			if slices.ContainsFunc(orders, func(other ramp.Order) bool {
				return other.UUID != o.UUID && strings.EqualFold(other.TxHash, o.TxHash)
			}) { // with one that is older than those that were read
				c.byTransaction.shared = append(c.byTransaction.shared, *o)
			}
			return err
		}
	}
	if o.State == ramp.OrderSucceeded {
		c.findings.add(OrderWithoutEvent, "", why, nil, *o)
	}
	return nil
}

// checkListed returns an error if the node shows events that it did not list: it may hide any
// other, such as a stolen mint.
func (c *comparison) checkListed() error {
	for _, o := range c.unlisted {
		if hash := common.HexToHash(o.TxHash); !c.byTransaction.wasListed(hash) {
			return fmt.Errorf("the node shows transaction %s of order %s, and lists none of its events: "+
				"its index is broken, pruned or not built yet, so ask another node", hash, o.UUID)
		}
	}
	return nil
}
