package orderlist_test

import (
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/orderlist"
)

// A store that does not know where a page begins, or begins with the last order of the page before, would be read
// without an end.
func TestAListThatMakesNoProgressIsAnError(t *testing.T) {
	var stored []ramp.Order
	for range 3 {
		stored = append(stored, ramp.Order{UUID: uuid.New(), Direction: ramp.Mint})
	}
	after := func(page ramp.OrderPage, of func(at int) int) ([]ramp.Order, error) {
		at := slices.IndexFunc(stored, func(o ramp.Order) bool { return o.UUID == page.After.UUID })
		return stored[of(at):], nil
	}
	for name, c := range map[string]struct {
		begins func(at int) int // the page after the order at a place, or -1
		fails  bool
	}{
		"a right list":                {func(at int) int { return at + 1 }, false},
		"one that knows no page":      {func(int) int { return 0 }, true},
		"one that repeats the last":   {func(at int) int { return max(0, at) }, true},
		"one that goes back by three": {func(at int) int { return max(0, at-3) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := orderlist.Scope{}.All(func(page ramp.OrderPage) ([]ramp.Order, error) {
				return after(page, c.begins)
			})
			if c.fails {
				require.ErrorContains(t, err, stored[2].UUID.String())
				return
			}
			require.NoError(t, err)
			assert.Equal(t, stored, all)
		})
	}
}
