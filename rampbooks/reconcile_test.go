package rampbooks_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/evidence"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/internal/test/racedetector"
	"github.com/token-ramp/ramp-go/internal/test/rig"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/support"
)

func kindsOf(b *rampbooks.Reconciliation) (kinds []rampbooks.FindingKind) {
	for _, f := range b.Findings {
		kinds = append(kinds, f.Kind)
	}
	return kinds
}

func TestBooksThatCloseSayWhatWasMovedAndFindNothing(t *testing.T) {
	s := rig.NewShop(t)
	s.Place(t, s.Service.Mint, 4)
	s.Place(t, s.Service.Mint, 6, ramptest.WithoutFee())
	s.Place(t, s.Service.Mint, 5, ramptest.TransactionFails())
	s.Place(t, s.Service.Burn, 3)
	s.Place(t, s.Service.Burn, 2, ramptest.TransactionFails())
	s.Place(t, s.Service.Burn, 1, ramptest.ResultLate(11*time.Hour))
	s.Service.Advance(12 * time.Hour)

	books := s.Books(t, s.Begin, time.Time{})
	assert.Empty(t, books.Findings)
	amount := func(text string) rampbooks.Amount {
		a := must.Get(ramp.ParseAmount(text))(t)
		return rampbooks.Amount{Amount: a}
	}
	none := map[string]rampbooks.Amount{}
	amounts := func(gold string) map[string]rampbooks.Amount {
		return map[string]rampbooks.Amount{"item_gold": amount(gold)}
	}
	assert.Equal(t, []rampbooks.Total{
		{Product: "gold", Token: rig.Token, Decimals: 18, Direction: ramp.Mint, Succeeded: 2, Failed: 1,
			Taken: amounts("300"), GivenBack: amounts("100"), Granted: none, Settled: none,
			InFlightBefore: none, InFlight: none, Ordered: amount("10"), Moved: amount("9.8"), Fees: amount("0.2")},
		{Product: "gold", Token: rig.Token, Decimals: 18, Direction: ramp.Burn, Succeeded: 2, Failed: 1,
			Taken: none, GivenBack: none, Granted: amounts("200"), Settled: none,
			InFlightBefore: none, InFlight: none, Ordered: amount("4"), Moved: amount("4")},
	}, books.Totals)
	assert.Equal(t, []rampbooks.ChainTotal{
		// The fee is an event, too.
		{Token: rig.Token, Direction: ramp.Mint, Events: 4, Tokens: amount("10"), Decimals: 18},
		{Token: rig.Token, Direction: ramp.Burn, Events: 2, Tokens: amount("4"), Decimals: 18},
	}, books.Chain)
	assert.True(t, books.To.After(s.Service.Now().Add(-10*time.Minute)), "up to the final block")
	assert.Equal(t, books, s.Books(t, s.Begin, time.Time{}), "the same again")
}

