package ramptest_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/token-ramp/ramp-go/ramptest"
)

// ending is a test that ends when it is told to.
type ending struct {
	testing.TB
	out bytes.Buffer
	end func()
}

func (e *ending) Output() io.Writer  { return &e.out }
func (e *ending) Cleanup(end func()) { e.end = end }

func TestWhatIsLoggedAfterTheEndOfATestIsDropped(t *testing.T) {
	test := new(ending)
	log := ramptest.Logger(test)
	log.Warn("before")
	test.end()
	log.Warn("after")
	assert.Contains(t, test.out.String(), "before")
	assert.NotContains(t, test.out.String(), "after")
}

// A test that causes thousands of warnings on purpose still shows why it failed.
func TestALogOfATestIsShort(t *testing.T) {
	test := new(ending)
	for n := range 100 {
		ramptest.Logger(test).Warn("call", "n", n)
	}
	ramptest.Logger(test).Info("all calls are made")
	test.end()
	lines := strings.Split(strings.TrimSpace(test.out.String()), "\n")
	if testing.Verbose() {
		assert.Len(t, lines, 101)
		return
	}
	require.Len(t, lines, 11)
	assert.Equal(t, "91 other lines of the log: go test -v shows them", lines[0])
	assert.Contains(t, lines[1], "n=90")
	assert.Contains(t, lines[len(lines)-1], "n=99")
}
