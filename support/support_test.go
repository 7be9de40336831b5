package support_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
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
	store   ramp.Store
	service *ramptest.Service
	client  *ramp.Client
	log     bytes.Buffer

	mu   sync.Mutex
	gold int64 // of session-1
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

func newStudio(t *testing.T) *studio {
	t.Helper()
	s := &studio{gold: 1000}
	key, err := ramp.TextKey("my_secret_salt_value_!@#$%^&*")
	require.NoError(t, err)
	signer, err := ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef")
	require.NoError(t, err)
	s.store, err = ramp.NewMemoryStore(ramp.MemoryStoreConfig{Apply: s.apply})
	require.NoError(t, err)
	s.service = ramptest.Start(t, ramptest.Config{Key: key, Validator: signer.Address(), Handler: http.NotFoundHandler(), Books: ramptest.BooksOff})
	handler, err := ramp.NewHandler(ramp.HandlerConfig{Players: s, Store: s.store, Key: key, Signer: signer, Now: s.service.Now,
		Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	s.service.SetHandler(handler)
	s.client, err = ramp.NewClient(ramp.ClientConfig{URL: s.service.URL(), Key: key, HTTPClient: s.service.Client()})
	require.NoError(t, err)
	chain, err := ramp.NewRPC(ramp.RPCConfig{URL: s.service.RPCURL(ramp.Testnet), HTTPClient: s.service.Client(), Retries: -1})
	require.NoError(t, err)
	s.Orders, err = support.New(support.Config{Store: s.store, Chain: chain, Blocks: 300, Now: s.service.Now,
		Logger: slog.New(slog.NewJSONHandler(&s.log, nil))})
	require.NoError(t, err)
	return s
}

// request is an initialize call for one gold a token.
func request() ramp.InitializeRequest {
	item := []ramp.Item{{ID: "item_gold", Amount: ramp.NewAmount(100), IconURL: "https://example.com/gold.png"}}
	return ramp.InitializeRequest{Intent: ramp.InitializeIntent{Network: ramp.Testnet, ProjectID: "project-1",
		Token: "0x00000000000000000000000000000000000070c3", Materials: item, Outputs: item}}
}

// mint starts a mint of session-1, and lets an hour pass.
func (d *studio) mint(t *testing.T, faults ...ramptest.Fault) uuid.UUID {
	t.Helper()
	return d.order(t, d.service.Mint, faults...)
}

type placer = func(context.Context, uuid.UUID, ramp.Session, ramp.Amount, ...ramptest.Fault) (*ramptest.Order, error)

func (d *studio) order(t *testing.T, place placer, faults ...ramptest.Fault) uuid.UUID {
	t.Helper()
	started, err := d.client.Initialize(t.Context(), request())
	require.NoError(t, err)
	_, err = place(t.Context(), started.UUID, ramp.Session{ID: "session-1", Token: ramp.NewAccessToken("token-1")}, ramp.NewAmount(1), faults...)
	require.NoError(t, err)
	d.service.Advance(time.Hour)
	return started.UUID
}

func (d *studio) record(t *testing.T) (record map[string]any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(d.log.Bytes(), &record))
	d.log.Reset()
	return record
}

func TestSupportShowsWhatTheChainHasOfAPlayer(t *testing.T) {
	for name, c := range map[string]struct {
		fault ramptest.Fault
		want  []support.Activity
	}{
		"a transaction whose result never came":     {ramptest.ResultNever(), []support.Activity{{Success: true, Token: true}}},
		"a failed transaction":                      {ramptest.TransactionFails(), []support.Activity{{}}},
		"a transaction that never got into a block": {ramptest.StaysPending(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := newStudio(t)
			d.service.Advance(3 * time.Hour)
			before := d.mint(t) // of the same player, an hour ago
			id := d.mint(t, c.fault)
			report, err := d.Show(t.Context(), id)
			require.NoError(t, err)
			assert.Equal(t, id, report.Order.UUID)
			require.Len(t, report.Activity, len(c.want))
			for i, want := range c.want {
				got := report.Activity[i]
				assert.Equal(t, []bool{want.Success, want.Token}, []bool{got.Success, got.Token})
				assert.WithinDuration(t, report.Order.AcceptedAt, got.Time, time.Minute)
				assert.True(t, report.FirstBlock <= got.Block && got.Block <= report.LastBlock)
			}
			assert.LessOrEqual(t, report.LastBlock-report.FirstBlock, uint64(299))
			assert.Greater(t, report.NewestBlock, report.LastBlock, "an hour of blocks is more than it reads")

			report, err = d.Show(t.Context(), before)
			require.NoError(t, err)
			assert.Len(t, report.Activity, 1, "an hour before the other")
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

func TestADecisionIsLoggedWithWhoAndWhy(t *testing.T) {
	d := newStudio(t)
	waits, over := d.mint(t, ramptest.StaysPending()), d.mint(t)
	for _, missing := range [][2]string{{"", "why"}, {"alice", ""}, {" ", "why"}, {"alice", "\n"}} {
		_, err := d.Abandon(t.Context(), waits, missing[0], missing[1])
		var wrong *ramp.InvalidError
		assert.ErrorAs(t, err, &wrong)
	}
	assert.Empty(t, d.log.String())
	before := d.gold

	step, err := d.Abandon(t.Context(), waits, "alice@studio", "case 17: nothing on the chain after a day")
	require.NoError(t, err)
	assert.Equal(t, ramp.GiveBack, step.Effect.Kind)
	assert.Equal(t, "alice@studio: case 17: nothing on the chain after a day", step.Order.Reason)
	assert.Greater(t, d.gold, before)
	record := d.record(t)
	assert.Equal(t, []any{"WARN", "ramp: order abandoned", waits.String(), "alice@studio", "case 17: nothing on the chain after a day", "mint", "give back +100 item_gold", true},
		[]any{record["level"], record["msg"], record["uuid"], record["who"], record["reason"], record["direction"], record["effect"], record["new"]})

	_, err = d.Abandon(t.Context(), waits, "bob", "again")
	require.NoError(t, err)
	assert.Equal(t, false, d.record(t)["new"])
	_, err = d.Abandon(t.Context(), over, "bob", "a mistake")
	assert.ErrorIs(t, err, ramp.ErrOrderFinished)
	record = d.record(t)
	assert.Equal(t, []any{"ERROR", "ramp: order not abandoned", "bob"}, []any{record["level"], record["msg"], record["who"]})

	_, err = support.New(support.Config{Blocks: -1})
	assert.EqualError(t, err, "ramp: Config.Store is required; Config.Blocks must not be negative")
}

// A person ends an order by its transaction, so that nothing has to be moved by hand.
func TestSupportFinishesAnOrderByItsTransaction(t *testing.T) {
	for name, c := range map[string]struct {
		burn   bool
		faults []ramptest.Fault
		want   ramp.OrderState
		effect ramp.EffectKind
	}{
		"a mint that succeeded": {false, nil, ramp.OrderSucceeded, ramp.Nothing},
		"a mint that failed":    {false, []ramptest.Fault{ramptest.TransactionFails()}, ramp.OrderFailed, ramp.GiveBack},
		"a burn that succeeded": {true, nil, ramp.OrderSucceeded, ramp.Grant},
		"a burn that failed":    {true, []ramptest.Fault{ramptest.TransactionFails()}, ramp.OrderFailed, ramp.Nothing},
	} {
		t.Run(name, func(t *testing.T) {
			d := newStudio(t)
			place, direction := d.service.Mint, "mint"
			if c.burn {
				place, direction = d.service.Burn, "burn"
			}
			id := d.order(t, place, append(c.faults, ramptest.ResultNever())...)
			report, err := d.Show(t.Context(), id)
			require.NoError(t, err)
			require.Len(t, report.Activity, 1)
			tx := report.Activity[0].Hash

			step, err := d.Finish(t.Context(), id, tx, "alice", "case 18")
			require.NoError(t, err)
			assert.Equal(t, c.want, step.Order.State)
			assert.Equal(t, c.effect, step.Effect.Kind)
			assert.Equal(t, tx.Hex(), step.Order.TxHash)
			record := d.record(t)
			assert.Equal(t, []any{"WARN", "ramp: order finished", id.String(), "alice", "case 18", direction, tx.Hex(), step.Effect.String(), true},
				[]any{record["level"], record["msg"], record["uuid"], record["who"], record["reason"], record["direction"], record["tx_hash"], record["effect"], record["new"]})

			after := d.gold
			step, err = d.Finish(t.Context(), id, tx, "bob", "again")
			require.NoError(t, err)
			assert.False(t, step.New)
			assert.Equal(t, after, d.gold)
		})
	}
}

func TestSupportRefusesATransactionThatCannotBeTheOrders(t *testing.T) {
	d := newStudio(t)
	before := d.mint(t) // of the same player, an hour ago
	id := d.mint(t, ramptest.ResultNever())
	gold := d.gold
	earlier, err := d.Show(t.Context(), before)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		hash common.Hash
		who  string
		want string
	}{
		"no such transaction":        {common.Hash{1}, "alice", "transaction is not one of the user's in the blocks that were read"},
		"of an order an hour before": {earlier.Activity[0].Hash, "alice", "transaction is not one of the user's in the blocks that were read"},
		"nobody decides":             {common.Hash{1}, " ", "who is required"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := d.Finish(t.Context(), id, c.hash, c.who, "case 19")
			assert.EqualError(t, err, "ramp: "+c.want)
		})
	}

	another := request()
	another.Intent.Token = "0x00000000000000000000000000000000000070c4"
	place := func(request ramp.InitializeRequest) *ramptest.Order {
		started, err := d.client.Initialize(t.Context(), request)
		require.NoError(t, err)
		order, err := d.service.Mint(t.Context(), started.UUID, ramp.Session{ID: "session-1", Token: ramp.NewAccessToken("token-1")}, ramp.NewAmount(1))
		require.NoError(t, err)
		return order
	}
	order, other := place(request()), place(another)
	d.service.Advance(time.Minute)
	_, err = d.Finish(t.Context(), order.UUID, other.TxHash, "alice", "case 19")
	assert.EqualError(t, err, "ramp: transaction has no event of the order's token that names the user")

	blind, err := support.New(support.Config{Store: d.store, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	_, err = blind.Finish(t.Context(), id, common.Hash{1}, "alice", "case 19")
	assert.EqualError(t, err, "ramp: Config.Chain is required")

	assert.Equal(t, gold-200, d.gold, "nothing moved but what the two mints took")

	_, err = d.Abandon(t.Context(), id, "alice", "a mistake")
	require.NoError(t, err)
	report, err := d.Show(t.Context(), id)
	require.NoError(t, err)
	_, err = d.Finish(t.Context(), id, report.Activity[0].Hash, "alice", "case 19")
	var conflict *ramp.ConflictError
	assert.ErrorAs(t, err, &conflict, "the mint was abandoned, and succeeded")
	assert.Equal(t, gold-100, d.gold)
}

// Two projects with keys of their own can share a store.
func TestSupportOfOneProjectLeavesTheOthersAlone(t *testing.T) {
	d := newStudio(t)
	id := d.mint(t, ramptest.ResultNever())
	other, err := support.New(support.Config{Store: d.store, ProjectID: "project-2", Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	_, err = other.Show(t.Context(), id)
	assert.ErrorIs(t, err, ramp.ErrOrderConflict)
	_, err = other.Abandon(t.Context(), id, "alice", "case 20")
	assert.ErrorIs(t, err, ramp.ErrOrderConflict)
	assert.EqualValues(t, 900, d.gold)
}