// Each row of the table in docs/books.md is played, and exactly that is found, in
// each way to cut the time into periods.
func TestReconcileFindsExactlyWhatIsWrong(t *testing.T) {
	decided := support.Decision{
		Who: "alice", Reason: "case 30", AgainstEvidence: true, WithoutEvidence: true, Early: true,
	}
	for name, c := range map[string]struct {
		play   func(t *testing.T, s *rig.Shop) // after an order that is right
		want   rampbooks.FindingKind
		by     string
		detail string
	}{
		"somebody mints with the validator key": {func(t *testing.T, s *rig.Shop) {
			s.Place(t, s.Service.Mint, 2, ramptest.MintedByStranger())
		}, rampbooks.EventWithoutOrder, "", "nobody ordered this mint, or its order was deleted"},
		"a result is invented": {func(t *testing.T, s *rig.Shop) {
			o := s.Place(t, s.Service.Mint, 2, ramptest.TransactionFails(), ramptest.ResultNever())
			_ = s.Service.Deliver(t.Context(), o, ramptest.Succeeded)
		}, rampbooks.TransactionUndone, "", "its transaction failed"},
		"a failure is invented before the transaction is mined": {func(t *testing.T, s *rig.Shop) {
			o := s.Place(t, s.Service.Mint, 2, ramptest.StaysPending())
			forged := &ramptest.PlacedOrder{UUID: o.UUID, Session: o.Session, Network: o.Network, Request: o.Request,
				TxHash: o.TxHash}
			_ = s.Service.Deliver(t.Context(), forged, ramptest.Failed)
			s.Change(o.UUID, func(stored *ramp.Order) { stored.TxHash = o.TxHash.Hex() }) // the emulator made one up
			s.Service.Advance(20 * time.Hour)
			s.Begin = s.Service.Now().Add(-time.Minute)
			_ = s.Service.Deliver(t.Context(), o, ramptest.Succeeded)
		}, rampbooks.EndedOtherwise, rampbooks.ByTransaction,
			"the mint was given back, and its tokens were minted: paid twice"},
		"an abandoned mint succeeds later": {func(t *testing.T, s *rig.Shop) {
			o := s.Place(t, s.Service.Mint, 2, ramptest.StaysPending())
			s.Service.Advance(20 * time.Hour)
			must.Get(s.Abandon(t.Context(), o.UUID, decided))(t)
			s.Service.Advance(20 * time.Hour)
			_ = s.Service.Deliver(t.Context(), o, ramptest.Succeeded)
		}, rampbooks.EndedOtherwise, rampbooks.ByAmount,
			"the mint was given back, and its tokens were minted: paid twice"},
		"a mint is abandoned although it succeeded": {func(t *testing.T, s *rig.Shop) {
			o := s.Place(t, s.Service.Mint, 2, ramptest.ResultNever())
			s.Service.Advance(40 * time.Hour)
			must.Get(s.Abandon(t.Context(), o.UUID, decided))(t)
		}, rampbooks.EndedOtherwise, rampbooks.ByAmount,
			"the mint was given back, and its tokens were minted: paid twice"},
		"a mint that succeeded is given back after 40 hours": {func(t *testing.T, s *rig.Shop) {
			o := s.Place(t, s.Service.Mint, 2, ramptest.ResultNever())
			s.Service.Advance(40 * time.Hour)
			s.Begin = s.Service.Now().Add(-time.Minute)
			_ = s.Service.Deliver(t.Context(), o, ramptest.Failed)
		}, rampbooks.EndedOtherwise, rampbooks.ByTransaction,
			"the mint was given back, and its tokens were minted: paid twice"},
		"a mint that succeeded is given back after 40 hours by a transaction of nobody": {func(t *testing.T,
			s *rig.Shop) {
			o := s.Place(t, s.Service.Mint, 2, ramptest.ResultNever())
			s.Service.Advance(40 * time.Hour)
			s.Begin = s.Service.Now().Add(-time.Minute)
			s.Change(o.UUID, func(stored *ramp.Order) {
				stored.State, stored.TxHash, stored.FinishedAt = ramp.OrderFailed, common.Hash{7}.Hex(), s.Service.Now()
			})
		}, rampbooks.EndedOtherwise, rampbooks.ByAmount,
			"the mint was given back, and its tokens were minted: paid twice"},
		"a result has no transaction hash, beside a mint that was abandoned": {func(t *testing.T, s *rig.Shop) {
			abandoned, o := s.Place(t, s.Service.Mint, 2, ramptest.StaysPending()),
				s.Place(t, s.Service.Mint, 2, ramptest.StaysPending())
			s.Service.Advance(20 * time.Hour)
			must.Get(s.Abandon(t.Context(), abandoned.UUID, decided))(t)
			s.Change(o.UUID,
				func(stored *ramp.Order) { stored.State, stored.FinishedAt = ramp.OrderSucceeded, s.Service.Now() })
		}, rampbooks.OrderWithoutEvent, "", "its result had no transaction hash, and no event of its user fits"},
		"a transaction never comes": {func(t *testing.T, s *rig.Shop) {
			s.Place(t, s.Service.Mint, 2, ramptest.StaysPending())
			s.Service.Advance(13 * time.Hour)
		}, rampbooks.WaitsWithoutEvent, "", "no event of its user fits: nothing happened on the chain"},
		"an order names the zero address as its user": {func(t *testing.T, s *rig.Shop) {
			o := s.Place(t, s.Service.Mint, 2)
			s.Change(o.UUID, func(stored *ramp.Order) { stored.UserAddress = common.Address{}.Hex() })
		}, rampbooks.Differs, rampbooks.ByTransaction,
			"the transaction moved no token " + rig.Token.Hex() + " for the user of the order"},
		"an order is younger than its transaction": {func(t *testing.T, s *rig.Shop) {
			o := s.Place(t, s.Service.Burn, 2)
			s.Change(o.UUID, func(stored *ramp.Order) {
				stored.AcceptedAt, stored.FinishedAt = stored.AcceptedAt.Add(50*time.Minute),
					stored.FinishedAt.Add(50*time.Minute)
			})
		}, rampbooks.Differs, rampbooks.ByTransaction,
			"the transaction is 50m0s older than the order, unless " + evidence.ClocksDiffer},
		"two mints were given back by one transaction that failed": {func(t *testing.T, s *rig.Shop) {
			second, first := s.Place(t, s.Service.Mint, 2, ramptest.StaysPending()),
				s.Place(t, s.Service.Mint, 2, ramptest.TransactionFails())
			s.Change(second.UUID, func(stored *ramp.Order) {
				stored.State, stored.TxHash, stored.FinishedAt = ramp.OrderFailed,
					"0x"+strings.ToUpper(first.TxHash.Hex()[2:]), s.Service.Now()
			})
		}, rampbooks.SharedTransaction, rampbooks.ByTransaction, "its transaction has ended another order, too"},
		"an order ended by the transaction of one that ended long ago": {func(t *testing.T, s *rig.Shop) {
			second, first := s.Place(t, s.Service.Burn, 2, ramptest.StaysPending()), s.Place(t, s.Service.Burn, 2)
			s.Service.Advance(40 * time.Hour)
			s.Begin = s.Service.Now().Add(-time.Minute)
			s.Change(second.UUID, func(stored *ramp.Order) {
				stored.State, stored.TxHash, stored.FinishedAt = ramp.OrderSucceeded, first.TxHash.Hex(),
					s.Service.Now()
			})
		}, rampbooks.SharedTransaction, rampbooks.ByTransaction, "its transaction has ended another order, too"},
		"a mint was recorded as a burn": {func(t *testing.T, s *rig.Shop) {
			o := s.Place(t, s.Service.Mint, 2)
			s.Change(o.UUID, func(stored *ramp.Order) {
				stored.Direction, stored.Intent.From, stored.Intent.To = ramp.Burn, stored.Intent.To, stored.Intent.From
			})
		}, rampbooks.Differs, rampbooks.ByTransaction, "the order is a burn, and the transaction did the opposite"},
		"a row was damaged": {func(t *testing.T, s *rig.Shop) {
			o := s.Place(t, s.Service.Mint, 2)
			s.Change(o.UUID,
				func(stored *ramp.Order) { stored.Direction, stored.Intent, stored.Assets = "", ramp.Intent{}, nil })
		}, rampbooks.Differs, "", "the row is not a valid order: it was changed by hand"},
	} {
		t.Run(name, func(t *testing.T) {
			s := rig.NewShop(t)
			s.Place(t, s.Service.Mint, 2)
			c.play(t, s)
			s.Service.Advance(2 * time.Hour)
			s.Place(t, s.Service.Mint, 7)
			whole := s.Books(t, s.Begin, time.Time{})
			require.Equal(t, []rampbooks.FindingKind{c.want}, kindsOf(whole), "%v", whole.Findings)
			found := whole.Findings[0]
			assert.Equal(t, c.by, found.By)
			assert.Equal(t, c.detail, found.Detail)
			assert.Equal(t, 1, whole.Counts[c.want])

			// Later books add nothing, and count what waits.
			assert.Empty(t, s.Books(t, whole.To, time.Time{}).Findings)
		})
	}
}

// A thief with the HMAC key ended an order of their own by the transaction of a victim.
func TestAnOrderThatLostItsTransactionIsNamedWhereItWent(t *testing.T) {
	s := rig.NewShop(t)
	lost, thief := s.Place(t, s.Service.Mint, 2, ramptest.ResultNever()),
		s.Place(t, s.Service.Mint, 2, ramptest.StaysPending())
	s.Change(thief.UUID, func(stored *ramp.Order) {
		stored.State, stored.TxHash, stored.FinishedAt = ramp.OrderSucceeded, lost.TxHash.Hex(), s.Service.Now()
		stored.UserAddress = "0x00000000000000000000000000000000000000bB"
	})
	s.Service.Advance(time.Hour)
	first := s.Books(t, s.Begin, time.Time{})
	s.Service.Advance(12 * time.Hour)
	second := s.Books(t, first.To, time.Time{}) // the victim's order has now waited for 13 hours
	for _, books := range []*rampbooks.Reconciliation{first, second, s.Books(t, s.Begin, time.Time{})} {
		require.Equal(t, []rampbooks.FindingKind{rampbooks.Differs}, kindsOf(books), "%v", books.Findings)
		f := books.Findings[0]
		assert.Equal(t, []uuid.UUID{thief.UUID, lost.UUID}, []uuid.UUID{f.Orders[0].UUID, f.Orders[1].UUID})
		assert.Equal(t,
			"the transaction moved no token "+rig.Token.Hex()+" for the user of the order; it fits order "+
				lost.UUID.String()+", which is accepted", f.Detail)
	}
}

// Somebody with the validator key mints once more for a player whose order still waits.
// Whichever event comes first, one of them is found, in one period or the other.
func TestASecondMintBesideAWaitingOrderIsFound(t *testing.T) {
	orders, store, n := rig.NewOfficeOnNode(t, 48*time.Hour, &rampproof.Config{AnyFailure: true})
	order, mint := rig.OrderOf(ramp.Mint, 5, rig.Now.Add(-10*time.Hour)),
		rig.Tx{Transfers: []ramp.Transfer{rig.Moved(common.Address{}, rig.Player, 490)}}
	store.Keep(t, order)
	found := func(from, to time.Duration, open int) []rampbooks.FindingKind {
		books := must.Get(orders.Reconcile(t.Context(), rig.Now.Add(from), rig.Now.Add(to)))(t)
		assert.Equal(t, open, books.Open)
		return kindsOf(books)
	}
	n.Send(rig.Now.Add(-599*time.Minute), mint)
	assert.Empty(t, found(-11*time.Hour, -9*time.Hour, 1),
		"the forged one is alone at first: it may be that of the order")
	own := n.Send(rig.Now.Add(-7*time.Hour), mint)
	assert.Equal(t, []rampbooks.FindingKind{rampbooks.Ambiguous}, found(-11*time.Hour, -6*time.Hour, 0),
		"two events, one order")
	store.Keep(t, rig.Ended(order, ramp.OrderSucceeded, own, rig.Now.Add(-419*time.Minute)))
	assert.Equal(t, []rampbooks.FindingKind{rampbooks.EventWithoutOrder}, found(-8*time.Hour, -6*time.Hour, 0))
	assert.Empty(t, found(-2*time.Hour, 0, 0), "it was found before")
	assert.Empty(t, found(-11*time.Hour, -9*time.Hour, 1), "read again later, the first period is as it was")
}

