// Package observability provides observers with spans and metrics for OpenTelemetry, to copy into
// your server. examples/gameserver has one with metrics for Prometheus alone.
package observability

import (
	"context"

	ramp "github.com/token-ramp/ramp-go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Traces returns an observer that creates a span for every operation. The span of a
// webhook call contains its calls to the chain, and the span of an initialize or
// JSON-RPC call contains its attempts. Spans that your game starts with the context
// of the call are inside its span too.
//
// The service does not send a trace context, so each of its calls starts a new
// trace. If your proxy sends one, extract it in a middleware before the handler.
func Traces(provider trace.TracerProvider) ramp.Observer {
	tracer := provider.Tracer(scope)
	return ramp.Observer{
		Start: func(ctx context.Context, op ramp.Operation) context.Context {
			kind := trace.SpanKindClient
			switch op.Kind {
			case ramp.OperationWebhook:
				kind = trace.SpanKindServer
			case ramp.OperationInitialize, ramp.OperationRPC:
				kind = trace.SpanKindInternal // its attempts are the requests
			}
			ctx, _ = tracer.Start(ctx, "ramp."+string(op.Kind)+" "+op.Name, trace.WithSpanKind(kind))
			return ctx
		},
		End: func(ctx context.Context, op ramp.Operation) {
			span := trace.SpanFromContext(ctx)
			defer span.End()
			if op.UUID != [16]byte{} {
				span.SetAttributes(attribute.String("ramp.uuid", op.UUID.String()))
			}
			if op.Direction != "" {
				span.SetAttributes(attribute.String("ramp.direction", string(op.Direction)))
			}
			if op.TxHash != "" {
				span.SetAttributes(attribute.String("ramp.tx_hash", op.TxHash))
			}
			if op.Kind == ramp.OperationWebhook {
				span.SetAttributes(attribute.Int("http.response.status_code", op.Status),
					attribute.String("ramp.code", string(op.Code)),
					attribute.Bool("ramp.unverified", op.Unverified))
			}
			if op.Conflict != nil {
				span.SetAttributes(attribute.String("ramp.conflict", op.Conflict.Field))
			}
			if step := op.Step; step != nil {
				span.SetAttributes(attribute.String("ramp.state", string(step.Order.State)),
					attribute.String("ramp.effect", step.Effect.Kind.String()),
					attribute.Bool("ramp.new", step.New))
			}
			// Rejecting a webhook call is not an error, and anybody can make an unverified one.
			if op.Err != nil && (op.Kind != ramp.OperationWebhook || op.Status >= 500 && !op.Unverified) {
				span.RecordError(op.Err)
				span.SetAttributes(failure(op)...)
				span.SetStatus(codes.Error, op.Err.Error())
			}
		},
	}
}

// Both returns an observer that calls both metrics and traces. The metrics are recorded in the span of the
// operation, so that they have exemplars.
func Both(metrics, traces ramp.Observer) ramp.Observer {
	return ramp.Observer{
		Start: traces.Start,
		End: func(ctx context.Context, op ramp.Operation) {
			metrics.End(ctx, op)
			traces.End(ctx, op)
		},
	}
}
