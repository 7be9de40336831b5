package main

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
)

// anyTerms accept every order.
var anyTerms, _ = ramp.NewTerms(ramp.TermsConfig{Any: true})

// observed is an observed game in memory, with its service and its chain.
type observed struct {
	*testing.T
	service *ramptest.Service
	client  *ramp.Client
	chain   *ramp.RPC
}

type anybody struct{}

func (anybody) Authenticate(context.Context, ramp.Session) error { return nil }
func (anybody) Assets(context.Context, ramp.Session) (*ramp.Player, error) {
	return &ramp.Player{}, nil
}

func observe(t *testing.T, observer ramp.Observer) *observed {
	t.Helper()
	key, err := ramp.TextKey(hmacKey)
	check(t, err)
	signer, err := ramp.NewKeySigner(validatorKey)
	check(t, err)
	store := &ramp.MemoryStore{Apply: func(_ context.Context, step ramp.Step) error {
		if step.Order.State == ramp.OrderAccepted && step.Order.Assets[0].Amount.Cmp(ramp.NewAmount(1000)) > 0 {
			return ramp.Reject("INVALID_BALANCE")
		}
		return nil
	}}
	service := ramptest.Start(t, ramptest.Config{PerOrder: true, Key: key, Validator: signer.Address(), Books: ramptest.BooksOff}) // the game has no balances
	chain, err := ramp.NewRPC(ramp.RPCConfig{URL: service.RPCURL(ramp.Testnet), HTTPClient: service.Client(), Observer: observer})
	check(t, err)
	handler, err := ramp.NewHandler(ramp.HandlerConfig{Terms: anyTerms, Players: anybody{}, Store: store, Key: key, Signer: signer,
		Chain: chain, Observer: observer, Logger: quiet,
		OnConflict: func(context.Context, *ramp.ConflictError, *ramp.Result) error { return nil }})
	check(t, err)
	service.SetHandler(handler)
	client, err := ramp.NewClient(ramp.ClientConfig{URL: service.URL(), Key: key, HTTPClient: service.Client(), Observer: observer})
	check(t, err)
	return &observed{t, service, client, chain}
}

func (s *observed) initialize(gold int64) uuid.UUID {
	s.Helper()
	return initialize(s.T, s.client, ramp.AssetAmount{ID: "item_gold", Amount: ramp.NewAmount(gold)})
}

var anyone = ramp.Session{ID: "session-1", Token: ramp.NewAccessToken("token-1")}

func (s *observed) mint(gold int64, faults ...ramptest.Fault) *ramptest.Order {
	s.Helper()
	order, err := s.service.Mint(s.Context(), s.initialize(gold), anyone, ramp.NewAmount(1), faults...)
	check(s.T, err)
	s.service.Advance(time.Minute)
	return order
}

// story is a mint, a failed mint, one that is rejected, a repeat, a conflict, and forged
// calls before those of a mint.
func (s *observed) story() {
	s.Helper()
	_, err := s.service.Assets(s.Context(), anyone)
	check(s.T, err)
	minted := s.mint(100)
	s.mint(100, ramptest.TransactionFails())
	check(s.T, s.service.Resend(s.Context(), minted))
	if _, err := s.service.Mint(s.Context(), s.initialize(2000), anyone, ramp.NewAmount(1)); err == nil {
		s.Fatal("a mint beyond the balance was approved")
	}
	_, err = s.service.Mint(s.Context(), s.initialize(100), anyone, ramp.NewAmount(1), ramptest.ValidateOtherDigest())
	check(s.T, err) // the first validate was approved, and its repeat with another digest rejected
	_, err = s.service.Mint(s.Context(), s.initialize(100), anyone, ramp.NewAmount(1),
		ramptest.WrongHMAC(ramptest.OnValidate), ramptest.MissingHMAC(ramptest.OnResult))
	check(s.T, err)
	s.service.Advance(time.Minute)
}

