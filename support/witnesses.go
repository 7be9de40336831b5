package support

import (
	"context"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence"
	"github.com/token-ramp/ramp-go/rampbooks"
)

// maxWitnesses is how many orders are asked for at either end of a search: the transactions
// of some may be outside of it.
const maxWitnesses = 3

// witnesses returns orders of an order's direction whose transactions are in a range of
// blocks: of those that have ended since a time, some of the first and some of the last.
// latest is when the last one of any direction was accepted. A store that is no [rampbooks.OrderLister] has
// none.
func (o *Orders) witnesses(
	ctx context.Context, order *ramp.Order, since time.Time, first, last uint64,
) (found []*evidence.Witness, latest time.Time, err error) {
	lister, ok := o.config.Store.(rampbooks.OrderLister)
	if !ok {
		return nil, latest, nil
	}
	now := o.config.Now()
	ended := func(from time.Time) ([]ramp.Order, error) {
		orders, err := lister.Ended(ctx, from, now, ramp.OrderPage{Limit: 1000})
		if len(orders) > 0 { // a damaged row comes with an error
			err = nil
		}
		return slices.DeleteFunc(orders, func(e ramp.Order) bool {
			if e.UUID == order.UUID || e.TxHash == "" || o.scope.Check(&e) != nil {
				return true
			}
			latest = slices.MaxFunc([]time.Time{latest, e.AcceptedAt}, time.Time.Compare)
			return e.State != ramp.OrderSucceeded || e.Direction != order.Direction ||
				!common.IsHexAddress(e.UserAddress) || len(evidence.ContractsOf(&e)) != 1
		}), err
	}
	orders, err := ended(since)
	orders = orders[:min(len(orders), maxWitnesses)]
	for age, from := time.Hour, now; err == nil && from.After(since); age *= 6 { // without reading all
		if from = now.Add(-age); from.Before(since) {
			from = since
		}
		var recent []ramp.Order
		if recent, err = ended(from); len(recent) > 0 {
			orders = append(orders, recent[max(0, len(recent)-maxWitnesses):]...)
			break
		}
	}
	if err == nil {
		found, err = o.shown(ctx, orders, first, last)
	}
	return found, latest, err
}

// shown returns the orders whose transactions the node shows in a range of blocks, each once.
func (o *Orders) shown(
	ctx context.Context, orders []ramp.Order, first, last uint64,
) (found []*evidence.Witness, err error) {
	slices.SortFunc(orders, func(a, b ramp.Order) int { return a.FinishedAt.Compare(b.FinishedAt) })
	orders = slices.CompactFunc(orders, func(a, b ramp.Order) bool { return a.UUID == b.UUID })
	receipts, calls := make([]ramp.Receipt, len(orders)), make([]ramp.BatchCall, len(orders))
	for i := range orders {
		hash := common.HexToHash(orders[i].TxHash)
		calls[i] = evidence.Call(&receipts[i], "eth_getTransactionReceipt", hash)
	}
	if len(calls) == 0 {
		return nil, nil
	}
	if calls, err = evidence.AskEach(ctx, o.chain, calls...); err != nil {
		return nil, err
	}
	for i := range orders {
		if calls[i].Err != nil {
			continue
		}
		w := evidence.WitnessOf(&orders[i], &receipts[i])
		if w != nil && first < w.Block && w.Block <= last {
			found = append(found, w)
		}
	}
	return found, nil
}

// byTheirTransactions groups logs, in their order.
func byTheirTransactions(logs []ramp.Log) (transactions [][]ramp.Log) {
	at := map[common.Hash]int{}
	for _, l := range logs {
		n, known := at[l.TransactionHash]
		if !known {
			n, transactions = len(transactions), append(transactions, nil)
			at[l.TransactionHash] = n
		}
		transactions[n] = append(transactions[n], l)
	}
	return transactions
}
