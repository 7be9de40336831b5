package rampbooks

import (
	"context"
	"fmt"
	"iter"
	"math/big"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/catalog"
	"github.com/token-ramp/ramp-go/internal/evidence"
)

// The number of blocks for which logs are asked at once grows and shrinks with the number
// of their logs, so that few logs need few requests, and many logs little memory.
const (
	firstBlocks, maxBlocks = 1 << 10, 1 << 13 // most nodes take 10,000
	fewLogs, manyLogs      = 1 << 9, 1 << 11
	maxParts               = 8 // ranges whose events are handed on together
)

// chainReader reads the mints and burns of the game's tokens from the chain.
type chainReader struct {
	chain   *ramp.RPC
	catalog *catalog.Catalog
	border  time.Time           // where the period begins
	known   []*evidence.Witness // what each request must list, too
	outside []common.Hash       // where tokens come from when they are minted, and go to when they are burned
}

func newChainReader(prover *evidence.Prover, sold *catalog.Catalog, border time.Time) *chainReader {
	r := &chainReader{chain: prover.Chain, catalog: sold, border: border, outside: []common.Hash{{}}}
	for _, contract := range prover.Contracts {
		r.outside = append(r.outside, common.BytesToHash(contract[:]))
	}
	return r
}

// between reads the mints and burns in a range of blocks, of some users or of all, in the
// order of the chain. An element has those of one transaction.
func (r *chainReader) between(ctx context.Context, users []common.Hash, first,
	last uint64) iter.Seq2[[][]ChainEvent, error] {
	return func(yield func([][]ChainEvent, error) bool) {
		blocks := uint64(firstBlocks)
		var unread []ramp.Log
		parts := 0
		for from := first; from <= last; {
			to := min(last, from+blocks-1)
			logs, err := r.logs(ctx, users, from, to)
			if err != nil {
				yield(nil, err)
				return
			}
			unread, parts = append(unread, logs...), parts+1
			if to == last || len(unread) >= 2*manyLogs || parts == maxParts {
				transactions, err := r.transactions(ctx, unread)
				if err != nil || len(transactions) > 0 {
					if !yield(transactions, err) || err != nil {
						return
					}
				}
				unread, parts = nil, 0
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
func (r *chainReader) logs(ctx context.Context, users []common.Hash, from, to uint64) ([]ramp.Log, error) {
	var all []ramp.Log
	transfers := []common.Hash{evidence.TransferTopic}
	mints, burns := [][]common.Hash{transfers, r.outside, users}, [][]common.Hash{transfers, users, r.outside}
	for _, topics := range [][][]common.Hash{mints, burns} {
		logs := &evidence.Logs{Chain: r.chain, Witnesses: r.known,
			Filter: ramp.LogFilter{Addresses: r.catalog.Tokens, Topics: topics}}
		for log, err := range logs.Between(ctx, from, to) {
			if err != nil {
				return nil, err
			}
			all = append(all, log)
		}
		if logs.Unlisted != "" {
			return nil, fmt.Errorf("%s, so ask another node", logs.Unlisted)
		}
	}
	return all, nil
}

// transactions returns the events that logs are, by transaction.
func (r *chainReader) transactions(ctx context.Context, logs []ramp.Log) ([][]ChainEvent, error) {
	var list []ChainEvent
	for i := range logs {
		if e, ok := r.event(&logs[i]); ok {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, inChainOrder)
	if err := r.addTimes(ctx, list); err != nil {
		return nil, err
	}
	return groupByTransaction(list), nil
}

// event returns the mint or burn that a log is, with the time that the log says. Tokens also
// come from and go to the contracts of the ramp; see [rampproof.Config].
func (r *chainReader) event(log *ramp.Log) (e ChainEvent, ok bool) {
	transfer, ok := log.Transfer()
	from, to := r.isOutside(transfer.From), r.isOutside(transfer.To)
	if !ok || from == to || evidence.IsDust(&transfer) || !slices.Contains(r.catalog.Tokens, transfer.Token) {
		return e, false
	}
	e = ChainEvent{TxHash: log.TransactionHash, Token: transfer.Token, User: transfer.To,
		Direction: ramp.Mint,
		units:     transfer.Value}
	if to {
		e.User, e.Direction = transfer.From, ramp.Burn
	}
	if transfer.TokenID != nil {
		e.units, e.pieces = big.NewInt(1), true
	}
	e.Block, _ = log.BlockNumber.Uint64()
	e.LogIndex, _ = log.LogIndex.Uint64()
	e.Time = evidence.TimeOf(log.BlockTimestamp)
	return e, true
}

func (r *chainReader) isOutside(a common.Address) bool {
	return slices.Contains(r.outside, common.BytesToHash(a[:]))
}

// addTimes sets the times of events to those of their blocks. The logs of some chains say
// none, and those of some nodes a wrong one. They are believed if they are in order, and the
// headers of some blocks confirm theirs: of the first, of the last, and of those on both sides
// of the border of the period, so that no event is on the wrong one.
func (r *chainReader) addTimes(ctx context.Context, events []ChainEvent) error {
	if len(events) == 0 {
		return nil
	}
	doubtful := !slices.IsSortedFunc(events, func(a, b ChainEvent) int { return a.Time.Compare(b.Time) })
	if !doubtful {
		after, _ := slices.BinarySearchFunc(events, r.border, func(e ChainEvent, border time.Time) int {
			return e.Time.Compare(border)
		})
		var checked []uint64
		for _, i := range []int{0, after - 1, after, len(events) - 1} {
			checked = append(checked, events[min(max(0, i), len(events)-1)].Block)
		}
		times, err := r.blockTimes(ctx, checked)
		if err != nil {
			return err
		}
		doubtful = slices.ContainsFunc(events, func(e ChainEvent) bool {
			at, asked := times[e.Block]
			return asked && !at.Equal(e.Time)
		})
	}
	if !doubtful {
		return nil
	}
	blocks := make([]uint64, len(events))
	for i := range events {
		blocks[i] = events[i].Block
	}
	times, err := r.blockTimes(ctx, blocks)
	for i := range events {
		events[i].Time = times[events[i].Block]
	}
	return err
}

// blockTimes asks for the times of blocks, which are sorted.
func (r *chainReader) blockTimes(ctx context.Context, numbers []uint64) (map[uint64]time.Time, error) {
	numbers = slices.Compact(numbers)
	blocks, calls := make([]ramp.Block, len(numbers)), make([]ramp.BatchCall, len(numbers))
	for i, n := range numbers {
		calls[i] = evidence.Call(&blocks[i], "eth_getBlockByNumber", ramp.AtBlock(n), false)
	}
	err := evidence.AskAll(ctx, r.chain, calls...)
	times := make(map[uint64]time.Time, len(numbers))
	for i, n := range numbers {
		times[n] = evidence.TimeOf(blocks[i].Timestamp)
	}
	return times, err
}
