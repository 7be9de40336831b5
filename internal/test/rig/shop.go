package rig

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/internal/test/must"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/ramptest"
)

// Shop is a studio in memory whose books can be compared with the emulator's chain.
type Shop struct {
	*Studio
	Begin time.Time
}

func NewShop(t *testing.T) *Shop {
	t.Helper()
	s := &Shop{Studio: &Studio{Gold: 100_000}}
	s.Open(t, 5*time.Second)
	s.Office = must.Get(NewOffice(Config{Store: s.Store,
		Proof: ProofOn(t, s.Chain, &rampproof.Config{AnyFailure: true}), Products: rampbooks.Always(Product),
		Sessions: Sessions, Now: s.Service.Now, Logger: slog.New(slog.NewJSONHandler(&s.Log, nil))}))(t)
	terms := must.Get(ramp.NewTerms(ramp.TermsConfig{ProjectID: "project-1", Network: ramp.Testnet,
		Products: []ramp.Product{Product}}))(t)
	s.Client = must.Get(ramp.NewClient(ramp.ClientConfig{URL: s.Service.URL(), Key: s.key, Terms: terms,
		HTTPClient: s.Service.Client()}))(t)
	s.Begin = s.Service.Now()
	s.Service.Advance(time.Hour)
	return s
}

// Sessions are the sessions of the shop's only player.
func Sessions(_ context.Context, player string) ([]string, error) {
	return map[string][]string{"alice": {"session-1"}}[player], nil
}

// Place starts an order of session-1, and lets an hour pass.
func (s *Shop) Place(t *testing.T, place Placer, tokens int64,
	faults ...ramptest.Fault) *ramptest.PlacedOrder {
	t.Helper()
	started := must.Get(s.Client.Initialize(t.Context(), ramp.InitializeRequest{Product: "gold"}))(t)
	order, err := place(t.Context(), started.UUID,
		ramp.Session{ID: "session-1", Token: ramp.NewAccessToken("token-1")},
		ramp.NewAmount(tokens), faults...)
	if err != nil {
		t.Fatal(err)
	}
	s.Service.Advance(time.Hour)
	return order
}

func (s *Shop) Books(t *testing.T, from, to time.Time) *rampbooks.Reconciliation {
	t.Helper()
	return must.Get(s.Reconcile(t.Context(), from, to))(t)
}

// Change changes an order by hand.
func (s *Shop) Change(id uuid.UUID, change func(*ramp.Order)) {
	s.Store.mu.Lock()
	defer s.Store.mu.Unlock()
	o := s.Store.Orders[id]
	o.Intent.From, o.Intent.To = slices.Clone(o.Intent.From), slices.Clone(o.Intent.To)
	change(&o)
	s.Store.Orders[id] = o
}
