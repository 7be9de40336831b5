package support_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/support"
)

// studio is a game in memory, with the service, its chain, and support.
type studio struct {
	*support.Orders
	store     ramp.Store
	chain     *ramp.RPC
	proof     ramp.Proof
	service   *ramptest.Service
	validator common.Address
	client    *ramp.Client
	log       bytes.Buffer

	skew    time.Duration // of the game's clock
	session string        // of the next order

	mu        sync.Mutex
	gold      int64 // of all sessions
	conflicts []*ramp.ConflictError
}

func (s *studio) Authenticate(context.Context, ramp.Session) error { return nil }

func (s *studio) Assets(context.Context, ramp.Session) (*ramp.Player, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &ramp.Player{Assets: []ramp.Asset{{ID: "item_gold", Balance: ramp.NewAmount(s.gold)}}}, nil
}

func (s *studio) apply(_ context.Context, step ramp.Step) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, asset := range step.Effect.Assets {
		delta, err := step.Effect.Delta(asset).Int64()
		if err != nil {
			return err
		}
		s.gold += delta
	}
	return nil
}

func (s *studio) conflict(_ context.Context, c *ramp.ConflictError, _ *ramp.Result) error {
	s.conflicts = append(s.conflicts, c)
	return nil
}

// newStudio returns a studio that searches ten minutes around an order. Options change
// how.
func newStudio(t *testing.T, options ...func(*support.Config)) *studio {
	t.Helper()
	s := &studio{gold: 1000, session: "session-1"}
	key, err := ramp.TextKey("my_secret_salt_value_!@#$%^&*")
	require.NoError(t, err)
	signer, err := ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef")
	require.NoError(t, err)
	s.validator = signer.Address()
	s.store, err = ramp.NewMemoryStore(ramp.MemoryStoreConfig{Apply: s.apply})
	require.NoError(t, err)
	s.service = ramptest.Start(t, ramptest.Config{PerOrder: true, Key: key, Validator: s.validator, Handler: http.NotFoundHandler(), Books: ramptest.BooksOff})
	handler, err := ramp.NewHandler(ramp.HandlerConfig{Terms: anyTerms, Players: s, Store: s.store, Key: key, Signer: signer, OnConflict: s.conflict, Now: func() time.Time { return s.service.Now().Add(s.skew) },
		Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	s.service.SetHandler(handler)
	s.client, err = ramp.NewClient(ramp.ClientConfig{URL: s.service.URL(), Key: key, HTTPClient: s.service.Client()})
	require.NoError(t, err)
	chain, err := ramp.NewRPC(ramp.RPCConfig{URL: s.service.RPCURL(ramp.Testnet), HTTPClient: s.service.Client(), Retries: -1})
	require.NoError(t, err)
	s.chain = chain
	s.proof = ramp.Proof{Contracts: []common.Address{token}, Payers: []common.Address{s.service.Payer()}, Decimals: map[common.Address]int{token: 18}}
	config := support.Config{Store: s.store, Chain: chain, Proof: &s.proof, Validators: []common.Address{s.validator},
		Before: 5 * time.Minute, After: 5 * time.Minute, Now: s.service.Now, Logger: slog.New(slog.NewJSONHandler(&s.log, nil))}
	for _, o := range options {
		o(&config)
	}
	s.Orders, err = support.New(config)
	require.NoError(t, err)
	return s
}

var token = common.HexToAddress("0x70c3")

// request is an initialize call for one gold a token.
func request() ramp.InitializeRequest {
	item := []ramp.Item{{ID: "item_gold", Amount: ramp.NewAmount(100), IconURL: "https://example.com/gold.png"}}
	return ramp.InitializeRequest{Intent: ramp.InitializeIntent{Network: ramp.Testnet, ProjectID: "project-1",
		Token: "0x00000000000000000000000000000000000070c3", Materials: item, Outputs: item}}
}

// mint starts a mint, and lets an hour pass.
func (d *studio) mint(t *testing.T, faults ...ramptest.Fault) uuid.UUID {
	t.Helper()
	order := d.place(t, d.service.Mint, faults...)
	d.service.Advance(time.Hour)
	return order.UUID
}

type placer = func(context.Context, uuid.UUID, ramp.Session, ramp.Amount, ...ramptest.Fault) (*ramptest.Order, error)

// place starts an order, and lets its transaction end.
func (d *studio) place(t *testing.T, by placer, faults ...ramptest.Fault) *ramptest.Order {
	t.Helper()
	started, err := d.client.Initialize(t.Context(), request())
	require.NoError(t, err)
	order, err := by(t.Context(), started.UUID, ramp.Session{ID: d.session, Token: ramp.NewAccessToken("token-1")}, ramp.NewAmount(1),
		append(faults, ramptest.TransactionType(7))...)
	require.NoError(t, err)
	d.service.Advance(time.Minute)
	return order
}

func (d *studio) record(t *testing.T) (record map[string]any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(d.log.Bytes(), &record))
	d.log.Reset()
	return record
}

func TestSupportShowsTheTransactionsThatMayBeTheOrders(t *testing.T) {
	type seen struct{ succeeded, proven, signed bool }
	for name, c := range map[string]struct {
		fault ramptest.Fault
		want  []seen
	}{
		"a transaction whose result never came":     {ramptest.ResultNever(), []seen{{true, true, true}}},
		"a failed transaction":                      {ramptest.TransactionFails(), []seen{{false, true, true}}},
		"a transaction that never got into a block": {ramptest.StaysPending(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := newStudio(t)
			d.service.Advance(3 * time.Hour)
			before := d.mint(t) // of the same player, an hour ago
			id := d.mint(t, c.fault)
			d.service.Advance(2 * time.Hour)
			report, err := d.Show(t.Context(), id)
			require.NoError(t, err)
			assert.Equal(t, id, report.Order.UUID)
			require.Len(t, report.Candidates, len(c.want))
			for i, want := range c.want {
				got := report.Candidates[i]
				assert.Equal(t, want, seen{got.Evidence.Succeeded, got.Unproven == nil, got.Signed})
				assert.WithinDuration(t, report.Order.AcceptedAt, got.Time, time.Minute)
				assert.True(t, report.FirstBlock <= got.Block && got.Block <= report.LastBlock)
				assert.Equal(t, d.service.Payer(), got.Evidence.FeePayer)
			}
			assert.Greater(t, report.NewestBlock, report.LastBlock, "two hours of blocks are more than it reads")

			report, err = d.Show(t.Context(), before)
			require.NoError(t, err)
			require.NotEmpty(t, report.Candidates)
			assert.Equal(t, report.Order.TxHash, report.Candidates[0].Hash.Hex(), "its own comes first")
			text, err := json.Marshal(report)
			require.NoError(t, err)
			assert.Contains(t, string(text), `"direction":"mint","assets":[{"id":"item_gold","amount":"100"}]`)
			assert.Contains(t, string(text), `"proven":true`)
		})
	}
}

func TestSupportFindsTheTransactionAlthoughTheClocksDiffer(t *testing.T) {
	for _, skew := range []time.Duration{-2 * time.Minute, 2 * time.Minute} {
		t.Run(skew.String(), func(t *testing.T) {
			d := newStudio(t)
			d.service.Advance(time.Hour)
			d.skew = skew
			id := d.mint(t, ramptest.ResultNever())
			report, err := d.Show(t.Context(), id)
			require.NoError(t, err)
			assert.Len(t, report.Candidates, 1)
			assert.WithinDuration(t, d.service.Now().Add(skew-time.Hour-time.Minute), report.Order.AcceptedAt, time.Second)
		})
	}
}

func TestSupportShowsTheOrderWithoutTheChain(t *testing.T) {
	d := newStudio(t)
	id := d.mint(t, ramptest.ResultNever())
	d.service.FailRPC(-32601)
	report, err := d.Show(t.Context(), id)
	assert.ErrorIs(t, err, ramp.RPCMethodNotFound)
	require.NotNil(t, report)
	assert.Equal(t, ramp.OrderAccepted, report.Order.State)

	_, err = d.Show(t.Context(), uuid.New())
	assert.ErrorIs(t, err, ramp.ErrOrderUnknown)
}

// limited is a node that takes few blocks in a query of logs, and few calls in a batch.
type limited struct {
	http.RoundTripper
	rejected map[string]int
}

func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var query struct {
		ID     json.Number
		Params []struct{ FromBlock, ToBlock hexutil.Uint64 }
	}
	var batch []json.RawMessage
	var answer string
	switch {
	case json.Unmarshal(body, &batch) == nil && len(batch) > 7:
		l.rejected["batch"]++
		answer = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batch too large"}}`
	case bytes.Contains(body, []byte("eth_getLogs")) && json.Unmarshal(body, &query) == nil && query.Params[0].ToBlock-query.Params[0].FromBlock >= 100:
		l.rejected["range"]++
		answer = `{"jsonrpc":"2.0","id":` + query.ID.String() + `,"error":{"code":-32602,"message":"Block range limit exceeded"}}`
	default:
		return l.RoundTripper.RoundTrip(r)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(answer)), Request: r}, nil
}

