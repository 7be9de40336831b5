package rampbooks_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
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
	"github.com/token-ramp/ramp-go/support"
)

// A person took back 500 of a mint that was given back and minted.
func TestADecisionEndsAFindingAndIsARow(t *testing.T) {
	_, store, n := rig.NewOfficeOnNode(t, 1000*time.Hour, rig.Paid)
	clock := rig.Later()
	orders, journal := rig.WithJournal(t, store, n, &clock)
	order := store.AbandonedAndMinted(t, n, rig.HoursAgo(100))
	month := func() *rampbooks.Reconciliation {
		decided := clock
		defer func() { clock = decided }()
		clock = rig.Later()
		return must.Get(orders.Reconcile(t.Context(), rig.HoursAgo(500), time.Time{}))(t)
	}
	before := month()
	require.Equal(t, []rampbooks.FindingKind{rampbooks.EndedOtherwise}, kindsOf(before))
	clock = rig.HoursAgo(2)
	decide := []string{"-finding", "ended_otherwise", "-who", "bob", "-reason", "case 2: taken back"}
	must.Get(rig.RunCommand(t, orders, "decide", append(decide, "-moved", "item_gold=-500", order.UUID.String())...))(t)

	books := month()
	assert.Empty(t, books.Findings)
	assert.Zero(t, books.Counts[rampbooks.EndedOtherwise])
	require.Len(t, books.Decided, 1)
	assert.Equal(t, "case 2: taken back", books.Decided[0].Decided.Reason)
	assert.Equal(t, before.Totals, books.Totals, "what the game did is what it did")
	var printed strings.Builder
	require.NoError(t, books.WriteTotalsCSV(&printed, rampbooks.DecimalPoint))
	assert.Contains(t, printed.String(),
		`"decisions","gold","`+rig.Token.Hex()+`","mint","items_decided","item_gold",,-500,,,`)
	assert.Contains(t, books.Text(), "\n  decided at 2026-11-20T10:00:00Z by bob: case 2: taken back (entry ")
	_, err := rig.RunCommand(t, orders, "reconcile", "-from", "2026-11-01")
	assert.NoError(t, err)

	// A month in which the decision was not made has no row of it, and the finding is ended there, too.
	found := must.Get(orders.Reconcile(t.Context(), rig.HoursAgo(500), rig.HoursAgo(10)))(t)
	assert.Empty(t, found.Decisions)
	assert.Empty(t, found.Findings)

	// Nobody decides twice, and a reversal is an entry.
	_, err = rig.RunCommand(t, orders, "decide", append(decide, order.UUID.String())...)
	assert.ErrorIs(t, err, rampbooks.ErrDecided)
	id := journal.Stored[0].ID
	reverse := []string{"-who", "carol", "-reason", "case 3: it was another player's", "-reverse", id.String()}
	must.Get(rig.RunCommand(t, orders, "decide", reverse...))(t)
	assert.Equal(t, []rampbooks.FindingKind{rampbooks.EndedOtherwise}, kindsOf(month()))
	assert.Equal(t, map[string]rampbooks.Amount{"item_gold": {Amount: ramp.NewAmount(500)}}, journal.Stored[1].Moved)
	_, err = rig.RunCommand(t, orders, "decide", reverse...)
	assert.ErrorContains(t, err, "has been reversed before")
	must.Get(rig.RunCommand(t, orders, "decide", append(decide, order.UUID.String())...))(t)
	assert.Empty(t, month().Findings)
	assert.Len(t, month().Decisions, 3)
	listed := must.Get(rig.RunCommand(t, orders, "entries"))(t)
	assert.Equal(t, 4, strings.Count(listed, "\n"))
	assert.Contains(t, listed, "bob  ")
	assert.Contains(t, listed, "-500 item_gold")
	var read rampbooks.Reconciliation
	require.NoError(t, json.Unmarshal(must.Get(json.Marshal(month()))(t), &read))
	assert.Equal(t, month().Text(), read.Text())
}

// A finding without an order is decided by its transaction.
func TestADecisionAboutATransaction(t *testing.T) {
	_, store, n := rig.NewOfficeOnNode(t, 1000*time.Hour, rig.Paid)
	clock := rig.Later()
	orders, _ := rig.WithJournal(t, store, n, &clock)
	burn := rig.Tx{Transfers: []ramp.Transfer{rig.Moved(rig.Player, common.Address{}, 1)}}
	own, other := n.Send(rig.HoursAgo(50), burn), n.Send(rig.HoursAgo(40), burn)
	why := []string{"-finding", "event_without_order", "-who", "bob", "-reason", "a holder's own burn"}
	must.Get(rig.RunCommand(t, orders, "decide", append(why, "-tx", own.Hex())...))(t)
	books := must.Get(orders.Reconcile(t.Context(), rig.HoursAgo(100), rig.Now))(t)
	require.Len(t, books.Findings, 1)
	assert.Equal(t, other, books.Findings[0].Events[0].TxHash)
	for want, args := range map[string][]string{
		"Entry.Finding must be a kind of finding": {"-who", "a", "-reason", "b", "-tx", own.Hex()},
		"Entry.Who is required":                   append(why[:2:2], "-tx", own.Hex()),
		"unknown order":                           append(why[:6:6], uuid.NewString()),
		"is no decision":                          {"-who", "a", "-reason", "b", "-reverse", uuid.NewString()},
		"must be an item, = and an amount":        {"-moved", "item_gold"},
		"item_gold has an amount before":          {"-moved", "item_gold=1", "-moved", "item_gold=2"},
	} {
		_, err := rig.RunCommand(t, orders, "decide", args...)
		assert.ErrorContains(t, err, want)
	}
}

