package ramptest

import (
	"context"
	"errors"
	"sync"
)

// ErrClosed says that the service is closed.
var ErrClosed = errors.New("ramptest: the service is closed")

// lifetime is how long a service may be used, and what is under way in it.
type lifetime struct {
	alive context.Context // canceled by close
	end   context.CancelFunc
	busy  group // calls, handlers, and our own goroutines

	mu sync.Mutex
}

func newLifetime() *lifetime {
	l := &lifetime{}
	l.alive, l.end = context.WithCancel(context.Background())
	return l
}

// enter lets a call in, unless the service is closed. ended waits for it to leave.
func (l *lifetime) enter() (leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.alive.Err() != nil {
		return nil, ErrClosed
	}
	l.busy.add()
	return l.busy.done, nil
}

// close lets nobody in any more.
func (l *lifetime) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
}

// group counts what is under way. A [sync.WaitGroup] does so too, but not for a
// service that is called both inside and outside a bubble of testing/synctest.
type group struct {
	mu    sync.Mutex
	count int
	idle  []chan struct{} // closed when the count comes to 0
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

// run does something in a goroutine.
func (g *group) run(do func()) {
	g.add()
	go func() {
		defer g.done()
		do()
	}()
}

// ended returns what is closed once nothing is under way.
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
