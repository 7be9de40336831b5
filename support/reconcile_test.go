package support_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/ramptest/control"
	"github.com/token-ramp/ramp-go/support"
)

// ledger is a store in memory that lists its orders.
type ledger struct {
	ramp.Store
	mu     sync.Mutex
	orders map[uuid.UUID]ramp.Order
}

// newLedger returns a ledger, whose steps go to apply.
func newLedger(t *testing.T, apply func(context.Context, ramp.Step) error) *ledger {
	l := &ledger{orders: map[uuid.UUID]ramp.Order{}}
	store, err := ramp.NewMemoryStore(ramp.MemoryStoreConfig{Apply: func(ctx context.Context, step ramp.Step) error {
		err := apply(ctx, step)
		if err == nil {
			l.put(step.Order)
		}
		return err
	}})
	require.NoError(t, err)
	l.Store = store
	return l
}

func (l *ledger) put(o ramp.Order) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.orders[o.UUID] = o
}

func (l *ledger) list(page ramp.OrderPage, at func(ramp.Order) time.Time, want func(ramp.Order) bool) (list []ramp.Order, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := func(o ramp.Order) string { return at(o).UTC().Format("2006-01-02T15:04:05.000") + o.UUID.String() }
	for _, o := range l.orders {
		if want(o) && (page.After.UUID == uuid.Nil || key(o) > key(page.After)) {
			list = append(list, o)
		}
	}
	slices.SortFunc(list, func(a, b ramp.Order) int { return strings.Compare(key(a), key(b)) })
	return list[:min(len(list), cmp.Or(page.Limit, 100))], nil
}

func (l *ledger) Ended(_ context.Context, from, to time.Time, page ramp.OrderPage) ([]ramp.Order, error) {
	at := func(o ramp.Order) time.Time { return o.FinishedAt }
	return l.list(page, at, func(o ramp.Order) bool {
		return o.State != ramp.OrderAccepted && !at(o).Before(from) && at(o).Before(to)
	})
}

func acceptedAt(o ramp.Order) time.Time { return o.AcceptedAt }

func (l *ledger) Waiting(_ context.Context, d ramp.Direction, before time.Time, page ramp.OrderPage) ([]ramp.Order, error) {
	return l.list(page, acceptedAt, func(o ramp.Order) bool {
		return o.State == ramp.OrderAccepted && o.Direction == d && o.AcceptedAt.Before(before)
	})
}

func (l *ledger) UserOrders(_ context.Context, address string, page ramp.OrderPage) ([]ramp.Order, error) {
	return l.newest(page, func(o ramp.Order) bool { return strings.EqualFold(o.UserAddress, address) })
}

func (l *ledger) SessionOrders(_ context.Context, id string, page ramp.OrderPage) ([]ramp.Order, error) {
	return l.newest(page, func(o ramp.Order) bool { return o.SessionID == id })
}

func (l *ledger) newest(page ramp.OrderPage, want func(ramp.Order) bool) ([]ramp.Order, error) {
	if page.After.UUID != uuid.Nil {
		return nil, nil
	}
	list, err := l.list(ramp.OrderPage{Limit: 1000}, acceptedAt, want)
	slices.Reverse(list)
	return list, err
}

func (l *ledger) OrderByTransaction(_ context.Context, hash common.Hash) (ramp.Order, error) {
	list, err := l.list(ramp.OrderPage{}, acceptedAt, func(o ramp.Order) bool { return o.TxHash == hash.Hex() })
	if len(list) == 0 {
		return ramp.Order{}, ramp.ErrOrderUnknown
	}
	return list[0], err
}

// shop is a studio in memory whose books can be compared with the emulator's chain.
type shop struct {
	*studio
	ledger *ledger
	begin  time.Time
}

