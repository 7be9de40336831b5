package observability

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

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

func newStudio(t *testing.T, observer ramp.Observer) *studio {
	key, err := ramp.TextKey("key of the console")
	check(t, err)
	signer, err := ramp.NewKeySigner("0x1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef")
	check(t, err)
	store, err := ramp.NewMemoryStore(ramp.MemoryStoreConfig{Apply: func(_ context.Context, step ramp.Step) error {
		if step.Order.State == ramp.OrderAccepted && step.Order.Assets[0].Amount.Cmp(ramp.NewAmount(1000)) > 0 {
			return ramp.Reject("INVALID_BALANCE")
		}
		return nil
	}})
	check(t, err)
	// The handler needs the address of the chain, and the service that of the handler.
	service := ramptest.Start(t, ramptest.Config{Key: key, Validator: signer.Address(), Handler: http.NotFoundHandler(),
		Books: ramptest.BooksOff}) // the game of these tests has no balances
	chain, err := ramp.NewRPC(ramp.RPCConfig{URL: service.RPCURL(ramp.Testnet), HTTPClient: service.Client(), Observer: observer})
	check(t, err)
	handler, err := ramp.NewHandler(ramp.HandlerConfig{Terms: ramp.AnyTerms, Players: players{}, Store: store, Key: key, Signer: signer, Chain: chain, Observer: observer,
		OnConflict: func(context.Context, *ramp.ConflictError, *ramp.Result) error { return nil }})
	check(t, err)
	service.SetHandler(handler)
	client, err := ramp.NewClient(ramp.ClientConfig{URL: service.URL(), Key: key, HTTPClient: service.Client(), Observer: observer})
	check(t, err)
	return &studio{t, service, client}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *studio) initialize(gold int64) uuid.UUID {
	s.Helper()
	item := []ramp.Item{{ID: "item_gold", Amount: ramp.NewAmount(gold), IconURL: "https://example.com/gold.png"}}
	started, err := s.client.Initialize(s.Context(), ramp.InitializeRequest{Intent: ramp.InitializeIntent{
		Network: ramp.Testnet, ProjectID: "project-1", Token: "0x00000000000000000000000000000000000070c3", Materials: item, Outputs: item}})
	check(s.T, err)
	return started.UUID
}

func (s *studio) mint(gold int64, faults ...ramptest.Fault) *ramptest.Order {
	s.Helper()
	order, err := s.service.Mint(s.Context(), s.initialize(gold), session, ramp.NewAmount(1), faults...)
	check(s.T, err)
	s.service.Advance(time.Minute)
	return order
}

<<<<<<< HEAD
// story is a mint, a failed mint, one that is rejected, a repeat and a conflict.
func (s *studio) story() {
	s.Helper()
	_, err := s.service.Assets(s.Context(), session)
	check(s.T, err)
	minted := s.mint(100)
	s.mint(100, ramptest.TransactionFails())
	check(s.T, s.service.Resend(s.Context(), minted))
	var rejected *ramptest.Rejection
	if _, err := s.service.Mint(s.Context(), s.initialize(2000), session, ramp.NewAmount(1)); !errors.As(err, &rejected) {
		s.Fatalf("a mint beyond the balance: %v", err)
	}
	_, err = s.service.Mint(s.Context(), s.initialize(100), session, ramp.NewAmount(1), ramptest.ValidateOtherDigest())
	check(s.T, err) // the first validate was approved, and its repeat with another digest rejected
}

// scrape reads /metrics as Prometheus does: the value of each series.
func scrape(t *testing.T, registry *prometheus.Registry) map[string]string {
	t.Helper()
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer server.Close()
	response, err := http.Get(server.URL)
	check(t, err)
	defer response.Body.Close()
	series := map[string]string{}
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if at := strings.LastIndexByte(lines.Text(), ' '); at > 0 && lines.Text()[0] != '#' {
			series[lines.Text()[:at]] = lines.Text()[at+1:]
		}
	}
	return series
}

