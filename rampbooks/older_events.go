package rampbooks

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence"
)

// olderOf reads the events of the users of orders that were accepted before the events that
// were read. If the journal knows a transaction, it is read with what it moved for other users, too: an order
// of a player who was erased would else have the event of another one.
func (c *comparison) olderOf(ctx context.Context, orders []ramp.Order) (older [][]ChainEvent, err error) {
	const perFilter = 100
	slices.SortFunc(orders, func(a, b ramp.Order) int { return a.AcceptedAt.Compare(b.AcceptedAt) })
	var users []common.Hash
	var since []time.Time // when the first of these orders of each user was accepted
	for _, o := range orders {
		user := common.BytesToHash(common.HexToAddress(o.UserAddress).Bytes())
		if c.isOld(&o) && common.IsHexAddress(o.UserAddress) && !slices.Contains(users, user) {
			users, since = append(users, user), append(since, o.AcceptedAt.Add(-skew))
		}
	}
	var kept []common.Hash
	for part := range slices.Chunk(users, perFilter) {
		first, err := evidence.LastBlockBefore(ctx, c.chain, since[0], c.final)
		if err != nil {
			return nil, err
		}
		since = since[len(part):]
		for transactions, err := range c.reader.between(ctx, part, first, c.first) {
			if err != nil {
				return nil, err
			}
			for _, transaction := range transactions {
				hash := transaction[0].TxHash
				switch {
				case !transaction[0].Time.Before(c.begin()):
				case len(c.findings.journal.ordersOf[hash]) == 0:
					older = append(older, transaction)
				case !slices.Contains(kept, hash):
					kept = append(kept, hash)
				}
			}
		}
	}
	whole, err := c.readOlder(ctx, kept)
	return append(older, whole...), err
}

// keptOlder reads the transactions of orders of erased players that are older than the events that
// were read.
func (c *comparison) keptOlder(ctx context.Context, orders []ramp.Order) ([][]ChainEvent, error) {
	var kept []common.Hash
	for i := range orders {
		hash, known := c.findings.journal.transactionOf[orders[i].UUID]
		// olderOf reads those of the others.
		if known && !slices.Contains(kept, hash) && c.isOld(&orders[i]) &&
			!common.IsHexAddress(orders[i].UserAddress) {
			kept = append(kept, hash)
		}
	}
	return c.readOlder(ctx, kept)
}

// readOlder reads those of some transactions that are older than the events that were read.
func (c *comparison) readOlder(ctx context.Context, hashes []common.Hash) ([][]ChainEvent, error) {
	receipts, calls := make([]ramp.Receipt, len(hashes)), make([]ramp.BatchCall, len(hashes))
	for i, hash := range hashes {
		calls[i] = evidence.Call(&receipts[i], "eth_getTransactionReceipt", hash)
	}
	if err := evidence.AskAll(ctx, c.Reconciler.chain, calls...); err != nil {
		return nil, err
	}
	var logs []ramp.Log
	for i := range receipts {
		logs = append(logs, receipts[i].Logs...)
	}
	transactions, err := c.reader.transactions(ctx, logs)
	return slices.DeleteFunc(transactions, func(events []ChainEvent) bool {
		return !events[0].Time.Before(c.begin())
	}), err
}

// readEarlier reads again the transactions that earlier books have found for orders that wait
// still. It costs a call for each, in batches.
func (c *comparison) readEarlier(ctx context.Context) error {
	var orders []ramp.Order // of calls
	var calls []ramp.BatchCall
	var receipts []*ramp.Receipt
	inOrder := func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }
	for _, id := range slices.SortedFunc(maps.Keys(c.earlier), inOrder) {
		order, err := c.Reconciler.order(ctx, id)
		switch {
		case errors.Is(err, ramp.ErrOrderUnknown), errors.Is(err, ramp.ErrOrderForeign):
			continue
		case err != nil:
			return err
		case order.State != ramp.OrderAccepted:
			continue
		}
		for _, transaction := range c.earlier[id] {
			c.findings.noteWaiting(id, transaction)
			c.known[transaction] = true
			receipt := new(ramp.Receipt)
			orders, receipts = append(orders, order), append(receipts, receipt)
			calls = append(calls, evidence.Call(receipt, "eth_getTransactionReceipt", transaction))
		}
	}
	if len(calls) == 0 {
		return nil
	}
	calls, err := evidence.Ask(ctx, c.chain, calls...)
	if err != nil {
		return err
	}
	var logs []ramp.Log
	for i, call := range calls {
		if logs = append(logs, receipts[i].Logs...); call.Err != nil {
			c.findings.add(WaitsWithEvent, "", fmt.Sprintf("earlier books found transaction %s, "+
				"which this node does not know: ask another one", call.Params[0]), nil, orders[i])
		}
	}
	transactions, err := c.reader.transactions(ctx, logs)
	for _, events := range transactions {
		if events[0].Time.Before(c.begin()) { // the others are read with all
			c.older = append(c.older, events)
		}
	}
	return err
}
