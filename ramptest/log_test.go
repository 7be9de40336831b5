package ramptest_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
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
