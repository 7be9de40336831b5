package storetest

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/token-ramp/ramp-go/ramptest/internal/interleaving"
)

// TestInterleavings runs every order in which the statements of two calls can reach the database, with
// every single fault at every statement, and tests that the store and the game's Apply have the
// effect of one call after the other: each order moves its assets once, and each answer is true.
//
// Two servers share the database. Both make one call of a pair, such as a validate call and its
// repeat, or a failure and a person who abandons the order. Each server stops before every
// statement that it sends; so does the Apply of the game. TestInterleavings chooses which statement is
// next and what goes wrong with it: it is refused, it never arrives, its answer is lost, the call is
// canceled, or all servers are killed. It asks the database who waits for a lock. Then every call is
// repeated until it is answered, as the service does, and the balances and the answers are compared
// with what the stored orders say. The next run makes another choice, until all have been made.
//
// The test fails for the first interleaving that goes wrong, and prints it as a table: what each server
// sent, in which order, what went wrong, and what probably causes it.
//
// It tries what two calls can do to one or two orders of one player, not three calls (but see
// ThreeCalls), not two faults, not what happens inside of database/sql, the driver or the server,
// and only the isolation level that it is given. It tries only what goes through the database. For
// what Apply does elsewhere, and for a store of another kind, use [TestStore] and [TestKill], which
// try interleavings at random.
func TestInterleavings(t testing.TB, s Interleavings) {
	t.Helper()
	if err := s.check(); err != nil {
		t.Error(err)
		return
	}
	admin := sql.OpenDB(s.Admin)
	plain := sql.OpenDB(s.Connector)
	pairs := scenarios
	if s.ThreeCalls {
		pairs, s.NoFaults = scenariosOfThree, true
	}
	scheduler := interleaving.New(interleaving.DialectOf(s.Dialect), s.Connector, admin, 3)
	defer func() {
		if err := errors.Join(scheduler.Close(), admin.Close(), plain.Close()); err != nil {
			t.Error(err)
		}
	}()
	explorer := &explorer{Interleavings: s, scheduler: scheduler}
	if err := explorer.open(plain); err != nil {
		t.Error(err)
		return
	}
	total, strayed := 0, 0
	for i := range pairs {
		walk := &interleaving.Walk{Faults: !s.NoFaults}
		failure := explorer.explore(t.Context(), &pairs[i], walk)
		total, strayed = total+walk.Runs, strayed+walk.Strayed
		t.Logf("%s: %d interleavings, %d of them without a fault",
			pairs[i].name, walk.Runs, walk.ByFault[interleaving.None])
		if failure != "" {
			t.Errorf("%s\n\n%s", pairs[i].name, failure)
			return
		}
	}
	t.Logf("%d interleavings in all; %d more were begun, in which the database acted in another order",
		total, strayed)
}