func TestSupportShowsTheSameOnANodeWithSmallLimits(t *testing.T) {
	search := func(c *support.Config) { c.Before, c.After = 5*time.Minute, 30*time.Minute }
	d := newStudio(t, search)
	d.service.Advance(time.Hour)
	id := d.mint(t, ramptest.ResultNever())
	want, err := d.Show(t.Context(), id)
	require.NoError(t, err)
	require.Len(t, want.Candidates, 1)

	node := limited{d.service.Client().Transport, map[string]int{}}
	chain, err := ramp.NewRPC(ramp.RPCConfig{URL: d.service.RPCURL(ramp.Testnet), HTTPClient: &http.Client{Transport: node}, Retries: -1})
	require.NoError(t, err)
	config := support.Config{Store: d.store, Chain: chain, Proof: &d.proof, Validators: []common.Address{d.validator}}
	search(&config)
	orders, err := support.New(config)
	require.NoError(t, err)
	got, err := orders.Show(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, want, got)
	assert.Equal(t, []bool{true, true}, []bool{node.rejected["batch"] > 0, node.rejected["range"] > 0}, "the limits were met")
}

func TestADecisionIsLoggedWithWhoAndWhy(t *testing.T) {
	d := newStudio(t)
	waits, over := d.mint(t, ramptest.StaysPending()), d.mint(t)
	for _, missing := range [][2]string{{"", "why"}, {"alice", ""}, {" ", "why"}, {"alice", "\n"}} {
		_, err := d.Abandon(t.Context(), waits, support.Decision{Who: missing[0], Reason: missing[1]})
		var wrong *ramp.InvalidError
		assert.ErrorAs(t, err, &wrong)
	}
	assert.Empty(t, d.log.String())
	before := d.gold

	step, err := d.Abandon(t.Context(), waits, support.Decision{Who: "alice@studio", Reason: "case 17: nothing on the chain after a day"})
	require.NoError(t, err)
	assert.Equal(t, ramp.GiveBack, step.Effect.Kind)
	assert.Equal(t, "alice@studio: case 17: nothing on the chain after a day", step.Order.Reason)
	assert.Greater(t, d.gold, before)
	record := d.record(t)
	assert.Equal(t, []any{"WARN", "ramp: order abandoned", waits.String(), "alice@studio", "case 17: nothing on the chain after a day", "mint", "give back +100 item_gold", true},
		[]any{record["level"], record["msg"], record["uuid"], record["who"], record["reason"], record["direction"], record["effect"], record["new"]})

	_, err = d.Abandon(t.Context(), waits, support.Decision{Who: "bob", Reason: "again"})
	require.NoError(t, err)
	assert.Equal(t, false, d.record(t)["new"])
	_, err = d.Abandon(t.Context(), over, support.Decision{Who: "bob", Reason: "a mistake"})
	assert.ErrorIs(t, err, ramp.ErrOrderFinished)
	record = d.record(t)
	assert.Equal(t, []any{"ERROR", "ramp: order not abandoned", "bob"}, []any{record["level"], record["msg"], record["who"]})

	_, err = support.New(support.Config{Before: -1})
	assert.EqualError(t, err, "ramp: Config.Store is required; Config.Before must not be negative")
}

