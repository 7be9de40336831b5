package support_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/rig"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/support"
)

// Without a node, an order without a transaction would lose its event, unless a person accepts that.
func TestAPlayerIsErasedWithoutANodeOnlyIfAPersonSaysSo(t *testing.T) {
	why := support.Decision{Who: "dora", Reason: "case 4"}
	blind := why
	blind.WithoutEvidence = true
	for name, test := range map[string]struct {
		play    func(t *testing.T, store *rig.Store, n *rig.Node)
		refused bool
	}{
		"right orders": {play: func(t *testing.T, store *rig.Store, n *rig.Node) {
			store.MintOn(t, n, rig.Token, rig.HoursAgo(300), 490)
		}},
		"a failed mint": {refused: true, play: func(t *testing.T, store *rig.Store, n *rig.Node) {
			order := store.MintOn(t, n, rig.Token, rig.HoursAgo(300), 490)
			store.Keep(t, rig.Ended(order, ramp.OrderFailed, common.Hash{9}, order.FinishedAt))
		}},
		"an abandoned mint": {refused: true, play: func(t *testing.T, store *rig.Store, n *rig.Node) {
			store.AbandonedAndMinted(t, n, rig.HoursAgo(300))
		}},
	} {
		_, store, n := rig.NewOfficeOnNode(t, 1000*time.Hour, rig.Paid)
		test.play(t, store, n)
		orders := must.Get(rig.NewOffice(rig.Config{Store: store, Logger: rig.Quiet,
			Now: rig.Later}))(t)
		erased, err := orders.EraseSession(t.Context(), "session-1", rig.HoursAgo(7*24), why)
		if test.refused {
			var invalid *ramp.InvalidError
			require.ErrorAs(t, err, &invalid, name)
			assert.ErrorContains(t, err, "Config.Books")
			assert.Equal(t, 0, erased, name)
			erased, err = orders.EraseSession(t.Context(), "session-1", rig.HoursAgo(7*24), blind)
		}
		require.NoError(t, err, name)
		assert.Equal(t, 1, erased, name)
	}
}

// The books are the same before and after a player is erased.
func TestAnErasedPlayerChangesNothing(t *testing.T) {
	for name, play := range map[string]func(t *testing.T, store *rig.Store, n *rig.Node){
		"a result without tx_hash": func(t *testing.T, store *rig.Store, n *rig.Node) {
			order := store.MintOn(t, n, rig.Token, rig.HoursAgo(300), 490)
			order.TxHash = ""
			store.Keep(t, order)
		},
		"an abandoned mint that was minted": func(t *testing.T, store *rig.Store, n *rig.Node) {
			store.AbandonedAndMinted(t, n, rig.HoursAgo(300))
		},
		"a failed mint that was minted by another transaction": func(t *testing.T, store *rig.Store, n *rig.Node) {
			order := store.AbandonedAndMinted(t, n, rig.HoursAgo(300))
			store.Keep(t, rig.Ended(order, ramp.OrderFailed, common.Hash{9}, order.FinishedAt))
		},
		"right orders": func(t *testing.T, store *rig.Store, n *rig.Node) {
			store.MintOn(t, n, rig.Token, rig.HoursAgo(300), 490)
			store.MintOn(t, n, rig.Token, rig.HoursAgo(290), 490)
		},
	} {
		_, store, n := rig.NewOfficeOnNode(t, 1000*time.Hour, rig.Paid)
		clock := rig.Later()
		orders, journal := rig.WithJournal(t, store, n, &clock)
		play(t, store, n)
		figures := func() (all []string) {
			for _, cut := range [][2]int{{500, 0}, {500, 299}, {299, 270}, {280, 250}} { // also between order and event
				books := must.Get(orders.Reconcile(t.Context(), rig.HoursAgo(cut[0]), rig.HoursAgo(cut[1])))(t)
				books.Witnesses = 0             // the event is known to be the order's now
				for i := range books.Findings { // who it was
					f := &books.Findings[i]
					f.By = ""
					for i := range f.Orders {
						f.Orders[i].SessionID, f.Orders[i].UserAddress, f.Orders[i].TxHash = "", "", ""
					}
				}
				all = append(all, string(must.Get(json.Marshal(books))(t)))
			}
			return all
		}
		before := figures()
		assert.Empty(t, journal.Stored)
		why := support.Decision{Who: "dora", Reason: "case 4"}
		erased := must.Get(orders.EraseSession(t.Context(), "session-1", rig.HoursAgo(7*24), why))(t)
		assert.Len(t, store.Orders, erased, name)
		for _, o := range store.Orders {
			assert.Equal(t, "erased-1", o.UserAddress, name)
		}
		assert.Equal(t, before, figures(), name)
	}
}

// Two people erase a player at the same moment. What the books need is kept once, and neither fails.
func TestTwoPeopleEraseAPlayerAtTheSameMoment(t *testing.T) {
	_, store, n := rig.NewOfficeOnNode(t, 1000*time.Hour, rig.Paid)
	clock := rig.Later()
	orders, journal := rig.WithJournal(t, store, n, &clock)
	abandoned := store.AbandonedAndMinted(t, n, rig.HoursAgo(300))
	erase := func(who string) (erased int) {
		return must.Get(orders.EraseSession(t.Context(), "session-1", rig.HoursAgo(7*24),
			support.Decision{Who: who, Reason: "case 4"}))(t)
	}
	second := 0
	journal.OnRead = func() { second = erase("emil") }
	first := erase("dora")
	assert.Equal(t, []int{0, 1}, []int{first, second})
	require.Len(t, journal.Stored, 1)
	assert.Equal(t, abandoned.UUID, journal.Stored[0].Order)
	books := must.Get(orders.Reconcile(t.Context(), rig.HoursAgo(500), time.Time{}))(t)
	require.Len(t, books.Findings, 1)
	assert.Equal(t, rampbooks.EndedOtherwise, books.Findings[0].Kind)
}

// books cannot keep matches.
type books struct {
	support.Books
	kept []ramp.Order // that KeepMatches was asked for
}

func (b *books) KeepMatches(_ context.Context, orders []ramp.Order, who, reason string) error {
	b.kept = append(b.kept, orders...)
	return errors.New(who + ": " + reason)
}

// What the books could not keep would be lost for ever.
func TestAPlayerIsErasedOnlyAfterTheBooksHaveKeptWhatTheyNeed(t *testing.T) {
	_, store, n := rig.NewOfficeOnNode(t, 1000*time.Hour, rig.Paid)
	store.MintOn(t, n, rig.Token, rig.HoursAgo(300), 490) // which says its transaction itself
	abandoned := store.AbandonedAndMinted(t, n, rig.HoursAgo(200))
	fake := new(books)
	orders := must.Get(support.New(support.Config{Store: store, Books: fake, Logger: rig.Quiet,
		Now: rig.Later}))(t)
	why := support.Decision{Who: "dora", Reason: "case 4"}
	erased, err := orders.EraseSession(t.Context(), "session-1", rig.HoursAgo(7*24), why)
	assert.ErrorContains(t, err, "ramp: erase a session: dora: case 4")
	assert.Zero(t, erased)
	require.Len(t, fake.kept, 1)
	assert.Equal(t, abandoned.UUID, fake.kept[0].UUID)
	assert.NotEqual(t, "erased-1", must.Get(store.Order(t.Context(), abandoned.UUID))(t).UserAddress)
}
