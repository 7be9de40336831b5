// Package clock is the clock of an emulated service, which may stand still.
package clock

import (
	"context"
	"time"

	"github.com/token-ramp/ramp-go/ramptest/internal/locks"
)

// Clock is the clock of a service. At the real time since, it read shown.
type Clock struct {
	Speed float64   // 0 if it stands still
	Epoch time.Time // where it starts; zero for the real time

	mu    locks.Mutex
	shown time.Time
	since time.Time
}

// New returns a clock that starts at epoch, or at the real time if that is zero.
func New(speed float64, epoch time.Time) *Clock {
	c := &Clock{Speed: speed, Epoch: epoch, mu: locks.At(locks.Clock)}
	c.Reset()
	return c
}

// Reset moves the clock to where it starts.
func (c *Clock) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since = time.Now()
	c.shown = c.Epoch.Round(0)
	if c.Epoch.IsZero() {
		c.shown = c.since.Round(0)
	}
}

// Now returns the time that the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read()
}

func (c *Clock) read() time.Time {
	if c.Speed == 0 {
		return c.shown
	}
	return c.shown.Add(time.Duration(float64(time.Since(c.since)) * c.Speed))
}

// Jump moves the clock to a time, but never backward.
func (c *Clock) Jump(to time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if to.After(c.read()) {
		c.shown, c.since = to, time.Now()
	}
}

// Pass lets a time pass. It moves a clock that stands still, and waits for one that
// runs.
func (c *Clock) Pass(ctx context.Context, d time.Duration) {
	if c.Speed == 0 {
		c.Jump(c.Now().Add(d))
		return
	}
	Wait(ctx, time.Duration(float64(d)/c.Speed))
}

// Wait waits for a time, in real time, or until ctx is done.
func Wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
