package support_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/support"
)

// regular are the books of each day, with a position.
type regular struct {
	t        *testing.T
	orders   *backoffice
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
	printed, _ := command(r.t, r.orders, "reconcile", args...) // fails if there are findings
	books := new(rampbooks.Reconciliation)
	require.NoError(r.t, json.Unmarshal([]byte(printed), books))
	assert.Equal(r.t, r.end, books.To)
	return books
}

// change changes a row by hand.
func (l *ledger) change(id uuid.UUID, change func(*ramp.Order)) {
	o := l.orders[id]
	change(&o)
	l.orders[id] = o
}

// firstDay is when the regular books begin.
var firstDay = now.Add(-6 * 24 * time.Hour)

// newRegular returns the books of six days, of a store that notes refusals.
func newRegular(t *testing.T) (*regular, *noting, *node) {
	proof := &rampproof.Config{AnyFailure: true}
	_, store, n := newOrders(t, 8*24*time.Hour, proof)
	noted := &noting{ledger: store, refused: map[uuid.UUID]ramp.Refusal{}}
	orders := ramp.Must(newBackoffice(backofficeConfig{Store: noted, Proof: proofOn(n.rpc(t), proof),
		Products: rampbooks.Always(product), Now: func() time.Time { return now }, Logger: quiet}))
	return &regular{t, orders, filepath.Join(t.TempDir(), "position"), firstDay}, noted, n
}

