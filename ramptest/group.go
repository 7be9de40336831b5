package ramptest

import (
	"context"
	"errors"

	"github.com/token-ramp/ramp-go/ramptest/internal/locks"
)

// ErrClosed means that the service is closed.
var ErrClosed = errors.New("ramptest: the service is closed")

// lifetime tracks whether a service is open and what it is doing.
type lifetime struct {
	alive context.Context // canceled by close
	end   context.CancelFunc
	busy  group // calls, handlers, and the service's goroutines

	mu locks.Mutex
}

func newLifetime() *lifetime {
	l := &lifetime{mu: locks.At(locks.Life), busy: group{mu: locks.At(locks.Group)}}
	l.alive, l.end = context.WithCancel(context.Background())
	return l
}

// enter registers a call, unless the service is closed. The caller must call leave
// when the call ends.
func (l *lifetime) enter() (leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.alive.Err() != nil {
		return nil, ErrClosed
	}
	l.busy.add()
	return l.busy.done, nil
}

// close makes enter fail from now on.
func (l *lifetime) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
}

// group counts what is in progress. It replaces a [sync.WaitGroup], which cannot be
// used both inside and outside a testing/synctest bubble.
type group struct {
	mu    locks.Mutex
	count int
	idle  []chan struct{} // closed when the count reaches 0
}

func (g *group) add() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count++
}

func (g *group) done() {
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

// run calls do in a goroutine.
func (g *group) run(do func()) {
	g.add()
	go func() {
		defer g.done()
		do()
	}()
}

// ended returns a channel that is closed once nothing is in progress.
func (g *group) ended() <-chan struct{} {
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
