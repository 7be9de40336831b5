package support

import (
	"context"
	"iter"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
)

// stream is a sequence of chunks that is read by element.
type stream[T any] struct {
	next func() (chunk []T, err error, more bool)
	head []T
}

// peek returns the next element, or nil at the end.
func (s *stream[T]) peek() (*T, error) {
	for len(s.head) == 0 {
		chunk, err, more := s.next()
		if !more || err != nil {
			return nil, err
		}
		s.head = chunk
	}
	return &s.head[0], nil
}

// skip removes the element that peek returned.
func (s *stream[T]) skip() { s.head = s.head[1:] }

// transferTopic is the hash of Transfer(address,address,uint256).
var transferTopic = common.HexToHash("0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef")

// The number of blocks for which logs are asked at once grows and shrinks with the number
// of their logs, so that few logs need few requests, and many logs little memory.
const (
	firstBlocks, maxBlocks = 1 << 10, 1 << 13 // most nodes take 10,000
	fewLogs, manyLogs      = 1 << 9, 1 << 11
)

// events reads the mints and burns in a range of blocks, of some users or of all, in the
// order of the chain. An element has those of one transaction.
func (r *reconciler) events(ctx context.Context, users []common.Hash, first, last uint64) iter.Seq2[[][]ChainEvent, error] {
	return func(yield func([][]ChainEvent, error) bool) {
		blocks := uint64(firstBlocks)
		for from := first; from <= last; {
			to := min(last, from+blocks-1)
			logs, err := r.logs(ctx, users, from, to)
			if err != nil {
				yield(nil, err)
				return
			}
			transactions, err := r.transactions(ctx, logs)
			if err != nil || len(transactions) > 0 {
				if !yield(transactions, err) || err != nil {
					return
				}
			}
			switch {
			case len(logs) < fewLogs:
				blocks = min(maxBlocks, 2*blocks)
			case len(logs) > manyLogs:
				blocks = max(1, blocks/2)
			}
			from = to + 1
		}
	}
}

// logs returns the logs of mints and burns.
func (r *reconciler) logs(ctx context.Context, users []common.Hash, from, to uint64) ([]ramp.Log, error) {
	var all []ramp.Log
	for _, topics := range [][][]common.Hash{{{transferTopic}, r.outside, users}, {{transferTopic}, users, r.outside}} { // mints, burns
		for log, err := range r.chain.LogsBetween(ctx, ramp.LogFilter{Addresses: r.assets.tokens, Topics: topics}, from, to) {
			if err != nil {
				return nil, err
			}
			all = append(all, log)
		}
	}
	return all, nil
}

// transactions returns the events that logs are, by transaction.
func (r *reconciler) transactions(ctx context.Context, logs []ramp.Log) ([][]ChainEvent, error) {
	var list []ChainEvent
	var untimed []uint64
	for i := range logs {
		e, ok := r.event(&logs[i])
		if !ok {
			continue
		}
		if list = append(list, e); e.Time.IsZero() {
			untimed = append(untimed, e.Block)
		}
	}
	slices.SortFunc(list, inChainOrder)
	if err := r.addTimes(ctx, list, untimed); err != nil {
		return nil, err
	}
	return byTransaction(list), nil
}

// event returns the mint or burn that a log is, without its time if that is unknown. Tokens also come from and go to the
// contracts of the ramp; see [ramp.Proof].
func (r *reconciler) event(log *ramp.Log) (e ChainEvent, ok bool) {
	transfer, ok := log.Transfer()
	from, to := r.isOutside(transfer.From), r.isOutside(transfer.To)
	if !ok || from == to || isDust(&transfer) || !slices.Contains(r.assets.tokens, transfer.Token) {
		return e, false
	}
	e = ChainEvent{TxHash: log.TransactionHash, Token: transfer.Token, User: transfer.To, Direction: ramp.Mint, units: transfer.Value}
	if to {
		e.User, e.Direction = transfer.From, ramp.Burn
	}
	if transfer.TokenID != nil {
		e.units = big.NewInt(1)
	}
	e.Block, _ = log.BlockNumber.Uint64()
	e.LogIndex, _ = log.LogIndex.Uint64()
	e.Time = timeOf(log.BlockTimestamp)
	return e, true
}

func (r *reconciler) isOutside(a common.Address) bool {
	return slices.Contains(r.outside, common.BytesToHash(a[:]))
}

// byTransaction cuts events, of which those of one transaction are neighbors. It adds up
// those that have the same token, user and direction, such as the pieces of a non-fungible
// token.
func byTransaction(events []ChainEvent) (transactions [][]ChainEvent) {
	for _, e := range events {
		last := len(transactions) - 1
		if last < 0 || transactions[last][0].TxHash != e.TxHash {
			transactions = append(transactions, []ChainEvent{e})
			continue
		}
		n := slices.IndexFunc(transactions[last], func(s ChainEvent) bool { return s.Token == e.Token && s.User == e.User && s.Direction == e.Direction })
		if n < 0 {
			transactions[last] = append(transactions[last], e)
			continue
		}
		sum := &transactions[last][n]
		sum.units = new(big.Int).Add(sum.units, e.units)
	}
	return transactions
}

// addTimes sets the times of events whose logs have none, as on some chains, from the
// headers of their blocks.
func (r *reconciler) addTimes(ctx context.Context, events []ChainEvent, untimed []uint64) error {
	slices.Sort(untimed)
	untimed = slices.Compact(untimed)
	blocks, calls := make([]ramp.Block, len(untimed)), make([]ramp.BatchCall, len(untimed))
	for i, n := range untimed {
		calls[i] = ask(&blocks[i], "eth_getBlockByNumber", ramp.AtBlock(n), false)
	}
	if err := r.o.batch(ctx, calls); err != nil {
		return err
	}
	for i := range events {
		if n, found := slices.BinarySearch(untimed, events[i].Block); found {
			events[i].Time = timeOf(blocks[n].Timestamp)
		}
	}
	return nil
}

// pages reads a list of orders page by page, without those of other projects and networks.
// A damaged row comes with an error, but is listed.
func (o *Orders) pages(list listing) iter.Seq2[[]ramp.Order, error] {
	damaged := func(order ramp.Order) bool { return isDamaged(&order) }
	return func(yield func([]ramp.Order, error) bool) {
		for page := (ramp.OrderPage{Limit: 1000}); ; {
			orders, err := list(page)
			if err != nil && !slices.ContainsFunc(orders, damaged) {
				yield(nil, err)
				return
			}
			if len(orders) == 0 {
				return
			}
			page.After = orders[len(orders)-1]
			if !yield(slices.DeleteFunc(orders, func(order ramp.Order) bool { return o.foreign(&order) != "" }), nil) {
				return
			}
		}
	}
}

// ledger returns the store, which must be a [Ledger].
func (o *Orders) ledger() (Ledger, error) {
	if store, ok := o.config.Store.(Ledger); ok {
		return store, nil
	}
	return nil, invalid("Config.Store", "must be a Ledger")
}

// listing returns a page of a list of orders.
type listing = func(ramp.OrderPage) ([]ramp.Order, error)

// of returns the listing of a user or a session.
func of(ctx context.Context, list func(context.Context, string, ramp.OrderPage) ([]ramp.Order, error), name string) listing {
	return func(page ramp.OrderPage) ([]ramp.Order, error) { return list(ctx, name, page) }
}

// all reads a whole list.
func (o *Orders) all(list listing) (all []ramp.Order, err error) {
	for page, failed := range o.pages(list) {
		all, err = append(all, page...), failed
	}
	return all, err
}
