//go:build race

package locks

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestALockOutOfOrderPanics(t *testing.T) {
	for _, order := range []struct {
		name  string
		taken []Place
		fails string
	}{
		{"in order", []Place{Turn, Orders, Clock}, ""},
		{"out of order", []Place{Turn, Clock, Orders},
			fmt.Sprintf("locks: place %d is taken while %d is held", Orders, Clock)},
		{"two of one place", []Place{Delivery, Delivery},
			fmt.Sprintf("locks: place %d is taken while %[1]d is held", Delivery)},
		{"without a place", []Place{Clock, 0}, ""},
	} {
		t.Run(order.name, func(t *testing.T) {
			done := make(chan any)
			go func() { // which holds nothing yet
				defer func() { done <- recover() }()
				for _, place := range order.taken {
					mu := At(place)
					mu.Lock()
					defer mu.Unlock()
				}
			}()
			if failed := <-done; order.fails == "" {
				assert.Nil(t, failed)
			} else {
				assert.Equal(t, order.fails, failed)
			}
		})
	}

	first, second := At(Orders), At(Books)
	for range 2 { // what was released is not held
		first.Lock()
		second.Lock()
		first.Unlock()
		second.Unlock()
	}
	second.Lock()
	second.Unlock()
	first.Lock()
	first.Unlock()
}
