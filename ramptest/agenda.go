package ramptest

import (
	"slices"
	"sync"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest/internal/chain"
)

// job is what the service does at a time: it mines the transaction of an order,
// delivers its result, or mines a transaction that is of no order.
type job struct {
	due     time.Time
	task    task
	order   *Order             // nil for mineForeign
	network ramp.Network       // of mineForeign
	tx      *chain.Transaction // of mineForeign
}

type task int

const (
	mineOrder task = iota
	deliverResult
	mineForeign
)

// agenda is what the service will do, the next job first.
type agenda struct {
	woken chan struct{} // there is a new job

	mu   sync.Mutex
	jobs []job
}

func newAgenda() *agenda { return &agenda{woken: make(chan struct{}, 1)} }

// plan adds a job. Of two that are due at once, the one that was planned first
// comes first.
func (a *agenda) plan(j job) {
	a.mu.Lock()
	at, _ := slices.BinarySearchFunc(a.jobs, j.due, func(j job, due time.Time) int {
		if j.due.After(due) {
			return 1
		}
		return -1
	})
	a.jobs = slices.Insert(a.jobs, at, j)
	a.mu.Unlock()
	select {
	case a.woken <- struct{}{}:
	default: // woken already, or nobody waits
	}
}

// next takes the first job that is due at a time, if there is one.
func (a *agenda) next(by time.Time) (j job, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.jobs) == 0 || a.jobs[0].due.After(by) {
		return job{}, false
	}
	j = a.jobs[0]
	a.jobs = slices.Delete(a.jobs, 0, 1)
	return j, true
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
