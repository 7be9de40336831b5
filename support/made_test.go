package support_test

import (
	"flag"
	"io"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go/rampbooks"
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
	_, fitting := orders.FinishFitting(ctx, new(rampbooks.Reconciliation), d)
	_, abandon := orders.Abandon(ctx, id, d)
	_, erase := orders.EraseSession(ctx, "s", now, d)
	_, lost := orders.Lost(ctx)
	for what, err := range map[string]error{
		"Show": show, "Find": find, "Finish": finish, "FinishFitting": fitting, "Abandon": abandon,
		"EraseSession": erase, "Lost": lost,
	} {
		assert.EqualError(t, err, notMade, what)
	}
	for _, name := range []string{"list", "count", "find", "missing", "show", "finish", "abandon"} {
		run, err := support.NewCommand(name, flag.NewFlagSet(name, flag.ContinueOnError))
		require.NoError(t, err)
		assert.EqualError(t, run(ctx, orders, []string{id.String()}, io.Discard), notMade, name)
	}
}
