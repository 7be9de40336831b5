package rampbooks_test

import (
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/rig"
	"github.com/token-ramp/ramp-go/rampbooks"
)

// After a reorganization, the transaction of an order is not on the chain any more, or it failed there, and another
// one may have come in its place. That is one finding: no key has leaked, and nobody is owed anything yet.
func TestATransactionThatIsUndoneIsOneFinding(t *testing.T) {
	const failed = "its transaction failed"
	const gone = "the node does not know its transaction: a reorganization removed it, the node has pruned or not " +
		"indexed it, or it was invented; ask another node first"
	const place = "; what came in its place may be in these events"
	for name, c := range map[string]struct {
		failed bool // and not gone
		state  ramp.OrderState
		came   []int64 // tokens that came in its place
		waits  bool    // another order, which it fits, too
		kind   rampbooks.FindingKind
		detail string
	}{
		"it is gone":                 {kind: rampbooks.TransactionUndone, detail: gone},
		"it failed":                  {failed: true, kind: rampbooks.TransactionUndone, detail: failed},
		"gone, and another one came": {came: []int64{5}, kind: rampbooks.TransactionUndone, detail: gone + place},
		"failed, and another one came": {failed: true, came: []int64{5}, kind: rampbooks.TransactionUndone,
			detail: failed + place},
		"gone, and two others came": {came: []int64{5, 5}, kind: rampbooks.TransactionUndone, detail: gone + place},
		"it fits an order that waits": {came: []int64{5}, waits: true, kind: rampbooks.TransactionUndone,
			detail: gone + place},
		"the order had failed, and came": {state: ramp.OrderFailed, came: []int64{5}, kind: rampbooks.EndedOtherwise},
	} {
		t.Run(name, func(t *testing.T) {
			for _, d := range []ramp.Direction{ramp.Mint, ramp.Burn} {
				orders, store, n := rig.NewOfficeOnNode(t, 100*time.Hour, rig.Paid)
				at := rig.HoursAgo(20)
				moved := func(tokens int64) rig.Tx {
					tx := rig.Tx{From: rig.Player, Payer: rig.Payer, To: rig.Vault}
					if d == ramp.Mint {
						tx.Transfers = []ramp.Transfer{rig.Moved(common.Address{}, rig.Player, 98*tokens)}
					} else {
						tx.Transfers = []ramp.Transfer{rig.Moved(rig.Player, common.Address{}, 100*tokens)}
					}
					return tx
				}
				hash := common.HexToHash("0xbad")
				if c.failed {
					hash = n.Send(at.Add(time.Minute), rig.Tx{Failed: true})
				}
				state := ramp.OrderSucceeded
				if c.state != "" {
					state = c.state
				}
				order := rig.Ended(rig.OrderOf(d, 5, at), state, hash, at.Add(2*time.Minute))
				store.Keep(t, order)
				want := []uuid.UUID{order.UUID}
				if c.waits {
					waiting := rig.OrderOf(d, 5, at)
					store.Keep(t, waiting)
					want = append(want, waiting.UUID)
				}
				for i, tokens := range c.came {
					n.Send(at.Add(time.Duration(10+i)*time.Minute), moved(tokens))
				}
				books := must.Get(orders.Reconcile(t.Context(), rig.HoursAgo(60), time.Time{}))(t)
				require.Equal(t, []rampbooks.FindingKind{c.kind}, kindsOf(books), d)
				f := books.Findings[0]
				if c.detail != "" {
					assert.Equal(t, c.detail, f.Detail)
				}
				var found []uuid.UUID
				for _, o := range f.Orders {
					found = append(found, o.UUID)
				}
				assert.Equal(t, want, found)
				assert.Len(t, f.Events, len(c.came))
			}
		})
	}
}
