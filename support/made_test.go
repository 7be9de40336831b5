package support_test

import (
	"context"
	"flag"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go/support"
)

const notMade = "ramp: the support.Orders was not made by support.New"

// Dependency injection supplies zero values.
func TestOrdersThatNewHasNotMadeSaySo(t *testing.T) {
	ctx, orders, id, now := t.Context(), new(support.Orders), uuid.New(), time.Now()
	d := support.Decision{Who: "bob", Reason: "test"}
	_, show := orders.Show(ctx, id)
	_, find := orders.Find(ctx, id.String())
	_, finish := orders.Finish(ctx, id, common.Hash{1}, d)
	_, fitting := orders.FinishFitting(ctx, new(support.Reconciliation), d)
	_, abandon := orders.Abandon(ctx, id, d)
	_, decide := orders.Decide(ctx, support.Entry{Who: "bob", Reason: "test", Order: id})
	_, erase := orders.EraseSession(ctx, "s", now, d)
	_, lost := orders.Lost(ctx)
	_, reconcile := orders.Reconcile(ctx, now, now)
	_, _, lines := orders.ReconcileLines(ctx, now, now)
	for what, err := range map[string]error{
		"Show": show, "Find": find, "Finish": finish, "FinishFitting": fitting, "Abandon": abandon,
		"Decide": decide, "EraseSession": erase, "Lost": lost, "Reconcile": reconcile, "ReconcileLines": lines,
	} {
		assert.EqualError(t, err, notMade, what)
	}
	for _, name := range []string{"list", "count", "find", "missing", "show", "finish", "abandon", "decide",
		"entries", "reconcile"} {
		run, err := support.NewCommand(name, flag.NewFlagSet(name, flag.ContinueOnError))
		require.NoError(t, err)
		assert.EqualError(t, run(ctx, orders, []string{id.String()}, io.Discard), notMade, name)
	}

	canceled, cancel := context.WithCancel(ctx)
	cancel()
	orders.KeepBooks(canceled, filepath.Join(t.TempDir(), "books.json"), nil) // it only logs
}