// The books of the hour in which an order has waited for 13 hours name its event, which is of an
// earlier one, and those of the next hours only count it.
func TestAnOrderThatHasWaitedIsFoundOnce(t *testing.T) {
	orders, store, n := rig.NewOfficeOnNode(t, 48*time.Hour, &rampproof.Config{AnyFailure: true})
	store.Keep(t, rig.OrderOf(ramp.Burn, 5, rig.Now.Add(-15*time.Hour)))
	n.Send(rig.Now.Add(-899*time.Minute),
		rig.Tx{Transfers: []ramp.Transfer{rig.Moved(rig.Player, common.Address{}, 500)}})
	var found [][]rampbooks.FindingKind
	for hour := -4 * time.Hour; hour < 0; hour += time.Hour {
		found = append(found, kindsOf(must.Get(orders.Reconcile(t.Context(), rig.Now.Add(hour),
			rig.Now.Add(hour+time.Hour)))(t)))
	}
	assert.Equal(t, [][]rampbooks.FindingKind{nil, nil, {rampbooks.WaitsWithEvent}, nil}, found)
}

// Of two orders that an event fits, one ends by another transaction: it was that of the other,
// which earlier books took for one that may still end.
func TestAnEventIsThatOfTheOrderThatIsLeft(t *testing.T) {
	orders, store, n := rig.NewOfficeOnNode(t, 48*time.Hour, &rampproof.Config{AnyFailure: true})
	at := func(minutes int) time.Time { return rig.Now.Add(time.Duration(minutes) * time.Minute) }
	first, second := rig.OrderOf(ramp.Mint, 5, at(-960)), rig.OrderOf(ramp.Mint, 5, at(-950))
	mint := rig.Tx{Transfers: []ramp.Transfer{rig.Moved(common.Address{}, rig.Player, 490)}}
	n.Send(at(-959), mint)
	store.Keep(t, first, second)
	assert.Empty(t, kindsOf(must.Get(orders.Reconcile(t.Context(), at(-360), at(-175)))(t)),
		"the second waits for less than 13 hours")
	store.Keep(t, rig.Ended(second, ramp.OrderSucceeded, n.Send(at(-172), mint), at(-171)))
	books := must.Get(orders.Reconcile(t.Context(), at(-175), rig.Now))(t)
	require.Equal(t, []rampbooks.FindingKind{rampbooks.WaitsWithEvent}, kindsOf(books))
	assert.Equal(t, first.UUID, books.Findings[0].Orders[0].UUID)
}

// A mint that was given back and minted fits no order that waits, so it is found at once: that
// its order fits the event of one that waits, too, hides it neither now nor later.
func TestAnOrderThatWaitsHidesNothing(t *testing.T) {
	mint := rig.Tx{Transfers: []ramp.Transfer{rig.Moved(common.Address{}, rig.Player, 490)}}
	at := func(minutes int) time.Time { return rig.Now.Add(time.Duration(minutes) * time.Minute) }
	for _, state := range []ramp.OrderState{ramp.OrderFailed, ramp.OrderSucceeded} {
		orders, store, n := rig.NewOfficeOnNode(t, 48*time.Hour, &rampproof.Config{AnyFailure: true})
		wrong, waits := rig.OrderOf(ramp.Mint, 5, at(-700)), rig.OrderOf(ramp.Mint, 5, at(-600))
		wrong.State, wrong.FinishedAt = state, at(-690)
		if state == ramp.OrderFailed {
			n.Send(at(-699), mint)
		}
		own := n.Send(at(-599), mint)
		store.Keep(t, wrong, waits)
		assert.Equal(t, []rampbooks.FindingKind{rampbooks.Ambiguous},
			kindsOf(must.Get(orders.Reconcile(t.Context(), at(-720), at(-500)))(t)), state)
		store.Keep(t, rig.Ended(waits, ramp.OrderSucceeded, own, at(-300)))
		assert.Empty(t, kindsOf(must.Get(orders.Reconcile(t.Context(), at(-500), rig.Now))(t)), state)
	}
}

func TestWhatOneTransactionMints(t *testing.T) {
	minted := func(to common.Address, hundredths int64) ramp.Transfer {
		return rig.Moved(common.Address{}, to, hundredths)
	}
	for name, c := range map[string]struct {
		transfers []ramp.Transfer
		want      []rampbooks.FindingKind
	}{
		"the order's tokens":     {[]ramp.Transfer{minted(rig.Player, 490)}, nil},
		"the tokens and the fee": {[]ramp.Transfer{minted(rig.Player, 490), minted(rig.Friend, 10)}, nil},
		"more for somebody else than the fee": {[]ramp.Transfer{minted(rig.Player, 490), minted(rig.Friend, 11)},
			[]rampbooks.FindingKind{rampbooks.EventWithoutOrder}},
		"less than the fee leaves": {[]ramp.Transfer{minted(rig.Player, 480)},
			[]rampbooks.FindingKind{rampbooks.Differs}},
		"more than was ordered": {[]ramp.Transfer{minted(rig.Player, 501)},
			[]rampbooks.FindingKind{rampbooks.Differs}},
		"nothing for the user": {[]ramp.Transfer{minted(rig.Friend, 490)},
			[]rampbooks.FindingKind{rampbooks.Differs}},
		"the tokens, and another's burn beside it": {[]ramp.Transfer{minted(rig.Player, 490),
			rig.Moved(rig.Friend, common.Address{}, 5)}, []rampbooks.FindingKind{rampbooks.EventWithoutOrder}},
	} {
		for _, end := range []time.Duration{-59 * time.Minute, -61 * time.Minute} { // after the transaction, or before
			orders, store, n := rig.NewOfficeOnNode(t, 48*time.Hour, &rampproof.Config{AnyFailure: true})
			hash := n.Send(rig.Now.Add(-time.Hour), rig.Tx{Transfers: c.transfers})
			store.Keep(t,
				rig.Ended(rig.OrderOf(ramp.Mint, 5, rig.Now.Add(-62*time.Minute)), ramp.OrderSucceeded, hash,
					rig.Now.Add(end)))
			assert.Equal(t, c.want,
				kindsOf(must.Get(orders.Reconcile(t.Context(), rig.Now.Add(-3*time.Hour), time.Time{}))(t)), name)
		}
		// Its result came in the period after that of the transaction, and the books of both are made later.
		orders, store, n := rig.NewOfficeOnNode(t, 48*time.Hour, &rampproof.Config{AnyFailure: true})
		hash := n.Send(rig.HoursAgo(6), rig.Tx{Transfers: c.transfers})
		store.Keep(t, rig.Ended(rig.OrderOf(ramp.Mint, 5, rig.HoursAgo(7)), ramp.OrderSucceeded, hash, rig.HoursAgo(1)))
		begin, found := rig.HoursAgo(10), []rampbooks.FindingKind(nil)
		for _, end := range []time.Time{rig.HoursAgo(3), {}} {
			found = append(found, kindsOf(must.Get(orders.Reconcile(t.Context(), begin, end))(t))...)
			begin = end
		}
		assert.Equal(t, c.want, found, "%s, in two periods", name)
	}
	// A thief with the HMAC key ends an order of their own as failed, by a stolen mint.
	orders, store, n := rig.NewOfficeOnNode(t, 48*time.Hour, &rampproof.Config{AnyFailure: true})
	stolen := n.Send(rig.Now.Add(-time.Hour), rig.Tx{Transfers: []ramp.Transfer{minted(rig.Friend, 490)}})
	store.Keep(t,
		rig.Ended(rig.OrderOf(ramp.Mint, 5, rig.Now.Add(-61*time.Minute)), ramp.OrderFailed, stolen,
			rig.Now.Add(-59*time.Minute)))
	books := must.Get(orders.Reconcile(t.Context(), rig.Now.Add(-3*time.Hour), time.Time{}))(t)
	assert.Equal(t, []rampbooks.FindingKind{rampbooks.EventWithoutOrder}, kindsOf(books), "%v", books.Findings)
}

