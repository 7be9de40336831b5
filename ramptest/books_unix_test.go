//go:build unix

package ramptest_test

import (
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// The books may cost as much time as the mints themselves, and 8 kB a mint.
// RAMP_BOOKS_MINTS plays more mints than are needed for a bound.
func TestTheBooksAreCheap(t *testing.T) {
	mints := 300
	if n, err := strconv.Atoi(os.Getenv("RAMP_BOOKS_MINTS")); err == nil {
		mints = n
	}
	// used is the time that the process has computed: others may be busy too.
	used := func() time.Duration {
		var u syscall.Rusage
		require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	// cost is the time of the mints, and the memory that is held after them.
	cost := func(mode ramptest.Books) (time.Duration, uint64) {
		c := newCounter(t, func(c *ramptest.Config) { c.Books = mode })
		c.shop.gold = 1 << 40
		heap := func() uint64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		c.mint(t) // what is made once
		before, begun := heap(), used()
		for range mints {
			started, err := c.client.Initialize(t.Context(), request())
			require.NoError(t, err)
			_, err = c.service.Mint(t.Context(), started.UUID, c.session, ramp.NewAmount(10))
			require.NoError(t, err)
			c.service.Advance(time.Second)
			c.shop.results = c.shop.results[:0]
		}
		took := used() - begun
		held := heap() - before
		runtime.KeepAlive(c)
		return took, held
	}
	var least [2]time.Duration
	var held [2]uint64
	for round := range 3 {
		for i, mode := range []ramptest.Books{ramptest.BooksOff, ramptest.BooksFail} {
			took, memory := cost(mode)
			if round == 0 || took < least[i] {
				least[i] = took
			}
			if round == 0 || memory < held[i] {
				held[i] = memory
			}
		}
	}
	t.Logf("%d mints: %v without books, %v with them; %d B and %d B held for each", mints, least[0], least[1],
		held[0]/uint64(mints), held[1]/uint64(mints))
	assert.Less(t, least[1], 2*least[0])
	if held[1] > held[0] {
		assert.Less(t, (held[1]-held[0])/uint64(mints), uint64(8<<10))
	}
}
