package rampsql

import (
	"context"
	"errors"
	mathrand "math/rand/v2"
	"strings"
	"time"
)

// aborted reports whether a database ended a transaction that raced another. This package
// knows no driver: those of PostgreSQL agree on a method, those of MySQL on a text.
func aborted(err error) bool {
	var state interface{ SQLState() string }
	if errors.As(err, &state) {
		switch state.SQLState() {
		case "40001", "40P01": // a serialization failure, a deadlock
			return true
		case "0A000": // among others, a statement that was prepared before a migration
			return true
		}
		return false
	}
	// A deadlock, or a row that MariaDB found changed since the snapshot. Both have rolled back.
	return strings.Contains(err.Error(), "Error 1213") || strings.Contains(err.Error(), "Error 1020")
}

// wait waits after attempt n, and reports whether to make another.
func wait(ctx context.Context, n int) bool {
	const minDelay, maxDelay = 10 * time.Millisecond, 200 * time.Millisecond
	select {
	case <-time.After(mathrand.N(min(maxDelay, minDelay<<min(n, 10)))):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