// However the time is cut into periods that overlap, each finding is made.
func TestPeriodsFindTogetherWhatOnePeriodFinds(t *testing.T) {
	s := rig.NewShop(t)
	decided := support.Decision{
		Who: "alice", Reason: "case 30", AgainstEvidence: true, WithoutEvidence: true, Early: true,
	}
	var live []string
	from := s.Begin
	look := func() {
		books := s.Books(t, from, time.Time{})
		for _, f := range books.Findings {
			live = append(live, fmt.Sprint(f.Kind, f.Time))
		}
		from = books.To.Add(-rampbooks.Overlap)
	}
	hours := func(n int) {
		for range n {
			s.Service.Advance(time.Hour)
			look()
		}
	}
	s.Place(t, s.Service.Mint, 1, ramptest.ResultLate(9*time.Hour)) // right, and open for a long time
	look()
	failed := s.Place(t, s.Service.Mint, 2, ramptest.ResultNever())
	look()
	s.Place(t, s.Service.Mint, 3, ramptest.MintedByStranger())
	hours(11)
	_ = s.Service.Deliver(t.Context(), failed, ramptest.Failed) // 11 hours after it succeeded
	hours(2)
	abandoned := s.Place(t, s.Service.Burn, 4, ramptest.ResultNever())
	hours(30)
	must.Get(s.Abandon(t.Context(), abandoned.UUID, decided))(t)
	hours(3)
	whole := s.Books(t, s.Begin, from.Add(rampbooks.Overlap))

	live = slices.Compact(slices.Sorted(slices.Values(live)))
	// until it was abandoned
	live = slices.DeleteFunc(live,
		func(f string) bool { return strings.HasPrefix(f, string(rampbooks.WaitsWithEvent)) })
	var want []string
	for _, f := range whole.Findings {
		want = append(want, fmt.Sprint(f.Kind, f.Time))
	}
	slices.Sort(want)
	assert.Equal(t, want, live)
	assert.ElementsMatch(t,
		[]rampbooks.FindingKind{rampbooks.EndedOtherwise, rampbooks.EventWithoutOrder, rampbooks.EndedOtherwise},
		kindsOf(whole))
}

// What the result will tell is no finding before 13 hours, and neither is what is in a
// block that may still be replaced.
func TestReconcileWaitsForResultsAndFinalBlocks(t *testing.T) {
	s := rig.NewShop(t)
	s.Place(t, s.Service.Mint, 2, ramptest.ResultNever())
	books := s.Books(t, s.Begin, time.Time{})
	assert.Empty(t, books.Findings)
	assert.Equal(t, 1, books.Open)

	s.Place(t, s.Service.Mint, 3, ramptest.MintedByStranger())
	before := s.Books(t, s.Begin, s.Service.Now().Add(-time.Hour))
	assert.Empty(t, before.Findings)
	strict, err := rig.NewOffice(rig.Config{Store: s.Store,
		Proof:    rig.ProofOn(t, s.Chain, &rampproof.Config{AnyFailure: true, Confirmations: 2000}),
		Products: rampbooks.Always(rig.Product)})
	require.NoError(t, err)
	final := must.Get(strict.Reconcile(t.Context(), s.Begin, time.Time{}))(t)
	assert.Empty(t, final.Findings, "its block has 720 confirmations")
	assert.Equal(t, []rampbooks.FindingKind{rampbooks.EventWithoutOrder}, kindsOf(s.Books(t, s.Begin, time.Time{})))
}

// Between two runs, the chain replaces every block since an event, and all events move
// to a new one. What was right stays right, and what was found is found again.
func TestAReorganizationBetweenTwoRuns(t *testing.T) {
	s := rig.NewShop(t)
	s.Place(t, s.Service.Mint, 2, ramptest.Reorganized(), ramptest.ResultLate(5*time.Hour))
	s.Place(t, s.Service.Mint, 3)
	s.Place(t, s.Service.Mint, 4, ramptest.MintedByStranger())
	first := s.Books(t, s.Begin, time.Time{})
	require.Equal(t, []rampbooks.FindingKind{rampbooks.EventWithoutOrder}, kindsOf(first))
	assert.Equal(t, 1, first.Open)

	s.Service.Advance(4 * time.Hour)
	second := s.Books(t, first.To.Add(-rampbooks.Overlap), time.Time{})
	require.Equal(t, []rampbooks.FindingKind{rampbooks.EventWithoutOrder}, kindsOf(second))
	assert.Zero(t, second.Open)
	before, now := first.Findings[0].Events[0], second.Findings[0].Events[0]
	assert.Equal(t, before.TxHash, now.TxHash)
	assert.Greater(t, now.Block, before.Block)
	whole := s.Books(t, s.Begin, time.Time{})
	assert.Equal(t, kindsOf(second), kindsOf(whole))
	assert.Equal(t, first.Chain[0].Tokens, whole.Chain[0].Tokens)
}

func TestErasedPlayersKeepTheBooksClosed(t *testing.T) {
	s := rig.NewShop(t)
	for _, o := range []*ramptest.PlacedOrder{s.Place(t, s.Service.Mint, 2), s.Place(t, s.Service.Burn, 1),
		s.Place(t, s.Service.Mint, 3, ramptest.TransactionFails())} {
		s.Change(o.UUID, func(stored *ramp.Order) { stored.SessionID, stored.UserAddress = "erased-1", "erased-1" })
	}
	books := s.Books(t, s.Begin, time.Time{})
	assert.Empty(t, books.Findings)
	assert.Equal(t, "1.96", books.Totals[0].Moved.String())
}

