package main

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/token-ramp/ramp-go/support"
	"go.yaml.in/yaml/v3"
)

// In these stories a sample comes every minute for an hour, and the queries are
// evaluated at the end. "0+60x60" grows by 60 each minute, and "0x55 1x4" is 0 until
// the last minutes.
var stories = []struct {
	name   string
	series map[string]string
	want   map[string]map[string]float64 // the samples of each query, by their labels; other queries have none
}{
	{
		name: "an hour in which everything happens",
		series: map[string]string{
			`ramp_webhook_calls_total{endpoint="validate",direction="mint",status="200",code=""}`:                                "0+60x60",
			`ramp_webhook_calls_total{endpoint="validate",direction="mint",status="200",code="INVALID_BALANCE"}`:                 "0+6x60",
			`ramp_webhook_calls_total{endpoint="result",direction="mint",status="500",code="INTERNAL_ERROR",unverified="false"}`: "0x50 1+1x9",
			`ramp_webhook_duration_seconds_bucket{endpoint="validate",le="0.5"}`:                                                 "0x60",
			`ramp_webhook_duration_seconds_bucket{endpoint="validate",le="1"}`:                                                   "0+60x60",
			`ramp_webhook_duration_seconds_bucket{endpoint="validate",le="+Inf"}`:                                                "0+60x60",
			`ramp_conflicts_total{endpoint="result"}`:                                                                            "0x55 1x4",
			`ramp_order_steps_total{direction="mint",effect="take",new="true",state="accepted"}`:                                 "0+60x60",
			`ramp_order_steps_total{direction="mint",effect="nothing",new="true",state="succeeded"}`:                             "0+48x60",
			`ramp_order_steps_total{direction="mint",effect="nothing",new="false",state="succeeded"}`:                            "0+6x60",
			`ramp_order_steps_total{direction="mint",effect="give back",new="true",state="failed"}`:                              "0+12x60",
			`ramp_client_calls_total{kind="initialize",name="initialize",failed="true"}`:                                         "0+45x60",
			`ramp_client_calls_total{kind="initialize",name="initialize",failed="false"}`:                                        "0+15x60",
			`ramp_client_attempts_total{name="batch",failed="true"}`:                                                             "0+15x60",
			`ramp_client_attempts_total{name="batch",failed="false"}`:                                                            "0+45x60",
			`ramp_client_duration_seconds_bucket{kind="rpc",name="wait",le="1"}`:                                                 "0x60",
			`ramp_client_duration_seconds_bucket{kind="rpc",name="wait",le="2.5"}`:                                               "0+60x60",
			`ramp_client_duration_seconds_bucket{kind="rpc",name="wait",le="+Inf"}`:                                              "0+60x60",
			`ramp_orders_waiting{direction="mint"}`:                                                                              "2x60",
			`ramp_signatures_total`:                                                                                              "0+60x60",
			`ramp_books_findings{kind="differs"}`:                                                                                "0x30 1x10 0x18",
			`ramp_books_end_seconds`:                                                                                             "-10000x60",
		},
		want: map[string]map[string]float64{
			"Calls a second, by endpoint and answer": {`{endpoint="validate",status="200"}`: 1.1, `{endpoint="result",status="500",unverified="false"}`: 0.017},
			"Orders a second, opened and ended": {`{direction="mint",state="accepted"}`: 1, `{direction="mint",state="succeeded"}`: 0.8,
				`{direction="mint",state="failed"}`: 0.2},
			"Share of mints that end in failure, and give back":      {`{}`: 0.2},
			"99th percentile of a call":                              {`{endpoint="validate"}`: 0.995},
			"Rejected orders, by reason":                             {`{code="INVALID_BALANCE"}`: 0.1},
			"Signatures in an hour, to compare with the key service": {`{}`: 3600},
			"Repeats, whose answer did not arrive in time":           {`{}`: 0.1},
			"Requests to the service and the node that fail":         {`{name="batch"}`: 0.25},
			"Time that a result waits for the chain":                 {`{}`: 2.425},
			"RampConflict":                                           {`{endpoint="result"}`: 1},
			"RampResultsFail":                                        {`{}`: 10},
			"RampPlayersCannotStart":                                 {`{}`: 0.75},
			"RampMintsWait":                                          {`{}`: 2},
			"RampBooksDoNotClose":                                    {`{kind="differs"}`: 1},
			"RampBooksNotRead":                                       {`{}`: 13_600},
		},
	},
	{
		name: "an hour in which forged calls come between genuine ones",
		series: map[string]string{
			`ramp_webhook_calls_total{instance="a",endpoint="validate",status="200",code="",unverified="false"}`:            "0+1x60",
			`ramp_webhook_calls_total{instance="a",endpoint="result",status="500",code="HMAC_INVALID",unverified="true"}`:   "0+600x60",
			`ramp_webhook_calls_total{instance="a",endpoint="validate",status="401",code="HMAC_MISSING",unverified="true"}`: "0+600x60",
			`ramp_orders_late{direction="mint"}`:    "2x60",
			`ramp_orders_waiting{direction="mint"}`: "2x60",
		},
		want: map[string]map[string]float64{
			"Calls a second, by endpoint and answer": {`{endpoint="validate",status="200",unverified="false"}`: 0.017,
				`{endpoint="validate",status="401",unverified="true"}`: 10, `{endpoint="result",status="500",unverified="true"}`: 10},
			"RampMintsWait": {`{}`: 2}, // for longer than any result comes
		},
	},
	{
		name: "an hour in which the key of one of two servers is wrong",
		series: map[string]string{
			`ramp_webhook_calls_total{instance="a",endpoint="result",status="200",code="",unverified="false"}`:            "0+1x60",
			`ramp_webhook_calls_total{instance="b",endpoint="result",status="500",code="HMAC_INVALID",unverified="true"}`: "0x40 1+1x19",
			`ramp_webhook_calls_total{instance="b",endpoint="assets",status="200",code="",unverified="false"}`:            "0+1x60",
		},
		want: map[string]map[string]float64{
			"Calls a second, by endpoint and answer": {`{endpoint="result",status="200",unverified="false"}`: 0.017,
				`{endpoint="assets",status="200",unverified="false"}`: 0.017, `{endpoint="result",status="500",unverified="true"}`: 0.017},
			"RampHMACFails": {`{instance="b"}`: 20},
		},
	},
	{
		name: "an hour in which the results of older orders have another key",
		series: map[string]string{
			`ramp_webhook_calls_total{instance="a",endpoint="result",status="200",code="",unverified="false"}`:            "0+1x60",
			`ramp_webhook_calls_total{instance="a",endpoint="result",status="500",code="HMAC_INVALID",unverified="true"}`: "0x30 1x15 2x13",
			`ramp_orders_late{direction="mint"}`:    "3x60",
			`ramp_orders_waiting{direction="mint"}`: "2x60",
		},
		want: map[string]map[string]float64{
			"Calls a second, by endpoint and answer": {`{endpoint="result",status="200",unverified="false"}`: 0.017,
				`{endpoint="result",status="500",unverified="true"}`: 0},
			"RampResultsUnverified": {`{}`: 1},
			"RampMintsWait":         {`{}`: 2},
		},
	},
	{
		name: "an hour in which no order ends",
		series: map[string]string{
			`ramp_order_steps_total{direction="mint",effect="take",new="true",state="accepted"}`: "0+1x60",
		},
		want: map[string]map[string]float64{
			"Orders a second, opened and ended": {`{direction="mint",state="accepted"}`: 0.017},
			"RampNothingEnds":                   {`{}`: 60},
		},
	},
	{
		name: "a quiet hour, in which no alert fires",
		series: map[string]string{
			`ramp_webhook_calls_total{endpoint="result",direction="mint",status="500",code="INTERNAL_ERROR",unverified="false"}`: "0x60",
			`ramp_conflicts_total{endpoint="result"}`:                                                "0x60",
			`ramp_order_steps_total{direction="mint",effect="take",new="true",state="accepted"}`:     "0+60x60",
			`ramp_order_steps_total{direction="mint",effect="nothing",new="true",state="succeeded"}`: "0+60x60",
			`ramp_client_calls_total{kind="initialize",name="initialize",failed="true"}`:             "0+3x60",
			`ramp_client_calls_total{kind="initialize",name="initialize",failed="false"}`:            "0+60x60",
			`ramp_orders_waiting{direction="mint"}`:                                                  "0x60",
			`ramp_books_findings{kind="differs"}`:                                                    "0x60",
			`ramp_books_findings{kind="waits_without_event"}`:                                        "1x60",
			`ramp_books_end_seconds`:                                                                 "3000x60",
		},
		want: map[string]map[string]float64{
			"Calls a second, by endpoint and answer": {`{endpoint="result",status="500",unverified="false"}`: 0},
			"Orders a second, opened and ended":      {`{direction="mint",state="accepted"}`: 1, `{direction="mint",state="succeeded"}`: 1},
		},
	},
}

