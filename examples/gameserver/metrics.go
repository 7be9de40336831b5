// To make it yours: change nothing, unless you use no Prometheus. Then examples/observability has
// OpenTelemetry.

package main

import (
	"context"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	ramp "github.com/token-ramp/ramp-go"
	"github.com/token-ramp/ramp-go/rampbooks"
)

// serveMetrics serves the metrics on an address of their own, which the proxy in front
// of the server does not know.
func serveMetrics(address string, registry *prometheus.Registry) (io.Closer, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }()
	return server, nil
}

// newMetrics registers metrics with registry and returns an observer that updates
// them, to set in every config of the program.
//
// No label contains anything that a player chooses, so the number of series is
// bounded: the codes are those of the package and of your calls of Reject, and the
// JSON-RPC methods are those that your program calls.
func newMetrics(registry prometheus.Registerer) ramp.Observer {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		registry.MustRegister(c)
		return c
	}
	duration := func(name, help string, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help,
			Buckets: seconds}, labels)
		registry.MustRegister(h)
		return h
	}
	var (
		webhooks = counter("ramp_webhook_calls_total",
			"Webhook calls. code is empty for success. unverified ones had no valid HMAC, so anybody may "+
				"have made them.",
			"endpoint", "direction", "status", "code", "unverified")
		webhookSeconds = duration("ramp_webhook_duration_seconds",
			"How long a webhook call took, without writing the answer.", "endpoint")
		conflicts = counter("ramp_conflicts_total",
			"Calls that contradicted their order. Investigate each: the log names the order and the field.",
			"endpoint")
		steps = counter("ramp_order_steps_total",
			"Steps of orders. new is false for a repeat, which moved no assets.", "direction", "state",
			"effect", "new")
		signatures = counter("ramp_signatures_total",
			"Signatures that were asked of the validator key. Compare with those that the key "+
				"service counts.", "released")
		calls = counter("ramp_client_calls_total",
			"Calls to the service and the node. One call may need several attempts.", "kind",
			"name", "failed")
		callSeconds = duration("ramp_client_duration_seconds",
			"How long a call to the service or the node took, including retries and delays.", "kind", "name")
		attempts = counter("ramp_client_attempts_total",
			"HTTP requests to the service and to the node.", "name", "failed")
	)

	// Prometheus does not see the first increment of a series that was not there
	// before. So create the series whose first increment is an alert.
	conflicts.WithLabelValues("validate")
	conflicts.WithLabelValues("result")
	for _, d := range []ramp.Direction{"", ramp.Mint, ramp.Burn} {
		webhooks.WithLabelValues("result", string(d), "500", string(ramp.CodeInternal), "false")
		webhooks.WithLabelValues("validate", string(d), "500", string(ramp.CodeInternal), "false")
	}
	for _, code := range []ramp.Code{ramp.CodeHMACInvalid, ramp.CodeHMACMissing, ramp.CodeBodyTooLarge,
		ramp.CodeNotFound,
		ramp.CodeMethodNotAllowed} {
		webhooks.WithLabelValues("result", "", "500", string(code), "true")
	}
	webhooks.WithLabelValues("validate", "", "401", string(ramp.CodeHMACInvalid), "true")
	for _, failed := range []string{"false", "true"} {
		calls.WithLabelValues(string(ramp.OperationInitialize), "initialize", failed)
	}
	for d, effect := range map[ramp.Direction]ramp.EffectKind{ramp.Mint: ramp.Take, ramp.Burn: ramp.Nothing} {
		steps.WithLabelValues(string(d), string(ramp.OrderAccepted), effect.String(), "true")
	}
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "ramp_clock_seconds",
		Help: "The time of this server, in seconds since 1970, to compare with the clock of Prometheus."},
		func() float64 { return float64(time.Now().UnixMilli()) / 1000 }))

	return ramp.Observer{
		End: func(_ context.Context, op ramp.Operation) {
			failed := strconv.FormatBool(op.Err != nil)
			switch op.Kind {
			case ramp.OperationWebhook:
				webhooks.WithLabelValues(op.Name, string(op.Direction), strconv.Itoa(op.Status),
					string(op.Code),
					strconv.FormatBool(op.Unverified)).Inc()
				webhookSeconds.WithLabelValues(op.Name).Observe(op.Duration.Seconds())
				if op.Conflict != nil {
					conflicts.WithLabelValues(op.Name).Inc()
				}
				if op.Signed {
					signatures.WithLabelValues(strconv.FormatBool(op.Err == nil)).Inc()
				}
				if step := op.Step; step != nil {
					steps.WithLabelValues(string(step.Order.Direction), string(step.Order.State),
						step.Effect.Kind.String(), strconv.FormatBool(step.New)).Inc()
				}
			case ramp.OperationAttempt:
				attempts.WithLabelValues(op.Name, failed).Inc()
			default:
				calls.WithLabelValues(string(op.Kind), op.Name, failed).Inc()
				callSeconds.WithLabelValues(string(op.Kind), op.Name).Observe(op.Duration.Seconds())
			}
		},
	}
}