func TestTheBooksAsTextJSONAndCSV(t *testing.T) {
	s := rig.NewShop(t)
	s.Place(t, s.Service.Mint, 4)
	lost := s.Place(t, s.Service.Burn, 3, ramptest.ResultNever())
	s.Service.Advance(13 * time.Hour)
	s.Change(lost.UUID, func(o *ramp.Order) { o.SessionID = "=evil\n1" })
	books := s.Books(t, s.Begin, time.Time{})

	text := books.Text()
	for _, part := range []string{"gold", "waiting for 13 hours: mints 0, burns 1", "findings: 1, listed: 1",
		"waits_with_event: its result never came", "matched by user, token",
		lost.UUID.String(), lost.TxHash.Hex(), `  =evil\n1  `} {
		assert.Contains(t, text, part)
	}
	var totals bytes.Buffer
	require.NoError(t, books.WriteTotalsCSV(&totals, rampbooks.DecimalPoint))
	rows := must.Get(csv.NewReader(&totals).ReadAll())(t)
	period := []string{s.Begin.Format(time.RFC3339), books.To.Format(time.RFC3339)}
	assert.Equal(t, append([]string{"7002", "testnet", ""}, period...), rows[1][:5])
	var figures []string
	for _, row := range rows[1:] {
		figures = append(figures, strings.Join(row[5:], " "))
	}
	gold, chain := "orders gold "+rig.Token.Hex()+" mint ", "chain  "+rig.Token.Hex()
	assert.Equal(t, []string{
		gold + "orders_succeeded  1    ", gold + "orders_failed  0    ", gold + "orders_abandoned  0    ",
		gold + "orders_late  0    ",
		gold + "items_taken item_gold  100   ",
		gold + "tokens_ordered    4 4000000000000000000 18", gold + "tokens_moved    3.92 3920000000000000000 18",
		gold + "tokens_fees    0.08 80000000000000000 18", gold + "tokens_unmatched    0 0 18",
		chain + " mint events  2    ", chain + " mint tokens_on_chain    4 4000000000000000000 18",
		chain + " burn events  1    ", chain + " burn tokens_on_chain    3 3000000000000000000 18",
		"books    findings_event_without_order  0    ", "books    findings_order_without_event  0    ",
		"books    findings_transaction_undone  0    ",
		"books    findings_ended_otherwise  0    ", "books    findings_waits_with_event  1    ",
		"books    findings_waits_without_event  0    ", "books    findings_differs  0    ",
		"books    findings_ambiguous  0    ", "books    findings_shared_transaction  0    ",
		"books    findings_not_compared  0    ", "books    findings_decided  0    ", "books    not_judged  0    ",
		"books   mint orders_waiting  0    ", "books   burn orders_waiting  1    ",
	}, figures)

	written := must.Get(json.Marshal(books))(t)
	for _, part := range []string{`"moved":"3.92"`, `"waits_with_event":1,`,
		`"user_address":"` + s.Service.Wallet(lost.Session).Hex(), `"tokens":"3"`, `"assets":{"item_gold":"100"}`} {
		assert.Contains(t, string(written), part)
	}
	var read rampbooks.Reconciliation
	require.NoError(t, json.Unmarshal(written, &read))
	again := must.Get(json.Marshal(read))(t)
	assert.Equal(t, string(written), string(again), "Go can read them back")
	assert.Equal(t, text, read.Text())
}

func TestReconcileNamesWhatIsMissing(t *testing.T) {
	s := rig.NewShop(t)
	blind := must.Get(rig.NewOffice(rig.Config{Store: s.Store}))(t)
	_, err := blind.Reconcile(t.Context(), time.Time{}, time.Time{})
	assert.EqualError(t, err,
		"ramp: Config.Proof is required; Config.Products is required; from is required")
	s.Service.FailRPC(-32601)
	_, err = s.Reconcile(t.Context(), s.Begin, time.Time{})
	assert.ErrorIs(t, err, ramp.RPCMethodNotFound)
}

// Whichever call fails, of the node or of the store, there are no books.
func TestBooksAreNoneIfACallFails(t *testing.T) {
	orders, store, n := rig.NewOfficeOnNode(t, 48*time.Hour, &rampproof.Config{AnyFailure: true})
	at := func(minutes int) time.Time { return rig.Now.Add(time.Duration(minutes) * time.Minute) }
	mint := func(to common.Address) rig.Tx {
		return rig.Tx{Transfers: []ramp.Transfer{rig.Moved(common.Address{}, to, 490)}}
	}
	old, hash, other := n.Send(at(-2000), mint(rig.Player)), n.Send(at(-60), mint(rig.Player)),
		n.Send(at(-40), mint(rig.Player))
	n.Send(at(-30), mint(rig.Friend)) // of no order
	store.Keep(t, rig.OrderOf(ramp.Mint, 1, at(-1200)),
		rig.Ended(rig.OrderOf(ramp.Mint, 5, at(-61)), ramp.OrderSucceeded, hash, at(-50)),
		rig.Ended(rig.OrderOf(ramp.Mint, 5, at(-62)), ramp.OrderFailed, hash, at(-49)),
		rig.Ended(rig.OrderOf(ramp.Mint, 3, at(-41)), ramp.OrderSucceeded, other, at(-39)),
		rig.Ended(rig.OrderOf(ramp.Mint, 5, at(-2001)), ramp.OrderFailed, old, at(-38)),
		rig.Ended(rig.OrderOf(ramp.Mint, 5, at(-63)), ramp.OrderSucceeded, common.Hash{9}, at(-37)))
	n.Calls, store.Calls = 0, 0
	books := must.Get(orders.Reconcile(t.Context(), at(-180), time.Time{}))(t)
	require.Len(t, books.Findings, 5)
	nodes, lists := n.Calls, store.Calls
	for failing := range max(nodes, lists) {
		for _, where := range []*int{&n.Failing, &store.Failing} {
			if n.Calls, store.Calls, *where = 0, 0, failing+1; where == &n.Failing && failing < nodes ||
				where == &store.Failing && failing < lists {
				n.Failed = false
				_, err := orders.Reconcile(t.Context(), at(-180), time.Time{})
				assert.Equal(t, n.Failed || where == &store.Failing, err != nil, failing)
			}
			*where = 0
		}
	}
}

// A node may stop after 256 events and say nothing: the mint of a thief is in the books all the same.
func TestANodeThatStopsHidesNoStolenMint(t *testing.T) {
	orders, store, n := rig.NewOfficeOnNode(t, 24*time.Hour, &rampproof.Config{AnyFailure: true})
	n.MostLogs = 256
	for i := range 256 {
		at := rig.Now.Add(-2*time.Hour + time.Duration(i)*time.Second)
		hash := n.Send(at, rig.Tx{Transfers: []ramp.Transfer{rig.Moved(common.Address{}, rig.Player, 490)}})
		order := rig.OrderOf(ramp.Mint, 5, at.Add(-time.Minute))
		store.Keep(t, rig.Ended(order, ramp.OrderSucceeded, hash, at.Add(time.Second)))
	}
	stolen := n.Send(rig.Now.Add(-time.Hour),
		rig.Tx{Transfers: []ramp.Transfer{rig.Moved(common.Address{}, rig.Friend, 700_000)}})
	books := must.Get(orders.Reconcile(t.Context(), rig.Now.Add(-3*time.Hour), rig.Now.Add(-time.Minute)))(t)
	require.Equal(t, []rampbooks.FindingKind{rampbooks.EventWithoutOrder}, kindsOf(books))
	assert.Equal(t, stolen, books.Findings[0].Events[0].TxHash)
}

