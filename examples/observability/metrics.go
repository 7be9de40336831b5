package observability

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strconv"
	"time"

	ramp "github.com/token-ramp/ramp-go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/semconv/v1.43.0/httpconv"
)

// Metrics returns an observer that records metrics. peer is the URL that the observed client calls: of
// the service, or of the first node. It is empty for a handler.
//
// The metrics http.server.request.duration, of webhooks, and http.client.request.duration, of attempts,
// follow the semantic conventions for HTTP. Those that begin with ramp are named as examples/gameserver
// names its own: a Prometheus exporter turns ramp.webhook.calls into ramp_webhook_calls_total. So the
// dashboard of gameserver shows them, and its alerts about calls fire.
//
// No attribute contains anything that a player chooses, so the number of series is bounded: the codes are
// those of the package and of your calls of Reject, and the JSON-RPC methods are those that you call.
func Metrics(provider metric.MeterProvider, peer string) (ramp.Observer, error) {
	m, err := newInstruments(provider.Meter(scope))
	server, err2 := url.Parse(peer)
	if err := errors.Join(err, err2); err != nil {
		return ramp.Observer{}, err
	}
	m.announce()
	return ramp.Observer{
		End: func(ctx context.Context, op ramp.Operation) {
			switch op.Kind {
			case ramp.OperationWebhook:
				m.webhook(ctx, op)
			case ramp.OperationAttempt:
				m.attempt(ctx, op, server)
			default:
				m.call(ctx, op)
			}
		},
	}, nil
}

// scope names what records the spans and the metrics.
const scope = "github.com/token-ramp/ramp-go/examples/observability"

// instruments are those of one meter.
type instruments struct {
	served httpconv.ServerRequestDuration
	sent   httpconv.ClientRequestDuration

	webhooks, conflicts, steps, signatures, calls, attempts metric.Int64Counter
	webhookSeconds, callSeconds                             metric.Float64Histogram
}

func newInstruments(meter metric.Meter) (*instruments, error) {
	var failed []error
	counter := func(name, unit, help string) metric.Int64Counter {
		c, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(help))
		failed = append(failed, err)
		return c
	}
	duration := func(name, help string) metric.Float64Histogram {
		h, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(help),
			metric.WithExplicitBucketBoundaries(seconds...))
		failed = append(failed, err)
		return h
	}
	served, err := httpconv.NewServerRequestDuration(meter, metric.WithExplicitBucketBoundaries(seconds...))
	sent, err2 := httpconv.NewClientRequestDuration(meter, metric.WithExplicitBucketBoundaries(seconds...))
	_, err3 := meter.Float64ObservableGauge("ramp.clock", metric.WithUnit("s"),
		metric.WithDescription("The time of this server, in seconds since 1970, to find a wrong clock."),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			o.Observe(float64(time.Now().UnixMilli()) / 1000)
			return nil
		}))
	failed = append(failed, err, err2, err3)
	return &instruments{
		served: served, sent: sent,
		webhooks: counter("ramp.webhook.calls", "{call}",
			"Webhook calls. code is empty for success. Anybody can make unverified calls."),
		webhookSeconds: duration("ramp.webhook.duration",
			"How long a webhook call took, without writing the answer."),
		conflicts: counter("ramp.conflicts", "{call}",
			"Calls that contradicted their order. Investigate each: the log names the order and the field."),
		steps: counter("ramp.order.steps", "{step}",
			"Steps of orders. new is false for a repeat, which moved no assets."),
		signatures: counter("ramp.signatures", "{signature}",
			"Signatures that were asked of the validator key, to compare with what the key service counts."),
		calls: counter("ramp.client.calls", "{call}",
			"Calls to the service and the node. One call may need several attempts."),
		callSeconds: duration("ramp.client.duration",
			"How long a call to the service or the node took, including retries and delays."),
		attempts: counter("ramp.client.attempts", "{request}",
			"HTTP requests to the service and to the node."),
	}, errors.Join(failed...)
}

// announce creates the series whose first increment is an alert: Prometheus does not see the first increment
// of a series that was not there before.
func (m *instruments) announce() {
	ctx := context.Background()
	webhook := func(endpoint string, d ramp.Direction, status int, code ramp.Code, unverified bool) {
		m.webhooks.Add(ctx, 0, metric.WithAttributes(attribute.String("endpoint", endpoint),
			attribute.String("direction", string(d)), attribute.Int("status", status),
			attribute.String("code", string(code)), attribute.Bool("unverified", unverified)))
	}
	for _, endpoint := range []string{"validate", "result"} {
		m.conflicts.Add(ctx, 0, metric.WithAttributes(attribute.String("endpoint", endpoint)))
		for _, d := range []ramp.Direction{"", ramp.Mint, ramp.Burn} {
			webhook(endpoint, d, 500, ramp.CodeInternal, false)
		}
	}
	for _, code := range []ramp.Code{ramp.CodeHMACInvalid, ramp.CodeHMACMissing, ramp.CodeBodyTooLarge,
		ramp.CodeNotFound, ramp.CodeMethodNotAllowed} {
		webhook("result", "", 500, code, true)
	}
	webhook("validate", "", 401, ramp.CodeHMACInvalid, true)
	for _, failed := range []bool{false, true} {
		m.calls.Add(ctx, 0, metric.WithAttributes(attribute.String("kind", string(ramp.OperationInitialize)),
			attribute.String("name", "initialize"), attribute.Bool("failed", failed)))
	}
	for d, effect := range map[ramp.Direction]ramp.EffectKind{ramp.Mint: ramp.Take, ramp.Burn: ramp.Nothing} {
		m.steps.Add(ctx, 0, metric.WithAttributes(attribute.String("direction", string(d)),
			attribute.String("state", string(ramp.OrderAccepted)),
			attribute.String("effect", effect.String()), attribute.Bool("new", true)))
	}
}

