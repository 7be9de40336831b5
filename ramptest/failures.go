package ramptest

import "github.com/token-ramp/ramp-go/ramptest/internal/locks"

// failures are the scripted failures of the next calls.
type failures[T any] struct {
	mu   locks.Mutex
	next []T
}

func newFailures[T any]() failures[T] { return failures[T]{mu: locks.At(locks.Failures)} }

func (f *failures[T]) add(more []T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next = append(f.next, more...)
}

// take removes and returns that of the next call, if one is scripted.
func (f *failures[T]) take() (failure T, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.next) > 0 {
		failure, ok = f.next[0], true
		f.next = f.next[1:]
	}
	return failure, ok
}

func (f *failures[T]) reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next = nil
}