// The machine behind a balancer that lists events may lag behind the one that told the newest block. It
// has not seen the mint of a thief.
func TestANodeThatLagsMakesNoBooks(t *testing.T) {
	orders, _, n := rig.NewOfficeOnNode(t, 24*time.Hour, &rampproof.Config{AnyFailure: true})
	n.Send(rig.Now.Add(-5*time.Minute),
		rig.Tx{Transfers: []ramp.Transfer{rig.Moved(common.Address{}, rig.Friend, 700_000)}})
	n.Lag = 600
	from, to := rig.Now.Add(-3*time.Hour), rig.Now.Add(-time.Minute)
	_, err := orders.Reconcile(t.Context(), from, to)
	assert.ErrorContains(t, err, "eth_getLogs: the node is behind: its newest block is of 2026-11-20T11:50:00Z")
	n.Lag = 0
	books := must.Get(orders.Reconcile(t.Context(), from, to))(t)
	assert.Equal(t, []rampbooks.FindingKind{rampbooks.EventWithoutOrder}, kindsOf(books))
}

// The machine that is asked for receipts may lag, too: what it does not know is no finding.
func TestAMachineThatLagsUndoesNoTransaction(t *testing.T) {
	orders, store, n := rig.NewOfficeOnNode(t, 24*time.Hour, rig.Paid)
	order := rig.OrderOf(ramp.Mint, 5, rig.Now.Add(-10*time.Minute))
	store.Keep(t, rig.Ended(order, ramp.OrderSucceeded, common.HexToHash("0xbad"), rig.Now.Add(-8*time.Minute)))
	n.ReceiptLag = 600
	from, to := rig.Now.Add(-3*time.Hour), rig.Now.Add(-time.Minute)
	_, err := orders.Reconcile(t.Context(), from, to)
	assert.ErrorContains(t, err, "the node is behind: its newest block is of 2026-11-20T11:50:00Z")
	n.ReceiptLag = 0
	books := must.Get(orders.Reconcile(t.Context(), from, to))(t)
	assert.Equal(t, []rampbooks.FindingKind{rampbooks.TransactionUndone}, kindsOf(books))
}

// Whoever has the validator key cannot hide a mint behind transfers of zero, which cost
// anybody only gas, or behind dust.
func TestDustDoesNotHideAStolenMint(t *testing.T) {
	racedetector.Skip(t)
	for name, dust := range map[string]func(n int) ramp.Transfer{
		"transfers of zero to nobody":   func(int) ramp.Transfer { return rig.Moved(rig.Player, common.Address{}, 0) },
		"transfers of zero from nobody": func(int) ramp.Transfer { return rig.Moved(common.Address{}, rig.Player, 0) },
		"burns": func(n int) ramp.Transfer {
			return rig.Moved(rig.Player, common.Address{},
				int64(1+n%7))
		},
		"mints": func(n int) ramp.Transfer { return rig.Moved(common.Address{}, rig.Player, int64(1+n%7)) },
	} {
		t.Run(name, func(t *testing.T) {
			orders, store, n := rig.NewOfficeOnNode(t, 100*24*time.Hour, &rampproof.Config{AnyFailure: true})
			burned := rig.OrderOf(ramp.Burn, 3, rig.Now.Add(-2*time.Hour)) // of the player, and right
			const many = 3001
			for i := range many {
				n.Send(rig.Now.Add(-time.Hour-50*time.Minute), rig.Tx{Transfers: []ramp.Transfer{dust(i)}})
			}
			own := n.Send(rig.Now.Add(-time.Hour),
				rig.Tx{Transfers: []ramp.Transfer{rig.Moved(rig.Player, common.Address{}, 300)}})
			store.Keep(t, rig.Ended(burned, ramp.OrderSucceeded, own, rig.Now.Add(-50*time.Minute)))
			stolen := n.Send(rig.Now.Add(-30*time.Minute),
				rig.Tx{Transfers: []ramp.Transfer{rig.Moved(common.Address{}, rig.Friend, 500_000)}})
			books := must.Get(orders.Reconcile(t.Context(), rig.Now.Add(-3*time.Hour), time.Time{}))(t)
			assert.True(t,
				slices.ContainsFunc(books.Findings,
					func(f rampbooks.Finding) bool { return f.Events[0].TxHash == stolen }), "the mint is listed")
			want, listed := 1, 1
			if dust(0).Value.Sign() > 0 {
				want, listed = 1+many, 1001
				if name == "mints" {
					listed = 1000
				}
			}
			assert.Equal(t, want, books.Counts[rampbooks.EventWithoutOrder])
			assert.Len(t, books.Findings, listed)
		})
	}
}

// The books ask for ranges of blocks that grow while little happens and shrink again, and
// miss no event where one ends and the next begins.
func TestTheBooksReadEveryBlockOnce(t *testing.T) {
	racedetector.Skip(t)
	orders, _, n := rig.NewOfficeOnNode(t, 100*24*time.Hour, &rampproof.Config{AnyFailure: true})
	const busy = 14_000 // seconds, which are blocks, each with two events
	for i := range busy {
		n.Send(rig.Now.Add(time.Duration(i-busy-3600)*time.Second), rig.Tx{Transfers: []ramp.Transfer{
			rig.Moved(rig.Player, common.Address{}, int64(i+1)), rig.Moved(common.Address{}, rig.Friend, int64(i+1))}})
	}
	books := must.Get(orders.Reconcile(t.Context(), rig.Now.Add(-24*time.Hour), time.Time{}))(t)
	assert.Equal(t, 2*busy, books.Counts[rampbooks.EventWithoutOrder])
	require.Len(t, books.Chain, 2)
	assert.Equal(t, []string{"980070", "980070"},
		[]string{books.Chain[0].Tokens.String(), books.Chain[1].Tokens.String()})
	assert.True(t,
		slices.IsSortedFunc(books.Findings,
			func(a, b rampbooks.Finding) int { return a.Events[0].Time.Compare(b.Events[0].Time) }))
	assert.Equal(t, uint64(1<<13), slices.Max(n.Ranges))
	assert.Contains(t, n.Ranges[2:], uint64(1<<10), "of many events")
}

// Burns that players gave up cost the books of the next hours nothing.
func TestBurnsThatPlayersGaveUpAreCountedOnly(t *testing.T) {
	orders, store, n := rig.NewOfficeOnNode(t, 100*24*time.Hour, &rampproof.Config{AnyFailure: true})
	right := rig.OrderOf(ramp.Burn, 5, rig.Now.Add(-30*time.Minute))
	hash := n.Send(rig.Now.Add(-29*time.Minute),
		rig.Tx{Transfers: []ramp.Transfer{rig.Moved(rig.Player, common.Address{}, 500)}})
	right = rig.Ended(right, ramp.OrderSucceeded, hash, rig.Now.Add(-28*time.Minute))
	store.Keep(t, right)
	hour := func() (*rampbooks.Reconciliation, int) {
		n.Calls = 0
		books := must.Get(orders.Reconcile(t.Context(), rig.Now.Add(-time.Hour-rampbooks.Overlap), time.Time{}))(t)
		return books, n.Calls
	}
	_, without := hour()
	for i := range 5000 {
		burn := rig.OrderOf(ramp.Burn, 1, rig.Now.Add(-24*time.Hour-time.Duration(i)*20*time.Minute))
		burn.UserAddress = common.BigToAddress(big.NewInt(int64(1 + i%2000))).Hex()
		store.Keep(t, burn)
	}
	found := rig.OrderOf(ramp.Burn, 7, rig.Now.Add(-17*time.Hour)) // by earlier books, and its transaction
	store.Keep(t, found)
	n.Sent = slices.Insert(n.Sent, 0,
		rig.Tx{Hash: common.Hash{2}, Block: n.BlockAt(rig.Now.Add(-16 * time.Hour)),
			Transfers: []ramp.Transfer{rig.Moved(rig.Player, common.Address{}, 700)}})
	books, with := hour()
	assert.Empty(t, books.Findings)
	assert.Equal(t, []int{0, 5001}, []int{books.WaitingMints, books.WaitingBurns})
	assert.LessOrEqual(t, float64(with), 1.1*float64(without))
}