// gauge registers a gauge that asks for its value at each scrape. It is NaN after an error.
func gauge(registry prometheus.Registerer, name, help string, labels prometheus.Labels,
	read func(context.Context) (float64, error)) {
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help,
		ConstLabels: labels}, func() float64 {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		value, err := read(ctx)
		if err != nil {
			return math.NaN()
		}
		return value
	}))
}

// countWaiting registers gauges of the mints and burns that have waited for a result for
// longer than is usual, for an hour, and for longer than the service delivers results.
// count is the CountWaiting method of a rampsql.Store.
func countWaiting(registry prometheus.Registerer,
	count func(context.Context, ramp.Direction, time.Time) (int, time.Time, error)) {
	for _, d := range []ramp.Direction{ramp.Mint, ramp.Burn} {
		for name, age := range map[string]time.Duration{"slow": 3 * time.Minute, "late": time.Hour,
			"waiting": 13 * time.Hour} {
			gauge(registry, "ramp_orders_"+name,
				"Orders without a result after "+age.String()+", the same on every server.",
				prometheus.Labels{"direction": string(d)}, func(ctx context.Context) (float64, error) {
					n, _, err := count(ctx, d, time.Now().Add(-age))
					return float64(n), err
				})
		}
	}
}

// countRefused registers gauges of the mints and burns that wait although their end was refused, by
// the game or by what the chain shows. count is the CountRefused method of a rampsql.Store.
func countRefused(
	registry prometheus.Registerer,
	count func(context.Context, ramp.Direction) (int, time.Time, error),
) {
	const help = "Orders that wait although their end was refused, the same on every server."
	for _, d := range []ramp.Direction{ramp.Mint, ramp.Burn} {
		gauge(registry, "ramp_orders_refused", help, prometheus.Labels{"direction": string(d)},
			func(ctx context.Context) (float64, error) {
				n, _, err := count(ctx, d)
				return float64(n), err
			})
	}
}

// watchNode registers a gauge of the node's newest block: a node that is stuck still answers.
func watchNode(registry prometheus.Registerer, chain *ramp.RPC) {
	gauge(registry, "ramp_node_block_seconds",
		"The time of the node's newest block, in seconds since 1970.", nil,
		func(ctx context.Context) (float64, error) {
			block, err := chain.BlockByNumber(ctx, "latest", false)
			if err != nil {
				return 0, err
			}
			mined, err := block.Timestamp.Uint64()
			return float64(mined), err
		})
}

// checkClock warns if the clock of this server and that of the node differ by more than a minute: orders
// and their transactions are matched by time. Check compares with the database.
func checkClock(ctx context.Context, url string, log *slog.Logger) {
	const asked = `{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}`
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(asked))
	if err != nil {
		return // the URL was checked before
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return // Check has logged it
	}
	defer response.Body.Close()
	date, err := http.ParseTime(response.Header.Get("Date"))
	if ahead := time.Since(date); err == nil && ahead.Abs() > time.Minute {
		log.WarnContext(ctx, "ramp: check", "warning",
			"the clock of this server or that of the node is wrong", "ahead",
			ahead.Round(time.Second).String())
	}
}

// countBooks registers gauges of the last books, and returns a function that sets them.
func countBooks(registry prometheus.Registerer) func(*rampbooks.Reconciliation) {
	end := prometheus.NewGauge(prometheus.GaugeOpts{Name: "ramp_books_end_seconds",
		Help: "The time until which orders and events were compared, in seconds since 1970."})
	fitting := prometheus.NewGauge(prometheus.GaugeOpts{Name: "ramp_books_fitting",
		Help: "Orders in the last books that gameserver orders finish -fitting ends."})
	registry.MustRegister(fitting)
	// Until books were read, the series is absent, which is an alert: a server that is restarted again
	// and again before it has read any must not look as if it had.
	first := sync.OnceFunc(func() { registry.MustRegister(end) })
	return func(books *rampbooks.Reconciliation) {
		defer first()
		fitting.Set(float64(books.Fitting))
		end.Set(float64(books.To.Unix()))
	}
}

// seconds are the histogram buckets, from a handler without a database to the longest
// wait for a chain.
var seconds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
