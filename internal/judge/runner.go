package judge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Run tries cases, up to parallel of them or of their inputs at the same time, and returns
// their verdicts in the order of the cases. It calls done with each verdict as soon as it
// is known, one call at a time; done may be nil. Concurrent cases need different players.
// Once Config.Player returns a player that another case is using, Run tries one case at a
// time. What several players do at once is tried first. If it mixes, the rest is tried one
// case at a time, because anything could fail otherwise. If ctx is canceled, the result
// omits the cases that were not finished.
func (j *Judge) Run(ctx context.Context, cases []Case, parallel int, done func(Verdict)) []Verdict {
	r := &runner{judge: j, ctx: ctx, done: done, revives: j.target.Restart != nil}
	first, rest, alone := r.plan(cases)
	r.work(first, 1)
	if slices.ContainsFunc(first, func(at job) bool { return at.verdict.Outcome == Failed }) {
		parallel = 1
	}
	r.work(rest, parallel)
	r.work(alone, 1)
	r.retry()
	var verdicts []Verdict
	for _, at := range r.all {
		if at.missing == 0 {
			verdicts = append(verdicts, at.verdict)
		}
	}
	return verdicts
}

// runner is one call of [Judge.Run].
type runner struct {
	judge   *Judge
	ctx     context.Context
	done    func(Verdict)
	revives bool // a server that stopped answering is restarted
	all     []*partial

	mu    sync.Mutex
	again []job // what to try alone after a restart, because the server stopped answering
}

// partial is a case of which some inputs are tried.
type partial struct {
	Case
	tried   []InputVerdict
	missing int // inputs
	verdict Verdict
}

// job is an input to try.
type job struct {
	*partial
	input int
}

// plan returns the jobs of cases, by when they are tried: alone is when the rest is done, one
// after the other.
func (r *runner) plan(cases []Case) (first, rest, alone []job) {
	for _, c := range cases {
		n := len(c.tries())
		at := &partial{Case: c, tried: make([]InputVerdict, n), missing: n}
		r.all = append(r.all, at)
		jobs := &rest
		if c.first {
			jobs = &first
		} else if c.alone || c.last {
			jobs = &alone
		}
		for input := range n {
			*jobs = append(*jobs, job{at, input})
		}
	}
	return first, rest, alone
}

// work tries jobs, up to parallel at the same time.
func (r *runner) work(jobs []job, parallel int) {
	places := make(chan bool, max(1, parallel))
	var wait sync.WaitGroup
	for _, at := range jobs {
		places <- true
		wait.Go(func() {
			r.try(at)
			<-places
		})
	}
	wait.Wait()
}

// try tries a job, and tells the verdict of its case if that is the last of its inputs.
func (r *runner) try(at job) {
	v := r.judge.tryInput(r.ctx, at.Case, at.tries()[at.input])
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx.Err() != nil {
		return
	}
	if v.Outcome == Untried && r.revives && r.judge.left(at.Case) {
		r.again = append(r.again, at)
		return
	}
	at.tried[at.input] = v
	if at.missing--; at.missing > 0 {
		return
	}
	at.verdict = r.judge.sum(at.Case, at.tried)
	if r.done != nil {
		r.done(at.verdict)
	}
}

// retry restarts a server that stopped answering, and tries what was left, beginning with the
// cases that may have stopped it.
func (r *runner) retry() {
	const most = 5 // restarts
	j := r.judge
	var gone *goneError
	for restarts := 0; len(r.again) > 0; restarts++ {
		errors.As(j.Err(), &gone)
		r.revives = restarts < most && j.revive(r.ctx)
		jobs := r.again
		r.again = nil
		slices.SortStableFunc(jobs, func(a, b job) int {
			return cmp.Compare(fmt.Sprint(!gone.suspects(a.Case)), fmt.Sprint(!gone.suspects(b.Case)))
		})
		r.work(jobs, 1)
	}
	if r.revives && j.crashed.Load() && j.Err() != nil {
		j.revive(r.ctx) // nothing was left to try
	}
	if gone != nil && j.Err() == nil && !j.crashed.Load() {
		j.run.stop(
			fmt.Errorf(
				"the server stopped answering during %s, but not when each was tried alone after a restart: "+
					"it was stopped from outside, or they stop it together", strings.Join(gone.flight, ", ")))
	}
}
