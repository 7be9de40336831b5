package observability

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampproof"
	"github.com/token-ramp/ramp-go/ramptest"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// anyTerms accept every order.
var anyTerms, _ = ramp.NewTerms(ramp.TermsConfig{Any: true})

var session = ramp.Session{ID: "session-1", Token: ramp.NewAccessToken("token-1")}

// studio is an observed game in memory, with its service and its chain.
type studio struct {
	*testing.T
	service *ramptest.Service
	client  *ramp.Client
}

type players struct{}

func (players) Authenticate(context.Context, ramp.Session) error { return nil }
func (players) Assets(context.Context, ramp.Session) (*ramp.Player, error) {
	return &ramp.Player{}, nil
}

// newStudio starts one, with an observer of the handler and one of each client, which calls a URL.
func newStudio(t *testing.T, observer func(peer string) ramp.Observer) *studio {
	t.Helper()
	key := must(ramp.TextKey("key of the console"))(t)
	signer := must(ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"))(t)
	store := &ramp.MemoryStore{Apply: func(_ context.Context, step ramp.Step) error {
		if step.Order.State == ramp.OrderAccepted && step.Order.Assets[0].Amount.Cmp(ramp.NewAmount(1000)) > 0 {
			return ramp.Reject("INVALID_BALANCE")
		}
		return nil
	}}
	// The handler needs the address of the chain, and the service that of the handler.
	service := ramptest.Start(t,
		ramptest.Config{PerOrder: true, Key: key, Validator: signer.Address(), Handler: http.NotFoundHandler(),
			Audit: ramptest.AuditOff}) // the game of these tests has no balances
	node := service.RPCURL(ramp.Testnet)
	chain := must(ramp.NewRPC(ramp.RPCConfig{URL: node, ChainID: 7002, HTTPClient: service.Client(),
		Observer: observer(node)}))(t)
	handler := must(ramp.NewHandler(ramp.HandlerConfig{Terms: anyTerms, Players: players{}, Store: store, Key: key,
		Signer: signer, Confirm: rampproof.Confirmed(chain, 1), Observer: observer(""),
		OnConflict: func(context.Context, *ramp.ConflictError, *ramp.Result) error { return nil }}))(t)
	service.SetHandler(handler)
	client := must(ramp.NewClient(ramp.ClientConfig{URL: service.URL(), Key: key, HTTPClient: service.Client(),
		Observer: observer(service.URL())}))(t)
	return &studio{t, service, client}
}

// gold returns what an order of so much gold asks for.
func gold(amount int64) ramp.InitializeRequest {
	item := []ramp.Item{{ID: "item_gold", Amount: ramp.NewAmount(amount), IconURL: "https://example.com/gold.png"}}
	return ramp.InitializeRequest{Intent: ramp.InitializeIntent{Network: ramp.Testnet, ProjectID: "project-1",
		Token: "0x00000000000000000000000000000000000070c3", Materials: item, Outputs: item}}
}

func (s *studio) initialize(amount int64) uuid.UUID {
	s.Helper()
	return must(s.client.Initialize(s.Context(), gold(amount)))(s.T).UUID
}

func (s *studio) mint(amount int64, faults ...ramptest.Fault) *ramptest.PlacedOrder {
	s.Helper()
	order := must(s.service.Mint(s.Context(), s.initialize(amount), session, ramp.NewAmount(1), faults...))(s.T)
	s.service.Advance(time.Minute)
	return order
}

// refused starts a mint for more than the player owns.
func (s *studio) refused() {
	s.Helper()
	if _, err := s.service.Mint(s.Context(), s.initialize(5000), session, ramp.NewAmount(1)); err == nil {
		s.Error("a mint of 5,000 gold was approved")
	}
}

// failed makes an initialize call that the service rejects, so that it is not repeated.
func (s *studio) failed() {
	s.Helper()
	s.service.FailInitialize(ramptest.UnknownProject)
	if _, err := s.client.Initialize(s.Context(), gold(100)); err == nil {
		s.Error("an unknown project got a UUID")
	}
}

func TestSpansNestAsTheCallsDo(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	provider := trace.NewTracerProvider(trace.WithSyncer(exporter))
	ended := 0
	counter := ramp.Observer{End: func(context.Context, ramp.Operation) { ended++ }}
	s := newStudio(t, func(string) ramp.Observer { return Both(counter, Traces(provider)) })
	s.mint(100)
	s.service.FailRPC(-32601)
	s.mint(100, ramptest.TransactionFails())

	spans := exporter.GetSpans()
	if ended != len(spans) {
		t.Errorf("%d operations have %d spans", ended, len(spans))
	}
	parent := func(span tracetest.SpanStub) string {
		for _, other := range spans {
			if other.SpanContext.SpanID() == span.Parent.SpanID() {
				return other.Name
			}
		}
		return ""
	}
	got := map[string]int{}
	failed := map[string]int{}
	for _, span := range spans {
		got[parent(span)+" > "+span.Name]++
		if span.Status.Code == codes.Error {
			failed[span.Name]++
		}
		for _, attribute := range span.Attributes {
			if attribute.Key == "ramp.effect" {
				got[span.Name+" steps"]++
			}
		}
	}
	for path, want := range map[string]int{
		" > ramp.initialize initialize":                        2,
		"ramp.initialize initialize > ramp.attempt initialize": 2,
		" > ramp.webhook validate":                             2,
		" > ramp.webhook result":                               2,
		"ramp.webhook validate steps":                          2,
		"ramp.webhook result steps":                            1, // the other result was not confirmed
		"ramp.webhook result > ramp.rpc wait":                  2,
		"ramp.rpc wait > ramp.attempt batch":                   2,
	} {
		if got[path] != want {
			t.Errorf("%s: %d, not %d", path, got[path], want)
		}
	}
	for _, name := range []string{"ramp.webhook result", "ramp.rpc wait"} {
		if failed[name] != 1 {
			t.Errorf("%s failed %d times, not once", name, failed[name])
		}
	}
}
