// Package life tracks whether a service is open, and what it is doing.
package life

import (
	"context"
	"errors"

	"github.com/token-ramp/ramp-go/ramptest/internal/locks"
)

// ErrClosed means that the service is closed.
var ErrClosed = errors.New("ramptest: the service is closed")

// Lifetime tracks whether a service is open and what it is doing.
type Lifetime struct {
	Alive context.Context // canceled by Close
	end   context.CancelFunc
	Busy  Group // calls, handlers, and the service's goroutines

	mu locks.Mutex
}

// New returns the lifetime of a service that is open.
func New() *Lifetime {
	l := &Lifetime{mu: locks.At(locks.Life), Busy: Group{mu: locks.At(locks.Group)}}
	l.Alive, l.end = context.WithCancel(context.Background())
	return l
}

// Enter registers a call, unless the service is closed. The caller must call leave
// when the call ends.
func (l *Lifetime) Enter() (leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Alive.Err() != nil {
		return nil, ErrClosed
	}
	l.Busy.add()
	return l.Busy.done, nil
}

// Close makes Enter fail from now on.
func (l *Lifetime) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
}

// Group counts what is in progress. It replaces a [sync.WaitGroup], which cannot be
// used both inside and outside a testing/synctest bubble.
type Group struct {
	mu    locks.Mutex
	count int
	idle  []chan struct{} // closed when the count reaches 0
}

func (g *Group) add() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count++
}

func (g *Group) done() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count--
	if g.count > 0 {
		return
	}
	for _, idle := range g.idle {
		close(idle)
	}
	g.idle = nil
}

// Run calls do in a goroutine.
func (g *Group) Run(do func()) {
	g.add()
	go func() {
		defer g.done()
		do()
	}()
}

// Ended returns a channel that is closed once nothing is in progress.
func (g *Group) Ended() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	idle := make(chan struct{})
	if g.count == 0 {
		close(idle)
	} else {
		g.idle = append(g.idle, idle)
	}
	return idle
}