// product is what the shop sells.
var product = func() ramp.Product {
	intent := request().Intent
	return ramp.Product{Name: "gold", Token: intent.Token, MintFeeBps: 250, Materials: intent.Materials, Outputs: intent.Outputs}
}()

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{studio: &studio{gold: 100_000}}
	key, err := ramp.TextKey("my_secret_salt_value_!@#$%^&*")
	require.NoError(t, err)
	signer, err := ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef")
	require.NoError(t, err)
	s.ledger = newLedger(t, s.apply)
	s.store = s.ledger
	s.service = ramptest.Start(t, ramptest.Config{PerOrder: true, Key: key, Validator: signer.Address(), Handler: http.NotFoundHandler(), Books: ramptest.BooksOff,
		BlockTime: 5 * time.Second})
	handler, err := ramp.NewHandler(ramp.HandlerConfig{Terms: anyTerms, Players: s.studio, Store: s.store, Key: key, Signer: signer, Now: s.service.Now,
		OnConflict: func(context.Context, *ramp.ConflictError, *ramp.Result) error { return nil },
		Logger:     slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	s.service.SetHandler(handler)
	terms, err := ramp.NewTerms(ramp.TermsConfig{ProjectID: "project-1", Network: ramp.Testnet, Products: []ramp.Product{product}})
	require.NoError(t, err)
	s.client, err = ramp.NewClient(ramp.ClientConfig{URL: s.service.URL(), Key: key, Terms: terms, HTTPClient: s.service.Client()})
	require.NoError(t, err)
	s.chain, err = ramp.NewRPC(ramp.RPCConfig{URL: s.service.RPCURL(ramp.Testnet), HTTPClient: s.service.Client(), Retries: -1})
	require.NoError(t, err)
	s.Orders, err = support.New(support.Config{Store: s.store, Chain: s.chain, Proof: &ramp.Proof{AnyFailure: true}, Products: []ramp.Product{product},
		Sessions: sessions, Now: s.service.Now, Logger: slog.New(slog.NewJSONHandler(&s.log, nil))})
	require.NoError(t, err)
	s.begin = s.service.Now()
	s.service.Advance(time.Hour)
	return s
}

// place starts an order of session-1, and lets an hour pass.
func (s *shop) place(t *testing.T, place placer, tokens int64, faults ...ramptest.Fault) *ramptest.Order {
	t.Helper()
	started, err := s.client.Initialize(t.Context(), ramp.InitializeRequest{Product: "gold"})
	require.NoError(t, err)
	order, err := place(t.Context(), started.UUID, ramp.Session{ID: "session-1", Token: ramp.NewAccessToken("token-1")}, ramp.NewAmount(tokens), faults...)
	require.NoError(t, err)
	s.service.Advance(time.Hour)
	return order
}

func (s *shop) books(t *testing.T, from, to time.Time) *support.Books {
	t.Helper()
	books, err := s.Reconcile(t.Context(), from, to)
	require.NoError(t, err)
	return books
}

func kindsOf(b *support.Books) (kinds []support.FindingKind) {
	for _, f := range b.Findings {
		kinds = append(kinds, f.Kind)
	}
	return kinds
}

func TestBooksThatCloseSayWhatWasMovedAndFindNothing(t *testing.T) {
	s := newShop(t)
	s.place(t, s.service.Mint, 4)
	s.place(t, s.service.Mint, 6, ramptest.WithoutFee())
	s.place(t, s.service.Mint, 5, ramptest.TransactionFails())
	s.place(t, s.service.Burn, 3)
	s.place(t, s.service.Burn, 2, ramptest.TransactionFails())
	s.place(t, s.service.Burn, 1, ramptest.ResultLate(11*time.Hour))
	s.service.Advance(12 * time.Hour)

	books := s.books(t, s.begin, time.Time{})
	assert.Empty(t, books.Findings)
	amounts := func(gold int64) []ramp.AssetAmount {
		if gold == 0 {
			return nil
		}
		return []ramp.AssetAmount{{ID: "item_gold", Amount: ramp.NewAmount(gold)}}
	}
	amount := func(text string) ramp.Amount {
		a, err := ramp.ParseAmount(text)
		require.NoError(t, err)
		return a
	}
	assert.Equal(t, []support.Total{
		{Product: "gold", Direction: ramp.Mint, Succeeded: 2, Failed: 1, Taken: amounts(300), GivenBack: amounts(100),
			Ordered: amount("10"), Moved: amount("9.75"), Fees: amount("0.25")},
		{Product: "gold", Direction: ramp.Burn, Succeeded: 2, Failed: 1, Granted: amounts(200), Ordered: amount("4"), Moved: amount("4")},
	}, books.Totals)
	assert.Equal(t, []support.ChainTotal{
		{Token: token, Direction: ramp.Mint, Events: 4, Tokens: amount("10")}, // the fee is an event of its own
		{Token: token, Direction: ramp.Burn, Events: 2, Tokens: amount("4")},
	}, books.Chain)
	assert.True(t, books.To.After(s.service.Now().Add(-10*time.Minute)), "up to the final block")
	assert.Equal(t, books, s.books(t, s.begin, time.Time{}), "the same again")
}

// Each row of the table in docs/operations.md is played, and exactly that is found, in
// each way to cut the time into periods.
func TestReconcileFindsExactlyWhatIsWrong(t *testing.T) {
	decided := support.Decision{Who: "alice", Reason: "case 30", Anyway: true}
	for name, c := range map[string]struct {
		play   func(t *testing.T, s *shop) // after an order that is right
		want   support.FindingKind
		by     string
		detail string
	}{
		"somebody mints with the validator key": {func(t *testing.T, s *shop) {
			s.place(t, s.service.Mint, 2, ramptest.MintedByStranger())
		}, support.EventWithoutOrder, "", "nobody ordered this mint"},
		"a result is invented": {func(t *testing.T, s *shop) {
			o := s.place(t, s.service.Mint, 2, ramptest.TransactionFails(), ramptest.ResultNever())
			_ = s.service.Deliver(t.Context(), o, ramptest.Succeeded)
		}, support.OrderWithoutEvent, "", "its transaction failed"},
		"a result is of a transaction that nobody knows": {func(t *testing.T, s *shop) {
			o := s.place(t, s.service.Mint, 2, ramptest.StaysPending())
			forged := &ramptest.Order{UUID: o.UUID, Session: o.Session, Network: o.Network, Request: o.Request, TxHash: common.Hash{7}}
			_ = s.service.Deliver(t.Context(), forged, ramptest.Succeeded)
		}, support.OrderWithoutEvent, "", "there is no such transaction on this chain"},
		"a failure is invented": {func(t *testing.T, s *shop) {
			o := s.place(t, s.service.Mint, 2, ramptest.ResultNever())
			_ = s.service.Deliver(t.Context(), o, ramptest.Failed)
		}, support.EndedOtherwise, support.ByTransaction, "the mint was given back, and its tokens were minted: paid twice"},
		"a failure is invented before the transaction is mined": {func(t *testing.T, s *shop) {
			o := s.place(t, s.service.Mint, 2, ramptest.StaysPending())
			forged := &ramptest.Order{UUID: o.UUID, Session: o.Session, Network: o.Network, Request: o.Request, TxHash: o.TxHash}
			_ = s.service.Deliver(t.Context(), forged, ramptest.Failed)
			s.change(o.UUID, func(stored *ramp.Order) { stored.TxHash = o.TxHash.Hex() }) // the emulator made one up
			s.service.Advance(20 * time.Hour)
			s.begin = s.service.Now().Add(-time.Minute)
			_ = s.service.Deliver(t.Context(), o, ramptest.Succeeded)
		}, support.EndedOtherwise, support.ByTransaction, "the mint was given back, and its tokens were minted: paid twice"},
		"an abandoned mint succeeds later": {func(t *testing.T, s *shop) {
			o := s.place(t, s.service.Mint, 2, ramptest.StaysPending())
			s.service.Advance(20 * time.Hour)
			_, err := s.Abandon(t.Context(), o.UUID, decided)
			require.NoError(t, err)
			s.service.Advance(20 * time.Hour)
			_ = s.service.Deliver(t.Context(), o, ramptest.Succeeded)
		}, support.EndedOtherwise, support.ByAmount, "the mint was given back, and its tokens were minted: paid twice"},
		"a mint is abandoned although it succeeded": {func(t *testing.T, s *shop) {
			o := s.place(t, s.service.Mint, 2, ramptest.ResultNever())
			s.service.Advance(40 * time.Hour)
			_, err := s.Abandon(t.Context(), o.UUID, decided)
			require.NoError(t, err)
		}, support.EndedOtherwise, support.ByAmount, "the mint was given back, and its tokens were minted: paid twice"},
		"a burn is abandoned although it succeeded": {func(t *testing.T, s *shop) {
			o := s.place(t, s.service.Burn, 2, ramptest.ResultNever())
			_, err := s.Abandon(t.Context(), o.UUID, decided)
			require.NoError(t, err)
		}, support.EndedOtherwise, support.ByAmount, "the burn was not granted, but its tokens were burned"},
		"a result is lost": {func(t *testing.T, s *shop) {
			s.place(t, s.service.Burn, 2, ramptest.ResultNever())
			s.service.Advance(30 * time.Hour)
		}, support.WaitsWithEvent, support.ByAmount, "its result never came: finish it with the transaction"},
		"a transaction never comes": {func(t *testing.T, s *shop) {
			s.place(t, s.service.Mint, 2, ramptest.StaysPending())
			s.service.Advance(13 * time.Hour)
		}, support.WaitsWithoutEvent, "", "no event of its user fits: nothing happened on the chain"},
		"two orders are alike, and one event came": {func(t *testing.T, s *shop) {
			s.place(t, s.service.Mint, 2, ramptest.StaysPending())
			s.place(t, s.service.Mint, 2, ramptest.ResultNever())
			s.service.Advance(30 * time.Hour)
		}, support.Ambiguous, support.ByAmount, "events: 1, orders that they fit: 2"},
		"an order has another amount than its event": {func(t *testing.T, s *shop) {
			o := s.place(t, s.service.Burn, 2)
			s.change(o.UUID, func(stored *ramp.Order) { stored.Intent.From[0].Amount = ramp.NewAmount(3) })
		}, support.Differs, support.ByTransaction, "the order is about 3 tokens, and the event moved 2"},
		"an order has another user than its event": {func(t *testing.T, s *shop) {
			o := s.place(t, s.service.Mint, 2)
			s.change(o.UUID, func(stored *ramp.Order) { stored.UserAddress = "0x00000000000000000000000000000000000000aa" })
		}, support.Differs, support.ByTransaction, "the transaction moved nothing for the user 0x00000000000000000000000000000000000000AA"},
		"a mint was recorded as a burn": {func(t *testing.T, s *shop) {
			o := s.place(t, s.service.Mint, 2)
			s.change(o.UUID, func(stored *ramp.Order) {
				stored.Direction, stored.Intent.From, stored.Intent.To = ramp.Burn, stored.Intent.To, stored.Intent.From
			})
		}, support.Differs, support.ByTransaction, "the order is a burn, and the transaction did the opposite"},
		"a row was damaged": {func(t *testing.T, s *shop) {
			o := s.place(t, s.service.Mint, 2)
			s.change(o.UUID, func(stored *ramp.Order) { stored.Direction, stored.Intent, stored.Assets = "", ramp.Intent{}, nil })
		}, support.Differs, "", "the row is not a valid order: it was changed by hand"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			s.place(t, s.service.Mint, 2)
			c.play(t, s)
			s.service.Advance(2 * time.Hour)
			s.place(t, s.service.Mint, 7)
			whole := s.books(t, s.begin, time.Time{})
			require.Equal(t, []support.FindingKind{c.want}, kindsOf(whole), "%v", whole.Findings)
			found := whole.Findings[0]
			assert.Equal(t, c.by, found.By)
			assert.Equal(t, c.detail, found.Detail)
			assert.Equal(t, 1, whole.Counts()[c.want])

			// So do the books of the last hours alone, if it happened then. Later books do not
			// forget what waits, and add nothing else.
			later := s.books(t, whole.To, time.Time{})
			if c.want != support.WaitsWithEvent && c.want != support.WaitsWithoutEvent && c.want != support.Ambiguous {
				assert.Empty(t, later.Findings)
			}
		})
	}
}

