package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
)

// trial is one check of a store.
type trial struct {
	Fixture
	ctx     context.Context
	timeout time.Duration // for one call

	turn   atomic.Int64 // for spreading calls over the stores
	failed atomic.Int64 // calls that were repeated
	late   atomic.Int64 // how many of them had stored their step

	violation string // what the store did wrong; it ends the check
	untested  string // why the check has not tested it, or nothing

	mu      sync.Mutex
	applied map[uuid.UUID]int
	onApply map[uuid.UUID]func(ramp.Step) error
}

func newTrial(ctx context.Context) *trial {
	return &trial{ctx: ctx, timeout: 30 * time.Second,
		applied: map[uuid.UUID]int{}, onApply: map[uuid.UUID]func(ramp.Step) error{}}
}

// try runs a check and returns what the store did wrong, "" if nothing. What else panics is not recovered,
// not even if it panics with nil.
func (k *trial) try(run func(*trial)) (failure string) {
	defer func() {
		if failure = k.violation; failure != "" {
			_ = recover() // of fail
		}
	}()
	run(k)
	return ""
}

// fail ends the check.
func (k *trial) fail(format string, args ...any) {
	// joined errors have lines
	k.violation = strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "; ")
	panic(k.violation)
}

// eventually makes a check of what may be behind by the Lag of the fixture: it repeats it until nothing is
// wrong, or until that time is over.
func (k *trial) eventually(check func()) {
	for deadline := time.Now().Add(k.Lag); ; time.Sleep(time.Millisecond) {
		failure := k.try(func(*trial) { check() })
		if failure == "" {
			return
		}
		if !time.Now().Before(deadline) {
			panic(failure) // violation is set
		}
		k.violation = ""
	}
}

// check is called by the store's Apply.
func (k *trial) check(step ramp.Step) error {
	if step.Rehearsal { // the grants that count follow
		return nil
	}
	k.mu.Lock()
	k.applied[step.Order.UUID]++
	f := k.onApply[step.Order.UUID]
	k.mu.Unlock()
	if f == nil {
		return nil
	}
	return f(step)
}

var (
	errStuck    = errors.New("the call of Update did not return")
	errPanicked = errors.New("the call of Update panicked")
)

// update calls Update of one of the stores.
func (k *trial) update(ctx context.Context, id uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	type answer struct {
		step ramp.Step
		err  error
	}
	store := k.Stores[int(k.turn.Add(1))%len(k.Stores)]
	done := make(chan answer, 1)
	go func() {
		// unless Update returns; recover cannot tell panic(nil) with GODEBUG=panicnil=1 from runtime.Goexit
		a := answer{err: fmt.Errorf("%w with nil, or ended its goroutine", errPanicked)}
		defer func() {
			if cause := recover(); cause != nil {
				a.err = fmt.Errorf("%w: %v", errPanicked, cause)
			}
			done <- a
		}()
		a.step, a.err = store.Update(ctx, id, next)
	}()
	select {
	case a := <-done:
		return a.step, a.err
	case <-time.After(k.timeout):
		return ramp.Step{},
			fmt.Errorf("%w within %v, so a lock may not have been released", errStuck, k.timeout)
	}
}

// settle repeats a call until the store has decided it, as the service does. A
// database may abort a transaction that races another. A decision is recognized by
// its error.
func (k *trial) settle(id uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	for again, deadline := false, time.Now().Add(k.timeout); ; again = true {
		step, err := k.update(k.ctx, id, next)
		if again && err == nil && !step.New {
			k.late.Add(1)
		}
		var rejection *ramp.Rejection
		if err == nil || errors.As(err, &rejection) || errors.Is(err, ramp.ErrOrderConflict) ||
			errors.Is(err, ramp.ErrOrderFinished) || errors.Is(err, ramp.ErrOrderUnknown) ||
			errors.Is(err, errStuck) || errors.Is(err, errPanicked) || time.Now().After(deadline) {
			return step, err
		}
		k.failed.Add(1)
		time.Sleep(time.Millisecond) // the server may be starting
	}
}

// call is a call of a race.
type call struct {
	id   uuid.UUID
	next ramp.Transition

	step ramp.Step // the answer
	err  error
}

// meet makes a call during another one: where the other one has read the order, and before it writes. If the
// store lets no two calls work at the same time, the second one waits for the first.
func (k *trial) meet(first, second *call) {
	const locked = 100 * time.Millisecond // then the second call waits, and does not only take its time
	done := make(chan struct{})
	var once sync.Once
	begin := func() {
		go func() {
			defer close(done)
			second.step, second.err = k.settle(second.id, second.next)
		}()
		select {
		case <-done:
		case <-time.After(locked):
		}
	}
	first.step, first.err = k.settle(first.id, func(stored *ramp.Order) (ramp.Step, error) {
		once.Do(begin)
		return first.next(stored)
	})
	once.Do(begin)
	<-done
}

// race makes calls at once and returns when all are settled.
func (k *trial) race(calls []*call) {
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for _, c := range calls {
		wg.Go(func() {
			<-begin
			c.step, c.err = k.settle(c.id, func(stored *ramp.Order) (ramp.Step, error) {
				for range 10 {
					runtime.Gosched() // let the others read the same order, if the store lets them
				}
				return c.next(stored)
			})
		})
	}
	close(begin)
	wg.Wait()
}

// expectError fails unless a call failed.
func (k *trial) expectError(what string, step ramp.Step, err error) {
	switch {
	case err == nil:
		k.fail("Update returned no error for %s", what)
	case errors.Is(err, errStuck):
		k.fail("%v for %s", err, what)
	case step.New:
		k.fail("Update returned a new step together with an error for %s", what)
	}
}

// stored reads an order with a step that is not New. It returns nil if there is none.
func (k *trial) stored(id uuid.UUID) *ramp.Order {
	step, err := k.update(k.ctx, id, func(stored *ramp.Order) (ramp.Step, error) {
		if stored == nil {
			return ramp.Step{}, ramp.ErrOrderUnknown
		}
		return ramp.Step{Order: *stored}, nil
	})
	switch {
	case errors.Is(err, ramp.ErrOrderUnknown):
		return nil
	case err != nil:
		k.fail("Update failed to read order %s with a step that is not New: %v", id, err)
	case step.New:
		k.fail("Update returned a new step, but next returned one that is not New")
	}
	return &step.Order
}

// difference returns the name of the first field in which two structs differ, or "" if
// there is none. It compares meanings: an empty list equals nil, and an escaped
// character equals the character itself.
func difference[T any](got, want T) string {
	show := func(field reflect.Value) string {
		text, err := json.Marshal(field.Interface())
		if err != nil {
			return err.Error()
		}
		var value any
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber() // keeps numbers exact
		if err := d.Decode(&value); err != nil {
			return err.Error()
		}
		if list, ok := value.([]any); value == nil || ok && len(list) == 0 {
			return "empty"
		}
		text, _ = json.Marshal(value) // as it was read
		return string(text)
	}
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() {
		if !g.Type().Field(i).IsExported() {
			continue
		}
		if got, want := show(g.Field(i)), show(w.Field(i)); got != want {
			return fmt.Sprintf("%s is %.200s instead of %.200s", g.Type().Field(i).Name, got, want)
		}
	}
	return ""
}