// webhook records a call that the handler answered.
func (m *instruments) webhook(ctx context.Context, op ramp.Operation) {
	endpoint := metric.WithAttributes(attribute.String("endpoint", op.Name))
	m.webhooks.Add(ctx, 1, endpoint, metric.WithAttributes(
		attribute.String("direction", string(op.Direction)), attribute.Int("status", op.Status),
		attribute.String("code", string(op.Code)), attribute.Bool("unverified", op.Unverified)))
	m.webhookSeconds.Record(ctx, op.Duration.Seconds(), endpoint)
	if op.Conflict != nil {
		m.conflicts.Add(ctx, 1, endpoint)
	}
	if op.Signed {
		m.signatures.Add(ctx, 1, metric.WithAttributes(attribute.Bool("released", op.Err == nil)))
	}
	if step := op.Step; step != nil {
		m.steps.Add(ctx, 1, metric.WithAttributes(attribute.String("direction", string(step.Order.Direction)),
			attribute.String("state", string(step.Order.State)),
			attribute.String("effect", step.Effect.Kind.String()), attribute.Bool("new", step.New)))
	}
	method := httpconv.RequestMethodPost
	if op.Name == "assets" {
		method = httpconv.RequestMethodGet
	}
	// The service calls with https, whatever the proxy speaks to this server.
	m.served.Record(ctx, op.Duration.Seconds(), method, "https", append(failure(op),
		m.served.AttrRoute("/api/"+op.Name), m.served.AttrResponseStatusCode(op.Status))...)
}

// call records an initialize or JSON-RPC call, with all its attempts.
func (m *instruments) call(ctx context.Context, op ramp.Operation) {
	name := metric.WithAttributes(
		attribute.String("kind", string(op.Kind)), attribute.String("name", op.Name))
	m.calls.Add(ctx, 1, name, metric.WithAttributes(attribute.Bool("failed", op.Err != nil)))
	m.callSeconds.Record(ctx, op.Duration.Seconds(), name)
}

// attempt records an HTTP request to the service or a node.
func (m *instruments) attempt(ctx context.Context, op ramp.Operation, server *url.URL) {
	m.attempts.Add(ctx, 1, metric.WithAttributes(
		attribute.String("name", op.Name), attribute.Bool("failed", op.Err != nil)))
	attributes := failure(op)
	if status := statusOf(op); status != 0 {
		attributes = append(attributes, m.sent.AttrResponseStatusCode(status))
	}
	m.sent.Record(ctx, op.Duration.Seconds(), httpconv.RequestMethodPost, server.Hostname(), port(server),
		attributes...)
}

func port(server *url.URL) int {
	if n, err := strconv.Atoi(server.Port()); err == nil {
		return n
	}
	if server.Scheme == "http" {
		return 80
	}
	return 443
}

// statusOf returns the HTTP status of an operation, or 0 without an answer.
func statusOf(op ramp.Operation) int {
	var initialize *ramp.APIError
	var node *ramp.HTTPError
	var message *ramp.RPCError
	switch {
	case op.Kind == ramp.OperationWebhook:
		return op.Status
	case errors.As(op.Err, &initialize):
		return initialize.Status
	case errors.As(op.Err, &node):
		return node.Status
	case op.Err == nil, errors.As(op.Err, &message):
		return 200
	default:
		return 0
	}
}

// failure returns the attribute error.type of an operation that failed, and otherwise none. Its values
// are HTTP statuses, or one of four words. For a server, rejecting a call is not an error.
func failure(op ramp.Operation) []attribute.KeyValue {
	var network net.Error
	kind := "_OTHER"
	switch status := statusOf(op); {
	case op.Err == nil, op.Kind == ramp.OperationWebhook && status < 500:
		return nil
	case status >= 400:
		kind = strconv.Itoa(status)
	case errors.Is(op.Err, context.DeadlineExceeded), errors.As(op.Err, &network) && network.Timeout():
		kind = "timeout"
	case errors.Is(op.Err, context.Canceled):
		kind = "canceled"
	case status == 200:
		kind = "rejected"
	}
	return []attribute.KeyValue{attribute.String("error.type", kind)}
}

// seconds are the buckets of durations, from a handler without a database to the longest wait for a chain.
var seconds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
