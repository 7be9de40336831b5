package ramp

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"sync"
	"sync/atomic"
)

// ErrWrongChain means that the node is not on the chain that
// [RPCConfig].ChainID names. The error that wraps it names both chain IDs.
var ErrWrongChain = errors.New("the node is on another chain")

// chainPin asks a node for its chain ID before anything else, until the answer
// was the right one.
type chainPin struct {
	id      uint64 // 0 accepts any chain
	passed  atomic.Bool
	mu      sync.Mutex
	running *chainCheck // the one that others wait for, nil if nobody asks
}

// open reports whether the chain is still to be checked.
func (p *chainPin) open() bool { return p.id != 0 && !p.passed.Load() }

// chainCheck is one request for the chain ID. err and abandoned are set before
// done is closed.
type chainCheck struct {
	done      chan struct{}
	err       error
	abandoned bool // err may be about the caller who asked, not about the node
}

// join returns the check to wait for and whether the caller is to make it, nil if
// there is nothing left to check.
func (p *chainPin) join() (check *chainCheck, mine bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.open() {
		return nil, false
	}
	if p.running == nil {
		p.running = &chainCheck{done: make(chan struct{}), abandoned: true}
		return p.running, true
	}
	return p.running, false
}

// checkChain returns nil if the node is on the pinned chain, or none is pinned.
// Of many calls at once, one asks. A failure is not remembered: the next call
// asks again. The error may be marked as transient.
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
			return within("eth_chainId", ctx.Err())
		}
	}
}

// afterCheck is an attempt that begins with the check.
func (r *RPC) afterCheck(ctx context.Context, attempt func() error) func() error {
	return func() error {
		if err := r.checkChain(ctx); err != nil {
			return err
		}
		return attempt()
	}
}

// askChain asks the node, and tells those who wait.
func (r *RPC) askChain(ctx context.Context, check *chainCheck) error {
	defer func() { // even if the caller's transport panics
		r.pin.mu.Lock()
		defer r.pin.mu.Unlock()
		r.pin.running = nil
		close(check.done)
	}()
	var id Quantity
	check.err = r.once(ctx, &id, "eth_chainId", nil)
	switch actual := id.Big(); {
	case check.err != nil:
	case actual == nil:
		check.err = within("eth_chainId", errNullResult)
	case actual.Cmp(new(big.Int).SetUint64(r.pin.id)) != 0:
		check.err = within("eth_chainId", fmt.Errorf("%w: its chain ID is %s, but RPCConfig.ChainID is %d", ErrWrongChain, actual, r.pin.id))
	default:
		r.pin.passed.Store(true)
	}
	check.abandoned = ctx.Err() != nil
	return check.err
}
