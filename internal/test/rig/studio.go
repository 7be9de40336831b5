package rig

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/ramptest"
	"github.com/token-ramp/ramp-go/support"
)

// Studio is a game in memory, with the service, its chain, and support.
type Studio struct {
	*Office
	Store   *Store
	Chain   *ramp.RPC
	Proof   rampproof.Config // without its chain
	Service *ramptest.Service
	Client  *ramp.Client
	key     ramp.HMACKey
	Log     bytes.Buffer // of the back office
	Calls   bytes.Buffer // of the handler

	Session string // of the next order

	mu        sync.Mutex
	Gold      int64 // of all sessions
	Conflicts []*ramp.ConflictError
}

// Candidate returns the only transaction that may be the order's own.
func (d *Studio) Candidate(t *testing.T, o *ramptest.PlacedOrder) support.Candidate {
	report := must.Get(d.Show(t.Context(), o.UUID))(t)
	if len(report.Candidates) != 1 {
		t.Fatalf("transactions that may be the order's own: %d, not 1", len(report.Candidates))
	}
	return report.Candidates[0]
}

func (s *Studio) Authenticate(context.Context, ramp.Session) error { return nil }

func (s *Studio) Assets(context.Context, ramp.Session) (*ramp.Player, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &ramp.Player{Assets: []ramp.Asset{{ID: "item_gold", Balance: ramp.NewAmount(s.Gold)}}}, nil
}

func (s *Studio) apply(_ context.Context, step ramp.Step) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, asset := range step.Effect.Assets {
		delta, err := step.Effect.Delta(asset).Int64()
		if err != nil {
			return err
		}
		s.Gold += delta
	}
	return nil
}

func (s *Studio) conflict(_ context.Context, c *ramp.ConflictError, _ *ramp.Result) error {
	s.Conflicts = append(s.Conflicts, c)
	return nil
}

// OpenOffice begins again, with the proof as it is now.
func (s *Studio) OpenOffice(t testing.TB) {
	s.Office = must.Get(NewOffice(Config{Store: s.Store, Proof: ProofOn(t, s.Chain, &s.Proof),
		Now:    s.Service.Now,
		Logger: slog.New(slog.NewJSONHandler(&s.Log, nil))}))(t)
}

// Open starts the service and the game.
func (s *Studio) Open(t *testing.T, blockTime time.Duration) {
	t.Helper()
	s.Store = NewStore(t, s.apply)
	s.key = must.Get(ramp.TextKey("my_secret_salt_value_!@#$%^&*"))(t)
	const key = "0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"
	signer := must.Get(ramp.NewKeySigner(key))(t)
	s.Service = ramptest.Start(t,
		ramptest.Config{PerOrder: true, Key: s.key, Validator: signer.Address(),
			Handler: http.NotFoundHandler(),
			Audit:   ramptest.AuditOff, BlockTime: blockTime})
	handler := must.Get(ramp.NewHandler(ramp.HandlerConfig{Terms: anyTerms, Players: s, Store: s.Store,
		Key:    s.key,
		Signer: signer, OnConflict: s.conflict,
		Now: s.Service.Now, Logger: slog.New(slog.NewJSONHandler(&s.Calls, nil))}))(t)
	s.Service.SetHandler(handler)
	s.Client = must.Get(ramp.NewClient(ramp.ClientConfig{URL: s.Service.URL(), Key: s.key,
		HTTPClient: s.Service.Client()}))(t)
	s.Chain = must.Get(ramp.NewRPC(ramp.RPCConfig{URL: s.Service.RPCURL(ramp.Testnet), ChainID: 7002,
		HTTPClient: s.Service.Client(), Retries: -1}))(t)
}

// Lose goes back to a backup that has these orders and so much gold.
func (s *Studio) Lose(t *testing.T, gold int64, kept ...ramp.Order) {
	s.Store, s.Gold = NewStore(t, s.apply), gold
	s.Store.Keep(t, kept...)
	s.OpenOffice(t)
}

// Mint starts a mint, and lets an hour pass.
func (d *Studio) Mint(t *testing.T, faults ...ramptest.Fault) uuid.UUID {
	t.Helper()
	order := d.Place(t, d.Service.Mint, faults...)
	d.Service.Advance(time.Hour)
	return order.UUID
}

// Place starts an order, and lets its transaction end.
func (d *Studio) Place(t *testing.T, by Placer, faults ...ramptest.Fault) *ramptest.PlacedOrder {
	t.Helper()
	started := must.Get(d.Client.Initialize(t.Context(), request()))(t)
	order := must.Get(by(t.Context(), started.UUID,
		ramp.Session{ID: d.Session, Token: ramp.NewAccessToken("token-1")},
		ramp.NewAmount(1),
		append(faults, ramptest.TransactionType(7))...))(t)
	d.Service.Advance(time.Minute)
	return order
}

// Witness ends a mint and a burn of somebody else.
func (d *Studio) Witness(t *testing.T) {
	t.Helper()
	session := d.Session
	d.Session = "session-2"
	d.Place(t, d.Service.Mint)
	d.Place(t, d.Service.Burn)
	d.Session = session
}

// Record returns the only record of the log, and empties the log.
func (d *Studio) Record(t *testing.T) (record map[string]any) {
	t.Helper()
	if err := json.Unmarshal(d.Log.Bytes(), &record); err != nil {
		t.Fatal(err)
	}
	d.Log.Reset()
	return record
}

// Placer starts an order, such as Mint and Burn of a ramptest.Service.
type Placer = func(context.Context, uuid.UUID, ramp.Session, ramp.Amount,
	...ramptest.Fault) (*ramptest.PlacedOrder,
	error)