// What Proof does not accept ends no order, whoever decides.
func TestSupportRejectsATransactionThatProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newStudio(t)
		before := d.mint(t) // of the same player
		id := d.mint(t, ramptest.ResultNever())
		burn := d.place(t, d.service.Burn, ramptest.ResultNever()).UUID
		gold := d.gold
		earlier, err := d.Show(t.Context(), before)
		require.NoError(t, err)
		decided := support.Decision{Who: "alice", Reason: "case 19"}

		_, err = d.Finish(t.Context(), id, common.Hash{1}, support.Decision{Who: " ", Reason: "case 19"})
		assert.EqualError(t, err, "ramp: Decision.Who is required")
		_, err = d.Finish(t.Context(), burn, earlier.Candidates[0].Hash, decided)
		assert.ErrorIs(t, err, ramp.ErrNotProven, "a mint for a burn")
		_, err = d.Finish(t.Context(), id, common.Hash{1}, decided)
		assert.ErrorIs(t, err, ramp.ErrNotFound, "no such transaction")

		blind, err := support.New(support.Config{Store: d.store, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		_, err = blind.Finish(t.Context(), id, common.Hash{1}, decided)
		assert.EqualError(t, err, "ramp: Config.Chain is required")
		_, err = support.New(support.Config{Store: d.store, Chain: d.chain})
		assert.EqualError(t, err, "ramp: Config.Proof is required")
		_, err = support.New(support.Config{Store: d.store, Chain: d.chain, Proof: &ramp.Proof{}})
		assert.ErrorContains(t, err, "Config.Proof.Payers is required, unless AnyFailure is set")
		assert.Equal(t, gold, d.gold, "nothing moved")
	})
}

