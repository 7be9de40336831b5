package rampbooks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
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
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/support"
)

// regular are the books of each day, with a position.
type regular struct {
	t        *testing.T
	orders   *rig.Office
	position string
	end      time.Time // of the last ones
}

// day returns the books of the next day.
func (r *regular) day() *rampbooks.Reconciliation {
	r.t.Helper()
	args := []string{"-position", r.position, "-format", "json"}
	if r.end.Equal(firstDay) {
		args = append(args, "-from", firstDay.Format(time.RFC3339))
	}
	r.end = r.end.Add(24 * time.Hour)
	args = append(args, "-to", r.end.Format(time.RFC3339))
	printed, _ := rig.RunCommand(r.t, r.orders, "reconcile", args...) // fails if there are findings
	books := new(rampbooks.Reconciliation)
	require.NoError(r.t, json.Unmarshal([]byte(printed), books))
	assert.Equal(r.t, r.end, books.To)
	return books
}

// firstDay is when the regular books begin.
var firstDay = rig.Now.Add(-6 * 24 * time.Hour)

// newRegular returns the books of six days, of a store that notes refusals.
func newRegular(t *testing.T) (*regular, *rig.NotingStore, *rig.Node) {
	proof := &rampproof.Config{AnyFailure: true}
	_, store, n := rig.NewOfficeOnNode(t, 8*24*time.Hour, proof)
	noted := &rig.NotingStore{Store: store, Noted: map[uuid.UUID]ramp.Refusal{}}
	orders := must.Get(rig.NewOffice(rig.Config{Store: noted, Proof: rig.ProofOn(t, n.RPC(t), proof),
		Products: rampbooks.Always(rig.Product), Now: rig.Later, Logger: rig.Quiet}))(t)
	return &regular{t, orders, filepath.Join(t.TempDir(), "position"), firstDay}, noted, n
}

// Whatever the books have found on the chain for an order that waits, those of every day find again
// until the order has ended. What has no event is found once, and counted.
func TestEveryDaysBooksFindWhatWaitsWithAnEvent(t *testing.T) {
	at := func(minutes int) time.Time { return firstDay.Add(time.Duration(minutes) * time.Minute) }
	burned := rig.Tx{Transfers: []ramp.Transfer{rig.Moved(rig.Player, common.Address{}, 500)}}
	minted := rig.Tx{Transfers: []ramp.Transfer{rig.Moved(common.Address{}, rig.Player, 490)}}
	type planter = func(t *testing.T, store *rig.Store, n *rig.Node) (waits ramp.Order, own common.Hash)
	for name, c := range map[string]struct {
		plant planter
		every rampbooks.FindingKind // found every day, or "" for only on the first
	}{
		"a burn whose result is refused": {func(t *testing.T, store *rig.Store, n *rig.Node) (ramp.Order, common.Hash) {
			o := rig.OrderOf(ramp.Burn, 5, at(60))
			store.Keep(t, o)
			return o, n.Send(at(65), burned)
		}, rampbooks.WaitsWithEvent},
		"a mint whose result never comes": {func(t *testing.T, store *rig.Store, n *rig.Node) (ramp.Order,
			common.Hash) {
			o := rig.OrderOf(ramp.Mint, 5, at(60))
			store.Keep(t, o)
			return o, n.Send(at(65), minted)
		}, rampbooks.WaitsWithEvent},
		"two burns and one event": {func(t *testing.T, store *rig.Store, n *rig.Node) (ramp.Order, common.Hash) {
			o, other := rig.OrderOf(ramp.Burn, 5, at(60)), rig.OrderOf(ramp.Burn, 5, at(61))
			hash := n.Send(at(65), burned)
			store.Keep(t, o, rig.Ended(other, ramp.OrderAbandoned, common.Hash{}, at(62)))
			store.Change(other.UUID, func(o *ramp.Order) { o.TxHash = "" })
			return o, hash
		}, rampbooks.Ambiguous},
		"an event that ended another order": {func(t *testing.T, store *rig.Store, n *rig.Node) (ramp.Order,
			common.Hash) {
			o, other := rig.OrderOf(ramp.Burn, 5, at(60)), rig.OrderOf(ramp.Burn, 7, at(61))
			hash := n.Send(at(65), burned)
			store.Keep(t, o, rig.Ended(other, ramp.OrderSucceeded, hash, at(66)))
			return o, common.Hash{}
		}, rampbooks.Differs},
		"a clock that was ahead": {func(t *testing.T, store *rig.Store, n *rig.Node) (ramp.Order, common.Hash) {
			o := rig.OrderOf(ramp.Mint, 5, at(120))
			store.Keep(t, o)
			return o, n.Send(at(60), minted)
		}, rampbooks.EventWithoutOrder},
		"a burn that nobody sent": {func(t *testing.T, store *rig.Store, _ *rig.Node) (ramp.Order, common.Hash) {
			o := rig.OrderOf(ramp.Burn, 5, at(60))
			store.Keep(t, o)
			return o, common.Hash{}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			books, store, n := newRegular(t)
			waits, own := c.plant(t, store.Store, n)
			require.NoError(t, store.Refused(t.Context(), waits.UUID, "the purse is full"))
			for day := range 4 {
				found := books.day()
				if c.every == "" && day > 0 {
					assert.Empty(t, found.Findings)
					assert.Equal(t, 1, found.WaitingBurns)
					continue
				}
				if c.every != "" {
					assert.Equal(t, 1, found.Counts[c.every], "day %d: %v", day, kindsOf(found))
				}
				for _, f := range found.Findings {
					for _, o := range f.Orders {
						if o.UUID == waits.UUID {
							require.NotNil(t, o.Refusal, "of a %s", f.Kind)
							assert.Equal(t, "the purse is full", o.Refusal.Reason)
						}
					}
				}
				assert.Contains(t, found.Text(), "refused 1 times since")
			}
			store.Change(waits.UUID, func(o *ramp.Order) {
				if *o = rig.Ended(*o, ramp.OrderSucceeded, own, books.end); own == (common.Hash{}) {
					o.State, o.TxHash = ramp.OrderAbandoned, ""
				}
			})
			books.day()
			assert.Empty(t, kindsOf(books.day()), "once the order has ended")
		})
	}
}