// queries returns the queries of the dashboard by their panels, and those of the alerts by
// their names.
func queries(t *testing.T) map[string]string {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	var alerts struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	text, err := os.ReadFile("deploy/dashboard.json")
	check(t, err)
	check(t, json.Unmarshal(text, &dashboard))
	text, err = os.ReadFile("deploy/alerts.yaml")
	check(t, err)
	check(t, yaml.Unmarshal(text, &alerts))
	found := map[string]string{}
	for _, panel := range dashboard.Panels {
		found[panel.Title] = panel.Targets[0].Expr
		if at := panel.GridPos; at.X+at.W > 24 || at.Y+at.H > 24 {
			t.Errorf("panel %q is not on the first screen", panel.Title)
		}
	}
	for _, rule := range alerts.Groups[0].Rules {
		found[rule.Alert] = rule.Expr
		if rule.Annotations["summary"] == "" {
			t.Errorf("alert %s has no summary", rule.Alert)
		}
	}
	return found
}

// Every metric and label in the queries exists, so no alert is silent forever.
func TestTheQueriesFindSomething(t *testing.T) {
	registry := prometheus.NewRegistry()
	countWaiting(registry, waiting)
	countFindings(registry)(&support.Books{To: time.Now()})
	s := observe(t, newMetrics(registry))
	s.story()
	s.service.FailRPC(503, -32601)
	s.mint(100)
	series := slices.Collect(maps.Keys(scrape(t, served(t, registry))))
	exported := strings.Join(series, "\n")
	names := regexp.MustCompile(`ramp_[a-z_]+`)
	selectors := regexp.MustCompile(`(ramp_[a-z_]+)\{([^}]*)\}`)
	pairs := regexp.MustCompile(`([a-z]+)="([^"]*)"`)
	for title, query := range queries(t) {
		for _, name := range names.FindAllString(query, -1) {
			if !strings.Contains(exported, name) {
				t.Errorf("%s: no metric %s", title, name)
			}
		}
		for _, selector := range selectors.FindAllStringSubmatch(query, -1) {
			for _, pair := range pairs.FindAllStringSubmatch(selector[2], -1) {
				if !slices.ContainsFunc(series, func(one string) bool {
					return strings.HasPrefix(one, selector[1]+"{") && strings.Contains(one, pair[0])
				}) {
					t.Errorf("%s: no series %s{%s}", title, selector[1], pair[0])
				}
			}
		}
	}
}

