package storetest

import (
	"context"
	"time"

	ramp "github.com/token-ramp/ramp-go"
)

// Fixture is the store to test, with the balances that it moves. Balances are whole
// numbers, mostly below 2^54. One is a debt, which only a chargeback or the like leaves,
// and one is so large that a grant does not fit.
type Fixture struct {
	// Stores holds the store. To test several machines, open the store several
	// times over the same data; calls are spread over all of them. At least one is
	// required.
	Stores []ramp.Store

	// Give sets the balance of an asset of a session. Required.
	Give func(ctx context.Context, session, asset string, balance int64) error

	// Balance reads the balance of an asset of a session. Required.
	Balance func(ctx context.Context, session, asset string) (int64, error)

	// Crash stops the database server as a crash does and starts it again. If set,
	// the balances must be exact after crashes under load. Use it for a store whose
	// server outlives its process.
	Crash func() error

	// Lag is how far the lists of [rampbooks.OrderLister] and NewestSuccess may be behind, such as indexes of
	// a document database. They are then read again until they are right, for as long as that.
	Lag time.Duration

	// Late is the transport of the HTTP client through which all Stores reach their database or the
	// service that has the balances. If set, requests that come late are tested.
	Late *Late
}