// What docs/books.md tells a test in another language to do.
func TestTheControlAPIMakesTheFindings(t *testing.T) {
	for _, c := range []struct {
		do      string
		faults  []string
		abandon bool
		send    string
		want    support.FindingKind
	}{
		{"mint", []string{"minted-by-stranger"}, false, "", support.EventWithoutOrder},
		{"mint", []string{"transaction-fails", "result-never"}, false, "succeeded", support.OrderWithoutEvent},
		{"mint", []string{"result-never"}, false, "failed", support.EndedOtherwise},
		{"burn", []string{"result-never"}, false, "", support.WaitsWithEvent},
		{"mint", []string{"stays-pending"}, true, "succeeded", support.EndedOtherwise},
		{"burn", []string{"stays-pending"}, false, "", support.WaitsWithoutEvent},
	} {
		t.Run(strings.Join(append(c.faults, c.send), " "), func(t *testing.T) {
			s := newShop(t)
			api := &control.Client{URL: s.service.URL(), HTTPClient: s.service.Client()}
			items := []control.Item{{ID: "item_gold", Amount: "100"}}
			order, err := api.Start(t.Context(), control.StartRequest{Do: c.do, SessionID: "session-1", AccessToken: "token-1", Faults: c.faults,
				Terms: &control.Terms{Network: ramp.Testnet, ProjectID: "project-1", Token: token.Hex(), MintFeeBps: 250, Materials: items, Outputs: items}})
			require.NoError(t, err)
			_, err = api.Advance(t.Context(), control.AdvanceRequest{By: "14h"})
			require.NoError(t, err)
			if c.abandon {
				_, err := s.Abandon(t.Context(), order.UUID, support.Decision{Who: "alice", Reason: "case 30"})
				require.NoError(t, err)
			}
			if c.send != "" {
				_, err := api.Send(t.Context(), order.UUID.String(), control.SendRequest{Outcome: c.send})
				require.NoError(t, err)
			}
			s.service.Advance(time.Hour)
			assert.Equal(t, []support.FindingKind{c.want}, kindsOf(s.books(t, s.begin, time.Time{})))
		})
	}
}

