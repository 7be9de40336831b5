package must_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/token-ramp/ramp-go/internal/test/must"
)

// ended is a test that notes how it ended.
type ended struct {
	testing.TB
	with []any
}

func (e *ended) Helper()          {}
func (e *ended) Fatal(all ...any) { e.with = all }

func TestGet(t *testing.T) {
	broken := errors.New("broken")
	for _, err := range []error{nil, broken} {
		test := new(ended)
		assert.Equal(t, 7, must.Get(7, err)(test))
		assert.Equal(t, err != nil, len(test.with) == 1 && test.with[0] == broken)
	}
}