// A person who ends the order ends the finding.
func TestAFindingEndsWithItsOrder(t *testing.T) {
	books, store, n := newRegular(t)
	o := rig.OrderOf(ramp.Burn, 5, firstDay.Add(time.Hour))
	store.Keep(t, o)
	hash := n.Send(firstDay.Add(65*time.Minute), rig.Tx{From: rig.Payer, To: rig.Vault,
		Transfers: []ramp.Transfer{rig.Moved(rig.Player, common.Address{}, 500)}})
	for range 3 {
		assert.Equal(t, []rampbooks.FindingKind{rampbooks.WaitsWithEvent}, kindsOf(books.day()))
	}
	d := support.Decision{Who: "alice", Reason: "the purse has room", AgainstEvidence: true}
	must.Get(books.orders.Finish(t.Context(), o.UUID, hash, d))(t)
	assert.Empty(t, kindsOf(books.day()))
}

// A node that has forgotten the transaction hides nothing, and the books of another one have it.
func TestANodeThatHasForgottenATransactionIsNamed(t *testing.T) {
	books, store, n := newRegular(t)
	o := rig.OrderOf(ramp.Mint, 5, firstDay.Add(time.Hour))
	store.Keep(t, o)
	hash := n.Send(firstDay.Add(65*time.Minute), rig.Tx{
		Transfers: []ramp.Transfer{rig.Moved(common.Address{}, rig.Player, 490)}})
	books.day()
	n.Hides = func(tx *rig.Tx) bool { return tx.Hash == hash }
	found := books.day()
	require.Equal(t, []rampbooks.FindingKind{rampbooks.WaitsWithEvent}, kindsOf(found))
	said := "earlier books found transaction %s, which this node does not know: ask another one"
	assert.Equal(t, fmt.Sprintf(said, hash), found.Findings[0].Detail)
	n.Hides = nil
	found = books.day()
	require.Equal(t, []rampbooks.FindingKind{rampbooks.WaitsWithEvent}, kindsOf(found))
	assert.Equal(t, hash, found.Findings[0].Events[0].TxHash)
}

// What is found again costs the node a call for each transaction, however long ago it was, and a
// thousand burns that nobody sent cost none.
func TestWhatIsFoundAgainCostsACallForEach(t *testing.T) {
	calls := func(t *testing.T, waits, unsent int) int {
		books, store, n := newRegular(t)
		for i := range waits + unsent {
			o := rig.OrderOf(ramp.Burn, 5, firstDay.Add(time.Hour))
			user := common.Address{1}.Bytes()
			user[18], user[19] = byte(i>>8), byte(i)
			o.UserAddress = common.BytesToAddress(user).Hex()
			store.Keep(t, o)
			if i < waits {
				n.Send(firstDay.Add(65*time.Minute), rig.Tx{Transfers: []ramp.Transfer{
					rig.Moved(common.HexToAddress(o.UserAddress), common.Address{}, 500)}})
			}
		}
		for range 4 {
			books.day()
		}
		n.Calls = 0
		assert.Equal(t, waits, books.day().Counts[rampbooks.WaitsWithEvent])
		return n.Calls
	}
	none := calls(t, 0, 0)
	assert.Equal(t, none, calls(t, 0, 1000))
	assert.LessOrEqual(t, calls(t, 200, 0), none+200+3)
}

// The log says it every day, too: first as an error, and then as information.
func TestTheBooksLogWhatWaitsUntilItHasEnded(t *testing.T) {
	books, store, n := newRegular(t)
	o := rig.OrderOf(ramp.Burn, 5, firstDay.Add(time.Hour))
	store.Keep(t, o)
	n.Send(firstDay.Add(65*time.Minute), rig.Tx{
		Transfers: []ramp.Transfer{rig.Moved(rig.Player, common.Address{}, 500)}})
	books.day()
	ctx, cancel := context.WithCancel(t.Context())
	var kept []rampbooks.FindingKind
	books.orders.KeepBooks(ctx, rampbooks.PositionFile(books.position),
		func(_ context.Context, b *rampbooks.Reconciliation) error {
			kept = kindsOf(b)
			cancel()
			return nil
		})
	assert.Equal(t, []rampbooks.FindingKind{rampbooks.WaitsWithEvent}, kept, "five days later")
}
