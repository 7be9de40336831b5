package ramp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// deskOf returns a desk for a game in memory, with the service and its chain.
type deskOf struct {
	*ramp.Desk
	game    *ramp.OrderGame
	service *ramptest.Service
	client  *ramp.Client
	vault   *vault
	log     bytes.Buffer
}

func newDesk(t *testing.T) *deskOf {
	t.Helper()
	d := &deskOf{}
	d.service = ramptest.Start(t, ramptest.Config{Key: testKey(t), Validator: testSigner(t).Address(), Handler: http.NotFoundHandler()})
	game, v := newOrderGame(t, func(c *ramp.OrderGameConfig) { c.Now = d.service.Now })
	d.game, d.vault = game, v
	handler, err := ramp.NewHandler(ramp.HandlerConfig{Game: game, Key: testKey(t), Signer: testSigner(t)})
	require.NoError(t, err)
	d.service.SetHandler(handler)
	d.client, err = ramp.NewClient(ramp.ClientConfig{URL: d.service.URL(), Key: testKey(t), HTTPClient: d.service.Client()})
	require.NoError(t, err)
	chain, err := ramp.NewRPC(ramp.RPCConfig{URL: d.service.RPCURL(ramp.Testnet), HTTPClient: d.service.Client(), Retries: -1})
	require.NoError(t, err)
	d.Desk, err = ramp.NewDesk(ramp.DeskConfig{Game: game, Chain: chain, Blocks: 300, Logger: slog.New(slog.NewJSONHandler(&d.log, nil))})
	require.NoError(t, err)
	return d
}

// mint starts a mint of session-1, and lets an hour pass.
func (d *deskOf) mint(t *testing.T, faults ...ramptest.Fault) uuid.UUID {
	t.Helper()
	return d.order(t, d.service.Mint, faults...)
}

type placer = func(context.Context, uuid.UUID, ramp.Session, ramp.Amount, ...ramptest.Fault) (*ramptest.Order, error)

func (d *deskOf) order(t *testing.T, place placer, faults ...ramptest.Fault) uuid.UUID {
	t.Helper()
	started, err := d.client.Initialize(t.Context(), testRequest())
	require.NoError(t, err)
	_, err = place(t.Context(), started.UUID, ramp.Session{ID: "session-1", Token: ramp.NewAccessToken("token-1")}, ramp.NewAmount(1), faults...)
	require.NoError(t, err)
	d.service.Advance(time.Hour)
	return started.UUID
}

func (d *deskOf) record(t *testing.T) (record map[string]any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(d.log.Bytes(), &record))
	d.log.Reset()
	return record
}

