package main

import (
	"bufio"
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampbooks"
	"github.com/token-ramp/ramp-go/ramptest"
)

// scrape reads the metrics as Prometheus does: the value of each series.
func scrape(t *testing.T, address string) map[string]string {
	t.Helper()
	response := must(http.Get(address))(t)
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
	metrics := must(serveMetrics(address, registry))(t)
	t.Cleanup(func() { check(t, metrics.Close()) })
	return "http://" + address + "/metrics"
}

// A mint, a failed mint, one that is rejected, a repeat, a conflict, forged calls before those
// of a mint, mints that wait, and a node that fails. Every metric and label in the queries is
// then there, so no alert is silent forever.
func TestMetricsTellAStory(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	i := newIncident(t, "-metrics", address, "-cap", "item_gold=1000000/1000000/1000000/1000000",
		"-books", filepath.Join(t.TempDir(), "position"))
	s := login(t, i.server.url, "alice")
	i.starts(s, 200, "/exchange?uuid=")
	minted := i.mustMint(s)
	i.mustMint(s, ramptest.TransactionFails(), ramptest.TransactionType(7))
	check(t, i.service.Resend(t.Context(), minted))
	if _, err := i.service.Mint(t.Context(), i.initialize(), s, ramp.NewAmount(2000)); err == nil {
		t.Fatal("a mint beyond the balance was approved")
	}
	i.mustMint(s, ramptest.ValidateOtherDigest()) // the repeat is rejected
	i.mustMint(s, ramptest.WrongHMAC(ramptest.OnValidate), ramptest.MissingHMAC(ramptest.OnResult))
	i.service.Advance(time.Hour)
	db := handle(t, i.address)
	for _, hours := range []string{"12", "2"} {
		i.mustMint(s, ramptest.StaysPending())
		must(db.Exec("UPDATE ramp_orders SET accepted_at = accepted_at - 3600000 * " + hours +
			" WHERE state = 'accepted'"))(t)
	}
	var got map[string]string
	await(t, func() bool {
		got = scrape(t, "http://"+address+"/metrics")
		return got[`ramp_books_findings{kind="differs"}`] == "0"
	}, func() string { return "the books are not read" })
	for series, want := range map[string]string{
		`ramp_webhook_calls_total{code="",direction="mint",endpoint="validate",status="200",unverified="false"}`: "6",
		`ramp_webhook_calls_total{code="INVALID_BALANCE",direction="mint",endpoint="validate",status="200",` +
			`unverified="false"}`: "1",
		`ramp_webhook_calls_total{code="ORDER_CONFLICT",direction="mint",endpoint="validate",status="200",` +
			`unverified="false"}`: "1",
		`ramp_webhook_calls_total{code="",direction="mint",endpoint="result",status="200",unverified="false"}`: "5",
		`ramp_webhook_calls_total{code="HMAC_INVALID",direction="",endpoint="validate",status="401",` +
			`unverified="true"}`: "1",
		`ramp_webhook_calls_total{code="HMAC_MISSING",direction="",endpoint="result",status="500",` +
			`unverified="true"}`: "1",
		`ramp_webhook_duration_seconds_count{endpoint="result"}`: "6",
		`ramp_conflicts_total{endpoint="validate"}`:              "1",
		`ramp_conflicts_total{endpoint="result"}`:                "0",
		`ramp_webhook_calls_total{code="INTERNAL_ERROR",direction="mint",endpoint="result",status="500",` +
			`unverified="false"}`: "0",
		`ramp_client_calls_total{failed="true",kind="initialize",name="initialize"}`:              "0",
		`ramp_client_calls_total{failed="false",kind="initialize",name="initialize"}`:             "1",
		`ramp_client_calls_total{failed="false",kind="rpc",name="wait"}`:                          "5",
		`ramp_client_duration_seconds_count{kind="rpc",name="wait"}`:                              "5",
		`ramp_order_steps_total{direction="mint",effect="take",new="true",state="accepted"}`:      "6",
		`ramp_order_steps_total{direction="mint",effect="nothing",new="true",state="succeeded"}`:  "3",
		`ramp_order_steps_total{direction="mint",effect="nothing",new="false",state="succeeded"}`: "1",
		`ramp_order_steps_total{direction="mint",effect="give back",new="true",state="failed"}`:   "1",
		`ramp_signatures_total{released="true"}`:                                                  "6",
		`ramp_orders_slow{direction="mint"}`:                                                      "2",
		`ramp_orders_late{direction="mint"}`:                                                      "2",
		`ramp_orders_waiting{direction="mint"}`:                                                   "1",
		`ramp_orders_waiting{direction="burn"}`:                                                   "0",
	} {
		equal(t, series, got[series], want)
	}
	i.service.FailRPC(-32601)
	if block := scrape(t, "http://"+address+"/metrics")["ramp_node_block_seconds"]; block != "NaN" ||
		got["ramp_node_block_seconds"] == "NaN" {
		t.Errorf("the newest block is of %s, and of %s while the node fails", got["ramp_node_block_seconds"], block)
	}
	equal(t, "players get", statusOf(t, http.DefaultClient, i.server.url+"/metrics"), 404)

	i.service.FailRPC(503)
	i.mustMint(s) // a repeated attempt
	series := ""
	for one := range scrape(t, "http://"+address+"/metrics") {
		series += one + "\n"
	}
	all := queries(t)
	for _, r := range rules(t) {
		all[r.Alert] = r.Expr
	}
	for title, query := range all {
		for _, selector := range regexp.MustCompile(`(ramp_[a-z_]+)(?:\{([^}]*)\})?`).FindAllStringSubmatch(query, -1) {
			for _, label := range regexp.MustCompile(`[a-z]+="[^"]*"|$`).FindAllString(selector[2], -1) {
				if !regexp.MustCompile(`(?m)^` + selector[1] + `\b.*` + regexp.QuoteMeta(label)).MatchString(series) {
					t.Errorf("%s: no series %s{%s}", title, selector[1], label)
				}
			}
		}
	}
}