// change changes an order by hand.
func (s *shop) change(id uuid.UUID, change func(*ramp.Order)) {
	s.ledger.mu.Lock()
	defer s.ledger.mu.Unlock()
	o := s.ledger.orders[id]
	o.Intent.From, o.Intent.To = slices.Clone(o.Intent.From), slices.Clone(o.Intent.To)
	change(&o)
	s.ledger.orders[id] = o
}

// However the time is cut into periods that overlap, each finding is made.
func TestPeriodsFindTogetherWhatOnePeriodFinds(t *testing.T) {
	s := newShop(t)
	decided := support.Decision{Who: "alice", Reason: "case 30", Anyway: true}
	var live []string
	from := s.begin
	look := func() {
		books := s.books(t, from, time.Time{})
		for _, f := range books.Findings {
			live = append(live, string(f.Kind)+" "+idOf(&f))
		}
		from = books.To.Add(-support.Overlap)
	}
	hours := func(n int) {
		for range n {
			s.service.Advance(time.Hour)
			look()
		}
	}
	s.place(t, s.service.Mint, 1, ramptest.ResultLate(9*time.Hour)) // right, and open for a long time
	look()
	failed := s.place(t, s.service.Mint, 2, ramptest.ResultNever())
	look()
	s.place(t, s.service.Mint, 3, ramptest.MintedByStranger())
	hours(11)
	_ = s.service.Deliver(t.Context(), failed, ramptest.Failed) // 11 hours after it succeeded
	hours(2)
	abandoned := s.place(t, s.service.Burn, 4, ramptest.ResultNever())
	hours(30)
	_, err := s.Abandon(t.Context(), abandoned.UUID, decided)
	require.NoError(t, err)
	hours(3)
	whole := s.books(t, s.begin, from.Add(support.Overlap))

	slices.Sort(live)
	live = slices.Compact(live)
	live = slices.DeleteFunc(live, func(f string) bool { return strings.HasPrefix(f, string(support.WaitsWithEvent)) }) // until it was abandoned
	var want []string
	for _, f := range whole.Findings {
		want = append(want, string(f.Kind)+" "+idOf(&f))
	}
	slices.Sort(want)
	assert.Equal(t, want, live)
	assert.ElementsMatch(t, []support.FindingKind{support.EndedOtherwise, support.EventWithoutOrder, support.EndedOtherwise}, kindsOf(whole))
}

