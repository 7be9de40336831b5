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

// Behind an address, one machine lists nothing, and it answers for the blocks with a stolen mint. Each request also
// asks for an event that is known.
func TestAMachineThatListsNothingHidesNoMint(t *testing.T) {
	orders, store, n := rig.NewOfficeOnNode(t, 100*time.Hour, rig.Paid)
	at := rig.HoursAgo(50)
	minted := func(at time.Time, user common.Address) common.Hash {
		return n.Send(at, rig.Tx{From: rig.Player, Payer: rig.Payer, To: rig.Vault,
			Transfers: []ramp.Transfer{rig.Moved(common.Address{}, user, 490)}})
	}
	order := rig.OrderOf(ramp.Mint, 5, at)
	hash := minted(at.Add(time.Minute), rig.Player)
	store.Keep(t, rig.Ended(order, ramp.OrderSucceeded, hash, at.Add(2*time.Minute)))
	stolen := minted(rig.HoursAgo(20), rig.Friend)
	blind := false
	n.Lists = func(tx *rig.Tx) bool {
		blind = blind || tx.Hash == stolen
		return !blind
	}
	_, err := orders.Reconcile(t.Context(), rig.HoursAgo(60), time.Time{})
	assert.ErrorContains(t, err, "the node shows transaction "+hash.Hex()+" of order "+order.UUID.String())
	assert.ErrorContains(t, err, "lists none of its events")
	n.Lists = nil
	books := must.Get(orders.Reconcile(t.Context(), rig.HoursAgo(60), time.Time{}))(t)
	assert.Equal(t, []rampbooks.FindingKind{rampbooks.EventWithoutOrder}, kindsOf(books))
}

// Without a transaction, an order is known by an event of its user. If that is old, the node may have pruned it.
func TestAnOldEventMayBePruned(t *testing.T) {
	const none = "its result had no transaction hash, and no event of its user fits"
	for accepted, want := range map[time.Duration]string{
		30 * time.Hour: none,
		80 * time.Hour: none + ", or the node has pruned events of that age; ask another node first",
	} {
		orders, store, _ := rig.NewOfficeOnNode(t, 100*time.Hour, rig.Paid)
		order := rig.OrderOf(ramp.Mint, 5, rig.Now.Add(-accepted))
		store.Keep(t, rig.Ended(order, ramp.OrderSucceeded, common.Hash{}, rig.HoursAgo(10)))
		store.Change(order.UUID, func(o *ramp.Order) { o.TxHash = "" })
		books := must.Get(orders.Reconcile(t.Context(), rig.HoursAgo(40), time.Time{}))(t)
		require.Equal(t, []rampbooks.FindingKind{rampbooks.OrderWithoutEvent}, kindsOf(books))
		assert.Equal(t, want, books.Findings[0].Detail)
	}
}

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
