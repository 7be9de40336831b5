package support_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/support"
)

// studio is a game in memory, with the service, its chain, and support.
type studio struct {
	*backoffice
	store   *ledger
	chain   *ramp.RPC
	proof   rampproof.Config // without its chain
	service *ramptest.Service
	client  *ramp.Client
	key     ramp.HMACKey
	log     bytes.Buffer

	session string // of the next order

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

func newStudio(t *testing.T) *studio {
	t.Helper()
	s := &studio{gold: 1000, session: "session-1"}
	s.open(t, time.Second)
	s.proof = rampproof.Config{Contracts: []common.Address{token}, Payers: []common.Address{s.service.Payer()},
		Decimals: map[common.Address]int{token: 18}}
	s.support()
	return s
}

// support begins again, with the proof as it is now.
func (s *studio) support() {
	s.backoffice = ramp.Must(newBackoffice(backofficeConfig{Store: s.store, Proof: proofOn(s.chain, &s.proof),
		Now:    s.service.Now,
		Logger: slog.New(slog.NewJSONHandler(&s.log, nil))}))
}

// open starts the service and the game.
func (s *studio) open(t *testing.T, blockTime time.Duration) {
	t.Helper()
	s.store = newLedger(t, s.apply)
	s.key = ramp.Must(ramp.TextKey("my_secret_salt_value_!@#$%^&*"))
	signer := ramp.Must(ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"))
	s.service = ramptest.Start(t,
		ramptest.Config{PerOrder: true, Key: s.key, Validator: signer.Address(), Handler: http.NotFoundHandler(),
			Books: ramptest.BooksOff, BlockTime: blockTime})
	handler := ramp.Must(ramp.NewHandler(ramp.HandlerConfig{Terms: anyTerms, Players: s, Store: s.store, Key: s.key,
		Signer: signer, OnConflict: s.conflict,
		Now: s.service.Now, Logger: quiet}))
	s.service.SetHandler(handler)
	s.client = ramp.Must(ramp.NewClient(ramp.ClientConfig{URL: s.service.URL(), Key: s.key,
		HTTPClient: s.service.Client()}))
	s.chain = ramp.Must(ramp.NewRPC(ramp.RPCConfig{URL: s.service.RPCURL(ramp.Testnet), ChainID: 7002,
		HTTPClient: s.service.Client(), Retries: -1}))
}

var token = common.HexToAddress("0x70c3")

// anyTerms accept every order.
var anyTerms, _ = ramp.NewTerms(ramp.TermsConfig{Any: true})

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
	started := ramp.Must(d.client.Initialize(t.Context(), request()))
	order := ramp.Must(by(t.Context(), started.UUID, ramp.Session{ID: d.session, Token: ramp.NewAccessToken("token-1")},
		ramp.NewAmount(1),
		append(faults, ramptest.TransactionType(7))...))
	d.service.Advance(time.Minute)
	return order
}

// witness ends a mint and a burn of somebody else.
func (d *studio) witness(t *testing.T) {
	t.Helper()
	session := d.session
	d.session = "session-2"
	d.place(t, d.service.Mint)
	d.place(t, d.service.Burn)
	d.session = session
}

func (d *studio) record(t *testing.T) (record map[string]any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(d.log.Bytes(), &record))
	d.log.Reset()
	return record
}

func TestSupportShowsTheTransactionsThatMayBeTheOrders(t *testing.T) {
	d := newStudio(t)
	d.service.Advance(3 * time.Hour)
	d.mint(t) // of the same player, an hour ago
	lost := d.mint(t, ramptest.ResultNever())
	for _, fault := range []ramptest.Fault{ramptest.TransactionFails(), ramptest.StaysPending()} {
		report := ramp.Must(d.Show(t.Context(), d.mint(t, fault)))
		assert.Empty(t, report.Candidates, "it moved nothing")
	}
	report := ramp.Must(d.Show(t.Context(), lost))
	require.Len(t, report.Candidates, 1)
	c := report.Candidates[0]
	assert.Equal(t, "", c.Unproven)
	assert.WithinDuration(t, report.Order.AcceptedAt, c.Time, time.Minute)
	assert.True(t, report.FirstBlock <= c.Block && c.Block <= report.LastBlock)
	assert.Contains(t, report.Text(), "\nchain     blocks ")
	assert.Equal(t, d.service.Payer(), c.Evidence.FeePayer)
	assert.WithinDuration(t, d.service.Now(), report.LastTime, time.Second)

	text := ramp.Must(json.Marshal(report))
	var read support.Report
	require.NoError(t, json.Unmarshal(text, &read))
	assert.Equal(t, report, &read, "Go can read it back")
	assert.Contains(t, string(text), `"session_id":"session-1"`)
}