// Giving back what became tokens pays twice.
func TestSupportAbandonsNoOrderWhoseTransactionIsOnTheChain(t *testing.T) {
	d := newStudio(t)
	id := d.mint(t, ramptest.ResultNever())
	decided := support.Decision{Who: "alice", Reason: "case 21"}
	_, err := d.Abandon(t.Context(), id, decided)
	var candidate *support.CandidateError
	require.ErrorAs(t, err, &candidate)
	report, err := d.Show(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, report.Candidates[0].Hash, candidate.Candidate.Hash)
	assert.EqualValues(t, 900, d.gold)

	decided.Anyway = true
	step, err := d.Abandon(t.Context(), id, decided)
	require.NoError(t, err)
	assert.Equal(t, ramp.GiveBack, step.Effect.Kind)
	_, err = d.Finish(t.Context(), id, candidate.Candidate.Hash, decided)
	var conflict *ramp.ConflictError
	assert.ErrorAs(t, err, &conflict, "the mint was abandoned, and succeeded")
	assert.EqualValues(t, 1000, d.gold)
}

func TestFinishDemandsTheConfirmations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newStudio(t)
		id := d.mint(t, ramptest.ResultNever())
		report, err := d.Show(t.Context(), id)
		require.NoError(t, err)
		strict, err := support.New(support.Config{Store: d.store, Chain: d.chain, Proof: &d.proof, Confirmations: 1_000_000, Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		_, err = strict.Finish(t.Context(), id, report.Candidates[0].Hash, support.Decision{Who: "alice", Reason: "case 22"})
		assert.ErrorContains(t, err, "of 1000000 confirmations")
		assert.EqualValues(t, 900, d.gold)
	})
}

// Two projects with keys of their own can share a store.
func TestSupportOfOneProjectLeavesTheOthersAlone(t *testing.T) {
	d := newStudio(t)
	id := d.mint(t, ramptest.ResultNever())
	other, err := support.New(support.Config{Store: d.store, ProjectID: "project-2", Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	_, err = other.Show(t.Context(), id)
	assert.ErrorIs(t, err, ramp.ErrOrderConflict)
	_, err = other.Abandon(t.Context(), id, support.Decision{Who: "alice", Reason: "case 20"})
	assert.ErrorIs(t, err, ramp.ErrOrderConflict)
	live, err := support.New(support.Config{Store: networked{d.store}, Network: ramp.Mainnet})
	require.NoError(t, err)
	_, err = live.Show(t.Context(), id)
	assert.ErrorContains(t, err, "network")
	assert.EqualValues(t, 900, d.gold)
}

// networked is a store whose orders are of the testnet.
type networked struct{ ramp.Store }

func (s networked) Update(ctx context.Context, id uuid.UUID, next ramp.Transition) (ramp.Step, error) {
	return s.Store.Update(ctx, id, func(stored *ramp.Order) (ramp.Step, error) {
		order := *stored
		order.Network = ramp.Testnet
		return next(&order)
	})
}

func TestATableOfOrders(t *testing.T) {
	at := time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)
	gold := []ramp.AssetAmount{{ID: "item_gold", Amount: ramp.NewAmount(100)}}
	assert.Equal(t, ""+
		"UUID                                  ORDER  ASSETS         STATE     ACCEPTED              ENDED                 TRANSACTION  SESSION    ADDRESS\n"+
		"58dbfbe4-5e32-4743-a76b-9355914db260  mint   100 item_gold  accepted  2026-11-01T08:00:00Z  -                     -            session-1  0x51\n"+
		"58dbfbe4-5e32-4743-a76b-9355914db260  mint   100 item_gold  failed    2026-11-01T08:00:00Z  2026-11-01T08:01:00Z  0x7a         a\\nb       0x51\n",
		support.Table([]ramp.Order{
			{UUID: uuid.MustParse("58dbfbe4-5e32-4743-a76b-9355914db260"), Direction: ramp.Mint, Assets: gold, State: ramp.OrderAccepted,
				SessionID: "session-1", UserAddress: "0x51", AcceptedAt: at},
			{UUID: uuid.MustParse("58dbfbe4-5e32-4743-a76b-9355914db260"), Direction: ramp.Mint, Assets: gold, State: ramp.OrderFailed,
				SessionID: "a\nb", UserAddress: "0x51", AcceptedAt: at, FinishedAt: at.Add(time.Minute), TxHash: "0x7a"},
		}))
}