// scrape reads the metrics as Prometheus does: the value of each series.
func scrape(t *testing.T, address string) map[string]string {
	t.Helper()
	response, err := http.Get(address)
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

// served serves the metrics of a registry, and returns their address.
func served(t *testing.T, registry *prometheus.Registry) string {
	t.Helper()
	address := freeAddress(t)
	metrics, err := serveMetrics(address, registry)
	check(t, err)
	t.Cleanup(func() { check(t, metrics.Close()) })
	return "http://" + address + "/metrics"
}

func TestMetricsTellAStory(t *testing.T) {
	registry := prometheus.NewRegistry()
	s := observe(t, newMetrics(registry))
	s.story()
	got := scrape(t, served(t, registry))
	for series, want := range map[string]string{
		`ramp_webhook_calls_total{code="",direction="",endpoint="assets",status="200",unverified="false"}`:                      "1",
		`ramp_webhook_calls_total{code="",direction="mint",endpoint="validate",status="200",unverified="false"}`:                "4",
		`ramp_webhook_calls_total{code="INVALID_BALANCE",direction="mint",endpoint="validate",status="200",unverified="false"}`: "1",
		`ramp_webhook_calls_total{code="ORDER_CONFLICT",direction="mint",endpoint="validate",status="200",unverified="false"}`:  "1",
		`ramp_webhook_calls_total{code="",direction="mint",endpoint="result",status="200",unverified="false"}`:                  "5",
		`ramp_webhook_calls_total{code="HMAC_INVALID",direction="",endpoint="validate",status="401",unverified="true"}`:         "1",
		`ramp_webhook_calls_total{code="HMAC_MISSING",direction="",endpoint="result",status="500",unverified="true"}`:           "1",
		`ramp_webhook_duration_seconds_count{endpoint="result"}`:                                                                "6",
		`ramp_conflicts_total{endpoint="validate"}`:                                                                             "1",
		`ramp_conflicts_total{endpoint="result"}`:                                                                               "0",
		`ramp_webhook_calls_total{code="INTERNAL_ERROR",direction="mint",endpoint="result",status="500",unverified="false"}`:    "0",
		`ramp_client_calls_total{failed="true",kind="initialize",name="initialize"}`:                                            "0",
		`ramp_order_steps_total{direction="mint",effect="take",new="true",state="accepted"}`:                                    "4",
		`ramp_order_steps_total{direction="mint",effect="nothing",new="true",state="succeeded"}`:                                "3",
		`ramp_order_steps_total{direction="mint",effect="nothing",new="false",state="succeeded"}`:                               "1",
		`ramp_order_steps_total{direction="mint",effect="give back",new="true",state="failed"}`:                                 "1",
		`ramp_client_calls_total{failed="false",kind="initialize",name="initialize"}`:                                           "5",
		`ramp_client_calls_total{failed="false",kind="rpc",name="wait"}`:                                                        "5",
		`ramp_client_attempts_total{failed="false",name="batch"}`:                                                               "5",
		`ramp_client_duration_seconds_count{kind="rpc",name="wait"}`:                                                            "5",
	} {
		if got[series] != want {
			t.Errorf("%s is %q, not %q", series, got[series], want)
		}
	}
}

// waiting is the CountWaiting method of a store in which two mints wait.
func waiting(_ context.Context, d ramp.Direction, before time.Time) (int, time.Time, error) {
	age := time.Since(before).Truncate(time.Hour)
	if d == ramp.Mint {
		return map[time.Duration]int{time.Hour: 3, 13 * time.Hour: 2}[age], before, nil
	}
	return 0, time.Time{}, errors.New("the database does not answer")
}

func TestWaitingOrdersAreCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	countWaiting(registry, waiting)
	got := scrape(t, served(t, registry))
	if got[`ramp_orders_waiting{direction="mint"}`] != "2" || got[`ramp_orders_late{direction="mint"}`] != "3" ||
		got[`ramp_orders_waiting{direction="burn"}`] != "NaN" {
		t.Error(got)
	}
}

// The server counts its calls, to its client and to the node too, and the address that
// players reach has no metrics.
func TestTheServerHasMetrics(t *testing.T) {
	address := freeAddress(t)
	p := start(t, "sqlite:"+filepath.Join(t.TempDir(), "game.db"), "-metrics", address)
	s := login(t, p.url, "alice")
	var page struct{ URL string }
	if status := call(t, p.url+"/exchange", map[string]string{"sessionId": s.ID, "accessToken": s.Token.Reveal()}, &page); status != 200 {
		t.Fatalf("/exchange answered %d", status)
	}
	got := scrape(t, "http://"+address+"/metrics")
	for series, want := range map[string]string{
		`ramp_client_calls_total{failed="false",kind="initialize",name="initialize"}`: "1",
		`ramp_orders_waiting{direction="mint"}`:                                       "0",
	} {
		if got[series] != want {
			t.Errorf("%s is %q, not %q", series, got[series], want)
		}
	}
	response, err := http.Get(p.url + "/metrics")
	check(t, err)
	check(t, response.Body.Close())
	if response.StatusCode != 404 {
		t.Errorf("players get %d", response.StatusCode)
	}
}
