package main

import (
	"go/version"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/token-ramp/ramp-go/internal/test/racedetector"
)

// A comparison compares this SDK with a rival on one subject.
type comparison struct {
	subject, rival string
	wall           bool // measure the time that passes, instead of CPU time
	bounds
	setup func(testing.TB) (ours, theirs func() error) // each call does the same work once
}

// bounds are the maximum ratios of our time to the rival's, and the maximum number of our
// allocations. v2 applies if encoding/json is built on its version 2. 0 is no bound.
type bounds struct{ v1, v2, allocations float64 }

// comparisons returns the rows of docs/performance.md, and those that only have bounds.
func comparisons(t testing.TB) []comparison {
	return append(slices.Concat(parseComparisons(), handlerComparisons(t), rpcComparisons()), orderComparison)
}

// roundTime is approximately how long each side works in one round: long enough for the
// clock, and short enough that a disturbance affects few rounds.
const roundTime = 4 * time.Millisecond

// A race is a comparison in progress.
type race struct {
	t      testing.TB
	sides  [2]func() error // ours and theirs
	clock  func() time.Duration
	calls  int              // of each side in a round
	times  [2]time.Duration // of all rounds
	best   [2]time.Duration // of the shortest rounds, which nothing disturbed
	ratios []float64        // of each round
}

// start sets up both sides and determines the number of calls per round.
func (c comparison) start(t testing.TB) *race {
	r := &race{t: t, clock: cpuTime, calls: 1}
	r.sides[0], r.sides[1] = c.setup(t)
	if c.wall {
		r.clock = func() time.Duration { return time.Since(begun) }
	}
	for max(r.measure(0), r.measure(1)) < roundTime {
		r.calls *= 2
	}
	return r
}

var begun = time.Now()

func (r *race) measure(side int) time.Duration {
	runtime.GC() // so that a side does not pay for the garbage of the other
	before := r.clock()
	for range r.calls {
		if err := r.sides[side](); err != nil {
			r.t.Fatal(err)
		}
	}
	return r.clock() - before
}

// round measures both sides once. They alternate in going first, so that other work on the
// machine slows both alike.
func (r *race) round() {
	var took [2]time.Duration
	for n := range 2 {
		side := (n + len(r.ratios)) % 2
		took[side] = r.measure(side)
		r.times[side] += took[side]
		if r.best[side] == 0 || took[side] < r.best[side] {
			r.best[side] = took[side]
		}
	}
	r.ratios = append(r.ratios, took[0].Seconds()/took[1].Seconds())
}

// ratio returns the median of the rounds, and the quartiles.
func (r *race) ratio() (median, low, high float64) {
	sorted, n := slices.Sorted(slices.Values(r.ratios)), len(r.ratios)
	return sorted[n/2], sorted[n/4], sorted[n-1-n/4]
}

// cpuTime returns the CPU time of the whole process, in user and in kernel mode. It
// excludes the time of other processes, and includes the garbage collector, which runs
// on other cores.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // which exists on every Unix
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkCosts measures a round in each iteration.
func BenchmarkCosts(b *testing.B) {
	for _, c := range comparisons(b) {
		b.Run(c.subject+"/"+c.rival, func(b *testing.B) {
			r := c.start(b)
			for b.Loop() {
				r.round()
			}
			median, low, high := r.ratio()
			b.ReportMetric(median, "ratio")
			b.ReportMetric(r.best[0].Seconds()/r.best[1].Seconds(), "best")
			b.ReportMetric(low, "quartile1")
			b.ReportMetric(high, "quartile3")
			calls := float64(r.calls * len(r.ratios))
			b.ReportMetric(float64(r.times[0])/calls, "ns/ours")
			b.ReportMetric(float64(r.times[1])/calls, "ns/theirs")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func TestComparisonsWorkAndAllocationsStayInTheirBounds(t *testing.T) {
	for _, c := range comparisons(t) {
		t.Run(c.subject+"/"+c.rival, func(t *testing.T) {
			ours, theirs := c.setup(t)
			require.NoError(t, ours())
			require.NoError(t, theirs())
			if c.allocations == 0 || racedetector.On { // which allocates too
				return
			}
			allocations := testing.AllocsPerRun(100, func() { assert.NoError(t, ours()) })
			t.Logf("%.0f allocations, %.0f at most", allocations, c.allocations)
			assert.LessOrEqual(t, allocations, c.allocations)
		})
	}
}

// needQuietMachine skips a test of times unless somebody says that nothing else runs.
func needQuietMachine(t *testing.T) {
	const variable = "RAMP_TEST_TIMES"
	if os.Getenv(variable) == "" {
		t.Skipf("times say something on a quiet machine only: set %s there", variable)
	}
}

// The test adds rounds while a bound is exceeded, because more rounds make the measurement
// more precise. It starts again twice, because the machine favors one side or the other
// by up to a tenth for seconds.
func TestTimesStayInTheirBounds(t *testing.T) {
	needQuietMachine(t)
	const fewest, most = 50, 150
	for _, c := range comparisons(t) {
		bound := c.v1
		if jsonV2() {
			bound = c.v2
		}
		if bound == 0 {
			continue
		}
		t.Run(c.subject, func(t *testing.T) {
			ratio := bound + 1
			for start := 0; start < 3 && ratio > bound; start++ {
				r := c.start(t)
				for len(r.ratios) < fewest || len(r.ratios) < most && ratio > bound {
					r.round()
					ratio, _, _ = r.ratio()
				}
				_, low, high := r.ratio()
				t.Logf("%.2f (%.2f to %.2f) of the time of %s, %.2f at most", ratio, low, high, c.rival, bound)
			}
			assert.LessOrEqual(t, ratio, bound)
		})
	}
}

// jsonV2 reports whether encoding/json is built on its version 2, the default since
// Go 1.27. Version 2 is faster, so rivals that use it are harder to beat.
func jsonV2() bool {
	release, experiments, _ := strings.Cut(runtime.Version(), " ")
	return (version.Compare(release, "go1.27") >= 0) != strings.Contains(experiments, "jsonv2")
}
