// Package storetest tests a [ramp.Store]: [TestStore] its contract, [TestKill] what it does when its
// process is killed, and [TestInterleavings] a store on SQL, with the game's Apply, in every order in
// which two calls can meet.
package storetest

import (
	"testing"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
)

// TestStore tests that a store keeps the contract of [ramp.Store]. Each subtest
// calls open for a store and names in one sentence what the store did wrong. If the
// first one fails, the others are not run, because they need what it tests. A store with
// the methods of [rampproof.OrderFinder] or [rampbooks.OrderLister] is tested as one, too. A subtest
// that is skipped says what the store, or the Fixture, does not have. The data may be shared, because no
// session and no UUID is used twice. The orders are of several projects: if your store is limited to some,
// open it without the limit.
//
// The store must move balances, reject a Take above the balance with [ramp.Reject], decline a burn
// that does not fit or let what does not fit wait elsewhere, approve every other step, and call
// check for each step that it applies: not for one that is [ramp.Step.Settled]. If the store has a
// method Refused, as [ramp.Store] describes it, and Refusals of rampsql.Store, they are tested,
// too. If check fails, nothing may be stored or moved, and Update must return an error that wraps
// that of check. If your store applies a step in a transaction, call check last in it, so that the
// rollback must undo what came before.
func TestStore(t *testing.T, open func(t *testing.T, check func(ramp.Step) error) Fixture) {
	t.Helper()
	for i, c := range checks {
		passed := t.Run(c.name, func(t *testing.T) {
			k := newTrial(t.Context())
			if i == 0 {
				k.timeout = 2 * time.Second // nothing else runs that could delay a call
			}
			k.Fixture = open(t, k.check)
			if len(k.Stores) == 0 || k.Give == nil || k.Balance == nil {
				t.Fatal("the Fixture must have Stores, Give and Balance")
			}
			if c.needs != nil {
				if missing := c.needs(&k.Fixture); missing != "" {
					t.Skip("NOT TESTED: " + missing)
				}
			}
			if failure := k.try(c.run); failure != "" {
				t.Error(failure)
			} else if k.untested != "" {
				t.Skip("NOT TESTED: " + k.untested)
			}
		})
		if i == 0 && !passed {
			t.Fatal("fix this first: the other checks were not run, because they need it")
		}
	}
}

var checks = []struct {
	name  string
	run   func(*trial)
	needs func(*Fixture) string // what is missing for it, or nothing
}{
	// first: settle goes by them
	{name: "a call that must fail returns the right error", run: (*trial).errorsComeBack},
	{name: "each step moves once, and a repeat nothing", run: (*trial).stepsAndRepeats},
	{name: "an order comes back as it was stored", run: (*trial).roundTrip},
	{name: "an Apply that fails or panics stores nothing", run: (*trial).failingApply},
	{name: "a Take above the balance is rejected as a whole", run: (*trial).takeTooMuch},
	{name: "a grant or a give-back never fails", run: (*trial).grants},
	{name: "what a person has settled is stored and not applied", run: (*trial).settledElsewhere},
	{name: "why an end was refused is noted while the order waits", run: (*trial).refusals,
		needs: method[refuser]("Refused and Refusals of rampsql.Store")},
	{name: "players and assets are kept apart", run: (*trial).keptApart},
	{name: "large balances are exact", run: (*trial).largeBalances},
	{name: "one transaction ends one order", run: (*trial).oneTransaction},
	{name: "an order finder says what transactions have ended", run: (*trial).orderFinder,
		needs: method[rampproof.OrderFinder]("rampproof.OrderFinder, which a proof needs")},
	{name: "an order lister lists each order once, in its order", run: (*trial).orderLister,
		needs: method[rampbooks.OrderLister]("rampbooks.OrderLister, which books and support need")},
	{name: "a canceled context moves nothing or everything", run: (*trial).canceled},
	{name: "the largest order can end", run: (*trial).largestOrder},
	{name: "a request that comes late changes nothing", run: (*trial).lateRequests, needs: late},
	{name: "a stale read changes nothing", run: (*trial).staleReads, needs: late},
	{name: "an order of many assets ends, or is rejected", run: (*trial).manyAssets},
	{name: "two steps that meet both count", run: (*trial).stepsThatMeet},
	{name: "of concurrent validates one takes", run: (*trial).validatesAtOnce},
	{name: "of concurrent outcomes one wins", run: (*trial).outcomesAtOnce},
	{name: "of concurrent orders one ends by a transaction", run: (*trial).oneTransactionAtOnce},
	{name: "many orders of one player add up", run: (*trial).manyOrders},
	{name: "the books are exact after crashes", run: (*trial).afterCrashes, needs: crash},
}

// method says that a store does not have some methods.
func method[M any](names string) func(*Fixture) string {
	return func(f *Fixture) string {
		if _, ok := f.Stores[0].(M); !ok {
			return "the store has no methods of " + names
		}
		return ""
	}
}

func crash(f *Fixture) string {
	if f.Crash == nil {
		return "the Fixture has no Crash"
	}
	return ""
}

func late(f *Fixture) string {
	if f.Late == nil {
		return "the Fixture has no Late: a database client on HTTP, which sends a request again, needs it"
	}
	return ""
}
