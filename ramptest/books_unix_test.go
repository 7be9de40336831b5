//go:build unix

package ramptest_test

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/token-ramp/ramp-go/internal/test/racedetector"
	"github.com/token-ramp/ramp-go/ramptest"
)

// The books may cost as much time as the mints themselves, and 8 kB a mint.
func TestTheBooksAreCheap(t *testing.T) {
	racedetector.Skip(t)
	const mints = 300
	// Nanoseconds that the process has computed, as others may be busy too, and bytes held.
	type cost struct{ time, memory int64 }
	now := func() cost {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		var u syscall.Rusage
		require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return cost{u.Utime.Nano() + u.Stime.Nano(), int64(m.HeapAlloc)}
	}
	least := make(map[ramptest.Audit]cost)
	off, on := cost{}, cost{}
	// Other programs can only make a round dearer, so it is repeated until it shows what the books cost.
	for round := 0; round == 0 || round < 9 && on.time >= 2*off.time; round++ {
		for _, mode := range []ramptest.Audit{ramptest.AuditOff, ramptest.AuditFail} {
			c := newCounter(t, func(c *ramptest.Config) { c.Audit = mode })
			c.shop.gold = 1 << 40
			c.mint(t) // what is made once
			before := now()
			for range mints {
				c.mint(t)
				c.service.Advance(time.Second)
				c.shop.results = c.shop.results[:0]
			}
			after, old := now(), least[mode]
			runtime.KeepAlive(c)
			least[mode] = cost{after.time - before.time, after.memory - before.memory}
			if old != (cost{}) {
				least[mode] = cost{min(old.time, least[mode].time), min(old.memory, least[mode].memory)}
			}
		}
		off, on = least[ramptest.AuditOff], least[ramptest.AuditFail]
	}
	t.Logf("%d mints: %v without books, %v with them; %d B and %d B held for each",
		mints, time.Duration(off.time), time.Duration(on.time), off.memory/mints, on.memory/mints)
	assert.Less(t, on.time, 2*off.time)
	assert.Less(t, (on.memory-off.memory)/mints, int64(8<<10))
}