func TestADeskShowsWhatTheChainHasOfAPlayer(t *testing.T) {
	for name, c := range map[string]struct {
		fault ramptest.Fault
		want  []ramp.Activity
	}{
		"a transaction whose result never came":     {ramptest.ResultNever(), []ramp.Activity{{Success: true, Token: true}}},
		"a failed transaction":                      {ramptest.TransactionFails(), []ramp.Activity{{}}},
		"a transaction that never got into a block": {ramptest.StaysPending(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
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

func TestADeskShowsTheOrderWithoutTheChain(t *testing.T) {
	d := newDesk(t)
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
	d := newDesk(t)
	waits, over := d.mint(t, ramptest.StaysPending()), d.mint(t)
	for _, missing := range [][2]string{{"", "why"}, {"alice", ""}, {" ", "why"}, {"alice", "\n"}} {
		_, err := d.Abandon(t.Context(), waits, missing[0], missing[1])
		var wrong *ramp.InvalidError
		assert.ErrorAs(t, err, &wrong)
	}
	assert.Empty(t, d.log.String())
	before := d.vault.gold["session-1"]

	step, err := d.Abandon(t.Context(), waits, "alice@studio", "case 17: nothing on the chain after a day")
	require.NoError(t, err)
	assert.Equal(t, ramp.GiveBack, step.Effect.Kind)
	assert.Equal(t, "alice@studio: case 17: nothing on the chain after a day", step.Order.Reason)
	assert.Greater(t, d.vault.gold["session-1"], before)
	record := d.record(t)
	assert.Equal(t, []any{"WARN", "ramp: order abandoned", waits.String(), "alice@studio", "case 17: nothing on the chain after a day", "mint", "give back", true},
		[]any{record["level"], record["msg"], record["uuid"], record["who"], record["reason"], record["direction"], record["effect"], record["new"]})

	_, err = d.Abandon(t.Context(), waits, "bob", "again")
	require.NoError(t, err)
	assert.Equal(t, false, d.record(t)["new"])
	_, err = d.Abandon(t.Context(), over, "bob", "a mistake")
	assert.ErrorIs(t, err, ramp.ErrOrderFinished)
	record = d.record(t)
	assert.Equal(t, []any{"ERROR", "ramp: order not abandoned", "bob"}, []any{record["level"], record["msg"], record["who"]})

	_, err = ramp.NewDesk(ramp.DeskConfig{Blocks: -1})
	assertFields(t, err, "DeskConfig.Game is required", "DeskConfig.Blocks must not be negative")
}

// A person ends an order by its transaction, so that nothing has to be moved by hand.
func TestADeskFinishesAnOrderByItsTransaction(t *testing.T) {
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
			d := newDesk(t)
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
			assert.Equal(t, []any{"WARN", "ramp: order finished", id.String(), "alice", "case 18", direction, tx.Hex(), c.effect.String(), true},
				[]any{record["level"], record["msg"], record["uuid"], record["who"], record["reason"], record["direction"], record["tx_hash"], record["effect"], record["new"]})

			after := d.vault.gold["session-1"]
			step, err = d.Finish(t.Context(), id, tx, "bob", "again")
			require.NoError(t, err)
			assert.False(t, step.New)
			assert.Equal(t, after, d.vault.gold["session-1"])
		})
	}
}

func TestADeskRefusesATransactionThatCannotBeTheOrders(t *testing.T) {
	d := newDesk(t)
	before := d.mint(t) // of the same player, an hour ago
	id := d.mint(t, ramptest.ResultNever())
	gold := d.vault.gold["session-1"]
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
			assertFields(t, err, c.want)
		})
	}

	request := testRequest()
	request.Intent.Token = "0x00000000000000000000000000000000000070c4"
	place := func(request ramp.InitializeRequest) *ramptest.Order {
		started, err := d.client.Initialize(t.Context(), request)
		require.NoError(t, err)
		order, err := d.service.Mint(t.Context(), started.UUID, ramp.Session{ID: "session-1", Token: ramp.NewAccessToken("token-1")}, ramp.NewAmount(1))
		require.NoError(t, err)
		return order
	}
	order, other := place(testRequest()), place(request)
	d.service.Advance(time.Minute)
	_, err = d.Finish(t.Context(), order.UUID, other.TxHash, "alice", "case 19")
	assertFields(t, err, "transaction has no event of the order's token that names the user")

	blind, err := ramp.NewDesk(ramp.DeskConfig{Game: d.game})
	require.NoError(t, err)
	_, err = blind.Finish(t.Context(), id, common.Hash{1}, "alice", "case 19")
	assertFields(t, err, "DeskConfig.Chain is required")

	assert.Equal(t, gold-200, d.vault.gold["session-1"], "nothing moved but what the two mints took")

	_, err = d.Abandon(t.Context(), id, "alice", "a mistake")
	require.NoError(t, err)
	report, err := d.Show(t.Context(), id)
	require.NoError(t, err)
	_, err = d.Finish(t.Context(), id, report.Activity[0].Hash, "alice", "case 19")
	var conflict *ramp.ConflictError
	assert.ErrorAs(t, err, &conflict, "the mint was abandoned, and succeeded")
	assert.Equal(t, gold-100, d.vault.gold["session-1"])
}