// What an alert compares: mints on the chain with the orders that were signed.
func TestMintsWithoutASignedOrderAreCounted(t *testing.T) {
	finding := func(kind rampbooks.FindingKind, directions ...ramp.Direction) rampbooks.Finding {
		f := rampbooks.Finding{Kind: kind}
		for _, d := range directions {
			f.Events = append(f.Events, rampbooks.ChainEvent{Direction: d})
		}
		return f
	}
	for name, c := range map[string]struct {
		finding rampbooks.Finding
		want    bool
	}{
		"a mint without an order":            {finding(rampbooks.EventWithoutOrder, ramp.Mint), true},
		"a mint of another amount":           {finding(rampbooks.Differs, ramp.Mint), true},
		"a burn and a mint without an order": {finding(rampbooks.EventWithoutOrder, ramp.Burn, ramp.Mint), true},
		"a burn without an order":            {finding(rampbooks.EventWithoutOrder, ramp.Burn), false},
		"a mint that never happened":         {finding(rampbooks.OrderWithoutEvent), false},
		"a mint whose result never came":     {finding(rampbooks.WaitsWithEvent, ramp.Mint), false},
	} {
		equal(t, name, isUnsignedMint(&c.finding), c.want)
	}
}

// A clock that differs from that of the node is said at the start.
func TestAClockThatIsWrongIsSaid(t *testing.T) {
	for ahead, says := range map[time.Duration]bool{0: false, 20 * time.Minute: true, -20 * time.Minute: true,
		30 * time.Second: false} {
		node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", time.Now().Add(-ahead).UTC().Format(http.TimeFormat))
		}))
		defer node.Close()
		var log bytes.Buffer
		checkClock(t.Context(), node.URL, slog.New(slog.NewJSONHandler(&log, nil)))
		if strings.Contains(log.String(), `"msg":"ramp: check"`) != says {
			t.Errorf("%v ahead: %q", ahead, log.String())
		}
	}
}
