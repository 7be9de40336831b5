package ramptest

import (
	"context"
	"slices"
	"sync"
	"time"
)

// clock is the one clock of a service.
type clock struct {
	mu    sync.Mutex
	speed float64   // 0: it stands still
	shown time.Time // what it showed
	since time.Time // at this time on the wall
	woken chan struct{}
}

func (c *clock) start(at time.Time, speed float64) {
	c.speed, c.shown, c.since = speed, at.Round(0), time.Now()
	c.woken = make(chan struct{}, 1)
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read()
}

func (c *clock) read() time.Time {
	if c.speed == 0 {
		return c.shown
	}
	return c.shown.Add(time.Duration(float64(time.Since(c.since)) * c.speed))
}

// jump moves the clock to a time, but never back.
func (c *clock) jump(to time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if to.After(c.read()) {
		c.shown, c.since = to, time.Now()
	}
}

// pass lets a time pass: a still clock is moved, a running one waited for.
func (c *clock) pass(ctx context.Context, d time.Duration) {
	if c.speed == 0 {
		c.jump(c.now().Add(d))
		return
	}
	timer := time.NewTimer(time.Duration(float64(d) / c.speed))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// wake tells the one who waits for the next job that there is another one.
func (c *clock) wake() {
	select {
	case c.woken <- struct{}{}:
	default: // told already, or nobody waits
	}
}

// job is what the service does at a time.
type job struct {
	due time.Time
	do  func(context.Context) []Delivery
}

// plan has something done at a time.
func (s *Service) plan(due time.Time, do func(context.Context) []Delivery) {
	s.mu.Lock()
	at, _ := slices.BinarySearchFunc(s.queue, due, func(j job, due time.Time) int {
		if j.due.After(due) {
			return 1
		}
		return -1 // of two that are due at once, the one that was planned first
	})
	s.queue = slices.Insert(s.queue, at, job{due: due, do: do})
	s.mu.Unlock()
	s.clock.wake()
}

// next takes the first job that is due at a time, if there is one.
func (s *Service) next(by time.Time) (job, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 || s.queue[0].due.After(by) {
		return job{}, false
	}
	first := s.queue[0]
	s.queue = slices.Delete(s.queue, 0, 1)
	return first, true
}

// Now is what the service's clock shows.
func (s *Service) Now() time.Time { return s.clock.now() }

// Advance lets a time pass on the service's clock. What falls due is done in its
// order, each at its own time: blocks, and deliveries of results with their
// repetitions (interface 8). It returns the deliveries, once all are answered.
//
// Calls of Advance wait for each other. So a handler that Advance calls must not
// call Advance, nor wait for somebody who does: neither would end.
func (s *Service) Advance(d time.Duration) []Delivery {
	leave, err := s.enter()
	if err != nil {
		return nil
	}
	defer leave()
	s.turn.Lock()
	defer s.turn.Unlock()
	end := s.Now().Add(d)
	var sent []Delivery
	for s.alive.Err() == nil {
		first, ok := s.next(end)
		if !ok {
			break
		}
		s.clock.jump(first.due)
		sent = append(sent, first.do(s.alive)...)
	}
	s.clock.jump(end)
	return sent
}

// run does what falls due while a clock runs.
func (s *Service) run() {
	const long = time.Hour // nothing to wait for
	timer := time.NewTimer(long)
	defer timer.Stop()
	for {
		wait := long
		s.mu.Lock()
		if len(s.queue) > 0 {
			wait = time.Duration(float64(s.queue[0].due.Sub(s.Now())) / s.config.Speed)
			wait = min(long, max(wait, 0)+1) // rounded up: too early would be in vain
		}
		s.mu.Unlock()
		timer.Reset(wait)
		select {
		case <-s.alive.Done():
			return
		case <-s.clock.woken:
		case <-timer.C:
			s.Advance(0)
		}
	}
}
