package main

import (
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// A comparison compares this SDK with a rival on one subject.
type comparison struct {
	subject string
	rival   string               // the library that theirs uses
	clock   func() time.Duration // nil for cpuTime
	setup   func() sides
}

// sides are the two functions to compare. Each call does the same work once.
type sides struct {
	ours, theirs func() error
	close        func() // may be nil
}

// roundTime is approximately how long each side works in one round: long enough for the
// clock, and short enough that a disturbance affects few rounds.
const roundTime = 4 * time.Millisecond

// cost is the cost of one call. Allocations are counted for the whole process, so they
// include the goroutines of a server.
type cost struct {
	time          time.Duration
	allocs, bytes float64
}

func (c cost) String() string {
	return fmt.Sprintf("%v, %.0f allocs, %s", roundDuration(c.time), c.allocs, byteSize(c.bytes))
}

// summary holds medians, and the quartiles of the ratios of single rounds.
type summary struct {
	ours, theirs     cost
	ratio, low, high float64
}

func (c comparison) run(rounds int) (summary, error) {
	r, err := c.start()
	if err != nil {
		return summary{}, err
	}
	defer r.stop()
	for range rounds {
		if err := r.round(); err != nil {
			return summary{}, err
		}
	}
	return r.summary(), nil
}

// A race is a comparison in progress.
type race struct {
	sides
	clock        func() time.Duration
	calls        int // of each side in a round
	ours, theirs []cost
}

// start sets up both sides and determines the number of calls per round.
func (c comparison) start() (*race, error) {
	r := &race{sides: c.setup(), clock: c.clock, calls: 1}
	if r.clock == nil {
		r.clock = cpuTime
	}
	for {
		for _, side := range []func() error{r.sides.ours, r.sides.theirs} {
			took, err := measure(side, r.calls, r.clock)
			if err != nil {
				r.stop()
				return nil, err
			}
			if took.time*time.Duration(r.calls) >= roundTime {
				return r, nil
			}
		}
		r.calls *= 2
	}
}

func (r *race) stop() {
	if r.close != nil {
		r.close()
	}
}

// round measures both sides once. They alternate in going first.
func (r *race) round() error {
	measureOurs := func() error {
		c, err := measure(r.sides.ours, r.calls, r.clock)
		r.ours = append(r.ours, c)
		return err
	}
	measureTheirs := func() error {
		c, err := measure(r.sides.theirs, r.calls, r.clock)
		r.theirs = append(r.theirs, c)
		return err
	}
	first, second := measureOurs, measureTheirs
	if len(r.ours)%2 == 1 {
		first, second = second, first
	}
	if err := first(); err != nil {
		return err
	}
	return second()
}

func (r *race) summary() summary {
	rounds := len(r.ours)
	ratios := make([]float64, rounds)
	for i := range ratios {
		ratios[i] = r.ours[i].time.Seconds() / r.theirs[i].time.Seconds()
	}
	slices.Sort(ratios)
	return summary{
		ours: median(r.ours), theirs: median(r.theirs),
		ratio: ratios[rounds/2], low: ratios[rounds/4], high: ratios[rounds-1-rounds/4],
	}
}

func measure(call func() error, calls int, clock func() time.Duration) (cost, error) {
	var before, after runtime.MemStats
	runtime.GC() // so that a side does not pay for the garbage of the other
	runtime.ReadMemStats(&before)
	begun := clock()
	for range calls {
		if err := call(); err != nil {
			return cost{}, err
		}
	}
	took := clock() - begun
	runtime.ReadMemStats(&after)
	return cost{
		time:   took / time.Duration(calls),
		allocs: float64(after.Mallocs-before.Mallocs) / float64(calls),
		bytes:  float64(after.TotalAlloc-before.TotalAlloc) / float64(calls),
	}, nil
}

// cpuTime returns the CPU time of the whole process, in user and in kernel mode. It
// excludes the time of other processes, and includes the garbage collector, which runs
// on other cores.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // RUSAGE_SELF exists on every Unix
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

var programStart = time.Now()

// wallTime is for work that waits for a disk, and for the latency of a function, during
// which the garbage collector runs on another core.
func wallTime() time.Duration { return time.Since(programStart) }

func median(costs []cost) cost {
	middle := func(of func(cost) float64) float64 {
		values := make([]float64, len(costs))
		for i, c := range costs {
			values[i] = of(c)
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return cost{
		time:   time.Duration(middle(func(c cost) float64 { return float64(c.time) })),
		allocs: middle(func(c cost) float64 { return c.allocs }),
		bytes:  middle(func(c cost) float64 { return c.bytes }),
	}
}

// roundDuration rounds to about three digits.
func roundDuration(d time.Duration) time.Duration {
	for unit := time.Duration(1); ; unit *= 10 {
		if d < 1000*unit {
			return d.Round(unit)
		}
	}
}

func byteSize(n float64) string {
	switch {
	case n < 1<<10:
		return fmt.Sprintf("%.0f B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", n/(1<<10))
	default:
		return fmt.Sprintf("%.1f MiB", n/(1<<20))
	}
}

// must panics if the setup of a comparison fails, because nothing can be measured then.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
