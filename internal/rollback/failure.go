package rollback

import (
	"context"
	"errors"
	"sync/atomic"
)

// Failure is one failure of a store, on purpose.
type Failure struct{ happened atomic.Bool }

type failureKey struct{}

// WithFailure returns a context in which a store fails once.
func WithFailure(ctx context.Context) (context.Context, *Failure) {
	f := new(Failure)
	return context.WithValue(ctx, failureKey{}, f), f
}

// Happened reports whether a store has failed.
func (f *Failure) Happened() bool { return f != nil && f.happened.Load() }

var errFailed = errors.New("ramp: the store failed on purpose, as ramptest.StoreFails says")

// Fail returns an error once, if ctx asks for it.
func Fail(ctx context.Context) error {
	f, _ := ctx.Value(failureKey{}).(*Failure)
	if f != nil && f.happened.CompareAndSwap(false, true) {
		return errFailed
	}
	return nil
}
