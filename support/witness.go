package support

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence"
)

// witness is an order that ended by a transaction, which the node shows: what it moved is
// known to have happened. That a search finds nothing counts only if it finds the witness.
type witness struct {
	order ramp.Order
	hash  common.Hash
	block uint64
}

// movesFor reports whether a transfer gives the user of a mint something, or takes something
// from that of a burn.
func movesFor(order *ramp.Order, t ramp.Transfer) bool {
	account := t.To
	if order.Direction == ramp.Burn {
		account = t.From
	}
	return account == common.HexToAddress(order.UserAddress) && !evidence.IsDust(&t) &&
		slices.Contains(evidence.ContractsOf(order), t.Token)
}

// maxWitnesses is how many orders are asked for at either end of a search: the transactions
// of some may be outside of it.
const maxWitnesses = 3

// witnesses returns orders of an order's direction whose transactions are in a range of
// blocks: of those that have ended since a time, some of the first and some of the last.
// latest is when the last one of any direction was accepted. A store that is no [Ledger] has
// none.
func (o *Orders) witnesses(
	ctx context.Context, order *ramp.Order, since time.Time, first, last uint64,
) (found []witness, latest time.Time, err error) {
	ledger, ok := o.config.Store.(Ledger)
	if !ok {
		return nil, latest, nil
	}
	now := o.config.Now()
	ended := func(from time.Time) ([]ramp.Order, error) {
		orders, err := ledger.Ended(ctx, from, now, ramp.OrderPage{Limit: 1000})
		if len(orders) > 0 { // a damaged row comes with an error
			err = nil
		}
		return slices.DeleteFunc(orders, func(e ramp.Order) bool {
			if e.UUID == order.UUID || e.TxHash == "" || o.foreign(&e) != nil {
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
) (found []witness, err error) {
	slices.SortFunc(orders, func(a, b ramp.Order) int { return a.FinishedAt.Compare(b.FinishedAt) })
	orders = slices.CompactFunc(orders, func(a, b ramp.Order) bool { return a.UUID == b.UUID })
	receipts, calls := make([]ramp.Receipt, len(orders)), make([]ramp.BatchCall, len(orders))
	for i := range orders {
		hash := common.HexToHash(orders[i].TxHash)
		calls[i] = evidence.Call(&receipts[i], "eth_getTransactionReceipt", hash)
	}
	if len(calls) > 0 {
		err = o.chain.Batch(ctx, calls)
	}
	for i := range orders {
		block, unread := receipts[i].BlockNumber.Uint64()
		moves := func(t ramp.Transfer) bool { return movesFor(&orders[i], t) }
		moved := slices.ContainsFunc(receipts[i].Transfers(), moves)
		if calls[i].Err == nil && unread == nil && block > first && block <= last && moved {
			found = append(found, witness{orders[i], common.HexToHash(orders[i].TxHash), block})
		}
	}
	return found, err
}

// moves returns the logs of what moved for an order's user in a range of blocks, by
// transaction. The same queries must list what moved for the witnesses: unlisted says what
// they did not.
func (o *Orders) moves(
	ctx context.Context, order *ramp.Order, witnesses []witness, first, last uint64,
) (transactions [][]ramp.Log, unlisted string, err error) {
	var tokens []common.Address
	var users []common.Hash
	for _, w := range append(witnesses, witness{order: *order}) {
		tokens = append(tokens, evidence.ContractsOf(&w.order)...)
		users = append(users, common.BytesToHash(common.HexToAddress(w.order.UserAddress).Bytes()))
	}
	slices.SortFunc(tokens, common.Address.Cmp)
	filter := ramp.LogFilter{Addresses: slices.Compact(tokens)}
	filter.Topics = [][]common.Hash{{evidence.TransferTopic}, nil, users}
	if order.Direction == ramp.Burn {
		filter.Topics = [][]common.Hash{{evidence.TransferTopic}, users}
	}
	at, listed := map[common.Hash]int{}, map[common.Hash]bool{}
	for log, err := range evidence.Logs(ctx, o.chain, filter, first, last) {
		if err != nil {
			return nil, "", err
		}
		t, ok := log.Transfer()
		listed[log.TransactionHash] = listed[log.TransactionHash] || ok
		if !ok || !movesFor(order, t) {
			continue
		}
		n, known := at[log.TransactionHash]
		if !known {
			n, transactions = len(transactions), append(transactions, nil)
			at[log.TransactionHash] = n
		}
		transactions[n] = append(transactions[n], log)
	}
	for _, w := range witnesses {
		if !listed[w.hash] {
			return transactions, fmt.Sprintf("the node shows transaction %s of order %s in block %d, "+
				"and lists none of its events: its index is broken, pruned or not built yet",
				w.hash, w.order.UUID, w.block), nil
		}
	}
	return transactions, "", nil
}