// Prometheus itself evaluates the queries.
func TestPrometheusUnderstandsTheQueries(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("*** NOT TESTED: promtool is not installed ***")
	}
	if out, err := exec.Command(promtool, "check", "rules", "deploy/alerts.yaml").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	queries := queries(t)
	type sample struct {
		Labels string  `json:"labels"`
		Value  float64 `json:"value"`
	}
	type evaluation struct {
		Expr    string   `json:"expr"`
		At      string   `json:"eval_time"`
		Samples []sample `json:"exp_samples"`
	}
	type input struct {
		Series string `json:"series"`
		Values string `json:"values"`
	}
	type story struct {
		Name     string       `json:"name"`
		Interval string       `json:"interval"`
		Series   []input      `json:"input_series"`
		Queries  []evaluation `json:"promql_expr_test"`
	}
	tested := map[string]bool{}
	var tests []story
	for _, s := range stories {
		test := story{Name: s.name, Interval: "1m"}
		for series, values := range s.series {
			test.Series = append(test.Series, input{series, values})
		}
		for title, query := range queries {
			e := evaluation{Expr: "round(" + query + ", 0.001)", At: "60m", Samples: []sample{}}
			for labels, value := range s.want[title] {
				e.Samples = append(e.Samples, sample{labels, value})
			}
			test.Queries = append(test.Queries, e)
		}
		for title := range s.want {
			tested[title] = true
			if queries[title] == "" {
				t.Errorf("no panel or alert is called %q", title)
			}
		}
		tests = append(tests, test)
	}
	for title := range queries {
		if !tested[title] {
			t.Errorf("no story has a sample for the query %q", title)
		}
	}
	file := filepath.Join(t.TempDir(), "stories.yaml") // JSON is YAML
	b, err := json.Marshal(map[string]any{"tests": tests})
	check(t, err)
	check(t, os.WriteFile(file, b, 0o600))
	if out, err := exec.Command(promtool, "test", "rules", file).CombinedOutput(); err != nil {
		lines := slices.DeleteFunc(strings.Split(string(out), "\n"), func(line string) bool { return strings.TrimSpace(line) == "" })
		t.Errorf("%v\n%s", err, strings.Join(lines, "\n"))
	}
}
