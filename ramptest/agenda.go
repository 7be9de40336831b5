package ramptest

import (
	"cmp"
	"slices"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/chain"
	"github.com/token-ramp/ramp-go/ramptest/internal/locks"
)

// job is something that the service does at a set time: it mines the transaction of
// an order, delivers its result, or mines a transaction that belongs to no order.
type job struct {
	due     time.Time
	task    task
	order   *Order             // nil for mineForeign
	network ramp.Network       // for mineForeign
	tx      *chain.Transaction // for mineForeign
}

type task int

const (
	mineOrder task = iota
	deliverResult
	mineForeign
)

// agenda holds the planned jobs, the next one first.
type agenda struct {
	woken chan struct{} // receives when a job is added

	mu   locks.Mutex
	jobs []job
	busy *job // the job in progress, or nil
}

func newAgenda() *agenda {
	return &agenda{woken: make(chan struct{}, 1), mu: locks.At(locks.Agenda)}
}

// reset drops all jobs.
func (a *agenda) reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.jobs = nil
}

// plan adds a job. Jobs that are due at the same time run in the order in which they
// were planned.
func (a *agenda) plan(j job) {
	a.mu.Lock()
	at, _ := slices.BinarySearchFunc(a.jobs, j.due,
		func(j job, due time.Time) int { return cmp.Or(j.due.Compare(due), -1) })
	a.jobs = slices.Insert(a.jobs, at, j)
	a.mu.Unlock()
	select {
	case a.woken <- struct{}{}:
	default: // already woken
	}
}

// next removes and returns the first job that is due by a time, if there is one.
func (a *agenda) next(by time.Time) (j job, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.jobs) == 0 || a.jobs[0].due.After(by) {
		return job{}, false
	}
	j = a.jobs[0]
	a.jobs = slices.Delete(a.jobs, 0, 1)
	a.busy = &j
	return j, true
}

// finished marks the job that next returned as done.
func (a *agenda) finished() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.busy = nil
}

// of returns the jobs of an order, or with nil those of no order, and whether the first one is
// in progress. That one is among them, because it may be cut off.
func (a *agenda) of(o *Order) (jobs []job, busy bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if busy = a.busy != nil && a.busy.order == o; busy {
		jobs = append(jobs, *a.busy)
	}
	for _, j := range a.jobs {
		if j.order == o {
			jobs = append(jobs, j)
		}
	}
	return jobs, busy
}

// due returns when the first job is due, if there is one.
func (a *agenda) due() (at time.Time, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.jobs) == 0 {
		return time.Time{}, false
	}
	return a.jobs[0].due, true
}
