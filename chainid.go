package ramp

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"sync"
	"sync/atomic"
)

// ErrWrongChain means that the node is not on the chain of [RPCConfig].ChainID. The
// error that wraps it names both chain IDs.
var ErrWrongChain = errors.New("the node is on another chain")

// chainPin makes sure that the node's chain ID is checked before anything else,
// until one check has succeeded.
type chainPin struct {
	id      uint64 // 0 accepts any chain
	passed  atomic.Bool
	mu      sync.Mutex
	running *chainCheck // the check in progress, nil if there is none
}

// unchecked reports whether the chain must still be checked.
func (p *chainPin) unchecked() bool { return p.id != 0 && !p.passed.Load() }

// chainCheck is one request for the chain ID. err and abandoned are set before
// done is closed.
type chainCheck struct {
	done      chan struct{}
	err       error
	abandoned bool // err may concern the caller that made the check, not the node
}

// join returns the check to wait for, and whether the caller must make it. It
// returns nil if there is nothing left to check.
func (p *chainPin) join() (check *chainCheck, mine bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.unchecked() {
		return nil, false
	}
	if p.running == nil {
		p.running = &chainCheck{done: make(chan struct{}), abandoned: true}
		return p.running, true
	}
	return p.running, false
}

// checkChain returns nil if the node is on the pinned chain, or no chain is pinned.
// Concurrent calls share one check. A failure is not remembered: the next call
// checks again. The error may be marked retryable.
func (r *RPC) checkChain(ctx context.Context) error {
	for {
		check, mine := r.pin.join()
		switch {
		case check == nil:
			return nil
		case mine:
			return r.askChain(ctx, check)
		}
		select {
		case <-check.done:
			if !check.abandoned {
				return check.err
			}
		case <-ctx.Done():
			return withMethod("eth_chainId", ctx.Err())
		}
	}
}

// afterCheck returns an attempt that checks the chain first.
func (r *RPC) afterCheck(ctx context.Context, attempt func() error) func() error {
	return func() error {
		if err := r.checkChain(ctx); err != nil {
			return err
		}
		return attempt()
	}
}

// askChain makes the check, and wakes the calls that wait for it.
func (r *RPC) askChain(ctx context.Context, check *chainCheck) error {
	defer func() { // even if the transport panics
		r.pin.mu.Lock()
		defer r.pin.mu.Unlock()
		r.pin.running = nil
		close(check.done)
	}()
	var id Quantity
	check.err = r.attempt(ctx, &id, "eth_chainId", nil)
	switch actual := id.Big(); {
	case check.err != nil:
	case actual == nil:
		check.err = withMethod("eth_chainId", errNullResult)
	case actual.Cmp(new(big.Int).SetUint64(r.pin.id)) != 0:
		check.err = withMethod("eth_chainId", fmt.Errorf("%w: its chain ID is %s, but RPCConfig.ChainID is %d", ErrWrongChain, actual, r.pin.id))
	default:
		r.pin.passed.Store(true)
	}
	check.abandoned = ctx.Err() != nil
	return check.err
}
