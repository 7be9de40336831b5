package rampbooks_test

import (
	"context"
	"flag"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampbooks"
)

const notMade = "ramp: the rampbooks.Reconciler was not made by rampbooks.New"

// Dependency injection supplies zero values.
func TestAReconcilerThatNewHasNotMadeSaysSo(t *testing.T) {
	ctx, r, id, now := t.Context(), new(rampbooks.Reconciler), uuid.New(), time.Now()
	_, decide := r.Decide(ctx, rampbooks.Entry{Who: "bob", Reason: "test", Order: id})
	_, reconcile := r.Reconcile(ctx, now, now)
	_, _, lines := r.ReconcileLines(ctx, now, now)
	for what, err := range map[string]error{
		"Decide": decide, "Reconcile": reconcile, "ReconcileLines": lines,
		"KeepMatches": r.KeepMatches(ctx, []ramp.Order{{}}, "bob", "test"),
	} {
		assert.EqualError(t, err, notMade, what)
	}
	for _, name := range []string{"decide", "entries", "reconcile"} {
		run, err := rampbooks.NewCommand(name, flag.NewFlagSet(name, flag.ContinueOnError))
		require.NoError(t, err)
		assert.EqualError(t, run(ctx, r, []string{id.String()}, io.Discard), notMade, name)
	}

	canceled, cancel := context.WithCancel(ctx)
	cancel()
	r.KeepBooks(canceled, rampbooks.PositionFile(filepath.Join(t.TempDir(), "books.json")), nil) // it only logs
}
