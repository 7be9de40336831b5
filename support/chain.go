package support

import (
	"cmp"
	"context"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence"
)

// batch makes calls, all of which must succeed, and checks the chain with them.
func (o *Orders) batch(ctx context.Context, calls ...ramp.BatchCall) error {
	if len(calls) == 0 {
		return nil
	}
	calls, err := evidence.Ask(ctx, o.chain, calls...)
	for _, call := range calls {
		err = cmp.Or(err, call.Err)
	}
	return err
}

// blockAt returns the block of a number or a tag, such as "latest".
func (o *Orders) blockAt(ctx context.Context, at ramp.BlockRef) (*ramp.Block, error) {
	block := new(ramp.Block)
	return block, o.batch(ctx, evidence.Call(block, "eth_getBlockByNumber", at, false))
}