func TestMetricsTellAStory(t *testing.T) {
	registry := prometheus.NewRegistry()
	s := newStudio(t, Metrics(registry))
	s.story()
	got := scrape(t, registry)
	for series, want := range map[string]string{
		`ramp_webhook_calls_total{code="",direction="",endpoint="assets",status="200"}`:                      "1",
		`ramp_webhook_calls_total{code="",direction="mint",endpoint="validate",status="200"}`:                "3",
		`ramp_webhook_calls_total{code="INVALID_BALANCE",direction="mint",endpoint="validate",status="200"}`: "1",
		`ramp_webhook_calls_total{code="ORDER_CONFLICT",direction="mint",endpoint="validate",status="200"}`:  "1",
		`ramp_webhook_calls_total{code="",direction="mint",endpoint="result",status="200"}`:                  "3",
		`ramp_webhook_duration_seconds_count{endpoint="result"}`:                                             "3",
		`ramp_conflicts_total{endpoint="validate"}`:                                                          "1",
		`ramp_conflicts_total{endpoint="result"}`:                                                            "0",
		`ramp_webhook_calls_total{code="INTERNAL_ERROR",direction="mint",endpoint="result",status="500"}`:    "0",
		`ramp_client_calls_total{failed="true",kind="initialize",name="initialize"}`:                         "0",
		`ramp_order_steps_total{direction="mint",effect="take",new="true",state="accepted"}`:                 "3",
		`ramp_order_steps_total{direction="mint",effect="nothing",new="true",state="succeeded"}`:             "1",
		`ramp_order_steps_total{direction="mint",effect="nothing",new="false",state="succeeded"}`:            "1",
		`ramp_order_steps_total{direction="mint",effect="give back",new="true",state="failed"}`:              "1",
		`ramp_client_calls_total{failed="false",kind="initialize",name="initialize"}`:                        "4",
		`ramp_client_calls_total{failed="false",kind="rpc",name="wait"}`:                                     "3",
		`ramp_client_attempts_total{failed="false",name="batch"}`:                                            "3",
		`ramp_client_duration_seconds_count{kind="rpc",name="wait"}`:                                         "3",
	} {
		if got[series] != want {
			t.Errorf("%s is %q, not %q", series, got[series], want)
		}
	}
}

// waiting is the CountWaiting method of a store in which two mints wait.
func waiting(_ context.Context, d ramp.Direction, before time.Time) (int, time.Time, error) {
	if since := time.Since(before); since < 13*time.Hour || since > 14*time.Hour {
		return 0, time.Time{}, errors.New("that is not 13 hours ago")
	}
	if d == ramp.Mint {
		return 2, before, nil
	}
	return 0, time.Time{}, errors.New("the database does not answer")
}

func TestWaitingOrdersAreCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	Waiting(registry, waiting)
	got := scrape(t, registry)
	if got[`ramp_orders_waiting{direction="mint"}`] != "2" || got[`ramp_orders_waiting{direction="burn"}`] != "NaN" {
		t.Error(got)
	}
}

// Every metric and label in the queries of the documentation exists.
func TestTheQueriesOfTheDocumentationFindSomething(t *testing.T) {
	text, err := os.ReadFile("../../docs/operations.md")
	check(t, err)
	registry := prometheus.NewRegistry()
	Waiting(registry, waiting)
	s := newStudio(t, Metrics(registry))
	s.story()
	s.service.FailRPC(503, -32601)
	s.mint(100)
	exposed := strings.Builder{}
	for series := range scrape(t, registry) {
		exposed.WriteString(series + "\n")
	}
	blocks := regexp.MustCompile("(?s)```promql\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) == 0 {
		t.Fatal("no queries found")
	}
	names := regexp.MustCompile(`ramp_[a-z_]+`)
	selectors := regexp.MustCompile(`(ramp_[a-z_]+)\{([^}]*)\}`)
	pairs := regexp.MustCompile(`([a-z]+)="([^"]*)"`)
	queries := 0
	for _, block := range blocks {
		for _, name := range names.FindAllString(block[1], -1) {
			queries++
			if !strings.Contains(exposed.String(), name) {
				t.Errorf("no metric %s", name)
			}
		}
		for _, selector := range selectors.FindAllStringSubmatch(block[1], -1) {
			for _, pair := range pairs.FindAllStringSubmatch(selector[2], -1) {
				if !slices.ContainsFunc(strings.Split(exposed.String(), "\n"), func(series string) bool {
					return strings.HasPrefix(series, selector[1]+"{") && strings.Contains(series, pair[0])
				}) {
					t.Errorf("no series %s{%s}", selector[1], pair[0])
				}
			}
		}
	}
	if queries < 10 {
		t.Errorf("only %d metrics in the queries", queries)
	}
}

=======
>>>>>>> cd09f36 (Serve metrics in the game server, with alerts and a dashboard as files)
func TestSpansNestAsTheCallsDo(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	provider := trace.NewTracerProvider(trace.WithSyncer(exporter))
	ended := 0
	counter := ramp.Observer{End: func(context.Context, ramp.Operation) { ended++ }}
	s := newStudio(t, Both(counter, Traces(provider)))
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