func TestADecisionIsLoggedWithWhoAndWhy(t *testing.T) {
	d := newStudio(t)
	d.witness(t)
	waits := d.mint(t, ramptest.StaysPending())
	for _, missing := range [][2]string{
		{"", "why"}, {"alice", ""}, {" ", "why"}, {"alice", "\n"},
		{"alice", "a\x00b"}, {"alice\xff", "why"}, {"alice", strings.Repeat("x", 4096-len("alice: ")+1)},
	} {
		decided := support.Decision{Who: missing[0], Reason: missing[1]}
		_, err := d.Abandon(t.Context(), waits, decided)
		var wrong *ramp.InvalidError
		assert.ErrorAs(t, err, &wrong)
		_, err = d.Finish(t.Context(), waits, common.Hash{1}, decided)
		assert.ErrorAs(t, err, &wrong)
	}
	assert.Empty(t, d.log.String())
	before := d.gold
	d.service.Advance(13 * time.Hour)

	step := ramp.Must(d.Abandon(t.Context(), waits,
		support.Decision{Who: "alice@studio", Reason: "case 17: nothing on the chain after a day"}))
	assert.Equal(t, ramp.GiveBack, step.Effect.Kind)
	assert.Equal(t, "alice@studio: case 17: nothing on the chain after a day", step.Order.Reason)
	assert.Greater(t, d.gold, before)
	record := d.record(t)
	assert.Equal(t,
		[]any{"WARN", "ramp: order abandoned", waits.String(), "alice@studio",
			"case 17: nothing on the chain after a day", "mint", "give back +100 item_gold", true},
		[]any{record["level"], record["msg"], record["uuid"], record["who"], record["reason"], record["direction"],
			record["effect"], record["new"]})

	_, err := d.Abandon(t.Context(), d.mint(t), support.Decision{Who: "bob", Reason: "a mistake"})
	assert.ErrorIs(t, err, ramp.ErrOrderFinished)
	record = d.record(t)
	assert.Equal(t, []any{"ERROR", "ramp: order not abandoned", "bob"},
		[]any{record["level"], record["msg"], record["who"]})

	_, err = newBackoffice(backofficeConfig{})
	assert.EqualError(t, err, "ramp: Config.Store is required")
}

func TestFinishDemandsADecisionAChainAndATransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newStudio(t)
		id, decided := d.mint(t, ramptest.ResultNever()), support.Decision{Who: "alice", Reason: "case 19"}
		_, err := d.Finish(t.Context(), id, common.Hash{1}, support.Decision{Who: " ", Reason: "case 19"})
		assert.EqualError(t, err, "ramp: Decision.Who is required")
		_, err = d.Finish(t.Context(), id, common.Hash{1}, decided)
		assert.ErrorIs(t, err, ramp.ErrNotFound, "no such transaction")
		blind := ramp.Must(newBackoffice(backofficeConfig{Store: d.store, Logger: quiet}))
		_, err = blind.Finish(t.Context(), id, common.Hash{1}, decided)
		assert.EqualError(t, err, "ramp: Config.Proof is required")

		report := ramp.Must(d.Show(t.Context(), id))
		deep := d.proof
		deep.Confirmations = 1_000_000
		strict := ramp.Must(newBackoffice(backofficeConfig{Store: d.store, Logger: quiet,
			Proof: proofOn(d.chain, &deep)}))
		_, err = strict.Finish(t.Context(), id, report.Candidates[0].Hash, decided)
		assert.ErrorContains(t, err, "of 1000000 confirmations")
		assert.EqualValues(t, 900, d.gold)
	})
}

// Two projects with keys of their own can share a store.
func TestSupportOfOneProjectLeavesTheOthersAlone(t *testing.T) {
	d := newStudio(t)
	id := d.mint(t, ramptest.ResultNever())
	other := ramp.Must(newBackoffice(backofficeConfig{Store: d.store, ProjectID: "project-2", Logger: quiet}))
	_, err := other.Show(t.Context(), id)
	assert.ErrorIs(t, err, ramp.ErrOrderForeign)
	_, err = other.Abandon(t.Context(), id, support.Decision{Who: "alice", Reason: "case 20"})
	assert.ErrorIs(t, err, ramp.ErrOrderForeign)
	live := ramp.Must(newBackoffice(backofficeConfig{Store: networked{d.store}, Network: ramp.Mainnet}))
	_, err = live.Show(t.Context(), id)
	assert.ErrorContains(t, err, "network")
	// it names no network
	ramp.Must(ramp.Must(newBackoffice(backofficeConfig{Store: d.store, Network: ramp.Mainnet})).Show(t.Context(), id))
	assert.NotContains(t, ramp.Must(command(t, other, "list", "-older", "0s")), id.String())
	assert.EqualValues(t, 900, d.gold)
	missing := uuid.New()
	lost, err := other.Lost(t.Context(), strings.NewReader(fmt.Sprintf(`{"msg":"ramp: call","uuid":%q,"state":"failed"}
{"msg":"ramp: call","uuid":%q,"state":"accepted"}`, id, missing)))
	assert.NoError(t, err, "the log is of both")
	assert.Equal(t, []support.Logged{{UUID: missing, State: ramp.OrderAccepted, Missing: true}}, lost)
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
