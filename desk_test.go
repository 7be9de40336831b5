package ramp_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// deskOf returns a desk for a game in memory, with the service and its chain.
type deskOf struct {
	*ramp.Desk
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
	d.vault = v
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
	started, err := d.client.Initialize(t.Context(), testRequest())
	require.NoError(t, err)
	_, err = d.service.Mint(t.Context(), started.UUID, ramp.Session{ID: "session-1", Token: ramp.NewAccessToken("token-1")}, ramp.NewAmount(1), faults...)
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
