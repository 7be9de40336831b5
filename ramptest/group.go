package ramptest

import "sync"

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
