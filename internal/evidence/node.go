package evidence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/token-ramp/ramp-go"
)

// Ask is [AskEach], and fails if a call does. What the node does not know is no failure of the
// whole: the Err of the call says so.
func Ask(ctx context.Context, chain *ramp.RPC, calls ...ramp.BatchCall) ([]ramp.BatchCall, error) {
	calls, err := AskEach(ctx, chain, calls...)
	if err != nil {
		return nil, err
	}
	for _, call := range calls {
		if call.Err != nil && !errors.Is(call.Err, ramp.ErrNotFound) {
			return nil, call.Err
		}
	}
	return calls, nil
}

// AskEach makes calls, each of which may fail with an Err of its own, and in the same breath checks
// the chain ID: the name of a node may have moved to another chain since the first call.
func AskEach(ctx context.Context, chain *ramp.RPC, calls ...ramp.BatchCall) ([]ramp.BatchCall, error) {
	var id ramp.Quantity
	all := append(calls, ramp.BatchCall{Method: "eth_chainId", Into: &id})
	if err := chain.Batch(ctx, all); err != nil {
		return nil, err
	}
	calls, last := all[:len(calls)], all[len(calls)]
	required := new(big.Int).SetUint64(chain.RequiredChainID())
	switch actual := id.Big(); {
	case last.Err != nil:
		return nil, &besideError{last.Err}
	case actual == nil || required.Sign() > 0 && actual.Cmp(required) != 0:
		return nil, fmt.Errorf("ramp: eth_chainId: %w: its chain ID is %v, and not %v",
			ramp.ErrWrongChain, actual, required)
	}
	return calls, nil
}

// besideError is the error of a call that was made beside what was asked for.
type besideError struct{ error }

func (e *besideError) Unwrap() error { return e.error }

// AskWithNewest is [AskEach], and also returns the newest block that the node had before and after it
// answered. What it does not know may be in a block that only another machine behind its address has.
func AskWithNewest(
	ctx context.Context, chain *ramp.RPC, calls ...ramp.BatchCall,
) ([]ramp.BatchCall, *ramp.Block, error) {
	newest := new(ramp.Block)
	all := append([]ramp.BatchCall{Call(newest, "eth_getBlockByNumber", ramp.Latest, false)}, calls...)
	all, err := AskEach(ctx, chain, all...)
	if err == nil && all[0].Err != nil {
		err = &besideError{all[0].Err}
	}
	if err != nil {
		return nil, nil, err
	}
	blocks := []*ramp.Block{newest}
	if inOneRequest := len(all) < chain.BatchSize(); !inOneRequest { // with the chain ID
		after, err := BlockAt(ctx, chain, ramp.Latest)
		if err != nil {
			return nil, nil, &besideError{err}
		}
		blocks = append(blocks, after)
	}
	for _, block := range blocks {
		number, err := block.Number.Uint64()
		if err != nil {
			return nil, nil, &besideError{err}
		}
		if least, _ := newest.Number.Uint64(); number < least {
			newest = block
		}
	}
	return all[1:], newest, nil
}

// Behind returns an error if the newest block of a node is before one that is asked for, or nil.
func Behind(newest *ramp.Block, to uint64) error {
	number, err := newest.Number.Uint64()
	if err != nil || number >= to {
		return err
	}
	return fmt.Errorf("the node is behind: its newest block is of %s, number %d, and block %d is asked for",
		TimeOf(newest.Timestamp).Format(time.RFC3339), number, to)
}

// AskAll makes calls, all of which must succeed, and checks the chain with them.
func AskAll(ctx context.Context, chain *ramp.RPC, calls ...ramp.BatchCall) error {
	if len(calls) == 0 {
		return nil
	}
	calls, err := Ask(ctx, chain, calls...)
	for _, call := range calls {
		err = cmp.Or(err, call.Err)
	}
	return err
}

// BlockAt returns the block of a number or a tag, such as "latest".
func BlockAt(ctx context.Context, chain *ramp.RPC, at ramp.BlockRef) (*ramp.Block, error) {
	block := new(ramp.Block)
	return block, AskAll(ctx, chain, Call(block, "eth_getBlockByNumber", at, false))
}

// Call returns a call of the node, and where its answer goes.
func Call(into any, method string, params ...any) ramp.BatchCall {
	return ramp.BatchCall{Method: method, Params: params, Into: into}
}

// TimeOf returns a time of the chain, or the zero time if the node does not say.
func TimeOf(seconds ramp.Quantity) time.Time {
	n, err := seconds.Uint64()
	if err != nil || n == 0 {
		return time.Time{}
	}
	return time.Unix(int64(min(n, 1<<40)), 0).UTC()
}

// BlockBefore returns the number of a block that was made before a time, or 0. It is not
// much older, because a node may have forgotten it, and may not be the last one. newest is
// that of the node. The rate of the newest blocks says how many blocks to go back; if that
// was too few, more, and if the node has forgotten that block, fewer.
func BlockBefore(ctx context.Context, chain *ramp.RPC, at time.Time, newest *ramp.Block) (uint64, error) {
	head, err := newest.Number.Uint64()
	if err != nil {
		return 0, err
	}
	const first, most = 1024, 40 // tries: 2^40 blocks are more than any chain has
	back, enough := uint64(first), uint64(0)
	for range most {
		if back = min(back, head); back == 0 {
			return 0, nil
		}
		var block ramp.Block
		asked, err := Ask(ctx, chain, Call(&block, "eth_getBlockByNumber", ramp.AtBlock(head-back), false))
		if err != nil {
			return 0, err
		}
		if asked[0].Err != nil && enough > 0 && back-enough > 1 {
			back = enough + (back-enough)/2
			continue
		}
		if asked[0].Err != nil {
			return 0, asked[0].Err
		}
		made := TimeOf(block.Timestamp)
		if made.Before(at) || back == head {
			return head - back, nil
		}
		enough = back
		took := max(time.Second, TimeOf(newest.Timestamp).Sub(made)) // for that many blocks
		missing := made.Sub(at).Seconds() / took.Seconds() * float64(back)
		back += max(back, uint64(missing*1.1)+16)
	}
	return 0, fmt.Errorf("ramp: no block of the node was made before %s", at.Format(time.RFC3339))
}

// LastBlockBefore returns the number of the last block that was made before a time, or 0. It
// asks more often than [BlockBefore]. A block that the node does not know is an error: a node
// that lies behind the one that was asked for the newest block must not look like an empty
// chain.
func LastBlockBefore(ctx context.Context, chain *ramp.RPC, at time.Time, newest *ramp.Block) (uint64, error) {
	first, err := BlockBefore(ctx, chain, at, newest)
	if err != nil {
		return 0, err
	}
	for last, _ := newest.Number.Uint64(); first < last; {
		middle := last - (last-first)/2
		var block ramp.Block
		asked, err := Ask(ctx, chain, Call(&block, "eth_getBlockByNumber", ramp.AtBlock(middle), false))
		if err != nil {
			return 0, err
		}
		if asked[0].Err != nil {
			return 0, asked[0].Err
		}
		if TimeOf(block.Timestamp).Before(at) {
			first = middle
		} else {
			last = middle - 1
		}
	}
	return first, nil
}
