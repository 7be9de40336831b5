package ramp

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// resultTime is how long the work on a result may take if its context has no deadline. The next
// delivery comes after 5 minutes.
const resultTime = 30 * time.Second

// maxNoteTime is how much of the time of a call is left for what follows a failure: a database rolls
// back, and the refusal of a result is noted.
const maxNoteTime = time.Second

// asked is the part of a game that a call waits for.
type asked struct{ part atomic.Pointer[string] }

// ask says that the call waits for a part of the game from now on.
func (c *call) ask(part string) {
	if c.asked != nil {
		c.asked.part.Store(&part)
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

// runInTime does the work of a call until it must be answered, and returns what is then known of the call.
// Work that has not ended goes on, because it may hold a transaction that commits, and is logged when it
// ends. The work on a result does not end when the sender gives up: the next delivery could be given up in
// the same way, and the order would never end.
func (h *Handler) runInTime(ctx context.Context, c *call,
	run func(context.Context, *call) (any, error)) (*call, any, error) {
	deadline, ok := ctx.Deadline()
	if c.op.Name == "result" {
		ctx = context.WithoutCancel(ctx)
		if !ok {
			deadline, ok = time.Now().Add(resultTime), true
		}
	}
	if !ok {
		data, err := c.guarded(ctx, run)
		return c, data, err
	}
	left := max(time.Until(deadline), 0)
	answerBy, note := deadline.Add(-min(h.config.SendTime, left/4)), min(maxNoteTime, left/8)
	c.noteBy = answerBy.Add(-note / 4)
	values := &lent{Context: ctx}
	defer values.giveBack()
	ctx, cancel := context.WithDeadline(values, answerBy.Add(-note))
	defer cancel() // if the call is answered before its work has ended, this deadline has passed
	c.asked = new(asked)
	timer := time.NewTimer(time.Until(answerBy))
	defer timer.Stop()

	type end struct {
		data any
		err  error
	}
	before, ended, late := *c, make(chan end), make(chan struct{})
	go func() {
		data, err := c.guarded(ctx, run)
		select {
		case ended <- end{data, err}:
		case <-late:
			h.recordLate(ctx, c, err)
		}
	}()
	select {
	case e := <-ended:
		return c, e.data, e.err
	case <-timer.C:
		close(late)
		part := "the handler"
		if last := before.asked.part.Load(); last != nil {
			part = *last
		}
		return &before, nil, fmt.Errorf("ramp: %s has not returned: %w", part, context.DeadlineExceeded)
	}
}

// guarded does the work of a call. Whether it panicked is not asked of recover, which returns nil for
// panic(nil) with GODEBUG=panicnil=1.
func (c *call) guarded(ctx context.Context,
	run func(context.Context, *call) (any, error)) (data any, err error) {
	returned := false
	defer func() {
		if !returned {
			cause := recover()
			c.stack = debug.Stack()
			data, err = nil, fmt.Errorf("ramp: panic: %v", cause)
		}
	}()
	data, err = run(ctx, c)
	returned = true
	return data, err
}

// recordLate logs how the work on a call ended that was answered before.
func (h *Handler) recordLate(ctx context.Context, c *call, err error) {
	if err == nil {
		err = fmt.Errorf("ramp: the call was already answered: %w", context.DeadlineExceeded)
	}
	reply := h.reject(internalError(err))
	c.late, c.op.Duration, c.op.Status = true, time.Since(c.op.Begun), reply.Status
	h.log(ctx, c, c.level(reply), 0)
}
