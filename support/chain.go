package support

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/token-ramp/ramp-go"
)

// transferTopic is the hash of Transfer(address,address,uint256).
var transferTopic = common.HexToHash("0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef")

// isDust reports whether a transfer moves nothing. Anybody can make one between any two
// accounts.
func isDust(t *ramp.Transfer) bool { return t.From == t.To || t.TokenID == nil && t.Value.Sign() == 0 }

// timeOf returns a time of the chain, or the zero time if the node does not say.
func timeOf(seconds ramp.Quantity) time.Time {
	n, err := seconds.Uint64()
	if err != nil || n == 0 {
		return time.Time{}
	}
	return time.Unix(int64(min(n, 1<<40)), 0).UTC()
}

// ask returns a call of the node, and where its answer goes.
func ask(into any, method string, params ...any) ramp.BatchCall {
	return ramp.BatchCall{Method: method, Params: params, Into: into}
}

// batch makes calls, all of which must succeed.
func (o *Orders) batch(ctx context.Context, calls []ramp.BatchCall) error {
	if len(calls) == 0 {
		return nil
	}
	err := o.chain.Batch(ctx, calls)
	for _, call := range calls {
		err = cmp.Or(err, call.Err)
	}
	return err
}

// blockAt returns the block of a tag, such as "latest", and an error if the node is not on the
// chain of the proof. It asks both at once: the name of the node may lead to another one since
// the last call.
func (o *Orders) blockAt(ctx context.Context, tag string) (*ramp.Block, error) {
	var id ramp.Quantity
	block := new(ramp.Block)
	calls := []ramp.BatchCall{ask(block, "eth_getBlockByNumber", tag, false), ask(&id, "eth_chainId")}
	err := o.batch(ctx, calls)
	want := o.chain.RequiredChainID()
	if is, unread := id.Uint64(); err == nil && (unread != nil || is != want) {
		err = fmt.Errorf("%w: its chain ID is %s, not %d", ramp.ErrWrongChain, id, want)
	}
	return block, err
}

// lastBefore returns the number of the last block before a time. It asks for no block that
// is much older, because a node may have forgotten it. One that the node does not know is
// an error: a node that lies behind the one that was asked for the newest block must not
// look like an empty chain.
func (o *Orders) lastBefore(ctx context.Context, at time.Time, newest uint64) (uint64, error) {
	first, last := uint64(0), newest
	for step := uint64(1) << 10; first < last; step *= 2 {
		middle := last - (last-first)/2
		if first == 0 { // none that is older was found yet
			middle = last - min(step, last-1)
		}
		block, err := o.chain.BlockByNumber(ctx, ramp.AtBlock(middle), false)
		if err != nil {
			return 0, err
		}
		if timeOf(block.Timestamp).Before(at) {
			first = middle
		} else {
			last = middle - 1
		}
	}
	return first, nil
}
