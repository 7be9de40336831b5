package order

import (
	"cmp"
	"slices"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/chain"
	"github.com/token-ramp/ramp-go/ramptest/internal/locks"
)

// Job is something that the service does at a set time: it mines the transaction of
// an order, delivers its result, or mines a transaction that belongs to no order.
type Job struct {
	Due     time.Time
	Task    Task
	Order   *Order             // nil for MineForeign
	Network ramp.Network       // for MineForeign
	Tx      *chain.Transaction // for MineForeign
}

// Task is what a job does.
type Task int

// The tasks.
const (
	MineOrder Task = iota
	DeliverResult
	MineForeign
)

// Jobs holds the planned jobs, the next one first.
type Jobs struct {
	Woken chan struct{} // receives what Wake sends

	mu   locks.Mutex
	can  func(*Job) bool
	jobs []Job
	busy *Job // the job in progress, or nil
}

// NewJobs returns an empty list of jobs. A job that is due runs as soon as can says that it can.
func NewJobs(can func(*Job) bool) *Jobs {
	return &Jobs{Woken: make(chan struct{}, 1), mu: locks.At(locks.Jobs), can: can}
}

// Reset drops all jobs.
func (a *Jobs) Reset() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.jobs = nil
}

// Plan adds a job. Jobs that are due at the same time run in the order in which they
// were planned.
func (a *Jobs) Plan(j Job) {
	a.mu.Lock()
	at, _ := slices.BinarySearchFunc(a.jobs, j.Due,
		func(j Job, due time.Time) int { return cmp.Or(j.Due.Compare(due), -1) })
	a.jobs = slices.Insert(a.jobs, at, j)
	a.mu.Unlock()
	a.Wake()
}

// Wake says that a job was added, or that one can run now that could not before.
func (a *Jobs) Wake() {
	select {
	case a.Woken <- struct{}{}:
	default: // already woken
	}
}

// first returns the place of the first job that can run, or -1.
func (a *Jobs) first() int { return slices.IndexFunc(a.jobs, func(j Job) bool { return a.can(&j) }) }

// Next removes and returns the first job that can run and is due by a time, if there is one.
func (a *Jobs) Next(by time.Time) (j Job, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	first := a.first()
	if first < 0 || a.jobs[first].Due.After(by) {
		return Job{}, false
	}
	j = a.jobs[first]
	a.jobs = slices.Delete(a.jobs, first, first+1)
	a.busy = &j
	return j, true
}

// Finished marks the job that next returned as done.
func (a *Jobs) Finished() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.busy = nil
}

// Of returns the jobs of an order, or with nil those of no order, and whether the first one is
// in progress. That one is among them, because it may be cut off.
func (a *Jobs) Of(o *Order) (jobs []Job, busy bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if busy = a.busy != nil && a.busy.Order == o; busy {
		jobs = append(jobs, *a.busy)
	}
	for _, j := range a.jobs {
		if j.Order == o {
			jobs = append(jobs, j)
		}
	}
	return jobs, busy
}

// Due returns when the first job that can run is due, if there is one.
func (a *Jobs) Due() (at time.Time, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	first := a.first()
	if first < 0 {
		return time.Time{}, false
	}
	return a.jobs[first].Due, true
}
