package ramp

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// resultTime is how long the context of the work on a result lasts if that of the call has no deadline.
// The next delivery comes after 5 minutes.
const resultTime = 30 * time.Second

// maxNoteTime is how much of the time of a call is left for what follows a failure: a database rolls
// back, and the refusal of a result is noted.
const maxNoteTime = time.Second

// timing says when the parts of a call end.
type timing struct{ work, note, answer time.Time }

// timingOf returns when the parts of a call end that has a deadline, if sending its answer takes some time.
func timingOf(deadline time.Time, send time.Duration) timing {
	left := max(time.Until(deadline), 0)
	answer, note := deadline.Add(-min(send, left/4)), min(maxNoteTime, left/8)
	return timing{work: answer.Add(-note), note: answer.Add(-note / 4), answer: answer}
}

// runUntil does work until it must be answered, and reports whether it has ended by then. Work that has
// not goes on, because it may hold a transaction that commits, and late is called at its end.
func runUntil(ctx context.Context, t timing, work, late func(context.Context)) (ended bool) {
	values := &lent{Context: ctx}
	defer values.giveBack()
	ctx, cancel := context.WithDeadline(values, t.work)
	defer cancel() // if the work has not ended, this deadline has passed
	timer := time.NewTimer(time.Until(t.answer))
	defer timer.Stop()
	done, answered := make(chan struct{}), make(chan struct{})
	go func() {
		work(ctx)
		select {
		case done <- struct{}{}:
		case <-answered:
			late(ctx)
		}
	}()
	select {
	case <-done:
		return true
	case <-timer.C:
		close(answered)
		return false
	}
}

// lent is the context of a call. Whoever called may use it again for another call, so its values end
// with the answer.
type lent struct {
	context.Context
	mu       sync.RWMutex
	returned bool
}

func (l *lent) Value(key any) any {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.returned {
		return nil
	}
	return l.Context.Value(key)
}

func (l *lent) giveBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.returned = true
}

// asked is the part of a game that a call waits for. A nil one keeps nothing.
type asked struct{ last atomic.Pointer[string] }

func (a *asked) ask(part string) {
	if a != nil {
		a.last.Store(&part)
	}
}

// part returns the part that was asked last.
func (a *asked) part() string {
	if last := a.last.Load(); last != nil {
		return *last
	}
	return "the handler"
}
