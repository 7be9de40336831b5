package testlog_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/token-ramp/ramp-go/internal/test/testlog"
)

// ending is a test that ends when it is told to.
type ending struct {
	testing.TB
	out bytes.Buffer
	end func()
}

func (e *ending) Output() io.Writer  { return &e.out }
func (e *ending) Cleanup(end func()) { e.end = end }

func TestWhatIsLoggedAfterTheEndIsDropped(t *testing.T) {
	test := new(ending)
	log := testlog.New(test)
	log.Warn("before")
	test.end()
	log.Warn("after")
	assert.Contains(t, test.out.String(), "before")
	assert.NotContains(t, test.out.String(), "after")
}