// A chain on which the token has no contract has no events, and must not look like one
// without trade.
func TestTheBooksAreNotOfAChainWithoutTheToken(t *testing.T) {
	for answer, want := range map[string]string{"0x": "it is no token contract on this chain",
		"": "execution reverted",
		hexutil.Encode(common.LeftPadBytes([]byte{6},
			32)): "Config.Decimals is 18 for token 0x00000000000000000000000000000000000070c3, but its " +
			"contract says 6"} {
		orders, _, n := rig.NewOfficeOnNode(t, 24*time.Hour,
			&rampproof.Config{AnyFailure: true, Decimals: map[common.Address]int{rig.Token: 18}})
		n.Decimals = answer
		_, err := orders.Reconcile(t.Context(), rig.Now.Add(-time.Hour), rig.Now)
		assert.ErrorContains(t, err, want)
	}

	proof := &rampproof.Config{AnyFailure: true, Decimals: map[common.Address]int{rig.Token: 0}}
	orders, store, n := rig.NewOfficeOnNode(t, 24*time.Hour, proof)
	n.Decimals = "" // as of pieces
	_, err := rig.RunCommand(t, orders, "reconcile")
	assert.ErrorContains(t, err, "nothing was compared")
	store.Keep(t, rig.OrderOf(ramp.Mint, 5, rig.Now.Add(-14*time.Hour)))
	_, err = rig.RunCommand(t, orders, "reconcile")
	assert.EqualError(t, err, "orders and chain disagree; findings: 1", "it waits without an event")
	orders = rig.OfficeOf(t, store, n, &rampproof.Config{AnyFailure: true})
	n.Decimals = hexutil.Encode(common.LeftPadBytes([]byte{18}, 32))
	store.Keep(t, rig.OrderOf(ramp.Mint, 5, rig.Now.Add(-20*time.Minute)))
	n.Send(rig.Now.Add(-19*time.Minute),
		rig.Tx{Transfers: []ramp.Transfer{rig.Moved(common.Address{}, rig.Player, 490)}})
	printed, err := rig.RunCommand(t, orders, "reconcile", "-from", rig.Now.Add(-30*time.Minute).Format(time.RFC3339))
	assert.NoError(t, err, "an event whose order waits")
	assert.Contains(t, printed, "\nnot judged yet: 1, and all after ")
}

// The time in a log decides nothing that the header of its block contradicts: a stolen mint
// whose log says another time would be in no books.
func TestTheTimeOfAnEventIsThatOfItsBlock(t *testing.T) {
	at := func(minutes int) time.Time { return rig.Now.Add(time.Duration(minutes) * time.Minute) }
	seconds := func(shift time.Duration) func(*rig.Tx, time.Time) uint64 {
		return func(_ *rig.Tx, at time.Time) uint64 { return uint64(at.Add(shift).Unix()) }
	}
	var stolen common.Hash
	for name, logTime := range map[string]func(*rig.Tx, time.Time) uint64{
		"right":           nil,
		"none":            func(*rig.Tx, time.Time) uint64 { return 0 },
		"milliseconds":    func(_ *rig.Tx, at time.Time) uint64 { return uint64(at.UnixMilli()) },
		"a day late":      seconds(24 * time.Hour),
		"a day early":     seconds(-24 * time.Hour),
		"two hours early": seconds(-2 * time.Hour),
		"the stolen one alone before the period": func(tx *rig.Tx, at time.Time) uint64 {
			if tx.Hash == stolen {
				at = rig.Now.Add(-185 * time.Minute) // between the two beside it
			}
			return uint64(at.Unix())
		},
	} {
		t.Run(name, func(t *testing.T) {
			orders, store, n := rig.NewOfficeOnNode(t, 48*time.Hour, &rampproof.Config{AnyFailure: true})
			mint := func(minutes int, to common.Address) common.Hash {
				return n.Send(at(minutes), rig.Tx{Transfers: []ramp.Transfer{rig.Moved(common.Address{}, to, 490)}})
			}
			for _, minutes := range []int{-300, -190, -175} { // orders that are right
				order := rig.OrderOf(ramp.Mint, 5, at(minutes-1))
				if minutes == -175 {
					stolen = mint(-178, rig.Friend)
				}
				store.Keep(t, rig.Ended(order, ramp.OrderSucceeded, mint(minutes, rig.Player), at(minutes+1)))
			}
			n.LogTime = logTime
			books := must.Get(orders.Reconcile(t.Context(), at(-180), time.Time{}))(t)
			require.Equal(t, []rampbooks.FindingKind{rampbooks.EventWithoutOrder}, kindsOf(books), "%v", books.Findings)
			event := books.Findings[0].Events[0]
			assert.Equal(t, stolen, event.TxHash)
			if name != "the stolen one alone before the period" {
				assert.Equal(t, at(-178), event.Time)
			}
		})
	}
}

// A node whose index is pruned, broken or not built yet answers eth_getLogs with an empty list.
// The receipt of an order that ended shows that something happened: books that have seen
// nothing would hide a stolen mint.
func TestTheBooksEndIfTheNodeListsLessThanItShows(t *testing.T) {
	at := func(minutes int) time.Time { return rig.Now.Add(time.Duration(minutes) * time.Minute) }
	mint := func(to common.Address) rig.Tx {
		return rig.Tx{Transfers: []ramp.Transfer{rig.Moved(common.Address{}, to, 490)}}
	}
	for _, lists := range []func(tx *rig.Tx) bool{
		func(*rig.Tx) bool { return false },
		func(tx *rig.Tx) bool { return tx.Block > uint64(40*3600) }, // of 48 hours
		func(tx *rig.Tx) bool { return tx.Block < uint64(40*3600) },
	} {
		orders, store, n := rig.NewOfficeOnNode(t, 48*time.Hour, &rampproof.Config{AnyFailure: true})
		for _, minutes := range []int{-1000, -60} {
			hash := n.Send(at(minutes), mint(rig.Player))
			store.Keep(t, rig.Ended(rig.OrderOf(ramp.Mint, 5, at(minutes-1)), ramp.OrderSucceeded, hash, at(minutes+1)))
			n.Send(at(minutes+2), mint(rig.Friend)) // stolen
		}
		books := must.Get(orders.Reconcile(t.Context(), at(-1200), time.Time{}))(t)
		require.Equal(t, 2, books.Counts[rampbooks.EventWithoutOrder])
		assert.Equal(t, 2, books.Witnesses)
		assert.NotContains(t, books.Text(), "listed the event of no order")
		n.Lists = lists
		_, err := orders.Reconcile(t.Context(), at(-1200), time.Time{})
		assert.ErrorContains(t, err, "and lists none of its events: its index is broken, pruned or not built yet")
	}

	// Without an order that ended, nobody knows.
	orders, store, n := rig.NewOfficeOnNode(t, 48*time.Hour, &rampproof.Config{AnyFailure: true})
	n.Send(at(-60), mint(rig.Friend))
	n.Lists = func(*rig.Tx) bool { return false }
	store.Keep(t, rig.OrderOf(ramp.Mint, 5, at(-14*60)))
	books := must.Get(orders.Reconcile(t.Context(), at(-180), time.Time{}))(t)
	assert.Zero(t, books.Witnesses)
	assert.Contains(t, books.Text(), "\nThe node listed the event of no order, so nothing shows")
}