// Two orders and two events fit each other. A person says which transaction is that of one order, and the
// other two are then clear, also after the player was erased, and not after the decision was reversed.
func TestADecisionTellsAmbiguousOrdersApart(t *testing.T) {
	_, store, n := rig.NewOfficeOnNode(t, 1000*time.Hour, rig.Paid)
	clock := rig.Later()
	orders, journal := rig.WithJournal(t, store, n, &clock)
	var all []ramp.Order
	for hour := range 2 {
		at := rig.HoursAgo(300 - hour)
		order := rig.Ended(rig.OrderOf(ramp.Mint, 5, at), ramp.OrderAbandoned, common.Hash{}, at.Add(20*time.Hour))
		order.TxHash, order.Reason = "", "alice: case 1"
		n.Send(at.Add(10*time.Hour), rig.Tx{Transfers: []ramp.Transfer{rig.Moved(common.Address{}, rig.Player, 490)}})
		store.Keep(t, order)
		all = append(all, order)
	}
	first := all[0]
	month := func() (matches []string) {
		for _, f := range must.Get(orders.Reconcile(t.Context(), rig.HoursAgo(500), rig.Now))(t).Findings {
			matches = append(matches, string(f.Kind))
			for i := range f.Events {
				match := fmt.Sprint(f.Orders[i].UUID == first.UUID, " ", f.Events[i].Time.Format("15"))
				matches = append(matches, match)
			}
		}
		return matches
	}
	ambiguous := month()
	require.Equal(t, "ambiguous", ambiguous[0])
	events := must.Get(orders.Reconcile(t.Context(), rig.HoursAgo(500), rig.Now))(t).Findings[0].Events
	why := []string{"-who", "bob", "-reason", "the log of the service"}
	pair := append(why, "-finding", "ambiguous", "-tx", events[1].TxHash.Hex(), first.UUID.String())
	must.Get(rig.RunCommand(t, orders, "decide", pair...))(t)
	one, two := fmt.Sprint("true ", events[1].Time.Format("15")), fmt.Sprint("false ", events[0].Time.Format("15"))
	apart := []string{"ended_otherwise", two, "ended_otherwise", one}
	assert.Equal(t, apart, month())

	must.Get(rig.RunCommand(t, orders, "decide", append(why, "-reverse", journal.Stored[0].ID.String())...))(t)
	assert.Equal(t, ambiguous, month())
	must.Get(rig.RunCommand(t, orders, "decide", pair...))(t)
	said := support.Decision{Who: "dora", Reason: "case 4"}
	assert.Equal(t, 2, must.Get(orders.EraseSession(t.Context(), "session-1", rig.HoursAgo(7*24), said))(t))
	assert.Equal(t, apart, month())
}

// Two persons decide at the same moment.
func TestOneOfTwoDecisionsIsStored(t *testing.T) {
	_, store, n := rig.NewOfficeOnNode(t, 1000*time.Hour, rig.Paid)
	clock := rig.Later()
	orders, journal := rig.WithJournal(t, store, n, &clock)
	order := store.AbandonedAndMinted(t, n, rig.HoursAgo(100))
	var done sync.WaitGroup
	for range 8 {
		done.Go(func() {
			e := rampbooks.Entry{Who: "a", Reason: "b", Finding: rampbooks.EndedOtherwise, Order: order.UUID}
			_, _ = orders.Decide(t.Context(), e)
		})
	}
	done.Wait()
	assert.Len(t, journal.Stored, 1)
}

// One transaction minted what two players had been given back. One of them is erased, and then the other one: each
// keeps its own event, which is of as many tokens as the other.
func TestAnErasedPlayerTakesNoEventOfAnother(t *testing.T) {
	users := []common.Address{rig.Player, rig.Friend}
	for first, user := range users {
		_, store, n := rig.NewOfficeOnNode(t, 1000*time.Hour, rig.Paid)
		clock, at := rig.Later(), rig.HoursAgo(300)
		orders, _ := rig.WithJournal(t, store, n, &clock)
		of := map[string]common.Address{}
		for _, user := range users {
			o := rig.Ended(rig.OrderOf(ramp.Mint, 5, at), ramp.OrderAbandoned, common.Hash{}, at.Add(40*time.Hour))
			o.UserAddress, o.SessionID, o.TxHash, o.Reason = user.Hex(), user.Hex(), "", "alice: case 1"
			of[o.UUID.String()] = user
			store.Keep(t, o)
		}
		n.Send(at.Add(10*time.Hour), rig.Tx{Transfers: []ramp.Transfer{
			rig.Moved(common.Address{}, user, 490), rig.Moved(common.Address{}, users[1-first], 490)}})
		for _, erased := range append([]common.Address{{}}, users...) {
			must.Get(orders.EraseSession(t.Context(), erased.Hex(), rig.HoursAgo(7*24),
				support.Decision{Who: "dora", Reason: "case 4"}))(t)
			for _, hours := range []int{500, 270} { // the transaction is 290 hours old
				found := map[string]common.Address{}
				for _, f := range must.Get(orders.Reconcile(t.Context(), rig.HoursAgo(hours), rig.Now))(t).Findings {
					require.Equal(t, rampbooks.EndedOtherwise, f.Kind)
					require.Len(t, f.Events, 1)
					found[f.Orders[0].UUID.String()] = f.Events[0].User
				}
				if erased != users[1] {
					assert.Equal(t, of, found)
				}
				assert.Len(t, found, 2)
			}
		}
	}
}
