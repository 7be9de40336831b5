package rampsql

import (
	"context"
	"fmt"
	"sync"
)

// turns lets one call at a time work for an order, and one for a session: if somebody else holds a row of a
// player, or of an order, the calls for it wait without a connection, and leave the pool to the others. Other
// processes are kept apart by the database.
type turns struct {
	mu    sync.Mutex
	queue map[string]*queue
}

// queue is the calls for one key.
type queue struct {
	turn  chan struct{} // is full while a call has the turn
	calls int           // that have the turn or wait for it
}

// take waits for the turn of a key. The caller must call end.
func (t *turns) take(ctx context.Context, key string) (end func(), err error) {
	q := t.join(key)
	select {
	case q.turn <- struct{}{}:
		return func() { <-q.turn; t.leave(key, q) }, nil
	case <-ctx.Done():
		t.leave(key, q)
		return nil, fmt.Errorf("wait for another call of %s: %w", key, ctx.Err())
	}
}

// try is take if nobody has the turn, and otherwise returns nil.
func (t *turns) try(key string) (end func()) {
	q := t.join(key)
	select {
	case q.turn <- struct{}{}:
		return func() { <-q.turn; t.leave(key, q) }
	default:
		t.leave(key, q)
		return nil
	}
}

func (t *turns) join(key string) *queue {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.queue == nil {
		t.queue = map[string]*queue{}
	}
	q := t.queue[key]
	if q == nil {
		q = &queue{turn: make(chan struct{}, 1)}
		t.queue[key] = q
	}
	q.calls++
	return q
}

func (t *turns) leave(key string, q *queue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q.calls--; q.calls == 0 {
		delete(t.queue, key)
	}
}

// callTurns are the turns of one call: that of its order, and that of its session once this is known.
type callTurns struct {
	turns *turns
	ends  []func()
	known bool // the session's
}

// busyError is the error of a result whose session has another call. Only its order says which session that
// is, so it has begun a transaction, and must wait without it.
type busyError struct{ session string }

func (*busyError) Error() string { return "another call of the session is in progress" }

func orderKey(id fmt.Stringer) string { return "order " + id.String() }

func sessionKey(id string) string { return fmt.Sprintf("session %q", id) }

// take waits for a turn, which the call has until end.
func (c *callTurns) take(ctx context.Context, key string) error {
	end, err := c.turns.take(ctx, key)
	if err == nil {
		c.ends = append(c.ends, end)
	}
	return err
}

// takeSession waits for the turn of a session.
func (c *callTurns) takeSession(ctx context.Context, session string) error {
	err := c.take(ctx, sessionKey(session))
	c.known = err == nil
	return err
}

// trySession returns a busyError if another call has the turn of the session.
func (c *callTurns) trySession(session string) error {
	if c.known {
		return nil
	}
	end := c.turns.try(sessionKey(session))
	if end == nil {
		return &busyError{session}
	}
	c.ends, c.known = append(c.ends, end), true
	return nil
}

func (c *callTurns) end() {
	for _, end := range c.ends {
		end()
	}
}
