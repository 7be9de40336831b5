package support_test

import (
	"context"
	"encoding/json"
	"errors"
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
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/support"
)

// memoryJournal is a journal in memory.
type memoryJournal struct {
	mu      sync.Mutex
	entries []rampbooks.Entry
}

func (j *memoryJournal) Add(_ context.Context, e rampbooks.Entry) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, other := range j.entries {
		if other.ID == e.ID {
			return errors.New("there is such an entry")
		}
	}
	j.entries = append(j.entries, e)
	return nil
}

func (j *memoryJournal) Entries(_ context.Context, since time.Time) (list []rampbooks.Entry, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.entries {
		if !e.At.Before(since) {
			list = append(list, e)
		}
	}
	return list, nil
}

// EraseSession is that of a rampsql.Store.
func (l *ledger) EraseSession(_ context.Context, session string, before time.Time) (int, error) {
	return l.erase(session, before), nil
}

// withJournal returns the orders of a store with a journal, whose clock a test sets.
func withJournal(t *testing.T, store *ledger, n *node, clock *time.Time) (*backoffice, *memoryJournal) {
	t.Helper()
	journal := new(memoryJournal)
	return ramp.Must(newBackoffice(backofficeConfig{Store: store, Journal: journal, Logger: quiet,
		Proof: proofOn(n.rpc(t), &rampproof.Config{AnyFailure: true}), Products: rampbooks.Always(product),
		Now: func() time.Time { return *clock }})), journal
}

// abandonedAndMinted keeps a mint that was given back, and minted later.
func (l *ledger) abandonedAndMinted(t *testing.T, n *node, at time.Time) ramp.Order {
	t.Helper()
	order := orderOf(ramp.Mint, 5, at)
	order.State, order.FinishedAt, order.Reason = ramp.OrderAbandoned, at.Add(20*time.Hour), "alice: case 1"
	n.send(at.Add(30*time.Hour), sentTx{transfers: []ramp.Transfer{moved(common.Address{}, player, 490)}})
	l.keep(t, order)
	return order
}

// A person took back 500 of a mint that was given back and minted.
func TestADecisionEndsAFindingAndIsARow(t *testing.T) {
	_, store, n := newOrders(t, 1000*time.Hour, paid)
	clock := now
	orders, journal := withJournal(t, store, n, &clock)
	order := store.abandonedAndMinted(t, n, hoursAgo(100))
	month := func() *rampbooks.Reconciliation {
		return ramp.Must(orders.Reconcile(t.Context(), hoursAgo(500), time.Time{}))
	}
	before := month()
	require.Equal(t, []rampbooks.FindingKind{rampbooks.EndedOtherwise}, kindsOf(before))
	clock = hoursAgo(2)
	decide := []string{"-finding", "ended_otherwise", "-who", "bob", "-reason", "case 2: taken back"}
	ramp.Must(command(t, orders, "decide", append(decide, "-moved", "item_gold=-500", order.UUID.String())...))

	books := month()
	assert.Empty(t, books.Findings)
	assert.Zero(t, books.Counts[rampbooks.EndedOtherwise])
	require.Len(t, books.Decided, 1)
	assert.Equal(t, "case 2: taken back", books.Decided[0].Decided.Reason)
	assert.Equal(t, before.Totals, books.Totals, "what the game did is what it did")
	var printed strings.Builder
	require.NoError(t, books.WriteTotalsCSV(&printed, rampbooks.DecimalPoint))
	assert.Contains(t, printed.String(),
		`"decisions","gold","`+token.Hex()+`","mint","items_decided","item_gold",,-500,,,`)
	assert.Contains(t, books.Text(), "\n  decided at 2026-11-20T10:00:00Z by bob: case 2: taken back (entry ")
	_, err := command(t, orders, "reconcile", "-from", "2026-11-01")
	assert.NoError(t, err)

	// A month in which the decision was not made has no row of it, and the finding is ended there, too.
	found := ramp.Must(orders.Reconcile(t.Context(), hoursAgo(500), hoursAgo(10)))
	assert.Empty(t, found.Decisions)
	assert.Empty(t, found.Findings)

	// Nobody decides twice, and a reversal is an entry.
	_, err = command(t, orders, "decide", append(decide, order.UUID.String())...)
	assert.ErrorIs(t, err, rampbooks.ErrDecided)
	id := journal.entries[0].ID
	reverse := []string{"-who", "carol", "-reason", "case 3: it was another player's", "-reverse", id.String()}
	ramp.Must(command(t, orders, "decide", reverse...))
	assert.Equal(t, []rampbooks.FindingKind{rampbooks.EndedOtherwise}, kindsOf(month()))
	assert.Equal(t, map[string]rampbooks.Amount{"item_gold": {Amount: ramp.NewAmount(500)}}, journal.entries[1].Moved)
	_, err = command(t, orders, "decide", reverse...)
	assert.ErrorContains(t, err, "has been reversed before")
	ramp.Must(command(t, orders, "decide", append(decide, order.UUID.String())...))
	assert.Empty(t, month().Findings)
	assert.Len(t, month().Decisions, 3)
	listed := ramp.Must(command(t, orders, "entries"))
	assert.Equal(t, 4, strings.Count(listed, "\n"))
	assert.Contains(t, listed, "bob  ")
	assert.Contains(t, listed, "-500 item_gold")
	var read rampbooks.Reconciliation
	require.NoError(t, json.Unmarshal(ramp.Must(json.Marshal(month())), &read))
	assert.Equal(t, month().Text(), read.Text())
}