func idOf(f *support.Finding) (id string) {
	for _, o := range f.Orders {
		id += o.UUID.String() + " "
	}
	for _, e := range f.Events {
		id += e.TxHash.Hex() + " "
	}
	return id
}

// What the result will tell is no finding before 13 hours, and neither is what is in a
// block that may still be replaced.
func TestReconcileWaitsForResultsAndFinalBlocks(t *testing.T) {
	s := newShop(t)
	s.place(t, s.service.Mint, 2, ramptest.ResultNever())
	books := s.books(t, s.begin, time.Time{})
	assert.Empty(t, books.Findings)
	assert.Equal(t, 1, books.Open)

	s.place(t, s.service.Mint, 3, ramptest.MintedByStranger())
	before := s.books(t, s.begin, s.service.Now().Add(-time.Hour))
	assert.Empty(t, before.Findings)
	strict, err := support.New(support.Config{Store: s.store, Chain: s.chain, Proof: &ramp.Proof{AnyFailure: true}, Confirmations: 2000, Products: []ramp.Product{product}})
	require.NoError(t, err)
	final, err := strict.Reconcile(t.Context(), s.begin, time.Time{})
	require.NoError(t, err)
	assert.Empty(t, final.Findings, "its block has 720 confirmations")
	assert.Equal(t, []support.FindingKind{support.EventWithoutOrder}, kindsOf(s.books(t, s.begin, time.Time{})))
}

