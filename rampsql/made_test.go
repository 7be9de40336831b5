package rampsql_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"

	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampsql"
)

// Dependency injection supplies zero values.
func TestAStoreThatNewHasNotMadeSaysSo(t *testing.T) {
	ctx, store, id := t.Context(), new(rampsql.Store), uuid.New()
	_, update := store.Update(ctx, id, ramp.Abandon("bob: test", time.Now()))
	_, order := store.Order(ctx, id)
	_, session := store.SessionOrders(ctx, "s", ramp.OrderPage{})
	_, newest := store.NewestSuccess(ctx, ramp.Mainnet)
	_, _, waiting := store.CountWaiting(ctx, ramp.Mint, time.Now())
	_, deleted := store.DeleteFinished(ctx, ramp.Mint, time.Now().AddDate(-1, 0, 0))
	_, refusals := store.Refusals(ctx, id)
	_, _, refused := store.CountRefused(ctx, ramp.Mint)
	for what, err := range map[string]error{
		"Check": store.Check(ctx, ramp.Mainnet), "Update": update, "Order": order, "SessionOrders": session,
		"NewestSuccess": newest, "CountWaiting": waiting, "DeleteFinished": deleted, "Refusals": refusals,
		"CountRefused": refused, "Refused": store.Refused(ctx, id, "full"),
	} {
		assert.EqualError(t, err, "ramp: the rampsql.Store was not made by rampsql.New", what)
	}
}
