// Package failures has the scripted failures of the next calls to an endpoint.
package failures

import "github.com/token-ramp/ramp-go/ramptest/internal/locks"

// List has the scripted failures of the next calls.
type List[T any] struct {
	mu   locks.Mutex
	next []T
}

func New[T any]() List[T] { return List[T]{mu: locks.At(locks.Failures)} }

func (f *List[T]) Add(more []T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next = append(f.next, more...)
}

// Take removes and returns that of the next call, if one is scripted.
func (f *List[T]) Take() (failure T, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.next) > 0 {
		failure, ok = f.next[0], true
		f.next = f.next[1:]
	}
	return failure, ok
}

// Left returns how many are scripted and were not taken.
func (f *List[T]) Left() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.next)
}

func (f *List[T]) Reset() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next = nil
}