// A finding without an order is decided by its transaction.
func TestADecisionAboutATransaction(t *testing.T) {
	_, store, n := newOrders(t, 1000*time.Hour, paid)
	clock := now
	orders, _ := withJournal(t, store, n, &clock)
	burn := sentTx{transfers: []ramp.Transfer{moved(player, common.Address{}, 1)}}
	own, other := n.send(hoursAgo(50), burn), n.send(hoursAgo(40), burn)
	why := []string{"-finding", "event_without_order", "-who", "bob", "-reason", "a holder's own burn"}
	ramp.Must(command(t, orders, "decide", append(why, "-tx", own.Hex())...))
	books := ramp.Must(orders.Reconcile(t.Context(), hoursAgo(100), now))
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
		_, err := command(t, orders, "decide", args...)
		assert.ErrorContains(t, err, want)
	}
}

// Two orders and two events fit each other. A person says which transaction is that of one order, and the
// other two are then clear, also after the player was erased, and not after the decision was reversed.
func TestADecisionTellsAmbiguousOrdersApart(t *testing.T) {
	_, store, n := newOrders(t, 1000*time.Hour, paid)
	clock := now
	orders, journal := withJournal(t, store, n, &clock)
	var all []ramp.Order
	for hour := range 2 {
		at := hoursAgo(300 - hour)
		order := ended(orderOf(ramp.Mint, 5, at), ramp.OrderAbandoned, common.Hash{}, at.Add(20*time.Hour))
		order.TxHash, order.Reason = "", "alice: case 1"
		n.send(at.Add(10*time.Hour), sentTx{transfers: []ramp.Transfer{moved(common.Address{}, player, 490)}})
		store.keep(t, order)
		all = append(all, order)
	}
	first := all[0]
	month := func() (matches []string) {
		for _, f := range ramp.Must(orders.Reconcile(t.Context(), hoursAgo(500), now)).Findings {
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
	events := ramp.Must(orders.Reconcile(t.Context(), hoursAgo(500), now)).Findings[0].Events
	why := []string{"-who", "bob", "-reason", "the log of the service"}
	pair := append(why, "-finding", "ambiguous", "-tx", events[1].TxHash.Hex(), first.UUID.String())
	ramp.Must(command(t, orders, "decide", pair...))
	one, two := fmt.Sprint("true ", events[1].Time.Format("15")), fmt.Sprint("false ", events[0].Time.Format("15"))
	apart := []string{"ended_otherwise", two, "ended_otherwise", one}
	assert.Equal(t, apart, month())

	ramp.Must(command(t, orders, "decide", append(why, "-reverse", journal.entries[0].ID.String())...))
	assert.Equal(t, ambiguous, month())
	ramp.Must(command(t, orders, "decide", pair...))
	said := support.Decision{Who: "dora", Reason: "case 4"}
	assert.Equal(t, 2, ramp.Must(orders.EraseSession(t.Context(), "session-1", hoursAgo(7*24), said)))
	assert.Equal(t, apart, month())
}

// Without a node, an order without a transaction would lose its event, unless a person accepts that.
func TestAPlayerIsErasedWithoutANodeOnlyIfAPersonSaysSo(t *testing.T) {
	why := support.Decision{Who: "dora", Reason: "case 4"}
	blind := why
	blind.WithoutEvidence = true
	for name, test := range map[string]struct {
		play    func(t *testing.T, store *ledger, n *node)
		refused bool
	}{
		"right orders": {play: func(t *testing.T, store *ledger, n *node) {
			store.mintOn(t, n, token, hoursAgo(300), 490)
		}},
		"a failed mint": {refused: true, play: func(t *testing.T, store *ledger, n *node) {
			order := store.mintOn(t, n, token, hoursAgo(300), 490)
			store.keep(t, ended(order, ramp.OrderFailed, common.Hash{9}, order.FinishedAt))
		}},
		"an abandoned mint": {refused: true, play: func(t *testing.T, store *ledger, n *node) {
			store.abandonedAndMinted(t, n, hoursAgo(300))
		}},
	} {
		_, store, n := newOrders(t, 1000*time.Hour, paid)
		test.play(t, store, n)
		orders := ramp.Must(newBackoffice(backofficeConfig{Store: store, Logger: quiet,
			Now: func() time.Time { return now }}))
		erased, err := orders.EraseSession(t.Context(), "session-1", hoursAgo(7*24), why)
		if test.refused {
			var invalid *ramp.InvalidError
			require.ErrorAs(t, err, &invalid, name)
			assert.ErrorContains(t, err, "Config.Books")
			assert.Equal(t, 0, erased, name)
			erased, err = orders.EraseSession(t.Context(), "session-1", hoursAgo(7*24), blind)
		}
		require.NoError(t, err, name)
		assert.Equal(t, 1, erased, name)
	}
}

// Two persons decide at the same moment.
func TestOneOfTwoDecisionsIsStored(t *testing.T) {
	_, store, n := newOrders(t, 1000*time.Hour, paid)
	clock := now
	orders, journal := withJournal(t, store, n, &clock)
	order := store.abandonedAndMinted(t, n, hoursAgo(100))
	var done sync.WaitGroup
	for range 8 {
		done.Go(func() {
			e := rampbooks.Entry{Who: "a", Reason: "b", Finding: rampbooks.EndedOtherwise, Order: order.UUID}
			_, _ = orders.Decide(t.Context(), e)
		})
	}
	done.Wait()
	assert.Len(t, journal.entries, 1)
}

// The books are the same before and after a player is erased.
func TestAnErasedPlayerChangesNothing(t *testing.T) {
	for name, play := range map[string]func(t *testing.T, store *ledger, n *node){
		"a result without tx_hash": func(t *testing.T, store *ledger, n *node) {
			order := store.mintOn(t, n, token, hoursAgo(300), 490)
			order.TxHash = ""
			store.keep(t, order)
		},
		"an abandoned mint that was minted": func(t *testing.T, store *ledger, n *node) {
			store.abandonedAndMinted(t, n, hoursAgo(300))
		},
		"a failed mint that was minted by another transaction": func(t *testing.T, store *ledger, n *node) {
			order := store.abandonedAndMinted(t, n, hoursAgo(300))
			store.keep(t, ended(order, ramp.OrderFailed, common.Hash{9}, order.FinishedAt))
		},
		"right orders": func(t *testing.T, store *ledger, n *node) {
			store.mintOn(t, n, token, hoursAgo(300), 490)
			store.mintOn(t, n, token, hoursAgo(290), 490)
		},
	} {
		_, store, n := newOrders(t, 1000*time.Hour, paid)
		clock := now
		orders, journal := withJournal(t, store, n, &clock)
		play(t, store, n)
		figures := func() (all []string) {
			for _, cut := range [][2]int{{500, 0}, {500, 299}, {299, 270}, {280, 250}} { // also between order and event
				books := ramp.Must(orders.Reconcile(t.Context(), hoursAgo(cut[0]), hoursAgo(cut[1])))
				books.Witnesses = 0             // the event is known to be the order's now
				for i := range books.Findings { // who it was
					f := &books.Findings[i]
					f.By = ""
					for i := range f.Orders {
						f.Orders[i].SessionID, f.Orders[i].UserAddress, f.Orders[i].TxHash = "", "", ""
					}
				}
				all = append(all, string(ramp.Must(json.Marshal(books))))
			}
			return all
		}
		before := figures()
		assert.Empty(t, journal.entries)
		why := support.Decision{Who: "dora", Reason: "case 4"}
		erased := ramp.Must(orders.EraseSession(t.Context(), "session-1", hoursAgo(7*24), why))
		assert.Len(t, store.orders, erased, name)
		for _, o := range store.orders {
			assert.Equal(t, "erased-1", o.UserAddress, name)
		}
		assert.Equal(t, before, figures(), name)
	}
}