// Whatever the books have found on the chain for an order that waits, those of every day find again
// until the order has ended. What has no event is found once, and counted.
func TestEveryDaysBooksFindWhatWaitsWithAnEvent(t *testing.T) {
	at := func(minutes int) time.Time { return firstDay.Add(time.Duration(minutes) * time.Minute) }
	burned := sentTx{transfers: []ramp.Transfer{moved(player, common.Address{}, 500)}}
	minted := sentTx{transfers: []ramp.Transfer{moved(common.Address{}, player, 490)}}
	type planter = func(t *testing.T, store *ledger, n *node) (waits ramp.Order, own common.Hash)
	for name, c := range map[string]struct {
		plant planter
		every rampbooks.FindingKind // found every day, or "" for only on the first
	}{
		"a burn whose result is refused": {func(t *testing.T, store *ledger, n *node) (ramp.Order, common.Hash) {
			o := orderOf(ramp.Burn, 5, at(60))
			store.keep(t, o)
			return o, n.send(at(65), burned)
		}, rampbooks.WaitsWithEvent},
		"a mint whose result never comes": {func(t *testing.T, store *ledger, n *node) (ramp.Order, common.Hash) {
			o := orderOf(ramp.Mint, 5, at(60))
			store.keep(t, o)
			return o, n.send(at(65), minted)
		}, rampbooks.WaitsWithEvent},
		"two burns and one event": {func(t *testing.T, store *ledger, n *node) (ramp.Order, common.Hash) {
			o, other := orderOf(ramp.Burn, 5, at(60)), orderOf(ramp.Burn, 5, at(61))
			hash := n.send(at(65), burned)
			store.keep(t, o, ended(other, ramp.OrderAbandoned, common.Hash{}, at(62)))
			store.change(other.UUID, func(o *ramp.Order) { o.TxHash = "" })
			return o, hash
		}, rampbooks.Ambiguous},
		"an event that ended another order": {func(t *testing.T, store *ledger, n *node) (ramp.Order, common.Hash) {
			o, other := orderOf(ramp.Burn, 5, at(60)), orderOf(ramp.Burn, 7, at(61))
			hash := n.send(at(65), burned)
			store.keep(t, o, ended(other, ramp.OrderSucceeded, hash, at(66)))
			return o, common.Hash{}
		}, rampbooks.Differs},
		"a clock that was ahead": {func(t *testing.T, store *ledger, n *node) (ramp.Order, common.Hash) {
			o := orderOf(ramp.Mint, 5, at(120))
			store.keep(t, o)
			return o, n.send(at(60), minted)
		}, rampbooks.EventWithoutOrder},
		"a burn that nobody sent": {func(t *testing.T, store *ledger, _ *node) (ramp.Order, common.Hash) {
			o := orderOf(ramp.Burn, 5, at(60))
			store.keep(t, o)
			return o, common.Hash{}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			books, store, n := newRegular(t)
			waits, own := c.plant(t, store.ledger, n)
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
			store.change(waits.UUID, func(o *ramp.Order) {
				if *o = ended(*o, ramp.OrderSucceeded, own, books.end); own == (common.Hash{}) {
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
	o := orderOf(ramp.Burn, 5, firstDay.Add(time.Hour))
	store.keep(t, o)
	hash := n.send(firstDay.Add(65*time.Minute), sentTx{from: payer, to: vault,
		transfers: []ramp.Transfer{moved(player, common.Address{}, 500)}})
	for range 3 {
		assert.Equal(t, []rampbooks.FindingKind{rampbooks.WaitsWithEvent}, kindsOf(books.day()))
	}
	d := support.Decision{Who: "alice", Reason: "the purse has room", AgainstEvidence: true}
	ramp.Must(books.orders.Finish(t.Context(), o.UUID, hash, d))
	assert.Empty(t, kindsOf(books.day()))
}

// A node that has forgotten the transaction hides nothing, and the books of another one have it.
func TestANodeThatHasForgottenATransactionIsNamed(t *testing.T) {
	books, store, n := newRegular(t)
	o := orderOf(ramp.Mint, 5, firstDay.Add(time.Hour))
	store.keep(t, o)
	hash := n.send(firstDay.Add(65*time.Minute), sentTx{
		transfers: []ramp.Transfer{moved(common.Address{}, player, 490)}})
	books.day()
	n.hides = func(tx *sentTx) bool { return tx.hash == hash }
	found := books.day()
	require.Equal(t, []rampbooks.FindingKind{rampbooks.WaitsWithEvent}, kindsOf(found))
	said := "earlier books found transaction %s, which this node does not know: ask another one"
	assert.Equal(t, fmt.Sprintf(said, hash), found.Findings[0].Detail)
	n.hides = nil
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
			o := orderOf(ramp.Burn, 5, firstDay.Add(time.Hour))
			user := common.Address{1}.Bytes()
			user[18], user[19] = byte(i>>8), byte(i)
			o.UserAddress = common.BytesToAddress(user).Hex()
			store.keep(t, o)
			if i < waits {
				n.send(firstDay.Add(65*time.Minute), sentTx{transfers: []ramp.Transfer{
					moved(common.HexToAddress(o.UserAddress), common.Address{}, 500)}})
			}
		}
		for range 4 {
			books.day()
		}
		n.calls = 0
		assert.Equal(t, waits, books.day().Counts[rampbooks.WaitsWithEvent])
		return n.calls
	}
	none := calls(t, 0, 0)
	assert.Equal(t, none, calls(t, 0, 1000))
	assert.LessOrEqual(t, calls(t, 200, 0), none+200+3)
}

// The log says it every day, too: first as an error, and then as information.
func TestTheBooksLogWhatWaitsUntilItHasEnded(t *testing.T) {
	books, store, n := newRegular(t)
	o := orderOf(ramp.Burn, 5, firstDay.Add(time.Hour))
	store.keep(t, o)
	n.send(firstDay.Add(65*time.Minute), sentTx{
		transfers: []ramp.Transfer{moved(player, common.Address{}, 500)}})
	books.day()
	ctx, cancel := context.WithCancel(t.Context())
	var kept []rampbooks.FindingKind
	books.orders.KeepBooks(ctx, books.position, func(_ context.Context, b *rampbooks.Reconciliation) error {
		kept = kindsOf(b)
		cancel()
		return nil
	})
	assert.Equal(t, []rampbooks.FindingKind{rampbooks.WaitsWithEvent}, kept, "five days later")
}

// An order that Apply refuses keeps no other one from being ended, and is named.
func TestFinishFittingGoesOnAfterARefusal(t *testing.T) {
	_, store, n := newOrders(t, 96*time.Hour, paid)
	at := now.Add(-40 * time.Hour)
	full, other := orderOf(ramp.Burn, 5, at), orderOf(ramp.Burn, 3, at)
	other.UserAddress, other.SessionID = friend.Hex(), "session-2"
	right := orderOf(ramp.Burn, 1, at.Add(-time.Hour))
	right.UserAddress = stranger.Hex()
	burns := func(user common.Address, hundredths int64) common.Hash {
		return n.send(at.Add(time.Minute), sentTx{from: user, payer: payer, to: vault,
			transfers: []ramp.Transfer{moved(user, common.Address{}, hundredths)}})
	}
	burns(player, 500)
	burns(friend, 300)
	store.keep(t, full, other, ended(right, ramp.OrderSucceeded, burns(stranger, 100), at.Add(2*time.Minute)))
	store.Store.(*ramp.MemoryStore).Apply = func(_ context.Context, step ramp.Step) error {
		if step.Order.UUID == full.UUID {
			return errors.New("the purse is full")
		}
		return nil
	}
	owns := func(context.Context, string, common.Address) (bool, error) { return true, nil }
	orders := ramp.Must(newBackoffice(backofficeConfig{Store: store, Proof: proofOn(n.rpc(t), paid), OwnsWallet: owns,
		Products: rampbooks.Always(product), Now: func() time.Time { return now }, Logger: quiet}))
	books := ramp.Must(orders.Reconcile(t.Context(), now.Add(-72*time.Hour), time.Time{}))
	require.Equal(t, 2, books.Fitting, "%v", books.Findings)
	steps, err := orders.FinishFitting(t.Context(), books, alice)
	require.ErrorContains(t, err, "order "+full.UUID.String()+" was not ended")
	require.ErrorContains(t, err, "the purse is full")
	require.Len(t, steps, 1)
	assert.Equal(t, other.UUID, steps[0].Order.UUID)
}