// Between two runs, the chain replaces every block since an event, and all events move
// to a new one. What was right stays right, and what was found is found again.
func TestAReorganizationBetweenTwoRuns(t *testing.T) {
	s := newShop(t)
	s.place(t, s.service.Mint, 2, ramptest.Reorganized(), ramptest.ResultLate(5*time.Hour))
	s.place(t, s.service.Mint, 3)
	s.place(t, s.service.Mint, 4, ramptest.MintedByStranger())
	first := s.books(t, s.begin, time.Time{})
	require.Equal(t, []support.FindingKind{support.EventWithoutOrder}, kindsOf(first))
	assert.Equal(t, 1, first.Open)

	s.service.Advance(4 * time.Hour)
	second := s.books(t, first.To.Add(-support.Overlap), time.Time{})
	require.Equal(t, []support.FindingKind{support.EventWithoutOrder}, kindsOf(second))
	assert.Zero(t, second.Open)
	before, now := first.Findings[0].Events[0], second.Findings[0].Events[0]
	assert.Equal(t, before.TxHash, now.TxHash)
	assert.Greater(t, now.Block, before.Block)
	whole := s.books(t, s.begin, time.Time{})
	assert.Equal(t, kindsOf(second), kindsOf(whole))
	assert.Equal(t, first.Chain[0].Tokens, whole.Chain[0].Tokens)
}

func TestErasedPlayersKeepTheBooksClosed(t *testing.T) {
	s := newShop(t)
	for _, o := range []*ramptest.Order{s.place(t, s.service.Mint, 2), s.place(t, s.service.Burn, 1), s.place(t, s.service.Mint, 3, ramptest.TransactionFails())} {
		s.change(o.UUID, func(stored *ramp.Order) { stored.SessionID, stored.UserAddress = "erased-1", "erased-1" })
	}
	books := s.books(t, s.begin, time.Time{})
	assert.Empty(t, books.Findings)
	assert.Equal(t, "1.95", books.Totals[0].Moved.String())
}

func TestNodesWithSmallRangesAndRateLimits(t *testing.T) {
	s := newShop(t)
	for range 5 {
		s.place(t, s.service.Mint, 2)
	}
	s.place(t, s.service.Mint, 3, ramptest.MintedByStranger())
	want := s.books(t, s.begin, time.Time{})
	require.Len(t, want.Findings, 1)
	inner := s.service.Client().Transport
	limited := 0
	chain, err := ramp.NewRPC(ramp.RPCConfig{URL: s.service.RPCURL(ramp.Testnet), Retries: 3, BatchSize: 7, HTTPClient: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		var call struct {
			Method string
			Params []struct{ FromBlock, ToBlock ramp.Quantity }
		}
		answer := func(status int, text string) (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
		}
		if limited++; limited%40 == 0 {
			return answer(http.StatusTooManyRequests, `{"jsonrpc":"2.0","id":1,"error":{"code":-32005,"message":"rate limit"}}`)
		}
		if json.Unmarshal(body, &call) == nil && call.Method == "eth_getLogs" {
			from, _ := call.Params[0].FromBlock.Uint64()
			to, _ := call.Params[0].ToBlock.Uint64()
			if to-from >= 100 {
				return answer(http.StatusOK, `{"jsonrpc":"2.0","id":`+idIn(body)+`,"error":{"code":-32600,"message":"block range is too wide"}}`)
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		return inner.RoundTrip(r)
	})}})
	require.NoError(t, err)
	slow, err := support.New(support.Config{Store: s.store, Chain: chain, Proof: &ramp.Proof{AnyFailure: true}, Products: []ramp.Product{product}})
	require.NoError(t, err)
	got, err := slow.Reconcile(t.Context(), s.begin, want.To)
	require.NoError(t, err)
	assert.Equal(t, want.Findings[0].Events, got.Findings[0].Events)
	assert.Equal(t, want.Totals, got.Totals)
	assert.Greater(t, limited, 50)
}

