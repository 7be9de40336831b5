package observability

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/ramptest"
	"go.opentelemetry.io/otel/attribute"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// metered returns what newStudio needs.
func metered(t *testing.T, provider *metric.MeterProvider) func(string) ramp.Observer {
	return func(peer string) ramp.Observer { return must(Metrics(provider, peer))(t) }
}

// The names, units and attributes are those of the conventions for HTTP, and no attribute has a value that a
// player chooses.
func TestMetricsFollowTheConventions(t *testing.T) {
	reader := metric.NewManualReader()
	s := newStudio(t, metered(t, metric.NewMeterProvider(metric.WithReader(reader))))
	order := s.mint(100, ramptest.ResultTwice())
	s.refused()
	s.service.FailRPC(-32601) // the node answers, but the result is not confirmed
	s.mint(100)
	s.failed()

	var all metricdata.ResourceMetrics
	check(t, reader.Collect(t.Context(), &all))
	const post = "http.request.method=POST http.response.status_code="
	peer := " server.address=" + must(url.Parse(s.service.URL()))(t).Hostname() + " server.port=443"
	want := map[string]map[string]uint64{
		"http.server.request.duration in s": {
			post + "200 http.route=/api/validate url.scheme=https":                   3,
			post + "200 http.route=/api/result url.scheme=https":                     2,
			"error.type=500 " + post + "500 http.route=/api/result url.scheme=https": 1,
		},
		"http.client.request.duration in s": {
			post + "200" + peer:                     6, // 3 to the service, and 3 to the node
			"error.type=500 " + post + "500" + peer: 1,
		},
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			got := map[string]uint64{}
			switch data := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, point := range data.DataPoints {
					got[attributes(point.Attributes)] = point.Count
				}
			case metricdata.Sum[int64]:
				for _, point := range data.DataPoints {
					got[attributes(point.Attributes)] = uint64(point.Value)
				}
			}
			for set := range got {
				if strings.Contains(set, session.ID) || strings.Contains(set, order.UUID.String()) {
					t.Errorf("%s has the attributes %s", m.Name, set)
				}
			}
			name := m.Name + " in " + m.Unit
			if wanted, ok := want[name]; ok && !maps.Equal(got, wanted) {
				t.Errorf("%s: %v, not %v", name, got, wanted)
			}
			delete(want, name)
		}
	}
	for name := range want {
		t.Errorf("there is no %s", name)
	}
}

// attributes returns a set on one line.
func attributes(set attribute.Set) string {
	var all []string
	for _, one := range set.ToSlice() { // sorted by key
		all = append(all, string(one.Key)+"="+one.Value.String())
	}
	return strings.Join(all, " ")
}

// unfed are the panels of gameserver's dashboard that show its database alone. Another one shows the clock and
// the servers, and lacks what gameserver reads from its node, books and log.
var unfed = []string{"Orders that wait: slow, for an hour, for 13 hours, refused", "What a person has to close"}

