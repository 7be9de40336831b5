package ramptest

import (
	"context"
	"time"

	"github.com/token-ramp/ramp-go/ramptest/internal/locks"
)

// clock is the clock of a service. At the real time since, it read shown.
type clock struct {
	speed float64   // 0 if it stands still
	epoch time.Time // where it starts; zero for the real time

	mu    locks.Mutex
	shown time.Time
	since time.Time
}

// reset moves the clock to where it starts.
func (c *clock) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since = time.Now()
	c.shown = c.epoch.Round(0)
	if c.epoch.IsZero() {
		c.shown = c.since.Round(0)
	}
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

// jump moves the clock to a time, but never backward.
func (c *clock) jump(to time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if to.After(c.read()) {
		c.shown, c.since = to, time.Now()
	}
}

// pass lets a time pass. It moves a clock that stands still, and waits for one that
// runs.
func (c *clock) pass(ctx context.Context, d time.Duration) {
	if c.speed == 0 {
		c.jump(c.now().Add(d))
		return
	}
	wait(ctx, time.Duration(float64(d)/c.speed))
}

// wait waits for a time, in real time, or until ctx is done.
func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