func idIn(body []byte) string {
	var call struct{ ID json.RawMessage }
	_ = json.Unmarshal(body, &call)
	return string(call.ID)
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestTheBooksAsTextJSONAndCSV(t *testing.T) {
	s := newShop(t)
	s.place(t, s.service.Mint, 4)
	lost := s.place(t, s.service.Burn, 3, ramptest.ResultNever())
	s.service.Advance(13 * time.Hour)
	s.change(lost.UUID, func(o *ramp.Order) { o.SessionID = "=evil\n1" })
	books := s.books(t, s.begin, time.Time{})

	text := books.Text()
	var findings, totals bytes.Buffer
	require.NoError(t, books.WriteCSV(&findings))
	require.NoError(t, books.WriteTotalsCSV(&totals))
	for _, part := range []string{"gold", "findings: 1", "waits_with_event: its result never came", "matched by user, token", lost.UUID.String(), lost.TxHash.Hex(), `session =evil\n1,`} {
		assert.Contains(t, text, part)
	}
	rows, err := csv.NewReader(&findings).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 3)
	assert.Equal(t, []string{"1", "waits_with_event", "order", lost.UUID.String(), "burn", "3", "'=evil\n1"}, []string{rows[1][0], rows[1][1], rows[1][4], rows[1][6], rows[1][8], rows[1][10], rows[1][12]})
	assert.Equal(t, lost.TxHash.Hex(), rows[2][14])
	rows, err = csv.NewReader(&totals).ReadAll()
	require.NoError(t, err)
	var figures []string
	for _, row := range rows[1:] {
		figures = append(figures, strings.Join(row[2:], " "))
	}
	assert.Equal(t, []string{
		"orders gold mint succeeded orders 1", "orders gold mint failed orders 0", "orders gold mint abandoned orders 0",
		"orders gold mint taken item_gold 100", "orders gold mint ordered tokens 4", "orders gold mint moved tokens 3.9", "orders gold mint fees tokens 0.1",
		"chain " + token.Hex() + " mint events events 2", "chain " + token.Hex() + " mint moved tokens 4",
		"chain " + token.Hex() + " burn events events 1", "chain " + token.Hex() + " burn moved tokens 3",
	}, figures)
	whole, err := json.Marshal(books)
	require.NoError(t, err)
	var read struct {
		Totals   []map[string]any
		Counts   map[string]int
		Findings []struct {
			Kind, By string
			Orders   []map[string]any
			Events   []map[string]any
		}
	}
	require.NoError(t, json.Unmarshal(whole, &read))
	assert.Equal(t, "3.9", read.Totals[0]["moved"])
	assert.Equal(t, map[string]int{"ambiguous": 0, "differs": 0, "ended_otherwise": 0, "event_without_order": 0, "order_without_event": 0,
		"waits_with_event": 1, "waits_without_event": 0}, read.Counts)
	assert.Equal(t, lost.UUID.String(), read.Findings[0].Orders[0]["uuid"])
	assert.Equal(t, "3", read.Findings[0].Events[0]["tokens"])
}

func TestReconcileNamesWhatIsMissing(t *testing.T) {
	s := newShop(t)
	blind, err := support.New(support.Config{Store: newStudio(t).store})
	require.NoError(t, err)
	_, err = blind.Reconcile(t.Context(), time.Time{}, time.Time{})
	assert.EqualError(t, err, "ramp: Config.Chain is required; Config.Store must be a Ledger; Config.Products is required; from is required")
	s.service.FailRPC(-32601)
	_, err = s.Reconcile(t.Context(), s.begin, time.Time{})
	assert.ErrorIs(t, err, ramp.RPCMethodNotFound)
}