// The real Prometheus reads the metrics, and evaluates the queries of gameserver's dashboard. Its exemplars lead
// to the spans of the calls.
func TestMetricsFeedTheDashboard(t *testing.T) {
	dashboard, err := os.ReadFile("../gameserver/deploy/dashboard.json")
	if os.IsNotExist(err) {
		t.Skip("a copy of this example has no dashboard to compare with")
	}
	check(t, err)
	spans := tracetest.NewInMemoryExporter()
	traces := Traces(trace.NewTracerProvider(trace.WithSyncer(spans)))
	registry := prometheus.NewRegistry()
	provider := metric.NewMeterProvider(metric.WithReader(must(exporter.New(exporter.WithRegisterer(registry)))(t)))
	exported := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true}))
	t.Cleanup(exported.Close)
	query := startPrometheus(t, exported.Listener.Addr().String())
	observe := metered(t, provider)
	s := newStudio(t, func(peer string) ramp.Observer { return Both(observe(peer), traces) })

	var panels struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	check(t, json.Unmarshal(dashboard, &panels))
	if len(panels.Panels) <= len(unfed) {
		t.Fatal("the dashboard has no panels")
	}
	empty := map[string]string{} // the queries of panels that show nothing yet
	for _, panel := range panels.Panels {
		empty[panel.Title] = panel.Targets[0].Expr
	}
	// Rates need calls between two scrapes.
	for end := time.Now().Add(30 * time.Second); len(empty) > len(unfed) && time.Now().Before(end); {
		s.mint(100, ramptest.ResultTwice())
		s.mint(100, ramptest.TransactionFails())
		s.refused()
		s.failed()
		maps.DeleteFunc(empty, func(_, expr string) bool {
			values := query("query", url.Values{"query": {expr}})
			return len(values) > 0 && !slices.ContainsFunc(values, func(v sample) bool { return math.IsNaN(v.value()) })
		})
	}
	for _, title := range unfed {
		if _, stays := empty[title]; !stays {
			t.Errorf("the panel %q is fed", title)
		}
		delete(empty, title)
	}
	for title, expr := range empty {
		t.Errorf("the panel %q shows nothing: %s", title, expr)
	}

	// The alerts about calls select series that are there before anything goes wrong.
	alerts := must(os.ReadFile("../gameserver/deploy/alerts.yaml"))(t)
	selector := regexp.MustCompile(`ramp_(webhook|client|order|clock)_[a-z_]+(\{[^}]*\})?`)
	selectors := selector.FindAllString(string(alerts), -1)
	if len(selectors) == 0 {
		t.Error("there are no alerts about calls")
	}
	for _, selector := range selectors {
		if len(query("query", url.Values{"query": {selector}})) == 0 {
			t.Errorf("an alert has no series %s", selector)
		}
	}

	known := map[string]bool{}
	for _, span := range spans.GetSpans() {
		known[span.SpanContext.TraceID().String()] = true
	}
	now := time.Now()
	period := url.Values{"query": {`ramp_webhook_duration_seconds_bucket{endpoint="result"}`},
		"start": {seconds1970(now.Add(-time.Hour))}, "end": {seconds1970(now.Add(time.Hour))}}
	exemplars := query("query_exemplars", period)
	if len(exemplars) == 0 {
		t.Error("there are no exemplars")
	}
	for _, series := range exemplars {
		for _, exemplar := range series.Exemplars {
			if !known[exemplar.Labels["trace_id"]] {
				t.Errorf("the exemplar %v belongs to no span", exemplar.Labels)
			}
		}
	}
}

func seconds1970(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }

// sample is one of a query, or the exemplars of a series.
type sample struct {
	Value     []any
	Exemplars []struct{ Labels map[string]string }
}

func (s sample) value() float64 {
	if len(s.Value) != 2 {
		return math.NaN()
	}
	text, _ := s.Value[1].(string)
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return math.NaN()
	}
	return v
}

// startPrometheus lets Prometheus scrape a target, and returns a function that queries it.
func startPrometheus(t *testing.T, target string) func(path string, values url.Values) []sample {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("*** NOT TESTED: prometheus is not installed ***")
	}
	free := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	address := free.Addr().String()
	check(t, free.Close())
	folder := t.TempDir()
	rules := must(filepath.Abs("../gameserver/deploy/alerts.yaml"))(t)
	config := fmt.Sprintf("global: {scrape_interval: 200ms, scrape_timeout: 200ms, evaluation_interval: 200ms}\n"+
		"rule_files: [%q]\nscrape_configs: [{job_name: gameserver, static_configs: [{targets: [%q]}]}]\n",
		rules, target)
	file := filepath.Join(folder, "prometheus.yml")
	check(t, os.WriteFile(file, []byte(config), 0o600))
	var says strings.Builder
	process := exec.Command(program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(folder, "data"),
		"--web.listen-address="+address, "--enable-feature=exemplar-storage", "--log.level=warn")
	process.Stderr = &says
	check(t, process.Start())
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
		if t.Failed() {
			t.Log(says.String())
		}
	})
	query := func(path string, values url.Values) []sample {
		answer, err := http.Get("http://" + address + "/api/v1/" + path + "?" + values.Encode())
		if err != nil {
			return nil // it starts
		}
		defer answer.Body.Close()
		var got struct{ Data json.RawMessage }
		body := must(io.ReadAll(answer.Body))(t)
		if json.Unmarshal(body, &got) != nil {
			return nil
		}
		var vector struct{ Result []sample }
		var list []sample
		if json.Unmarshal(got.Data, &list) == nil {
			return list
		}
		check(t, json.Unmarshal(got.Data, &vector))
		return vector.Result
	}
	return query
}

// must returns a function that returns value to a test, or ends the test if err is not nil:
// must(os.ReadFile(path))(t).
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}