// An order may end long after or long before its event. Its event was listed all the same.
func TestAnEventThatIsFarFromTheEndOfItsOrderWasListed(t *testing.T) {
	at := func(minutes int) time.Time { return rig.Now.Add(time.Duration(minutes) * time.Minute) }
	for _, end := range []int{-60, -1980} {
		orders, store, n := rig.NewOfficeOnNode(t, 100*time.Hour, &rampproof.Config{AnyFailure: true})
		order := rig.OrderOf(ramp.Mint, 5, at(-2000))
		hash := n.Send(at(-1050), rig.Tx{Transfers: []ramp.Transfer{rig.Moved(common.Address{}, rig.Player, 490)}})
		store.Keep(t, rig.Ended(order, ramp.OrderSucceeded, hash, at(end)))
		for _, from := range []int{-2400, -1100, -300} {
			must.Get(orders.Reconcile(t.Context(), at(from), time.Time{}))(t)
		}
	}
}

// The clock of a server was 20 minutes ahead when it accepted an order, so that its transaction
// seems to be older. Nobody's key was stolen.
func TestTheBooksNameAClockThatWasAhead(t *testing.T) {
	at := func(minutes int) time.Time { return rig.Now.Add(time.Duration(minutes) * time.Minute) }
	mint := rig.Tx{Transfers: []ramp.Transfer{rig.Moved(common.Address{}, rig.Player, 490)}}
	for _, ahead := range []int{20, 23 * 60} { // minutes
		orders, store, n := rig.NewOfficeOnNode(t, 72*time.Hour, &rampproof.Config{AnyFailure: true})
		hash := n.Send(at(-40*60), mint)
		order := rig.OrderOf(ramp.Mint, 5, at(-40*60+ahead))
		store.Keep(t, order)
		books := must.Get(orders.Reconcile(t.Context(), at(-50*60), time.Time{}))(t)
		require.Equal(t,
			[]rampbooks.FindingKind{rampbooks.EventWithoutOrder, rampbooks.WaitsWithoutEvent}, kindsOf(books))
		stolen, waits := books.Findings[0], books.Findings[1]
		assert.Contains(t, stolen.Detail, ", unless "+evidence.ClocksDiffer+": the orders were accepted later")
		require.Len(t, stolen.Orders, 1)
		assert.Equal(t, order.UUID, stolen.Orders[0].UUID)
		assert.Equal(t, fmt.Sprintf("no event of its user fits, unless %s: transaction %s is %s older than the order",
			evidence.ClocksDiffer, hash, time.Duration(ahead)*time.Minute), waits.Detail)
	}

	// It is no excuse for what another order explains, or for a day before.
	orders, store, n := rig.NewOfficeOnNode(t, 72*time.Hour, &rampproof.Config{AnyFailure: true})
	for _, minutes := range []int{-60 * 60, -40 * 60} {
		n.Send(at(minutes), mint)
	}
	own := n.Send(at(-30*60), mint)
	order := rig.OrderOf(ramp.Mint, 5, at(-30*60-1))
	store.Keep(t, rig.Ended(order, ramp.OrderSucceeded, own, at(-29*60)), rig.OrderOf(ramp.Mint, 5, at(-60)))
	books := must.Get(orders.Reconcile(t.Context(), at(-70*60), time.Time{}))(t)
	require.Equal(t, []rampbooks.FindingKind{rampbooks.EventWithoutOrder, rampbooks.EventWithoutOrder}, kindsOf(books))
	for _, f := range books.Findings {
		assert.Equal(t, "nobody ordered this mint, or its order was deleted", f.Detail)
	}
}

// Where nothing becomes final anymore, the books would end at the same block for ever, and
// find nothing.
func TestBooksThatStandStillSaySo(t *testing.T) {
	orders, store, n := rig.NewOfficeOnNode(t, 72*time.Hour, &rampproof.Config{AnyFailure: true})
	hash := n.Send(rig.Now.Add(-20*time.Hour),
		rig.Tx{Transfers: []ramp.Transfer{rig.Moved(common.Address{}, rig.Player, 490)}})
	order := rig.OrderOf(ramp.Mint, 5, rig.Now.Add(-21*time.Hour))
	store.Keep(t, rig.Ended(order, ramp.OrderSucceeded, hash, rig.Now.Add(-19*time.Hour)))
	for _, c := range []struct {
		unfinal time.Duration
		to      time.Time
		stalled bool
	}{
		{0, time.Time{}, false}, {2 * time.Hour, time.Time{}, false}, {4 * time.Hour, time.Time{}, true},
		{4 * time.Hour, rig.Now.Add(-4*time.Hour + time.Second), true},
		{4 * time.Hour, rig.Now.Add(-5 * time.Hour), false},
	} {
		n.Unfinal = uint64(c.unfinal / time.Second)
		books := must.Get(orders.Reconcile(t.Context(), rig.Now.Add(-24*time.Hour), c.to))(t)
		assert.Equal(t, c.stalled, books.Stalled != "", "%v", c)
		said := "\nThe books stand still: the newest block that is final is of 2026-11-20T08:00:00Z, " +
			"and the newest of all of 2026-11-20T12:00:00Z: use another node"
		assert.Equal(t, c.stalled, strings.Contains(books.Text(), said), "%v", c)
	}
	n.Unfinal = 4 * 3600
	_, err := rig.RunCommand(t, orders, "reconcile", "-from", "2026-11-19")
	assert.ErrorContains(t, err, "the books stand still: the newest block that is final")
	var log bytes.Buffer
	logs := must.Get(rig.NewOffice(rig.Config{
		Store: store, Proof: rig.ProofOn(t, n.RPC(t), &rampproof.Config{AnyFailure: true}),
		Products: rampbooks.Always(rig.Product),
		Now:      rig.Later, Logger: slog.New(slog.NewJSONHandler(&log, nil)),
	}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	logs.KeepBooks(ctx, nil, func(context.Context, *rampbooks.Reconciliation) error {
		cancel()
		return nil
	})
	assert.Contains(t, log.String(), `"level":"ERROR","msg":"ramp: the books stand still","end":"2026-11-20T08:00:01Z"`)
	n.NoFinality = "the method is not supported"
	_, err = orders.Reconcile(t.Context(), rig.Now.Add(-24*time.Hour), time.Time{})
	assert.ErrorContains(t, err, "for a node that knows no finalized block, set Config.Confirmations above 1")
}
